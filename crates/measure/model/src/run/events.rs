//! Events of a plan in virtual time: components that are lost or slowed down, and streams that
//! start.
//!
//! Each event, and each undo action, happens exactly at its time in the measured phase.

use std::sync::Arc;

use plimsoll_evidence::events::EventRecord;
use plimsoll_plan::{Event, ResolvedPlan};
use plimsoll_workload::planned::gate::StreamGate;

use super::error::RunError;
use crate::blocks::Component;
use crate::core::StationId;
use crate::system::System;

/// Gate of a stream that starts at an event; `None` if the stream does not start at an event.
pub(super) type MaybeGate = Option<Arc<StreamGate>>;

/// Returns the gate of each stream of a plan.
pub(super) fn gates(plan: &ResolvedPlan) -> Vec<MaybeGate> {
    let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    streams.iter().map(|stream| stream.start_event.as_ref().map(|_| Arc::default())).collect()
}

/// Effect of an event on the system.
#[derive(Clone, Debug)]
enum Effect {
    Nothing,
    Loss(Component),
    Slowdown(Vec<StationId>, f64),
}

/// An event or an undo action that has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Action {
    at_ns: u64,
    event: usize,
    is_undo: bool,
}

/// An event, the effect of the event, and its record in the evidence.
struct Scheduled {
    event: Event,
    effect: Effect,
    gates: Vec<Arc<StreamGate>>,
    record: EventRecord,
}

/// The events of a run.
#[derive(Default)]
pub(super) struct Events {
    events: Vec<Scheduled>,
    /// Actions that have not happened yet, the latest first.
    actions: Vec<Action>,
    has_started: bool,
}

impl Events {
    /// Prepares the events of a plan for a system. Events refer to the system's components by name.
    ///
    /// # Errors
    /// An event names a component that the system does not have.
    pub(super) fn new(
        plan: &ResolvedPlan,
        gates: &[MaybeGate],
        system: &mut System,
    ) -> Result<Self, RunError> {
        let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
        let mut events = Vec::new();
        for event in &plan.events {
            let own = streams.iter().zip(gates);
            let own = own.filter(|(s, _)| s.start_event.as_deref() == Some(event.name.as_str()));
            events.push(Scheduled {
                effect: effect(event, system)?,
                gates: own.filter_map(|(_, gate)| gate.clone()).collect(),
                record: EventRecord { name: event.name.clone(), ..EventRecord::default() },
                event: event.clone(),
            });
        }
        if events.iter().any(|scheduled| matches!(scheduled.effect, Effect::Loss(_))) {
            system.expect_losses();
        }
        Ok(Self { events, actions: Vec::new(), has_started: false })
    }

    /// Starts the measured phase. The times of events are relative to this start.
    pub(super) fn start(&mut self, start_ns: u64, length_ns: u64) {
        self.has_started = true;
        let end_ns = start_ns.saturating_add(length_ns);
        let mut actions = Vec::new();
        for (event, scheduled) in self.events.iter().enumerate() {
            let Some(after_ns) = self.time_ns(&scheduled.event, self.events.len()) else {
                continue;
            };
            let at_ns = start_ns.saturating_add(after_ns);
            actions.push(Action { at_ns, event, is_undo: false });
            if let Some(undo_ns) = scheduled.event.undo_at_ns {
                let at_ns = start_ns.saturating_add(undo_ns).max(at_ns);
                actions.push(Action { at_ns, event, is_undo: true });
            }
        }
        actions.retain(|action| action.at_ns < end_ns);
        actions.sort_unstable();
        actions.reverse();
        self.actions = actions;
    }

    /// Returns the time of an event, relative to the start of the measured phase. An event may
    /// follow another event, which may follow a third event. The function follows at most `steps`
    /// such links.
    fn time_ns(&self, event: &Event, steps: usize) -> Option<u64> {
        if event.at_ns.is_some() {
            return event.at_ns;
        }
        let other = self.events.iter().find(|o| Some(&o.event.name) == event.after.as_ref())?;
        let other_ns = self.time_ns(&other.event, steps.checked_sub(1)?)?;
        Some(other_ns.saturating_add(event.delay_ns))
    }

    /// Returns the time of the next action; `None` if no action remains.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.actions.last().map(|action| action.at_ns)
    }

    /// Performs the actions that are due.
    pub(super) fn act(&mut self, system: &mut System) {
        let now_ns = system.now_ns();
        while let Some(action) = self.actions.pop_if(|action| action.at_ns <= now_ns) {
            let Scheduled { effect, gates, record, .. } = &mut self.events[action.event];
            match effect {
                Effect::Nothing => {}
                Effect::Loss(component) => system.set_lost(*component, !action.is_undo),
                Effect::Slowdown(stations, speed) => {
                    system.set_speed(stations, if action.is_undo { 1.0 } else { *speed });
                }
            }
            if action.is_undo {
                record.undo_at_ns = Some(now_ns);
                gates.iter().for_each(|gate| gate.close_at(now_ns));
            } else {
                record.at_ns = Some(now_ns);
                gates.iter().for_each(|gate| gate.open_at(now_ns));
            }
        }
    }

    /// Returns the records of all events. Called after the measured phase.
    pub(super) fn records(&self) -> Vec<EventRecord> {
        let missed = match self.has_started {
            true => "the measurement ended before the event's time",
            false => "the run ended before the measurement started",
        };
        let record = |scheduled: &Scheduled| match scheduled.record.at_ns {
            Some(_) => scheduled.record.clone(),
            None => EventRecord { missed: missed.to_owned(), ..scheduled.record.clone() },
        };
        self.events.iter().map(record).collect()
    }
}

fn effect(event: &Event, system: &System) -> Result<Effect, RunError> {
    let unknown = |name: &str, known: String| RunError::NoSuchComponent {
        event: event.name.clone(),
        name: name.to_owned(),
        known,
    };
    if let Some(name) = &event.fail {
        return system.component(name).map(Effect::Loss).map_err(|known| unknown(name, known));
    }
    if let Some(throttle) = &event.throttle {
        let name = &throttle.component;
        return system
            .throttled(name)
            .map(|stations| Effect::Slowdown(stations, throttle.speed))
            .map_err(|known| unknown(name, known));
    }
    Ok(Effect::Nothing)
}
