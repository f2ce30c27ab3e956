//! Tests the production loop in virtual time. A day takes little real time, and every figure is
//! exact.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Receiver;

use plimsoll_record::collect::{Collector, Interval};
use plimsoll_workload::arrival::{Rate, Schedule, Warp};

use super::*;
use crate::backend::SPIN_NS_MAX;
use crate::simulated::{
    Device, FixedLatencyDevice, Law, RandomLatencyDevice, SECOND, SimulatedQueue, VirtualClock,
};
use crate::stream::outbox::{SnapshotReturns, connect};
use crate::stream::pacing::{BatchBarrier, ClosedLoop, OpenLoop, ThinkTimeLoop};
use crate::stream::source::DurableWriteClass;

struct IdenticalWrites;

impl Source for IdenticalWrites {
    fn next(&mut self, _: u32) -> Option<Op> {
        Some(Op { kind: OpKind::Write, size_bytes: 4096, ..IDLE.op })
    }
}

fn config(length_ns: u64) -> DriveConfig {
    DriveConfig {
        measure_from_ns: 0,
        stop_ns: length_ns,
        drain_ns: 600 * SECOND,
        backlog_ns: 600 * SECOND,
        interval_ns: SECOND,
        spin_ns: 0,
        wait_spin_ns: 0,
        operations_max: u64::MAX,
        classes: 1,
        buffer_stride_bytes: 4096,
        carry_on: false,
        outage_max_ns: 600 * SECOND,
    }
}

/// Writer that runs on the driver's own thread, so that it is never late.
struct Writer {
    inbox: Receiver<Box<IntervalRecorder>>,
    returns: SnapshotReturns,
    collector: Collector,
    rows: Vec<(i64, u64)>,
}

impl Writer {
    fn work(&mut self) {
        let Self { inbox, returns, collector, rows } = self;
        for mut snapshot in inbox.try_iter() {
            collector.take(&mut snapshot, &mut |row: &Interval| {
                rows.push((row.number, row.classes[0].totals.operations));
            });
            returns.return_box(snapshot);
        }
    }
}

/// Drives the operations to the end, without an early stop.
fn drive_all<D: Device, P: Pacing>(
    queue: &mut SimulatedQueue<D>,
    mut pacing: P,
    config: DriveConfig,
    outbox: Outbox,
) -> (DriveEnd, Result<(), EngineError>) {
    let (never, no) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
    let abort = AtomicBool::new(false);
    let stop = Stop { at_ns: &never, failed: &no, abort: &abort };
    let mut clock = queue.clock();
    drive(queue, &mut IdenticalWrites, &mut pacing, &mut clock, config, outbox, stop)
}

/// Drives the operations. Returns the collected records.
fn report_of<D: Device, P: Pacing>(
    mut queue: SimulatedQueue<D>,
    pacing: P,
    config: DriveConfig,
) -> Collector {
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, _returns) = ends.remove(0);
    let mut collector = Collector::new(1, &[1], false);
    drive_all(&mut queue, pacing, config, outbox).1.unwrap();
    for mut snapshot in inbox.try_iter() {
        collector.take(&mut snapshot, &mut |_| ());
    }
    collector
}

/// Drives the operations with a writer that returns each box to the driver. Also returns the number
/// of operations in each interval.
fn go<P: Pacing>(
    queue: SimulatedQueue<FixedLatencyDevice>,
    pacing: P,
    config: DriveConfig,
) -> (DriveEnd, Collector, Vec<(i64, u64)>) {
    let (end, collector, rows, outcome) = attempt(queue, pacing, config);
    outcome.unwrap();
    (end, collector, rows)
}

fn attempt<P: Pacing>(
    mut queue: SimulatedQueue<FixedLatencyDevice>,
    pacing: P,
    config: DriveConfig,
) -> (DriveEnd, Collector, Vec<(i64, u64)>, Result<(), EngineError>) {
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, returns) = ends.remove(0);
    let collector = Collector::new(1, &[1], false);
    let writer = Rc::new(RefCell::new(Writer { inbox, returns, collector, rows: Vec::new() }));
    let beside = Rc::clone(&writer);
    queue.on_reap = Some(Box::new(move || beside.borrow_mut().work()));
    let (end, outcome) = drive_all(&mut queue, pacing, config, outbox);
    drop(queue);
    let mut writer = Rc::into_inner(writer).unwrap().into_inner();
    writer.work();
    (end, writer.collector, writer.rows, outcome)
}

#[test]
fn a_driver_that_polls_reports_no_wake_up_and_one_that_may_not_sleeps() {
    let report = |wait_spin_ns: u64| {
        let clock = VirtualClock::default();
        let (mut queue, _) = RandomLatencyDevice::queue(&clock, 1, Law::Constant(30_000), 1);
        (queue.costs.call_ns, queue.costs.wake_ns) = (100, 40_000);
        let config = DriveConfig { wait_spin_ns, ..config(2 * SECOND) };
        let collector = report_of(queue, ClosedLoop::new(&[1], 0), config);
        let sums = collector.totals[0].totals;
        (sums.latency_ns_sum / sums.operations, collector.groups[0].spun_ns)
    };
    let (mean_ns, spun_ns) = report(SPIN_NS_MAX);
    // The driver sleeps for a total of 0.12 s to learn whether polling is faster.
    assert!((30_000..32_000).contains(&mean_ns), "{mean_ns}");
    assert!(spun_ns > SECOND * 9 / 5, "{spun_ns}");
    let (mean_ns, spun_ns) = report(0);
    assert!(mean_ns >= 70_000 && spun_ns == 0, "{mean_ns} {spun_ns}");
}

#[test]
fn what_a_silent_target_never_answers_is_outside_of_what_was_measured() {
    let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 8, 1_000_000);
    queue.device.stall = (9 * SECOND, 900 * SECOND);
    let config = DriveConfig { outage_max_ns: 3 * SECOND, ..config(60 * SECOND) };
    let (end, collected, rows, outcome) = attempt(queue, ClosedLoop::new(&[8], 0), config);
    assert!(matches!(outcome, Err(EngineError::NoAnswer { in_flight: 8, .. })), "{outcome:?}");
    assert!((11 * SECOND..14 * SECOND).contains(&end.end_ns), "{}", end.end_ns);
    assert_eq!((end.abandoned, collected.totals[0].totals.abandoned), (8, 8));
    assert_eq!(collected.window[0].abandoned, 0);
    let counted: u64 = rows.iter().map(|row| row.1).sum();
    assert_eq!(collected.window[0].operations, counted);
}

#[test]
fn one_operation_that_never_comes_back_ends_a_run_whose_others_do() {
    let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 8, 1_000_000);
    queue.device.lost_after = 1_000;
    let config = DriveConfig { outage_max_ns: 3 * SECOND, ..config(3_600 * SECOND) };
    let (end, _, _, outcome) = attempt(queue, ClosedLoop::new(&[8], 0), config);
    assert!(matches!(outcome, Err(EngineError::NoAnswer { .. })), "{outcome:?}");
    assert!((180 * SECOND..183 * SECOND).contains(&end.end_ns), "{}", end.end_ns);
}

/// The ring's timer ends a wait in which no operation completes. Later completions must get a later
/// time than the timer.
#[test]
fn an_operation_that_outlasts_a_timer_counts_with_all_of_its_time() {
    for depth in [1, 8] {
        let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 8, 1_000_000);
        queue.device.stall = (9 * SECOND, 13 * SECOND + SECOND / 2);
        let (_, collected, _) = go(queue, ClosedLoop::new(&[depth], 0), config(20 * SECOND));
        let slow = collected.totals[0].latency.max_ns().unwrap();
        assert!((4 * SECOND..5 * SECOND).contains(&slow), "depth {depth}: {slow}");
        // The whole stall delayed every operation that was in flight.
        let least = u64::from(depth) * 4 * SECOND;
        assert!(collected.totals[0].totals.latency_ns_sum > least, "depth {depth}");
    }
}

/// The timer event fills the batch, so one completion arrives in the next batch. It belongs to an
/// operation that was submitted later.
#[test]
fn a_timer_among_a_full_batch_makes_nothing_older_than_it_is() {
    for depth in [1, 2, 8, 16] {
        // The wait ends at its timeout. Before the thread runs again, all operations complete.
        let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 16, SECOND + 50);
        queue.costs.wake_ns = 100;
        let (_, collected, _) = go(queue, ClosedLoop::new(&[depth], 0), config(20 * SECOND));
        let fast = collected.totals[0].latency.quantile_ns(0.0).unwrap();
        assert!(fast >= SECOND, "depth {depth}: {fast}");
    }
}

fn constant(rate_per_s: f64) -> OpenLoop<plimsoll_workload::arrival::Arrivals> {
    let rate = Rate::per_s(rate_per_s).unwrap();
    let schedule = Schedule::Constant { rate, warp: Warp::None };
    OpenLoop::new(vec![schedule.whole(1)], 10_000, 0)
}

#[test]
fn a_stall_is_in_the_latencies_of_all_that_it_made_wait() {
    // The load lasts 20 s at 1,000 operations per second, with one stall of 2 s. The slowest 1 % of
    // the 20,000 operations arrive in the first 200 ms of the stall. So p99 is 2 s - 0.01 × 20 s =
    // 1.8 s.
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 10_000, 100_000);
    queue.device.stall = (9 * SECOND, 11 * SECOND);
    let (end, collected, rows) = go(queue, constant(1000.0), config(20 * SECOND));
    assert_eq!((end.started, end.ended, end.never_started), (20_000, 20_000, 0));
    let latency = &collected.totals[0].latency;
    let p99 = latency.quantile_ns(0.99).unwrap() as f64;
    assert!((p99 - 1.8e9).abs() < 0.02 * 1.8e9, "{p99}");
    assert!(latency.max_ns().unwrap() >= 2 * SECOND);
    assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 20_000);
    assert_eq!(collected.window[0].operations, 20_000);
}

#[test]
fn a_stall_that_fills_the_queue_is_still_in_the_latencies() {
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 16, 100_000);
    queue.device.stall = (9 * SECOND, 11 * SECOND);
    let rate = Rate::per_s(1000.0).unwrap();
    let schedule = Schedule::Constant { rate, warp: Warp::None };
    let open = OpenLoop::new(vec![schedule.whole(1)], 16, 0);
    let (end, collected, _) = go(queue, open, config(20 * SECOND));
    assert_eq!(end.ended, 20_000);
    let p99 = collected.totals[0].latency.quantile_ns(0.99).unwrap() as f64;
    assert!((p99 - 1.8e9).abs() < 0.02 * 1.8e9, "{p99}");
    // Operations that waited for a slot in the queue have short service times. A closed loop would
    // report only these times.
    let service = collected.totals[0].service.quantile_ns(0.99).unwrap();
    assert!(service < 1_000_000, "{service}");
    let group = &collected.groups[0];
    assert!(group.held.times.count() > 1900, "held by the queue: {}", group.held.times.count());
    assert_eq!(group.held.times.count() + group.own.times.count(), 20_000);
    assert_eq!(group.own.times.max_ns(), Some(0), "the generator itself was never late");
}

#[test]
fn a_day_at_a_constant_rate_does_not_drift() {
    let day = 24 * 3600 * SECOND;
    let clock = VirtualClock::default();
    let config = DriveConfig { interval_ns: 600 * SECOND, ..config(day) };
    let (end, collected, rows) =
        go(FixedLatencyDevice::queue(&clock, 100, 1_000), constant(7.0), config);
    assert_eq!(end.started, 7 * 24 * 3600);
    assert_eq!(collected.groups[0].own.times.max_ns(), Some(0));
    // Even the last operation started on schedule, so its latency is its service time.
    assert_eq!(collected.totals[0].latency.max_ns(), Some(1_000));
    assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 7 * 24 * 3600);
    let full = rows.iter().filter(|row| row.1 == 7 * 600).count();
    assert!(full + 2 >= rows.len(), "every interval holds its operations: {rows:?}");
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let clock = VirtualClock::default();
    let queue = FixedLatencyDevice::queue(&clock, 8, 1_000_000);
    let (end, collected, _) = go(queue, ClosedLoop::new(&[8], 0), config(10 * SECOND));
    // Eight operations are in flight, and each takes 1 ms. So the rate is 8,000 operations per
    // second.
    assert_eq!(end.ended, 80_000);
    assert_eq!(collected.totals[0].service.max_ns(), Some(1_000_000));
}

#[test]
fn think_time_and_barrier_take_their_time() {
    let clock = VirtualClock::default();
    let thinking = ThinkTimeLoop::new(&[1], &[3_000_000], 0);
    let (end, ..) =
        go(FixedLatencyDevice::queue(&clock, 1, 1_000_000), thinking, config(10 * SECOND));
    assert_eq!(end.ended, 2500, "1 ms of service and 3 ms of thinking each");
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 4, 1_000_000);
    queue.device.stall = (5 * SECOND, 6 * SECOND);
    let (end, ..) = go(queue, BatchBarrier::new(&[4], 0, 0), config(10 * SECOND));
    assert_eq!(end.ended, 4 * 9000, "batches of four each millisecond but for the stall");
}

#[test]
fn arrivals_due_before_the_stop_are_started_after_it() {
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 4, 100_000);
    queue.device.stall = (9 * SECOND, 12 * SECOND);
    let rate = Rate::per_s(1000.0).unwrap();
    let open = OpenLoop::new(vec![Schedule::Constant { rate, warp: Warp::None }.whole(1)], 4, 0);
    let (end, collected, _) = go(queue, open, config(10 * SECOND));
    assert_eq!((end.ended, end.never_started), (10_000, 0));
    assert!(collected.window[0].operations <= 9_001, "the rate counts what was in time");
    assert!(collected.totals[0].latency.max_ns().unwrap() > 2_900_000_000);
    // If the stall lasts longer than the drain, the operations that did not complete are counted
    // too.
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 4, 100_000);
    queue.device.stall = (9 * SECOND, 100 * SECOND);
    let open = OpenLoop::new(vec![Schedule::Constant { rate, warp: Warp::None }.whole(1)], 4, 0);
    let short = DriveConfig { drain_ns: SECOND, backlog_ns: SECOND, ..config(10 * SECOND) };
    let (end, collected, _) = go(queue, open, short);
    assert_eq!(end.started + end.never_started, 10_000);
    assert_eq!(end.abandoned, 4);
    // No operation is missing: 9,000 completed, 4 waited in the target, and 996 waited before
    // submission. The record contains the wait of the last 1,000 operations until the end.
    let total = &collected.totals[0];
    assert_eq!((total.totals.abandoned, total.totals.never_started), (4, 996));
    assert_eq!(total.latency.count(), 10_000);
    assert_eq!(total.service.count(), 9_004);
    // The first operation in the stall was due at 9 s. The fourth filled the queue at 9.003 s.
    // After that, the thread waits two timeouts of one second.
    assert_eq!((end.end_ns, total.latency.max_ns()), (11_003_000_000, Some(2_003_000_000)));
    let p95 = total.latency.quantile_ns(0.95).unwrap() as f64;
    assert!((p95 / 1.503e9 - 1.0).abs() < 0.002, "the 500th of those that waited: {p95}");
}

/// Runs for ten seconds with one stall of `length` seconds, which begins `before` seconds before
/// the end.
fn stalled(before: u64, length: u64) -> Collector {
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 10_000, 100_000);
    queue.device.stall = ((10 - before) * SECOND, (10 - before + length) * SECOND);
    go(queue, constant(1000.0), config(10 * SECOND)).1
}

#[test]
fn a_stall_across_the_end_weighs_as_much_as_before_it() {
    // At 1,000 arrivals per second, a stall of 2 s in the middle delays 2,000 operations. A stall
    // that begins 1 s before the end delays the 1,000 operations that are due before the end.
    let (inside, across) = (stalled(5, 2), stalled(1, 2));
    for collected in [&inside, &across] {
        let latency = &collected.totals[0].latency;
        assert_eq!(latency.count(), 10_000);
        let max_ns = latency.max_ns().unwrap();
        assert!((2 * SECOND..=2 * SECOND + SECOND / 100).contains(&max_ns), "{max_ns}");
    }
    let p95 = across.totals[0].latency.quantile_ns(0.95).unwrap() as f64;
    assert!((p95 / 1.5e9 - 1.0).abs() < 0.002, "500 of 10,000 waited longer: {p95}");
    assert_eq!(across.window[0].operations, 9_000);
    // This stall lasts ninety seconds, but the drain is longer.
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 8, 1_000_000);
    queue.device.stall = (9 * SECOND, 99 * SECOND);
    let drain_ns = plimsoll_record::drain::IN_FLIGHT_NS;
    let (end, collected, _) =
        go(queue, ClosedLoop::new(&[8], 0), DriveConfig { drain_ns, ..config(10 * SECOND) });
    assert_eq!((end.abandoned, collected.totals[0].totals.abandoned), (0, 0));
    let max_ns = collected.totals[0].latency.max_ns().unwrap();
    assert!(max_ns >= 90 * SECOND, "{max_ns}");
    assert_eq!(collected.totals[0].latency.count() - collected.window[0].operations, 8);
}

#[test]
fn a_stop_that_is_asked_for_is_at_its_time_in_every_thread() {
    let clock = VirtualClock::default();
    let queue = FixedLatencyDevice::queue(&clock, 8, 1_000_000);
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, returns) = ends.remove(0);
    let mut collector = Collector::new(1, &[1], false);
    let (at, no) = (AtomicU64::new(3_500_000_500), AtomicBool::new(false));
    let abort = AtomicBool::new(false);
    let stop = Stop { at_ns: &at, failed: &no, abort: &abort };
    let (mut queue, mut clock, mut closed) = (queue, clock.clone(), ClosedLoop::new(&[8], 0));
    let config = config(10 * SECOND);
    let (end, outcome) =
        drive(&mut queue, &mut IdenticalWrites, &mut closed, &mut clock, config, outbox, stop);
    outcome.unwrap();
    assert_eq!(end.stop_ns, 3_500_000_500);
    for mut snapshot in inbox.try_iter() {
        collector.take(&mut snapshot, &mut |_| ());
        returns.return_box(snapshot);
    }
    // Eight operations complete each millisecond. 3,500 such batches completed in time, and one
    // batch completed after the stop.
    assert_eq!(collector.window[0].operations, 8 * 3_500);
    assert_eq!(collector.totals[0].totals.operations, 8 * 3_501);
}

/// The process was stopped before the start and resumed after the end, so it starts every operation
/// late.
#[test]
fn what_begins_after_its_end_is_no_part_of_the_rate() {
    let clock = VirtualClock::default();
    clock.advance_to(12 * SECOND + SECOND / 2);
    let queue = FixedLatencyDevice::queue(&clock, 10_000, 100_000);
    let (end, collected, _) = go(queue, constant(100.0), config(10 * SECOND));
    assert_eq!((end.started, end.ended, end.never_started), (1_000, 1_000, 0));
    assert_eq!((collected.window[0].operations, collected.totals[0].totals.operations), (0, 1_000));
    assert!(collected.totals[0].latency.max_ns().unwrap() >= 12 * SECOND);
}

#[test]
fn a_starved_stream_leaves_what_waited() {
    // No operation of this stream completes, so the record consists of exactly the 16 operations in
    // flight.
    let clock = VirtualClock::default();
    let mut queue = FixedLatencyDevice::queue(&clock, 16, 1_000_000);
    queue.device.stall = (0, 10_000 * SECOND);
    let drain_ns = 20 * SECOND;
    let (end, collected, rows) =
        go(queue, ClosedLoop::new(&[16], 0), DriveConfig { drain_ns, ..config(10 * SECOND) });
    assert_eq!((end.started, end.ended, end.abandoned), (16, 0, 16));
    let total = &collected.totals[0];
    assert_eq!((total.totals.operations, total.totals.counted()), (0, 16));
    assert_eq!(total.latency.quantile_ns(0.01), Some(30 * SECOND));
    assert!(rows.iter().all(|row| row.1 == 0));
}

mod pipelined;
mod random_latency;

/// Device that writes in 1 ms. After every `writes` writes, it flushes in 104 ms.
struct Journal {
    writes: u64,
    served: u64,
}

impl Device for Journal {
    fn done_ns(&mut self, now_ns: u64) -> u64 {
        self.served += 1;
        let is_flush = self.served.is_multiple_of(self.writes + 1);
        now_ns + if is_flush { 104_000_000 } else { 1_000_000 }
    }
}

/// Source that writes and flushes like a log. Its three classes are the write call, the flush call
/// and the durable write.
struct Log {
    writes: u32,
    given: u32,
}

impl Source for Log {
    fn callbacks(&self) -> SourceCallbacks {
        let durable = Some(DurableWriteClass { class: 2, every_writes: self.writes });
        SourceCallbacks { durable, ..SourceCallbacks::default() }
    }

    fn next(&mut self, _: u32) -> Option<Op> {
        self.given += 1;
        Some(match self.given.is_multiple_of(self.writes + 1) {
            true => Op { kind: OpKind::Flush, class: 1, ..IDLE.op },
            false => Op { kind: OpKind::Write, size_bytes: 2_300, ..IDLE.op },
        })
    }
}

/// Runs the log for 60 s. Returns the records of the three classes.
fn log_of<P: Pacing>(writes: u32, mut pacing: P) -> Collector {
    let device = Journal { writes: writes.into(), served: 0 };
    let mut queue = SimulatedQueue::new(&VirtualClock::default(), 1, device);
    let (inbox, mut ends) = connect(&[3]);
    let (outbox, _returns) = ends.remove(0);
    let mut collector = Collector::new(3, &[3], false);
    let (never, no) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
    let abort = AtomicBool::new(false);
    let stop = Stop { at_ns: &never, failed: &no, abort: &abort };
    let mut clock = queue.clock();
    let config = DriveConfig { classes: 3, ..config(60 * SECOND) };
    let mut source = Log { writes, given: 0 };
    drive(&mut queue, &mut source, &mut pacing, &mut clock, config, outbox, stop).1.unwrap();
    for mut snapshot in inbox.try_iter() {
        collector.take(&mut snapshot, &mut |_| ());
    }
    collector
}

#[test]
fn a_durable_write_lasts_to_the_end_of_its_flush() {
    let collected = log_of(1, ClosedLoop::new(&[1], 0));
    let [write, flush, durable] = &collected.totals[..] else { panic!("three classes") };
    let mean_ns = |class: &plimsoll_record::collect::ClassRecord| {
        class.totals.latency_ns_sum / class.totals.counted().max(1)
    };
    assert!((1_000_000..1_100_000).contains(&mean_ns(write)), "{}", mean_ns(write));
    assert!((104_000_000..104_100_000).contains(&mean_ns(flush)), "{}", mean_ns(flush));
    assert!(durable.totals.operations > 500);
    assert_eq!(durable.totals.operations, flush.totals.operations);
    let all_ns = durable.totals.latency_ns_sum / durable.totals.operations;
    assert!((104_500_000..106_000_000).contains(&all_ns), "{all_ns}");
    assert_eq!(durable.totals.bytes, 0, "the write call counts them");
}

#[test]
fn writes_that_share_a_flush_each_wait_for_it() {
    let collected = log_of(4, ClosedLoop::new(&[1], 0));
    let [write, flush, durable] = &collected.totals[..] else { panic!("three classes") };
    assert_eq!(durable.totals.operations, 4 * flush.totals.operations);
    assert_eq!(durable.totals.counted(), write.totals.operations, "each write is in one of both");
    // The latencies of the four writes are 108, 107, 106 and 105 ms.
    let mean_ns = durable.totals.latency_ns_sum / durable.totals.counted();
    assert!((105_500_000..107_500_000).contains(&mean_ns), "{mean_ns}");
    let max_ns = durable.latency.max_ns().unwrap();
    assert!((107_500_000..110_000_000).contains(&max_ns), "{max_ns}");
}

#[test]
fn an_open_loop_counts_from_the_writes_arrival_and_leaves_the_flushs_own_out() {
    let rate = Rate::per_s(4.0).unwrap();
    let schedule = Schedule::Constant { rate, warp: Warp::None };
    let collected = log_of(1, OpenLoop::new(vec![schedule.whole(1)], 1, 0));
    let durable = &collected.totals[2];
    let mean_ns = durable.totals.latency_ns_sum / durable.totals.operations.max(1);
    assert!((104_500_000..106_000_000).contains(&mean_ns), "250 ms apart: {mean_ns}");
    // This rate is higher than the device can sustain. Writes wait for earlier writes, and their
    // latency includes this wait.
    let rate = Rate::per_s(40.0).unwrap();
    let schedule = Schedule::Constant { rate, warp: Warp::None };
    let collected = log_of(1, OpenLoop::new(vec![schedule.whole(1)], 1, 0));
    let p99_ns = collected.totals[2].latency.quantile_ns(0.99).unwrap();
    assert!(p99_ns > 10 * SECOND, "{p99_ns}");
}
