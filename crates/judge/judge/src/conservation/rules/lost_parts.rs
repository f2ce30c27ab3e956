//! Checks that no rank, host or job is missing.

use plimsoll_evidence::tool_result::ToolResult;

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::usable;

/// Maximum number of names in a finding.
const SHOWN_MAX: usize = 5;

pub const RULE: Rule = Rule {
    id: "lost-parts",
    asks: "does the result contain as many ranks, hosts and jobs as it states?",
    explains: "If a result states a number of ranks, hosts, jobs or rows, it must contain exactly \
               this number of them. Missing parts ended early or were left out of the result. Sums \
               are then too small, and means include only the parts that finished.",
    needs: "a stated number of ranks, hosts or jobs, and the figures of each",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for member in reported.memberships.iter().filter(|member| usable(&member.stated)) {
        let found = member.found as f64;
        let differs = found < member.stated.least || found > member.stated.most;
        outcome.check(differs.then(|| {
            let mut says = format!(
                "the result states {} {}, but {} are {}",
                format::number(member.stated.value),
                member.of,
                format::number(found),
                member.place
            );
            if !member.missing.is_empty() {
                let shown = member.missing.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>();
                says.push_str(&format!("; missing: {}", shown.join(", ")));
                if member.missing.len() > SHOWN_MAX {
                    says.push_str(&format!(" and {} more", member.missing.len() - SHOWN_MAX));
                }
            }
            Finding::new(Severity::Doubtful, says)
                .with_fields([&member.stated.field])
                .with_request(format!("the output of all {}", member.of))
        }));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Membership};

    use super::*;

    #[test]
    fn a_rank_that_is_missing_is_named() {
        let mut member = Membership {
            of: "ranks".into(),
            stated: Figure::exact(4.0, "num_ranks"),
            found: 4,
            missing: Vec::new(),
            place: "there".into(),
        };
        let outcome = |member: &Membership| {
            let memberships = vec![member.clone()];
            check(&ToolResult { memberships, ..ToolResult::default() }, &DeclaredFacts::default())
        };
        assert!(outcome(&member).findings.is_empty());
        (member.found, member.missing) = (3, vec!["rank 2".into()]);
        let says = outcome(&member).findings.remove(0).says;
        assert_eq!(says, "the result states 4 ranks, but 3 are there; missing: rank 2");
    }
}
