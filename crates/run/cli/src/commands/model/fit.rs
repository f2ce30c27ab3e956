//! `plimsoll model fit MODEL DATA.csv`: fits the free parameters of a model to a measured table. It
//! can also predict another table, and compares the prediction with that table.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fitting::fit::{self, FitRequest};
use plimsoll_model::fit::{Fit, FitOptions};
use plimsoll_model::run::ConfiguredModel;

use super::table::read;
use super::{model_error, settings, show};
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `model fit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model fit zfs-flash mirrors.csv\n  plimsoll model fit \
        zfs-flash mirrors.csv --predict raidz2.csv \\\n      --with pool.layout=raidz --with \
        pool.groups=4 --with pool.width=6 --with pool.parity=2 \\\n      --with \
        records.record_bytes=131072 --with arc.unit_bytes=131072 --with \
        pool.chunk_bytes=131072\n\nA table is CSV with the columns io_kib, pattern, read_percent, \
        ops_per_s, latency_ms, and\noptionally clients, depth (operations in flight of each client), \
        bandwidth_mb_per_s,\nread_ops_per_s, write_ops_per_s. The CSV of a sweep is a table too. \
        Lines with # are comments.\nResults of another tool (fio JSON, a directory of results) are \
        tables too: a row is one job,\nor a group of jobs that ran together.\n\nExit codes: 0 \
        FITTED or PREDICTED; 3 DOES NOT FIT (the fitted rows miss a goal)."
)]
pub struct Options {
    /// Name of a built-in model, or path of a model file.
    model: String,
    /// The measured table.
    data: PathBuf,
    /// Also predict this table. The fit does not use it.
    #[arg(long, value_name = "CSV")]
    predict: Option<PathBuf>,
    /// Change a parameter. Use the names in the model file.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Change a parameter only for the predicted table.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE", requires = "predict")]
    with: Vec<String>,
    /// Seed for the random starting points of the fit and for the simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of random starting points of the fit. It also starts once from the values in the
    /// model file.
    #[arg(long, default_value_t = 5)]
    starts: usize,
    /// Do not check how well the rows determine each parameter, and do not predict each row from
    /// the others.
    #[arg(long)]
    quick: bool,
    /// Set this goal to a percentage, instead of its default.
    #[arg(long, value_name = "NAME=PERCENT")]
    goal: Vec<String>,
    /// Write the fitted values to this file, as arguments for `--set`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Fits the model, and predicts a table if one is given.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let model = ConfiguredModel::load(&options.model, &settings(&options.set)?)
        .map_err(|error| model_error(&error))?;
    let table = read(&options.data, common)?;
    let other = options.predict.as_deref().map(|path| read(path, common)).transpose()?;
    let requested = FitRequest {
        table: &table,
        test_table: other.as_ref(),
        overrides: &settings(&options.with)?,
        goals: &fit::goals_of(&options.goal)?,
        options: FitOptions {
            seed: options.seed,
            starts: options.starts,
            diagnose: !options.quick,
            ..FitOptions::default()
        },
    };
    let begins = || {
        let free = model.spec().facts().iter().filter(|(_, fact)| fact.free.is_some()).count();
        let rows = table.matrix().count();
        if !common.quiet {
            notes::tell(&format!("fitting {free} parameters to {rows} rows"));
        }
    };
    let note = |text: &str| {
        if !common.quiet {
            notes::tell(text);
        }
    };
    let (fitted, outcome) =
        fit::carry_out(&model, &requested, begins, &fit::progress_lines(&note))?;
    if let Some(path) = &options.save {
        save(path, &fitted)?;
    }
    match common.json {
        true => bundle::print(&bundle::json(&outcome)?)?,
        false => show(&outcome.document(), common)?,
    }
    Ok(if outcome.fits() { Exit::Ok } else { Exit::NoVerdict })
}

fn save(path: &Path, fitted: &Fit) -> Result<(), CliError> {
    let lines = fitted.parameters.iter().map(|p| format!("{}={}\n", p.path, p.fitted));
    std::fs::write(path, lines.collect::<String>())
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
}
