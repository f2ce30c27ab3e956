//! Lists the parts of a trace that its replay omitted or changed.

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight};
use super::planned;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "trace-left-out",
    asks: "did the replay omit or change any part of the trace?",
    explains: "Reads, writes and flushes are replayed. Discards, zone operations and commands \
               without data are omitted; the rule counts them by name. Without these operations, \
               the storage may behave differently than it did for the application. The rule also \
               counts unreadable lines, operations after the end of the target, rounded offsets, \
               and addresses that coincide because the target is smaller than the traced device. If \
               addresses coincide, the working set is smaller and fits into a cache more easily. \
               The rule only warns.",
    bears_on: &[(Claim::TraceReplay, Weight::Advisory), (Claim::Requirement, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    planned(bundle)?;
    let replay = bundle.observed.replay.as_deref()?;
    let mut parts: Vec<String> = Vec::new();
    let left = replay.trace.left_out.iter();
    parts.extend(left.map(|(what, count)| format!("{count} {what}")));
    let mapping = &replay.mapping;
    let counted = [
        (replay.trace.unreadable_lines, "unreadable lines"),
        (mapping.outside, "operations after the end of the target"),
        (mapping.rounded, "operations whose offset or size was rounded to the block size"),
        (
            mapping.folded,
            "operations whose addresses coincide because the target is smaller than the traced \
             device",
        ),
    ];
    parts.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    let all: u64 = replay.trace.left_out.values().sum::<u64>() + mapping.outside;
    let finding = if parts.is_empty() {
        let says = format!("no part of the trace was omitted; address mapping: {}", mapping.rule);
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let says = format!("parts of the trace were omitted or changed: {}", parts.join(", "));
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("report this together with the figures, or use a different trace or target")
    };
    Some(
        finding
            .with("left_out", all)
            .with("unreadable_lines", replay.trace.unreadable_lines)
            .with("outside", mapping.outside)
            .with("rounded", mapping.rounded)
            .with("folded", mapping.folded),
    )
}
