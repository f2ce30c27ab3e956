//! Checks that the events of the plan happened, in the measurement and without a failed command.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::{ALL_OF_STORAGE, Rule};
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "events",
    asks: "did every event of the plan happen in the measurement, and did its command succeed?",
    explains: "A plan with events asks how the storage behaves while something happens to it. An \
        event whose command failed, timed out or could not be started did not happen as planned: \
        the run shows an undisturbed system, or one in an unknown state. The same is true for an \
        event before or after the measured phase. An event that was not reached leaves the run \
        undecided. A command that succeeds and does nothing cannot be recognised by its exit code: \
        compare the windows.",
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
                format!("event \"{}\" ran on {ran}, and the plan names {planned}", event.name);
            return Some(fail(says));
        }
        if let Some(failure) = record.failure() {
            let says = format!("event \"{}\": its command failed: {failure}", event.name);
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
            let says = format!("event \"{}\" did not run the command of the plan", event.name);
            return Some(fail(says));
        }
        if !in_measurement.contains(&at_ns) {
            let says = format!("event \"{}\" happened outside the measurement", event.name);
            return Some(fail(says).advise("plan it earlier, or measure longer"));
        }
    }
    if let Some((event, record)) = missed {
        let says = format!("event \"{}\" did not happen: {}", event.name, record.missed);
        let finding = Finding::new(RULE.id, Outcome::Unknown, says);
        let completed = bundle.run.end.kind == EndKind::Completed;
        return Some(if completed { finding.advise("measure longer") } else { finding });
    }
    let says = match planned.len() {
        1 => format!("event \"{}\" happened in the measurement", planned[0].name),
        count => format!("all {count} events happened in the measurement"),
    };
    Some(Finding::new(RULE.id, Outcome::Pass, says))
}
