//! Detects a rate that is capped by a limit.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Arrival;

use super::not_steady::rates;
use super::{Rule, Weight, burst_credit, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Minimum variation between seconds of a device without a limit.
const VARIATION_MIN: f64 = 0.005;

pub const RULE: Rule = Rule {
    id: "rate-capped",
    asks: "does a rate limit, rather than the storage, determine the rate?",
    explains: "A plan may cap a closed loop; pauses between operations do the same. A volume with \
        a rate limit is steadier than any device: it varies by less than 0.5 % between intervals. \
        The figure is then the cap: the storage sustains that rate, but how much more is unknown. \
        If the limit was lifted during the measurement, a flat level precedes a higher one, and \
        the figure mixes both.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let streams = evidence::streams(bundle);
    if streams.is_empty() || streams.iter().any(|stream| stream.arrival.is_open()) {
        return None;
    }
    let requested = streams.iter().find(|stream| {
        stream.think_time_ns > 0 || stream.arrival != Arrival::Closed { rate_cap_per_s: None }
    });
    if let Some(stream) = requested {
        let says = format!("the plan limits stream {} by a cap or pauses", stream.name);
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .advise("treat the rate as sustained, not as the maximum"),
        );
    }
    let rates = rates(bundle);
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n.max(1.0);
    // A rate of zero is not a cap.
    if n < 20.0 || mean <= 0.0 {
        return None;
    }
    if let Some([held, after]) = burst_credit::lifted(&rates) {
        let until_s =
            measured(bundle)?.duration_ns as f64 / 1e9 * held.end as f64 / rates.len() as f64;
        let says = format!(
            "a limit held the rate at {:.0}/s until {until_s:.1} s; then it rose to {:.0}/s, so \
             the mean mixes both",
            held.mean, after.mean
        );
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .with("held_per_s", held.mean)
                .with("after_per_s", after.mean)
                .advise(
                    "find what limits this volume, and measure again under a constant limit or \
                    without a limit",
                ),
        );
    }
    let square = rates.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let variation = square.sqrt() / mean.max(f64::MIN_POSITIVE);
    let finding = if variation < VARIATION_MIN {
        let says = format!(
            "the rate of {mean:.0}/s varied by only {:.2} %: a rate limit, not the device, sets \
             it",
            variation * 100.0
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("find what limits this volume")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "the rate varies like the rate of a device")
    };
    Some(finding.with("variation", variation))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_rate_that_is_too_flat_is_a_cap() {
        let mut bundle = fixtures::reads();
        fixtures::rates(&mut bundle, |t| (1000 + t * 7 % 60, 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        fixtures::rates(&mut bundle, |t| (1000 + t % 4, 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn a_limit_that_was_lifted_meanwhile_is_named_and_a_warm_up_is_not() {
        let mut bundle = fixtures::reads();
        let rate = |t: u64| if t < 250 { 500 + t % 2 } else { 1500 + t * 7 % 211 };
        fixtures::rates(&mut bundle, |t| (rate(t), 800_000));
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Warn);
        assert!(finding.says.contains("until 25.0 s; then it rose"), "{}", finding.says);
        let rate = |t: u64| if t < 250 { 500 + t * 7 % 211 } else { 1500 + t * 7 % 211 };
        fixtures::rates(&mut bundle, |t| (rate(t), 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn a_cap_of_the_plan_is_named() {
        let bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 8\nrate = 5000");
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn no_rate_is_no_cap() {
        let mut bundle = fixtures::reads();
        fixtures::rates(&mut bundle, |_| (0, 0));
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.series.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
    }
}
