//! Checks that the rate before the first event was steady.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Window;

use super::{Rule, Weight, not_steady};
use crate::claim::Claim;
use crate::events;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "before-unsteady",
    asks: "was the rate steady before the first event?",
    explains: "The windows during and after an event are compared with the time before it. If the \
               rate was still rising or falling at that time, its mean is not a baseline. Neither \
               the loss nor the recovery can then be measured. The rule applies the test of \
               `not-steady` to the time before the first event. Use a longer warm-up, or schedule \
               the event at a later time in the measurement.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.plan.events.is_empty() {
        return None;
    }
    let before = events::slice_window(bundle, Window::Before)?;
    let finding = (not_steady::RULE.check)(&before)?;
    let says = format!("before the first event, {}", finding.says);
    let own = Finding::new(RULE.id, finding.outcome, says);
    Some(match finding.outcome {
        Outcome::Pass => own,
        _ => own.advise("use a longer warm-up, or schedule the event later"),
    })
}
