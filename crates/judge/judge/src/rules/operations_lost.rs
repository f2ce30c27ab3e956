//! Checks that every due operation was started and completed.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{ClassTotals, Driver};

use super::{Rule, Weight};
use crate::checks;
use crate::claim::Claim;
use crate::figures::{self, Pick, measured};
use crate::finding::{Finding, Outcome};

/// Names of the driver's counters of unfinished operations. The rule uses these counters only for
/// older bundles, whose latencies omit unfinished operations.
const ABANDONED: &str = "operations_abandoned";
const NEVER_STARTED: &str = "operations_never_started";
/// If the rate during the final wait is at least this fraction of the measured rate, the storage
/// was completing a backlog.
const DRAIN_SHARE_MIN: f64 = 0.5;
/// Name of the counter of merged intervals.
const MERGED: &str = "intervals_merged";

pub const RULE: Rule = Rule {
    id: "operations-lost",
    asks: "was every due operation started and completed?",
    explains: "Plimsoll waits for operations in flight at the end of the measurement, and counts \
               their full latency. During this wait, an open loop also starts operations that are \
               already due. An operation that does not complete within three minutes is abandoned. \
               A due operation that cannot start within one minute is dropped. Both kinds count in \
               every mean, percentile and maximum with the time that they had waited, which is a \
               lower bound. If operations never complete, the rule fails, as it does after an I/O \
               error. Find out what hung (check the kernel log and the storage system's log). If \
               operations still completed during the wait, at no less than half of the measured \
               rate, the storage did not hang: the open loop requested a higher rate than the \
               storage sustains. After such a backlog, or if due operations were never started, the \
               tail latency is unknown: request a rate that the storage can sustain. If intervals \
               were merged because the recorder fell behind, the series is coarser than planned, \
               but complete. A plan cannot accept an unknown outcome of this rule.",
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

/// Operations that did not complete.
struct UnfinishedOperations {
    abandoned: u64,
    never_started: u64,
    /// True if the latencies include the waiting time of these operations.
    in_latencies: bool,
    /// True if the storage completed operations during the whole wait.
    drains_backlog: bool,
}

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if bundle.run.driver == Driver::Foreign || bundle.run.classes.is_empty() {
        return None;
    }
    let Some(unfinished) = unfinished(bundle) else {
        let says = "the Plimsoll version of this run did not record which operations were in flight \
                    at the end";
        let finding = Finding::new(RULE.id, Outcome::Unknown, says);
        return Some(finding.advise("repeat the run with this version"));
    };
    let merged = bundle.run.counters.get(MERGED).copied().unwrap_or(0);
    let drained: u64 = operations(bundle).map(|class| class.drained).sum();
    Some(
        finding(&unfinished, merged, drained)
            .with("abandoned", unfinished.abandoned)
            .with("never_started", unfinished.never_started)
            .with("drained", drained)
            .with("intervals_merged", merged),
    )
}

/// Returns the classes of operations, except classes whose operations another class already counts.
fn operations(bundle: &Bundle) -> impl Iterator<Item = &ClassTotals> {
    bundle.run.classes.iter().filter(|class| !figures::is_counted_elsewhere(class))
}

/// Returns the counts of unfinished operations. They come from the classes or, in older bundles,
/// from the driver's counters. `None` if neither the classes nor the counters include them.
fn unfinished(bundle: &Bundle) -> Option<UnfinishedOperations> {
    let sum = |of: fn(&ClassTotals) -> Option<u64>| operations(bundle).map(of).sum::<Option<u64>>();
    let of_classes = sum(|class| class.abandoned).zip(sum(|class| class.never_started));
    if let Some((abandoned, never_started)) = of_classes {
        let drains_backlog = drains_backlog(bundle);
        return Some(UnfinishedOperations {
            abandoned,
            never_started,
            in_latencies: true,
            drains_backlog,
        });
    }
    let counter = |name: &str| bundle.run.counters.get(name).copied();
    let (abandoned, never_started) = counter(ABANDONED).zip(counter(NEVER_STARTED))?;
    Some(UnfinishedOperations {
        abandoned,
        never_started,
        in_latencies: false,
        drains_backlog: false,
    })
}

/// Returns true if operations completed during the wait, at half of the measured rate or more. If
/// the storage hangs, no operation completes.
fn drains_backlog(bundle: &Bundle) -> bool {
    let waited_s = figures::drain_ns(bundle) as f64 / figures::NS_PER_S;
    let rate = figures::rate_per_s(bundle, Pick::Transactional).unwrap_or(0.0);
    let unfinished: u64 = operations(bundle).filter_map(ClassTotals::unfinished).sum();
    let drained = figures::totals(bundle, Pick::Transactional).drained;
    let came_back = drained.saturating_sub(unfinished) as f64;
    let open = checks::open_loop(bundle) && waited_s > 0.0 && rate > 0.0;
    open && came_back >= rate * waited_s * DRAIN_SHARE_MIN
}

fn finding(unfinished: &UnfinishedOperations, merged: u64, drained: u64) -> Finding {
    let UnfinishedOperations { abandoned, never_started, in_latencies, drains_backlog } =
        *unfinished;
    let latencies = if in_latencies {
        "the latencies include the waiting time of the unfinished operations as a lower bound"
    } else {
        "unfinished operations are not included in the latencies"
    };
    if abandoned > 0 && drains_backlog {
        let says = format!(
            "the load was higher than the storage sustains: {abandoned} operations had not \
             completed when the wait ended, although the storage kept completing operations; \
             {latencies}"
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("request a rate that the storage can sustain")
    } else if abandoned > 0 {
        let says =
            format!("{abandoned} operations had not completed when the wait ended; {latencies}");
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out what hung: check the kernel log and the storage system's log")
    } else if never_started > 0 {
        let says = format!("{never_started} due operations were never started; {latencies}");
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("request a rate that the storage can sustain")
    } else if merged > 0 {
        let says = format!("{merged} intervals were merged: the series is coarser than planned");
        Finding::new(RULE.id, Outcome::Warn, says).advise("use longer intervals")
    } else {
        let says = format!(
            "every operation completed; {drained} operations completed after the end of the \
             measurement"
        );
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
        // The storage completed operations for part of the wait, and then hung.
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
        assert!(finding.says.ends_with("not included in the latencies"), "{}", finding.says);
    }
}
