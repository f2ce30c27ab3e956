//! Were all operations that were due seen to their end?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{ClassTotals, Driver};

use super::{Rule, Weight};
use crate::checks;
use crate::claim::Claim;
use crate::figures::{self, Pick, measured};
use crate::finding::{Finding, Outcome};

/// Counters of the driver: how many there were, for evidence whose latencies leave them out.
const ABANDONED: &str = "operations_abandoned";
const NEVER_STARTED: &str = "operations_never_started";
/// Share of the measured rate at which storage that works off what was asked too much goes on to answer.
const WORKS_OFF_MIN: f64 = 0.5;
/// How many intervals were lengthened.
const MERGED: &str = "intervals_merged";

/// The rule.
pub const RULE: Rule = Rule {
    id: "operations-lost",
    asks: "were all operations that were due started, and seen to their end?",
    explains: "Operations that are in flight when the measurement ends are waited for and count with all \
        of their latency, and an open loop still starts what was due. What has not come back three \
        minutes later is abandoned, and what was due and could not be started within one minute is left. \
        Both count in every mean, percentile and maximum with the time that they had waited, which is \
        the least that they can have taken. Operations that never came back are a failure, as an error \
        would be: look at what hung (the kernel's log, the storage system's own). Where the storage went on \
        answering all through the wait, at half of the measured rate or more, it did not hang: an open loop had \
        asked for more than it carries, and what is left, as arrivals that were due and never started, leaves the \
        tail unknown: ask for a rate that can be carried. Where intervals \
        were merged because the recorder fell behind, the series is coarser than planned, and nothing is \
        missing from it. No plan can accept this rule as unknown.",
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

/// What did not come to an end.
struct Lost {
    abandoned: u64,
    never_started: u64,
    /// Whether latencies count them, with the time that they had waited.
    in_latencies: bool,
    /// Whether the storage went on answering for all of the wait.
    works_off: bool,
}

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if bundle.run.driver == Driver::Foreign || bundle.run.classes.is_empty() {
        return None;
    }
    let Some(lost) = lost(bundle) else {
        let says = "what was in flight at the end was not recorded by the version that measured";
        let finding = Finding::new(RULE.id, Outcome::Unknown, says);
        return Some(finding.advise("measure again with this version"));
    };
    let merged = bundle.run.counters.get(MERGED).copied().unwrap_or(0);
    let drained: u64 = operations(bundle).map(|class| class.drained).sum();
    Some(
        finding(&lost, merged, drained)
            .with("abandoned", lost.abandoned)
            .with("never_started", lost.never_started)
            .with("drained", drained)
            .with("intervals_merged", merged),
    )
}

/// The classes of operations by themselves: writes with their flushes are in them as both.
fn operations(bundle: &Bundle) -> impl Iterator<Item = &ClassTotals> {
    bundle.run.classes.iter().filter(|class| class.group != figures::DURABLE)
}

/// What the classes say, or in older evidence the driver's counters; `None` where neither does.
fn lost(bundle: &Bundle) -> Option<Lost> {
    let sum = |of: fn(&ClassTotals) -> Option<u64>| operations(bundle).map(of).sum::<Option<u64>>();
    let of_classes = sum(|class| class.abandoned).zip(sum(|class| class.never_started));
    if let Some((abandoned, never_started)) = of_classes {
        let works_off = works_off(bundle);
        return Some(Lost { abandoned, never_started, in_latencies: true, works_off });
    }
    let counter = |name: &str| bundle.run.counters.get(name).copied();
    let (abandoned, never_started) = counter(ABANDONED).zip(counter(NEVER_STARTED))?;
    Some(Lost { abandoned, never_started, in_latencies: false, works_off: false })
}

/// Whether what came back in the wait after the measurement came at a rate like that of the measurement. What
/// hangs answers nothing.
fn works_off(bundle: &Bundle) -> bool {
    let waited_s = figures::drain_ns(bundle) as f64 / figures::NS_PER_S;
    let rate = figures::rate_per_s(bundle, Pick::Transactional).unwrap_or(0.0);
    let unfinished: u64 = operations(bundle).filter_map(ClassTotals::unfinished).sum();
    let drained = figures::totals(bundle, Pick::Transactional).drained;
    let came_back = drained.saturating_sub(unfinished) as f64;
    let open = checks::open_loop(bundle) && waited_s > 0.0 && rate > 0.0;
    open && came_back >= rate * waited_s * WORKS_OFF_MIN
}

fn finding(lost: &Lost, merged: u64, drained: u64) -> Finding {
    let Lost { abandoned, never_started, in_latencies, works_off } = *lost;
    let latencies = if in_latencies {
        "latencies hold only how long they had waited"
    } else {
        "no latency holds them"
    };
    if abandoned > 0 && works_off {
        let says = format!(
            "more was asked than is carried: {abandoned} operations had not come back when the wait for them was \
             over, though it was answered all that time: {latencies}"
        );
        Finding::new(RULE.id, Outcome::Unknown, says).advise("ask for a rate that can be carried")
    } else if abandoned > 0 {
        let says = format!(
            "{abandoned} operations had not come back when the wait for them was over: {latencies}"
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("look at the kernel's log and the storage system's own for what hung")
    } else if never_started > 0 {
        let says =
            format!("{never_started} operations that were due were never started: {latencies}");
        Finding::new(RULE.id, Outcome::Unknown, says).advise("ask for a rate that can be carried")
    } else if merged > 0 {
        let says = format!("{merged} intervals were merged: the series is coarser than planned");
        Finding::new(RULE.id, Outcome::Warn, says).advise("use longer intervals")
    } else {
        let says = format!("every operation came back, {drained} of them after the end");
        Finding::new(RULE.id, Outcome::Pass, says)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::run::PhaseKind;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn what_never_came_back_fails_and_what_was_never_started_is_unknown() {
        let with = |abandoned, never_started, merged| {
            let mut bundle = fixtures::reads();
            let class = &mut bundle.run.classes[0];
            (class.abandoned, class.never_started) = (Some(abandoned), Some(never_started));
            bundle.run.counters.insert(MERGED.to_owned(), merged);
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads()), Some(Outcome::Pass));
        assert_eq!(with(0, 0, 0), Some(Outcome::Pass));
        assert_eq!(with(8, 1, 0), Some(Outcome::Fail));
        assert_eq!(with(0, 1, 1), Some(Outcome::Unknown));
        assert_eq!(with(0, 0, 1), Some(Outcome::Warn));
    }

    #[test]
    fn what_is_left_of_too_much_is_unknown_and_what_hung_fails() {
        let with = |drained, waited_s| {
            let mut bundle = fixtures::reads_with(
                "queue_depth = 8",
                "queue_depth = 8\narrival = \"constant\"\nrate = 30000",
            );
            bundle.run.engine.closed_loop = false;
            let mut close = bundle.run.phases[1].clone();
            (close.kind, close.duration_ns) = (PhaseKind::Close, waited_s * fixtures::SECOND_NS);
            bundle.run.phases.push(close);
            let class = &mut bundle.run.classes[0];
            class.abandoned = Some(272);
            class.drained = drained + 272;
            class.count += class.drained;
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(with(180 * fixtures::RATE, 180), Some(Outcome::Unknown));
        assert_eq!(with(100 * fixtures::RATE, 180), Some(Outcome::Unknown));
        // It answered for a while, and then no more.
        assert_eq!(with(80 * fixtures::RATE, 180), Some(Outcome::Fail));
        assert_eq!(with(8, 180), Some(Outcome::Fail));
        assert_eq!(with(0, 0), Some(Outcome::Fail), "nobody waited");
    }

    #[test]
    fn an_older_version_is_asked_for_its_counters() {
        let mut bundle = fixtures::reads();
        let class = &mut bundle.run.classes[0];
        (class.abandoned, class.never_started) = (None, None);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        for name in [ABANDONED, NEVER_STARTED] {
            bundle.run.counters.insert(name.into(), 0);
        }
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.counters.insert(ABANDONED.into(), 8);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.ends_with("no latency holds them"), "{}", finding.says);
    }
}
