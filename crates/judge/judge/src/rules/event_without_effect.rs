//! Checks that the events of a plan have an effect on the figures.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Window;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::events::recovery::{P99_FACTOR, RATE_SHARE};
use crate::events::{Windows, window_figures};
use crate::finding::{Finding, Outcome};

/// The largest latency during the event counts as an effect if it is at least this multiple of the
/// largest latency before the event. The value is our choice: even similar windows have different
/// maxima.
const LARGEST_FACTOR: u64 = 2;

pub const RULE: Rule = Rule {
    id: "event-without-effect",
    asks: "does any figure show an effect of the events?",
    explains: "A system may absorb a failure completely. A command that does nothing, or acts on a \
               different system, looks the same: its exit code is 0, and the figures do not change. \
               The rule warns if no effect is visible: the rate and the p99 stay within the limits \
               of a recovery, every interval has completions, no I/O fails, and no I/O takes twice \
               as long as the slowest I/O before the event. Check the state of the storage system \
               during the event: its counters, its log, or the command's output. The rule does not \
               check events that start streams or stop hosts of a fleet, because these change the \
               load themselves.",
    bears_on: &[(Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let matrix = bundle.plan.workload.matrix();
    let streams = matrix.map_or(&[][..], |matrix| &matrix.streams);
    let events = &bundle.plan.events;
    let is_seen = streams.iter().any(|stream| stream.start_event.is_some())
        || events.iter().any(|event| !event.expect_lost.is_empty());
    if events.is_empty() || is_seen {
        return None;
    }
    let windows = Windows::of(bundle)?;
    let figures = window_figures(bundle, &windows);
    let of = |window: Window| figures.iter().find(|figures| figures.part.window == window);
    let (before, during) = (of(Window::Before)?, of(Window::During)?);
    let share = during.of_before?;
    let p99_times = during.latency_ns_p99? as f64 / before.latency_ns_p99?.max(1) as f64;
    let has_effect = windows.recovery_ns != Ok(0)
        || share < RATE_SHARE
        || p99_times > P99_FACTOR
        || during.latency_ns_max? > before.latency_ns_max?.saturating_mul(LARGEST_FACTOR)
        || during.outage_ns? > 0
        || during.errors > 0;
    let finding = |outcome, says| {
        let finding = Finding::new(RULE.id, outcome, says);
        finding.with("rate_of_before", share).with("p99_of_before", p99_times)
    };
    if has_effect {
        return Some(finding(Outcome::Pass, "the figures show an effect of the events".to_owned()));
    }
    let says = format!(
        "\"{}\" changed no figure: the rate was {:.0} % of the rate before, the p99 {p99_times:.2} \
         times the p99 before, without an outage or an error. Either the system absorbed the event, \
         or the command did nothing",
        windows.action,
        share * 100.0
    );
    let advice = "check on the storage system that the event happened";
    Some(finding(Outcome::Warn, says).advise(advice))
}
