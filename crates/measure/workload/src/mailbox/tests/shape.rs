//! Tests which I/Os a store issues in 60 s. The disk stores no data.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_plan::Durability;

use super::disk::{Disk, Latency, NextStep};
use crate::mailbox::{
    Create, DatabaseConfig, DatabaseState, Duplicate, ExpectedCommits, Format, GenerationMap,
    Group, MailboxConfig, Mark, MemoryGenerationMap, Pace, Phase, PhaseIo, Recover, ReplayFrom,
    Scan, ScanKind, Store, Verify,
};
use crate::step::{BACKLOG_NS, ClassGroup, StepWorkload};

const SECOND: u64 = 1_000_000_000;
const DISK: Latency =
    Latency { read_ns: 5_000_000, write_ns: 5_000_000, durable_ns: 1_000_000, flush_ns: 2_000_000 };

fn store(config: &MailboxConfig) -> Store {
    let database = |d: &DatabaseConfig| {
        let mut maps = Box::new(MemoryGenerationMap::new(d.pages_max));
        (0..d.pages_initial).for_each(|page| maps.set(page, Mark::at(1)));
        DatabaseState::new(d.clone(), maps)
    };
    Store::new(config.clone(), config.databases.iter().map(database).collect()).unwrap()
}

fn config(databases: u32, pages: u32, sessions: u32) -> MailboxConfig {
    let databases = (0..databases).map(|id| DatabaseConfig::new(id, 0, 1, pages)).collect();
    MailboxConfig::new(7, 42, databases, sessions)
}

type Counters = BTreeMap<&'static str, u64>;

fn counters(group: &Group) -> Counters {
    let mut all = Counters::new();
    group.counters(&mut |name, _, value| *all.entry(name).or_default() += value);
    all
}

/// Counts of I/Os and of operations during the 60 s after the warm-up.
#[derive(Debug)]
struct Shape {
    counted: Counters,
    operations: u64,
}

impl Shape {
    fn of(&self, name: &str) -> f64 {
        self.counted[name] as f64
    }

    fn reads_to_writes(&self) -> f64 {
        self.of("database_reads") / self.of("database_writes")
    }

    fn log_write_bytes(&self) -> f64 {
        self.of("log_write_bytes") / self.of("log_writes")
    }

    fn sequential(&self) -> f64 {
        self.of("log_writes_sequential") / self.of("log_writes")
    }

    fn database_to_log(&self) -> f64 {
        (self.of("database_reads") + self.of("database_writes")) / self.of("log_writes")
    }
}

fn measure(config: &MailboxConfig, latency: Latency) -> Shape {
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut group = Group::new(store(config), &sessions).unwrap();
    let mut disk = Disk::new(1, latency);
    let mut before: Option<(u64, Counters, u64)> = None;
    let mut after: Option<Shape> = None;
    let mut watch = |group: &mut Group, now_ns: u64| {
        if after.is_some() {
            return NextStep::On;
        }
        match &before {
            None if group.warm_up().reached() => {
                before = Some((now_ns, counters(group), group.operations()));
                NextStep::On
            }
            Some((start, first, operations)) if now_ns >= start + 60 * SECOND => {
                let mut counted = counters(group);
                for (name, value) in &mut counted {
                    *value -= first[name].min(*value);
                }
                let operations = group.operations() - operations;
                after = Some(Shape { counted, operations });
                NextStep::Stop
            }
            _ => NextStep::On,
        }
    };
    disk.run_dry(&mut group, |group, now_ns| watch(group, now_ns));
    assert_eq!(group.poison(), None);
    after.unwrap()
}

/// Prints the ratios that were measured, next to the ratios that were published.
fn show(name: &str, shape: &Shape) {
    println!(
        "{name}: reads to writes {:.3}, log write {:.0} B, log sequential {:.4}, database to log \
         {:.2}:1 (published 8-12:1 in 2007, 2.7-3.8:1 in 2010), {:.0} operations/s",
        shape.reads_to_writes(),
        shape.log_write_bytes(),
        shape.sequential(),
        shape.database_to_log(),
        shape.operations as f64 / 60.0,
    );
}

fn near(value: f64, expected: f64, part: f64) -> bool {
    (value - expected).abs() <= expected * part
}

fn assert_shape(name: &str, config: &MailboxConfig, latency: Latency) -> Shape {
    let shape = measure(config, latency);
    show(name, &shape);
    let ratio = shape.reads_to_writes();
    assert!((1.5..=2.0).contains(&ratio), "reads to writes {ratio} is not 3:2 to 2:1");
    let log_write = shape.log_write_bytes();
    assert!((4096.0..=10240.0).contains(&log_write), "log write {log_write} B");
    assert!(shape.sequential() >= 0.99, "log sequential share {}", shape.sequential());
    let reads = 60.0 * 10.0 * config.databases.len() as f64;
    assert!(near(shape.of("maintenance_reads"), reads, 0.02), "maintenance reads");
    let bytes = reads * f64::from(config.maintenance_bytes);
    assert!(near(shape.of("maintenance_bytes"), bytes, 0.02), "maintenance bytes");
    assert_eq!(shape.counted["page_fault_stalls"], 0);
    assert_eq!(shape.counted["log_stalls"], 0);
    shape
}

/// The store has 2 GiB and eight sessions, which is about the size of a demonstration. The mix of
/// its I/Os is as documented.
#[test]
fn the_shape_of_a_small_store() {
    let config = config(2, 32768, 8);
    let shape = assert_shape("2 x 1 GiB, 8 sessions", &config, DISK);
    let operations = shape.operations as f64;
    for (name, share) in [
        ("operations_insert", 0.40),
        ("operations_delete", 0.20),
        ("operations_replace", 0.05),
        ("operations_read", 0.35),
    ] {
        assert!(near(shape.of(name), operations * share, 0.04), "{name} {}", shape.of(name));
    }
    let commits = shape.of("commits_lazy") + shape.of("commits_durable");
    assert!(near(shape.of("commits_lazy"), commits * 0.7, 0.02));
}

/// The store has 40 GiB in eight databases, so its cache has hardly any effect. The mix of its I/Os
/// is as documented.
#[test]
fn the_shape_of_a_large_store() {
    assert_shape("8 x 5 GiB, 16 sessions", &config(8, 163_840, 16), DISK);
}

/// The mix of I/Os does not depend on the disk. The test uses a disk whose log writes are as slow
/// as its reads, and a disk whose reads are much faster.
#[test]
fn the_shape_does_not_depend_on_the_disk() {
    let slow_log = Latency { durable_ns: 5_000_000, ..DISK };
    assert_shape("slow log", &config(4, 65536, 16), slow_log);
    let fast_reads = Latency { read_ns: 400_000, write_ns: 400_000, ..DISK };
    assert_shape("fast reads", &config(4, 65536, 8), fast_reads);
}

/// For each additional copy, the store reads the whole log, in large reads. The other I/Os do not
/// change.
#[test]
fn each_copy_reads_the_log() {
    let alone = measure(&config(2, 32768, 8), DISK);
    let copied = measure(&MailboxConfig { copies: 3, ..config(2, 32768, 8) }, DISK);
    assert_eq!(alone.counted["replication_reads"], 0);
    let bytes = copied.of("replication_reads") * f64::from(256 << 10);
    assert!(near(bytes, 2.0 * copied.of("log_write_bytes"), 0.03), "{bytes} B of log read");
    assert_eq!(copied.counted["replication_skipped_bytes"], 0);
    assert!(near(copied.operations as f64, alone.operations as f64, 0.03));
}

/// The open loop reaches its target rate within 1 %.
#[test]
fn the_open_loop_carries_its_target() {
    let pace = Pace::Target { rate_ios_per_s: 700.0 };
    let config = MailboxConfig { pace, ..config(4, 65536, 32) };
    let shape = measure(&config, DISK);
    let rate = (shape.of("database_reads") + shape.of("database_writes")) / 60.0;
    assert!(near(rate, 700.0, 0.01), "{rate} I/Os per second");
    let ratio = shape.reads_to_writes();
    assert!((1.5..=2.0).contains(&ratio), "reads to writes {ratio}");
}

/// The target rate is higher than the maximum rate of the disk, so operations always start late.
/// The latency is measured from the arrival and therefore grows. The achieved rate is the maximum
/// rate of the disk.
#[test]
fn the_open_loop_does_not_wait_for_the_disk() {
    let pace = Pace::Target { rate_ios_per_s: 20_000.0 };
    let config = MailboxConfig { pace, ..config(1, 65536, 4) };
    let sessions: Vec<u32> = (0..4).collect();
    let mut group = Group::new(store(&config), &sessions).unwrap();
    let mut disk = Disk::new(3, DISK);
    let mut ios_at_stop = None;
    disk.run_dry(&mut group, |group, now_ns| {
        if now_ns < 20 * SECOND || ios_at_stop.is_some() {
            return NextStep::On;
        }
        ios_at_stop = Some(group.transactional_ios());
        NextStep::Stop
    });
    let lag_ns = disk.intended_lag_max_ns;
    assert!(lag_ns > 10 * SECOND, "arrivals waited for the disk: lag of only {lag_ns} ns");
    let rate = ios_at_stop.unwrap() as f64 / 20.0;
    assert!(rate < 2000.0, "{rate}");
    // For one minute after the stop, the store still starts operations that arrived before the
    // stop. Arrivals that were never started are reported as backlog. All of them were due before
    // the stop.
    assert!(disk.now_ns >= 20 * SECOND + BACKLOG_NS, "ended at {} ns", disk.now_ns);
    let mut left = Vec::new();
    group.never_started(&mut |_, due_ns| left.push(due_ns));
    assert!(left.len() > 1000, "{} of a minute's arrivals", left.len());
    assert!(left.iter().all(|due_ns| *due_ns <= 20 * SECOND + SECOND / 100), "{:?}", left.last());
}

/// If the disk has a backlog when the stop is requested, the store still executes all operations
/// that arrived before. Their latencies are measured from their arrivals.
#[test]
fn the_open_loop_does_what_arrived_before_the_stop() {
    let pace = Pace::Target { rate_ios_per_s: 200.0 };
    let config = MailboxConfig { pace, ..config(1, 65536, 4) };
    let sessions: Vec<u32> = (0..4).collect();
    let mut group = Group::new(store(&config), &sessions).unwrap();
    let mut disk = Disk::new(3, Latency { read_ns: 60_000_000, ..DISK });
    let mut stopped_at = None;
    disk.run_dry(&mut group, |group, now_ns| {
        if now_ns < 10 * SECOND || stopped_at.is_some() {
            return NextStep::On;
        }
        stopped_at = Some(group.operations());
        NextStep::Stop
    });
    let later = group.operations() - stopped_at.unwrap();
    assert!(later > 100, "{later} operations that had arrived were done after the stop");
    assert!(disk.now_ns < 10 * SECOND + BACKLOG_NS, "ended at {} ns", disk.now_ns);
    group.never_started(&mut |_, due_ns| panic!("due at {due_ns}"));
}

/// With the same seed, the store issues the same I/Os at the same times. With another seed, it
/// issues other I/Os.
#[test]
fn a_seed_decides_everything() {
    let trace = |load_seed: u64| {
        let config = MailboxConfig { load_seed, ..config(2, 4096, 6) };
        let config = MailboxConfig { cache_bytes: 32 << 20, ..config };
        let sessions: Vec<u32> = (0..6).collect();
        let mut group = Group::new(store(&config), &sessions).unwrap();
        let mut disk = Disk::new(9, DISK);
        disk.run_dry(
            &mut group,
            |_, now_ns| if now_ns > 5 * SECOND { NextStep::Stop } else { NextStep::On },
        );
        (disk.trace, group.operations())
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1).0, trace(2).0);
}

/// The phases that create and check a store issue the same I/Os if the test disk stores no data.
#[test]
fn phases_run_without_data() {
    let config = MailboxConfig { cache_bytes: 32 << 20, ..config(2, 2048, 4) };
    let io = PhaseIo::default();
    let mut disk = Disk::new(9, DISK);
    fn run<P: Phase>(disk: &mut Disk, mut phase: P) -> Store {
        disk.run_dry(&mut phase, |_, _| NextStep::On);
        assert!(phase.is_complete() && phase.poison().is_none());
        Box::new(phase).into_store()
    }
    let empty = |d: &DatabaseConfig| {
        DatabaseState::new(d.clone(), Box::new(MemoryGenerationMap::new(d.pages_max)))
    };
    let states = config.databases.iter().map(empty).collect();
    let store = run(&mut disk, Create::new(Store::new(config.clone(), states).unwrap(), io));
    let store = run(&mut disk, Format::new(store, io));
    let store = run(&mut disk, Duplicate::new(store, io));
    let mut group = Group::new(store, &[0, 1, 2, 3]).unwrap();
    disk.run_dry(
        &mut group,
        |_, now_ns| if now_ns > 8 * SECOND { NextStep::Stop } else { NextStep::On },
    );
    assert!(group.is_closed());
    let store = run(&mut disk, Scan::new(group.into_store(), ScanKind::Checksum, io));
    let store = run(&mut disk, Recover::new(store, ReplayFrom::LogFiles(2), io));
    run(&mut disk, Verify::new(store, ExpectedCommits::default(), io));
    let page = 32 << 10;
    assert_eq!(disk.tallies["create_write"].bytes, 2048 * page);
    assert_eq!(disk.tallies["duplicate_read"].bytes, 2048 * page);
    assert_eq!(disk.tallies["duplicate_write"].bytes, 2048 * page);
    assert_eq!(disk.tallies["log_format"].bytes, u64::from(config.log_files) << 21);
    assert!(disk.tallies["checksum_read"].bytes >= 2 * 2048 * page);
    assert!(disk.tallies["recovery_write"].count > 500);
}

/// If each log write is followed by a flush, a durable write lasts until its flush has completed. A
/// limit for log writes applies to the sum of both times.
#[test]
fn each_log_write_lasts_until_the_end_of_its_flush() {
    for durability in [Durability::Dsync, Durability::Fdatasync] {
        let config = MailboxConfig { durability, ..config(1, 65536, 4) };
        let mut group = Group::new(store(&config), &[0, 1, 2, 3]).unwrap();
        let class = group.classes().iter().position(|class| class.group == ClassGroup::Durable);
        let (mut durable, mut lasted_ns) = (0_u64, u64::MAX);
        Disk::new(3, DISK).run_dry(&mut group, |group, now_ns| {
            group.durable(&mut |of, _, submitted_ns| {
                assert_eq!(Some(usize::from(of)), class);
                durable += 1;
                lasted_ns = lasted_ns.min(now_ns - submitted_ns);
            });
            if now_ns > 5 * SECOND { NextStep::Stop } else { NextStep::On }
        });
        group.durable(&mut |_, _, _| durable += 1);
        let mut left = 0;
        group.never_durable(&mut |_, _, _| left += 1);
        let writes = counters(&group)["log_writes"];
        assert!(writes > 100, "{writes}");
        match durability {
            Durability::Dsync => assert_eq!((durable, left), (0, 0)),
            Durability::Fdatasync => {
                assert_eq!((durable, left), (writes, 0));
                assert!(lasted_ns >= DISK.write_ns / 2 + DISK.flush_ns / 2, "{lasted_ns}");
            }
        }
    }
}

/// If the cache thresholds are low, writes come in bursts. The bursts of the two databases come at
/// the same time. The number of writes for each read does not change.
#[test]
fn writes_come_in_bursts() {
    let run = |cache_low_share| {
        let config = MailboxConfig {
            cache_low_share,
            cache_free_share: 0.1,
            writes_in_flight: 1024,
            ..config(2, 65536, 4)
        };
        let mut group = Group::new(store(&config), &[0, 1, 2, 3]).unwrap();
        let (mut last, mut busy, mut start) = (0, BTreeSet::new(), None);
        Disk::new(3, DISK).run_dry(&mut group, |group, now_ns| {
            let counted = counters(group);
            if now_ns > 20 * SECOND && counted["database_writes"] > last {
                busy.insert(now_ns / (SECOND / 20));
            }
            last = counted["database_writes"];
            if now_ns > 20 * SECOND {
                start.get_or_insert((counted["database_reads"], last));
            }
            if now_ns > 40 * SECOND { NextStep::Stop } else { NextStep::On }
        });
        let (reads, writes) = start.unwrap();
        let counted = counters(&group);
        let ratio = (last - writes) as f64 / (counted["database_reads"] - reads) as f64;
        (busy.len(), ratio)
    };
    let (always, without) = run(0.1);
    let (busy, with) = run(0.02);
    assert!(always > 380, "{always} of 400 parts of 50 ms have writes");
    assert!((10..100).contains(&busy), "{busy} of 400 parts of 50 ms have writes");
    assert!((with / without - 1.0).abs() < 0.1, "{with} writes per read, without bursts {without}");
}
