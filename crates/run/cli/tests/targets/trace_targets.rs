//! `plimsoll run --trace` on targets other than files: a block device, an NFS export, a model; and
//! rejected targets.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::ganesha::Ganesha;
use crate::relay;
use crate::support::{LoopDevice, OF_THE_HOST, Sandbox, json};
use serde_json::Value;

const READS: u64 = 200;
const WRITES: u64 = 100;
/// Number of flushes in the trace that this test writes.
const FLUSHES: u64 = 6;

/// Writes a trace of operations at a fixed interval: two reads and then a write of 4 KiB each, over
/// 16 MiB. Every fifty operations are followed by a flush.
fn trace(sandbox: &Sandbox) -> PathBuf {
    let mut text = "fio version 3 iolog\n0 /f add\n0 /f open\n".to_owned();
    for i in 0..READS + WRITES {
        let (at, offset) = (i * 5_000, i * 7_919 % 4_096 * 4_096);
        let word = if i % 3 == 2 { "write" } else { "read" };
        writeln!(text, "{at} /f {word} {offset} 4096").unwrap();
        if i % 50 == 49 {
            let flush = if i % 100 == 99 { "sync" } else { "datasync" };
            writeln!(text, "{at} /f {flush} 0 0").unwrap();
        }
    }
    let path = sandbox.path("app.iolog");
    std::fs::write(&path, text).unwrap();
    path
}

/// Allowed lag on a machine with other load.
const PATIENT: [&str; 4] = ["--json", "-q", "--set", "workload.trace.lag_max=3s"];

fn outcome<'v>(verdict: &'v Value, rule: &str) -> Option<&'v str> {
    let mut findings = verdict["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["rule"] == rule).and_then(|finding| finding["outcome"].as_str())
}

fn count(run: &Value, group: &str, is_read: bool) -> u64 {
    let classes = run["classes"].as_array().unwrap().iter();
    let alike = classes.filter(|c| c["group"] == group && c["is_read"] == is_read);
    alike.map(|c| c["count"].as_u64().unwrap()).sum()
}

/// Checks that reads, writes and flushes equal those of the trace, and that the replay was on time
/// if the test machine allowed this.
fn is_replayed(sandbox: &Sandbox, verdict: &Value) {
    let run = json(&sandbox.bundle().join("run.json"));
    let moved = (count(&run, "transactional", true), count(&run, "transactional", false));
    assert_eq!((moved, count(&run, "sync", false)), ((READS, WRITES), FLUSHES), "{run}");
    let replay = &json(&sandbox.bundle().join("observed.json"))["replay"];
    assert_eq!(replay["begun"]["operations"], READS + WRITES + FLUSHES, "{replay:#}");
    assert_eq!(replay["due"]["flushes"], FLUSHES);
    for rule in ["trace-other", "trace-left-out"] {
        assert_eq!(outcome(verdict, rule), None, "{verdict:#}");
    }
    let disturbed = OF_THE_HOST.iter().any(|rule| outcome(verdict, rule) == Some("fail"));
    if !disturbed && outcome(verdict, "trace-late").is_none() {
        assert_eq!(verdict["claims"]["trace-replay"], "believable", "{verdict:#}");
    }
}

/// Returns the number of flushes that a device completed.
fn flushes(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    text.split_ascii_whitespace().nth(15).unwrap().parse().unwrap()
}

#[test]
fn a_trace_is_replayed_on_a_device_which_sees_its_flushes_and_is_too_slow_where_no_flush_may_last()
{
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox);
    let device = LoopDevice::new(sandbox.root.path(), 32);
    let replay = |more: &[&str]| {
        let arguments = ["run", "--trace", trace.to_str().unwrap(), "--device", &device.name];
        let destroy = ["--destroy", &device.name];
        sandbox.run(&[&arguments[..], &destroy[..], more].concat())
    };
    let before = flushes(&device.name);
    let verdict = replay(&PATIENT).json();
    assert!(flushes(&device.name) - before >= FLUSHES);
    is_replayed(&sandbox, &verdict);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["paths"][0]["path"], device.name.as_str());
    // The replay issues 2,400 operations per second, one at a time. Each flush delays the following
    // operations, which is not the fault of the replay. A fast disk takes less than 3 ms for a
    // flush, and no disk takes less than 0.02 ms.
    let short =
        ["--json", "-q", "--pace", "12x", "--depth", "1", "--set", "workload.trace.lag_max=20us"];
    let ran = replay(&short);
    let verdict = ran.json();
    assert_eq!(outcome(&verdict, "trace-late"), Some("fail"), "{verdict:#}");
    assert!(["FAIL", "INVALID"].contains(&verdict["verdict"].as_str().unwrap()), "{verdict:#}");
}

#[test]
fn a_trace_is_replayed_on_an_nfs_export_with_commits_for_its_flushes() {
    let server = Ganesha::start(1);
    let (address, counts) = relay::start(server.address());
    let url = format!(
        "nfs://127.0.0.1/export1?nfsport={}&mountport={}",
        address.port(),
        server.mount_port
    );
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox);
    let arguments = ["run", "--trace", trace.to_str().unwrap(), "--nfs", &url];
    let verdict = sandbox.run(&[&arguments[..], &PATIENT[..]].concat()).json();
    is_replayed(&sandbox, &verdict);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "nfs");
    // In the NFS protocol, WRITE is procedure 7 and COMMIT is procedure 21. The creation of the
    // files also sends some of these requests.
    let counts = counts.lock().unwrap();
    assert!(counts.distinct(21) >= FLUSHES && counts.distinct(7) >= WRITES);
}

#[test]
fn a_model_flushes_too_and_a_store_of_objects_replays_no_trace() {
    let sandbox = Sandbox::new();
    let trace = trace(&sandbox);
    let arguments = ["run", "--trace", trace.to_str().unwrap(), "--model", "single-hdd"];
    let ran = sandbox.run(&[&arguments[..], &["--json", "-q", "--pace", "0.1x"]].concat());
    is_replayed(&sandbox, &ran.json());
    // A plan that replays the trace on an object store is rejected before any request is sent.
    let imported = sandbox.run(&["plan", "import", trace.to_str().unwrap()]).expect(0).stdout;
    let plan = sandbox.path("replay.toml");
    let s3 = "s3 = \"s3://bucket/x\"\nendpoint = \"http://127.0.0.1:9\" # ";
    std::fs::write(&plan, imported.replace("path = ", s3)).unwrap();
    let refused = sandbox.run(&["run", plan.to_str().unwrap()]).expect(2);
    assert!(refused.stderr.contains("trace"), "{}", refused.stderr);
    assert!(sandbox.bundles().len() == 1);
}
