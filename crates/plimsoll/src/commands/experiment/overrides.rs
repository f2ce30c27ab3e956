//! What the operator changes of an experiment, and brings along.

use std::path::Path;

use clap::ValueEnum;
use plimsoll_experiments::experiment_plan::ExtraFigures;
use plimsoll_experiments::{Overrides, StorageKind};

use crate::error::CliError;

/// What the command line says of the arms.
pub struct Said<'a> {
    /// Where the places of real arms are.
    pub path: &'a [String],
    /// Fields of plans that differ.
    pub set: &'a [String],
    /// The only arms that run, if any are named.
    pub arm: &'a [String],
    /// Runs of each arm.
    pub repeats: Option<u32>,
    /// Whether the hosts of a fleet run them.
    pub on_hosts: bool,
}

/// Where the arms run.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Where {
    /// On the experiment's model, in virtual time.
    Model,
    /// On real storage.
    Real,
}

impl From<Where> for StorageKind {
    fn from(on: Where) -> Self {
        match on {
            Where::Model => Self::Model,
            Where::Real => Self::Real,
        }
    }
}

/// What the operator changes.
pub fn overrides(said: &Said<'_>, on: StorageKind) -> Result<Overrides, CliError> {
    if on == StorageKind::Model && !said.path.is_empty() {
        return Err(CliError::usage("--path is for arms on real storage").hint("add --on real"));
    }
    let place = |text: &String| pair(text, "PLACE=PATH");
    let places = said.path.iter().map(place).collect::<Result<_, _>>()?;
    let field = |text: &String| pair(text, "FIELD=VALUE");
    let set = said.set.iter().map(field).collect::<Result<_, _>>()?;
    let Said { repeats, on_hosts, .. } = *said;
    let arms = said.arm.to_vec();
    Ok(Overrides { set, places, on_hosts, repeats, arms, ..Overrides::default() })
}

/// Published figures that the operator brings along.
pub fn further(published: Option<&Path>, tables: &[String]) -> Result<ExtraFigures, CliError> {
    let table = |text: &String| match text.split_once('=') {
        Some((arm, path)) => Ok((arm.to_owned(), path.to_owned())),
        None => Err(CliError::usage(format!("\"{text}\" is not ARM=FILE"))),
    };
    let tables = tables.iter().map(table).collect::<Result<_, _>>()?;
    Ok(ExtraFigures { figures: published.map(Path::to_path_buf), tables })
}

fn pair(text: &str, form: &str) -> Result<(String, String), CliError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(CliError::usage(format!("\"{text}\" is not {form}"))),
    }
}
