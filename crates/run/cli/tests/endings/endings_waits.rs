//! A run ends in bounded time even if something that it waits for never responds. Cases: a dead or
//! silent server, a stopped process, a closed output pipe, an invalid lock file. The servers are
//! `plimsoll model serve`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{self, CommandOutput, LoopFs, Sandbox, found, json, signal, wait_until};
use serde_json::Value;

const KEPT_SHORT: &str = "[evidence]\nmin_measure = \"100ms\"\ninterval = \"100ms\"\n";

/// Writes a plan for a load on a few MiB of this target.
fn plan(sandbox: &Sandbox, target: &str, workload: &str, measure: &str) -> String {
    let path = sandbox.path("plan.toml");
    let text = format!(
        "version = 1\nname = \"small\"\ndemonstration = \
         true\n[target]\n{target}\n[workload.matrix]\nsizes = \"4KiB\"\nfile_size = \"8MiB\"\nreads \
         = 50\n{workload}\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"{measure}\"\n{KEPT_SHORT}"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn on_files(sandbox: &Sandbox, measure: &str) -> String {
    let target = format!("path = {:?}", sandbox.data().display().to_string());
    plan(sandbox, &target, "queue_depth = 2\nclients = 2", measure)
}

fn wait_for_load(directory: &Path) {
    let manifest = directory.join("plimsoll-small/data.json");
    wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
}

/// Waits until the run is in its measured phase; its warm-up takes 0.1 s.
fn wait_until_it_measures(child: &Child) {
    wait_until_it_warms_up(child);
    std::thread::sleep(Duration::from_millis(150));
}

/// Waits until the watcher thread reports that the run is in its warm-up.
pub fn wait_until_it_warms_up(child: &Child) {
    let tasks = PathBuf::from(format!("/proc/{}/task", child.id()));
    wait_until("the warm-up", || {
        let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut names =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.any(|name| name.trim() == "pulse")
    });
}

fn ended(child: Child) -> CommandOutput {
    CommandOutput::from(child.wait_with_output().unwrap())
}

/// A modelled system as an NFS server, which is killed when this value is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(sandbox: &Sandbox) -> Self {
        let arguments = ["model", "serve", "zfs-flash", "--nfs", "127.0.0.1:0", "--json"];
        let mut child = sandbox.start(&arguments);
        let mut line = String::new();
        let mut answer = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        while serde_json::from_str::<Value>(&answer).is_err() {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "{answer}");
            answer.push_str(&line);
        }
        let answer: Value = serde_json::from_str(&answer).unwrap();
        Self { child, url: answer["nfs"].as_str().unwrap().to_owned() }
    }

    fn signal(&self, name: &str) {
        signal(&self.child, name);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a run on a server, and waits until the run is in its measured phase.
fn under_load(sandbox: &Sandbox, server: &Server, more: &str) -> Child {
    let target = format!("nfs = [{:?}]\n{more}", server.url);
    let plan = plan(sandbox, &target, "queue_depth = 2\nclients = 2", "1h");
    let child = sandbox.start(&["run", &plan, "--json"]);
    wait_until_it_measures(&child);
    std::thread::sleep(Duration::from_secs(2));
    child
}

fn operations(bundle: &Path) -> u64 {
    let run = json(&bundle.join("run.json"));
    run["classes"].as_array().unwrap().iter().filter_map(|class| class["count"].as_u64()).sum()
}

#[test]
fn a_server_gone_for_good_ends_the_run_and_what_was_measured_is_told() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let child = under_load(&sandbox, &server, "outage_max = \"3s\"");
    server.signal("-KILL");
    let ran = ended(child).expect(5);
    assert_eq!(ran.json()["verdict"], "INVALID", "{}", ran.stdout);
    assert!(ran.json()["achieved_iops_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
    let bundle = sandbox.bundle();
    assert!(operations(&bundle) > 0);
    sandbox.run(&["verify", &bundle.display().to_string()]).expect(0);
}

#[test]
fn a_silent_server_does_not_keep_a_run_from_ending_when_asked() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let child = under_load(&sandbox, &server, "outage_max = \"10min\"");
    server.signal("-STOP");
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "-TERM");
    // The server stays stopped, but the run ends.
    ended(child).expect(130);
    let bundle = sandbox.bundle();
    assert!(operations(&bundle) > 0);
    sandbox.run(&["verify", &bundle.display().to_string()]).expect(0);
    server.signal("-CONT");
}

#[test]
fn a_run_that_is_stopped_again_and_again_for_less_than_a_second_says_so() {
    let sandbox = Sandbox::new();
    let child = sandbox.start(&["run", &on_files(&sandbox, "8s"), "--json", "-q"]);
    wait_until_it_measures(&child);
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..8 {
        signal(&child, "-STOP");
        std::thread::sleep(Duration::from_millis(600));
        signal(&child, "-CONT");
        std::thread::sleep(Duration::from_millis(200));
    }
    let verdict = ended(child).json();
    let clock = &json(&sandbox.bundle().join("observed.json"))["clock"];
    assert_eq!(found(&verdict, "was-stopped"), "fail", "{clock}");
}

#[test]
fn a_run_that_was_stopped_says_so_and_another_does_not() {
    for stopped in [true, false] {
        let sandbox = Sandbox::new();
        let plan = on_files(&sandbox, "8s");
        let child = sandbox.start(&["run", &plan, "--json", "-q"]);
        wait_until_it_measures(&child);
        std::thread::sleep(Duration::from_secs(2));
        if stopped {
            signal(&child, "-STOP");
            std::thread::sleep(Duration::from_secs(3));
            signal(&child, "-CONT");
        }
        let verdict = ended(child).json();
        let clock = &json(&sandbox.bundle().join("observed.json"))["clock"];
        let outcome = found(&verdict, "was-stopped");
        if stopped {
            assert_eq!(outcome, "fail", "{clock}");
            let pauses = clock["pauses"].as_array().unwrap();
            let is_stop = |kind: &Value| kind == "signalled" || kind == "frozen";
            let pause = pauses.iter().find(|pause| is_stop(&pause["kind"])).expect("the pause");
            // The pause is within the run, and at least 1 s of it is not explained by waiting for a
            // CPU.
            assert!(pause["at_ns"].as_u64().unwrap() > 1_000_000_000, "{clock}");
            assert!(clock["stopped_ns"].as_u64().unwrap() >= 1_000_000_000, "{clock}");
        } else {
            assert!(["pass", "unknown"].contains(&outcome.as_str().unwrap()), "{clock}");
            assert_eq!(clock["stopped_ns"], 0, "{clock}");
        }
    }
}

/// Runs a load with a fixed rate on files for 2 s, and stops the process for 4 s during the
/// warm-up. Returns `None` if the process was stopped before the start time of the load was set,
/// because no operation is late in this case.
fn stopped_over_all_of_its_measurement() -> Option<(Sandbox, Value)> {
    let sandbox = Sandbox::new();
    let target = format!("path = {:?}", sandbox.data().display().to_string());
    let due = "arrival = \"constant\"\nrate = 300";
    let child = sandbox.start(&["run", &plan(&sandbox, &target, due, "2s"), "--json", "-q"]);
    wait_until_it_warms_up(&child);
    std::thread::sleep(Duration::from_millis(50));
    signal(&child, "-STOP");
    std::thread::sleep(Duration::from_secs(4));
    let went_on = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    signal(&child, "-CONT");
    let verdict = ended(child).json();
    let run = json(&sandbox.bundle().join("run.json"));
    let phases = run["phases"].as_array().unwrap();
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").expect("a measurement");
    let ends_ns = run["started_unix_ns"].as_u64().unwrap()
        + measure["start_ns"].as_u64().unwrap()
        + measure["duration_ns"].as_u64().unwrap();
    (u128::from(ends_ns) <= went_on.as_nanos()).then_some((sandbox, verdict))
}

/// All operations that were due while the process was stopped complete after the measurement. The
/// report states this, and reports neither a cache nor a forgery.
#[test]
fn a_run_that_was_stopped_for_all_of_its_measurement_accuses_nobody() {
    let stopped = (0..10).find_map(|_| stopped_over_all_of_its_measurement());
    let (sandbox, verdict) = stopped.expect("one of ten runs is stopped once its start is set");
    let clock = &json(&sandbox.bundle().join("observed.json"))["clock"];
    assert_eq!(found(&verdict, "was-stopped"), "fail", "{clock}");
    for rule in ["evidence-consistent", "bytes-balance", "holes-read", "page-cache-served"] {
        assert_ne!(found(&verdict, rule), "fail", "{rule}: {verdict:#}");
    }
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.contains("the run was stopped for"), "{reason}");
}

/// A control group that limits the number of reads per second on a device. It is removed when this
/// value is dropped.
struct FewReads(PathBuf);

impl FewReads {
    fn new(child: &Child, device: &str, reads_per_s: u32) -> Self {
        let numbers = support::tool("lsblk", &["-dno", "MAJ:MIN", device]);
        let name = format!("plimsoll-test-{}", child.id());
        let one = Path::new("/sys/fs/cgroup/blkio");
        let (group, file, value) = if one.is_dir() {
            let value = format!("{numbers} {reads_per_s}");
            (one.join(name), "blkio.throttle.read_iops_device", value)
        } else {
            let value = format!("{numbers} riops={reads_per_s}");
            (Path::new("/sys/fs/cgroup").join(name), "io.max", value)
        };
        std::fs::create_dir(&group).unwrap();
        let few = Self(group);
        std::fs::write(few.0.join(file), value).unwrap();
        std::fs::write(few.0.join("cgroup.procs"), child.id().to_string()).unwrap();
        few
    }
}

impl Drop for FewReads {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A run ends after a signal, whichever of its threads receives it. In an earlier version, a signal
/// to the thread that sends run events kept the process from ending.
#[test]
fn a_run_ends_whichever_of_its_threads_took_the_signal() {
    let sandbox = Sandbox::new();
    let child = sandbox.start(&["run", &on_files(&sandbox, "60s"), "--json", "-q"]);
    wait_until_it_measures(&child);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let name = |path: PathBuf| std::fs::read_to_string(path.join("comm")).unwrap_or_default();
    let status = tasks.map(|task| task.path()).find(|path| name(path.clone()).trim() == "status");
    let status = status.expect("the thread that reports the status");
    support::tool("kill", &["-INT", status.file_name().unwrap().to_str().unwrap()]);
    let ran = ended(child).expect(130);
    assert_eq!(ran.json()["verdict"], "INCONCLUSIVE", "{}", ran.stdout);
}

#[test]
fn a_slow_device_is_given_the_time_to_finish_what_is_in_flight_at_the_end() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 128, "noatime");
    // At 2 reads per second, 16 reads in flight take 8 s to complete, but there are never more than
    // 3 s between two replies.
    let target = format!("path = {:?}\noutage_max = \"4s\"", fs.mount.display().to_string());
    let plan = plan(&sandbox, &target, "queue_depth = 16", "3s");
    let text = std::fs::read_to_string(&plan).unwrap().replace("reads = 50", "reads = 100");
    std::fs::write(&plan, text).unwrap();
    let child = sandbox.start(&["run", &plan, "--json", "-q"]);
    wait_for_load(&fs.mount);
    let few = FewReads::new(&child, &fs.device, 2);
    let ran = ended(child);
    drop(few);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "completed", "{run}");
    let class = &run["classes"][0];
    assert!(class["drained"].as_u64().unwrap() > 0, "{class}");
    assert_eq!(class["abandoned"], 0, "{class}");
}

#[test]
fn a_lock_file_that_is_none_is_refused_at_once_and_left() {
    for make in ["fifo", "link"] {
        let sandbox = Sandbox::new();
        let lock = sandbox.data().join(".plimsoll.lock");
        let lock_text = lock.display().to_string();
        match make {
            "fifo" => drop(support::tool("mkfifo", &[&lock_text])),
            _ => std::os::unix::fs::symlink("/nowhere/else", &lock).unwrap(),
        }
        let plan = on_files(&sandbox, "300ms");
        let ran = sandbox.run(&["run", &plan, "-q"]);
        assert!([2, 5].contains(&ran.code), "{make}: {}{}", ran.stdout, ran.stderr);
        ran.says(".plimsoll.lock");
        assert_eq!(sandbox.left_in_data(), [".plimsoll.lock"], "{make}");
        assert!(std::fs::symlink_metadata(&lock).is_ok_and(|kind| !kind.is_file()));
    }
}

#[test]
fn outputs_that_are_closed_change_nothing() {
    for closed in ["2>&-", ">&- 2>&-"] {
        let sandbox = Sandbox::new();
        let plan = on_files(&sandbox, "300ms");
        let plimsoll = sandbox.command(&["run", &plan]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$@\" {closed}"), "sh"]);
        command.arg(plimsoll.get_program()).args(plimsoll.get_args());
        for (name, value) in plimsoll.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let output =
            command.current_dir(sandbox.root.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{closed}: {output:?}");
        assert_eq!(output.stdout.is_empty(), closed.starts_with(">&-"));
        assert!(sandbox.left_in_data().is_empty());
        sandbox.run(&["verify", &sandbox.bundle().display().to_string()]).expect(0);
    }
}

/// Starts `observe` on a shell command and waits until the command reports that it is ready.
fn observing(sandbox: &Sandbox, work: &str) -> Child {
    let ready = sandbox.path("ready");
    let work = format!("{work}; touch {}; while :; do sleep 0.1; done", ready.display());
    let child = sandbox.start(&["observe", "--path", ".", "-q", "--", "sh", "-c", &work]);
    wait_until("the command", || ready.exists());
    child
}

#[test]
fn observe_passes_signals_on_the_second_as_kill() {
    for name in ["-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let word = &name[1..];
        let got = sandbox.path("got");
        let work = format!("trap 'echo {word} > {}; exit 0' {word}", got.display());
        let child = observing(&sandbox, &work);
        signal(&child, name);
        ended(child).expect(130);
        assert_eq!(std::fs::read_to_string(got).unwrap().trim(), word);
        assert_eq!(json(&sandbox.bundle().join("run.json"))["end"]["kind"], "interrupted");
    }
    let sandbox = Sandbox::new();
    let deaf = sandbox.path("deaf");
    let child = observing(&sandbox, &format!("trap '' TERM; echo $$ > {}", deaf.display()));
    signal(&child, "-TERM");
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "-TERM");
    ended(child).expect(130);
    let process = std::fs::read_to_string(deaf).unwrap();
    assert!(!Path::new("/proc").join(process.trim()).exists(), "the command was killed");
}

#[test]
fn what_cannot_be_read_is_told_from_what_was_changed() {
    let sandbox = Sandbox::new();
    let plan = on_files(&sandbox, "300ms");
    sandbox.run(&["run", &plan, "-q"]).expect(0);
    let bundle = sandbox.bundle();
    let text = bundle.display().to_string();
    let all = |path: &str, codes: &[i32]| {
        for command in ["judge", "verify", "report"] {
            let ran = sandbox.run(&[command, path, "-q"]);
            assert!(
                codes.contains(&ran.code),
                "{command}: {}{}{}",
                ran.code,
                ran.stdout,
                ran.stderr
            );
        }
    };
    all(&text, &[0]);
    // The same commands are tested on a file system that returns EIO for every read.
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 64, "noatime,errors=continue");
    let mount = fs.mount.display().to_string();
    support::tool("cp", &["-r", &text, &mount]);
    let copy = fs.mount.join(bundle.file_name().unwrap()).display().to_string();
    support::tool("xfs_io", &["-x", "-c", "shutdown", &mount]);
    all(&copy, &[5]);
    // The evidence is readable, but was modified.
    let run = bundle.join("run.json");
    let whole = std::fs::read(&run).unwrap();
    std::fs::write(&run, &whole[..whole.len() / 2]).unwrap();
    all(&text, &[3]);
    std::fs::write(&run, whole).unwrap();
    let nothing = sandbox.path("nothing");
    std::fs::create_dir(&nothing).unwrap();
    all(&nothing.display().to_string(), &[2, 5]);
    // The ledger is invalid, or its path is not a file.
    let ledger = sandbox.path("state/plimsoll/ledger.jsonl");
    std::fs::write(&ledger, "no ledger\n").unwrap();
    sandbox.run(&["runs"]).expect(5).says("ledger");
    sandbox.run(&["run", &plan, "-q"]).expect(5).says("ledger");
    std::fs::remove_file(&ledger).unwrap();
    std::fs::create_dir(&ledger).unwrap();
    sandbox.run(&["runs"]).expect(5).says("ledger");
    sandbox.run(&["run", &plan, "-q"]).expect(5).says("ledger");
    assert!(sandbox.left_in_data().is_empty());
}

#[test]
fn a_model_is_served_to_this_host_alone_unless_asked() {
    let sandbox = Sandbox::new();
    let serve = |arguments: &[&str]| {
        let all = [&["model", "serve", "zfs-flash", "--nfs"], arguments].concat();
        let mut child = sandbox.start(&all);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        signal(&child, "-TERM");
        let mut stderr = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut stderr).unwrap();
        child.wait().unwrap();
        (line, stderr)
    };
    let (answers, says) = serve(&["0"]);
    assert!(answers.contains("nfs://127.0.0.1/"), "{answers}");
    assert!(!says.contains("warning"), "{says}");
    let (answers, says) = serve(&["0.0.0.0:0"]);
    assert!(answers.contains("nfs://0.0.0.0/"), "{answers}");
    assert!(says.contains("warning: anyone who can reach 0.0.0.0:0 can read and write"), "{says}");
    let (_, says) = serve(&["0", "--metrics", "0.0.0.0:0"]);
    assert!(says.contains("warning: anyone who can reach 0.0.0.0:0"), "{says}");
}
