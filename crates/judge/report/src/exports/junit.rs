//! Exports as JUnit XML. The export of a run has one test case for the verdict, one for each check,
//! and one for each rule of the audit. The export of a comparison's gate has one test case for the
//! gate and one for each figure.
//!
//! An undecided check is `skipped`, never passed. An INCONCLUSIVE verdict is an `error`, because
//! the run decided nothing.

use plimsoll_evidence::Bundle;
use plimsoll_judge::compare::{Gate, GateOutcome};
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

/// Returns the verdict as JUnit XML, with a line feed at the end.
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
    let run = &bundle.run;
    let suite = Suite {
        name: &run.name,
        seconds: run.duration_ns as f64 / 1e9,
        properties: &[
            ("run_id", run.run_id.clone()),
            ("tool", format!("plimsoll {}", run.tool_version)),
        ],
    };
    suite.xml(&cases)
}

/// Returns the gate of a comparison as JUnit XML, with a line feed at the end.
///
/// An undecided gate is an `error`. An undecided figure is `skipped`. If the runs cannot be
/// compared, all figures are `skipped`.
pub fn gate_xml(gate: &Gate) -> String {
    let [base, new] = &gate.sides;
    let mut cases = vec![Case {
        class: "gate",
        name: format!("{new} is not worse than {base}"),
        end: match gate.outcome {
            GateOutcome::NotWorse => CaseResult::Passed,
            GateOutcome::Worse => CaseResult::Failed,
            GateOutcome::Undecided => CaseResult::Error,
        },
        says: gate.reason.clone(),
    }];
    cases.extend(gate.figures.iter().map(|figure| Case {
        class: "figure",
        name: figure.figure.clone(),
        end: match figure.outcome {
            _ if gate.doubt.is_some() => CaseResult::Skipped,
            GateOutcome::NotWorse => CaseResult::Passed,
            GateOutcome::Worse => CaseResult::Failed,
            GateOutcome::Undecided => CaseResult::Skipped,
        },
        says: figure.says.clone(),
    }));
    let suite = Suite {
        name: &format!("{base} and {new}"),
        seconds: 0.0,
        properties: &[("base", base.clone()), ("new", new.clone())],
    };
    suite.xml(&cases)
}

fn of_check(check: &Check) -> Case {
    // The names of the limit and of the measured value contain their units.
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

/// Name, duration and properties of a test suite.
struct Suite<'a> {
    name: &'a str,
    seconds: f64,
    properties: &'a [(&'a str, String)],
}

impl Suite<'_> {
    fn xml(&self, cases: &[Case]) -> String {
        let count = |of: fn(&CaseResult) -> bool| cases.iter().filter(|case| of(&case.end)).count();
        let (name, seconds) = (escape::html(self.name), self.seconds);
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
        for (key, value) in self.properties {
            let value = escape::html(value);
            xml.push_str(&format!("      <property name=\"{key}\" value=\"{value}\"/>\n"));
        }
        xml.push_str("    </properties>\n");
        for case in cases {
            xml.push_str(&case.xml());
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }
}

impl Case {
    fn xml(&self) -> String {
        let (name, says) = (escape::html(&self.name), escape::html(&self.says));
        let inner = match self.end {
            CaseResult::Passed if says.is_empty() => String::new(),
            CaseResult::Passed => format!("<system-out>{says}</system-out>"),
            CaseResult::Failed => format!("<failure message=\"{says}\"/>"),
            CaseResult::Error => format!("<error message=\"{says}\"/>"),
            CaseResult::Skipped => format!("<skipped message=\"{says}\"/>"),
        };
        let class = self.class;
        format!("    <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>\n")
    }
}
