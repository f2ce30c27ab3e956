//! Lists and explains rules: `--rules` and `--explain`.

use plimsoll_plan::Claim;
use plimsoll_report::rules::{RuleInfo, all, list_text, rules_for};

use super::super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Lists all rules, or only the rules that affect one of the claims.
///
/// # Errors
/// Stdout cannot be written.
pub fn list(claims: &[Claim], common: &Globals) -> Result<Exit, CliError> {
    let all = rules_for(claims);
    bundle::print(&match common.json {
        true => bundle::json(&all.iter().map(RuleInfo::as_json).collect::<Vec<_>>())?,
        false => list_text(&all),
    })?;
    Ok(Exit::Ok)
}

/// Explains a rule.
///
/// # Errors
/// The rule is unknown.
pub fn explain(id: &str, common: &Globals) -> Result<Exit, CliError> {
    let all = all();
    let Some(rule) = all.iter().find(|rule| rule.id == id) else {
        let near = all.iter().find(|rule| rule.id.contains(id) || id.contains(rule.id));
        let error = CliError::usage(format!("there is no rule {id}"));
        return Err(match near {
            Some(rule) => error.hint(format!("did you mean {}?", rule.id)),
            None if id.starts_with("fleet-") => {
                error.hint("docs/fleet.md explains the findings about a whole fleet")
            }
            None => error.hint("`plimsoll audit --rules` lists all rules"),
        });
    };
    bundle::print(&if common.json { bundle::json(&rule.as_json())? } else { rule.text() })?;
    Ok(Exit::Ok)
}
