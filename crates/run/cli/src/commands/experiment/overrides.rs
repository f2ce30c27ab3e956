//! Changes that the user made to an experiment.

use std::path::Path;

use clap::ValueEnum;
use plimsoll_experiments::experiment_plan::ExtraFigures;
use plimsoll_experiments::{Overrides, StorageKind};

use crate::error::CliError;

/// Flags that affect the arms of an experiment.
pub struct ArmFlags<'a> {
    /// Targets of the experiment's arms on real storage, as PLACE=PATH.
    pub path: &'a [String],
    /// Field changes for all plans, as FIELD=VALUE.
    pub set: &'a [String],
    /// Arms of the experiment to run. If the list is empty, all arms are run.
    pub arm: &'a [String],
    /// Number of runs of each arm of the experiment.
    pub repeats: Option<u32>,
    /// True if a fleet runs the arms of the experiment.
    pub on_hosts: bool,
}

/// Storage that the arms of an experiment use.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StorageChoice {
    /// Run on the experiment's model, in virtual time.
    Model,
    /// Run on real storage.
    Real,
}

impl From<StorageChoice> for StorageKind {
    fn from(on: StorageChoice) -> Self {
        match on {
            StorageChoice::Model => Self::Model,
            StorageChoice::Real => Self::Real,
        }
    }
}

/// Returns the changes that the flags describe.
pub fn overrides(flags: &ArmFlags<'_>, on: StorageKind) -> Result<Overrides, CliError> {
    if on == StorageKind::Model && !flags.path.is_empty() {
        return Err(CliError::usage(
            "--path is only valid for arms of an experiment that run on real storage",
        )
        .hint("add --on real"));
    }
    let place = |text: &String| pair(text, "PLACE=PATH");
    let places = flags.path.iter().map(place).collect::<Result<_, _>>()?;
    let field = |text: &String| pair(text, "FIELD=VALUE");
    let set = flags.set.iter().map(field).collect::<Result<_, _>>()?;
    let ArmFlags { repeats, on_hosts, .. } = *flags;
    let arms = flags.arm.to_vec();
    Ok(Overrides { set, places, on_hosts, repeats, arms, ..Overrides::default() })
}

/// Returns the additional published figures that the user passed.
pub fn extra_figures(
    published: Option<&Path>,
    tables: &[String],
) -> Result<ExtraFigures, CliError> {
    let table = |text: &String| match text.split_once('=') {
        Some((arm, path)) => Ok((arm.to_owned(), path.to_owned())),
        None => Err(CliError::usage(format!("\"{text}\" does not have the form ARM=FILE"))),
    };
    let tables = tables.iter().map(table).collect::<Result<_, _>>()?;
    Ok(ExtraFigures { figures: published.map(Path::to_path_buf), tables })
}

fn pair(text: &str, form: &str) -> Result<(String, String), CliError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(CliError::usage(format!("\"{text}\" does not have the form {form}"))),
    }
}
