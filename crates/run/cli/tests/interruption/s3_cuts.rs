//! `plimsoll durability --s3` on an S3 server that is killed and restarted.

use crate::s3::{KEY, SECRET, Server};
use crate::support::{CommandOutput, Sandbox};

/// Runs a short test on the server's bucket.
fn test(server: &Server, sandbox: &Sandbox, witness: &str, more: &[&str]) -> CommandOutput {
    let (endpoint, witness) = (server.endpoint(), sandbox.path(witness).display().to_string());
    let own = ["durability", "--s3", "s3://load/unit", "--endpoint", &endpoint];
    let small = [
        "--witness",
        &witness,
        "--size",
        "1MiB",
        "--threads",
        "2",
        "--load",
        "200ms",
        "--json",
        "-q",
    ];
    let mut command = sandbox.command(&[&own[..], &small, more].concat());
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    CommandOutput::from(command.output().unwrap())
}

/// Returns the names of all objects under the prefix of a test.
fn left(server: &Server) -> Vec<String> {
    let output = std::process::Command::new("find")
        .arg(server.directory.path().join("load"))
        .args(["-type", "f", "-name", "block-*"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_store_preserves_each_acknowledged_object() {
    let (server, sandbox) = (Server::start(), Sandbox::new());
    let (kill, again) = (server.command("kill"), server.command("again"));
    let more = ["--kind", "process", "--cut", &kill, "--restore", &again, "--cuts", "2"];
    let found = test(&server, &sandbox, "w", &more).expect(0).json();
    assert_eq!(found["verdict"], "PASS", "{found}");
    assert_eq!(found["cuts"], 2, "{found}");
    assert!(found["acknowledged"].as_u64() > Some(10), "{found}");
    assert_eq!(left(&server), Vec::<String>::new(), "the test removes its objects");
}

#[test]
fn a_store_that_loses_or_restores_old_objects_fails() {
    let (server, sandbox) = (Server::start(), Sandbox::new());
    let (kill, again) = (server.command("kill"), server.command("again"));
    let bucket = server.directory.path().join("load").display().to_string();
    let old = sandbox.path("old").display().to_string();
    // The first cut saves all objects. The second cut restores them, so newer writes are lost.
    let roll_back = format!(
        "if [ -d {old} ]; then cp -a {old}/. {bucket}/; else cp -a {bucket} {old}; fi && {again}"
    );
    // The cut removes one acknowledged object and shortens another one. On a busy machine, not all
    // blocks are written before the cut, so each is the oldest object of one half of the 256 blocks.
    let oldest = |digit: &str| {
        let all = format!("find {bucket} -name 'block-000000{digit}*' -type f -printf '%T@ %p\\n'");
        format!("$({all} | sort -n | head -1 | cut -d' ' -f2)")
    };
    let damage = format!("rm {}; truncate -s 1000 {}; {again}", oldest("[0-7]"), oldest("[89a-f]"));
    let cases = [(roll_back, "2", &["lost"][..]), (damage, "1", &["unwritten", "corrupt"])];
    for (restore, number, kinds) in cases {
        let more = ["--cut", &kill, "--restore", &restore, "--cuts", number];
        let found = test(&server, &sandbox, kinds[0], &more).expect(4).json();
        // A cut without a write before it does not count, so more cuts follow.
        let cuts = found["evidence"]["cuts"].as_array().unwrap();
        let has =
            |kind: &&str| cuts.iter().any(|cut| cut["check"]["blocks"][*kind].as_u64() > Some(0));
        assert!(kinds.iter().all(has), "{kinds:?}: {cuts:?}");
    }
}

#[test]
fn a_store_that_stays_up_proves_nothing_and_bad_options_are_rejected() {
    let (server, sandbox) = (Server::start(), Sandbox::new());
    let found = test(&server, &sandbox, "up", &["--cut", "true", "--cuts", "2"]).expect(3).json();
    assert!(found["reasons"].to_string().contains("still acknowledged"), "{found}");
    let flush = ["--cut", "true", "--sync", "fsync"];
    test(&server, &sandbox, "flush", &flush).expect(2).says("S3 has no flush");
    let witness = sandbox.path("w").display().to_string();
    let bad = ["durability", "--s3", "s3://load", "--witness", &witness, "--cut", "true"];
    sandbox.run(&bad).expect(2).says("--endpoint");
}
