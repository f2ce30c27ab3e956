//! Checks that the judged percentiles have enough samples.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::tail::{Tail, supports_percentile};

/// Percentile that the rule judges for a claim about tail latency if the requirement contains no
/// percentile.
const P_DEFAULT: f64 = 0.99;

pub const RULE: Rule = Rule {
    id: "percentile-samples",
    asks: "are there enough samples for the judged percentiles?",
    explains: "A percentile depends on the samples above it: the p99.9 of 2,000 operations depends \
               on the two slowest operations. The rule requires at least ten samples above the \
               percentile. Slow operations come in clusters, and all slow operations of one stall \
               are a single event. The rule therefore counts effective, independent samples: the \
               more unevenly the slow operations are spread over the measurement, the fewer \
               effective samples there are. It judges the percentiles of the requirement, and the \
               p99 for a claim about tail latency. Plimsoll merges the histograms of parts; it \
               never averages their percentiles.",
    bears_on: &[(Claim::TailLatency, Weight::Mandatory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let limits = bundle.plan.requirement.iter().flat_map(|requirement| &requirement.limits);
    let judged = limits.filter_map(|limit| limit.statistic.quantile()).fold(P_DEFAULT, f64::max);
    let tails = [true, false].into_iter().filter_map(|is_read| {
        let tail = Tail::of(bundle, |c| c.is_read == is_read && c.size_bytes > 0)?;
        Some((tail.samples(), tail.effective_sample(judged)))
    });
    let worth = |(samples, effective): &(u64, Option<f64>)| effective.unwrap_or(*samples as f64);
    let least = tails.min_by(|a, b| worth(a).total_cmp(&worth(b)));
    let Some((samples, effective)) = least else {
        let counted: u64 = bundle.run.classes.iter().map(|class| class.count).sum();
        return (counted > 0).then(|| {
            let says = "the distribution of latencies is unknown";
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("configure the tool so that it writes its latency histogram")
        });
    };
    let beyond = samples as f64 * (1.0 - judged);
    let mut says = format!("p{} has {beyond:.0} of {samples} samples above it", judged * 100.0);
    if let Some(effective) = effective.filter(|effective| *effective < samples as f64) {
        says.push_str(&format!(
            "; the samples count as {effective:.0} independent samples, of which {:.1} are above it",
            effective * (1.0 - judged)
        ));
    }
    let finding = if supports_percentile(samples, effective.unwrap_or(samples as f64), judged) {
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        Finding::new(
            RULE.id,
            Outcome::Unknown,
            format!("{says}: at least ten samples above the percentile are needed"),
        )
        .advise("measure longer, or report a lower percentile")
    };
    let finding = finding.with("samples", samples).with("percentile", judged);
    Some(match effective {
        Some(effective) => finding.with("effective_samples", effective),
        None => finding,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn ten_samples_must_lie_beyond() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let mut few = plimsoll_evidence::latency::histogram();
        few.record_n(1000, 1000).unwrap();
        bundle.latency.insert("matrix.read".into(), few.clone());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        few.subtract(&{
            let mut one = plimsoll_evidence::latency::histogram();
            one.record(1000).unwrap();
            one
        })
        .unwrap();
        bundle.latency.insert("matrix.read".into(), few);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.latency.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn the_slow_ones_of_one_stall_are_one_event() {
        let mut bundle = fixtures::reads();
        let mut slow = plimsoll_evidence::latency::histogram();
        slow.record_n(fixtures::SECOND_NS, 9_000).unwrap();
        bundle.latency.get_mut("matrix.read").unwrap().add(&slow).unwrap();
        let mut stalled = bundle.latency_spans[30].histogram.unpack();
        stalled.add(&slow).unwrap();
        bundle.latency_spans[30].histogram = (&stalled).into();
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown, "{finding:?}");
        assert!(finding.says.contains("independent samples"), "{finding:?}");
    }

    #[test]
    fn a_higher_percentile_of_the_requirement_needs_more() {
        let to = "[requirement]\nread_latency_p9999 = \"50ms\"\n[target]";
        let mut bundle = fixtures::reads_with("[target]", to);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let mut few = plimsoll_evidence::latency::histogram();
        few.record_n(1000, 99_000).unwrap();
        bundle.latency.insert("matrix.read".into(), few);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
