//! Tests one run of the installed fio in every output format and through every interface of the
//! program. Figures, headline, exit code and the outcome of each rule must be equal.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_judge::conservation;
use plimsoll_runner::audit::{AuditedText, DeclaredSystem, audit_text};
use serde_json::Value;

use super::fio_runs::{self, Forms};
use crate::support::Sandbox;
use crate::support::port::free_port;

/// Tolerance for the rounding of printed figures.
const ROUNDED: f64 = 0.02;

fn has_fio() -> bool {
    let has = Command::new("fio").arg("--version").output().is_ok();
    if !has {
        println!("fio is not installed: nothing was run");
    }
    has
}

/// Returns the headline of the web page for a pasted text.
fn page(name: &str, text: &str) -> String {
    match audit_text(name, text, &DeclaredSystem::default()).unwrap() {
        AuditedText::Run(judged) => {
            let audit = judged.figures.as_ref().map(|(_, audit)| audit);
            let json = plimsoll_report::reported::verdict_json(&judged.verdicts[0], audit).unwrap();
            json["headline"].as_str().unwrap().to_owned()
        }
        AuditedText::Figures(study) => {
            let audit =
                conservation::audit(&study.results[0], &DeclaredSystem::default().reported());
            audit.verdict.label().to_owned()
        }
    }
}

/// Outcome of each rule: `pass`, `fail`, or `unknown`.
type Outcomes = BTreeMap<String, &'static str>;

/// Rules that may be unknown in a format that lacks their figures. Each entry contains the end of
/// the file name, the rule, and the missing figures.
const UNPRINTED: [(&str, &str, &str); 10] = [
    ("txt", "rate-limit", "the options of the job"),
    ("txt", "device-moved", "whether the job used O_DIRECT"),
    ("json", "parts-and-totals", "totals of a group of jobs"),
    ("terse", "parts-and-totals", "totals of a group of jobs"),
    ("json", "lost-parts", "the number of jobs in a group"),
    ("terse", "lost-parts", "the number of jobs"),
    ("terse", "interval-within-total", "the number of threads and of samples"),
    ("terse", "littles-law", "the depth"),
    ("terse", "rate-limit", "the options of the job"),
    ("terse", "device-moved", "whether the job used O_DIRECT, and its pattern"),
];

fn outcomes(row: &Value) -> Outcomes {
    let audit = &row["audit"];
    let word = |value: &Value| value["rule"].as_str().unwrap().to_owned();
    let list = |name: &str| audit[name].as_array().unwrap().iter().map(word);
    let passed = audit["held"].as_object().unwrap().keys().map(|rule| (rule.clone(), "pass"));
    let unknown = list("unknown").map(|rule| (rule, "unknown"));
    passed.chain(unknown).chain(list("findings").map(|rule| (rule, "fail"))).collect()
}

/// Requires that each rule has the same outcome in all formats. A rule may be unknown in a format
/// that lacks its figures.
fn rules_agree(options: &str, forms: &[(&str, Outcomes)]) {
    let rules = &forms[0].1;
    assert!(rules.len() > 20, "{options}: {rules:?}");
    for rule in rules.keys() {
        let unprinted = |name: &str| {
            UNPRINTED.iter().any(|(end, other, _)| name.ends_with(end) && other == rule)
        };
        let all: Vec<(&str, &str)> = forms
            .iter()
            .map(|(name, outcomes)| (*name, outcomes[rule]))
            .filter(|(name, outcome)| !(unprinted(name) && *outcome == "unknown"))
            .collect();
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].1), "{options}: {rule}: {all:?}");
    }
}

/// Audits a file that contains a single result, and returns the row of this result.
fn row(sandbox: &Sandbox, (name, text): (&str, &str), code: Option<i32>) -> Value {
    let directory = sandbox.path("one");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
    let ran = sandbox.run(&["audit", &directory.display().to_string(), "--table", "--json"]);
    let table = match code {
        Some(code) => ran.expect(code).json(),
        None => ran.json(),
    };
    std::fs::remove_file(directory.join(name)).unwrap();
    let [row] = &table["results"].as_array().unwrap()[..] else { panic!("{name}: one row") };
    row.clone()
}

/// Checks one format through all interfaces. Returns its rate, bandwidth and mean latency, and its
/// rules.
fn judged(
    sandbox: &Sandbox,
    options: &str,
    (name, text): (&str, &str),
    expected: &str,
) -> ([Value; 3], Outcomes) {
    let code = if expected == "CONSISTENT" { 0 } else { 3 };
    std::fs::create_dir_all(sandbox.path("one")).unwrap();
    let file = sandbox.path("one").join(name);
    std::fs::write(&file, text).unwrap();
    let path = file.display().to_string();
    let ran = sandbox.run(&["audit", &path]).expect(code);
    assert!(ran.stdout.starts_with(expected), "{options}: {name}: {}", ran.stdout);
    std::fs::remove_file(&file).unwrap();
    let row = row(sandbox, (name, text), Some(code));
    assert_eq!(row["audit"]["verdict"], expected, "{options}: {name}: {row:#}");
    assert_eq!(page(name, text), expected, "{options}: {name}");
    let figures =
        ["rate_per_s", "bandwidth_bytes_per_s", "latency_ns_mean"].map(|name| row[name].clone());
    (figures, outcomes(&row))
}

fn alike(options: &str, all: &[([Value; 3], Outcomes)]) {
    for (figures, _) in &all[1..] {
        for (one, other) in figures.iter().zip(&all[0].0) {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            assert!((one / other - 1.0).abs() < ROUNDED, "{options}: {all:?}");
        }
    }
}

#[test]
fn all_forms_of_a_run_have_one_verdict_everywhere() {
    if !has_fio() {
        return;
    }
    let sandbox = Sandbox::new();
    for options in [
        "--rw=randrw --bs=4k --ioengine=libaio --iodepth=8 --direct=1 --time_based --numjobs=2 --group_reporting",
        "--rw=randread --bs=4k --ioengine=libaio --iodepth=8 --direct=1 --time_based --status-interval=400ms",
        "--rw=randwrite --bs=4k --ioengine=psync --fdatasync=1 --time_based",
        "--rw=randread --bs=4k --ioengine=libaio --iodepth=4 --direct=1 --time_based --rate_iops=500 --runtime=3",
    ] {
        let ran = fio_runs::run(options, &sandbox.data());
        let json = ran.json();
        let Forms { text, json_plus, terse } = &ran;
        let forms =
            [("r.txt", text), ("plus.json", json_plus), ("r.json", &json), ("r.terse", terse)];
        let all = forms.map(|(name, text)| judged(&sandbox, options, (name, text), "CONSISTENT"));
        alike(options, &all);
        let names = forms.map(|(name, _)| name);
        let all: Vec<_> = names.into_iter().zip(all.map(|(_, outcomes)| outcomes)).collect();
        rules_agree(options, &all);
    }
    // Terse output does not contain the I/O engine, so this test does not use it.
    let options = "--rw=randread --bs=4k --ioengine=null --time_based";
    let Forms { text, json_plus, .. } = fio_runs::run(options, &sandbox.data());
    for (name, text) in [("r.txt", &text), ("r.json", &json_plus)] {
        judged(&sandbox, options, (name, text), "INVALID");
    }
}

/// A fio server, which ends when this value is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn client(port: u16, form: &str, directory: &Path) -> String {
    let server = format!("--client=127.0.0.1,{port}");
    let mut output = String::new();
    for _ in 0..20 {
        let ran = Command::new("timeout")
            .args(["60", "fio", &server, &format!("--output-format={form}"), "job.fio"])
            .current_dir(directory)
            .output()
            .unwrap();
        output = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() && output.len() > 300 {
            break;
        }
        // The server may not accept connections yet.
        std::thread::sleep(Duration::from_millis(200));
    }
    output
}

#[test]
fn the_forms_of_a_client_have_the_verdict_of_the_others() {
    if !has_fio() {
        return;
    }
    let (sandbox, port) = (Sandbox::new(), free_port());
    let job = "[j]\nrw=randread\nbs=4k\nsize=8m\nruntime=1\ntime_based\nioengine=libaio\niodepth=8\ndirect=1\n";
    std::fs::write(sandbox.data().join("job.fio"), job).unwrap();
    let mut server = Command::new("fio");
    server.arg(format!("--server=127.0.0.1,{port}")).current_dir(sandbox.data());
    let _server = Server(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let forms = [("normal", "c.txt"), ("json", "c.json"), ("terse", "c.terse")];
    let all = forms.map(|(form, name)| {
        let text = client(port, form, &sandbox.data());
        (name, judged(&sandbox, form, (name, &text), "CONSISTENT").1)
    });
    rules_agree("client", &all);
}

/// With `PLIMSOLL_FIO_RUNS=all`, this test uses all option sets of `fio-runs.txt`, including cached
/// reads.
#[test]
fn each_rule_has_one_outcome_in_all_forms() {
    if !has_fio() {
        return;
    }
    let sandbox = Sandbox::new();
    let cached = "--rw=randread --bs=4k --ioengine=psync --pre_read=1 --time_based --runtime=3";
    // With `unified_rw_reporting=1`, terse lines print the sum of all operations in the columns of
    // reads.
    let divided = fio_runs::sets().filter(|set| !set.contains("unified_rw_reporting=1"));
    for options in [cached].into_iter().chain(divided) {
        let ran = fio_runs::run(options, &sandbox.data());
        let json = ran.json();
        let forms = [
            ("r.txt", &ran.text),
            ("plus.json", &ran.json_plus),
            ("r.json", &json),
            ("r.terse", &ran.terse),
        ];
        let of = |(name, text): (&'static str, &String)| {
            (name, outcomes(&row(&sandbox, (name, text), None)))
        };
        rules_agree(options, &forms.map(of));
    }
}

#[test]
fn a_short_run_under_observation_is_measured_in_every_form() {
    if !has_fio() {
        return;
    }
    let sandbox = Sandbox::new();
    let data = sandbox.data().display().to_string();
    for form in ["json", "normal", "terse"] {
        let out = sandbox.path(&format!("out.{form}")).display().to_string();
        let observe = ["observe", "--path", &data, "--result", &out, "--json", "--"];
        let fio = "fio --name=j --size=8m --runtime=2 --time_based --rw=randread --bs=4k \
                   --ioengine=libaio --iodepth=8 --direct=1";
        let [directory, format, output] = [
            format!("--directory={data}"),
            format!("--output-format={form}"),
            format!("--output={out}"),
        ];
        let fio = fio.split_whitespace().chain([&directory[..], &format, &output]);
        let arguments: Vec<&str> = observe.into_iter().chain(fio).collect();
        let ran = sandbox.run(&arguments).expect(0);
        assert_eq!(ran.json()["verdict"], "MEASURED", "{form}: {}", ran.stdout);
    }
}
