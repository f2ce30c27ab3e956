//! Was it measured as long as the plan asks?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// A claim on what lasts needs at least this unless the plan says otherwise; less shows neither full
/// caches nor background work. IO500 asks 300 s of every phase that writes, SNIA and Jetstress hours.
const SUSTAINED_NS_MIN: u64 = 300_000_000_000;

/// The rule.
pub const RULE: Rule = Rule {
    id: "measured-too-short",
    asks: "was it measured for at least the plan's own minimum?",
    explains: "A plan states how long must be measured at least (`evidence.min_measure`, 10 minutes \
        by default). Less is INCONCLUSIVE. Short runs fit into write caches and burst credits: they \
        never show what a system sustains.",
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
    let lasting = foreign && bundle.plan.claims.contains(&Claim::SustainedWrite);
    let limit_ns = match bundle.plan.evidence.min_measure_ns {
        // A result made elsewhere comes without a plan that could have asked for less.
        limit if lasting => limit.max(SUSTAINED_NS_MIN),
        limit => limit,
    };
    let measured_ns = bundle.run.measure().map_or(0, |phase| phase.duration_ns);
    if let Some(phase) = bundle.run.measure().filter(|phase| foreign && !phase.note.is_empty()) {
        let says = format!("how long it was measured is not known: {}", phase.note);
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("ask who measured it"));
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (is, asked) = (seconds(measured_ns), seconds(limit_ns));
    // A phase ends on its first completion after the time is up, and never early; a millisecond
    // covers the rounding of its ends.
    let finding = if measured_ns + 1_000_000 < limit_ns {
        let who = if foreign { "it takes" } else { "the plan asks for" };
        let says = format!("measured for {is:.1} s where {who} at least {asked:.0} s");
        Finding::new(RULE.id, Outcome::Unknown, says).advise("measure for longer")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("measured for {is:.1} s"))
    };
    Some(finding.with("measured_ns", measured_ns).with("limit_ns", limit_ns))
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn a_foreign_claim_on_what_lasts_needs_five_minutes() {
        let mut bundle = made_up::writes();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.phases[1].duration_ns = SUSTAINED_NS_MIN;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
