//! Checks that the events of the plan happened during the measurement and that their commands
//! succeeded.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::{ALL_OF_STORAGE, Rule};
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "events",
    asks: "did every event of the plan happen during the measurement, and did its command succeed?",
    explains: "A plan with events tests how the storage behaves during a failure or another \
        event. If an event's command failed, timed out or could not be started, the event did not \
        happen as planned: the system was undisturbed or in an unknown state. The same is true if \
        the event happened before or after the measured phase. If the run ended before an event, \
        the outcome is undecided. A command that does nothing may still have the exit code 0: \
        compare the windows before and after it.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let planned = &bundle.plan.events;
    if planned.is_empty() {
        return None;
    }
    let measure = measured(bundle)?;
    let in_measurement = measure.start_ns..measure.start_ns.saturating_add(measure.duration_ns);
    let fail = |says: String| Finding::new(RULE.id, Outcome::Fail, says);
    let mut missed = None;
    for event in planned {
        let Some(record) = bundle.run.events.iter().find(|record| record.name == event.name) else {
            return Some(fail(format!("the evidence has no record of event \"{}\"", event.name)));
        };
        if record.at_ns.is_some() && record.host != event.host {
            let place = |host: &Option<String>| match host {
                Some(host) => host.clone(),
                None => "the host of `plimsoll run`".to_owned(),
            };
            let (ran, planned) = (place(&record.host), place(&event.host));
            let says =
                format!("event \"{}\" ran on {ran}, but the plan names {planned}", event.name);
            return Some(fail(says));
        }
        if let Some(failure) = record.failure() {
            let is_undo = record.undo.as_ref().is_some_and(|undo| undo.failure == failure)
                && record.command.as_ref().is_none_or(|command| command.failure.is_empty());
            let what = if is_undo { "undo command" } else { "command" };
            let says = format!("event \"{}\": its {what} failed: {failure}", event.name);
            return Some(fail(says).advise("run the command by hand, and correct it in the plan"));
        }
        let Some(at_ns) = record.at_ns else {
            missed.get_or_insert((event, record));
            continue;
        };
        let ran = |argv: &[String], ran: Option<&Vec<String>>| {
            argv.is_empty() || ran.is_some_and(|ran| ran == argv)
        };
        if !ran(&event.run, record.command.as_ref().map(|command| &command.argv))
            || !ran(&event.undo, record.undo.as_ref().map(|undo| &undo.argv))
        {
            let says = format!(
                "event \"{}\" ran a different command from the command in the plan",
                event.name
            );
            return Some(fail(says));
        }
        if !in_measurement.contains(&at_ns) {
            let says = format!("event \"{}\" happened outside the measurement", event.name);
            return Some(fail(says).advise("schedule the event earlier, or measure longer"));
        }
    }
    if let Some((event, record)) = missed {
        let says = format!("event \"{}\" did not happen: {}", event.name, record.missed);
        let finding = Finding::new(RULE.id, Outcome::Unknown, says);
        let completed = bundle.run.end.kind == EndKind::Completed;
        return Some(if completed { finding.advise("measure longer") } else { finding });
    }
    let says = match planned.len() {
        1 => format!("event \"{}\" happened during the measurement", planned[0].name),
        count => format!("all {count} events happened during the measurement"),
    };
    Some(Finding::new(RULE.id, Outcome::Pass, says))
}
