//! Stream driver, with its real clock and a concurrent writer, over any queue.

use std::sync::atomic::{AtomicBool, AtomicU64};

use plimsoll_engine::backend::Queue;
use plimsoll_engine::stream::drive::{DriveConfig, DriveEnd, Stop, drive};
use plimsoll_engine::stream::outbox::connect;
use plimsoll_engine::stream::pacing::Pacing;
use plimsoll_engine::stream::source::{Op, Source};
use plimsoll_record::collect::Collector;
use plimsoll_sys::clock::{Clock, sleep_until_ns};
use plimsoll_sys::op::OpKind;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Longer than the time of any operation that has not failed.
const TIMEOUT_NS: u64 = 600_000_000_000;

/// Source of identical reads.
struct IdenticalReads;

impl Source for IdenticalReads {
    fn next(&mut self, _: u32) -> Option<Op> {
        let (class, file, offset_bytes, tag) = (0, 0, 0, 0);
        Some(Op { kind: OpKind::Read, class, file, offset_bytes, size_bytes: 4096, tag })
    }
}

/// Allows the thread to run on any CPU: it inherits the driver's pinning.
fn unpin() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // If the kernel refuses, the thread continues and uses a few microseconds of each second.
    let _ = sched_setaffinity(None, &all);
}

/// Drives reads from `start_ns` until `stop_ns`, all of it measured, and returns the report.
/// `spin_ns` is the time before a start in which the driver watches the clock. `wait_spin_ns` is
/// the time for which it polls for completions.
///
/// # Errors
/// The queue fails, or an operation does not finish.
pub fn report<Q: Queue, P: Pacing>(
    queue: &mut Q,
    mut pacing: P,
    (start_ns, stop_ns): (u64, u64),
    (spin_ns, wait_spin_ns): (u64, u64),
) -> Result<Collector, String> {
    let config = DriveConfig {
        measure_from_ns: start_ns,
        stop_ns,
        drain_ns: TIMEOUT_NS,
        backlog_ns: TIMEOUT_NS,
        interval_ns: 1_000_000_000,
        spin_ns,
        wait_spin_ns,
        operations_max: u64::MAX,
        classes: 1,
        buffer_stride_bytes: 4096,
        carry_on: false,
        outage_max_ns: TIMEOUT_NS,
    };
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, returns) = ends.remove(0);
    let writer = std::thread::spawn(move || {
        unpin();
        let mut collector = Collector::new(1, &[1], false);
        while !collector.is_complete()
            && let Ok(mut snapshot) = inbox.recv()
        {
            collector.take(&mut snapshot, &mut |_| ());
            returns.return_box(snapshot);
        }
        collector.finish(&mut |_| ());
        collector
    });
    let (never, failed) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
    let abort = AtomicBool::new(false);
    let stop = Stop { at_ns: &never, failed: &failed, abort: &abort };
    let mut clock = Clock::new();
    sleep_until_ns(start_ns);
    let (end, outcome) =
        drive(queue, &mut IdenticalReads, &mut pacing, &mut clock, config, outbox, stop);
    outcome.map_err(|error| error.to_string())?;
    let DriveEnd { abandoned, never_started, .. } = end;
    if abandoned + never_started > 0 {
        return Err(format!(
            "{abandoned} operations did not come back, {never_started} began never"
        ));
    }
    writer.join().map_err(|_| "the writer panicked".to_owned())
}
