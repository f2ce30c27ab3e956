//! Checks that the media had reached their long-term state.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, PhaseKind};
use plimsoll_plan::{Condition, Media};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::location;

/// Minimum number of bytes written before the measurement, in multiples of the working set (SNIA
/// SSS PTS 2.0.2).
const TIMES_WRITTEN_MIN: f64 = 2.0;

pub const RULE: Rule = Rule {
    id: "conditioned",
    asks: "was enough data written before the measurement for the storage to reach its long-term \
           state?",
    explains: "Fresh flash writes several times faster than full flash, and an empty pool has no \
               data to relocate. SNIA SSS PTS 2.0.2 requires writes of twice the capacity before \
               the measurement. A test that only waits for a steady rate accepts fresh flash too \
               early: in one measurement, the accepted rate was 88 % too high. The rule compares \
               the size of the working set with the bytes that this run wrote to it before the \
               measurement, including preparation and conditioning. `phases.condition = \
               \"fill-twice\"` writes the working set twice. Rotating disks (`observe.media = \
               \"hdd\"`) have no such state. Plimsoll knows only the working set, not the whole \
               device: the device can use free space outside the working set as spare area.",
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
        let says = "the plan declares rotating disks, which have no fresh state";
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
    // The evidence of another tool has only the measured phase.
    let foreign = bundle.run.driver == Driver::Foreign;
    let Some(size) = data_bytes(bundle).filter(|_| !foreign) else {
        let says = "the number of bytes written before the measurement is unknown";
        let how = if foreign { "" } else { " (`phases.condition = \"fill-twice\"`)" };
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise(format!("write the data twice before the measurement{how}")),
        );
    };
    let times = written as f64 / size.max(1) as f64;
    // The factor is rounded down, so that 1.96 times is not shown as 2.0 times.
    let shown = (times * 10.0).floor() / 10.0;
    let text = format!("{shown:.1} times the working set was written before the measurement");
    let reached = !requested || carried_out.is_some_and(|phase| phase.reached);
    let finding = if times >= TIMES_WRITTEN_MIN && reached {
        Finding::new(RULE.id, Outcome::Pass, text)
    } else {
        let says = match reached {
            true => {
                format!("{text}: flash needs twice the working set to reach its long-term state")
            }
            false => format!("{text}, but the conditioning did not finish"),
        };
        // Databases are written once when they are created. Plans of mail stores have no
        // conditioning phase.
        let advice = if bundle.plan.workload.mailbox().is_some() {
            "fill more of the disks with the store, or declare `observe.media = \"hdd\"`"
        } else {
            "set `phases.condition = \"fill-twice\"`, or declare `observe.media = \"hdd\"`"
        };
        Finding::new(RULE.id, Outcome::Unknown, says).advise(advice)
    };
    Some(finding.with("times_written", times))
}

/// Returns the size of the data that the run reads and writes, in bytes.
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
        bundle.run.phases[0].written_bytes = (2 << 30) - (32 << 20);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.starts_with("1.9 times"), "{}", finding.says);
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
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.ends_with("did not finish"), "{}", finding.says);
    }

    #[test]
    fn another_tool_does_not_state_what_was_written_before() {
        let mut bundle = fixtures::writes();
        bundle.run.driver = Driver::Foreign;
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!((finding.outcome, finding.evidence.len()), (Outcome::Unknown, 0));
        assert!(finding.says.ends_with("is unknown"), "{}", finding.says);
    }

    #[test]
    fn reads_alone_are_not_asked() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads()), None);
    }
}
