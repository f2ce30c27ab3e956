//! Checks that all runs followed the same plan.

use plimsoll_evidence::Bundle;

use super::super::Weight;
use super::ExperimentRule;
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: ExperimentRule = ExperimentRule {
    id: "plan-changed",
    asks: "did all runs follow the same plan, with the same tool on the same host?",
    explains: "Runs are repeats of each other only if they have the same plan (its SHA-256 is in \
     each bundle), tool version, kernel and host. The rule lists all differences. If there is a \
     difference, it fails, because a mean over different runs is meaningless.",
    bears_on: &[(Claim::Requirement, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check,
};

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let (first, others) = runs.split_first().filter(|(_, others)| !others.is_empty())?;
    let differs = |read: for<'a> fn(&'a Bundle) -> Option<&'a str>| {
        others.iter().any(|run| read(run) != read(first))
    };
    type FieldReader = fn(&Bundle) -> Option<&str>;
    let what: [(&str, FieldReader); 4] = [
        ("the plan", |b| Some(&b.run.plan_sha256)),
        ("the tool's version", |b| Some(&b.run.tool_version)),
        ("the host", |b| b.environment.host.as_deref()),
        ("the kernel", |b| b.environment.kernel.as_deref()),
    ];
    let changed: Vec<&str> =
        what.iter().filter(|(_, read)| differs(*read)).map(|(name, _)| *name).collect();
    Some(if changed.is_empty() {
        let says = format!("all {} runs had the same plan and host", runs.len());
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let says = format!("{} changed between the runs", changed.join(" and "));
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("repeat all runs with the same plan, and change nothing between the runs")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::super::fixtures;
    use super::*;

    #[test]
    fn another_plan_or_kernel_is_named() {
        let (one, mut two) = (fixtures::reads(), fixtures::reads());
        assert!(check(&[&one]).is_none());
        assert_eq!(check(&[&one, &two]).unwrap().outcome, Outcome::Pass);
        two.run.plan_sha256 = "other".into();
        two.environment.kernel = Some("7.0".into());
        let finding = check(&[&one, &two]).unwrap();
        assert_eq!(finding.outcome, Outcome::Fail);
        assert_eq!(finding.says, "the plan and the kernel changed between the runs");
    }
}
