//! A run always ends with the right exit code and with its evidence, and its data is removed or
//! reported. `benches/endings` covers the complete table of endings; this file tests only endings
//! that take seconds.

use std::fs::OpenOptions;
use std::process::{Child, Stdio};

use crate::endings_waits::wait_until_it_warms_up;
use crate::support::{self, CommandOutput, LoopFs, Sandbox, SmallPlan, json};

/// Writes a plan for a load on a few MiB that measures for the given time.
fn matrix(sandbox: &Sandbox, measure: &str, more: &str) -> String {
    let path = sandbox.path("plan.toml");
    let text = format!(
        "version = 1\nname = \"small\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nsizes = \"4KiB\"\nfile_size = \"8MiB\"\nreads = 50\nqueue_depth = \
         2\nclients = 2\n[phases]\nwarm_up = \"100ms\"\nmeasure = \
         \"{measure}\"\n[evidence]\nmin_measure = \"100ms\"\ninterval = \"100ms\"\n{more}\n",
        sandbox.data().display().to_string()
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn mailbox(sandbox: &Sandbox, measure: &str) -> String {
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = measure.into();
    plan.databases = 3;
    sandbox.plan(&plan)
}

fn ended(child: Child) -> CommandOutput {
    CommandOutput::from(child.wait_with_output().unwrap())
}

fn wait_for_state(sandbox: &Sandbox, manifest: &str, state: &str) {
    let manifest = sandbox.data().join("plimsoll-small").join(manifest);
    support::wait_until(state, || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains(state))
    });
}

#[test]
fn a_panic_anywhere_ends_the_run_with_70_and_leaves_a_bundle_and_no_data() {
    for (place, is_mailbox) in [
        ("step-thread", true),
        ("load-thread", true),
        ("step-conductor", true),
        ("stream-thread", false),
        ("stream-conductor", false),
        ("observer", true),
        ("metrics", false),
    ] {
        let sandbox = Sandbox::new();
        let metrics = "[[observe.metrics]]\nurl = \"http://127.0.0.1:9/metrics\"\ninterval = \
                       \"50ms\"\nnames = { data_reduction = \"x\" }";
        let plan =
            if is_mailbox { mailbox(&sandbox, "1h") } else { matrix(&sandbox, "1h", metrics) };
        let mut command = sandbox.command(&["run", &plan, "-q"]);
        let ran = command.env("PLIMSOLL_INJECT", format!("panic:{place}")).output().unwrap();
        let ran = CommandOutput::from(ran).expect(70);
        ran.says(&format!("injected at {place}"));
        ran.says("this is a defect in Plimsoll");
        let run = json(&sandbox.bundle().join("run.json"));
        assert_eq!(run["end"]["kind"], "defect", "{place}");
        sandbox.run(&["verify", &sandbox.bundle().display().to_string()]).expect(0);
        assert!(sandbox.left_in_data().is_empty(), "{place}: {:?}", sandbox.left_in_data());
        let runs = sandbox.run(&["runs", "--json"]).expect(0).json();
        assert_eq!(runs[0]["end"], "defect");
    }
}

#[test]
fn a_panic_of_the_judge_leaves_evidence_that_can_be_judged() {
    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "300ms", "");
    let mut command = sandbox.command(&["run", &plan, "-q"]);
    let ran = CommandOutput::from(command.env("PLIMSOLL_INJECT", "panic:judge").output().unwrap());
    ran.expect(70).says("is complete: judge it again");
    assert!(sandbox.left_in_data().is_empty());
    sandbox.run(&["judge", &sandbox.bundle().display().to_string()]);
    assert!(sandbox.bundle().join("verdict.json").exists());
}

#[test]
fn a_thread_that_hangs_is_left_behind_and_the_data_is_named() {
    for (place, is_mailbox) in [("load-thread", true), ("stream-thread", false)] {
        let sandbox = Sandbox::new();
        let plan = if is_mailbox { mailbox(&sandbox, "1h") } else { matrix(&sandbox, "1h", "") };
        let mut command = sandbox.command(&["run", &plan]);
        command.env("PLIMSOLL_INJECT", format!("hang:{place}"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until_it_warms_up(&child);
        std::thread::sleep(std::time::Duration::from_secs(1));
        support::signal(&child, "-TERM");
        let ran = ended(child);
        assert!([130, 5].contains(&ran.code), "{place}: {}\n{}", ran.code, ran.stderr);
        ran.says("plimsoll-small");
        sandbox.run(&["verify", &sandbox.bundle().display().to_string()]).expect(0);
    }
}

#[test]
fn stderr_that_takes_nothing_changes_nothing() {
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    // A pipe whose read end is closed immediately.
    let broken = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for stderr in [full(), broken()] {
        let sandbox = Sandbox::new();
        let plan = matrix(&sandbox, "2500ms", "");
        let mut command = sandbox.command(&["run", &plan, "--json"]);
        let output = command.stderr(stderr).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(!output.stdout.is_empty());
        assert!(sandbox.left_in_data().is_empty());
    }
}

#[test]
fn stdout_that_is_full_ends_the_command_with_5_after_the_evidence_is_safe() {
    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "300ms", "");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = sandbox.command(&["run", &plan]);
    let ran = CommandOutput::from(command.stdout(Stdio::from(full)).output().unwrap());
    ran.expect(5).says("cannot write to stdout");
    assert!(sandbox.left_in_data().is_empty());
    sandbox.run(&["verify", &sandbox.bundle().display().to_string()]).expect(0);
    let runs = sandbox.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(runs[0]["end"], "completed");
}

#[test]
fn a_hang_up_ends_a_run_but_not_one_under_nohup() {
    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "1h", "");
    // If SIGHUP were ignored here, child processes would ignore it too.
    let child = under(&["env", "--default-signal=HUP"], &sandbox, &["run", &plan, "-q"]);
    wait_for_state(&sandbox, "data.json", "in-use");
    support::signal(&child, "-HUP");
    ended(child).expect(130).says("INCONCLUSIVE");
    assert!(sandbox.left_in_data().is_empty());

    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "2s", "");
    let child = under(&["nohup"], &sandbox, &["run", &plan, "-q"]);
    wait_for_state(&sandbox, "data.json", "in-use");
    support::signal(&child, "-HUP");
    ended(child).expect(0);
}

/// Starts the program through another program that replaces itself with it (`exec`).
fn under(other: &[&str], sandbox: &Sandbox, arguments: &[&str]) -> Child {
    let plimsoll = sandbox.command(arguments);
    let mut command = std::process::Command::new(other[0]);
    command.args(&other[1..]).arg(plimsoll.get_program()).args(plimsoll.get_args());
    for (name, value) in plimsoll.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A file system that blocks all writes until this value is dropped.
struct Frozen(String);

impl Frozen {
    fn new(fs: &LoopFs) -> Self {
        let mount = fs.mount.display().to_string();
        support::tool("fsfreeze", &["-f", &mount]);
        Self(mount)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fsfreeze").args(["-u", &self.0]).output();
    }
}

#[test]
fn a_frozen_file_system_does_not_keep_the_evidence_from_being_written() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 256, "noatime");
    for is_mailbox in [true, false] {
        let mut plan = SmallPlan::on(&fs.mount);
        plan.measure = "1h".into();
        plan.mailbox_size = "2MiB".into();
        let path = if is_mailbox {
            sandbox.plan(&plan)
        } else {
            let path = matrix(&sandbox, "1h", "");
            let text = std::fs::read_to_string(&path).unwrap();
            let data = sandbox.data().display().to_string();
            std::fs::write(&path, text.replace(&data, &fs.mount.display().to_string())).unwrap();
            path
        };
        let bundles = sandbox.bundles().len();
        let child = sandbox.start(&["run", &path]);
        let manifest = if is_mailbox { "store.json" } else { "data.json" };
        let manifest = fs.mount.join("plimsoll-small").join(manifest);
        support::wait_until("the load", || {
            std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
        });
        std::thread::sleep(std::time::Duration::from_secs(1));
        let frozen = Frozen::new(&fs);
        std::thread::sleep(std::time::Duration::from_millis(500));
        support::signal(&child, "-TERM");
        // At this time, the file system still blocks all writes.
        support::wait_until("the seal", || {
            let all = sandbox.bundles();
            all.len() > bundles && all.iter().all(|bundle| bundle.join("SHA256SUMS").exists())
        });
        drop(frozen);
        let ran = ended(child).expect(130);
        ran.says("the data was left in");
        ran.says("plimsoll-small");
        std::fs::remove_dir_all(fs.mount.join("plimsoll-small")).unwrap();
    }
}

/// Runs a command under a shell resource limit.
fn limited(sandbox: &Sandbox, limit: &str, arguments: &[&str]) -> CommandOutput {
    let plimsoll = sandbox.command(arguments);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]);
    command.arg(plimsoll.get_program()).args(arguments);
    for (name, value) in plimsoll.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    CommandOutput::from(command.current_dir(sandbox.root.path()).output().unwrap())
}

#[test]
fn what_a_machine_or_its_limits_do_not_have_is_an_error_and_no_abort() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox = "copies = 1".into();
    let text = plan.text().replace("cache = \"8MiB\"", "cache = \"1TiB\"");
    let path = sandbox.path("huge.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    sandbox.run(&["run", &path]).expect(2).says("most of it for the plan's cache");

    let clients = matrix(&sandbox, "300ms", "").replace("plan.toml", "clients.toml");
    let text = std::fs::read_to_string(sandbox.path("plan.toml")).unwrap();
    std::fs::write(&clients, text.replace("clients = 2", "clients = 1000000")).unwrap();
    sandbox.run(&["run", &clients]).expect(2).says("GiB of memory are needed");
    let deep = text.replace("queue_depth = 2", "queue_depth = 65536");
    std::fs::write(&clients, deep.replace("sizes = \"4KiB\"", "sizes = \"1MiB\"")).unwrap();
    sandbox.run(&["run", &clients]).expect(2).says("buffers of operations in flight");

    let plan = matrix(&sandbox, "300ms", "");
    // dash counts this limit in units of 512 bytes.
    limited(&sandbox, "-f 2048", &["run", &plan]).expect(2).says("ulimit -f allows only 1 MiB");
    limited(&sandbox, "-f 0", &["run", &plan]).expect(2).says("ulimit -f");
    // A limit of 0 prevents all writes to files, but the command still ends with an error message.
    let ran = limited(&sandbox, "-f 0", &["calibrate"]);
    assert!([2, 5].contains(&ran.code), "{}\n{}", ran.code, ran.stderr);
    limited(&sandbox, "-v 300000", &["calibrate"]).expect(2).says("ulimit -v allows only");
    assert!(sandbox.left_in_data().is_empty());
    assert!(sandbox.bundles().is_empty());
}
