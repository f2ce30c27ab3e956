//! What a run says as events.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_plan::ResolvedPlan;
use plimsoll_record::progress::{Gate, Progress, Watcher};

use super::{Event, Left};
use crate::finished::Finished;
use crate::listener::Listener;

/// How far a phase is, is told this often at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Makes events of what a run says.
pub(super) struct Teller<'a> {
    pub(super) events: &'a Sender<Event>,
    /// The plan of the runs, where there is one.
    pub(super) plan: Option<&'a ResolvedPlan>,
    /// Says when phases begin.
    pub(super) gate: Option<&'a dyn Gate>,
    /// When progress was told last.
    pub(super) told: Option<Instant>,
}

impl Teller<'_> {
    pub(super) fn tell(&self, event: Event) {
        // Whoever listened may have gone: the run goes on until it is asked to end.
        let _ = self.events.send(event);
    }

    /// Tells what is left when all has ended.
    pub(super) fn left(&mut self, (kept, together): Left) {
        for directory in &kept {
            self.say(&format!("the data was kept in {directory}"));
        }
        if let Some(directory) = together {
            self.tell(Event::Together { directory });
        }
    }
}

impl Watcher for Teller<'_> {
    fn begins_at(&mut self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        self.gate.map_or(Some(ready_ns), |gate| gate.begins_at(kind, run_start_ns, ready_ns))
    }

    fn begin(&mut self, kind: PhaseKind) {
        self.told = None;
        let expected_ns = self.plan.map(|plan| &plan.phases).and_then(|phases| match kind {
            PhaseKind::Condition => Some(phases.condition_max_ns),
            PhaseKind::WarmUp => Some(phases.warm_up_ns),
            PhaseKind::Measure => Some(phases.measure_ns),
            _ => None,
        });
        self.tell(Event::PhaseBegan { kind, expected_ns });
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
            self.told = Some(Instant::now());
            self.tell(Event::Progress { kind, progress: *progress });
        }
    }

    fn rows(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.tell(Event::Interval(row.clone())));
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        intervals.iter().for_each(|interval| self.tell(Event::Latencies(interval.clone())));
    }

    fn end(&mut self, phase: &Phase) {
        self.tell(Event::PhaseEnded(phase.clone()));
    }
}

impl Listener for Teller<'_> {
    fn say(&mut self, text: &str) {
        self.tell(Event::Note(text.to_owned()));
    }

    fn part(&mut self, text: &str) {
        self.tell(Event::Part(text.to_owned()));
    }

    fn warn(&mut self, text: &str) {
        self.tell(Event::Warning(text.to_owned()));
    }

    fn finished(&mut self, run: &Finished) {
        events_of(run).into_iter().for_each(|event| self.tell(event));
    }
}

/// What is told of a run that has ended and was judged: its findings, then its verdict.
pub(crate) fn events_of(run: &Finished) -> Vec<Event> {
    let Finished { directory, verdict, kept, .. } = run;
    let findings = verdict.findings.iter().map(|finding| Event::Finding(finding.clone()));
    let (directory, kept) = (directory.clone(), kept.clone());
    let ended = Event::Finished { directory, verdict: Box::new(verdict.clone()), kept };
    findings.chain([ended]).collect()
}
