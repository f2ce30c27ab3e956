//! Was the log that made commits durable read back?

use plimsoll_evidence::Bundle;
use plimsoll_plan::Workload;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "log-read-back",
    asks: "was the log that made commits durable read back and checked?",
    explains: "A mail store's commit is durable when its log write is acknowledged, and nothing in the \
        load reads the log again (unless `copies` is above 1): a log write that the storage dropped, tore, \
        changed or put elsewhere would show only after a crash. The verify phase reads the log's ring back \
        and checks that each block of its last round is the one that was acknowledged. What earlier \
        rounds held was overwritten since and is not looked at. Set `phases.verify = true`.",
    bears_on: &[(Claim::DurableWrite, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let is_store = matches!(bundle.plan.workload, Workload::Mailbox(_));
    if !is_store || !seen::is_real(bundle) {
        return None;
    }
    Some(match bundle.run.checks.log_blocks_checked {
        Some(0) => Finding::new(RULE.id, Outcome::Unknown, "the log held no block to read back")
            .advise("run a load that commits"),
        Some(blocks) => {
            let says =
                format!("{blocks} log blocks were read back; check-failed says what they held");
            Finding::new(RULE.id, Outcome::Pass, says).with("log_blocks_checked", blocks)
        }
        None => Finding::new(RULE.id, Outcome::Unknown, "the log was not read back")
            .advise("set `phases.verify = true`, and let the run go on to its end"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_log_that_nobody_read_back_shows_no_durability() {
        let mailbox = "[workload.mailbox]\nmailboxes = 10\nmailbox_size = \"1GiB\"\n\
            databases = 1\n";
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
