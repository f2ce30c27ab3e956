//! Compares the highest and lowest CPU frequency.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum ratio of the lowest to the highest sample. If the ratio is lower, the CPUs throttled or
/// saved power.
const SHARE_MIN: f64 = 0.8;

pub const RULE: Rule = Rule {
    id: "cpu-frequency",
    asks: "did the CPU frequency change during the measurement?",
    explains: "The rule samples the mean frequency over all CPUs, if the kernel shows it. It \
     warns if the lowest sample is below 80 % of the highest: the load generator did not run at a \
     constant speed. Set the governor to `performance` and check the temperature. Most virtual \
     machines show no frequency. The rule then makes no finding.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::TailLatency, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let cpu = &bundle.observed.cpu;
    let (least, most) = (cpu.frequency_hz_min?, cpu.frequency_hz_max?);
    let share = least as f64 / most.max(1) as f64;
    let says = format!("the CPUs ran at {:.2} to {:.2} GHz", least as f64 / 1e9, most as f64 / 1e9);
    let finding = if share < SHARE_MIN {
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("set the governor to `performance` and check the temperature")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("least_over_most", evidence::percent(share)))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_fall_by_a_fifth_warns() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.observed.cpu.frequency_hz_max = Some(3_000_000_000);
        bundle.observed.cpu.frequency_hz_min = Some(2_400_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.cpu.frequency_hz_min = Some(2_390_000_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }
}
