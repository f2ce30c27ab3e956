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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_engine::stop_request;
use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_plan::{Event, ResolvedPlan};
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::planned::gate::StreamGate;

use self::command::StopEffect;
use self::schedule::{Schedule, StepReporter};
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::{FleetProgress, Listener};
use crate::prompt::Operator;
use crate::run_request::RunConfig;

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

/// Interval at which the end of the events is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time for which a stopped run waits for the command of an event.
const STOP_TIMEOUT_NS: u64 = 3_000_000_000;

/// Request to stop the run before its end.
#[derive(Clone, Debug)]
struct StopRequest {
    /// Time at which commands are killed, on the driver's clock; the maximum before the request.
    kill_ns: Arc<AtomicU64>,
}

impl StopRequest {
    fn new() -> Self {
        Self { kill_ns: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn set(&self) {
        let kill_ns = monotonic_ns().saturating_add(STOP_TIMEOUT_NS);
        self.kill_ns.fetch_min(kill_ns, Ordering::Relaxed);
    }

    fn is_requested(&self) -> bool {
        self.kill_ns.load(Ordering::Relaxed) < u64::MAX
    }

    /// Returns the effect of the request on the command of an event.
    fn of_command(&self) -> Option<StopEffect> {
        let is_due = monotonic_ns() >= self.kill_ns.load(Ordering::Relaxed);
        (is_due || stop_request::has_timed_out(u64::MAX)).then_some(StopEffect::Kill)
    }

    /// Returns the effect of a request on an undo command. An undo repairs the system, so it is not
    /// killed.
    fn of_undo() -> Option<StopEffect> {
        stop_request::is_urgent().then_some(StopEffect::Leave)
    }
}

/// Thread that executes the events of a measured phase.
#[derive(Debug)]
pub struct EventThread {
    /// True if the measured phase has ended.
    end: Arc<AtomicBool>,
    stop: StopRequest,
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
        let mut schedule = Schedule::new(plan, &[], start_ns, operator, StopRequest::new(), steps);
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
        let stop = StopRequest::new();
        Self::spawn(Schedule::new(plan, gates, start_ns, operator, stop, steps), news)
    }

    fn spawn(schedule: Schedule, news: Receiver<EventNews>) -> std::io::Result<Self> {
        let (end, stop) = (Arc::new(AtomicBool::new(false)), schedule.stop_request());
        let flag = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("events".to_owned());
        let thread = Some(thread.spawn(move || schedule.carry_out(&flag))?);
        Ok(Self { end, stop, news, thread })
    }

    /// Returns the messages that arrived since the last call.
    pub fn news(&self) -> Vec<EventNews> {
        self.news.try_iter().collect()
    }

    /// Makes the thread end the events, because the run is stopped. Commands that do not end soon
    /// are killed. Does not wait for the thread.
    pub fn request_stop(&self) {
        self.stop.set();
        self.request_end();
    }

    /// Makes the thread end the events, because the measured phase has ended. Does not wait for the
    /// thread.
    pub fn request_end(&self) {
        self.end.store(true, Ordering::Relaxed);
    }

    /// Returns true if the thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the events, and undoes those that were not undone yet. Waits for their commands. The
    /// first call returns all records, later calls return none.
    pub fn stop(&mut self) -> Vec<EventRecord> {
        self.request_end();
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
    /// True if the run is stopped.
    interrupt: &'a AtomicBool,
    /// Connection to the run's operator; moved into the thread when the events start.
    operator: Option<Operator>,
    thread: Option<EventThread>,
    /// Records with times on the driver's clock.
    records: Vec<EventRecord>,
}

impl<'a> EventListener<'a> {
    pub(crate) fn new(
        config: RunConfig<'a>,
        gates: StreamGates,
        operator: Operator,
        inner: &'a mut dyn Listener,
    ) -> Self {
        let RunConfig { resolved: plan, interrupt, .. } = config;
        let (operator, thread, records) = (Some(operator), None, Vec::new());
        Self { inner, plan, gates, interrupt, operator, thread, records }
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
        thread.request_end();
        while !thread.is_finished() {
            if self.interrupt.load(Ordering::Relaxed) {
                thread.request_stop();
            }
            self.pass_on(thread.news());
            std::thread::sleep(POLL_INTERVAL);
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::places::Places;

    #[test]
    fn a_stopped_run_kills_the_command_of_an_event_and_undoes_it() {
        let directory = tempfile::tempdir().unwrap();
        let undone = directory.path().join("undone");
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\nnull = true\n[workload.matrix]\n[phases]\nmeasure \
             = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n[[event]]\nname = \"cut\"\nat = \
             \"100ms\"\nrun = [\"sh\", \"-c\", \"sleep 50 & wait\"]\nundo = [\"touch\", {undone:?}]\n"
        );
        let plan = plimsoll_plan::Plan::parse(&text, "p").unwrap().resolve();
        let operator = Operator::of_run(&Places::from_environment().unwrap(), "run");
        let writer = Box::new(|_: &EventRecord| Ok(()));
        let began_ns = monotonic_ns();
        let mut thread =
            EventThread::start_without_streams(&plan, began_ns, operator, None, writer).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        thread.request_stop();
        let records = thread.stop();
        assert!(monotonic_ns() - began_ns < 20_000_000_000, "it does not wait for the command");
        assert!(undone.exists());
        // The run is incomplete, but the command did not fail.
        assert_eq!((records[0].at_ns, records[0].failure()), (None, None), "{records:?}");
        assert!(records[0].missed.contains("the run was stopped"), "{records:?}");
        assert!(records[0].undo.is_some());
    }
}
