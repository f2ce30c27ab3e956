//! Checks that reads returned the data that was written: block stamps, page checksums and
//! generations.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind, SampledChecks};
use plimsoll_plan::TargetKind;

use super::{ALL_OF_STORAGE, Rule, evidence};
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "check-failed",
    asks: "did every read return the data that had been written?",
    explains: "Blocks and pages contain their position, generation and checksum. A mail store \
     checks each page that it reads. A matrix workload tracks one block in 256: it checks that \
     block at every read, and at the end it reads back the tracked blocks that were written. With \
     `verify_reads`, it checks every read. With `phases.verify`, all data is read and checked at \
     the end. Data that is corrupt, torn, lost, stale, misdirected or never written makes the run \
     INVALID, because fast reads of wrong data are worth nothing. Unchecked data does not count as \
     correct. If a mail store had no final check, or if no block of another load was checked, the \
     requirement is undecided, unless the plan accepts `unknown` from this rule.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    // A model and a null target store no data.
    let is_null = |target: &plimsoll_plan::Target| target.kind == TargetKind::Null;
    if bundle.run.driver == Driver::Model || bundle.plan.targets.iter().all(is_null) {
        return None;
    }
    let checks = &bundle.run.checks;
    let finding = if checks.errors > 0 || bundle.run.end.kind == EndKind::Corruption {
        let first = checks.damage.first().map_or("", |damage| damage.says.as_str());
        let says = format!("{} data checks failed; the first failure: {first}", checks.errors);
        Finding::new(RULE.id, Outcome::Fail, says).advise(
            "do not trust this storage with data; `plimsoll verify` lists every damaged page",
        )
    } else if bundle.run.driver == Driver::Foreign {
        let says = "the result does not show whether reads returned the written data";
        let finding = Finding::new(RULE.id, Outcome::Warn, says);
        return Some(finding.advise("run this load with plimsoll, which checks data"));
    } else if let Some(pages) = checks.pages_checked.filter(|pages| *pages > 0) {
        Finding::new(RULE.id, Outcome::Pass, format!("{pages} pages read and checked at the end"))
            .with("pages_checked", pages)
    } else if bundle.plan.phases.verify {
        let says = match checks.pages_checked {
            Some(_) => "the final check of all data found no data to check",
            None => "the final check of all data did not run",
        };
        Finding::new(RULE.id, Outcome::Unknown, says).advise("let the run finish")
    } else {
        judge_without_final_check(bundle)
    };
    Some(finding.with("failed_checks", checks.errors))
}

/// Judges the sampled checks of a run whose plan disables the final check.
fn judge_without_final_check(bundle: &Bundle) -> Finding {
    let sampled = bundle.run.checks.sampled.unwrap_or_default();
    let is_store = bundle.plan.workload.mailbox().is_some();
    let says = if is_store {
        let read = bundle.run.counters.get("cache_misses").copied().unwrap_or(0);
        format!(
            "the plan disables the final check: only the {read} pages that the run read were \
             checked"
        )
    } else if sampled.blocks + sampled.blocks_read_back > 0 {
        let SampledChecks { reads, blocks, writes_read_back, blocks_read_back } = sampled;
        let mut parts = Vec::new();
        if reads > 0 {
            parts.push(format!("{reads} reads ({blocks} blocks)"));
        }
        if writes_read_back > 0 {
            parts.push(format!("{writes_read_back} writes read back ({blocks_read_back} blocks)"));
        }
        format!("only a sample of the data was checked, and it is intact: {}", parts.join(" and "))
    } else {
        "no data was checked".to_owned()
    };
    // A mail store requires a check of all data. For other loads, a sample is sufficient.
    let moved = evidence::operations(bundle, true) + evidence::operations(bundle, false) > 0;
    let open = is_store || moved && sampled.blocks + sampled.blocks_read_back == 0;
    let outcome = match bundle.plan.requirement {
        Some(_) if open => Outcome::Unknown,
        _ => Outcome::Warn,
    };
    Finding::new(RULE.id, outcome, says)
        .advise("set `phases.verify = true` to check all data")
        .with("blocks_sampled", sampled.blocks + sampled.blocks_read_back)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn not_checked_is_not_passed() {
        let to = "[requirement]\niops = 5\n[target]";
        let mut bundle = fixtures::reads_with("[target]", to);
        bundle.run.checks.sampled =
            Some(SampledChecks { reads: 9, blocks: 9, ..SampledChecks::default() });
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.plan.phases.verify = true;
        bundle.run.checks.pages_checked = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.checks.pages_checked = Some(1 << 18);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.checks.errors = 1;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        let mut bundle = fixtures::reads_with("[target]", to);
        bundle.run.checks.sampled = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        // Operations on file names and directories transfer no data.
        bundle.run.classes.iter_mut().for_each(|class| class.count = 0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        // In a run without a requirement, the rule only warns.
        let mut bundle = fixtures::reads();
        bundle.run.checks.sampled = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }
}
