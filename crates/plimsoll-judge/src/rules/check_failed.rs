//! Was all data what had been written? Each page carries a checksum and a generation; each is
//! checked when it is read, and all are read at the end.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind};

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "check-failed",
    asks: "was everything that was read what had been written?",
    explains: "Pages carry their database, number, generation and checksum. Every read is checked, \
        and with `phases.verify` all pages are read and checked at the end. A page that is corrupt, \
        torn, lost, stale, misdirected or unwritten makes the run INVALID: storage that answers fast \
        and wrongly carries no load.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::CachedRead, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    // A model carries no data that could be right or wrong.
    if bundle.run.driver == Driver::Model {
        return None;
    }
    let checks = &bundle.run.checks;
    let finding = if checks.errors > 0 || bundle.run.end.kind == EndKind::Corruption {
        let first = checks.damage.first().map_or("", |damage| damage.says.as_str());
        let says = format!("{} failed checks of data; the first: {first}", checks.errors);
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("do not trust this storage with data; `plimsoll verify` names every page")
    } else if let Some(pages) = checks.pages_checked {
        Finding::new(RULE.id, Outcome::Pass, format!("{pages} pages read and checked at the end"))
            .with("pages_checked", pages)
    } else if bundle.plan.phases.verify {
        let says = "the check of all data at the end was not carried out";
        Finding::new(RULE.id, Outcome::Unknown, says).advise("let the run go on to its end")
    } else {
        let says = "the plan turns the check of all data off; only what was read was checked";
        Finding::new(RULE.id, Outcome::Warn, says).advise("set `phases.verify = true`")
    };
    Some(finding.with("failed_checks", checks.errors))
}
