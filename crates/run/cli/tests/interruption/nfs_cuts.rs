//! `plimsoll durability --nfs` on an NFS-Ganesha that is killed and restarted.

use crate::ganesha::Ganesha;
use crate::support::{CommandOutput, Sandbox};

/// Runs a short test on the server's export.
fn test(server: &Ganesha, sandbox: &Sandbox, witness: &str, more: &[&str]) -> CommandOutput {
    let (url, witness) = (server.url_text(1), sandbox.path(witness).display().to_string());
    let own = ["durability", "--nfs", &url, "--witness", &witness, "--size", "1MiB"];
    let small = ["--threads", "2", "--load", "200ms", "--json", "-q"];
    sandbox.run(&[&own[..], &small, more].concat())
}

#[test]
fn a_killed_server_preserves_each_acknowledged_write() {
    let (server, sandbox) = (Ganesha::start(1), Sandbox::new());
    let (kill, again) = (server.command("kill"), server.command("again"));
    let cuts = ["--kind", "process", "--cut", &kill, "--restore", &again];
    for (sync, number) in [("fdatasync", "2"), ("dsync", "1")] {
        let more = [&cuts[..], &["--sync", sync, "--cuts", number]].concat();
        let found = test(&server, &sandbox, sync, &more).expect(0).json();
        assert_eq!(found["verdict"], "PASS", "{found}");
        assert_eq!(found["cuts"].to_string(), number, "{found}");
        assert!(found["acknowledged"].as_u64() > Some(10), "{found}");
    }
    let left = std::fs::read_dir(server.path(1)).unwrap().count();
    assert_eq!(left, 0, "the test removes its data");
}

#[test]
fn a_server_that_stays_up_proves_nothing_and_a_lost_file_is_a_loss() {
    let (server, sandbox) = (Ganesha::start(1), Sandbox::new());
    let found = test(&server, &sandbox, "up", &["--cut", "true", "--cuts", "2"]).expect(3).json();
    assert!(found["reasons"].to_string().contains("still acknowledged"), "{found}");
    let (kill, again) = (server.command("kill"), server.command("again"));
    let export = server.path(1);
    let lose = format!("rm -r {}/plimsoll-durability-*/s000 && {again}", export.display());
    let more = ["--cut", &kill, "--restore", &lose, "--cuts", "1"];
    let found = test(&server, &sandbox, "lost", &more).expect(4).json();
    assert_eq!(found["evidence"]["cuts"][0]["check"]["file_lost"], true, "{found}");
    // There is no direct I/O on NFS, and the address must be a valid one.
    let more = ["--cut", "true", "--sync", "direct-only"];
    test(&server, &sandbox, "direct", &more).expect(2).says("do not support direct I/O");
    let witness = sandbox.path("w").display().to_string();
    let bad = ["durability", "--nfs", "server:/x", "--witness", &witness, "--cut", "true"];
    sandbox.run(&bad).expect(2).says("nfs://");
}
