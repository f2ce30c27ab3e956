//! A listener that adds up what it is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_record::progress::{Progress, Watcher};

use super::state::State;
use crate::finished::Finished;
use crate::listener::{FleetNow, Listener};
use crate::run::{Event, events_of};

/// What was told so far, shared with those who look.
#[derive(Clone, Debug)]
pub struct Told {
    state: Arc<Mutex<State>>,
    /// When the phase began, where only its rates are told.
    phase_began: Instant,
    /// When this began to listen, and when a fleet told of itself last.
    began: Instant,
    fleet_told: Instant,
}

impl Told {
    /// Nothing yet, of a plan that is started now.
    pub fn new(plan: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let state = Arc::new(Mutex::new(State::new(plan, now_ns)));
        let now = Instant::now();
        Self { state, phase_began: now, began: now, fleet_told: now }
    }

    fn goes(&mut self, kind: PhaseKind, progress: Progress) {
        let is_known =
            |state: &State| state.phase.as_ref().is_some_and(|phase| phase.kind == kind.label());
        if !is_known(&self.now()) {
            self.phase_began = Instant::now();
            self.begin(kind);
        }
        // Who tells rates alone does not say how long the phase goes on.
        let since_ns = u64::try_from(self.phase_began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let elapsed_ns = if progress.elapsed_ns > 0 { progress.elapsed_ns } else { since_ns };
        self.progress(kind, &Progress { elapsed_ns, ..progress });
    }

    /// A sentence, or what has to be known.
    pub fn note(&self, is_warning: bool, text: &str) {
        let text = text.to_owned();
        self.now().take(if is_warning { Event::Warning(text) } else { Event::Note(text) });
    }

    /// It as it is now. Whoever holds it holds the run's listener up: look, and let go.
    pub fn now(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Told {
    fn begin(&mut self, kind: PhaseKind) {
        // How long it lasts comes with its progress.
        self.now().take(Event::PhaseBegan { kind, expected_ns: None });
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        self.now().take(Event::Progress { kind, progress: *progress });
    }

    fn rows(&mut self, rows: &[Row]) {
        let mut state = self.now();
        rows.iter().for_each(|row| state.take(Event::Interval(row.clone())));
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        let mut state = self.now();
        intervals.iter().for_each(|interval| state.latencies(interval));
    }

    fn end(&mut self, phase: &Phase) {
        self.now().take(Event::PhaseEnded(phase.clone()));
    }
}

impl Listener for Told {
    fn say(&mut self, text: &str) {
        self.note(false, text);
    }

    fn warn(&mut self, text: &str) {
        self.note(true, text);
    }

    fn part(&mut self, text: &str) {
        self.now().take(Event::Part(text.to_owned()));
    }

    fn fleet(&mut self, now: &FleetNow) {
        if let Some(kind) = now.kind {
            self.goes(kind, now.progress());
        }
        let ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (at_ns, duration_ns) = (ns(self.began), ns(self.fleet_told));
        self.fleet_told = Instant::now();
        self.now().fleet(&now.hosts, at_ns, duration_ns);
    }

    fn finished(&mut self, run: &Finished) {
        let mut state = self.now();
        events_of(run).into_iter().for_each(|event| state.take(event));
    }
}
