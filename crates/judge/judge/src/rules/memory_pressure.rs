//! Checks whether the host ran short of memory.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// The rule warns if programs waited for memory for at least this share of the time. We chose this
/// value.
const SHARE_WARN: f64 = 0.05;

pub const RULE: Rule = Rule {
    id: "memory-pressure",
    asks: "did programs wait for memory during the measurement?",
    explains: "The kernel counts the time in which at least one task waited for memory: for pages \
               to be freed, swapped in or read again into the page cache (`/proc/pressure/memory`). \
               The rule warns if this time is at least 5 % of the measured phase: the load \
               generator may have waited too, and swapping also uses devices. Stop the programs \
               that use the memory, or add memory. On kernels without pressure accounting, the rule \
               reports nothing.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::TailLatency, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let share = bundle.observed.pressure.memory_some_share?;
    let says =
        format!("programs waited for memory during {} of the time", evidence::percent(share));
    let finding = if share >= SHARE_WARN {
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("stop the programs that use the memory, or add memory")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("memory_some_share", share))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_twentieth_of_the_time_warns() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None, "not observed");
        bundle.observed.pressure.memory_some_share = Some(0.049);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.pressure.memory_some_share = Some(0.05);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Warn);
        assert!(finding.says.contains("5.0 % of the time"), "{}", finding.says);
    }

    #[test]
    fn it_decides_nothing() {
        let mut bundle = fixtures::reads();
        let calm = crate::judge(&bundle);
        bundle.observed.pressure.memory_some_share = Some(1.0);
        let short = crate::judge(&bundle);
        assert_eq!(short.verdict, calm.verdict);
        assert!(short.findings.iter().any(|finding| finding.rule == RULE.id));
    }
}
