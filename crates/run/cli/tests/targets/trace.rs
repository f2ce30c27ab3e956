//! `plimsoll run --trace`: the test records a trace with fio and replays it on a file, on a model,
//! and on a target that is too slow for it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{OF_THE_HOST, Sandbox, json, names};
use serde_json::Value;

/// Total number of reads and writes in the trace. They are `GAP_US` apart.
const OPERATIONS: u64 = 600;
const GAP_US: u64 = 5_000;

/// Returns a trace in fio's `write_iolog` format. Two of three operations are reads. All of them
/// use blocks of 4 KiB in an area of 16 MiB. A flush follows every hundred operations.
fn iolog() -> String {
    let mut text = "fio version 3 iolog\n0 /f add\n0 /f open\n".to_owned();
    for i in 0..OPERATIONS {
        let (at, offset) = (i * GAP_US, i * 7_919 % 4_096 * 4_096);
        let word = if i % 3 == 2 { "write" } else { "read" };
        writeln!(text, "{at} /f {word} {offset} 4096").unwrap();
        if i % 100 == 99 {
            writeln!(text, "{at} /f sync 0 0").unwrap();
        }
    }
    text
}

fn trace(sandbox: &Sandbox, text: &str) -> PathBuf {
    let path = sandbox.path("app.iolog");
    std::fs::write(&path, text).unwrap();
    path
}

fn share(value: &Value, of: &Value) -> f64 {
    value.as_f64().unwrap() / of.as_f64().unwrap()
}

fn count(run: &Value, is_read: bool) -> u64 {
    let classes = run["classes"].as_array().unwrap().iter();
    let moving = classes.filter(|c| c["group"] == "transactional" && c["is_read"] == is_read);
    moving.map(|c| c["count"].as_u64().unwrap()).sum()
}

fn flushes(run: &Value) -> u64 {
    let classes = run["classes"].as_array().unwrap().iter();
    classes.filter(|c| c["group"] == "sync").map(|c| c["count"].as_u64().unwrap()).sum()
}

/// Returns the outcome of a rule; `None` if it passed or does not apply.
fn outcome<'v>(verdict: &'v Value, rule: &str) -> Option<&'v str> {
    let mut findings = verdict["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["rule"] == rule).and_then(|finding| finding["outcome"].as_str())
}

/// Lag that a replay may have on a machine with other load.
const PATIENT: [&str; 2] = ["--set", "workload.trace.lag_max=3s"];

/// Checks that a replay was on time and that its rate equals the rate of the trace. If the
/// hypervisor paused the test machine for longer than the allowed lag, the verdict states that the
/// replay was late.
fn in_time(verdict: &Value, replay: &Value) {
    if OF_THE_HOST.iter().any(|rule| outcome(verdict, rule) == Some("fail")) {
        return;
    }
    if outcome(verdict, "trace-late").is_some() {
        assert!(
            ["FAIL", "INVALID", "INCONCLUSIVE"].contains(&verdict["verdict"].as_str().unwrap()),
            "{verdict:#}"
        );
        return;
    }
    assert_eq!(verdict["verdict"], "MEASURED", "{verdict:#}");
    let end = replay["begun"]["lag_end_ns"].as_f64().unwrap();
    let (took, span) = (&replay["begun"]["took_ns"], &replay["due"]["span_ns"]);
    assert_eq!(took.as_f64().unwrap(), span.as_f64().unwrap() + end);
    if end < span.as_f64().unwrap() * 0.02 {
        assert!((0.98..1.02).contains(&share(span, took)), "{replay:#}");
        let trace = &verdict["checks"][0];
        assert_eq!(
            (trace["name"].as_str(), trace["ok"].as_bool()),
            (Some("trace_rate"), Some(true))
        );
    }
}

#[test]
fn a_trace_is_replayed_on_a_file_with_its_rate_and_mix() {
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox, &iolog());
    let data = sandbox.data();
    let mut arguments = vec!["run", "--trace", trace.to_str().unwrap(), "--json"];
    arguments.extend(["--path", data.to_str().unwrap(), PATIENT[0], PATIENT[1]]);
    let ran = sandbox.run(&arguments);
    assert!(ran.stderr.contains("fio iolog version 3, 600 reads and writes"), "{}", ran.stderr);
    assert!(ran.stderr.contains(", 6 flushes"), "{}", ran.stderr);
    assert!(names(&data).is_empty(), "{:?}", names(&data));
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    let run = json(&sandbox.bundle().join("run.json"));
    let replay = &json(&sandbox.bundle().join("observed.json"))["replay"];
    // Every operation was submitted once, in the order of the trace, with its mix.
    assert_eq!((count(&run, true), count(&run, false)), (400, 200), "{run}");
    assert_eq!(replay["due"]["operations"], OPERATIONS);
    assert_eq!(replay["begun"]["threads"], 1);
    assert_eq!(replay["mapping"]["rule"], "keep");
    assert_eq!(replay["due"]["flushes"], 6);
    assert_eq!(flushes(&run), 6, "each was asked for once: {run}");
    assert_eq!(replay["trace"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(outcome(&verdict, "trace-other"), None, "{verdict:#}");
    assert_eq!(outcome(&verdict, "trace-left-out"), None, "{verdict:#}");
    let lag = &replay["begun"]["lag"];
    assert_eq!(lag["operations"], OPERATIONS + 6, "{replay:#}");
    assert!(lag["wait_ns_p99"].as_u64() <= lag["wait_ns_max"].as_u64());
    let log = std::fs::read_to_string(sandbox.bundle().join("latency.hlog")).unwrap();
    assert!(log.contains("Tag=generator.trace_lag,"));
    in_time(&verdict, replay);
    // The report shows the replay, and `judge` gives the same result from the bundle.
    let bundle = sandbox.bundle();
    let judged = sandbox.run(&["judge", bundle.to_str().unwrap()]);
    assert!(judged.stdout.contains("Trace replay"), "{}", judged.stdout);
    let page = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(page.contains("Trace replay") && page.contains("6 flushes"));
    let verified = sandbox.run(&["verify", bundle.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_model_replays_at_any_pace_and_one_that_is_too_slow_fails_by_name() {
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox, &iolog());
    let replay = |pace: &str, gap: &[&str]| {
        let mut arguments = vec![
            "run",
            "--trace",
            trace.to_str().unwrap(),
            "--model",
            "single-hdd",
            "--json",
            "-q",
        ];
        arguments.extend(["--pace", pace]);
        arguments.extend(gap);
        let ran = sandbox.run(&arguments);
        (
            ran.code,
            serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr)),
        )
    };
    // With at most four operations in flight, a disk does not sustain 2,000 operations per second.
    // The replay falls behind because of the disk.
    let (code, verdict) = replay("10x", &["--depth", "4"]);
    assert_eq!((code, verdict["verdict"].as_str()), (1, Some("FAIL")), "{verdict:#}");
    assert_eq!(outcome(&verdict, "trace-late"), Some("fail"));
    let says =
        verdict["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "trace-late").unwrap();
    assert!(says["says"].as_str().unwrap().contains("fell behind the trace"), "{says}");
    assert!(says["evidence"]["lag_ns_end"].as_u64().unwrap() > 100_000_000, "{says}");
    // The disk sustains 40 operations per second.
    let (code, verdict) = replay("0.2x", &[]);
    assert_eq!((code, verdict["verdict"].as_str()), (0, Some("MEASURED")), "{verdict:#}");
    assert_eq!(verdict["claims"]["trace-replay"], "believable");
    let rate = verdict["achieved_iops_per_s"].as_f64().unwrap();
    assert!((39.2..40.8).contains(&rate), "{rate}");
    // At full speed, no operation can be late, and the run ends with the trace.
    let (code, verdict) = replay("as-fast", &["--depth", "8"]);
    assert_eq!((code, verdict["verdict"].as_str()), (0, Some("MEASURED")), "{verdict:#}");
    assert_eq!(outcome(&verdict, "trace-late"), None);
}

#[test]
fn a_plan_of_a_trace_is_written_and_holds_to_its_file() {
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox, &iolog());
    let imported = sandbox.run(&["plan", "import", trace.to_str().unwrap()]).expect(0);
    assert!(imported.stdout.contains("[workload.trace]"), "{}", imported.stdout);
    let plan = sandbox.path("replay.toml");
    std::fs::write(&plan, &imported.stdout).unwrap();
    let plan = plan.to_str().unwrap();
    sandbox.run(&["plan", "check", plan, "--model", "single-hdd"]).expect(0);
    // If another file has replaced the trace, this file is not replayed.
    std::fs::write(&trace, iolog().replace("write", "read")).unwrap();
    let ran = sandbox.run(&["run", plan, "--model", "single-hdd"]).expect(2);
    assert!(
        ran.stderr.contains("is not the trace for which the plan was created"),
        "{}",
        ran.stderr
    );
    assert!(sandbox.bundles().is_empty());
}

#[test]
fn what_cannot_be_replayed_is_refused_before_anything_is_written() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    let garbage = trace(&sandbox, "hello\nworld\n");
    let run = |more: &[&str]| {
        let mut arguments =
            vec!["run", "--trace", garbage.to_str().unwrap(), "--path", data.to_str().unwrap()];
        arguments.extend(more);
        sandbox.run(&arguments).expect(2).stderr
    };
    assert!(run(&[]).contains("no known trace format"));
    run(&["--size", "4KiB"]);
    std::fs::write(&garbage, "fio version 2 iolog\n/f read 0 4096\n/f read 4096 4096\n").unwrap();
    assert!(run(&[]).contains("as-fast"), "a trace without times has no recorded pace");
    std::fs::write(&garbage, iolog()).unwrap();
    assert!(run(&["--pace", "fast"]).contains("is not a valid pace"));
    assert!(run(&["--map", "fold"]).contains("one of: fit"));
    assert!(sandbox.bundles().is_empty() && names(&data).is_empty());
}

/// A recording by fio is replayed with its rate and mix.
#[test]
fn what_fio_records_here_is_replayed() {
    let sandbox = Sandbox::new();
    let (file, log) = (sandbox.path("fio.data"), sandbox.path("fio.iolog"));
    let fio = Command::new("fio")
        .args([
            "--name=a",
            "--size=8M",
            "--rw=randrw",
            "--rwmixread=70",
            "--bs=4k",
            "--rate_iops=150",
        ])
        .args(["--runtime=2", "--time_based", "--ioengine=psync", "--fsync=50"])
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--write_iolog={}", log.display()))
        .current_dir(sandbox.root.path())
        .output();
    let Ok(fio) = fio else {
        println!("fio is not installed: the traces that are written here stand for it");
        return;
    };
    assert!(fio.status.success(), "{}", String::from_utf8_lossy(&fio.stderr));
    let text = std::fs::read_to_string(&log).unwrap();
    let of = |word: &str| text.lines().filter(|line| line.contains(word)).count() as u64;
    let data = sandbox.data();
    let place = ["--path", data.to_str().unwrap(), PATIENT[0], PATIENT[1], "-q"];
    sandbox.run(&[&["run", "--trace", log.to_str().unwrap()][..], &place[..]].concat());
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!((count(&run, true), count(&run, false)), (of(" read "), of(" write ")), "{run}");
    assert_eq!(flushes(&run), of(" sync ") + of(" datasync "), "{run}");
    let verdict = json(&sandbox.bundle().join("verdict.json"));
    assert_eq!(outcome(&verdict, "trace-other"), None, "{verdict:#}");
    in_time(&verdict, &json(&sandbox.bundle().join("observed.json"))["replay"]);
}
