//! Exports: what other tools read must be whole, in base units and in agreement with the evidence.

mod common;

use common::{QUARTER, QUICK};
use plimsoll_judge::judge;

/// Splits a CSV line at its commas; fields in quotes may hold some.
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
        // p99.9 of fewer than 10,000 I/Os is not a figure.
        let p999 = &line[column("latency_ns_p999")];
        assert_eq!(p999.is_empty(), class.count < 10_000, "{}: {p999}", class.name);
    }
}

#[test]
fn every_table_is_a_csv_of_even_rows() {
    let bundle = common::bundle(QUARTER);
    let tables = plimsoll_report::csv::tables(&bundle, &judge(&bundle));
    let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"checks.csv"), "{names:?}");
    assert!(names.contains(&"io-transactional-i-o-performance.csv"), "{names:?}");
    for (name, csv) in &tables {
        let widths: Vec<usize> = csv.lines().map(|line| fields(line).len()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{name}: {csv}");
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
