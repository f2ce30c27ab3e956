//! Checks that the run finished.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;

use super::{ALL_OF_STORAGE, Rule};
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "not-completed",
    asks: "did the run finish?",
    explains: "An interrupted run keeps its evidence and is INCONCLUSIVE: the missing part of the \
               run could have shown worse results, and a user can stop a run at a favourable \
               moment. A run is INVALID if its environment failed (a path disappeared, a file could \
               not be created) or if a defect in Plimsoll ended it.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let end = &bundle.run.end;
    let outcome = match end.kind {
        EndKind::Completed => Outcome::Pass,
        EndKind::Interrupted => Outcome::Unknown,
        EndKind::Environment | EndKind::Defect => Outcome::Fail,
        // Other rules judge I/O errors and corruption.
        EndKind::IoError | EndKind::NoSpace | EndKind::Corruption => return None,
    };
    let measured_ns = bundle.run.measure().map_or(0, |phase| phase.duration_ns);
    let says = match outcome {
        Outcome::Pass => "every phase finished".to_owned(),
        _ => end.says.clone(),
    };
    let finding = Finding::new(RULE.id, outcome, says).with("measured_ns", measured_ns);
    Some(match outcome {
        Outcome::Pass => finding,
        _ if end.kind == EndKind::Defect => {
            finding.advise("report the defect, and attach this bundle to the report")
        }
        _ => finding.advise("run it again and let it finish"),
    })
}
