//! Records the operations of a thread that have not completed when the thread ends
//! ([`plimsoll_record::drain`]).

use plimsoll_record::snapshot::IntervalRecorder;
use plimsoll_sys::op::OpKind;

use super::{Driver, cell_of};
use crate::backend::Queue;
use crate::stream::pacing::Pacing;
use crate::stream::source::Source;
use crate::timer::Timer;

impl<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer> Driver<'_, Q, S, P, T> {
    /// Records the operations that have not completed, and the operations that were due before the
    /// stop but never started. The waiting time of each operation so far is a lower limit of its
    /// latency.
    pub(super) fn record_unfinished(&mut self, records: &mut IntervalRecorder, ended_ns: u64) {
        self.record_unflushed(records, ended_ns);
        let Self { source, pacing, in_flight, config, end, queue, callbacks, .. } = self;
        let scheduled = self.scheduled;
        let places = (0u64..).zip(in_flight.iter_mut());
        for (place, issued) in places.filter(|(_, issued)| issued.in_flight) {
            issued.in_flight = false;
            end.abandoned += 1;
            // An operation that was never submitted has no service time.
            let submitted_ns = issued.submitted_ns;
            let from_ns = if scheduled { issued.intended_ns } else { submitted_ns };
            let cell = |class| cell_of(issued.client, class, config);
            let waited_ns = |from_ns: u64| ended_ns.saturating_sub(from_ns);
            records.abandon(cell(issued.op.class), waited_ns(from_ns), waited_ns(submitted_ns));
            let Some(first) = callbacks.first_byte.filter(|_| issued.op.kind == OpKind::Read)
            else {
                continue;
            };
            let cell = cell(first.class);
            match queue.first_byte_ns(place) {
                Some(at_ns) => {
                    let took_ns = |from_ns: u64| at_ns.saturating_sub(from_ns);
                    records.record(cell, 0, took_ns(from_ns), took_ns(submitted_ns));
                }
                None => records.abandon(cell, waited_ns(from_ns), waited_ns(submitted_ns)),
            }
        }
        pacing.never_started(&mut |client, intended_ns| {
            let Some(class) = source.never_started(client) else { return };
            end.never_started += 1;
            end.lag_end_ns = end.lag_end_ns.max(ended_ns.saturating_sub(intended_ns));
            let first = callbacks.first_byte.filter(|first| first.reads == class);
            for class in [Some(class), first.map(|first| first.class)].into_iter().flatten() {
                let waited_ns = ended_ns.saturating_sub(intended_ns);
                records.never_start(cell_of(client, class, config), waited_ns);
            }
        });
    }
}
