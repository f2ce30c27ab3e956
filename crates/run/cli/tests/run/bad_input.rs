//! Mistakes of a user before a run, and failures of a target. Each causes one clear message that
//! contains the field or path and the remedy, and the correct exit code.

use std::path::Path;

use crate::support::{self, LoopFs, Sandbox, SmallPlan};

/// Runs a plan that must be rejected with this exit code and these messages. No files may remain in
/// the data directory.
#[track_caller]
fn refused(sandbox: &Sandbox, text: &str, code: i32, says: &[&str]) {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let ran = sandbox.run(&["run", path.to_str().unwrap()]).expect(code);
    for part in says {
        ran.says(part);
    }
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    assert!(sandbox.bundles().is_empty());
}

#[test]
fn an_unknown_field_names_its_line_and_the_nearest_known_one() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data()).text().replace("mailboxes =", "mailboxs =");
    refused(&sandbox, &text, 2, &["workload.mailbox", "mailboxs", "mailboxes", "plan.toml:10"]);
}

#[test]
fn a_wrong_unit_is_named() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data()).text().replace("\"4MiB\"", "\"4k\"");
    refused(&sandbox, &text, 2, &["mailbox_size", "4k"]);
}

#[test]
fn a_failure_is_told_once_in_colour_where_that_is_wanted_and_as_json_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data()).text().replace("mailboxes =", "mailboxs =");
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let run = ["run", path.to_str().unwrap()];
    let plain = sandbox.run(&run).expect(2).stderr;
    assert!(plain.starts_with("error: ") && !plain.contains("error: error:"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let painted = sandbox.run(&[&run[..], &["--color", "always"]].concat()).expect(2).stderr;
    assert!(painted.starts_with("\u{1b}[31merror:\u{1b}[0m "), "{painted}");
    let ran = sandbox.run(&[&run[..], &["--json"]].concat()).expect(2);
    let error = &ran.json()["error"];
    assert_eq!((&error["exit_code"], &error["kind"]), (&2.into(), &"usage".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("mailboxs"), "{error}");
    // Errors on the command line, and missing files.
    let ran = sandbox.run(&["run", "--json", "--no-such-option"]).expect(2);
    assert!(ran.json()["error"]["message"].as_str().unwrap().contains("--no-such-option"));
    let ran = sandbox.run(&["judge", "nowhere", "--json"]).expect(2);
    assert!(!ran.json()["error"]["hints"].as_array().unwrap().is_empty(), "{}", ran.stdout);
}

#[test]
fn zero_mailboxes_are_none() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data()).text().replace("mailboxes = 16", "mailboxes = 0");
    refused(&sandbox, &text, 2, &["mailboxes"]);
}

#[test]
fn less_than_a_page_is_no_database() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data())
        .text()
        .replace("mailboxes = 16", "mailboxes = 1")
        .replace("\"4MiB\"", "\"4KiB\"");
    refused(&sandbox, &text, 2, &["mailbox_size", "page"]);
}

#[test]
fn more_data_than_there_is_room_names_both() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(&sandbox.data()).text().replace("\"4MiB\"", "\"900GiB\"");
    refused(&sandbox, &text, 2, &["GiB free", "needs", "data"]);
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    let text = SmallPlan::on(Path::new("/no/such/directory")).text();
    refused(&sandbox, &text, 2, &["/no/such/directory", "mount the file system"]);
}

#[test]
fn a_plan_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["run", "nowhere.toml"]).expect(2).says("nowhere.toml");
    sandbox.run(&["judge", "nowhere"]).expect(2).says("nowhere");
    sandbox.run(&["no-such-command"]).expect(2);
}

#[test]
fn what_plimsoll_did_not_make_is_not_touched() {
    let sandbox = Sandbox::new();
    let theirs = sandbox.data().join("plimsoll-small");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("db00.edb"), "precious").unwrap();
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let ran = sandbox.run(&["run", &plan]).expect(2);
    ran.says("plimsoll-small");
    ran.says("did not create");
    assert_eq!(std::fs::read_to_string(theirs.join("db00.edb")).unwrap(), "precious");
    assert_eq!(sandbox.left_in_data(), ["plimsoll-small"]);
}

#[test]
fn a_target_in_use_by_another_run_is_refused() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = "60s".into();
    let path = sandbox.plan(&plan);
    let mut first = sandbox.start(&["run", &path, "-q"]);
    support::wait_until("the lock", || sandbox.data().join(".plimsoll.lock").exists());
    let ran = sandbox.run(&["run", &path]).expect(5);
    ran.says(".plimsoll.lock");
    ran.says("another run");
    support::signal(&first, "-INT");
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
}

#[test]
fn a_read_only_path_is_named() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 256, "ro");
    let path = sandbox.plan(&SmallPlan::on(&fs.mount));
    let ran = sandbox.run(&["run", &path]).expect(5);
    ran.says(fs.mount.to_str().unwrap());
    ran.says("mounted for writing");
}

/// A tmpfs that is unmounted when this value is dropped.
struct MemoryFs(std::path::PathBuf);

impl MemoryFs {
    fn new(sandbox: &Sandbox, kind: &str, options: &str) -> Self {
        let mount = sandbox.path(kind);
        std::fs::create_dir(&mount).unwrap();
        support::tool("mount", &["-t", kind, "-o", options, "none", mount.to_str().unwrap()]);
        Self(mount)
    }
}

impl Drop for MemoryFs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_file_system_in_memory_makes_it_invalid() {
    let sandbox = Sandbox::new();
    let fs = MemoryFs::new(&sandbox, "ramfs", "mode=755");
    let path = sandbox.plan(&SmallPlan::on(&fs.0));
    let ran = sandbox.run(&["run", &path, "--json", "-q"]).expect(3);
    let verdict = ran.json();
    assert_eq!(verdict["verdict"], "INVALID", "{}", ran.stdout);
    let findings = verdict["findings"].as_array().unwrap();
    let memory = findings.iter().find(|finding| finding["rule"] == "memory-target").unwrap();
    assert_eq!(memory["outcome"], "fail", "{memory}");
}

#[test]
fn where_direct_io_is_required_and_there_is_none_it_says_so() {
    let sandbox = Sandbox::new();
    let fs = MemoryFs::new(&sandbox, "ramfs", "mode=755");
    let mut plan = SmallPlan::on(&fs.0);
    plan.more = "[engine]\ndirect = \"required\"".into();
    let path = sandbox.plan(&plan);
    let ran = sandbox.run(&["run", &path, "-q"]).expect(5);
    ran.says("does not support direct I/O");
    ran.says("db00.edb");
    assert!(support::names(&fs.0).is_empty(), "{:?}", support::names(&fs.0));
}

#[test]
fn a_disk_that_fills_up_while_the_data_is_made_ends_the_run_and_keeps_its_evidence() {
    let sandbox = Sandbox::new();
    let fs = MemoryFs::new(&sandbox, "tmpfs", "size=560m");
    let mut plan = SmallPlan::on(&fs.0);
    plan.databases = 4;
    plan.mailbox_size = "24MiB".into();
    let path = sandbox.plan(&plan);
    let child = sandbox.start(&["run", &path, "-q"]);
    // The space is sufficient when it is checked, but another process uses it up later.
    support::wait_until("the first file", || fs.0.join("plimsoll-small/db00.edb").exists());
    let _ = std::fs::write(fs.0.join("somebody-else"), vec![1; 200 << 20]);
    let ran = support::CommandOutput::from(child.wait_with_output().unwrap()).expect(5);
    ran.says("INVALID");
    ran.says("No space left");
    let run = support::json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "no-space", "{run}");
    assert_eq!(support::names(&fs.0), ["somebody-else"]);
}

#[test]
fn a_depth_that_no_queue_supports_is_refused_before_the_data_exists() {
    let sandbox = Sandbox::new();
    let path = sandbox.data().display().to_string();
    let flags = ["--path", &path, "--size", "4KiB", "--file-size", "4MiB"];
    let refused = |command: &str, more: &[&str], says: &str| {
        sandbox.run(&[&[command], &flags[..], more].concat()).expect(2).says(says);
        assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
        assert!(sandbox.bundles().is_empty());
    };
    for more in [&["--depth", "60000", "--dry-run"][..], &["--depth", "60000", "--for", "1s"]] {
        refused("run", more, "60000 operations in flight in one thread");
    }
    let threads = ["--depth", "2000", "--set", "engine.io=threads", "--for", "1s"];
    refused("run", &threads, "with thread engine a thread supports 1024");
    for more in [&["--max", "100000000"][..], &["--min", "60000", "--max", "65000"]] {
        refused("tune", &[more, &["--for", "30s", "--dry-run"]].concat(), "supports at most");
    }
}

#[test]
fn a_file_for_the_verdict_that_cannot_be_written_is_refused_before_the_run() {
    let sandbox = Sandbox::new();
    let path = sandbox.data().display().to_string();
    let missing = sandbox.path("nowhere/v").display().to_string();
    let run = ["run", "--path", &path, "--size", "4KiB", "--file-size", "4MiB", "--for", "1s"];
    for file in [&missing, &path] {
        let ran = sandbox.run(&[&run[..], &["--verdict-to", file]].concat()).expect(2);
        ran.says(&format!("--verdict-to {file}"));
    }
    let (a, b) = (sandbox.path("a"), sandbox.path("b"));
    [&a, &b].into_iter().for_each(|side| std::fs::create_dir(side).unwrap());
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let compare = ["compare", "--path", a, "--path", b];
    let flags = ["--size", "4KiB", "--file-size", "4MiB", "--for", "1s", "--html", &missing];
    sandbox.run(&[&compare[..], &flags[..]].concat()).expect(2).says("--html");
    assert!(sandbox.left_in_data().is_empty() && sandbox.bundles().is_empty());
}

#[test]
fn a_directory_is_no_device() {
    let sandbox = Sandbox::new();
    let path = sandbox.data().display().to_string();
    for command in ["run", "sweep", "tune"] {
        let ran = sandbox.run(&[command, "--device", &path, "--size", "4KiB"]).expect(2);
        ran.says("--device");
        assert!(sandbox.left_in_data().is_empty() && sandbox.bundles().is_empty(), "{command}");
    }
}
