//! Runs by unprivileged users, and hosts that hide parts of /sys and /proc. The audit must list the
//! unknown facts and how to make them visible, and no rule may fail. Needs root, in order to drop
//! its privileges.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{self, CommandOutput, json};
use serde_json::Value;

/// A sandbox for any user, with a copy of the binary, because other users may not be able to read
/// the build directory. The sandbox is in `/var/tmp` for the same reason.
struct OpenSandbox {
    directory: tempfile::TempDir,
}

impl OpenSandbox {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let open = |path: &std::path::Path| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        };
        open(directory.path());
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        open(&data);
        let binary = directory.path().join("plimsoll");
        std::fs::copy(env!("CARGO_BIN_EXE_plimsoll"), &binary).unwrap();
        open(&binary);
        let plan = format!(
            "version = 1\nname = \"seen\"\n[requirement]\nclaims = [\"media-read\", \
             \"tail-latency\"]\n[target]\npath = {:?}\n[workload.matrix]\nfile_size = \
             \"16MiB\"\nqueue_depth = 4\n[phases]\nwarm_up = \"100ms\"\nmeasure = \
             \"1s\"\n[evidence]\nmin_measure = \"500ms\"\ninterval = \"50ms\"\n",
            data.display().to_string()
        );
        std::fs::write(directory.path().join("plan.toml"), plan).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the plan under the command `around`, such as `setpriv …`. Returns its output and the
    /// evidence.
    #[track_caller]
    fn run(&self, around: &[&str]) -> (Value, Value) {
        let mut command = Command::new(around[0]);
        command
            .args(&around[1..])
            .arg(self.path("plimsoll"))
            .args(["run", "plan.toml", "--json", "-q"])
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_DATA_HOME", self.path("share"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("PLIMSOLL_CALIBRATE", "never")
            .current_dir(self.directory.path());
        let ran = CommandOutput::from(command.output().unwrap());
        assert!([0, 3].contains(&ran.code), "{}\n{}", ran.code, ran.stderr);
        (ran.json(), json(&self.bundle().join("observed.json")))
    }

    /// Returns the only bundle of a run.
    fn bundle(&self) -> PathBuf {
        let runs = std::fs::read_dir(self.path("share/plimsoll/runs")).unwrap();
        runs.flatten().next().unwrap().path()
    }
}

fn finding<'a>(verdict: &'a Value, rule: &str) -> Option<&'a Value> {
    verdict["findings"].as_array()?.iter().find(|finding| finding["rule"] == rule)
}

#[track_caller]
fn is_unknown(verdict: &Value, rule: &str) -> String {
    let found = finding(verdict, rule).unwrap_or_else(|| panic!("{rule} is not in {verdict}"));
    assert_eq!(found["outcome"], "unknown", "{found}");
    found["do"].as_str().unwrap().to_owned()
}

/// Returns the missing observations, each with the way to make it available.
fn unknown(observed: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = observed["unknown"].as_array().unwrap().iter();
    list.map(|u| (text(&u["what"]), text(&u["would_show"]))).collect()
}

#[test]
fn a_user_without_privileges_is_told_which_one_shows_more() {
    let open = OpenSandbox::new();
    let (verdict, observed) =
        open.run(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    let neighbours = unknown(&observed).into_iter().find(|(what, _)| what.contains("processes"));
    assert_eq!(neighbours.unwrap().1, "root, or CAP_SYS_PTRACE");
    assert!(is_unknown(&verdict, "cache-state").contains("root"), "{verdict}");
}

/// The audit lists the facts that the root user of a user namespace cannot see. As in a rootless
/// container, this user is called root, but has no additional permissions.
#[test]
fn root_of_a_user_namespace_is_told_what_it_does_not_see() {
    let open = OpenSandbox::new();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let (verdict, observed) = open.run(&[&nobody[..], &["unshare", "-Ur"]].concat());
    let neighbours = unknown(&observed).into_iter().find(|(what, _)| what.contains("processes"));
    assert!(neighbours.unwrap().1.contains("root"), "{observed}");
    is_unknown(&verdict, "cache-state");
    assert_eq!(support::failed_rules(&verdict), Vec::<&str>::new(), "{verdict}");
    let environment = json(&open.bundle().join("environment.json"));
    assert_eq!(environment["privileged"], false, "{environment}");
}

/// Processes of the host that are invisible, as in a container, count as unknown and not as idle.
#[test]
fn processes_outside_of_a_container_are_unknown() {
    let open = OpenSandbox::new();
    let (_, observed) = open.run(&["unshare", "-p", "-f", "-m", "--mount-proc"]);
    assert_eq!(observed["neighbours"]["outside_unseen"], true, "{observed}");
    let outside = unknown(&observed).into_iter().find(|(what, _)| what.contains("container"));
    assert!(outside.unwrap().1.contains("PID namespace"), "{observed}");
}

/// Masked counters are unknown and fail no rule. Devices, pressure and CPU counters are missing
/// here, as in a container that masks them.
#[test]
fn counters_that_are_masked_are_unknown_and_fail_nothing() {
    let open = OpenSandbox::new();
    let mask = "mount -t tmpfs none /sys/dev/block && mount -t tmpfs none /sys/block && mount -t \
                tmpfs none /sys/class/block && mount --bind /dev/null /proc/diskstats && mount \
                --bind /dev/null /proc/stat && exec \"$@\"";
    let (verdict, observed) = open.run(&["unshare", "-m", "sh", "-c", mask, "sh"]);
    let storage = unknown(&observed).into_iter().find(|(what, _)| what.starts_with("what the"));
    let would_show = storage.expect("the storage is not seen").1;
    assert_eq!(observed["devices"].as_array().map(Vec::len), Some(0));
    assert_eq!(observed["cpu"]["steal_avg"], Value::Null);
    // The text depends on where the test runs: on a disk, or on the overlay of a container.
    assert!(would_show.contains("/sys") || would_show.contains("own counters"), "{would_show}");
    assert!(is_unknown(&verdict, "noisy-neighbour").contains(&would_show), "{verdict}");
    assert!(is_unknown(&verdict, "cpu-steal").contains("/proc"), "{verdict}");
    is_unknown(&verdict, "served-from-cache-below");
    assert_eq!(support::failed_rules(&verdict), Vec::<&str>::new(), "{verdict}");
}

/// A run still ends with a verdict if `/proc` and `/sys` are missing completely.
#[test]
fn without_proc_and_sys_a_run_still_ends_with_a_verdict() {
    let open = OpenSandbox::new();
    let mask = "mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec \"$@\"";
    let (verdict, observed) = open.run(&["unshare", "-m", "sh", "-c", mask, "sh"]);
    assert_eq!(observed["generator"]["busiest_thread_share"], Value::Null);
    assert!(finding(&verdict, "noisy-neighbour").is_some(), "{verdict}");
}
