//! Are there enough samples for the percentile that is quoted?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, reads};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::stats::percentile_gate;

/// The percentile that a claim on the tail is about, where the requirement names none.
const P_DEFAULT: f64 = 0.99;

/// The rule.
pub const RULE: Rule = Rule {
    id: "percentile-samples",
    asks: "are there enough samples for the percentiles that are judged?",
    explains: "A percentile rests on the samples beyond it: a p99.9 of 2,000 operations on the two \
        slowest. At least ten must lie beyond. The percentiles are those of the requirement, and p99 \
        for a claim on tail latency. Histograms are merged; percentiles of parts are never averaged.",
    bears_on: &[(Claim::TailLatency, Weight::Mandatory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let limits = bundle.plan.requirement.iter().flat_map(|requirement| &requirement.limits);
    let judged = limits.filter_map(|limit| limit.statistic.quantile()).fold(P_DEFAULT, f64::max);
    let samples = [true, false]
        .into_iter()
        .filter_map(|is_read| reads::merged(bundle, is_read))
        .map(|histogram| histogram.len())
        .min();
    let Some(samples) = samples else {
        let counted: u64 = bundle.run.classes.iter().map(|class| class.count).sum();
        return (counted > 0).then(|| {
            let says = "the latencies' distribution is not known";
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("have the tool write its histogram")
        });
    };
    let beyond = samples as f64 * (1.0 - judged);
    let says = format!("p{} rests on {beyond:.0} of {samples} samples", judged * 100.0);
    let finding = if percentile_gate(samples as usize, samples as f64, judged).is_ok() {
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        Finding::new(RULE.id, Outcome::Unknown, format!("{says}: ten are needed"))
            .advise("measure for longer, or quote a lower percentile")
    };
    Some(finding.with("samples", samples).with("percentile", judged))
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn ten_samples_must_lie_beyond() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let mut few = plimsoll_evidence::latency::histogram();
        few.record_n(1000, 1000).unwrap();
        bundle.latency.insert("matrix.read".into(), few.clone());
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        few.subtract(&{
            let mut one = plimsoll_evidence::latency::histogram();
            one.record(1000).unwrap();
            one
        })
        .unwrap();
        bundle.latency.insert("matrix.read".into(), few);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.latency.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_higher_percentile_of_the_requirement_needs_more() {
        let to = "[requirement]\nread_latency_p9999 = \"50ms\"\n[target]";
        let mut bundle = made_up::reads_with("[target]", to);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let mut few = plimsoll_evidence::latency::histogram();
        few.record_n(1000, 99_000).unwrap();
        bundle.latency.insert("matrix.read".into(), few);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
