//! Did every I/O end well? The first error poisons a run: what follows it is not the load that was
//! asked for.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "io-errors",
    asks: "did any I/O end in an error, or stay short?",
    explains: "Every I/O that the target answers with an error, and every transfer that stays short \
        before the end of its file, is counted. One is enough: a run with errors does not show what \
        the storage carries, however good its figures. Look at the kernel's log and the storage \
        system's own, mend the cause and run again.",
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
    let counted: u64 = bundle.run.classes.iter().map(|class| class.errors).sum();
    let end = &bundle.run.end;
    let finding = match end.kind {
        EndKind::IoError => Finding::new(RULE.id, Outcome::Fail, end.says.clone()).advise(
            "look at the kernel's log (dmesg) and the storage system's own, then run again",
        ),
        EndKind::NoSpace => Finding::new(RULE.id, Outcome::Fail, end.says.clone())
            .advise("free space on the target, or make the plan's data smaller"),
        _ if counted > 0 => {
            Finding::new(RULE.id, Outcome::Fail, format!("{counted} I/Os ended in an error"))
                .advise("look at the kernel's log (dmesg) and the storage system's own")
        }
        _ => Finding::new(RULE.id, Outcome::Pass, "no I/O ended in an error"),
    };
    Some(finding.with("errors", counted))
}
