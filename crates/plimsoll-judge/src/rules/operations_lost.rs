//! Were all operations that were due seen to their end?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Counters that the driver leaves.
const ABANDONED: &str = "operations_abandoned";
const NEVER_STARTED: &str = "operations_never_started";
const MERGED: &str = "intervals_merged";

/// The rule.
pub const RULE: Rule = Rule {
    id: "operations-lost",
    asks: "were all operations that were due started, and seen to their end?",
    explains: "After the measured phase operations that are in flight, and arrivals that were due, are \
        waited for, and their latencies count. What has not come back when that time is over is in no \
        latency and in no percentile: storage that hangs at the end looks fast. Operations that never \
        came back are a failure, as an error would be. Arrivals that were due and never started leave \
        the tail unknown. Where intervals were merged because the recorder fell behind, the series is \
        coarser than planned, and nothing is missing from it. No plan can accept this rule as unknown.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if bundle.run.driver == Driver::Foreign {
        return None;
    }
    let counted = |name: &str| bundle.run.counters.get(name).copied().unwrap_or(0);
    let (abandoned, never_started) = (counted(ABANDONED), counted(NEVER_STARTED));
    let merged = counted(MERGED);
    let drained: u64 = bundle.run.classes.iter().map(|class| class.drained).sum();
    let finding = if abandoned > 0 {
        let says = format!(
            "{abandoned} operations had not come back when the wait for them was over: no latency \
             holds them"
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("look at the kernel's log and the storage system's own for what hung")
    } else if never_started > 0 {
        let says = format!(
            "{never_started} operations that were due were never started: what they would have waited \
             is in no latency"
        );
        Finding::new(RULE.id, Outcome::Unknown, says).advise("ask for a rate that can be carried")
    } else if merged > 0 {
        let says = format!("{merged} intervals were merged: the series is coarser than planned");
        Finding::new(RULE.id, Outcome::Warn, says).advise("use longer intervals")
    } else {
        let says = format!("every operation came back, {drained} of them after the end");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(
        finding
            .with("abandoned", abandoned)
            .with("never_started", never_started)
            .with("drained", drained)
            .with("intervals_merged", merged),
    )
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    fn with(counters: &[(&str, u64)]) -> Option<Outcome> {
        let mut bundle = made_up::reads();
        for (name, value) in counters {
            bundle.run.counters.insert((*name).to_owned(), *value);
        }
        made_up::outcome(&RULE, &bundle)
    }

    #[test]
    fn what_never_came_back_fails_and_what_was_never_started_is_unknown() {
        assert_eq!(with(&[]), Some(Outcome::Pass));
        assert_eq!(with(&[(ABANDONED, 0), (NEVER_STARTED, 0), (MERGED, 0)]), Some(Outcome::Pass));
        assert_eq!(with(&[(ABANDONED, 8), (NEVER_STARTED, 1)]), Some(Outcome::Fail));
        assert_eq!(with(&[(NEVER_STARTED, 1), (MERGED, 1)]), Some(Outcome::Unknown));
        assert_eq!(with(&[(MERGED, 1)]), Some(Outcome::Warn));
    }
}
