//! Did anything stand between the load and the kernel, which could have answered in its place?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Tier;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule.
pub const RULE: Rule = Rule {
    id: "stands-between",
    asks: "did anything stand between the load and the kernel that could answer in its place?",
    explains: "All that is observed is the kernel's own account, in /proc and /sys, and what system calls \
        return. A library that is loaded before all others (LD_PRELOAD, LD_AUDIT, /etc/ld.so.preload) can answer \
        for both: flushes that do nothing, clocks that run slow, reads that never happen. So can a tracer (strace, a \
        debugger). A mount over a file of \
        the kernel's can show another device's account in its place. Neither proves that anything is wrong, \
        and with either nothing is shown: it is unknown. Run without them, and with /proc and /sys as the \
        kernel gives them.",
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
    if !seen::is_real(bundle) || bundle.run.tier == Tier::T3 {
        return None;
    }
    let Some(between) = &bundle.observed.between else {
        let says = "what stood between the load and the kernel was not looked at";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says).advise("measure again with this version"),
        );
    };
    let command = bundle.observed.command.iter().flat_map(|command| &command.preloaded);
    let loaded = command.map(|what| format!("{what}, before all other libraries"));
    let all: Vec<String> = between.iter().cloned().chain(loaded).collect();
    let Some(first) = all.first() else {
        let says = "nothing was seen between the load and the kernel";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    };
    let more = match all.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let says = format!("what the kernel said is not sure to have arrived: {first}{more}");
    Some(
        Finding::new(RULE.id, Outcome::Unknown, says)
            .with("found", all.len() as u64)
            .advise("run without such libraries, with /proc and /sys as the kernel gives them"),
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::Command;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_preloaded_library_or_a_covered_account_leaves_it_open() {
        let mut bundle = fixtures::reads();
        bundle.observed.between = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "nobody looked");
        bundle.observed.between = Some(Vec::new());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.between = Some(vec!["something is mounted over /sys/dev/block/7:4".into()]);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.contains("/sys/dev/block/7:4"), "{}", finding.says);
        bundle.observed.between = Some(Vec::new());
        let preloaded = vec!["/x/lie.so into fio".to_owned()];
        bundle.observed.command = Some(Command { preloaded, ..Command::default() });
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn nothing_passes_while_it_is_open() {
        let mut bundle = fixtures::reads();
        bundle.plan.claims = vec![Claim::Requirement];
        bundle.observed.between = Some(vec!["/x/slow.so was loaded".into()]);
        let standing = crate::judge(&bundle).claims["requirement"];
        assert_eq!(standing, crate::claim::Standing::NotShown);
    }
}
