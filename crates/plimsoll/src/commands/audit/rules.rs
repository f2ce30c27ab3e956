//! What the rules are: `--rules` and `--explain`.

use plimsoll_judge::conservation;
use plimsoll_judge::rules::{self, Weight};
use plimsoll_plan::Claim;
use serde_json::json;

use super::super::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// A rule of one run, of an experiment or of a reported result, for showing.
struct Shown {
    id: &'static str,
    asks: &'static str,
    explains: &'static str,
    bears_on: &'static [(Claim, Weight)],
}

fn all() -> Vec<Shown> {
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
    // Some laws are asked of runs and of reported results: they are explained once, for runs.
    let mut all: Vec<Shown> = single.chain(several).collect();
    for rule in reported {
        if all.iter().all(|known| known.id != rule.id) {
            all.push(rule);
        }
    }
    all
}

fn claims(rule: &Shown, weight: Weight) -> Vec<&'static str> {
    let claims = rule.bears_on.iter().filter(|(_, w)| *w == weight);
    claims.map(|(claim, _)| claim.word()).collect()
}

fn as_json(rule: &Shown) -> serde_json::Value {
    json!({
        "rule": rule.id,
        "asks": rule.asks,
        "explains": rule.explains,
        "mandatory_for": claims(rule, Weight::Mandatory),
        "refutes": claims(rule, Weight::Refuting),
        "bears_on": claims(rule, Weight::Advisory),
    })
}

/// Lists all rules.
///
/// # Errors
/// Stdout that cannot be written.
pub fn list(common: &Common) -> Result<Exit, CliError> {
    let all = all();
    if common.json {
        let rules: Vec<_> = all.iter().map(as_json).collect();
        bundle::print(&bundle::json(&rules)?)?;
        return Ok(Exit::Ok);
    }
    let width = all.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut text = format!("{} rules; `plimsoll audit --explain RULE` says more\n\n", all.len());
    for rule in &all {
        text.push_str(&format!("  {:width$}  {}\n", rule.id, rule.asks));
    }
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

/// Says what a rule means.
///
/// # Errors
/// An identifier that there is none of.
pub fn explain(id: &str, common: &Common) -> Result<Exit, CliError> {
    let all = all();
    let Some(rule) = all.iter().find(|rule| rule.id == id) else {
        let near = all.iter().find(|rule| rule.id.contains(id) || id.contains(rule.id));
        let error = CliError::usage(format!("there is no rule {id}"));
        return Err(match near {
            Some(rule) => error.hint(format!("did you mean {}?", rule.id)),
            None => error.hint("`plimsoll audit --rules` lists them"),
        });
    };
    if common.json {
        bundle::print(&bundle::json(&as_json(rule))?)?;
        return Ok(Exit::Ok);
    }
    let mut text = format!("{}: {}\n\n{}\n", rule.id, rule.asks, wrapped(rule.explains, 98));
    let weights = [
        (Weight::Mandatory, "mandatory for"),
        (Weight::Refuting, "refutes"),
        (Weight::Advisory, "bears on"),
    ];
    for (weight, word) in weights {
        let claims = claims(rule, weight);
        if !claims.is_empty() {
            text.push_str(&format!("\n{word:13}  {}", claims.join(", ")));
        }
    }
    text.push('\n');
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

fn wrapped(text: &str, columns: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}
