//! Parameters and loads that were fitted or chosen. They are inputs of an analysis in addition to
//! the published figures.

use super::{Input, OwnParameter};

/// Returns sentences that list fitted and chosen inputs; empty if there are no such inputs. They
/// are appended to the reason for the result.
pub(super) fn says(input: &Input<'_>) -> String {
    let mut says = String::new();
    if !input.inputs.is_empty() {
        says.push_str(&format!(" Other inputs: {}.", input.inputs.join("; ")));
    }
    let mut models: Vec<&str> = input.own_parameters.iter().map(|own| own.model.as_str()).collect();
    models.dedup();
    for model in models {
        let of_model = input.own_parameters.iter().filter(|own| own.model == model);
        let set: Vec<String> = of_model.map(set).collect();
        says.push_str(&format!(" Changed from the shipped model {model}: {}.", set.join(", ")));
    }
    says
}

fn set(own: &OwnParameter) -> String {
    format!("{} is {}", own.path, own.values.join(" and "))
}
