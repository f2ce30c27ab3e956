//! Times of the events, and the loop of the thread that executes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_evidence::events::{CommandRecord, EventRecord};
use plimsoll_plan::{Event, ResolvedPlan};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::planned::gate::StreamGate;

use super::command::{self, StopEffect};
use super::{EventNews, StepWriter, StopRequest};
use crate::prompt::{Operator, PendingPrompt};

/// Interval at which the thread checks for due events.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Delay between an event and the start of its streams. The threads of the streams detect the event
/// during this delay.
const GATE_LEAD_NS: u64 = 20_000_000;

/// Progress of an event.
enum State {
    /// The event is not due yet.
    Waiting,
    /// The event waits until the operator confirms its prompt.
    Asked(PendingPrompt),
    /// The event's command is running.
    Running(JoinHandle<CommandRecord>),
    /// The event happened at this time on the driver's clock. If it has an undo, it waits until the
    /// undo is due.
    Happened(u64),
    /// The event's undo is running.
    Undoing(JoinHandle<CommandRecord>),
    /// The event and its undo have finished.
    Done(u64),
    /// The event did not happen, because it was due while a killed process had not yet been
    /// resumed.
    Missed,
}

/// Event of the plan, with its state.
struct Scheduled {
    event: Event,
    gates: Vec<Arc<StreamGate>>,
    state: State,
    record: EventRecord,
}

/// Events of a measured phase.
pub(super) struct Schedule {
    events: Vec<Scheduled>,
    /// Start and end of the measured phase, on the driver's clock.
    start_ns: u64,
    end_ns: u64,
    operator: Operator,
    stop: StopRequest,
    steps: StepReporter,
}

impl Schedule {
    pub(super) fn new(
        plan: &ResolvedPlan,
        gates: &[Option<Arc<StreamGate>>],
        start_ns: u64,
        operator: Operator,
        stop: StopRequest,
        steps: StepReporter,
    ) -> Self {
        let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
        let gates_of = |name: &str| {
            let started = streams.iter().zip(gates);
            let own = started.filter(|(stream, _)| stream.start_event.as_deref() == Some(name));
            own.filter_map(|(_, gate)| gate.clone()).collect()
        };
        let scheduled = |event: &Event| Scheduled {
            gates: gates_of(&event.name),
            state: State::Waiting,
            record: EventRecord { name: event.name.clone(), ..EventRecord::default() },
            event: event.clone(),
        };
        Self {
            events: plan.events.iter().map(scheduled).collect(),
            start_ns,
            end_ns: start_ns.saturating_add(plan.phases.measure_ns),
            operator,
            stop,
            steps,
        }
    }

    pub(super) fn stop_request(&self) -> StopRequest {
        self.stop.clone()
    }

    /// Continues from the records of a process that was killed. Events that were due since then do
    /// not happen.
    pub(super) fn resume(&mut self, earlier: &[EventRecord]) {
        let resumed_ns = monotonic_ns();
        for scheduled in &mut self.events {
            if let Some(record) = earlier.iter().find(|one| one.name == scheduled.event.name) {
                scheduled.resume(record.clone());
            }
        }
        for at in 0..self.events.len() {
            let due_ns = self.due_ns(&self.events[at].event);
            let scheduled = &mut self.events[at];
            if matches!(scheduled.state, State::Waiting) && due_ns.is_some_and(|ns| ns < resumed_ns)
            {
                scheduled.miss(&mut self.steps);
            }
        }
    }

    /// Executes the events until the end of the measured phase, then undoes all events that were
    /// not undone yet.
    pub(super) fn carry_out(mut self, end: &AtomicBool) -> Vec<EventRecord> {
        while !end.load(Ordering::Relaxed) && monotonic_ns() < self.end_ns {
            self.advance();
            std::thread::sleep(POLL_INTERVAL);
        }
        for scheduled in &mut self.events {
            scheduled.end(&self.stop, &mut self.steps);
        }
        self.events.into_iter().map(|scheduled| scheduled.record).collect()
    }

    fn advance(&mut self) {
        for at in 0..self.events.len() {
            let due_ns = self.due_ns(&self.events[at].event);
            let undo_ns = self.events[at].event.undo_at_ns.map(|ns| self.start_ns + ns);
            let (operator, stop) = (&self.operator, &self.stop);
            self.events[at].advance(due_ns, undo_ns, operator, stop, &mut self.steps);
        }
    }

    /// Returns the time at which an event is due; `None` if it depends on another event that has
    /// not happened yet.
    fn due_ns(&self, event: &Event) -> Option<u64> {
        if let Some(at_ns) = event.at_ns {
            return Some(self.start_ns.saturating_add(at_ns));
        }
        let other = self.events.iter().find(|o| Some(&o.event.name) == event.after.as_ref())?;
        match other.state {
            State::Happened(ns) | State::Done(ns) => Some(ns.saturating_add(event.delay_ns)),
            State::Undoing(_) => {
                let command = other.record.command.as_ref().map(|command| command.end_ns);
                Some(command.or(other.record.at_ns)?.saturating_add(event.delay_ns))
            }
            _ => None,
        }
    }
}

/// Failure text for a command that was running when the `plimsoll` process was killed.
const KILLED: &str = "`plimsoll run` was killed while the command was running, so the command's \
    result is unknown";

impl Scheduled {
    /// Continues from the record of a process that was killed. A command that was started is not
    /// started again.
    fn resume(&mut self, record: EventRecord) {
        self.record = record;
        let Some(at_ns) = self.record.at_ns else {
            self.state = State::Missed;
            return;
        };
        let killed = |argv: &[String], start_ns| CommandRecord {
            argv: argv.to_vec(),
            start_ns,
            end_ns: start_ns,
            failure: KILLED.to_owned(),
            ..CommandRecord::default()
        };
        if !self.event.run.is_empty() {
            self.record.command.get_or_insert_with(|| killed(&self.event.run, at_ns));
        }
        let end_ns = self.record.command.as_ref().map_or(at_ns, |command| command.end_ns);
        let Some(undo_ns) = self.record.undo_at_ns else {
            self.state = State::Happened(end_ns);
            return;
        };
        if !self.event.undo.is_empty() {
            self.record.undo.get_or_insert_with(|| killed(&self.event.undo, undo_ns));
        }
        self.state = State::Done(end_ns);
    }

    fn miss(&mut self, steps: &mut StepReporter) {
        self.record.missed = "it was due while `plimsoll run` was not running".to_owned();
        self.state = State::Missed;
        steps.say(format!("event {} was skipped: {}", self.event.name, self.record.missed));
        steps.record(&self.record);
    }

    fn advance(
        &mut self,
        due_ns: Option<u64>,
        undo_ns: Option<u64>,
        operator: &Operator,
        stop: &StopRequest,
        steps: &mut StepReporter,
    ) {
        let now_ns = monotonic_ns();
        let is_due = |ns: Option<u64>| ns.is_some_and(|ns| ns <= now_ns);
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting if is_due(due_ns) => self.begin(now_ns, operator, stop, steps),
            State::Asked(prompt) if operator.has_confirmed(&prompt) => {
                drop(prompt);
                self.happen(now_ns, stop, steps);
            }
            State::Running(thread) if thread.is_finished() => self.note_command(thread, steps),
            State::Happened(_) if is_due(undo_ns) => self.undo(steps),
            State::Undoing(thread) if thread.is_finished() => self.note_undo(thread, steps),
            other => self.state = other,
        }
    }

    fn begin(
        &mut self,
        now_ns: u64,
        operator: &Operator,
        stop: &StopRequest,
        steps: &mut StepReporter,
    ) {
        if let Some(prompt) = &self.event.prompt {
            let (pending, how) = operator.ask(prompt);
            steps.say(format!("{prompt} (when this is done, {how})"));
            self.state = State::Asked(pending);
            return;
        }
        self.happen(now_ns, stop, steps);
    }

    fn happen(&mut self, now_ns: u64, stop: &StopRequest, steps: &mut StepReporter) {
        self.record.at_ns = Some(now_ns);
        self.gates.iter().for_each(|gate| gate.open_at(now_ns + GATE_LEAD_NS));
        steps.say(format!("event: {}", self.event.name));
        steps.record(&self.record);
        self.state = match self.event.run.is_empty() {
            true => State::Happened(now_ns),
            false => {
                let stop = stop.clone();
                State::Running(start(&self.event, &self.event.run, move || stop.of_command()))
            }
        };
    }

    fn note_command(&mut self, thread: JoinHandle<CommandRecord>, steps: &mut StepReporter) {
        let command = joined(thread, &self.event.run);
        if !command.failure.is_empty() {
            steps.say(format!("event {} failed: {}", self.event.name, command.failure));
        }
        self.state = State::Happened(command.end_ns);
        self.record.command = Some(command);
        steps.record(&self.record);
    }

    fn undo(&mut self, steps: &mut StepReporter) {
        let now_ns = monotonic_ns();
        self.record.undo_at_ns = Some(now_ns);
        self.gates.iter().for_each(|gate| gate.close_at(now_ns));
        steps.say(format!("undoing event {}", self.event.name));
        steps.record(&self.record);
        let command = self.record.command.as_ref().map(|command| command.end_ns);
        self.state = match self.event.undo.is_empty() {
            true => State::Done(command.or(self.record.at_ns).unwrap_or(now_ns)),
            false => State::Undoing(start(&self.event, &self.event.undo, StopRequest::of_undo)),
        };
    }

    fn note_undo(&mut self, thread: JoinHandle<CommandRecord>, steps: &mut StepReporter) {
        let undo = joined(thread, &self.event.undo);
        if !undo.failure.is_empty() {
            steps.say(format!("undo of event {} failed: {}", self.event.name, undo.failure));
        }
        let command = self.record.command.as_ref().map(|command| command.end_ns);
        self.state = State::Done(command.or(self.record.at_ns).unwrap_or(undo.end_ns));
        self.record.undo = Some(undo);
        steps.record(&self.record);
    }

    /// Ends the event when the measured phase ends: waits for its command, then undoes it. If the
    /// run is stopped, its command is killed first.
    fn end(&mut self, stop: &StopRequest, steps: &mut StepReporter) {
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting => {
                "the measurement ended before the event was due".clone_into(&mut self.record.missed)
            }
            State::Asked(..) => {
                "no operator confirmed the event's prompt".clone_into(&mut self.record.missed)
            }
            State::Running(thread) => {
                if !thread.is_finished() && !stop.is_requested() {
                    let name = &self.event.name;
                    steps.say(format!("waiting for the command of event {name} to end"));
                }
                self.note_command(thread, steps);
            }
            State::Undoing(thread) => return self.note_undo(thread, steps),
            other => self.state = other,
        }
        if let (State::Happened(_), false) = (&self.state, self.event.undo.is_empty()) {
            self.undo(steps);
            if let State::Undoing(thread) = std::mem::replace(&mut self.state, State::Waiting) {
                self.note_undo(thread, steps);
            }
        }
        // The record states this only after the undo, because a resumed run undoes only events that
        // happened.
        if let Some(command) = &mut self.record.command
            && command.failure == command::STOPPED
        {
            command.failure.clear();
            self.record.at_ns = None;
            self.record.missed =
                "the run was stopped while the event's command was running".to_owned();
            steps.record(&self.record);
        }
    }
}

/// Stores and reports each step of an event.
pub(super) struct StepReporter {
    says: Sender<EventNews>,
    /// Stores each record before its command starts.
    writer: Option<StepWriter>,
}

impl StepReporter {
    pub(super) fn new(says: Sender<EventNews>, writer: Option<StepWriter>) -> Self {
        Self { says, writer }
    }

    /// Sends a message. This fails only if the run no longer receives messages.
    fn say(&self, text: String) {
        let _ = self.says.send(EventNews::Text(text));
    }

    fn record(&mut self, record: &EventRecord) {
        if let Some(Err(error)) = self.writer.as_mut().map(|write| write(record)) {
            self.say(format!(
                "cannot write the journal of event {}: {error}: a resumed run would not know that \
                 the event happened",
                record.name
            ));
        }
        let _ = self.says.send(EventNews::Record(record.clone()));
    }
}

/// Starts a command of an event. `stop` returns the effect of a request to stop the run.
fn start(
    event: &Event,
    argv: &[String],
    stop: impl Fn() -> Option<StopEffect> + Send + 'static,
) -> JoinHandle<CommandRecord> {
    let (argv, timeout_ns) = (argv.to_vec(), event.timeout_ns);
    std::thread::spawn(move || command::run_until_stopped(&argv, timeout_ns, &stop))
}

fn joined(thread: JoinHandle<CommandRecord>, argv: &[String]) -> CommandRecord {
    thread.join().unwrap_or_else(|_| CommandRecord {
        argv: argv.to_vec(),
        end_ns: monotonic_ns(),
        failure: "Plimsoll failed while the command was running".to_owned(),
        ..CommandRecord::default()
    })
}
