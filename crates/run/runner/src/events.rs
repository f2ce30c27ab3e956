//! Events of a plan: commands, prompts and gates of streams, executed by a separate thread during
//! the measured phase.
//!
//! [`EventListener`] passes all reports on. When the measured phase begins, it starts the thread.
//! When the phase ends, it stops the thread, which then undoes all actions that were not undone
//! yet.

mod command;
mod schedule;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_plan::ResolvedPlan;
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::planned::gate::StreamGate;

use self::schedule::Schedule;
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::{FleetProgress, Listener};

/// Gates of the streams that start at an event, by stream.
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
/// A plan with prompts, no terminal and no page.
pub(crate) fn check_operator(plan: &ResolvedPlan, has_page: bool) -> Result<(), RunnerError> {
    match plan.events.iter().find(|event| event.prompt.is_some()) {
        Some(event) if !has_page && !std::io::stdin().is_terminal() => {
            let says =
                format!("event \"{}\" needs an operator, but there is no terminal", event.name);
            Err(RunnerError::usage(says)
                .hint("run it in a terminal or from the page of `plimsoll serve`, or write `run` instead of `prompt`"))
        }
        _ => Ok(()),
    }
}

/// Thread that executes the events.
struct EventThread {
    stop: Arc<AtomicBool>,
    says: Receiver<String>,
    thread: JoinHandle<Vec<EventRecord>>,
}

/// Listener that executes the events of a plan. See the module.
pub(crate) struct EventListener<'a> {
    inner: &'a mut dyn Listener,
    plan: &'a ResolvedPlan,
    gates: StreamGates,
    /// Bundle of the run.
    directory: PathBuf,
    thread: Option<EventThread>,
    /// Records with times on the driver's clock.
    records: Vec<EventRecord>,
}

impl<'a> EventListener<'a> {
    pub(crate) fn new(
        plan: &'a ResolvedPlan,
        gates: StreamGates,
        directory: PathBuf,
        inner: &'a mut dyn Listener,
    ) -> Self {
        Self { inner, plan, gates, directory, thread: None, records: Vec::new() }
    }

    /// Stops the thread, and returns the events with times since the start of the run.
    pub(crate) fn finish(mut self, run_start_ns: u64) -> Vec<EventRecord> {
        self.stop();
        let mut records = std::mem::take(&mut self.records);
        if records.is_empty() {
            let missed = "the run ended before the measurement".to_owned();
            let record = |name: &String| EventRecord {
                name: name.clone(),
                missed: missed.clone(),
                ..EventRecord::default()
            };
            return self.plan.events.iter().map(|event| record(&event.name)).collect();
        }
        for record in &mut records {
            let times = [&mut record.at_ns, &mut record.undo_at_ns].into_iter().flatten();
            let commands = [&mut record.command, &mut record.undo].into_iter().flatten();
            let of_commands = commands.flat_map(|c| [&mut c.start_ns, &mut c.end_ns]);
            times.chain(of_commands).for_each(|ns| *ns = ns.saturating_sub(run_start_ns));
        }
        records
    }

    fn start(&mut self) {
        if self.plan.events.is_empty() || self.thread.is_some() || !self.records.is_empty() {
            return;
        }
        let (sender, says) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let directory = self.directory.clone();
        let schedule = Schedule::new(self.plan, &self.gates, monotonic_ns(), directory, sender);
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("events".to_owned());
        match thread.spawn(move || schedule.carry_out(&flag)) {
            Ok(thread) => self.thread = Some(EventThread { stop, says, thread }),
            Err(error) => self.inner.warn(&format!("cannot start the thread of events: {error}")),
        }
    }

    fn stop(&mut self) {
        let Some(EventThread { stop, says, thread }) = self.thread.take() else { return };
        stop.store(true, Ordering::Relaxed);
        self.records = thread.join().unwrap_or_default();
        says.try_iter().for_each(|text| self.inner.say(&text));
    }

    fn say_news(&mut self) {
        let news = self.thread.iter().flat_map(|thread| thread.says.try_iter());
        let news: Vec<String> = news.collect();
        news.iter().for_each(|text| self.inner.say(text));
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
        self.say_news();
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

    fn finished(&mut self, run: &FinishedRun) {
        self.inner.finished(run);
    }
}
