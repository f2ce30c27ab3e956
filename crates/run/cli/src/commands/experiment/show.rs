//! `plimsoll experiment show NAME`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_experiments::report::{definition_document, definition_json};
use plimsoll_experiments::{Definition, Files, Overrides, StorageKind};

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `experiment show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll experiment show e1\n  plimsoll experiment show e1 \
        --plan 3 > arm3.toml\n  plimsoll experiment show e1 --export my-e1    copy its files, to \
        change them")]
pub struct Options {
    /// Name of an experiment, or a directory with an experiment.toml.
    experiment: String,
    /// Print the plan of this arm of the experiment.
    #[arg(long, value_name = "ARM", conflicts_with = "export")]
    plan: Option<String>,
    /// Copy the experiment's files into this directory. It must not contain files with these names.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

/// Shows the experiment.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let definition = Definition::read(Files::find(&options.experiment)?)?;
    if let Some(directory) = &options.export {
        definition.files.write(directory)?;
        return Ok(Exit::Ok);
    }
    if let Some(name) = &options.plan {
        let overrides = Overrides { arms: vec![name.clone()], ..Overrides::default() };
        let mut planned = definition.arms(StorageKind::Model, &overrides)?;
        planned.extend(definition.searches(StorageKind::Model, &overrides)?);
        for arm in planned.iter().take(1) {
            bundle::print(arm.plan.text())?;
        }
        return Ok(Exit::Ok);
    }
    if common.json {
        bundle::print(&bundle::json(&definition_json(&definition)?)?)?;
        return Ok(Exit::Ok);
    }
    let document = definition_document(&definition);
    bundle::print(&plimsoll_report::text::document(&document, &bundle::style(common)))?;
    Ok(Exit::Ok)
}
