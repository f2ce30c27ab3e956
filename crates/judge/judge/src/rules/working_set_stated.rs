//! Compares the size of the databases with the size stated in the requirement.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Workload;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Maximum fraction by which the databases may be too small. They consist of whole pages, so their
/// size is rounded.
const ROUNDING: f64 = 0.01;

pub const RULE: Rule = Rule {
    id: "working-set-stated",
    asks: "were the databases as large as the requirement states?",
    explains: "When the measurement starts, the size of the databases must be the number of \
               mailboxes × the mailbox size, and keys must be picked from all of this data. A \
               smaller data set might fit into a cache that cannot hold the real data.",
    bears_on: &[(Claim::Requirement, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let Workload::Mailbox(store) = &bundle.plan.workload else { return None };
    measured(bundle)?;
    let stated_bytes = store.mailboxes.saturating_mul(store.mailbox_size_bytes);
    let held_bytes: u64 = bundle.run.instances.iter().map(|i| i.size_bytes_initial).sum();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (held, stated) = (gib(held_bytes), gib(stated_bytes));
    let finding = if (held_bytes as f64) < stated_bytes as f64 * (1.0 - ROUNDING) {
        let says = format!(
            "the databases contained {held:.2} GiB, but the requirement states {stated:.2} GiB"
        );
        Finding::new(RULE.id, Outcome::Fail, says).advise("create the databases again")
    } else {
        let says = format!("the databases contained {held:.2} GiB, all of it in use");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("held_bytes", held_bytes).with("stated_bytes", stated_bytes))
}
