//! Checks that the media had reached their long-term state.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::{Condition, Media};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::location;

/// Minimum writes before the measurement, in multiples of the working set (SNIA SSS PTS 2.0.2).
const TIMES_WRITTEN_MIN: f64 = 2.0;

pub const RULE: Rule = Rule {
    id: "conditioned",
    asks: "was enough written beforehand to bring the storage to its long-term state?",
    explains: "Fresh flash writes several times faster than full flash, and an empty pool has \
        nothing to relocate. SNIA SSS PTS 2.0.2 writes twice the capacity before it measures; a \
        test that only waits for a steady rate accepts fresh flash too early (measured: 88 % too \
        high). The rule compares the bytes that this run wrote to its working set, preparation and \
        conditioning included, with the size of that set. `phases.condition = \"fill-twice\"` \
        writes it twice. Rotating disks (`observe.media = \"hdd\"`) have no such state. Plimsoll \
        knows the working set only, not the whole device: unused space outside it gives the device \
        spare area.",
    bears_on: &[
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Advisory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if !evidence::is_real(bundle) || evidence::operations(bundle, false) == 0 {
        return None;
    }
    if let Some(what) = location::memory(bundle) {
        let says = format!("the target is memory ({what}), which has no long-term state");
        return Some(Finding::new(RULE.id, Outcome::Fail, says).advise("write to storage"));
    }
    if bundle.plan.observe.media == Some(Media::Hdd) {
        let says = "rotating disks, as declared, have no fresh state";
        return Some(Finding::new(RULE.id, Outcome::Pass, says).as_declared("media hdd"));
    }
    let written: u64 = bundle
        .run
        .phases
        .iter()
        .take_while(|phase| phase.kind != PhaseKind::Measure)
        .map(|phase| phase.written_bytes)
        .sum();
    let requested = bundle.plan.phases.condition != Condition::None;
    let carried_out = bundle.run.phases.iter().find(|phase| phase.kind == PhaseKind::Condition);
    let Some(size) = data_bytes(bundle) else {
        let says = "the amount written before the measurement is unknown";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(
            "write the data twice before the measurement (`phases.condition = \"fill-twice\"`)",
        ));
    };
    let times = written as f64 / size.max(1) as f64;
    let text = format!("{times:.1} times the working set was written before the measurement");
    let done = times >= TIMES_WRITTEN_MIN && (!requested || carried_out.is_some_and(|p| p.reached));
    let finding = if done {
        Finding::new(RULE.id, Outcome::Pass, text)
    } else {
        let says =
            format!("{text}: flash needs twice the working set to reach its long-term state");
        // Creating databases writes them once; plans of mail stores have no conditioning.
        let advice = if bundle.plan.workload.mailbox().is_some() {
            "fill more of the disks with the store, or declare `observe.media = \"hdd\"`"
        } else {
            "set `phases.condition = \"fill-twice\"`, or declare `observe.media = \"hdd\"`"
        };
        Finding::new(RULE.id, Outcome::Unknown, says).advise(advice)
    };
    Some(finding.with("times_written", times))
}

/// Returns the bytes of the data that the run works on.
fn data_bytes(bundle: &Bundle) -> Option<u64> {
    let files = bundle.observed.extents.as_ref().map(|extents| extents.size_bytes);
    let databases: u64 = bundle.run.instances.iter().map(|i| i.allocated_bytes).sum();
    let of_plan = || {
        let streams = evidence::streams(bundle).iter();
        streams.map(|s| s.files.working_set_bytes.or(s.files.total_bytes())).sum::<Option<u64>>()
    };
    Some(databases).filter(|bytes| *bytes > 0).or_else(of_plan).or(files).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn twice_the_working_set_is_enough_and_less_is_unknown() {
        let mut bundle = fixtures::writes();
        bundle.run.phases[0].written_bytes = 2 << 30;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.phases[0].written_bytes = (2 << 30) - (64 << 20);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.observe.media = Some(Media::Hdd);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn conditioning_that_was_cut_short_is_none() {
        let mut bundle = fixtures::writes();
        bundle.plan.phases.condition = Condition::FillTwice;
        bundle.run.phases[0].kind = PhaseKind::Condition;
        bundle.run.phases[0].written_bytes = 3 << 30;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.phases[0].reached = false;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn reads_alone_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads()), None);
    }
}
