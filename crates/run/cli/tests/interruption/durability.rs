//! Data that was acknowledged as durable must exist after `kill -9`. A witness outside the store
//! checks this, and the kernel's flush counters confirm it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::support::{self, LoopFs, Sandbox, SmallPlan, json};

/// Number of kills in this test. The documented long run sets `PLIMSOLL_KILLS=200`.
const KILLS: u32 = 20;

/// A small generator (SplitMix64) for the times of the kills. Its seed is printed.
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[test]
fn nothing_acknowledged_is_missing_after_kill_9() {
    let kills = std::env::var("PLIMSOLL_KILLS").ok().map_or(KILLS, |n| n.parse().unwrap());
    let seed = std::env::var("PLIMSOLL_SEED").ok().map_or(1, |n| n.parse().unwrap());
    println!("PLIMSOLL_SEED={seed} PLIMSOLL_KILLS={kills}");
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox_size = "1MiB".into();
    plan.phases = "verify = false".into();
    plan.warm_up = "60s".into();
    plan.measure = "60s".into();
    let plan = sandbox.plan(&plan);
    let (mut commits_in_all, mut to_replay_in_all) = (0, 0);
    for round in 0..kills {
        let (commits, to_replay) = kill_once(&sandbox, &plan, seed, round);
        commits_in_all += commits;
        to_replay_in_all += to_replay;
    }
    assert!(commits_in_all > u64::from(kills) * 10, "{commits_in_all} commits were witnessed");
    assert!(to_replay_in_all > 0, "no kill left anything to replay: they came too late or early");
}

/// Starts a run, kills it and verifies its data. Returns the number of commits in the witness, and
/// the number of changes that must still be replayed.
fn kill_once(sandbox: &Sandbox, plan: &str, seed: u64, round: u32) -> (u64, u64) {
    let (witness, pipe) = (sandbox.path("witness"), sandbox.path("pipe"));
    let _ = std::fs::remove_file(&pipe);
    support::tool("mkfifo", &[pipe.to_str().unwrap()]);
    let mut child = sandbox
        .command(&["run", plan, "-q", "--keep", "--witness", pipe.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    // The pipe closes when the process is dead. By then, this process has received all
    // acknowledgements.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::fs::File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    });
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    let started = std::time::SystemTime::now();
    support::wait_until("the load", || {
        let fresh = std::fs::metadata(&manifest).and_then(|m| m.modified());
        fresh.is_ok_and(|at| at >= started)
            && std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("\"in-use\""))
    });
    let after_ms = 50 + mixed(seed ^ u64::from(round) << 32) % 500;
    std::thread::sleep(std::time::Duration::from_millis(after_ms));
    child.kill().unwrap();
    child.wait().unwrap();
    let commits = reader.join().unwrap();
    std::fs::write(&witness, &commits).unwrap();
    let store = sandbox.data().display().to_string();
    let arguments = ["verify", &store, "-q", "--json", "--witness", witness.to_str().unwrap()];
    let ran = sandbox.run(&arguments);
    // A witness without a commit proves nothing.
    let expected = if commits.is_empty() { 3 } else { 0 };
    assert_eq!(ran.code, expected, "round {round}, seed {seed}: {}{}", ran.stdout, ran.stderr);
    let found = ran.json();
    assert_eq!(found["closed_cleanly"], false);
    assert_eq!(found["commits_witnessed"].as_u64().unwrap(), commits.len() as u64 / 40);
    (commits.len() as u64 / 40, found["log_changes_to_replay"].as_u64().unwrap())
}

#[test]
fn a_commit_that_is_not_there_is_noticed() {
    let sandbox = Sandbox::new();
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let witness = sandbox.path("witness");
    let witness_text = witness.to_str().unwrap();
    sandbox.run(&["run", &plan, "-q", "--keep", "--witness", witness_text]);
    let store = sandbox.data().display().to_string();
    sandbox.run(&["verify", &store, "-q", "--witness", witness_text]).expect(0);
    // The witness is empty, contains only a part of a record, or belongs to another store.
    let mut foreign = std::fs::read(&witness).unwrap()[..40].to_vec();
    foreign[24] ^= 1;
    let other = sandbox.path("other");
    for bytes in [&[][..], &[7; 8], &foreign] {
        std::fs::write(&other, bytes).unwrap();
        let arguments = ["verify", &store, "-q", "--witness", other.to_str().unwrap()];
        let ran = sandbox.run(&arguments).expect(3);
        ran.says("the witness contains no commit of this mail store");
        let found = sandbox.run(&[&arguments[..], &["--json"]].concat()).expect(3).json();
        assert_eq!(
            (&found["intact"], &found["commits_witnessed"]),
            (&serde_json::Value::Null, &0.into())
        );
    }
    let found = sandbox.run(&["verify", &store, "-q", "--json"]).expect(0).json();
    assert_eq!(found["commits_witnessed"], serde_json::Value::Null);
    // A witness is only accepted for data, and a key only for evidence.
    let bundle = sandbox.bundle().display().to_string();
    sandbox.run(&["verify", &bundle, "--witness", witness_text]).expect(2).says("is evidence");
    sandbox.run(&["verify", &store, "--key", witness_text]).expect(2).says("is not evidence");
    // The witness contains a commit with a version that was never written.
    let mut record = std::fs::read(&witness).unwrap()[..40].to_vec();
    record[14] = 0x7f;
    let mut all = std::fs::read(&witness).unwrap();
    all.extend(record);
    std::fs::write(&witness, all).unwrap();
    sandbox.run(&["verify", &store, "-q", "--witness", witness_text]).expect(4).says("DAMAGED");
}

#[test]
fn two_runs_may_share_a_witness() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.phases = "verify = false".into();
    plan.measure = "1s".into();
    let plan = sandbox.plan(&plan);
    let witness = sandbox.path("witness");
    let witness_text = witness.to_str().unwrap();
    let store = sandbox.data().display().to_string();
    sandbox.run(&["run", &plan, "-q", "--keep", "--witness", witness_text]);
    let first = std::fs::metadata(&witness).unwrap().len() / 40;
    sandbox.run(&["run", &plan, "-q", "--keep", "--witness", witness_text]);
    let second = std::fs::metadata(&witness).unwrap().len() / 40 - first;
    let arguments = ["verify", &store, "-q", "--json", "--witness", witness_text];
    let found = sandbox.run(&arguments).expect(0).json();
    assert_eq!(found["commits_witnessed"].as_u64(), Some(second));
    assert!(
        found["unknown"][0]
            .as_str()
            .unwrap()
            .starts_with(&format!("{first} commits in the witness belong to other"))
    );
}

#[test]
fn the_device_flushes_and_carries_what_the_evidence_says() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 512, "noatime");
    let mut plan = SmallPlan::on(&fs.mount);
    plan.mailbox_size = "8MiB".into();
    plan.measure = "12s".into();
    // The kernel serves several waiting flushes with a single flush. With only one log and one
    // write at a time, two flushes never wait at the same time.
    plan.databases = 1;
    plan.mailbox = "log_writes_in_flight = 1".into();
    let plan = sandbox.plan(&plan);
    sandbox.run(&["run", &plan, "-q"]);
    let bundle = sandbox.bundle();
    let (run, observed) = (json(&bundle.join("run.json")), json(&bundle.join("observed.json")));
    assert_eq!(run["end"]["kind"], "completed", "{}", run["end"]);
    assert!(run["engine"]["paths"].as_array().unwrap().iter().all(|path| path["direct"] == true));
    assert!(
        run["engine"]["paths"]
            .as_array()
            .unwrap()
            .iter()
            .all(|path| path["direct_refused"] == false)
    );
    let measure =
        run["phases"].as_array().unwrap().iter().find(|p| p["kind"] == "measure").unwrap().clone();
    let name = fs.device.trim_start_matches("/dev/");
    let devices = observed["devices"].as_array().unwrap();
    let device = devices.iter().find(|device| device["name"] == name).unwrap();
    assert_eq!(device["top"], true);
    for (ours, kernels) in [("read_bytes", "read_bytes"), ("written_bytes", "written_bytes")] {
        let (ours, kernels) = (measure[ours].as_f64().unwrap(), device[kernels].as_f64().unwrap());
        assert!(ours > 10e6, "{measure}");
        let ratio = kernels / ours;
        // On a busy host, the counters are read some time after the end of the phase.
        assert!((0.98..=1.02).contains(&ratio), "{ratio}: {measure} {device}");
    }
    // A single durable log write made each group of commits durable.
    let log_writes: u64 = run["classes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|class| class["group"] == "log" && class["is_read"] == false)
        .map(|class| class["count"].as_u64().unwrap())
        .sum();
    assert!(log_writes > 100, "{run}");
    let flushes = device["flushes"].as_u64().unwrap();
    assert!(flushes >= log_writes, "{flushes} flushes for {log_writes} durable log writes");
}
