//! Changes a plan's target to a model.

use std::collections::BTreeMap;

use plimsoll_plan::{Plan, Target, TargetKind};
use toml::Table;

use crate::error::CliError;
use crate::model_run;

/// Returns a changed plan: its target is replaced by a model, or the parameters of its model are
/// changed. The bundle stores the returned plan.
///
/// # Errors
/// Neither the plan nor the command line names a model, or a parameter is invalid.
pub fn on_model(
    plan: Plan,
    model: Option<&str>,
    set: BTreeMap<String, String>,
) -> Result<Plan, CliError> {
    let set: Table = set.into_iter().map(of_text).collect();
    let resolved = plan.resolve();
    let (model, set) = match (model, model_run::target_model(&resolved)) {
        (Some(model), _) => (model.to_owned(), set),
        (None, Some(_)) if set.is_empty() => return Ok(plan),
        (None, Some(TargetKind::Model { model, set: stated })) => {
            let stated = stated.clone().into_iter().map(of_text);
            (model.clone(), stated.chain(set).collect())
        }
        (None, _) => {
            let kind = resolved.targets.first().map_or("nothing", Target::kind_word);
            return Err(CliError::usage(format!("the plan's target is {kind}, not a model")).hint(
                "choose a model with --model NAME; `plimsoll model list` lists the built-in models",
            ));
        }
    };
    let mut target = Table::from_iter([("model".to_owned(), toml::Value::String(model))]);
    if !set.is_empty() {
        target.insert("set".to_owned(), toml::Value::Table(set));
    }
    plan.on_target(target).map_err(|errors| CliError::usage(errors.to_string()))
}

/// Converts a parameter's value: to a number if possible, otherwise to text.
fn of_text((path, text): (String, String)) -> (String, toml::Value) {
    let read = format!("value = {text}").parse::<Table>().ok();
    let value = read.and_then(|mut table| table.remove("value"));
    (path, value.unwrap_or(toml::Value::String(text)))
}
