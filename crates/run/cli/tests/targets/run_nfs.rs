//! `plimsoll run` on NFS exports of a real NFS-Ganesha server.

use std::time::Duration;

use crate::ganesha::Ganesha;
use crate::relay;
use crate::support::{self, Sandbox, json};
use serde_json::Value;

/// Writes a plan that measures on `exports` for the time `measure`.
fn plan(sandbox: &Sandbox, exports: &[String], workload: &str, measure: &str) -> String {
    let text = format!(
        "version = 1\nname = \"nfs\"\nseed = 7\n[target]\nnfs = {exports:?}\nconnections = \
         2\n[workload.matrix]\nfiles = 2\nfile_size = \"4MiB\"\nverify_reads = \
         true\n{workload}\n[phases]\nwarm_up = \"300ms\"\nmeasure = \"{measure}\"\nverify = \
         true\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn counter(run: &Value, name: &str) -> u64 {
    run["counters"][format!("nfs.{name}")].as_u64().unwrap_or(0)
}

const ALL_KINDS: &str = "sizes = \"4KiB\"\nreads = 60\nmetadata = 20\nqueue_depth = 4\nclients = \
                         3\nsync = \"fsync\"\nsync_every = 16";

/// Durations of the measurement, which the test tries in turn. Operations of every kind occur
/// within a second, unless another process uses the disk.
const MEASURES: [&str; 3] = ["1s", "5s", "20s"];

#[test]
fn calls_are_those_that_a_relay_counts() {
    let all = MEASURES.iter().any(|measure| calls_are_counted(measure));
    assert!(all, "there was every kind of call within {MEASURES:?}");
}

/// Compares the calls that a run recorded with the calls that a relay counted. Returns true if
/// every kind of call occurred.
fn calls_are_counted(measure: &str) -> bool {
    let server = Ganesha::start(2);
    let (address, counts) = relay::start(server.address());
    let url = |n: u32| {
        let (nfs, mount) = (address.port(), server.mount_port);
        format!("nfs://127.0.0.1/export{n}?nfsport={nfs}&mountport={mount}")
    };
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, &[url(1), url(2)], ALL_KINDS, measure);
    // The data is kept, so no call is made after the counted calls.
    let ran = sandbox.run(&["run", &path, "--json", "-q", "--keep"]).measured_on_this_host();
    let verdict = ran.json();
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "nfs");
    assert_eq!(run["checks"]["errors"], 0);
    // All blocks of the 16 MiB are checked, except blocks that two clients wrote at the same time.
    // A block has 4 KiB.
    assert!(run["checks"]["pages_checked"].as_u64().unwrap() > 4000, "{run}");
    let counts = counts.lock().unwrap();
    let numbers = [
        ("read", 6),
        ("write", 7),
        ("commit", 21),
        ("getattr", 1),
        ("setattr", 2),
        ("lookup", 3),
        ("access", 4),
        ("create", 8),
        ("mkdir", 9),
        ("remove", 12),
        ("rename", 14),
        ("readdir", 16),
        ("fsstat", 18),
    ];
    for (name, procedure) in numbers {
        let (ours, seen) = (counter(&run, &format!("calls.{name}")), counts.distinct(procedure));
        assert_eq!(ours, seen, "{name}");
    }
    let total: u64 = counts.calls.values().map(|xids| xids.len() as u64).sum();
    let named: u64 = numbers.iter().map(|(_, procedure)| counts.distinct(*procedure)).sum();
    assert_eq!(total, named, "no other call was made");
    let finding = |verdict: &Value| {
        let findings = verdict["findings"].as_array().cloned().unwrap_or_default();
        findings.into_iter().find(|finding| finding["rule"] == "server-outage")
    };
    assert!(finding(&verdict).is_none_or(|found| found["outcome"] == "pass"), "{verdict}");
    numbers.iter().all(|(_, procedure)| counts.distinct(*procedure) > 0)
}

#[test]
fn several_streams_at_once_have_files_of_their_own() {
    let all = MEASURES.iter().any(|measure| streams_have_their_own(measure));
    assert!(all, "every stream did what it has to within {MEASURES:?}");
}

/// Returns true if every stream completed every kind of its operations.
fn streams_have_their_own(measure: &str) -> bool {
    let server = Ganesha::start(2);
    let sandbox = Sandbox::new();
    let exports = [server.url_text(1), server.url_text(2)];
    let text = format!(
        "version = 1\nname = \"nfs\"\nseed = 7\n[target]\nnfs = \
         {exports:?}\n[[workload.matrix]]\nname = \"db\"\nsizes = \"8KiB\"\nreads = 50\nfiles = \
         2\nfile_size = \"1MiB\"\nverify_reads = true\n[[workload.matrix]]\nname = \"log\"\nsizes = \
         \"64KiB\"\nreads = 0\npatterns = \"sequential\"\nsync = \"file-sync\"\nmetadata = \
         30\nfile_size = \"2MiB\"\n[phases]\nwarm_up = \"100ms\"\nmeasure = {measure:?}\nverify = \
         true\n[evidence]\nmin_measure = \"1s\"\ninterval = \"50ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let ran = sandbox.run(&["run", path.to_str().unwrap(), "--json", "-q", "--keep"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    let classes = run["classes"].as_array().unwrap();
    let kinds = ["db.read", "db.write", "log.write", "log.lookup", "log.create", "log.getattr"];
    let found = kinds.map(|name| classes.iter().find(|class| class["name"] == name));
    assert!(found.iter().flatten().all(|class| class["errors"] == 0), "{run}");
    let done = |class: &&Value| class["count"].as_u64().unwrap() > 0;
    let is_all = found.iter().all(|class| class.as_ref().is_some_and(done));
    // Each stream has two shares, which are assigned to the two exports in turn: 4 MiB in files of
    // 1 MiB, and 4 MiB in files of 2 MiB. They are checked in blocks of 4 KiB, except blocks that
    // were written twice at the same time.
    assert_eq!(run["checks"]["errors"], 0);
    assert!((2000..=2048).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    for (export, share, files, size) in
        [(1, "s000", 2, 1u64), (2, "s001", 2, 1), (1, "s002", 1, 2), (2, "s003", 1, 2)]
    {
        let share = server.path(export).join("plimsoll-nfs").join(share);
        for file in 0..files {
            let file = share.join(format!("f{file:010}"));
            assert_eq!(std::fs::metadata(&file).unwrap().len(), size << 20, "{}", file.display());
        }
        let small = std::fs::read_dir(share.join("small")).unwrap().count();
        assert!(small == 0 || files == 1, "only the second stream has operations on names");
        assert!(small > 0 || files != 1 || !is_all, "the second stream has operations on names");
    }
    is_all
}

#[test]
fn a_server_killed_in_mid_run_loses_nothing_and_is_a_finding() {
    let server = Ganesha::start(1);
    let sandbox = Sandbox::new();
    let workload = "sizes = \"4KiB\"\nreads = 40\nqueue_depth = 8";
    let path = plan(&sandbox, &[server.url_text(1)], workload, "5s");
    let child = sandbox.start(&["run", &path, "--json", "-q"]);
    let last = server.path(1).join("plimsoll-nfs/s000/f0000000001");
    while std::fs::metadata(&last).map_or(0, |file| file.len()) < 4 << 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // This time is after the warm-up, and well before the end.
    std::thread::sleep(Duration::from_millis(1500));
    server.kill();
    std::thread::sleep(Duration::from_millis(1000));
    server.again();
    let ran =
        support::CommandOutput::from(child.wait_with_output().unwrap()).measured_on_this_host();
    let verdict = ran.json();
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "completed", "{run}");
    assert_eq!(run["checks"]["errors"], 0);
    // All blocks of the 8 MiB are checked, except blocks that were written twice at the same time.
    // A block has 4 KiB.
    assert!(run["checks"]["pages_checked"].as_u64().unwrap() > 2000, "{run}");
    assert!(counter(&run, "restarts") > 0 && counter(&run, "doubt_commits") > 0, "{run}");
    // After the restart, the client sent acknowledged but unstable writes again. It sent only the
    // latest write of each block.
    let (writes, bytes) = (counter(&run, "writes_resent"), counter(&run, "resent_bytes"));
    assert!(writes > 0 && (4096..=8 << 20).contains(&bytes), "{run}");
    let outage_ns = counter(&run, "outage_ns_max");
    assert!(outage_ns >= 1_000_000_000, "{outage_ns}");
    let classes = run["classes"].as_array().unwrap();
    let longest = classes.iter().filter_map(|class| class["latency_ns_max"].as_u64()).max();
    assert!(longest.unwrap() >= 1_000_000_000, "the outage is in the latency: {longest:?}");
    let findings = verdict["findings"].as_array().unwrap();
    let outage = findings.iter().find(|finding| finding["rule"] == "server-outage").unwrap();
    assert_eq!(outage["outcome"], "warn", "{outage}");
    assert!(outage["evidence"]["outage_ns_max"].as_u64().unwrap() >= 1_000_000_000);
}

#[test]
fn exports_are_conditioned_and_measured_until_steady() {
    let server = Ganesha::start(1);
    let sandbox = Sandbox::new();
    let path =
        plan(&sandbox, &[server.url_text(1)], "sizes = \"4KiB\"\nreads = 50", "until-steady");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = "verify = true\ncondition = \"fill-twice\"\nmeasure_max = \"2s\"\nround = \"200ms\"";
    std::fs::write(
        &path,
        text.replace("verify = true\n[evidence]", &format!("{more}\n[evidence]")),
    )
    .unwrap();
    sandbox.run(&["run", &path, "-q"]);
    let run = json(&sandbox.bundle().join("run.json"));
    let ended = (&run["end"]["kind"], &run["checks"]["errors"]);
    assert_eq!(ended, (&"completed".into(), &0.into()), "{run}");
    let phases = run["phases"].as_array().unwrap();
    let written = |kind: &str| {
        let of = phases.iter().filter(|phase| phase["kind"] == kind);
        of.map(|phase| phase["written_bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(written("condition"), 2 * 2 * (4 << 20), "twice all data");
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
    assert!(measure["note"].as_str().unwrap().contains("steady"), "{measure}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let sandbox = Sandbox::new();
    let nowhere = ["nfs://127.0.0.1/export?nfsport=1&mountport=1".to_owned()];
    let path = plan(&sandbox, &nowhere, ALL_KINDS, "1s");
    sandbox.run(&["run", &path, "-q"]).expect(5).says("the mount service at 127.0.0.1:1");
    sandbox.run(&["verify", &nowhere[0]]).expect(2).says("only by the run that writes it");
}
