//! Crashes: whatever was not flushed is lost, reordered or torn, and nothing acknowledged is missing.
//!
//! The witness is told of each durable commit when the store acknowledges it, and is not part of the
//! store. A failure prints the seed of its history; `CRASH_SEED=n` repeats that one alone.

use std::sync::{Arc, Mutex};

use super::disk::{Disk, Go};
use super::fixture::{PHASE_IO, SharedMarks, marks, prepared, small, store};
use crate::mailbox::rng::{Choices, below};
use crate::mailbox::{
    Commit, Durability, Expected, Finding, Group, MailboxConfig, Mutant, Phase, Recover,
    ReplayFrom, Trouble, Verify, Witness,
};

/// Remembers acknowledged commits.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<Commit>>>);

impl Witness for Notebook {
    fn acknowledged(&mut self, commit: &Commit) {
        self.0.lock().unwrap().push(*commit);
    }
}

/// A prepared store, copied for each history.
struct Base {
    config: MailboxConfig,
    disk: Disk,
    marks: Vec<SharedMarks>,
}

impl Base {
    fn new(config: MailboxConfig) -> Self {
        let marks = marks(&config);
        let (disk, _) = prepared(&config, &marks);
        Self { config, disk, marks }
    }
}

/// What came of one history of crashes.
#[derive(Debug, Default)]
struct History {
    crashes: u64,
    acknowledged: u64,
    replayed: u64,
    rebuilt: u64,
    log_end_gaps: u64,
    findings: Vec<Finding>,
}

impl History {
    fn add(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.acknowledged += other.acknowledged;
        self.replayed += other.replayed;
        self.rebuilt += other.rebuilt;
        self.log_end_gaps += other.log_end_gaps;
        self.findings.extend(other.findings);
    }
}

/// Loads a store and crashes it, recovers it (perhaps with further crashes), verifies it, and goes on
/// with what is left, a few times.
fn history(base: &Base, seed: u64, mutant: Mutant) -> History {
    let mut choices = Choices::new(seed, 77);
    let mut disk = base.disk.clone();
    disk.reseed(seed);
    let marks: Vec<SharedMarks> = base.marks.iter().map(SharedMarks::copy).collect();
    let mut config = base.config.clone();
    let notebook = Notebook::default();
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut state = store(&config, &marks);
    let mut told = History::default();
    for round in 0..1 + below(choices.bits(), 4) {
        config.load_seed = seed << 8 | round;
        state.config.load_seed = config.load_seed;
        let mut group = Group::new(state, &sessions).unwrap();
        group.mutate(mutant);
        group.set_witness(Box::new(notebook.clone()));
        let last = 20 + below(choices.bits(), 400);
        // A third of the crashes come while the store is being closed.
        let stop =
            if choices.chance(1 << 32) && below(choices.bits(), 3) == 0 { last - 15 } else { 0 };
        disk.run(&mut group, |_, step| match step {
            step if step == last => Go::Crash,
            step if step == stop => Go::Stop,
            _ => Go::On,
        });
        told.findings.extend(group.poison());
        disk.crash();
        told.crashes += 1;
        let expected = || {
            let mut expected = Expected::default();
            notebook.0.lock().unwrap().iter().for_each(|commit| expected.add(*commit));
            expected
        };
        told.acknowledged = notebook.0.lock().unwrap().len() as u64;
        if below(choices.bits(), 2) == 0 {
            let mut verify = Verify::new(store(&config, &marks), expected(), PHASE_IO);
            disk.run(&mut verify, |_, _| Go::On);
            told.findings.extend(verify.findings());
            told.rebuilt += verify.report().pages_rebuilt.iter().sum::<u64>();
        }
        // Recovery may crash too, and is then begun again.
        loop {
            let from = ReplayFrom::Checkpoint;
            let mut recover = Recover::new(store(&config, &marks), from, PHASE_IO);
            let crash_at =
                if below(choices.bits(), 4) == 0 { 30 + below(choices.bits(), 60) } else { 0 };
            disk.run(&mut recover, |_, step| if step == crash_at { Go::Crash } else { Go::On });
            told.findings.extend(recover.poison());
            told.findings.extend(recover.findings());
            told.replayed += recover.report().log_changes;
            if recover.is_complete() {
                break;
            }
            if recover.poison().is_some() {
                return told;
            }
            disk.crash();
            told.crashes += 1;
        }
        let mut verify = Verify::new(store(&config, &marks), expected(), PHASE_IO);
        disk.run(&mut verify, |_, _| Go::On);
        told.findings.extend(verify.findings());
        assert_eq!(verify.report().log_changes, 0, "seed {seed}: recovered, and still to replay");
        state = Box::new(verify).into_store();
        if !told.findings.is_empty() {
            return told;
        }
    }
    told
}

/// Runs histories until there were `crashes`, on two threads, and fails at the first that lost
/// anything.
fn survive(config: &MailboxConfig, crashes: u64) -> History {
    if let Some(seed) = std::env::var("CRASH_SEED").ok().and_then(|seed| seed.parse().ok()) {
        let told = history(&Base::new(config.clone()), seed, Mutant::None);
        assert_eq!(told.findings, [], "seed {seed}");
        return told;
    }
    let run = |first: u64| {
        let base = Base::new(config.clone());
        let mut all = History::default();
        for seed in (first..).step_by(2) {
            if all.crashes >= crashes / 2 {
                break;
            }
            let told = history(&base, seed, Mutant::None);
            let said: Vec<String> = told.findings.iter().map(ToString::to_string).collect();
            assert!(said.is_empty(), "CRASH_SEED={seed} lost something: {said:#?}");
            all.add(told);
        }
        all
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let mut all = run(0);
        all.add(other.join().unwrap());
        all
    })
}

/// Histories of a store that is wrong, until one shows it; how many it took, and what showed.
fn catch(mutant: Mutant, shows: impl Fn(&Finding) -> bool) -> u64 {
    let base = Base::new(small(6));
    for seed in 0..200 {
        let told = history(&base, seed, mutant);
        if told.findings.iter().any(&shows) {
            println!("{mutant:?}: history {seed}, {}", told.findings[0]);
            return seed;
        }
    }
    panic!("{mutant:?} was not noticed in 200 histories");
}

fn commit_is_missing(finding: &Finding) -> bool {
    matches!(finding.trouble, Trouble::CommitMissing { .. })
}

#[test]
fn a_store_that_acknowledges_without_flushing_is_caught() {
    catch(Mutant::AcknowledgeBeforeFlush, commit_is_missing);
    let log_ends = |f: &Finding| matches!(f.trouble, Trouble::LogEnds { .. });
    catch(Mutant::AcknowledgeBeforeFlush, log_ends);
}

#[test]
fn a_checkpoint_that_runs_ahead_of_the_flush_is_caught() {
    catch(Mutant::CheckpointBeforeFlush, commit_is_missing);
    catch(Mutant::CheckpointBeforeFlush, |finding| finding.damage().is_some());
}

#[test]
fn a_page_written_before_its_log_is_caught() {
    let ahead = |f: &Finding| matches!(f.trouble, Trouble::PageAhead { .. });
    catch(Mutant::PageBeforeLog, ahead);
}

/// `fdatasync` after plain log writes, instead of durable writes.
#[test]
fn nothing_is_lost_with_flushed_logs() {
    let config = MailboxConfig { durability: Durability::Fdatasync, ..small(7) };
    let all = survive(&config, 1000);
    assert!(all.acknowledged > 5_000 && all.rebuilt > 500, "{all:?}");
}

/// Pages of the real size, whose 64 sectors tear in more ways.
#[test]
fn nothing_is_lost_with_pages_of_32_kib() {
    let config = MailboxConfig {
        page_bytes: 32 << 10,
        record_bytes: 2000,
        cache_bytes: 2 * 26 * (32 << 10),
        coalesce_bytes: 4 * (32 << 10),
        maintenance_bytes: 64 << 10,
        log_buffer_bytes: 48 << 10,
        log_files: 12,
        ..small(8)
    };
    let all = survive(&config, 300);
    assert!(all.acknowledged > 1_500 && all.rebuilt > 150, "{all:?}");
}

#[test]
fn nothing_acknowledged_is_lost_in_ten_thousand_crashes() {
    let all = survive(&small(5), 10_000);
    println!("{all:?}");
    // The crashes must have had something to destroy.
    assert!(all.acknowledged > 50_000 && all.replayed > 50_000 && all.rebuilt > 5_000, "{all:?}");
}
