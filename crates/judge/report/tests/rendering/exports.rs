//! Exports for other tools are complete, use base units, and agree with the evidence.

use crate::common::{self, QUICK};
use plimsoll_judge::judge;

/// Splits a CSV line at commas outside of quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[test]
fn csv_has_the_totals_of_each_class() {
    let bundle = common::bundle(QUICK);
    let csv = plimsoll_report::csv(&bundle, &judge(&bundle));
    let lines: Vec<Vec<String>> = csv.lines().map(fields).collect();
    let column = |name: &str| lines[0].iter().position(|key| key == name).unwrap();
    assert_eq!(lines.len(), 1 + bundle.run.classes.len());
    for (class, line) in bundle.run.classes.iter().zip(&lines[1..]) {
        assert_eq!(line.len(), lines[0].len());
        assert_eq!(line[column("class")], class.name);
        assert_eq!(line[column("count")], class.count.to_string());
        assert_eq!(line[column("latency_ns_max")], class.latency_ns_max.to_string());
        let average: f64 = line[column("latency_ns_avg")].parse().unwrap();
        assert!((average - class.latency_ns_sum as f64 / class.count as f64).abs() < 1e-6);
        // A p99.9 is exported only if there are at least 10,000 I/Os.
        let p999 = &line[column("latency_ns_p999")];
        assert_eq!(p999.is_empty(), class.count < 10_000, "{}: {p999}", class.name);
    }
}

#[test]
fn fio_json_agrees_with_the_evidence() {
    let bundle = common::bundle(QUICK);
    let json: serde_json::Value =
        serde_json::from_str(&plimsoll_report::fio_json(&bundle)).unwrap();
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs[0]["jobname"], "database");
    let read = &jobs[0]["read"];
    let sum = |of: fn(&plimsoll_evidence::run::ClassTotals) -> u64| {
        bundle.run.sum(|class| class.group == "transactional" && class.is_read, of)
    };
    let (count, bytes) = (sum(|class| class.count), sum(|class| class.size_bytes));
    assert_eq!(read["total_ios"], count);
    assert_eq!(read["io_bytes"], bytes);
    assert_eq!(read["runtime"], 30_000);
    assert_eq!(read["lat_ns"]["N"], count);
    assert!((read["iops"].as_f64().unwrap() - count as f64 / 30.0).abs() < 1e-6);
    assert!(read["clat_ns"]["percentile"]["99.000000"].as_u64().unwrap() > 0);
    assert!(read["clat_ns"]["percentile"]["99.990000"].is_null());
}

const CLOSED: &str = "sizes = \"4KiB\"\nqueue_depth = 4\nclients = 2";
const OPEN: &str = "sizes = \"4KiB\"\narrival = \"poisson\"\nrate = 3000";

/// Returns the findings of the audit for the export of a run.
fn audit_of_export(bundle: &plimsoll_evidence::Bundle) -> Vec<String> {
    let json = plimsoll_report::fio_json(bundle);
    let study = plimsoll_import::read_text("export.json", &json);
    let audit = plimsoll_judge::conservation::audit(&study.results[0], &Default::default());
    audit.findings.iter().map(|finding| finding.says.clone()).collect()
}

/// Drained operations are in the latencies but not in the rates, the measured phase ends between
/// two milliseconds, and an open loop waits before it submits.
#[test]
fn the_audit_accepts_the_fio_json_of_each_kind_of_load() {
    let loads = [
        (CLOSED.to_owned(), Some(8)),
        (format!("{CLOSED}\nreads = 60"), Some(8)),
        (
            format!("{CLOSED}\nreads = 60\nwrite_size_mix = [{{ size = \"8KiB\", share = 100 }}]"),
            Some(8),
        ),
        (format!("{CLOSED}\nrate = 4000"), Some(2)),
        (format!("{CLOSED}\nthink_time = \"1ms\""), Some(3)),
        (OPEN.to_owned(), None),
    ];
    for (load, slots) in loads {
        let bundle = crate::matrix::matrix(&load, slots);
        assert_eq!(audit_of_export(&bundle), [""; 0], "{load}");
    }
    assert_eq!(audit_of_export(&common::bundle(QUICK)), [""; 0]);
}

#[test]
fn fio_json_states_the_depth_of_a_closed_loop_only() {
    let options = |load: &str| {
        let json = plimsoll_report::fio_json(&crate::matrix::matrix(load, Some(8)));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["jobs"][0]["job options"].clone()
    };
    let closed = options(CLOSED);
    assert_eq!(closed["ioengine"], "io_uring");
    assert_eq!((&closed["iodepth"], &closed["numjobs"]), (&"4".into(), &"2".into()));
    let open = options(OPEN);
    assert!(open["ioengine"].is_null() && open["rate_iops"].is_string(), "{open}");
}

#[test]
fn fio_json_has_what_fio_plot_draws_by() {
    let bundle = common::bundle(QUICK);
    let json: serde_json::Value =
        serde_json::from_str(&plimsoll_report::fio_json(&bundle)).unwrap();
    let job = &json["jobs"][0];
    for option in ["rw", "bs", "iodepth", "numjobs"] {
        assert!(job["job options"][option].is_string(), "{option}");
    }
    assert_eq!(job["job options"]["rw"], "randrw");
    let side = &job["read"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(number(&side["iops_min"]) <= number(&side["iops_mean"]));
    assert!(number(&side["iops_mean"]) <= number(&side["iops_max"]));
    assert!((number(&side["iops_mean"]) / number(&side["iops"]) - 1.0).abs() < 0.1);
    // The shares of all latency ranges add up to 100 %, so each operation is in exactly one range.
    let shares: f64 = ["latency_ns", "latency_us", "latency_ms"]
        .iter()
        .flat_map(|unit| job[unit].as_object().unwrap().values())
        .map(number)
        .sum();
    assert!((shares - 100.0).abs() < 1e-6, "{shares}");
}

#[test]
fn junit_has_a_case_for_each_check_and_rule() {
    let bundle = common::bundle(QUICK);
    let mut verdict = judge(&bundle);
    verdict.checks[0].ok = Some(false);
    verdict.checks[1].ok = None;
    verdict.reason = "<\"&".into();
    let xml = plimsoll_report::junit(&bundle, &verdict);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
    let cases: Vec<_> = suite.children().filter(|n| n.has_tag_name("testcase")).collect();
    let expected = 1 + verdict.checks.len() + verdict.findings.len() + verdict.passed.len();
    assert_eq!(cases.len(), expected);
    assert_eq!(suite.attribute("tests").unwrap(), expected.to_string());
    let of = |index: usize, tag: &str| cases[index].children().any(|n| n.has_tag_name(tag));
    assert!(of(1, "failure") && of(2, "skipped"));
    let failed = document.descendants().filter(|n| n.has_tag_name("failure")).count();
    assert_eq!(suite.attribute("failures").unwrap(), failed.to_string());
}

#[test]
fn prometheus_text_agrees_with_the_evidence() {
    let bundle = common::bundle(QUICK);
    let text = plimsoll_report::prometheus(&bundle, &judge(&bundle));
    let mut families = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(rest.split(' ').next().unwrap().to_owned()), "{line} twice");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            let family = name.split('{').next().unwrap();
            let base = family.trim_end_matches("_sum").trim_end_matches("_count");
            assert!(families.contains(base), "{line} before its type");
        }
    }
    let class = &bundle.run.classes[0];
    let line = text.lines().find(|l| {
        l.starts_with("plimsoll_operations{") && l.contains(&format!("\"{}\"", class.name))
    });
    assert!(line.unwrap().ends_with(&format!(" {}", class.count)));
}

#[test]
fn markdown_tables_are_even() {
    let bundle = common::bundle(QUICK);
    let markdown = plimsoll_report::markdown(&bundle, &judge(&bundle));
    assert!(markdown.starts_with("# PASS: exchange-1000-heavy\n"));
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut previous: Option<usize> = None;
    for line in markdown.lines() {
        let here = line.starts_with('|').then(|| bars(line));
        if let (Some(before), Some(here)) = (previous, here) {
            assert_eq!(before, here, "{line}");
        }
        previous = here;
    }
}
