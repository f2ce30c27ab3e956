use super::*;
use crate::backend::{Direct, FileSource, Prefer};
use crate::stream::source::{Op, SourceCallbacks};
use plimsoll_sys::op::OpKind;
use plimsoll_workload::planned::pace::StartTimes;

/// Source that writes or reads blocks in order. Every byte of a block has the same value.
#[derive(Debug)]
struct Blocks {
    kind: OpKind,
    next: u64,
    end: u64,
    file_blocks: u64,
    checks: bool,
    damaged: Option<u64>,
}

impl Blocks {
    fn new(kind: OpKind, end: u64) -> Self {
        Self { kind, next: 0, end, file_blocks: 256, checks: false, damaged: None }
    }
}

impl Source for Blocks {
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks {
            fill: self.checks,
            completions: self.checks,
            ..SourceCallbacks::default()
        }
    }

    fn next(&mut self, _: u32) -> Option<Op> {
        let block = self.next;
        if block >= self.end {
            return None;
        }
        self.next += 1;
        let class = u16::from(self.kind != OpKind::Read);
        let offset_bytes = block % self.file_blocks * 4096;
        Some(Op { kind: self.kind, class, file: 0, offset_bytes, size_bytes: 4096, tag: 0 })
    }

    fn fill(&mut self, _: u32, op: &Op, buffer: &mut [u8]) {
        buffer.fill((op.offset_bytes / 4096) as u8);
    }

    fn completed(&mut self, _: u32, op: &Op, buffer: &mut [u8]) -> bool {
        let block = op.offset_bytes / 4096;
        if self.damaged == Some(block) {
            buffer[17] ^= 1;
        }
        buffer.iter().all(|byte| *byte == block as u8)
    }
}

fn group(source: Blocks, target: Target, pace: Pace) -> Group<Blocks> {
    Group {
        name: "g".to_owned(),
        place: crate::placement::Placement::default(),
        target,
        source,
        clients: 1,
        pace,
        cap: None,
        size_bytes_max: 4096,
        operations_max: u64::MAX,
        spin_ns: 0,
    }
}

fn config(measure_ns: u64) -> RunConfig {
    RunConfig { interval_ns: 20_000_000, ..RunConfig::new(&["read", "write"], measure_ns) }
}

fn files(path: &std::path::Path, prefer: Prefer) -> Target {
    let files = vec![FileSource::sized(path, 1 << 20)];
    Target::Files(BackendConfig { files, prefer, direct: Direct::Auto, ..Default::default() })
}

fn go(config: &RunConfig, groups: Vec<Group<Blocks>>) -> (RunReport, u64) {
    let mut rows = 0;
    let report = run(config, groups, &AtomicBool::new(false), &mut |row| {
        rows += row.classes.iter().map(|class| class.totals.operations).sum::<u64>();
    });
    (report.unwrap(), rows)
}

#[test]
fn histograms_series_and_counters_count_every_operation_of_the_null_target() {
    let endless = || Blocks::new(OpKind::Write, u64::MAX);
    let groups = vec![
        group(endless(), Target::Null, Pace::Closed { depth: 32 }),
        group(endless(), Target::Null, Pace::Barrier { depth: 4, think_ns: 0 }),
    ];
    let (report, in_rows) = go(&config(150_000_000), groups);
    let ended: u64 = report.groups.iter().map(|group| group.end.ended).sum();
    let started: u64 = report.groups.iter().map(|group| group.end.started).sum();
    let total = &report.collected.totals[1];
    assert!(ended > 1000);
    assert_eq!(started, ended);
    assert_eq!(total.totals.operations, ended);
    assert_eq!(total.latency.count(), ended);
    assert_eq!(total.service.count(), ended);
    assert_eq!(total.totals.bytes, ended * 4096);
    assert_eq!(in_rows, ended);
    assert_eq!(report.collected.totals[0].totals.operations, 0);
    assert_eq!(report.measured_ns(), 150_000_000);
    assert!(report.collected.window[1].operations <= ended);
}

#[test]
fn the_warm_up_is_kept_apart() {
    let endless = Blocks::new(OpKind::Read, u64::MAX);
    let config = RunConfig { warm_up_ns: 50_000_000, ..config(50_000_000) };
    let (report, in_rows) =
        go(&config, vec![group(endless, Target::Null, Pace::Closed { depth: 2 })]);
    let warm = report.collected.warm_up[0].operations;
    let measured = report.collected.totals[0].totals.operations;
    assert!(warm > 0 && measured > 0);
    assert_eq!(warm + measured, report.groups[0].end.ended);
    assert_eq!(in_rows, warm + measured);
    assert_eq!(report.collected.totals[0].latency.count(), measured);
}

#[test]
fn writes_and_checks_files_through_every_queue() {
    for (prefer, depth) in [(Prefer::Auto, 8), (Prefer::Threads, 4), (Prefer::Threads, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for kind in [OpKind::Write, OpKind::Read] {
            let source = Blocks { checks: true, ..Blocks::new(kind, 256) };
            let groups = vec![group(source, files(&path, prefer), Pace::Closed { depth })];
            let (report, _) = go(&config(10_000_000_000), groups);
            assert!(report.groups[0].failure().is_none(), "{:?}", report.groups[0].failure());
            assert_eq!(report.groups[0].end.ended, 256, "the source ended the run");
            let class = usize::from(kind == OpKind::Write);
            assert_eq!(report.collected.totals[class].latency.count(), 256);
            assert!(report.measured_ns() < 10_000_000_000);
        }
    }
}

#[test]
fn a_failed_check_stops_every_group_and_names_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let write = Blocks { checks: true, ..Blocks::new(OpKind::Write, 256) };
    go(
        &config(10_000_000_000),
        vec![group(write, files(&path, Prefer::Auto), Pace::Closed { depth: 4 })],
    );
    let read = Blocks { checks: true, damaged: Some(9), ..Blocks::new(OpKind::Read, u64::MAX) };
    let other = Blocks::new(OpKind::Read, u64::MAX);
    let groups = vec![
        group(read, files(&path, Prefer::Auto), Pace::Closed { depth: 2 }),
        group(other, Target::Null, Pace::Closed { depth: 1 }),
    ];
    let (report, _) = go(&config(20_000_000_000), groups);
    let error = report.groups[0].failure().unwrap();
    assert!(matches!(error, EngineError::Content { offset_bytes: 36864, .. }), "{error}");
    assert_eq!(report.collected.totals[0].totals.errors, 1);
    assert!(report.groups[1].end.failure.is_none());
    assert!(report.measured_ns() < 20_000_000_000, "the other group was stopped too");
}

#[test]
fn an_error_of_the_target_is_kept_with_all_that_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    // The file has 256 blocks, so the 257th read is after the end of the file.
    let read = Blocks { file_blocks: 1000, ..Blocks::new(OpKind::Read, u64::MAX) };
    let target = || {
        let files = vec![FileSource::read_only(&path)];
        Target::Files(BackendConfig { files, ..Default::default() })
    };
    let (report, _) =
        go(&config(20_000_000_000), vec![group(read, target(), Pace::Closed { depth: 1 })]);
    assert!(matches!(report.groups[0].failure(), Some(EngineError::Short { .. })));
    assert_eq!(report.collected.totals[0].latency.count(), 256);
    let carry_on = RunConfig { carry_on: true, ..config(20_000_000_000) };
    let read = Blocks { file_blocks: 1000, ..Blocks::new(OpKind::Read, 300) };
    let (report, _) = go(&carry_on, vec![group(read, target(), Pace::Closed { depth: 1 })]);
    assert_eq!(report.collected.totals[0].totals.errors, 44);
    assert_eq!(report.groups[0].end.ended, 300);
}

#[test]
fn a_target_that_cannot_be_opened_starts_nothing() {
    let nowhere = std::path::Path::new("/nowhere/f");
    let groups = vec![
        group(Blocks::new(OpKind::Read, 10), Target::Null, Pace::Closed { depth: 1 }),
        group(
            Blocks::new(OpKind::Read, 10),
            files(nowhere, Prefer::Auto),
            Pace::Closed { depth: 1 },
        ),
    ];
    let error = run(&config(1_000_000), groups, &AtomicBool::new(false), &mut |_| ()).unwrap_err();
    assert_eq!(error.path(), Some(nowhere));
}

#[test]
fn open_arrivals_are_all_started_and_their_lateness_is_known() {
    let every_50_us = || (0u64..).map(|k| k * 50_000);
    let arrivals: Vec<StartTimes> = vec![Box::new(every_50_us()), Box::new(every_50_us())];
    let pace = Pace::Open { arrivals, places: 64 };
    let source = Blocks::new(OpKind::Read, u64::MAX);
    let groups = vec![Group { clients: 2, spin_ns: 20_000, ..group(source, Target::Null, pace) }];
    let (report, _) = go(&config(200_000_000), groups);
    assert_eq!(report.groups[0].end.ended, 2 * 4000, "every arrival before the stop, none after");
    let group = &report.collected.groups[0];
    assert_eq!(group.own.times.count() + group.held.times.count(), 8000);
    assert_eq!(report.groups[0].end.never_started, 0);
}

#[test]
fn a_cap_holds_a_closed_loop_to_its_rate() {
    let turns: StartTimes = Box::new((0u64..).map(|k| k * 100_000));
    let source = Blocks::new(OpKind::Read, u64::MAX);
    let groups = vec![Group {
        cap: Some(CapTurns(turns)),
        spin_ns: 20_000,
        ..group(source, Target::Null, Pace::Closed { depth: 8 })
    }];
    let (report, _) = go(&config(300_000_000), groups);
    let ended = report.groups[0].end.ended;
    assert!(ended > 0 && ended <= 3001, "{ended}: at most one per turn");
}

#[test]
fn a_stop_that_is_asked_for_ends_the_run_with_its_evidence() {
    let stop = AtomicBool::new(true);
    let source = Blocks::new(OpKind::Read, u64::MAX);
    let groups = vec![group(source, Target::Null, Pace::Closed { depth: 8 })];
    let report = run(&config(60_000_000_000), groups, &stop, &mut |_| ()).unwrap();
    assert!(report.measured_ns() < 60_000_000_000);
    assert_eq!(report.groups[0].end.abandoned, 0);
}
