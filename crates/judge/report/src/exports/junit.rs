//! The verdict as JUnit XML: a test case for the verdict, for each check and for each rule of the
//! audit.
//!
//! An undecided check is `skipped`, never passed. An INCONCLUSIVE verdict is an `error`, because
//! the run decided nothing.

use plimsoll_evidence::Bundle;
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::verdict::Check;
use plimsoll_judge::{Verdict, VerdictKind};

use crate::escape;

/// Result of a test case.
enum CaseResult {
    Passed,
    Failed,
    Error,
    Skipped,
}

struct Case {
    class: &'static str,
    name: String,
    end: CaseResult,
    says: String,
}

/// Returns the verdict as JUnit XML. Ends with a line feed.
pub fn xml(bundle: &Bundle, verdict: &Verdict) -> String {
    let mut cases = vec![Case {
        class: "verdict",
        name: verdict.verdict.label().to_owned(),
        end: match verdict.verdict {
            VerdictKind::Pass => CaseResult::Passed,
            VerdictKind::Fail | VerdictKind::Invalid => CaseResult::Failed,
            VerdictKind::Inconclusive => CaseResult::Error,
            VerdictKind::Measured => CaseResult::Skipped,
        },
        says: verdict.reason.clone(),
    }];
    cases.extend(verdict.checks.iter().map(of_check));
    cases.extend(verdict.findings.iter().map(|finding| Case {
        class: "audit",
        name: finding.rule.clone(),
        end: match finding.outcome {
            Outcome::Fail => CaseResult::Failed,
            Outcome::Unknown => CaseResult::Skipped,
            // A warning never changes a verdict.
            Outcome::Warn | Outcome::Pass => CaseResult::Passed,
        },
        says: finding.says.clone(),
    }));
    cases.extend(verdict.passed.iter().map(|rule| Case {
        class: "audit",
        name: rule.clone(),
        end: CaseResult::Passed,
        says: String::new(),
    }));
    suite(bundle, &cases)
}

fn of_check(check: &Check) -> Case {
    // The names of limit and measured value contain their units.
    let quantity = serde_json::to_value(check.quantity).unwrap_or_default();
    let figures = quantity.as_object().map(|object| {
        let all = object.iter().map(|(name, value)| format!("{name} {value}"));
        all.collect::<Vec<_>>().join(", ")
    });
    let mut says = figures.unwrap_or_default();
    if !check.note.is_empty() {
        says.push_str(&format!(" ({})", check.note));
    }
    let end = match check.ok {
        Some(true) => CaseResult::Passed,
        Some(false) => CaseResult::Failed,
        None => CaseResult::Skipped,
    };
    Case { class: "check", name: check.name.clone(), end, says }
}

fn suite(bundle: &Bundle, cases: &[Case]) -> String {
    let count = |of: fn(&CaseResult) -> bool| cases.iter().filter(|case| of(&case.end)).count();
    let run = &bundle.run;
    let seconds = run.duration_ns as f64 / 1e9;
    let name = escape::html(&run.name);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        cases.len(),
        count(|end| matches!(end, CaseResult::Failed)),
        count(|end| matches!(end, CaseResult::Error)),
        count(|end| matches!(end, CaseResult::Skipped)),
    );
    xml.push_str(&format!("<testsuites {counts}>\n  <testsuite name=\"{name}\" {counts}>\n"));
    xml.push_str("    <properties>\n");
    let version = format!("plimsoll {}", run.tool_version);
    for (key, value) in [("run_id", run.run_id.as_str()), ("tool", &version)] {
        let value = escape::html(value);
        xml.push_str(&format!("      <property name=\"{key}\" value=\"{value}\"/>\n"));
    }
    xml.push_str("    </properties>\n");
    for case in cases {
        let (name, says) = (escape::html(&case.name), escape::html(&case.says));
        let inner = match case.end {
            CaseResult::Passed if says.is_empty() => String::new(),
            CaseResult::Passed => format!("<system-out>{says}</system-out>"),
            CaseResult::Failed => format!("<failure message=\"{says}\"/>"),
            CaseResult::Error => format!("<error message=\"{says}\"/>"),
            CaseResult::Skipped => format!("<skipped message=\"{says}\"/>"),
        };
        let class = case.class;
        xml.push_str(&format!(
            "    <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>\n"
        ));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}
