//! Listener that updates the live state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::listener::{FleetProgress, Listener};
use plimsoll_runner::run::{Event, finished_events};

use crate::state::State;

/// Listener that updates a shared [`State`].
#[derive(Clone, Debug)]
pub struct StateListener {
    state: Arc<Mutex<State>>,
    /// Start time of the phase. It is needed because fleets report only rates.
    phase_began: Instant,
    /// Time at which this listener was created.
    created: Instant,
    /// Time of the last report of a fleet.
    last_fleet_report: Instant,
}

impl StateListener {
    /// Creates the state of a plan that starts now.
    pub fn new(plan: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self::of(Arc::new(Mutex::new(State::new(plan, now_ns))))
    }

    /// Updates an existing state of a run that starts now.
    pub fn of(state: Arc<Mutex<State>>) -> Self {
        let now = Instant::now();
        Self { state, phase_began: now, created: now, last_fleet_report: now }
    }

    fn update_phase(&mut self, kind: PhaseKind, progress: Progress) {
        let is_known =
            |state: &State| state.phase.as_ref().is_some_and(|phase| phase.kind == kind.label());
        if !is_known(&self.state()) {
            self.phase_began = Instant::now();
            self.begin(kind);
        }
        // A fleet reports only rates, not the elapsed time.
        let since_ns = u64::try_from(self.phase_began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let elapsed_ns = if progress.elapsed_ns > 0 { progress.elapsed_ns } else { since_ns };
        self.progress(kind, &Progress { elapsed_ns, ..progress });
    }

    /// Adds a message or warning.
    pub fn note(&self, is_warning: bool, text: &str) {
        let text = text.to_owned();
        self.state().apply(if is_warning { Event::Warning(text) } else { Event::Note(text) });
    }

    /// Locks and returns the state. While the lock is held, the run's listener is blocked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for StateListener {
    fn begin(&mut self, kind: PhaseKind) {
        // The duration of the phase is taken from the progress reports.
        self.state().apply(Event::PhaseBegan { kind, expected_ns: None });
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        self.state().apply(Event::Progress { kind, progress: *progress });
    }

    fn rows(&mut self, rows: &[Row]) {
        let mut state = self.state();
        rows.iter().for_each(|row| state.apply(Event::Interval(row.clone())));
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        let mut state = self.state();
        intervals.iter().for_each(|interval| state.latencies(interval));
    }

    fn end(&mut self, phase: &Phase) {
        self.state().apply(Event::PhaseEnded(phase.clone()));
    }
}

impl Listener for StateListener {
    fn say(&mut self, text: &str) {
        self.note(false, text);
    }

    fn warn(&mut self, text: &str) {
        self.note(true, text);
    }

    fn part(&mut self, text: &str) {
        self.state().apply(Event::Part(text.to_owned()));
    }

    fn fleet(&mut self, now: &FleetProgress) {
        if let Some(kind) = now.kind {
            self.update_phase(kind, now.progress());
        }
        let ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (at_ns, duration_ns) = (ns(self.created), ns(self.last_fleet_report));
        self.last_fleet_report = Instant::now();
        self.state().fleet(&now.hosts, at_ns, duration_ns);
    }

    fn finished(&mut self, run: &FinishedRun) {
        let mut state = self.state();
        finished_events(run).into_iter().for_each(|event| state.apply(event));
    }
}
