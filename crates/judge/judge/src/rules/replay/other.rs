//! Checks that the replay issued the operations of the trace, in the order of the trace.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::Replay;

use super::super::evidence::size;
use super::super::{Rule, Weight};
use super::{SLACK, planned, started_part};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum share of operations that were skipped because they are after the end of the target.
const OUTSIDE_SHARE_MAX: f64 = 0.01;

/// Minimum share of the distinct 1 MiB regions of the trace that must remain distinct on the
/// target.
const DISTINCT_SHARE_MIN: f64 = 0.9;

pub const RULE: Rule = Rule {
    id: "trace-other",
    asks: "are the operations of the replay those of the trace, in number, share of reads, bytes \
           and order?",
    explains: "The replayed file must be the file that the plan names (SHA-256). The rule compares \
               the number of operations, the share of reads and the bytes of the replay with those \
               of the trace; if they differ by more than 2 %, the load was different. A single \
               thread preserves the order of the trace; several threads do not. If more than 1 % of \
               the operations were skipped because they are after the end of the target, the rule \
               fails: use a different `map`, or a larger target. On a small target, several regions \
               of the trace share one region of the target. The rule fails if less than 90 % of the \
               1 MiB regions remain distinct: the working set is then smaller than that of the \
               trace, and may fit into a cache. A replay that fell behind did not issue all \
               operations, so its mix of operations is unknown.",
    bears_on: &[(Claim::TraceReplay, Weight::Mandatory), (Claim::Requirement, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let source = planned(bundle)?;
    let Some((replay, begun)) = started_part(bundle) else {
        let says = "the replayed part of the trace is unknown";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("repeat the run"));
    };
    let fail = |says: String, advice: &str| {
        Some(Finding::new(RULE.id, Outcome::Fail, says).advise(advice))
    };
    if replay.trace.sha256 != source.sha256 || replay.operations != source.operations {
        let says = format!("the replayed trace differs from the plan's trace, {}", source.file);
        return fail(says, "create the plan again: plimsoll plan import TRACE");
    }
    if begun.threads > 1 {
        let says = format!(
            "{} threads issued the operations, so the order of the trace was not preserved",
            begun.threads
        );
        return fail(says, "replay the trace with one client");
    }
    let outside = replay.mapping.outside as f64 / replay.operations.max(1) as f64;
    if outside > OUTSIDE_SHARE_MAX {
        let says = format!(
            "{:.1} % of the operations were skipped because they are after the end of the target",
            outside * 100.0
        );
        return fail(says, "set map = \"fit\" in [workload.trace], or use a larger target");
    }
    if let Some((outcome, says)) = check_address_mapping(replay) {
        let advice = "use a larger target, or set map = \"fit\" in [workload.trace]";
        return Some(Finding::new(RULE.id, outcome, says).advise(advice));
    }
    if begun.never > 0 {
        let says = format!(
            "{} of {} operations never started: the mix of the started operations may differ from \
             that of the trace",
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
        "{operations} of {} operations, {:.1} % reads (in the trace {:.1} %), {} of {} bytes",
        due.operations,
        read_share * 100.0,
        trace_share * 100.0,
        bytes,
        due.size_bytes
    );
    let finding = if wrong {
        let says = format!("the replay differs from the trace: {figures}");
        Finding::new(RULE.id, Outcome::Fail, says).advise("check the report for errors")
    } else {
        Finding::new(
            RULE.id,
            Outcome::Pass,
            format!("the replay matches the trace and its order: {figures}"),
        )
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

/// Returns a finding if the mapping reduces the number of distinct addresses too much.
fn check_address_mapping(replay: &Replay) -> Option<(Outcome, String)> {
    let mapping = &replay.mapping;
    if mapping.folded == 0 || mapping.touched_bytes == 0 {
        return None;
    }
    let touched = mapping.touched_bytes;
    // With any mapping, the number of distinct bytes is at most the size of the target.
    let mapped = mapping.mapped_bytes.unwrap_or(touched.min(mapping.target_bytes));
    let share = mapped as f64 / touched as f64;
    let of_operations = mapping.folded as f64 / replay.operations.max(1) as f64;
    if share < DISTINCT_SHARE_MIN {
        let (mapped, touched) = (size(mapped), size(touched));
        let says = format!(
            "the trace accesses {touched}, but the replay accesses at most {mapped}: separate \
             regions of the trace share one region of the target"
        );
        return Some((Outcome::Fail, says));
    }
    let says = "it is not recorded how many regions of the trace share a region of the target";
    (mapping.mapped_bytes.is_none() && of_operations > SLACK)
        .then(|| (Outcome::Unknown, says.to_owned()))
}
