//! Explanations of the rules, for people and programs.

use plimsoll_judge::conservation;
use plimsoll_judge::rules::{self, Weight};
use plimsoll_plan::Claim;
use serde_json::json;

use crate::text::wrap;

/// Width of an explanation.
const COLUMNS: usize = 98;

/// A rule for runs, experiments, reported results or studies.
pub struct RuleInfo {
    pub id: &'static str,
    asks: &'static str,
    explains: &'static str,
    bears_on: &'static [(Claim, Weight)],
}

/// Returns all rules, each once.
pub fn all() -> Vec<RuleInfo> {
    let single = rules::ALL.iter().map(|r| RuleInfo {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    let several = rules::experiment::ALL.iter().map(|r| RuleInfo {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    let reported = conservation::rules::ALL.iter().map(|r| RuleInfo {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: &[],
    });
    let of_studies = conservation::study::ALL.iter().map(|r| RuleInfo {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: &[],
    });
    // Some rules apply to runs and also to reported results. They are explained only for runs.
    let mut all: Vec<RuleInfo> = single.chain(several).collect();
    for rule in reported.chain(of_studies) {
        if all.iter().all(|known| known.id != rule.id) {
            all.push(rule);
        }
    }
    all
}

/// Returns the rules that are relevant for at least one of these claims. If there is no claim,
/// returns all rules.
pub fn rules_for(claims: &[Claim]) -> Vec<RuleInfo> {
    let mut all = all();
    let bears = |rule: &RuleInfo| rule.bears_on.iter().any(|(claim, _)| claims.contains(claim));
    all.retain(|rule| claims.is_empty() || bears(rule));
    all
}

fn claims(rule: &RuleInfo, weight: Weight) -> Vec<&'static str> {
    let claims = rule.bears_on.iter().filter(|(_, w)| *w == weight);
    claims.map(|(claim, _)| claim.word()).collect()
}

impl RuleInfo {
    pub fn as_json(&self) -> serde_json::Value {
        json!({
            "rule": self.id,
            "asks": self.asks,
            "explains": self.explains,
            "mandatory_for": claims(self, Weight::Mandatory),
            "refutes": claims(self, Weight::Refuting),
            "bears_on": claims(self, Weight::Advisory),
        })
    }

    /// Returns the explanation of a rule as text: meaning, method and advice.
    pub fn text(&self) -> String {
        let explains = wrap(self.explains, COLUMNS).join("\n");
        let mut text = format!("{}: {}\n\n{explains}\n", self.id, self.asks);
        let weights = [
            (Weight::Mandatory, "mandatory for"),
            (Weight::Refuting, "refutes"),
            (Weight::Advisory, "advisory for"),
        ];
        for (weight, word) in weights {
            let claims = claims(self, weight);
            if !claims.is_empty() {
                text.push_str(&format!("\n{word:13}  {}", claims.join(", ")));
            }
        }
        text.push('\n');
        text
    }
}

/// Returns a line per rule.
pub fn list_text(all: &[RuleInfo]) -> String {
    let width = all.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut text =
        format!("{} rules; `plimsoll audit --explain RULE` explains a rule\n\n", all.len());
    for rule in all {
        text.push_str(&format!("  {:width$}  {}\n", rule.id, rule.asks));
    }
    text
}
