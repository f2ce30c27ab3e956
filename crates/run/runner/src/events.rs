//! Events of a plan: commands, prompts and gates of streams, executed by a separate thread during
//! the measured phase ([`EventThread`]).
//!
//! [`EventListener`] forwards all reports. When the measured phase begins, it starts the thread.
//! When the phase ends, it stops the thread. The thread then undoes all actions that were not
//! undone yet. On a fleet, each host executes the events assigned to it, and the coordinator
//! executes all other events.

pub(crate) mod command;
mod schedule;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_plan::{Event, ResolvedPlan};
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::planned::gate::StreamGate;

use self::schedule::{Schedule, StepReporter};
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::{FleetProgress, Listener};
use crate::prompt::Operator;

/// One entry for each stream: the gate that starts the stream, if it starts at an event.
pub(crate) type StreamGates = Vec<Option<Arc<StreamGate>>>;

/// Returns the gates of a plan's streams.
pub(crate) fn gates(plan: &ResolvedPlan) -> StreamGates {
    let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let gate = |starts: &Option<String>| starts.as_ref().map(|_| Arc::default());
    streams.iter().map(|stream| gate(&stream.start_event)).collect()
}

/// Checks that someone can answer the prompts of a plan: on the terminal, or on the page of the
/// server that starts it.
///
/// # Errors
/// The plan has prompts, but there is neither a terminal nor a page.
pub fn check_operator(plan: &ResolvedPlan, has_page: bool) -> Result<(), RunnerError> {
    match plan.events.iter().find(|event| event.prompt.is_some()) {
        Some(event) if !has_page && !std::io::stdin().is_terminal() => {
            let says =
                format!("event \"{}\" needs an operator, but there is no terminal", event.name);
            Err(RunnerError::usage(says).hint(
                "run the plan in a terminal or from the page of `plimsoll serve`, or replace \
                 `prompt` by `run` in the event",
            ))
        }
        _ => Ok(()),
    }
}

/// Function that stores the record of an event before the event's next step is executed.
pub type StepWriter = Box<dyn FnMut(&EventRecord) -> std::io::Result<()> + Send>;

/// Message from an [`EventThread`].
#[derive(Clone, Debug)]
pub enum EventNews {
    /// Message for the user.
    Text(String),
    /// Record of an event, sent when its command or undo has started or ended. Times are on the
    /// driver's clock.
    Record(EventRecord),
}

/// Thread that executes the events of a measured phase.
#[derive(Debug)]
pub struct EventThread {
    stop: Arc<AtomicBool>,
    news: Receiver<EventNews>,
    thread: Option<JoinHandle<Vec<EventRecord>>>,
}

impl EventThread {
    /// Starts the events of a phase on a host that runs no streams itself. `writer` receives each
    /// step before it is executed. If `earlier` has the records of a process that was killed, the
    /// thread continues where that process ended.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_without_streams(
        plan: &ResolvedPlan,
        start_ns: u64,
        operator: Operator,
        earlier: Option<&[EventRecord]>,
        writer: StepWriter,
    ) -> Result<Self, RunnerError> {
        let (sender, news) = channel();
        let steps = StepReporter::new(sender, Some(writer));
        let mut schedule = Schedule::new(plan, &[], start_ns, operator, steps);
        if let Some(earlier) = earlier {
            schedule.resume(earlier);
        }
        Self::spawn(schedule, news).map_err(|error| {
            RunnerError::environment(format!(
                "cannot start the thread that executes events: {error}"
            ))
        })
    }

    fn start(
        plan: &ResolvedPlan,
        gates: &StreamGates,
        start_ns: u64,
        operator: Operator,
    ) -> std::io::Result<Self> {
        let (sender, news) = channel();
        let steps = StepReporter::new(sender, None);
        Self::spawn(Schedule::new(plan, gates, start_ns, operator, steps), news)
    }

    fn spawn(schedule: Schedule, news: Receiver<EventNews>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("events".to_owned());
        let thread = Some(thread.spawn(move || schedule.carry_out(&flag))?);
        Ok(Self { stop, news, thread })
    }

    /// Returns the messages that arrived since the last call.
    pub fn news(&self) -> Vec<EventNews> {
        self.news.try_iter().collect()
    }

    /// Makes the thread end the events, like [`Self::stop`], but does not wait for it.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the events, and undoes those that were not undone yet. The first call returns all
    /// records, later calls return none.
    pub fn stop(&mut self) -> Vec<EventRecord> {
        self.request_stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for EventThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a record for each event of the plan, which states that the event did not happen and why.
#[must_use]
pub fn missed_events(plan: &ResolvedPlan, reason: &str) -> Vec<EventRecord> {
    let record = |event: &Event| EventRecord {
        name: event.name.clone(),
        missed: reason.to_owned(),
        ..EventRecord::default()
    };
    plan.events.iter().map(record).collect()
}

/// Listener that executes the events of a plan. See the description of the module.
pub(crate) struct EventListener<'a> {
    inner: &'a mut dyn Listener,
    plan: &'a ResolvedPlan,
    gates: StreamGates,
    /// Connection to the run's operator; moved into the thread when the events start.
    operator: Option<Operator>,
    thread: Option<EventThread>,
    /// Records with times on the driver's clock.
    records: Vec<EventRecord>,
}

impl<'a> EventListener<'a> {
    pub(crate) fn new(
        plan: &'a ResolvedPlan,
        gates: StreamGates,
        operator: Operator,
        inner: &'a mut dyn Listener,
    ) -> Self {
        let (operator, thread, records) = (Some(operator), None, Vec::new());
        Self { inner, plan, gates, operator, thread, records }
    }

    /// Stops the thread, and returns the events with times since the start of the run.
    pub(crate) fn finish(mut self, run_start_ns: u64) -> Vec<EventRecord> {
        self.stop();
        let mut records = std::mem::take(&mut self.records);
        if records.is_empty() {
            return missed_events(self.plan, "the run ended before the measurement started");
        }
        records
            .iter_mut()
            .for_each(|record| record.map_times(|ns| ns.saturating_sub(run_start_ns)));
        records
    }

    fn start(&mut self) {
        if self.plan.events.is_empty() || self.thread.is_some() || !self.records.is_empty() {
            return;
        }
        let Some(operator) = self.operator.take() else { return };
        match EventThread::start(self.plan, &self.gates, monotonic_ns(), operator) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                self.inner.warn(&format!("cannot start the thread that executes events: {error}"))
            }
        }
    }

    fn stop(&mut self) {
        let Some(mut thread) = self.thread.take() else { return };
        self.records = thread.stop();
        self.pass_on(thread.news());
    }

    fn pass_on(&mut self, news: Vec<EventNews>) {
        for one in news {
            match one {
                EventNews::Text(text) => self.inner.say(&text),
                EventNews::Record(record) => self.inner.event(&record),
            }
        }
    }
}

impl Drop for EventListener<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Watcher for EventListener<'_> {
    fn begins_at(&mut self, kind: PhaseKind, run_start_ns: u64, ready_ns: u64) -> Option<u64> {
        self.inner.begins_at(kind, run_start_ns, ready_ns)
    }

    fn stop_reason(&self) -> Option<String> {
        self.inner.stop_reason()
    }

    fn begin(&mut self, kind: PhaseKind) {
        if kind == PhaseKind::Measure {
            self.start();
        }
        self.inner.begin(kind);
    }

    fn progress(&mut self, kind: PhaseKind, progress: &Progress) {
        let news = self.thread.as_ref().map(EventThread::news);
        self.pass_on(news.unwrap_or_default());
        self.inner.progress(kind, progress);
    }

    fn rows(&mut self, rows: &[Row]) {
        self.inner.rows(rows);
    }

    fn latencies(&mut self, intervals: &[Interval]) {
        self.inner.latencies(intervals);
    }

    fn end(&mut self, phase: &Phase) {
        if phase.kind == PhaseKind::Measure {
            self.stop();
        }
        self.inner.end(phase);
    }
}

impl Listener for EventListener<'_> {
    fn say(&mut self, text: &str) {
        self.inner.say(text);
    }

    fn warn(&mut self, text: &str) {
        self.inner.warn(text);
    }

    fn part(&mut self, text: &str) {
        self.inner.part(text);
    }

    fn fleet(&mut self, now: &FleetProgress) {
        self.inner.fleet(now);
    }

    fn event(&mut self, record: &EventRecord) {
        self.inner.event(record);
    }

    fn finished(&mut self, run: &FinishedRun) {
        self.inner.finished(run);
    }
}
