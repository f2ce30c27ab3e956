//! Checks that no I/O failed. After the first error, the load differs from the planned load.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign;
use plimsoll_evidence::run::{EndKind, Tier};

use super::{ALL_OF_STORAGE, Rule};
use crate::events;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "io-errors",
    asks: "did any I/O fail or transfer too few bytes?",
    explains: "The rule counts every I/O for which the target returns an error, and every short \
               transfer that does not reach the end of the file. A single error makes the rule \
               fail: a run with errors does not show what load the storage sustains. For an \
               observed command, the rule also counts errors that the kernel logged for its \
               devices, even if the command's result reports no error. Check the kernel log and the \
               storage system's log, fix the cause and run again.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let all: u64 = bundle.run.classes.iter().map(|class| class.errors).sum();
    let counted = all.saturating_sub(events::errors_judged_by_windows(bundle));
    let logged = logged(bundle);
    let end = &bundle.run.end;
    let finding = match end.kind {
        EndKind::IoError => Finding::new(RULE.id, Outcome::Fail, end.says.clone())
            .advise("check the kernel log (dmesg) and the storage system's log, then run again"),
        EndKind::NoSpace => Finding::new(RULE.id, Outcome::Fail, end.says.clone())
            .advise("delete files on the target, or reduce the amount of data in the plan"),
        _ if counted > 0 => Finding::new(RULE.id, Outcome::Fail, format!("{counted} I/Os failed"))
            .advise("check the kernel log (dmesg) and the storage system's log"),
        _ => match logged {
            Some((device, errors)) => Finding::new(
                RULE.id,
                Outcome::Fail,
                format!(
                    "the kernel logged {errors} I/O errors for {device}, but the result reports no \
                     error"
                ),
            )
            .advise("check the kernel log (dmesg) and the storage system's log"),
            // A published table has no column for errors.
            None if bundle.run.engine.kind == foreign::TABLE_KIND => {
                let says = "a table does not show whether any I/O failed";
                return Some(
                    Finding::new(RULE.id, Outcome::Unknown, says)
                        .advise("judge the tool's own result file"),
                );
            }
            None => Finding::new(RULE.id, Outcome::Pass, "no I/O failed"),
        },
    };
    Some(finding.with("errors", counted))
}

/// For an observed command: returns a device that stores its files and had errors, and the number
/// of these errors in the kernel log. `None` for our own engine, which counts every failed I/O
/// itself.
fn logged(bundle: &Bundle) -> Option<(String, u64)> {
    let errors = bundle.observed.device_errors.as_ref().filter(|_| bundle.run.tier == Tier::T2)?;
    let is_top = |name: &String| {
        bundle.observed.devices.iter().any(|device| device.top && device.name == *name)
    };
    let one = errors.iter().find(|(name, count)| **count > 0 && is_top(name));
    one.map(|(name, count)| (name.clone(), *count))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_table_that_has_no_errors_does_not_say_that_there_were_none() {
        let mut bundle = fixtures::reads();
        bundle.run.engine.kind = foreign::TABLE_KIND.into();
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!((finding.outcome, finding.evidence.len()), (Outcome::Unknown, 0));
        bundle.run.classes[0].errors = 1;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn errors_that_the_kernel_logged_count_where_a_command_was_watched() {
        let mut bundle = fixtures::reads();
        bundle.observed.device_errors = Some([("sda".to_owned(), 3)].into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.tier = Tier::T2;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        // Errors of another disk do not affect this run.
        bundle.observed.device_errors = Some([("sdb".to_owned(), 3)].into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
