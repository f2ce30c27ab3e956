//! Makes each phase of a run wait until the coordinator has set its start time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress;
use tokio::sync::mpsc::UnboundedSender;

use crate::message::{AgentMessage, PhaseStart};

/// Gate that the phases of one run must pass.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    outbox: UnboundedSender<AgentMessage>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of phases that have reached the gate.
    phase_count: u32,
    /// The phase that is waiting, and the time at which it was ready.
    waiting: Option<(PhaseKind, u64)>,
    /// The latest start time from the coordinator, with the number of the phase to which it
    /// applies.
    scheduled: Option<(u32, u64)>,
    /// True once the run must stop: phases no longer wait.
    open: bool,
    /// Reason why the coordinator stopped the run.
    stop_reason: Option<String>,
    run_start_ns: Option<u64>,
    starts: Vec<PhaseStart>,
}

impl Gate {
    /// Creates a gate that reports waiting phases through `outbox`.
    pub(super) fn new(outbox: UnboundedSender<AgentMessage>) -> Self {
        Self { state: Mutex::default(), outbox }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the start time of a phase.
    pub(super) fn schedule(&self, number: u32, at_ns: u64) {
        self.state().scheduled = Some((number, at_ns));
    }

    /// Lets all phases pass without waiting from now on.
    pub(super) fn open(&self) {
        self.state().open = true;
    }

    /// Lets all phases pass, because the coordinator has stopped the run.
    pub(super) fn stop(&self, reason: &str) {
        let mut state = self.state();
        state.open = true;
        state.stop_reason = Some(format!("the coordinator ({reason})"));
    }

    /// Returns true if a phase is waiting for its start time.
    pub(super) fn is_waiting(&self) -> bool {
        let state = self.state();
        state.waiting.is_some() && !state.open
    }

    /// Returns the start of the run, and the phases that have passed the gate.
    pub(super) fn timing(&self) -> (Option<u64>, Vec<PhaseStart>) {
        let state = self.state();
        (state.run_start_ns, state.starts.clone())
    }
}

impl progress::Gate for Gate {
    fn stop_reason(&self) -> Option<String> {
        self.state().stop_reason.clone()
    }

    fn begins_at(&self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        let mut state = self.state();
        state.run_start_ns = Some(run_start_ns);
        if state.open {
            return Some(ready_ns);
        }
        if state.waiting.is_none_or(|(waits, _)| waits != kind) {
            state.phase_count += 1;
            state.waiting = Some((kind, ready_ns));
            let number = state.phase_count;
            // Sending fails only if the run is about to stop, so the error is ignored.
            let _ = self.outbox.send(AgentMessage::Ready { kind, number, run_start_ns, ready_ns });
        }
        let (_, at_ns) = state.scheduled.filter(|(number, _)| *number == state.phase_count)?;
        let (kind, ready_ns) = state.waiting.take()?;
        state.starts.push(PhaseStart { kind, ready_ns, scheduled_ns: at_ns });
        Some(at_ns)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_record::progress::Gate as _;

    use super::*;

    #[test]
    fn a_phase_waits_for_its_own_start_time_and_requests_it_once() {
        let (outbox, mut inbox) = tokio::sync::mpsc::unbounded_channel();
        let gate = Gate::new(outbox);
        assert_eq!(gate.begins_at(PhaseKind::Create, 10, 20), None);
        assert_eq!(gate.begins_at(PhaseKind::Create, 10, 25), None);
        gate.schedule(1, 100);
        assert_eq!(gate.begins_at(PhaseKind::Create, 10, 30), Some(100));
        assert_eq!(gate.begins_at(PhaseKind::WarmUp, 10, 200), None, "that was another's leave");
        gate.schedule(2, 300);
        assert_eq!(gate.begins_at(PhaseKind::WarmUp, 10, 210), Some(300));
        let sent = std::iter::from_fn(|| inbox.try_recv().ok());
        let numbers: Vec<u32> = sent
            .map(|message| match message {
                AgentMessage::Ready { number, .. } => number,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(numbers, [1, 2]);
        let (start, starts) = gate.timing();
        assert_eq!(start, Some(10));
        assert_eq!((starts[1].ready_ns, starts[1].scheduled_ns), (200, 300));
        gate.open();
        assert_eq!(gate.begins_at(PhaseKind::Verify, 10, 400), Some(400));
    }
}
