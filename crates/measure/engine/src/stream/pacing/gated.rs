//! Pacing of a stream that starts when an event happens. The stream may end when the event is
//! undone.
//!
//! The clock of the inner pacing starts when the gate opens. Until then, the thread checks the gate
//! every few milliseconds.

use std::sync::Arc;

use plimsoll_workload::planned::gate::StreamGate;

use super::{Pacing, Start};

/// Interval at which a thread checks whether its gate has opened.
const POLL_NS: u64 = 5_000_000;

/// Pacing that starts when its gate opens. See the module documentation.
pub struct Gated<P> {
    gate: Arc<StreamGate>,
    inner: P,
    /// Time at which the stream started; `None` if its event has not happened yet.
    from_ns: Option<u64>,
    is_closed: bool,
    is_stopped: bool,
    polled_ns: u64,
}

impl<P: Pacing> Gated<P> {
    /// Creates a pacing that uses `inner` after the gate has opened. The clock of `inner` starts at
    /// 0 when the gate opens.
    #[must_use]
    pub fn new(gate: Arc<StreamGate>, inner: P, now_ns: u64) -> Self {
        Self { gate, inner, from_ns: None, is_closed: false, is_stopped: false, polled_ns: now_ns }
    }

    /// Returns the time at which the stream started, if the stream is running.
    fn running_since_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.from_ns.is_none() {
            self.from_ns = self.gate.from_ns();
        }
        let from_ns = self.from_ns.filter(|from_ns| *from_ns <= now_ns)?;
        if !self.is_closed
            && let Some(to_ns) = self.gate.to_ns().filter(|to_ns| *to_ns <= now_ns)
        {
            self.inner.stop(to_ns.saturating_sub(from_ns));
            self.is_closed = true;
        }
        Some(from_ns)
    }
}

impl<P: Pacing> Pacing for Gated<P> {
    fn is_scheduled(&self) -> bool {
        self.inner.is_scheduled()
    }

    fn next(&mut self, now_ns: u64) -> Option<Start> {
        self.polled_ns = now_ns;
        let from_ns = self.running_since_ns(now_ns)?;
        let start = self.inner.next(now_ns - from_ns)?;
        Some(Start { intended_ns: start.intended_ns.saturating_add(from_ns), ..start })
    }

    fn due_ns(&self) -> Option<u64> {
        let poll_ns = (!self.is_stopped).then_some(self.polled_ns.saturating_add(POLL_NS));
        let Some(from_ns) = self.from_ns else { return poll_ns };
        match self.inner.due_ns() {
            Some(due_ns) => Some(due_ns.saturating_add(from_ns)),
            // A closed loop waits for a completion. If the event is undone, the run continues
            // without this stream.
            None if self.is_closed => poll_ns,
            None => None,
        }
    }

    fn prepare(&mut self) {
        self.inner.prepare();
    }

    fn completed(&mut self, place: u32, now_ns: u64) {
        self.inner.completed(place, now_ns.saturating_sub(self.from_ns.unwrap_or(0)));
    }

    fn retire(&mut self, start: Start) {
        self.inner.retire(start);
    }

    fn stop(&mut self, stop_ns: u64) {
        self.is_stopped = true;
        // If the event never happened, no operation of this stream was due.
        let since_ns = self.from_ns.map_or(0, |from_ns| stop_ns.saturating_sub(from_ns));
        self.inner.stop(since_ns);
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        let Some(from_ns) = self.from_ns else { return };
        self.inner.never_started(&mut |client, due_ns| each(client, due_ns + from_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClosedLoop;
    use super::*;

    #[test]
    fn starts_at_its_event_ends_at_its_undo_and_never_ends_the_thread_early() {
        let gate = Arc::new(StreamGate::default());
        let mut gated = Gated::new(Arc::clone(&gate), ClosedLoop::new(&[2], 0), 1_000);
        assert_eq!(gated.next(2_000), None);
        assert_eq!(gated.due_ns(), Some(2_000 + POLL_NS), "the thread looks again");
        gate.open_at(10_000);
        assert_eq!(gated.next(9_000), None);
        let start = gated.next(10_500).unwrap();
        assert_eq!((start.intended_ns, start.place), (10_000, 0));
        assert!(gated.next(10_500).is_some());
        assert_eq!((gated.next(10_500), gated.due_ns()), (None, None), "waits for a completion");
        gated.completed(0, 11_000);
        assert_eq!(gated.next(11_000).map(|start| start.intended_ns), Some(11_000));
        gate.close_at(20_000);
        gated.completed(0, 20_000);
        assert_eq!(gated.next(20_000), None);
        assert_eq!(gated.due_ns(), Some(20_000 + POLL_NS), "the run goes on");
        gated.stop(30_000);
        assert_eq!(gated.due_ns(), None);
    }

    #[test]
    fn a_stream_whose_event_never_happened_has_missed_nothing() {
        let inner = super::super::OpenLoop::new(vec![(0..9).map(|i| i * 10)], 1, 0);
        let mut gated = Gated::new(Arc::new(StreamGate::default()), inner, 0);
        assert_eq!(gated.next(500), None);
        gated.stop(1_000);
        let mut missed = 0;
        gated.never_started(&mut |_, _| missed += 1);
        assert_eq!((missed, gated.due_ns()), (0, None));
    }
}
