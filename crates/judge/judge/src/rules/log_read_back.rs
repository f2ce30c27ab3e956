//! Checks that the verify phase read the log back.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Workload;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "log-read-back",
    asks: "was the commit log read back and checked?",
    explains: "A commit of the mail store is durable when its log write is acknowledged. Nothing in \
               the load reads the log again (unless `copies` is above 1), so the user would notice \
               only after a crash that the storage dropped, tore, changed or misplaced a log write. \
               The verify phase reads the log ring back and checks that each block contains the \
               last write that was acknowledged for it. Earlier writes were overwritten and are not \
               checked. Set `phases.verify = true`.",
    bears_on: &[(Claim::DurableWrite, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let is_store = matches!(bundle.plan.workload, Workload::Mailbox(_));
    if !is_store || !evidence::is_real(bundle) {
        return None;
    }
    Some(match bundle.run.checks.log_blocks_checked {
        Some(0) => {
            Finding::new(RULE.id, Outcome::Unknown, "the log contains no block to read back")
                .advise("run a load that includes commits")
        }
        Some(blocks) => {
            let says = format!(
                "{blocks} log blocks were read back; the rule check-failed judges their content"
            );
            Finding::new(RULE.id, Outcome::Pass, says).with("log_blocks_checked", blocks)
        }
        None => Finding::new(RULE.id, Outcome::Unknown, "the log was not read back")
            .advise("set `phases.verify = true` and let the run finish"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_log_that_nobody_read_back_shows_no_durability() {
        let mailbox =
            "[workload.mailbox]\nmailboxes = 10\nmailbox_size = \"1GiB\"\ndatabases = 1\n";
        let streams = "[workload.matrix]\nfile_size = \"1GiB\"\nreads = 0\nqueue_depth = 8\n";
        let mut bundle = fixtures::writes();
        assert!(check(&bundle).is_none(), "streams have no log");
        let plan = fixtures::PLAN.replace("reads = 100", "reads = 0").replace(streams, mailbox);
        bundle.plan = plimsoll_plan::Plan::parse(&plan, "made-up.toml").unwrap().resolve();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.checks.log_blocks_checked = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.checks.log_blocks_checked = Some(7_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
