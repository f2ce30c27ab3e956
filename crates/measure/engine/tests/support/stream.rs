//! Runs the stream driver with any queue, on its real clock, with a concurrent writer.

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

/// No operation takes longer than this unless it has failed.
const TIMEOUT_NS: u64 = 600_000_000_000;

/// Source of identical reads.
struct IdenticalReads;

impl Source for IdenticalReads {
    fn next(&mut self, _: u32) -> Option<Op> {
        let (class, file, offset_bytes, tag) = (0, 0, 0, 0);
        Some(Op { kind: OpKind::Read, class, file, offset_bytes, size_bytes: 4096, tag })
    }
}

/// Allows the writer's thread, which inherits the driver's pinning, to run on any CPU.
fn unpin() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // If the kernel refuses, the writer stays on the driver's CPU. It needs only a few microseconds
    // each second.
    let _ = sched_setaffinity(None, &all);
}

/// Drives reads from `start_ns` to `stop_ns`, measures all this time, and returns the report. The
/// driver watches the clock for `spin_ns` before each start. It polls for completions for
/// `wait_spin_ns`.
///
/// # Errors
/// Returns an error if the queue fails, or if an operation does not complete.
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
