//! `plimsoll model show MODEL`: prints the model's description, and each parameter with unit and
//! source.

use clap::Args;
use plimsoll_fitting::parameters;
use plimsoll_model::run::ConfiguredModel;

use super::{model_error, settings, show};
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `model show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model show zfs-flash\n  plimsoll model show zfs-flash --toml > \
    mine.toml"
)]
pub struct Options {
    /// Name of a built-in model, or path of a model file.
    model: String,
    /// Print the model file itself.
    #[arg(long)]
    toml: bool,
    /// Change a parameter before the model is shown.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
}

/// Shows a model.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let model = ConfiguredModel::load(&options.model, &settings(&options.set)?)
        .map_err(|error| model_error(&error))?;
    if options.toml {
        bundle::print(model.spec().text())?;
        return Ok(Exit::Ok);
    }
    if common.json {
        bundle::print(&bundle::json(&parameters::as_json(&model))?)?;
        return Ok(Exit::Ok);
    }
    show(&parameters::document(&model), common)?;
    Ok(Exit::Ok)
}
