//! Detects whether a limit caps the rate.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::DEPTH_NOT_STATED_PAUSE_NS;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Arrival;

use super::not_steady::rates;
use super::{Rule, Weight, burst_credit, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Minimum variation, from second to second, of the rate of a device without a rate limit. A lower
/// variation may also be the noise of a fast device whose latencies vary independently.
const VARIATION_MIN: f64 = 0.005;
/// Range of the ratio of the measured variation to this noise at which the noise explains the
/// variation. Measured with modelled devices: 0.86 to 1.25; with a modelled limit: 0.05.
const NOISE_RATIO: std::ops::RangeInclusive<f64> = 0.5..=2.0;

pub const RULE: Rule = Rule {
    id: "rate-capped",
    asks: "does a rate limit, rather than the storage, determine the rate?",
    explains: "A plan may limit the rate of a closed loop; pauses between operations have the same \
               effect. The rate of a volume with a rate limit is steadier than that of any device: \
               it varies by less than 0.5 % between intervals, and by less than independent \
               latencies explain (V/√n for n operations of variation V). The measured rate is then \
               the limit: the storage sustains this rate, but its maximum is unknown. If the limit was removed \
               during the measurement, the series shows a constant rate and then a higher rate, and \
               the figure is a mean of both.",
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
        stream.think_time_ns > DEPTH_NOT_STATED_PAUSE_NS
            || stream.arrival != Arrival::Closed { rate_cap_per_s: None }
    });
    if let Some(stream) = requested {
        let who = if bundle.run.driver == Driver::Foreign { "job" } else { "plan" };
        let says = format!(
            "the {who} limits the rate of stream {}, with a rate cap or with pauses between \
             operations",
            stream.name
        );
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .advise("read the figure as a rate that the storage sustains, not as its maximum"),
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
            "a limit fixed the rate at {:.0}/s until {until_s:.1} s; then it rose to {:.0}/s, so \
             the figure is a mean of both",
            held.mean, after.mean
        );
        return Some(
            Finding::new(RULE.id, Outcome::Warn, says)
                .with("held_per_s", held.mean)
                .with("after_per_s", after.mean)
                .advise(
                    "find out what limits this volume, and measure again with a constant limit or \
                     without a limit",
                ),
        );
    }
    let square = rates.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let variation = square.sqrt() / mean.max(f64::MIN_POSITIVE);
    let width_s = measured(bundle)?.duration_ns as f64 / 1e9 / n;
    let is_noise = latency_variation(bundle).is_some_and(|latency| {
        NOISE_RATIO.contains(&(variation / (latency / (mean * width_s).sqrt())))
    });
    let finding = if variation < VARIATION_MIN && !is_noise {
        let says = format!(
            "the rate of {mean:.0}/s varied by only {:.2} %: a rate limit determines it, not the \
             device",
            variation * 100.0
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("find out what limits the rate of this volume")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "the rate varies like the rate of a device")
    };
    Some(finding.with("variation", variation))
}

/// Returns the coefficient of variation of the workload's latencies; `None` without a histogram.
/// The number of operations that complete in an interval varies by this value, divided by the
/// square root of the number, if the latencies are independent (renewal theory).
fn latency_variation(bundle: &Bundle) -> Option<f64> {
    let mut all = plimsoll_evidence::latency::histogram();
    for class in bundle.run.classes.iter().filter(|class| class.group == "transactional") {
        if class.count > 0 {
            all.add(bundle.latency.get(&class.name)?).ok()?;
        }
    }
    (!all.is_empty() && all.mean() > 0.0).then(|| all.stdev() / all.mean())
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

    /// A fast device completes many operations in each interval, so their rate varies by less than
    /// 0.5 %.
    #[test]
    fn a_rate_that_varies_as_independent_latencies_do_is_no_cap() {
        let mut bundle = fixtures::reads();
        // The latencies of the fixture vary by 29 %, so 10,000 operations vary by 0.29 %.
        fixtures::rates(&mut bundle, |t| (10_000 + t * 7 % 101, 80_000));
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Pass, "{}", finding.says);
        fixtures::rates(&mut bundle, |t| (10_000 + t * 7 % 11, 80_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        // Without a distribution, the noise is unknown.
        bundle.latency.clear();
        fixtures::rates(&mut bundle, |t| (10_000 + t * 7 % 101, 80_000));
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
    fn a_result_without_a_depth_has_no_cap() {
        let mut bundle = fixtures::reads_with("queue_depth = 8", "think_time = \"1ns\"");
        bundle.series.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle = fixtures::reads_with("queue_depth = 8", "think_time = \"1ms\"");
        bundle.run.driver = Driver::Foreign;
        let says = fixtures::finding(&RULE, &bundle).says;
        assert!(says.starts_with("the job limits the rate"), "{says}");
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
