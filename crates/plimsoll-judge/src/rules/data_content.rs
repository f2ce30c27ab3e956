//! Was the data such that the storage could not make it vanish?

use plimsoll_evidence::Bundle;
use plimsoll_plan::Workload;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "data-content",
    asks: "was the data what the plan declares: incompressible, and never the same twice?",
    explains: "The mail store's pages are incompressible unless the plan says otherwise, and no \
        4 KiB block occurs twice, duplicated databases included. A storage system that compresses or \
        deduplicates gains nothing from them. A plan may declare compressible data; the report then \
        says so beside every figure.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let Workload::Mailbox(store) = &bundle.plan.workload else { return None };
    let ratio = store.compressibility;
    let finding = if ratio > 1.0 {
        let says = format!(
            "the data compresses {ratio:.1}:1 as the plan declares: a system that compresses stores \
             and caches that much less"
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("compare only with runs of the same compressibility")
    } else {
        let says = "pages were incompressible and no block occurred twice";
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("compressibility", ratio))
}
