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

use super::{EventNews, command};
use crate::prompt::{Operator, PromptFile};

/// Interval at which the thread checks for due events.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time from the event to the start of its streams, in which their threads notice it.
const GATE_LEAD_NS: u64 = 20_000_000;

/// Progress of an event.
enum State {
    /// Waits for its time.
    Waiting,
    /// Waits for the operator, on the terminal or by its file.
    Asked(PromptFile),
    /// Its command runs.
    Running(JoinHandle<CommandRecord>),
    /// The event happened, at this time on the driver's clock, and waits for its undo if it has
    /// one.
    Happened(u64),
    /// Its undo runs.
    Undoing(JoinHandle<CommandRecord>),
    /// Nothing remains to be done.
    Done(u64),
}

/// Event with its progress.
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
    says: Sender<EventNews>,
}

impl Schedule {
    pub(super) fn new(
        plan: &ResolvedPlan,
        gates: &[Option<Arc<StreamGate>>],
        start_ns: u64,
        operator: Operator,
        says: Sender<EventNews>,
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
            says,
        }
    }

    /// Executes the events until the end of the measured phase, then undoes all that were not
    /// undone.
    pub(super) fn carry_out(mut self, stop: &AtomicBool) -> Vec<EventRecord> {
        while !stop.load(Ordering::Relaxed) && monotonic_ns() < self.end_ns {
            self.advance();
            std::thread::sleep(POLL_INTERVAL);
        }
        for scheduled in &mut self.events {
            scheduled.end(&self.says);
        }
        self.events.into_iter().map(|scheduled| scheduled.record).collect()
    }

    fn advance(&mut self) {
        for at in 0..self.events.len() {
            let due_ns = self.due_ns(&self.events[at].event);
            let undo_ns = self.events[at].event.undo_at_ns.map(|ns| self.start_ns + ns);
            self.events[at].advance(due_ns, undo_ns, &self.operator, &self.says);
        }
    }

    /// Returns the time of an event; `None` if the event that it follows has not happened.
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

impl Scheduled {
    fn advance(
        &mut self,
        due_ns: Option<u64>,
        undo_ns: Option<u64>,
        operator: &Operator,
        says: &Sender<EventNews>,
    ) {
        let now_ns = monotonic_ns();
        let is_due = |ns: Option<u64>| ns.is_some_and(|ns| ns <= now_ns);
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting if is_due(due_ns) => self.begin(now_ns, operator, says),
            State::Asked(file) if file.is_answered() || operator.pressed_enter() => {
                drop(file);
                self.happen(now_ns, says);
            }
            State::Running(thread) if thread.is_finished() => self.note_command(thread, says),
            State::Happened(_) if is_due(undo_ns) => self.undo(says),
            State::Undoing(thread) if thread.is_finished() => self.note_undo(thread, says),
            other => self.state = other,
        }
    }

    fn send_record(&self, says: &Sender<EventNews>) {
        let _ = says.send(EventNews::Record(self.record.clone()));
    }

    fn begin(&mut self, now_ns: u64, operator: &Operator, says: &Sender<EventNews>) {
        if let Some(prompt) = &self.event.prompt {
            let (file, how) = operator.ask(prompt);
            say(says, format!("{prompt} (when it is done, {how})"));
            self.state = State::Asked(file);
            return;
        }
        self.happen(now_ns, says);
    }

    fn happen(&mut self, now_ns: u64, says: &Sender<EventNews>) {
        self.record.at_ns = Some(now_ns);
        self.gates.iter().for_each(|gate| gate.open_at(now_ns + GATE_LEAD_NS));
        say(says, format!("event: {}", self.event.name));
        self.send_record(says);
        self.state = match self.event.run.is_empty() {
            true => State::Happened(now_ns),
            false => State::Running(start(&self.event.run, self.event.timeout_ns)),
        };
    }

    fn note_command(&mut self, thread: JoinHandle<CommandRecord>, says: &Sender<EventNews>) {
        let command = joined(thread, &self.event.run);
        if !command.failure.is_empty() {
            say(says, format!("event {} failed: {}", self.event.name, command.failure));
        }
        self.state = State::Happened(command.end_ns);
        self.record.command = Some(command);
        self.send_record(says);
    }

    fn undo(&mut self, says: &Sender<EventNews>) {
        let now_ns = monotonic_ns();
        self.record.undo_at_ns = Some(now_ns);
        self.gates.iter().for_each(|gate| gate.close_at(now_ns));
        say(says, format!("event: undo {}", self.event.name));
        self.send_record(says);
        let command = self.record.command.as_ref().map(|command| command.end_ns);
        self.state = match self.event.undo.is_empty() {
            true => State::Done(command.or(self.record.at_ns).unwrap_or(now_ns)),
            false => State::Undoing(start(&self.event.undo, self.event.timeout_ns)),
        };
    }

    fn note_undo(&mut self, thread: JoinHandle<CommandRecord>, says: &Sender<EventNews>) {
        let undo = joined(thread, &self.event.undo);
        if !undo.failure.is_empty() {
            say(says, format!("undo {} failed: {}", self.event.name, undo.failure));
        }
        let command = self.record.command.as_ref().map(|command| command.end_ns);
        self.state = State::Done(command.or(self.record.at_ns).unwrap_or(undo.end_ns));
        self.record.undo = Some(undo);
        self.send_record(says);
    }

    /// Ends the event with the measured phase: waits for its command, and undoes it.
    fn end(&mut self, says: &Sender<EventNews>) {
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting => {
                "the measurement ended before its time".clone_into(&mut self.record.missed)
            }
            State::Asked(..) => {
                "no operator answered its prompt".clone_into(&mut self.record.missed)
            }
            State::Running(thread) => self.note_command(thread, says),
            State::Undoing(thread) => return self.note_undo(thread, says),
            other => self.state = other,
        }
        if let (State::Happened(_), false) = (&self.state, self.event.undo.is_empty()) {
            self.undo(says);
            if let State::Undoing(thread) = std::mem::replace(&mut self.state, State::Waiting) {
                self.note_undo(thread, says);
            }
        }
    }
}

/// Sends a message. That fails only if the run no longer listens.
fn say(says: &Sender<EventNews>, text: String) {
    let _ = says.send(EventNews::Text(text));
}

fn start(argv: &[String], timeout_ns: u64) -> JoinHandle<CommandRecord> {
    let argv = argv.to_vec();
    std::thread::spawn(move || command::run(&argv, timeout_ns))
}

fn joined(thread: JoinHandle<CommandRecord>, argv: &[String]) -> CommandRecord {
    thread.join().unwrap_or_else(|_| CommandRecord {
        argv: argv.to_vec(),
        end_ns: monotonic_ns(),
        failure: "Plimsoll failed while it ran".to_owned(),
        ..CommandRecord::default()
    })
}
