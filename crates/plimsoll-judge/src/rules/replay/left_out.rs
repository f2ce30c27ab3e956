//! What of the trace was left out, and what its places lost on a target of another size?

use plimsoll_evidence::Bundle;

use super::super::{Rule, Weight};
use super::planned;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "trace-left-out",
    asks: "was anything of a trace left out of its replay, or moved?",
    explains: "Reads, writes and flushes are replayed. Discards, operations on zones and commands that move no data are \
        counted by name and left out: storage that is not asked for them may answer otherwise than it did to the \
        application. Lines that cannot be read, operations beyond \
        the target, offsets that were rounded, and places that fall together because the target is smaller than the \
        trace's are counted too: a cache sees a smaller working set then. It is a warning.",
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
        (replay.trace.unreadable_lines, "lines that cannot be read"),
        (mapping.outside, "operations beyond the target"),
        (mapping.rounded, "operations rounded to a larger boundary"),
        (
            mapping.folded,
            "operations whose places fall together with others, as the target is smaller",
        ),
    ];
    parts.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    let all: u64 = replay.trace.left_out.values().sum::<u64>() + mapping.outside;
    let finding = if parts.is_empty() {
        let says = format!("nothing of the trace was left out; its places: {}", mapping.rule);
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let says = format!("left out or changed of the trace: {}", parts.join(", "));
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("say so where the figures are quoted, or take a trace or target without them")
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
