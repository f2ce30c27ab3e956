//! Tests the main job with every number of databases on every number of worker threads, on any
//! machine.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mail;
use plimsoll_evidence::run::{EndKind, PhaseKind};
use plimsoll_plan::Plan;
use plimsoll_record::progress::SilentWatcher;
use plimsoll_record::recording::Recording;

const DATABASES: u32 = 16;
/// Number of concurrent runs. Each run mostly waits.
const SIDE_BY_SIDE: usize = 3;

fn plan(data: &Path, databases: u32, workers: u32) -> Plan {
    let cache = format!("{}MiB", databases.max(2));
    let text = format!(
        "version = 1\nname = \"threads\"\ndemonstration = true\n[target]\npath = \
         {data:?}\n[workload.mailbox]\nmailboxes = {databases}\nmailbox_size = \
         \"256KiB\"\niops_per_mailbox = 10\ndatabases = {databases}\nthreads = 16\ncache = \
         \"{cache}\"\ncheckpoint_depth = \"256KiB\"\nlog_buffer = \"64KiB\"\nlog_file_size = \
         \"64KiB\"\nlog_files = 12\n[phases]\ncache = \"warm\"\nwarm_up = \"20ms\"\nmeasure = \
         \"60ms\"\n[evidence]\ninterval = \"20ms\"\nmin_measure = \"50ms\"\n[engine]\nworkers = \
         {workers}\n"
    );
    Plan::parse(&text, "threads.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_witness_that_cannot_be_written_ends_the_run() {
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = plan(root.path(), 2, 2);
    let witness = Some(Path::new("/dev/full"));
    let end = mail::run_with_witness(&plan, root.path(), &mut SilentWatcher, witness).end;
    assert_eq!(end.kind, EndKind::Environment, "{}", end.says);
    assert!(end.says.starts_with("writing the witness: "), "{}", end.says);
}

/// Runs the plan in memory, and removes its files.
fn run(databases: u32, workers: u32) -> Recording {
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    mail::run(&plan(root.path(), databases, workers), root.path(), &mut SilentWatcher)
}

fn check(databases: u32, workers: u32) {
    let recording = run(databases, workers);
    let end = &recording.end;
    assert_eq!(end.kind, EndKind::Completed, "{databases} on {workers}: {}", end.says);
    assert_eq!(recording.engine.threads, workers);
    let measure = recording.phases.iter().find(|phase| phase.kind == PhaseKind::Measure).unwrap();
    assert!(measure.reached, "{databases} on {workers}");
}

#[test]
fn every_number_of_databases_runs_on_every_number_of_threads() {
    // Only numbers of threads up to the number of databases are tested, because a run uses no more
    // threads.
    let pairs: Vec<(u32, u32)> =
        (1..=DATABASES).flat_map(|n| (1..=n).map(move |workers| (n, workers))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((databases, workers)) =
                    pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    check(*databases, *workers);
                }
            });
        }
    });
}
