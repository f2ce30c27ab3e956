//! Is the rate a cap that somebody set?

use plimsoll_evidence::Bundle;
use plimsoll_plan::Arrival;

use super::not_steady::rates;
use super::{Rule, Weight, burst_credit, seen};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// A rate that varies less than this between seconds is held by a clock, not by a device.
const VARIATION_MIN: f64 = 0.005;

/// The rule.
pub const RULE: Rule = Rule {
    id: "rate-capped",
    asks: "is the rate that of a cap, and not of the storage?",
    explains: "A plan may cap a closed loop; pauses between operations do the same. A volume with a \
        limit on its rate holds it flatter than any device: a variation below 0.5 % from interval to \
        interval. The figure is then the cap: it shows that the storage carries that much, not how \
        much more it could. A limit that was lifted while it was measured leaves a plateau that flat \
        before a higher one: the figure is of both.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let streams = seen::streams(bundle);
    if streams.is_empty() || streams.iter().any(|stream| stream.arrival.is_open()) {
        return None;
    }
    let asked = streams.iter().find(|stream| {
        stream.think_time_ns > 0 || stream.arrival != Arrival::Closed { rate_cap_per_s: None }
    });
    if let Some(stream) = asked {
        let says = format!("the plan holds stream {} back by a cap or pauses", stream.name);
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .advise("read the rate as one that was carried, not as the most that can be"),
        );
    }
    let rates = rates(bundle);
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n.max(1.0);
    // Nothing is no rate that anything holds.
    if n < 20.0 || mean <= 0.0 {
        return None;
    }
    if let Some([held, after]) = burst_credit::lifted(&rates) {
        let until_s =
            measured(bundle)?.duration_ns as f64 / 1e9 * held.end as f64 / rates.len() as f64;
        let says = format!(
            "a limit held the rate at {:.0} a second until {until_s:.1} s and no longer, when it rose to {:.0}: \
             the mean is of both",
            held.mean, after.mean
        );
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .with("held_per_s", held.mean)
                .with("after_per_s", after.mean)
                .advise("ask who limits this volume, and measure again under one limit or none"),
        );
    }
    let square = rates.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let variation = square.sqrt() / mean.max(f64::MIN_POSITIVE);
    let finding = if variation < VARIATION_MIN {
        let says = format!(
            "the rate of {mean:.0} a second varied by {:.2} %: a limit holds it, not a device",
            variation * 100.0
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("ask who limits this volume")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "nothing holds the rate flat")
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
        assert!(finding.says.contains("until 25.0 s and no longer"), "{}", finding.says);
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
