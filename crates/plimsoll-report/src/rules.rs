//! What the rules are, for people and for programs.

use plimsoll_judge::conservation;
use plimsoll_judge::rules::{self, Weight};
use plimsoll_plan::Claim;
use serde_json::json;

use crate::text::wrap;

/// Columns of an explanation.
const COLUMNS: usize = 98;

/// A rule of one run, of an experiment, of a reported result or of a study of them, for showing.
pub struct Shown {
    /// What it is called.
    pub id: &'static str,
    asks: &'static str,
    explains: &'static str,
    bears_on: &'static [(Claim, Weight)],
}

/// All rules, each once.
pub fn all() -> Vec<Shown> {
    let single = rules::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    let several = rules::experiment::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    let reported = conservation::rules::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: &[],
    });
    let of_studies = conservation::study::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: &[],
    });
    // Some laws are asked of runs and of reported results: they are explained once, for runs.
    let mut all: Vec<Shown> = single.chain(several).collect();
    for rule in reported.chain(of_studies) {
        if all.iter().all(|known| known.id != rule.id) {
            all.push(rule);
        }
    }
    all
}

/// The rules that bear on any of these claims, whatever they weigh for it; all rules where none is named.
pub fn bearing_on(claims: &[Claim]) -> Vec<Shown> {
    let mut all = all();
    let bears = |rule: &Shown| rule.bears_on.iter().any(|(claim, _)| claims.contains(claim));
    all.retain(|rule| claims.is_empty() || bears(rule));
    all
}

fn claims(rule: &Shown, weight: Weight) -> Vec<&'static str> {
    let claims = rule.bears_on.iter().filter(|(_, w)| *w == weight);
    claims.map(|(claim, _)| claim.word()).collect()
}

impl Shown {
    /// For programs.
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

    /// What it means, how it is found and what to do.
    pub fn text(&self) -> String {
        let explains = wrap(self.explains, COLUMNS).join("\n");
        let mut text = format!("{}: {}\n\n{explains}\n", self.id, self.asks);
        let weights = [
            (Weight::Mandatory, "mandatory for"),
            (Weight::Refuting, "refutes"),
            (Weight::Advisory, "bears on"),
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

/// A line for each rule.
pub fn list_text(all: &[Shown]) -> String {
    let width = all.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut text = format!("{} rules; `plimsoll audit --explain RULE` says more\n\n", all.len());
    for rule in all {
        text.push_str(&format!("  {:width$}  {}\n", rule.id, rule.asks));
    }
    text
}
