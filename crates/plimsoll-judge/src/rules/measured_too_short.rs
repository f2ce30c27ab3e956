//! Was it measured as long as the plan asks?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Plans ask for at least this unless they say otherwise; less shows neither full caches nor
/// background work. IO500 asks 300 s of every phase, SNIA and Jetstress hours.
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
    let limit_ns = bundle.plan.evidence.min_measure_ns;
    let measured_ns = bundle.run.measure().map_or(0, |phase| phase.duration_ns);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (is, asked) = (seconds(measured_ns), seconds(limit_ns));
    // A phase ends on its first completion after the time is up, and never early; a millisecond
    // covers the rounding of its ends.
    let finding = if measured_ns + 1_000_000 < limit_ns {
        let says = format!("measured for {is:.1} s where the plan asks for at least {asked:.0} s");
        Finding::new(RULE.id, Outcome::Unknown, says).advise("measure for longer")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("measured for {is:.1} s"))
    };
    Some(finding.with("measured_ns", measured_ns).with("limit_ns", limit_ns))
}

/// True where the measurement was long enough for a claim on what a system sustains.
pub fn sustained(bundle: &Bundle) -> bool {
    bundle.run.measure().is_some_and(|phase| phase.duration_ns >= SUSTAINED_NS_MIN)
}
