//! Checks that the load reached the requested rate or queue depth.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Arrival;

use super::{Rule, Weight, evidence, littles_law};
use crate::checks::rate;
use crate::claim::Claim;
use crate::figures::{self, Pick, measured};
use crate::finding::{Finding, Outcome};

/// Tolerance for the rate of an open loop.
const RATE_SLACK: f64 = 0.01;
/// Minimum ratio of the mean number of operations in flight to the depth.
const DEPTH_SHARE_MIN: f64 = 0.9;

pub const RULE: Rule = Rule {
    id: "load-not-reached",
    asks: "did the load reach the requested rate or queue depth?",
    explains: "The rule compares the achieved rate with the requested rate, and the mean number of \
               operations in flight (sum of latencies divided by time) with clients × depth. If a \
               queue was not always full, the generator was too slow and limited the figure. The \
               rule only warns, because the requirement is compared with the load that was \
               sustained.",
    bears_on: &[
        (Claim::Requirement, Weight::Advisory),
        (Claim::Comparative, Weight::Advisory),
        (Claim::MediaRead, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let requested: Option<f64> = evidence::streams(bundle)
        .iter()
        .map(|stream| match stream.arrival {
            Arrival::Constant { rate_per_s, ramp_ns: 0 }
            | Arrival::Poisson { rate_per_s, ramp_ns: 0 } => Some(rate_per_s),
            _ => None,
        })
        .sum();
    if let Some(requested) = requested.filter(|rate| *rate > 0.0) {
        return reached_rate(bundle, requested);
    }
    let outstanding = littles_law::outstanding(bundle)? as f64;
    let in_flight = littles_law::in_flight(bundle)?;
    let share = in_flight / outstanding;
    let says = format!("{in_flight:.1} of {outstanding:.0} operations were in flight on average");
    let finding = if share < DEPTH_SHARE_MIN {
        Finding::new(RULE.id, Outcome::Warn, format!("{says}: the queue was not always full"))
            .advise("use more threads or clients")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("in_flight", in_flight).with("outstanding", outstanding))
}

fn reached_rate(bundle: &Bundle, requested: f64) -> Option<Finding> {
    let achieved = figures::rate_per_s(bundle, Pick::Transactional)?;
    let says = format!("{achieved:.1} of the requested {requested:.1} operations/s were achieved");
    // The arrivals of a Poisson process are random, so fewer operations may have been due.
    let due = rate::due_per_s_max(bundle, rate::Unit::All);
    let least = due.map_or(requested, |due| due.min(requested));
    let finding = if achieved < least * (1.0 - RATE_SLACK) {
        Finding::new(
            RULE.id,
            Outcome::Warn,
            format!("{says}: the storage or the generator did not keep up"),
        )
        .advise("request a lower rate, or find what limits the storage")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("requested_per_s", requested).with("achieved_per_s", achieved))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_queue_that_was_never_full_is_named() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].latency_ns_sum * 89 / 100;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn a_rate_that_was_not_reached_is_named() {
        let open = |rate: &str| {
            fixtures::reads_with(
                "queue_depth = 8",
                &format!("arrival = \"poisson\"\nrate = {rate}"),
            )
        };
        assert_eq!(fixtures::outcome(&RULE, &open("10100")), Some(Outcome::Pass));
        assert_eq!(fixtures::outcome(&RULE, &open("10200")), Some(Outcome::Warn));
    }
}
