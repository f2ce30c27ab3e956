//! Work of the writer's thread: it receives the snapshots of the driving threads, and returns their
//! empty boxes.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use plimsoll_record::collect::{Collector, Interval};
use plimsoll_record::snapshot::IntervalRecorder;

use super::driving_threads::DrivingThreads;
use super::outbox::SnapshotReturns;

/// Maximum time after which the listener receives the next event.
const TICK: Duration = Duration::from_millis(20);

/// Events that the calling thread receives during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// All threads are ready to start. The listener may postpone the start of the load.
    Ready {
        /// Time at which the load starts (`CLOCK_MONOTONIC`).
        start_ns: &'a mut u64,
    },
    /// The start time of the load can no longer change.
    Starts {
        /// Time at which the measurement starts (`CLOCK_MONOTONIC`).
        measure_from_ns: u64,
    },
    /// All threads have sent their records of an interval.
    Row(&'a Interval),
    /// A short time (`TICK`) has passed since the previous event.
    Tick,
}

/// Receives snapshots until every thread has sent its last snapshot. Calls `on_event` for each
/// complete row and for each tick. Also returns if all threads have ended or were abandoned.
pub(super) fn collect<L: Send + 'static>(
    collector: &mut Collector,
    inbox: &Receiver<Box<IntervalRecorder>>,
    returns: &[SnapshotReturns],
    threads: &mut DrivingThreads<L>,
    on_event: &mut dyn FnMut(Event<'_>),
) {
    while !collector.is_complete() {
        match inbox.recv_timeout(TICK) {
            Ok(mut records) => {
                let group = records.snapshot.thread as usize;
                threads.record_message(group, records.snapshot.last);
                collector.take(&mut records, &mut |row| on_event(Event::Row(row)));
                if let Some(back) = returns.get(group) {
                    back.return_box(records);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        on_event(Event::Tick);
        if threads.poll_finished() {
            inbox.try_iter().for_each(|mut records| {
                collector.take(&mut records, &mut |row| on_event(Event::Row(row)));
            });
            break;
        }
    }
    collector.finish(&mut |row| on_event(Event::Row(row)));
}
