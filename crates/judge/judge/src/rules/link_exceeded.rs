//! Compares bandwidth with the declared speed of the link.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::{NS_PER_S, measured};
use crate::finding::{Finding, Outcome};

/// Tolerance for the rounding of a declared rate. The framing overhead of a link is larger than
/// this tolerance.
const SLACK: f64 = 0.01;

pub const RULE: Rule = Rule {
    id: "link-exceeded",
    asks: "is the bandwidth higher than the link to the storage allows?",
    explains: "A link is full duplex: reads and writes are each limited to the declared speed of \
               the slowest link (`observe.link`). If the bandwidth is higher, not all data crossed \
               the link: a cache on this side of the link returned data, or the figure is wrong.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Requirement, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let link = bundle.plan.observe.link_bytes_per_s?;
    let seconds = measured(bundle)?.duration_ns as f64 / NS_PER_S;
    let rates =
        [evidence::read_bytes(bundle), evidence::written_bytes(bundle)].map(|b| b as f64 / seconds);
    let (word, rate) = if rates[0] >= rates[1] { ("read", rates[0]) } else { ("write", rates[1]) };
    let text = format!("the {word} bandwidth was {}/s", evidence::size(rate as u64));
    let carries = evidence::size(link);
    let finding = if rate > link as f64 * (1.0 + SLACK) {
        let says = format!("{text}, but the link transfers at most {carries}/s");
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("find out which cache on this side of the link returned the data")
    } else {
        Finding::new(
            RULE.id,
            Outcome::Pass,
            format!("{text}; the link transfers up to {carries}/s"),
        )
    };
    Some(finding.with("rate_bytes_per_s", rate).with("link_bytes_per_s", link))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_link_carries_what_it_carries() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        // The run reads 10,000 × 4 KiB = 40.96 MB per second.
        bundle.plan.observe.link_bytes_per_s = Some(40_500_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.plan.observe.link_bytes_per_s = Some(40_600_000);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
