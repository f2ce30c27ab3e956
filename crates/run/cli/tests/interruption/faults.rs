//! The real drivers run on a target whose operations fail, transfer only a part, take long or never
//! complete. There must be no panic, no hang and no PASS, the evidence must be readable, and every
//! file that remains must be reported.
//!
//! `PLIMSOLL_FAULT_SCHEDULES=10000` runs 10,000 schedules. `PLIMSOLL_FAULT_SEED` is their first
//! seed.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_evidence::Bundle;
use plimsoll_lossy_disk::disk::Behaviour;
use plimsoll_lossy_disk::faults::{Fault, FaultSchedule, Operation};
use plimsoll_lossy_disk::mount::LossyMount;

use crate::support::draw::Draw;
use crate::support::{CommandOutput, Sandbox, SmallPlan};

/// Number of schedules if `PLIMSOLL_FAULT_SCHEDULES` is not set.
const SCHEDULES: u64 = 40;
/// Number of schedules that run at the same time.
const WORKERS: usize = 4;
/// Number of consecutive seeds among which one schedule contains a delay of 30 s, and one contains
/// an operation that never completes.
const SLOW_EVERY: u64 = 1_000;
/// Maximum duration of a run if all faults last less than a second.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum duration of a run with an operation that takes 30 s or never completes. Access to a
/// manifest may then take ten minutes.
const SLOW_LIMIT: Duration = Duration::from_secs(900);

/// Default value of `outage_max` in a plan that measures for 200 ms.
const OUTAGE_MAX: &str = "30s";

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().expect("a number"))
}

/// Generates a random plan for a mail store or for a stream. A stream waits for a response of the
/// target for at most `outage_max`.
fn draw_plan(draw: &mut Draw, sandbox: &Sandbox, outage_max: &str) -> String {
    let io = draw.one_of(&["io_uring", "threads"]);
    let direct = draw.one_of(&["auto", "off"]);
    let engine = format!("[engine]\nio = \"{io}\"\ndirect = \"{direct}\"\n");
    if draw.once_in(3) {
        let mut plan = SmallPlan::on(&sandbox.data());
        (plan.mailboxes, plan.databases) = (4, 1 + draw.below(2) as u32);
        plan.mailbox_size = "256KiB".into();
        (plan.warm_up, plan.measure) = ("50ms".into(), "200ms".into());
        plan.more = engine;
        let text = plan.text().replace("latency_max_of = \"1s\"", "latency_max_of = \"100ms\"");
        let text = text.replace("min_measure = \"1s\"", "min_measure = \"100ms\"");
        let text = text.replace("[target]", &format!("[target]\noutage_max = \"{outage_max}\""));
        return write_plan(sandbox, &text);
    }
    let text = format!(
        "version = 1\nname = \"faults\"\n[target]\npath = {:?}\noutage_max = \
         \"{outage_max}\"\n[requirement]\niops = 1\n{engine}[workload.matrix]\nsizes = \
         \"{}\"\nfile_size = \"1MiB\"\nfiles = {}\nreads = {}\nqueue_depth = {}\nsync = \
         \"{}\"\n[phases]\nwarm_up = \"50ms\"\nmeasure = \"200ms\"\n[evidence]\nmin_measure = \
         \"100ms\"\ninterval = \"100ms\"\n",
        sandbox.data().display().to_string(),
        draw.one_of(&["4KiB", "16KiB", "64KiB"]),
        draw.one_of(&[1, 3]),
        draw.one_of(&[0, 50, 100]),
        draw.one_of(&[1, 4, 32]),
        draw.one_of(&["none", "fsync", "fdatasync", "dsync"]),
    );
    write_plan(sandbox, &text)
}

fn write_plan(sandbox: &Sandbox, text: &str) -> String {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Output of a process that is running.
type Received = Arc<Mutex<Vec<u8>>>;

fn receive(mut from: impl Read + Send + 'static) -> (Received, JoinHandle<()>) {
    let received = Received::default();
    let all = Arc::clone(&received);
    let thread = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            all.lock().unwrap().extend(&bytes[..count]);
        }
    });
    (received, thread)
}

/// Waits for a command. Returns `None` if the command has to be killed.
///
/// A write on the command's disk may never complete. In Linux, a process cannot end while one of
/// its threads waits for a file that such a write has locked. When the command has printed its
/// result, this function makes the write fail.
fn ended_within(mut child: Child, limit: Duration, disk: &LossyMount) -> Option<CommandOutput> {
    let start = Instant::now();
    let (stdout, stdout_thread) = receive(child.stdout.take().unwrap());
    let (stderr, stderr_thread) = receive(child.stderr.take().unwrap());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            // If a call never completes, the process only ends when the disk is unmounted.
            std::thread::spawn(move || child.wait());
            return None;
        }
        let is_complete = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).is_ok();
        if is_complete(&stdout.lock().unwrap()) {
            disk.fail_unanswered();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |received: Received, thread: JoinHandle<()>| {
        thread.join().unwrap();
        std::mem::take(&mut *received.lock().unwrap())
    };
    let (stdout, stderr) = (text(stdout, stdout_thread), text(stderr, stderr_thread));
    Some(Output { status, stdout, stderr }.into())
}

/// Returns true if a fault must be visible in the figures or in how the run ended.
fn has_hard(faults: &[(Operation, Fault)]) -> bool {
    let mut before = None;
    faults.iter().any(|(operation, fault)| {
        let is_error = matches!(fault, Fault::Error("EIO" | "ENOSPC" | "ESTALE" | "EROFS", _));
        // Linux does not report an error in the second part of a transfer; it only reports that the
        // transfer is short.
        let before = before.replace((operation, fault));
        let is_second_part = matches!(before, Some((kind, Fault::Short)) if kind == operation);
        is_error && *operation != Operation::Name && !is_second_part
    })
}

/// Runs one schedule. A stream waits for a response of the target for at most `outage_max`.
///
/// # Errors
/// Returns a description of the first failed check.
fn run_schedule(seed: u64, outage_max: &str) -> Result<usize, String> {
    let mut draw = Draw::of(seed);
    let sandbox = Sandbox::new();
    let disk = LossyMount::new(&sandbox.data(), Behaviour::Honest, seed).unwrap();
    let plan = draw_plan(&mut draw, &sandbox, outage_max);
    let (faults, limit) = match seed % SLOW_EVERY {
        1 => (FaultSchedule::new(seed).once(Fault::Delay(Duration::from_secs(30))), SLOW_LIMIT),
        2 => (FaultSchedule::new(seed).once(Fault::Never), SLOW_LIMIT),
        _ => (FaultSchedule::new(seed), LIMIT),
    };
    disk.set_faults(Some(faults));
    let child = sandbox.start(&["run", &plan, "--json", "-q"]);
    let ran = ended_within(child, limit, &disk);
    let faults = disk.set_faults(None).unwrap();
    let injected = faults.injected();
    let ran = ran.ok_or_else(|| format!("no end within {limit:?} after {injected:?}"))?;
    let says = format!("{}{}\nfaults: {injected:?}\n{plan}", ran.stdout, ran.stderr);
    let check = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what}, exit code {}: {says}", ran.code)),
    };
    check((0..=5).contains(&ran.code) && !says.contains("panicked at"), "a crash")?;
    check(ran.code != 2 || !injected.is_empty(), "a run that was rejected without a fault")?;
    let verdict: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    check(verdict["verdict"] != "PASS", "a PASS of 200 ms")?;
    let is_hidden = has_hard(injected) && verdict["verdict"] == "INCONCLUSIVE";
    check(!is_hidden && (ran.code != 0 || !has_hard(injected)), "a hidden error")?;
    for bundle in sandbox.bundles() {
        let read = Bundle::read(&bundle).map(drop);
        check(read.is_ok(), &format!("evidence that cannot be read ({read:?})"))?;
    }
    check(sandbox.run(&["runs", "--json"]).code == 0, "a ledger that cannot be read")?;
    let left = || sandbox.left_in_data().into_iter().filter(|name| name != "control");
    for name in left() {
        let is_named = says.contains(&name) || says.contains("plimsoll clean");
        check(is_named, &format!("{name} is left and not named"))?;
    }
    let data = sandbox.data().display().to_string();
    let cleaned = sandbox.run(&["clean", &data, "--kept"]);
    let what = format!(
        "{:?} after clean, {}{}",
        left().collect::<Vec<_>>(),
        cleaned.stdout,
        cleaned.stderr
    );
    check(cleaned.code == 0 && left().next().is_none(), &what)?;
    Ok(injected.len())
}

#[test]
fn faults_of_the_target_end_no_run_badly() {
    let count = number("PLIMSOLL_FAULT_SCHEDULES", SCHEDULES);
    let first = number("PLIMSOLL_FAULT_SEED", 10);
    let (next, faults) = (AtomicU64::new(first), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    match run_schedule(seed, OUTAGE_MAX) {
                        Ok(injected) => drop(faults.fetch_add(injected as u64, Ordering::Relaxed)),
                        Err(why) => {
                            println!("seed {seed}: {why}");
                            failures.lock().unwrap().push(seed);
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let faults = faults.into_inner();
    println!("{count} schedules from seed {first}: {faults} faults");
    assert!(failures.is_empty(), "{} failed: {failures:?}", failures.len());
    assert!(faults >= count, "{faults} faults in {count} schedules");
}

/// A load ends even if its only operation never completes. With `io = "threads"`, the thread that
/// runs the load also waits in the system call.
#[test]
fn a_load_ends_although_its_only_operation_has_no_answer() {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for seed in [11002, 21002] {
            scope.spawn(move || assert_eq!(run_schedule(seed, "1s"), Ok(1), "seed {seed}"));
        }
    });
    assert!(start.elapsed() < LIMIT, "the load ended after {:?}", start.elapsed());
}

/// Seeds of the plan for a mail store and of the plan for a stream.
const MAIL_STORE_SEED: u64 = 3;
const STREAM_SEED: u64 = 5;

/// Runs a plan of this seed in which an operation on names or attributes never completes, and
/// requests an urgent stop. Returns how the run ended.
fn stop_without_answer(plan_seed: u64, names_before: u64) -> CommandOutput {
    let sandbox = Sandbox::new();
    let disk = LossyMount::new(&sandbox.data(), Behaviour::Honest, 1).unwrap();
    let plan = draw_plan(&mut Draw::of(plan_seed), &sandbox, OUTAGE_MAX);
    let is_mail_store = std::fs::read_to_string(&plan).unwrap().contains("[workload.mailbox]");
    assert_eq!(is_mail_store, plan_seed == MAIL_STORE_SEED);
    disk.set_faults(Some(FaultSchedule::new(1).unanswered_name(names_before)));
    let child = sandbox.start(&["run", &plan, "--json", "-q"]);
    let id = child.id().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_secs(2));
                // If the run has already ended, no signal is needed.
                let _ = Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
            }
        });
        ended_within(child, LIMIT, &disk).expect("an end")
    })
}

#[test]
fn a_file_system_without_an_answer_does_not_keep_a_run_from_ending() {
    // The operation hangs while the target is checked, or while files are created or opened.
    std::thread::scope(|scope| {
        for plan_seed in [MAIL_STORE_SEED, STREAM_SEED] {
            for names_before in [0, 9, 20, 30, 45, 60, 75] {
                scope.spawn(move || {
                    let ran = stop_without_answer(plan_seed, names_before);
                    assert!([5, 130].contains(&ran.code), "{names_before}: {}", ran.stderr);
                    let says = ["no response from the file system: ", "did not complete within"];
                    let is_named = says.iter().any(|says| ran.stderr.contains(says));
                    assert!(is_named, "{plan_seed}, {names_before}: {}", ran.stderr);
                });
            }
        }
    });
}
