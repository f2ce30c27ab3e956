//! Checks whether the write latency excludes the flush that makes the write durable.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_plan::SyncKind;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures;
use crate::finding::{Finding, Outcome};

/// A flush causes a finding if it adds at least this fraction to the latency of the write.
const ADDED_MIN: f64 = 0.1;

pub const RULE: Rule = Rule {
    id: "flush-left-out",
    asks: "does the write latency exclude the flushes that made the writes durable?",
    explains: "If fsync or fdatasync follows the writes, the latency of a write alone is not the \
     time until it is durable. In one test, the median was 63 us for the write alone, and 127 us \
     including its flush. If each write was timed until the end of its flush, the rule uses that \
     latency. For older evidence, it adds the total time of the flushes to the total time of the \
     writes, and divides the sum by the number of writes.",
    bears_on: &[(Claim::DurableWrite, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let mut kinds = evidence::streams(bundle).iter().map(|stream| stream.sync.kind);
    if !kinds.any(SyncKind::flushes) {
        return None;
    }
    let sum = |pick: &dyn Fn(&ClassTotals) -> bool| {
        (bundle.run.sum(pick, |c| c.count), bundle.run.sum(pick, |c| c.latency_ns_sum))
    };
    let (writes, write_ns) = sum(&|class| !class.is_read && class.size_bytes > 0);
    let (flushes, flush_ns) = sum(&|class| class.name.ends_with(".sync"));
    if writes == 0 {
        return None;
    }
    if bundle.run.sum(|class| class.group == figures::DURABLE, |class| class.count) > 0 {
        let says = "the latency of each write includes the flush that made it durable";
        return Some(Finding::new(RULE.id, Outcome::Pass, says).with("flushes", flushes));
    }
    let (alone, together) =
        (write_ns as f64 / writes as f64, (write_ns + flush_ns) as f64 / writes as f64);
    let finding = if flushes == 0 {
        let says = "the plan requires flushes, but no flush was timed";
        Finding::new(RULE.id, Outcome::Unknown, says).advise("measure for longer")
    } else if together > alone * (1.0 + ADDED_MIN) {
        let says = format!(
            "a write took {:.3} ms on average, but {:.3} ms with its share of the flushes",
            alone / 1e6,
            together / 1e6
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("report the latency that includes the flush, or use `sync = \"dsync\"`")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "flushes add little to the write latency")
    };
    Some(
        finding.with("write_ns", alone).with("durable_write_ns", together).with("flushes", flushes),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixtures;
    use super::*;

    #[test]
    fn the_flush_belongs_to_the_write() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::writes()), None);
        let to = "queue_depth = 8\nsync = \"fsync\"";
        let mut bundle = fixtures::writes_with("queue_depth = 8", to);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        let mut sync = bundle.run.classes[0].clone();
        (sync.name, sync.size_bytes) = ("matrix.sync".into(), 0);
        bundle.run.classes.push(sync);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        let mut durable = bundle.run.classes[0].clone();
        (durable.name, durable.group) = ("matrix.durable".into(), figures::DURABLE.into());
        durable.size_bytes = 0;
        bundle.run.classes.push(durable);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.classes.pop();
        bundle.run.classes[1].latency_ns_sum /= 11;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn a_limit_on_writes_is_checked_against_the_write_with_its_flush() {
        let limits = "[requirement]\nwrite_latency_p99 = \"10ms\"\nsync_latency_p99 = \"10ms\"\n\
            latency_p99 = \"10ms\"\n[workload.matrix]\nsync = \"fdatasync\"";
        let mut bundle = fixtures::writes_with("[workload.matrix]", limits);
        let rows = |bundle: &Bundle| {
            let requirement = bundle.plan.requirement.as_ref().unwrap();
            let checks = crate::checks::all(bundle, requirement, false);
            let row = |name: &str| checks.iter().find(|check| check.name == name).unwrap().ok;
            [row("write_latency_p99"), row("sync_latency_p99"), row("latency_p99")]
        };
        assert_eq!(rows(&bundle), [Some(true), None, Some(true)], "a bundle of before");
        for (name, group) in [("matrix.sync", "sync"), ("matrix.durable", figures::DURABLE)] {
            let mut class = bundle.run.classes[0].clone();
            (class.name, class.group, class.size_bytes) = (name.into(), group.into(), 0);
            let mut histogram = plimsoll_evidence::latency::histogram();
            histogram.record_n(104_000_000, class.count).unwrap();
            bundle.latency_spans.extend(fixtures::spans(name, &histogram));
            bundle.latency.insert(name.into(), histogram);
            bundle.run.classes.push(class);
        }
        assert_eq!(rows(&bundle), [Some(false); 3]);
    }
}
