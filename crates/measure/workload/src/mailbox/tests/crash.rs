//! Tests crashes that lose, reorder or tear data that was not flushed. After a crash, no
//! acknowledged commit may be missing.
//!
//! The witness is outside the store and receives each durable commit when the store acknowledges
//! it. A failed test prints the seed of its history. `CRASH_SEED=n` repeats only that history, and
//! `CRASH_SHAPES=n` tests `n` random shapes.

use std::sync::{Arc, Mutex};

use plimsoll_plan::Durability;

use super::disk::{Disk, Latency, NextStep};
use super::fixture::{PHASE_IO, SharedGenerationMap, maps, prepared, small, store};
use crate::mailbox::rng::{Choices, below};
use crate::mailbox::{
    Commit, DatabaseConfig, ExpectedCommits, Failure, Finding, Group, MailboxConfig, Mutant, Pace,
    Phase, Recover, ReplayFrom, Verify, Witness,
};

use crate::step::StepWorkload;

/// Witness that stores every acknowledged commit.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<Commit>>>);

impl Witness for Notebook {
    fn acknowledged(&mut self, commit: &Commit) {
        self.0.lock().unwrap().push(*commit);
    }
}

/// Store that was prepared once. Each history starts with a copy of this store.
struct Base {
    config: MailboxConfig,
    disk: Disk,
    maps: Vec<SharedGenerationMap>,
}

impl Base {
    fn new(config: MailboxConfig) -> Self {
        let maps = maps(&config);
        let (mut disk, _) = prepared(&config, &maps);
        if config.checkpoint_step_bytes == TIGHT_STEP {
            disk.latency.write_ns = 4_000_000;
        }
        Self { config, disk, maps }
    }
}

/// Counts and findings from one or several histories.
#[derive(Debug, Default)]
struct History {
    crashes: u64,
    acknowledged: u64,
    replayed: u64,
    rebuilt: u64,
    log_stalls: u64,
    log_blocks_checked: u64,
    pages_unknown: u64,
    /// Number of stores that, after a recovery, still required another recovery.
    unfinished: u64,
    findings: Vec<Finding>,
}

impl History {
    fn add(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.acknowledged += other.acknowledged;
        self.replayed += other.replayed;
        self.rebuilt += other.rebuilt;
        self.log_stalls += other.log_stalls;
        self.log_blocks_checked += other.log_blocks_checked;
        self.pages_unknown += other.pages_unknown;
        self.unfinished += other.unfinished;
        self.findings.extend(other.findings);
    }
}

/// Runs one history: loads a store, crashes it, recovers it (perhaps with crashes during the
/// recovery) and verifies it. This is repeated a few times with the recovered store.
fn history(base: &Base, seed: u64, mutant: Mutant) -> History {
    let mut choices = Choices::new(seed, 77);
    let mut disk = base.disk.clone();
    disk.reseed(seed);
    let maps: Vec<SharedGenerationMap> = base.maps.iter().map(SharedGenerationMap::copy).collect();
    let mut config = base.config.clone();
    let notebook = Notebook::default();
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut state = store(&config, &maps);
    let mut reported = History::default();
    for round in 0..1 + below(choices.bits(), 4) {
        config.load_seed = seed << 8 | round;
        state.config.load_seed = config.load_seed;
        let mut group = Group::new(state, &sessions).unwrap();
        group.mutate(mutant);
        group.set_witness(Box::new(notebook.clone()));
        let last = 20 + below(choices.bits(), 400);
        // One third of the crashes occur while the store is closing.
        let stop = if below(choices.bits(), 3) == 0 { last - 15 } else { 0 };
        disk.run(&mut group, |_, step| match step {
            step if step == last => NextStep::Crash,
            step if step == stop => NextStep::Stop,
            _ => NextStep::On,
        });
        reported.findings.extend(group.poison());
        group.counters(&mut |name, _, value| {
            reported.log_stalls += if name == "log_stalls" { value } else { 0 };
        });
        disk.crash();
        reported.crashes += 1;
        let expected = || {
            let mut expected = ExpectedCommits::default();
            notebook.0.lock().unwrap().iter().for_each(|commit| expected.add(*commit));
            expected
        };
        reported.acknowledged = notebook.0.lock().unwrap().len() as u64;
        if below(choices.bits(), 2) == 0 {
            let mut verify = Verify::new(store(&config, &maps), expected(), PHASE_IO);
            disk.run(&mut verify, |_, _| NextStep::On);
            reported.findings.extend(verify.findings());
            reported.rebuilt += verify.report().pages_rebuilt.iter().sum::<u64>();
        }
        if seed.is_multiple_of(4) {
            // The generation maps are replaced by the maps from before the load. This can happen
            // after a crash of the host.
            let old: Vec<SharedGenerationMap> =
                base.maps.iter().map(SharedGenerationMap::untrusted).collect();
            let mut verify = Verify::new(store(&config, &old), expected(), PHASE_IO);
            disk.run(&mut verify, |_, _| NextStep::On);
            reported.findings.extend(verify.findings());
            reported.log_blocks_checked += verify.report().log_blocks_checked;
            reported.pages_unknown += verify.report().pages_unknown;
        }
        // The recovery may also crash. It is then started again.
        loop {
            let from = ReplayFrom::Checkpoint;
            let mut recover = Recover::new(store(&config, &maps), from, PHASE_IO);
            let crash_at =
                if below(choices.bits(), 4) == 0 { 30 + below(choices.bits(), 60) } else { 0 };
            recover.steps.mutant = mutant;
            disk.run(
                &mut recover,
                |_, step| if step == crash_at { NextStep::Crash } else { NextStep::On },
            );
            reported.findings.extend(recover.poison());
            reported.findings.extend(recover.findings());
            reported.replayed += recover.report().log_changes;
            if recover.is_complete() {
                break;
            }
            if recover.poison().is_some() {
                return reported;
            }
            disk.crash();
            reported.crashes += 1;
        }
        let mut verify = Verify::new(store(&config, &maps), expected(), PHASE_IO);
        disk.run(&mut verify, |_, _| NextStep::On);
        reported.findings.extend(verify.findings());
        reported.unfinished += u64::from(verify.report().log_changes > 0);
        state = Box::new(verify).into_store();
        if !reported.findings.is_empty() || reported.unfinished > 0 {
            return reported;
        }
    }
    reported
}

/// Runs histories on two threads until `crashes` crashes have occurred. Fails if any history has
/// lost a commit.
fn survive(config: &MailboxConfig, crashes: u64) -> History {
    if let Some(seed) = std::env::var("CRASH_SEED").ok().and_then(|seed| seed.parse().ok()) {
        let reported = history(&Base::new(config.clone()), seed, Mutant::None);
        assert_eq!(reported.findings, [], "seed {seed}");
        return reported;
    }
    let run = |first: u64| {
        let base = Base::new(config.clone());
        let mut all = History::default();
        for seed in (first..).step_by(2) {
            if all.crashes >= crashes / 2 {
                break;
            }
            let reported = history(&base, seed, Mutant::None);
            let said: Vec<String> = reported.findings.iter().map(ToString::to_string).collect();
            assert!(said.is_empty(), "CRASH_SEED={seed} lost something: {said:#?}");
            assert_eq!(reported.unfinished, 0, "CRASH_SEED={seed} is still to be replayed");
            all.add(reported);
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

/// Runs histories of a store that has a deliberate defect, until the verification finds this
/// defect. Returns how many histories had no finding before that.
fn catch(mutant: Mutant, shows: impl Fn(&Finding) -> bool) -> u64 {
    let base = Base::new(small(6));
    for seed in 0..200 {
        let reported = history(&base, seed, mutant);
        if reported.findings.iter().any(&shows) {
            println!("{mutant:?}: history {seed}, {}", reported.findings[0]);
            return seed;
        }
    }
    panic!("{mutant:?} was not noticed in 200 histories");
}

/// Returns the configuration of a store whose page writes are slow. Its log is therefore often
/// full.
fn tight(seed: u64) -> MailboxConfig {
    MailboxConfig {
        checkpoint_step_bytes: TIGHT_STEP,
        log_files: 7,
        writes_in_flight: 2,
        coalesce_bytes: 2 * 4096,
        cache_bytes: 2 * 40 * 4096,
        sessions: 10,
        ..small(seed)
    }
}

/// Step size of the checkpoint in [`tight`] stores. A test recognises these stores by this value.
const TIGHT_STEP: u64 = 40 << 10;

#[test]
fn nothing_is_lost_with_a_full_log() {
    let all = survive(&tight(9), 600);
    assert!(all.log_stalls > 1_000 && all.acknowledged > 3_000, "{all:?}");
}

/// Creates the configuration of a store with random sizes, and of a disk with random latencies.
fn any(seed: u64) -> (MailboxConfig, Latency) {
    let mut choices = Choices::new(seed, 99);
    let mut one_of = |values: &[u64]| values[below(choices.bits(), values.len() as u64) as usize];
    let page_bytes = one_of(&[4096, 8192, 16384]) as u32;
    let coalesce_bytes = page_bytes * one_of(&[1, 2, 5]) as u32;
    let frames = 16 + 2 * u64::from(coalesce_bytes / page_bytes) + one_of(&[0, 4, 30]);
    let count = one_of(&[1, 2, 3]);
    let pages = one_of(&[10, 25, 60]) as u32;
    let databases = (0..count as u32).map(|id| DatabaseConfig::new(id, 0, 1, pages)).collect();
    let record_bytes = one_of(&[50, 200, 900, 2000]) as u32;
    let log_file_bytes = one_of(&[4096, 12288, 65536]) as u32;
    let log_buffer_bytes =
        (4 * (record_bytes + 8192)).next_multiple_of(4096) + 4096 * one_of(&[0, 1, 7]) as u32;
    let checkpoint_depth_bytes = one_of(&[0, 20_000, 100_000]);
    let ring = checkpoint_depth_bytes + 2 * u64::from(log_buffer_bytes) + one_of(&[1, 99_999]);
    let mut time = |values: &[u64]| one_of(values);
    let latency = Latency {
        read_ns: time(&[1, 50_000, 2_000_000]),
        write_ns: time(&[1, 100_000, 3_000_000]),
        durable_ns: time(&[1, 100_000, 2_000_000]),
        flush_ns: time(&[1, 500_000, 5_000_000]),
    };
    let config = MailboxConfig {
        page_bytes,
        record_bytes,
        coalesce_bytes,
        cache_bytes: count * frames * u64::from(page_bytes),
        writes_in_flight: one_of(&[1, 3, 16]) as u32,
        cache_low_share: one_of(&[0, 1, 2]) as f64 / 100.0,
        checkpoint_depth_bytes,
        checkpoint_step_bytes: one_of(&[1, 10_000, 60_000]),
        log_file_bytes,
        log_files: ring.div_ceil(u64::from(log_file_bytes)) as u32 + 1,
        log_buffer_bytes,
        log_writes_in_flight: one_of(&[1, 2, 8]) as u32,
        lazy_flush_ns: one_of(&[0, 1_000_000, 1_000_000_000]),
        lazy_commit_share: one_of(&[0, 1, 2]) as f64 / 2.0,
        durability: if one_of(&[0, 1]) == 0 { Durability::Dsync } else { Durability::Fdatasync },
        maintenance_bytes: page_bytes * one_of(&[1, 4]) as u32,
        maintenance_interval_ns: one_of(&[0, 300_000]),
        replication_bytes: 4096 * one_of(&[1, 3]) as u32,
        copies: one_of(&[1, 3]) as u32,
        initial_fill: one_of(&[0, 1, 2]) as f64 / 2.0,
        pace: match one_of(&[0, 1, 2]) {
            0 => Pace::Target { rate_ios_per_s: 3000.0 },
            think => Pace::Free { think_ns: (think - 1) * 100_000 },
        },
        ..MailboxConfig::new(seed, seed, databases, one_of(&[1, 5, 40]) as u32)
    };
    (config, latency)
}

/// Runs 500 stores with random sizes, with a few crashes each. No store may hang or lose a commit.
#[test]
fn nothing_is_lost_whatever_the_shape() {
    let mut all = History::default();
    let shapes = std::env::var("CRASH_SHAPES").ok().and_then(|count| count.parse().ok());
    for seed in 0..shapes.unwrap_or(500) {
        let (config, latency) = any(seed);
        config.validate().unwrap_or_else(|error| panic!("shape {seed}: {error}"));
        let mut base = Base::new(config);
        base.disk.latency = latency;
        let reported = history(&base, seed, Mutant::None);
        let said: Vec<String> = reported.findings.iter().map(ToString::to_string).collect();
        assert!(said.is_empty(), "shape {seed} lost something: {said:#?}\n{:?}", base.config);
        assert_eq!(reported.unfinished, 0, "shape {seed} is still to be replayed");
        all.add(reported);
    }
    println!("{all:?}");
    assert!(all.log_stalls > 100 && all.rebuilt > 500, "{all:?}");
}

#[test]
fn a_log_that_overwrites_what_recovery_needs_is_caught() {
    let base = Base::new(tight(10));
    let caught = (0..200).find(|&seed| {
        let reported = history(&base, seed, Mutant::RingBeyondCheckpoint);
        !reported.findings.is_empty()
    });
    println!("RingBeyondCheckpoint: history {caught:?}");
    assert!(caught.is_some());
}

#[test]
fn a_recovery_that_keeps_its_epoch_is_caught() {
    let base = Base::new(small(6));
    let caught = (0..500).find(|&seed| {
        let reported = history(&base, seed, Mutant::EpochKept);
        !reported.findings.is_empty() || reported.unfinished > 0
    });
    println!("EpochKept: history {caught:?}");
    assert!(caught.is_some());
}

fn commit_is_missing(finding: &Finding) -> bool {
    matches!(finding.trouble, Failure::CommitMissing { .. })
}

#[test]
fn a_store_that_acknowledges_without_flushing_is_caught() {
    catch(Mutant::AcknowledgeBeforeFlush, commit_is_missing);
    let log_ends = |f: &Finding| matches!(f.trouble, Failure::LogEnds { .. });
    catch(Mutant::AcknowledgeBeforeFlush, log_ends);
}

#[test]
fn a_checkpoint_that_runs_ahead_of_the_flush_is_caught() {
    catch(Mutant::CheckpointBeforeFlush, commit_is_missing);
    catch(Mutant::CheckpointBeforeFlush, |finding| finding.damage().is_some());
}

#[test]
fn a_page_written_before_its_log_is_caught() {
    let ahead = |f: &Finding| matches!(f.trouble, Failure::PageAhead { .. });
    catch(Mutant::PageBeforeLog, ahead);
}

/// Tests a store whose log is written with plain writes, each followed by `fdatasync`. Other tests
/// use durable writes.
#[test]
fn nothing_is_lost_with_flushed_logs() {
    let config = MailboxConfig { durability: Durability::Fdatasync, ..small(7) };
    let all = survive(&config, 1000);
    assert!(all.acknowledged > 5_000 && all.rebuilt > 500, "{all:?}");
}

/// Tests a store whose pages have the default size of 64 sectors. A torn page of this size can be
/// in more states than a torn small page.
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
    // The test is only useful if the crashes have lost some data that was not flushed.
    assert!(all.acknowledged > 50_000 && all.replayed > 50_000 && all.rebuilt > 5_000, "{all:?}");
    assert!(all.log_blocks_checked > 50_000 && all.pages_unknown > 10_000, "{all:?}");
}
