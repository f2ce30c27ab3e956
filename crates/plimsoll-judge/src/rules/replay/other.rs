//! Was what was asked for the trace: its operations, in its order?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::Replay;

use super::super::seen::size;
use super::super::{Rule, Weight};
use super::{SLACK, begun, planned};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Operations beyond the target that may be left out, as a share of all.
const OUTSIDE_SHARE_MAX: f64 = 0.01;

/// Least share of the trace's distinct pieces of 1 MiB that must remain distinct on the target.
const DISTINCT_SHARE_MIN: f64 = 0.9;

/// The rule.
pub const RULE: Rule = Rule {
    id: "trace-other",
    asks: "were a replay's operations those of the trace: as many, as many reads, as many bytes, in its order?",
    explains: "The file that was replayed is the one that the plan names (its SHA-256). Operations, the share of reads \
        and bytes that were handed to the target are counted and held against the trace: more than 2 % apart is another \
        load. One thread gives operations in the order of the trace; several do not keep it. Where more than 1 % of the \
        operations lie beyond the target and were left out, what was replayed is not the trace: take another `map`, or \
        a larger target. Nor is it where a small target has many pieces of the trace share one: the mapping must keep \
        90 % of the distinct pieces of 1 MiB, as a smaller set fits caches that the trace's data exceeds. A replay \
        that fell behind has not asked for all of it, so that its mix is not known.",
    bears_on: &[(Claim::TraceReplay, Weight::Mandatory), (Claim::Requirement, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    let Some((replay, begun)) = begun(bundle) else {
        let says = "what of the trace was replayed is not known";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("run it again"));
    };
    let fail = |says: String, advice: &str| {
        Some(Finding::new(RULE.id, Outcome::Fail, says).advise(advice))
    };
    if replay.trace.sha256 != source.sha256 || replay.operations != source.operations {
        let says = format!("another trace was replayed than the plan names, {}", source.file);
        return fail(says, "make the plan anew: plimsoll plan import TRACE");
    }
    if begun.threads > 1 {
        let says = format!(
            "{} threads gave the operations: the trace's order was not kept",
            begun.threads
        );
        return fail(says, "replay it with one client");
    }
    let outside = replay.mapping.outside as f64 / replay.operations.max(1) as f64;
    if outside > OUTSIDE_SHARE_MAX {
        let says = format!(
            "{:.1} % of the trace's operations lie beyond the target and were left out",
            outside * 100.0
        );
        return fail(says, "write map = \"fit\" in [workload.trace], or name a larger target");
    }
    if let Some((outcome, says)) = folded(replay) {
        let advice = "name a larger target, or write map = \"fit\" in [workload.trace]";
        return Some(Finding::new(RULE.id, outcome, says).advise(advice));
    }
    if begun.never > 0 {
        let says = format!(
            "{} of {} operations never began: the mix of the others is not the trace's",
            begun.never, replay.due.operations
        );
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("see trace-late"));
    }
    let classes = || bundle.run.classes.iter().filter(|class| class.group == "transactional");
    let reads: u64 = classes().filter(|class| class.is_read).map(|class| class.count).sum();
    let operations: u64 = classes().map(|class| class.count).sum();
    let bytes: u64 = classes().map(|class| class.size_bytes).sum();
    let share = |reads: u64, all: u64| reads as f64 / all.max(1) as f64;
    let (read_share, trace_share) =
        (share(reads, operations), share(replay.due.reads, replay.due.operations));
    let apart = |is: u64, due: u64| (is as f64 / due.max(1) as f64 - 1.0).abs();
    let due = &replay.due;
    let wrong = apart(operations, due.operations) > SLACK
        || (read_share - trace_share).abs() > SLACK
        || apart(bytes, due.size_bytes) > SLACK;
    let figures = format!(
        "{operations} operations of {}, {:.1} % reads of {:.1} %, {} bytes of {}",
        due.operations,
        read_share * 100.0,
        trace_share * 100.0,
        bytes,
        due.size_bytes
    );
    let finding = if wrong {
        let says = format!("what was replayed is not the trace: {figures}");
        Finding::new(RULE.id, Outcome::Fail, says).advise("look for errors in the report")
    } else {
        Finding::new(RULE.id, Outcome::Pass, format!("as the trace, in its order: {figures}"))
    };
    Some(
        finding
            .with("operations", operations)
            .with("operations_due", due.operations)
            .with("read_share", read_share)
            .with("read_share_due", trace_share)
            .with("size_bytes", bytes)
            .with("size_bytes_due", due.size_bytes),
    )
}

/// Why the mapping put too many places of the trace on too few of the target.
fn folded(replay: &Replay) -> Option<(Outcome, String)> {
    let mapping = &replay.mapping;
    if mapping.folded == 0 || mapping.touched_bytes == 0 {
        return None;
    }
    let touched = mapping.touched_bytes;
    // No more than the target can remain distinct, whatever the rule of the mapping.
    let mapped = mapping.mapped_bytes.unwrap_or(touched.min(mapping.target_bytes));
    let share = mapped as f64 / touched as f64;
    let of_operations = mapping.folded as f64 / replay.operations.max(1) as f64;
    if share < DISTINCT_SHARE_MIN {
        let (mapped, touched) = (size(mapped), size(touched));
        let says = format!(
            "the trace touches {touched}, and the replay at most {mapped}: places that are apart in \
             the trace share one on the target"
        );
        return Some((Outcome::Fail, says));
    }
    let says = "how many places of the trace share one on the target is not recorded";
    (mapping.mapped_bytes.is_none() && of_operations > SLACK)
        .then(|| (Outcome::Unknown, says.to_owned()))
}
