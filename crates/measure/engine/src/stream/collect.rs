//! Writer's thread: receives the driving threads' snapshots and returns them empty.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use plimsoll_record::collect::{Collector, Interval};
use plimsoll_record::snapshot::IntervalRecorder;

use super::driving_threads::DrivingThreads;
use super::outbox::SnapshotReturns;

/// Longest time between two events to the listener.
const TICK: Duration = Duration::from_millis(20);

/// Event that the calling thread receives during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// All threads are ready and would start at this time (`CLOCK_MONOTONIC`). The listener may
    /// postpone the start.
    Ready {
        /// Time of the start.
        start_ns: &'a mut u64,
    },
    /// The start is fixed: the measurement starts at this time (`CLOCK_MONOTONIC`).
    Starts {
        /// Time of the start of the measurement.
        measure_from_ns: u64,
    },
    /// An interval is complete.
    Row(&'a Interval),
    /// The tick interval has passed.
    Tick,
}

/// Receives snapshots until every thread has sent its last one, and reports finished rows and ticks
/// to `on_event`. Also ends if all threads have ended or are abandoned.
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
