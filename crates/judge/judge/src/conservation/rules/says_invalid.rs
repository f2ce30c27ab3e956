//! Checks whether the tool itself declares its result invalid.

use plimsoll_evidence::tool_result::{ToolResult, Weight};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::usable;

pub const RULE: Rule = Rule {
    id: "says-invalid",
    asks: "does the tool itself report errors, or call its result invalid?",
    explains: "Tools may print an error code, failed operations, an early end of the run, or an \
               invalid phase next to a score that looks normal. The rule repeats a warning of the \
               tool, but a warning does not affect the outcome.",
    needs: "an error count, or an error message from the tool",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for complaint in reported.complaints.iter().filter(|c| c.weight == Weight::Invalid) {
        outcome.check(Some(
            Finding::new(Severity::Doubtful, complaint.says.clone())
                .with_fields([&complaint.field])
                .with_request("the cause of the failure, and a run without this failure"),
        ));
    }
    for part in &reported.parts {
        let of_operations =
            part.operations.iter().filter_map(|operation| operation.errors.as_ref());
        for errors in of_operations.chain(&part.errors).filter(|errors| usable(errors)) {
            outcome.check((errors.least > 0.0).then(|| {
                let says = format!(
                    "{} operations failed ({})",
                    format::number(errors.value),
                    errors.field
                );
                Finding::new(Severity::Doubtful, says)
                    .with_fields([&errors.field])
                    .with_request("the cause of the failures, and a run without errors")
            }));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Complaint, Figure, Part};

    use super::*;

    #[test]
    fn complaints_and_errors_are_told_and_none_is_checked() {
        let complaint = |weight| Complaint { weight, says: "it failed".into(), field: "x".into() };
        let errors = |count| Part { errors: Some(Figure::exact(count, "err")), ..Part::default() };
        let mut reported = ToolResult {
            complaints: vec![complaint(Weight::Invalid), complaint(Weight::Warning)],
            parts: vec![errors(0.0), errors(3.0)],
            ..ToolResult::default()
        };
        let outcome = check(&reported, &DeclaredFacts::default());
        assert_eq!((outcome.checked, outcome.findings.len()), (3, 2));
        reported.complaints.clear();
        reported.parts.truncate(1);
        let outcome = check(&reported, &DeclaredFacts::default());
        assert_eq!((outcome.checked, outcome.findings.len()), (1, 0));
        assert_eq!(check(&ToolResult::default(), &DeclaredFacts::default()).checked, 0);
    }
}
