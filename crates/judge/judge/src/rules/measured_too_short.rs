//! Checks that the measurement was long enough and had enough operations.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};
use crate::words::span;

/// Minimum length of the measurement for the claim `sustained-write` in another tool's result.
/// Shorter runs cannot show the effects of full caches and of background work. IO500 requires at
/// least 300 s for every write phase; SNIA and Jetstress require hours.
const SUSTAINED_NS_MIN: u64 = 300_000_000_000;

/// Minimum length of the measurement for a PASS, regardless of the plan. The quickstart measures
/// for this time. Write caches, burst credit and the cache of fresh flash are exhausted within
/// seconds.
pub const PASS_NS_MIN: u64 = 30_000_000_000;
/// Minimum number of operations for a PASS, so that the slowest 1 % contains ten operations.
pub const PASS_OPERATIONS_MIN: u64 = 1_000;

pub const RULE: Rule = Rule {
    id: "measured-too-short",
    asks: "was the measurement as long as the plan requires, and long enough for a PASS?",
    explains: "A plan sets the minimum length of the measurement (`evidence.min_measure`, 10 \
               minutes by default). A shorter measurement is INCONCLUSIVE: write caches and burst \
               credits may last for the whole of a short run, so it does not show which load a \
               system sustains. A plan may set a shorter minimum, but no requirement passes with \
               less than 30 s or fewer than 1,000 operations. A plan cannot accept an unknown \
               outcome of this rule.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let foreign = bundle.run.driver == Driver::Foreign;
    let measured_ns = bundle.run.measure().map_or(0, |phase| phase.duration_ns);
    if let Some(phase) = bundle.run.measure().filter(|phase| foreign && !phase.note.is_empty()) {
        let says = format!("the length of the measurement is unknown: {}", phase.note);
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("ask the author of the result how long the measurement was"),
        );
    }
    let operations = figures::totals(bundle, Pick::Transactional).count;
    let finding = length(bundle, measured_ns).unwrap_or_else(|| {
        if bundle.plan.requirement.is_some() && operations < PASS_OPERATIONS_MIN {
            let says = format!(
                "{operations} operations were measured; a PASS requires at least \
                 {PASS_OPERATIONS_MIN}"
            );
            let advice = match needed_ns(measured_ns, operations) {
                Some(ns) => format!("measure for {} at this rate", span(ns)),
                None => "measure for longer".to_owned(),
            };
            return Finding::new(RULE.id, Outcome::Unknown, says).advise(advice);
        }
        let says = format!("measured for {:.1} s", measured_ns as f64 / 1e9);
        Finding::new(RULE.id, Outcome::Pass, says)
    });
    let finding = finding.with("measured_ns", measured_ns);
    Some(if figures::has_figures(bundle) {
        finding.with("operations", operations)
    } else {
        finding
    })
}

/// Returns how long a run must measure, at the observed rate, to reach the number of operations
/// that a PASS requires.
fn needed_ns(measured_ns: u64, operations: u64) -> Option<u64> {
    let required = u128::from(measured_ns) * u128::from(PASS_OPERATIONS_MIN);
    u64::try_from(required.checked_div(operations.into())?).ok()
}

/// Returns the finding if the measured phase was too short.
fn length(bundle: &Bundle, measured_ns: u64) -> Option<Finding> {
    let foreign = bundle.run.driver == Driver::Foreign;
    let own_ns = bundle.plan.evidence.min_measure_ns;
    let limits = [
        (own_ns, if foreign { "a reliable figure requires" } else { "the plan requires" }),
        // Another tool's result has no plan that could require a shorter time.
        (
            if foreign && bundle.plan.claims.contains(&Claim::SustainedWrite) {
                SUSTAINED_NS_MIN
            } else {
                0
            },
            "a sustained rate requires",
        ),
        (if bundle.plan.requirement.is_some() { PASS_NS_MIN } else { 0 }, "a PASS requires"),
    ];
    let (limit_ns, who) = limits.into_iter().max_by_key(|(ns, _)| *ns)?;
    // A phase ends with the first completion after its planned end, and never early. One
    // millisecond is more than the rounding error of start and end.
    if measured_ns.saturating_add(1_000_000) >= limit_ns {
        return None;
    }
    if foreign && !figures::has_figures(bundle) {
        let says = "nothing was measured: the command's result, which contains the figures, was not \
                    given";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("name the file with the command's result: --result FILE"),
        );
    }
    let (is, requested) = (measured_ns as f64 / 1e9, limit_ns as f64 / 1e9);
    let missing = span(limit_ns - measured_ns);
    let says = format!(
        "measured for {is:.1} s; {who} at least {requested:.0} s: the measurement is {missing} too \
         short"
    );
    let advice =
        format!("measure for {}, which is {missing} longer than this measurement", span(limit_ns));
    let finding = Finding::new(RULE.id, Outcome::Unknown, says).advise(advice);
    Some(finding.with("limit_ns", limit_ns))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn an_observed_command_without_a_result_measured_nothing() {
        let mut bundle = fixtures::writes();
        bundle.run.driver = Driver::Foreign;
        bundle.run.classes.clear();
        bundle.series.clear();
        bundle.latency.clear();
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.starts_with("nothing was measured"), "{}", finding.says);
    }

    #[test]
    fn a_foreign_claim_on_what_lasts_needs_five_minutes() {
        let mut bundle = fixtures::writes();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.phases[1].duration_ns = SUSTAINED_NS_MIN;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        // A result file may contain any duration, even the largest possible value.
        bundle.run.phases[1].duration_ns = u64::MAX;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn it_says_how_much_longer_to_measure() {
        let mut bundle = fixtures::reads();
        bundle.plan.evidence.min_measure_ns = 600_000_000_000;
        bundle.run.phases[1].duration_ns = 20_000_000_000;
        let finding = check(&bundle).unwrap();
        let says = "measured for 20.0 s; the plan requires at least 600 s: the measurement is 9 min 40 s too short";
        assert_eq!(finding.says, says);
        assert_eq!(
            finding.advice,
            "measure for 10 min, which is 9 min 40 s longer than this measurement"
        );
    }

    #[test]
    fn whatever_the_plan_asks_a_requirement_takes_half_a_minute_and_a_thousand_operations() {
        let to = "[requirement]\niops = 5\n[target]";
        let mut bundle = fixtures::reads_with("[target]", to);
        bundle.plan.evidence.min_measure_ns = 100_000_000;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.phases[1].duration_ns = PASS_NS_MIN - fixtures::SECOND_NS;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.phases[1].duration_ns = PASS_NS_MIN;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.classes[0].count = PASS_OPERATIONS_MIN - 1;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        // A run without a requirement may be shorter and have fewer operations.
        bundle.plan.requirement = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
