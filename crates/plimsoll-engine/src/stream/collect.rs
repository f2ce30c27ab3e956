//! The writer's thread: takes the threads' snapshots as they come and hands them back empty.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use plimsoll_record::cells::Snapshot;
use plimsoll_record::collect::{Collector, Interval};

use super::handover::Returns;

/// The longest time without a word to whoever listens.
const TICK: Duration = Duration::from_millis(20);

/// What the calling thread is told while a run goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// All threads are ready, and would start then: the start may be put off (`CLOCK_MONOTONIC`).
    Ready {
        /// When.
        start_ns: &'a mut u64,
    },
    /// The threads are told: the measurement will start then (`CLOCK_MONOTONIC`).
    Starts {
        /// When.
        measure_from_ns: u64,
    },
    /// An interval is complete.
    Row(&'a Interval),
    /// A moment has passed.
    Tick,
}

/// Takes snapshots until every thread has handed in its last, and tells `hear` of each finished row
/// and of time that passes. Ends as well when all threads are gone, or `over` says so.
pub fn collect(
    collector: &mut Collector,
    inbox: &Receiver<Box<Snapshot>>,
    returns: &[Returns],
    hear: &mut dyn FnMut(Event<'_>),
    over: &mut dyn FnMut() -> bool,
) {
    while !collector.is_complete() {
        match inbox.recv_timeout(TICK) {
            Ok(mut snapshot) => {
                let group = snapshot.group as usize;
                collector.take(&mut snapshot, &mut |row| hear(Event::Row(row)));
                if let Some(back) = returns.get(group) {
                    back.give(snapshot);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        hear(Event::Tick);
        if over() {
            inbox.try_iter().for_each(|mut snapshot| {
                collector.take(&mut snapshot, &mut |row| hear(Event::Row(row)));
            });
            break;
        }
    }
    collector.finish(&mut |row| hear(Event::Row(row)));
}
