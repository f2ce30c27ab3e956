//! Converts a run's progress and messages to events.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_plan::ResolvedPlan;
use plimsoll_record::progress::{Gate, Progress, Watcher};

use super::{Event, RunOutput};
use crate::finished_run::FinishedRun;
use crate::listener::{FleetProgress, Listener};

/// Minimum interval between two progress events.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Listener that sends events.
pub(super) struct EventSender<'a> {
    pub(super) events: &'a Sender<Event>,
    /// Plan of the runs; `None` if the runs have different plans.
    pub(super) plan: Option<&'a ResolvedPlan>,
    /// Decides when phases begin.
    pub(super) gate: Option<&'a dyn Gate>,
    /// Time of the last progress event.
    pub(super) last_progress: Option<Instant>,
}

impl EventSender<'_> {
    pub(super) fn send(&self, event: Event) {
        // Sending fails if the receiver no longer exists. The run still continues until it is
        // stopped.
        let _ = self.events.send(event);
    }

    /// Reports kept data and the experiment after the last run.
    pub(super) fn send_output(&mut self, (kept, experiment): RunOutput) {
        for directory in &kept {
            self.say(&format!("the data was kept in {directory}"));
        }
        if let Some(directory) = experiment {
            self.send(Event::ExperimentFinished { directory });
        }
    }
}

impl Watcher for EventSender<'_> {
    fn begins_at(&mut self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        self.gate.map_or(Some(ready_ns), |gate| gate.begins_at(kind, run_start_ns, ready_ns))
    }

    fn stop_reason(&self) -> Option<String> {
        self.gate.and_then(Gate::stop_reason)
    }

    fn begin(&mut self, kind: PhaseKind) {
        self.last_progress = None;
        let expected_ns = self.plan.map(|plan| &plan.phases).and_then(|phases| match kind {
            PhaseKind::Condition => Some(phases.condition_max_ns),
            PhaseKind::WarmUp => Some(phases.warm_up_ns),
            PhaseKind::Measure => Some(phases.measure_ns),
            _ => None,
        });
        self.send(Event::PhaseBegan { kind, expected_ns });
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        if self.last_progress.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            self.last_progress = Some(Instant::now());
            self.send(Event::Progress { kind, progress: *progress });
        }
    }

    fn rows(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.send(Event::Interval(row.clone())));
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        intervals.iter().for_each(|interval| self.send(Event::Latencies(interval.clone())));
    }

    fn end(&mut self, phase: &Phase) {
        self.send(Event::PhaseEnded(phase.clone()));
    }
}

impl Listener for EventSender<'_> {
    fn say(&mut self, text: &str) {
        self.send(Event::Note(text.to_owned()));
    }

    fn part(&mut self, text: &str) {
        self.send(Event::Part(text.to_owned()));
    }

    fn warn(&mut self, text: &str) {
        self.send(Event::Warning(text.to_owned()));
    }

    fn fleet(&mut self, now: &FleetProgress) {
        self.send(Event::Fleet(now.clone()));
    }

    fn event(&mut self, record: &EventRecord) {
        self.send(Event::Planned(record.clone()));
    }

    fn finished(&mut self, run: &FinishedRun) {
        finished_events(run).into_iter().for_each(|event| self.send(event));
    }
}

/// Returns the events of a finished run: its findings, then its verdict.
pub fn finished_events(run: &FinishedRun) -> Vec<Event> {
    let FinishedRun { directory, verdict, kept, .. } = run;
    let findings = verdict.findings.iter().map(|finding| Event::Finding(finding.clone()));
    let (directory, kept) = (directory.clone(), kept.clone());
    let ended = Event::Finished { directory, verdict: Box::new(verdict.clone()), kept };
    findings.chain([ended]).collect()
}
