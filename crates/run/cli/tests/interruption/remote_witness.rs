//! A witness on another host. A script replaces `ssh`; its host `node4` is this machine.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plimsoll_lossy_disk::disk::Behaviour;
use plimsoll_lossy_disk::mount::LossyMount;

use crate::support::{CommandOutput, Sandbox, SmallPlan, json, names, wait_until};

/// Script that replaces `ssh`. It stores its process id, which is also the id of the server that it
/// starts.
const SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
[ \"$2\" = node4 ] || { echo \"ssh: no route to $2\" >&2; exit 255; }
echo $$ > \"$0.pid\"
shift 2
exec sh -c \"exec $*\"
";

struct Rig {
    // This field is first, because the disk must be unmounted before the sandbox is removed.
    _disk: LossyMount,
    sandbox: Sandbox,
}

impl Rig {
    fn new(behaviour: Behaviour) -> Self {
        let sandbox = Sandbox::new();
        let tools = sandbox.path("tools");
        std::fs::create_dir(&tools).unwrap();
        std::fs::write(tools.join("ssh"), SSH).unwrap();
        std::fs::set_permissions(tools.join("ssh"), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), tools.join("plimsoll")).unwrap();
        std::fs::create_dir(sandbox.path("node4")).unwrap();
        let disk = LossyMount::new(&sandbox.data(), behaviour, 1).unwrap();
        Self { _disk: disk, sandbox }
    }

    /// Returns the directory of the witness. Its name must be quoted in a shell.
    fn witness(&self) -> PathBuf {
        self.sandbox.path("node4/it's w")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        let path = format!("{}:/usr/bin:/bin", self.sandbox.path("tools").display());
        command.env("PATH", path);
        command
    }

    fn control(&self, word: &str) -> String {
        format!("echo {word} | tee {}", self.sandbox.data().join("control").display())
    }

    /// Returns the command of a short test whose witness is on this host.
    fn test(&self, host: &str, more: &[&str]) -> Command {
        let (path, witness) = (self.sandbox.data(), self.witness());
        let witness = format!("{host}:{}", witness.display());
        let own = ["durability", "--path", path.to_str().unwrap(), "--witness", &witness];
        let small = ["--size", "1MiB", "--threads", "2", "--load", "200ms", "--json", "-q"];
        self.command(&own.iter().chain(&small).chain(more).copied().collect::<Vec<_>>())
    }

    fn cuts(&self, host: &str) -> CommandOutput {
        let (cut, restore) = (self.control("cut"), self.control("restore"));
        let own = ["--cut", &cut, "--restore", &restore, "--kind", "simulated", "--cuts", "2"];
        CommandOutput::from(self.test(host, &own).output().unwrap())
    }
}

#[test]
fn honest_disks_pass_and_liars_are_caught_with_a_witness_on_another_host() {
    let rig = Rig::new(Behaviour::Honest);
    let found = rig.cuts("node4").expect(0).json();
    assert_eq!((&found["verdict"], &found["cuts"]), (&"PASS".into(), &2.into()), "{found}");
    assert_eq!(json(&rig.witness().join("durability.json")), found["evidence"]);
    let log = std::fs::read_to_string(rig.witness().join("commands.log")).unwrap();
    assert_eq!(log, "cut\nrestore\ncut\nrestore\n");
    rig.cuts("node4").expect(2).says("already contains the witness of another test");
    let rig = Rig::new(Behaviour::DropCache);
    assert_eq!(rig.cuts("node4").expect(4).json()["verdict"], "FAIL");
}

#[test]
fn a_host_that_does_not_answer_or_has_no_directory_ends_the_test_before_it_writes() {
    let rig = Rig::new(Behaviour::Honest);
    let refused = rig.cuts("node5").expect(5);
    refused.says("cannot reach the witness on node5");
    refused.says("no route to node5");
    refused.says("`ssh node5 plimsoll --version` must print");
    std::fs::remove_dir(rig.sandbox.path("node4")).unwrap();
    rig.cuts("node4").expect(2).says("specify a directory, not a file; its parent must exist");
    let tool = rig.sandbox.path("tools/plimsoll");
    std::fs::remove_file(&tool).unwrap();
    std::os::unix::fs::symlink("/bin/echo", &tool).unwrap();
    rig.cuts("node4").expect(5).says("\"durability --serve-\" instead of Plimsoll's greeting");
    assert_eq!(names(&rig.sandbox.data()), ["control"]);
    // The witness must not be on the target, whatever name its host has. `node4` is this machine.
    let path = rig.sandbox.data().display().to_string();
    let inside = format!("node4:{path}/w");
    std::fs::remove_file(&tool).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), &tool).unwrap();
    let own = ["durability", "--path", &path, "--witness", &inside, "--cut", "true"];
    let ran = CommandOutput::from(rig.command(&own).output().unwrap());
    ran.expect(2).says("on the file system under test");
    assert_eq!(names(&rig.sandbox.data()), ["control"]);
    let own =
        ["durability", "--nfs", "nfs://node4/export", "--witness", "root@node4:w", "--cut", "true"];
    let ran = CommandOutput::from(rig.command(&own).output().unwrap());
    ran.expect(2).says("is on the server under test");
}

#[test]
fn a_lost_witness_ends_the_test_and_a_lost_host_continues_with_it() {
    let rig = Rig::new(Behaviour::Honest);
    let acks = rig.witness().join("cut-00001.acks");
    let has_acks = || std::fs::metadata(&acks).is_ok_and(|m| m.len() > 3200);
    let by_hand = ["--cut-by-hand", "--cuts", "1"];
    let start = || {
        let mut command = rig.test("node4", &by_hand);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // The host that runs the load is lost.
    let mut child = start();
    wait_until("acknowledgements", has_acks);
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = [&by_hand[..], &["--resume"]].concat();
    let found =
        CommandOutput::from(rig.test("node4", &resumed).output().unwrap()).expect(130).json();
    let cut = &found["evidence"]["cuts"][0];
    assert_eq!(cut["resumed"], true, "{found}");
    assert!(cut["acknowledged"].as_u64() >= Some(100), "{found}");
    assert_eq!(names(&rig.sandbox.data()), ["control"]);
    // The host of the witness is lost, so nothing is proved.
    std::fs::remove_dir_all(rig.witness()).unwrap();
    let mut child = start();
    wait_until("acknowledgements", has_acks);
    let pid = std::fs::read_to_string(rig.sandbox.path("tools/ssh.pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    drop(child.stdin.take().map(|mut input| std::io::Write::write_all(&mut input, b"\n")));
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).expect(5);
    // The loss is noticed by a thread that writes, or by the check after Enter.
    ran.says("ing the witness: ");
    ran.says("the witness failed, not the target");
    ran.says("the same settings and --resume");
}

#[test]
fn the_phase_of_a_run_uses_a_witness_on_another_host() {
    let rig = Rig::new(Behaviour::Honest);
    let mut plan = SmallPlan::on(&rig.sandbox.data());
    plan.measure = "1s".into();
    let [cut, restore] = ["cut", "restore"].map(|word| rig.control(word));
    let section = |host: &str| {
        let witness = format!("{host}:{}", rig.witness().display());
        format!(
            "[durability]\nsize = \"1MiB\"\nthreads = 2\nload = \"100ms\"\ncuts = 1\ncut = [\"sh\", \
             \"-c\", {cut:?}]\nrestore = [\"sh\", \"-c\", {restore:?}]\nwitness = {witness:?}"
        )
    };
    plan.more = section("node5");
    let path = rig.sandbox.plan(&plan);
    let refused = CommandOutput::from(rig.command(&["run", &path]).output().unwrap());
    refused.expect(5).says("cannot reach the witness on node5");
    assert!(rig.sandbox.bundles().is_empty(), "it ends before the load");
    plan.more = section("node4");
    let path = rig.sandbox.plan(&plan);
    let ran = CommandOutput::from(rig.command(&["run", &path]).output().unwrap());
    let test = &json(&rig.sandbox.bundle().join("run.json"))["durability"];
    assert_eq!(test["cuts"].as_array().map(Vec::len), Some(1), "{test}\n{}", ran.stderr);
    assert!(names(&rig.witness()).is_empty(), "a run that lost nothing leaves no witness");
}
