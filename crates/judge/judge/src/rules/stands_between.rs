//! Checks whether a layer between the load and the kernel could have answered instead of the
//! kernel.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Tier;

use super::{ALL_OF_STORAGE, Rule, evidence};
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "stands-between",
    asks: "could a layer between the load and the kernel have faked the kernel's answers?",
    explains: "Plimsoll observes only the kernel's counters in /proc and /sys, and the results of \
               system calls. A library that is loaded before all others (LD_PRELOAD, LD_AUDIT, \
               /etc/ld.so.preload) can fake both: flushes that do nothing, clocks that are slow, \
               reads that never happen. A library that replaces a library of the system \
               (LD_LIBRARY_PATH, an RPATH, a replaced file) can do the same, and so can a tracer \
               (strace, a debugger) or a filter of system calls (seccomp) that answers flushes. \
               Therefore every executable file that the process has mapped \
               must be its own program, or a library that the distribution installed and that only \
               root can change. A mount over one of the kernel's files can present another device's \
               counters. None of these observations proves a forgery, but each of them makes the \
               outcome unknown. Run without such libraries, tracers and mounts.",
    bears_on: ALL_OF_STORAGE,
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) || bundle.run.tier == Tier::T3 {
        return None;
    }
    let Some(between) = &bundle.observed.interposition else {
        let (says, advice) = match measured(bundle) {
            None => (
                "the run ended before it checked for libraries or tracers between the load and the \
                 kernel",
                "measure again",
            ),
            Some(_) => (
                "the Plimsoll version of this run did not check for libraries or tracers between \
                 the load and the kernel",
                "repeat the run with this version",
            ),
        };
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(advice));
    };
    let command = bundle.observed.command.iter().flat_map(|command| &command.preloaded);
    let loaded = command.map(|what| format!("{what}, loaded before all other libraries"));
    let mapped = bundle.observed.mapped.iter().flatten();
    let foreign = mapped.filter_map(|file| Some((file.path.as_str(), file.foreign.as_ref()?)));
    let foreign = foreign.map(|(path, why)| format!("{path} is mapped into this process: {why}"));
    let of_command = bundle.observed.command.iter().flat_map(|command| &command.foreign).cloned();
    let found = between.iter().cloned().chain(loaded);
    let all: Vec<String> = found.chain(foreign).chain(of_command).collect();
    let Some(first) = all.first() else {
        let says = "nothing was found between the load and the kernel";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    };
    let more = match all.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let says = format!("the kernel's answers may have been replaced: {first}{more}");
    Some(
        Finding::new(RULE.id, Outcome::Unknown, says).with("found", all.len() as u64).advise(
            "run without such libraries and tracers, and with the kernel's own /proc and /sys",
        ),
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::{Command, MappedFile};

    use super::super::fixtures;
    use super::*;
    use crate::claim::Claim;

    #[test]
    fn a_preloaded_library_or_a_covered_account_leaves_it_open() {
        let mut bundle = fixtures::reads();
        bundle.observed.interposition = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "nobody looked");
        bundle.observed.interposition = Some(Vec::new());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.interposition =
            Some(vec!["something is mounted over /sys/dev/block/7:4".into()]);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.contains("/sys/dev/block/7:4"), "{}", finding.says);
        bundle.observed.interposition = Some(Vec::new());
        let preloaded = vec!["/x/lie.so into fio".to_owned()];
        bundle.observed.command = Some(Command { preloaded, ..Command::default() });
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    fn mapped(path: &str, why: Option<&str>) -> MappedFile {
        MappedFile { path: path.into(), foreign: why.map(str::to_owned) }
    }

    #[test]
    fn a_library_that_is_not_the_distributions_leaves_it_open() {
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        let mut bundle = fixtures::reads();
        bundle.plan.claims = vec![Claim::Requirement];
        bundle.observed.mapped = Some(vec![mapped("/usr/bin/plimsoll", None), mapped(libc, None)]);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        for (path, why) in [
            ("/tmp/x/libc.so.6", "it is in none of the system's library directories"),
            ("/usr/lib/x/libc.so.6", "LD_LIBRARY_PATH put it before the system's own"),
            ("/memfd:x (deleted)", "its file was replaced or deleted"),
        ] {
            bundle.observed.mapped = Some(vec![mapped(libc, None), mapped(path, Some(why))]);
            let finding = fixtures::finding(&RULE, &bundle);
            assert_eq!(finding.outcome, Outcome::Unknown, "{path}");
            assert!(finding.says.contains(path), "{}", finding.says);
            let status = crate::judge(&bundle).claims["requirement"];
            assert_eq!(status, crate::claim::ClaimStatus::NotShown);
        }
        bundle.observed.mapped = None;
        let foreign = vec!["/tmp/x/libc.so.6 in fio (why)".to_owned()];
        bundle.observed.command = Some(Command { foreign, ..Command::default() });
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn nothing_passes_while_it_is_open() {
        let mut bundle = fixtures::reads();
        bundle.plan.claims = vec![Claim::Requirement];
        bundle.observed.interposition = Some(vec!["/x/slow.so was loaded".into()]);
        let status = crate::judge(&bundle).claims["requirement"];
        assert_eq!(status, crate::claim::ClaimStatus::NotShown);
    }
}
