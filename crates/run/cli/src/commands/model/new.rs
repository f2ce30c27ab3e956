//! `plimsoll model new --from RESULTS`: creates a model file for a measured system.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fitting::fit::{self, FitRequest};
use plimsoll_fitting::structures::{NewModelRequest, new_model};
use plimsoll_model::fit::FitOptions;

use super::show;
use super::table::read;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `model new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plimsoll sweep --path /mnt/db --size 4KiB,64KiB --reads 100,70,0 --depth 1,8,32 \\
      --format csv > sweep.csv
  plimsoll model new --from sweep.csv --save mine.toml
  plimsoll model new --from fio-results/ --save mine.toml
  plimsoll model new --from corners.csv --predict inside.csv --save mine.toml
  plimsoll model run plan.toml --model ./mine.toml

The command tries a flash drive (alone, or with a network link, a constant delay or a rate limit),
an SSD with channels, and a disk. It fits all of these to the table, chooses the most suitable one,
and compares it with built-in models and interpolation. A table is a sweep's CSV, or has the columns
of `plimsoll model fit`. In results of other tools (fio JSON, a directory), a row is a job or a
group of concurrent jobs. If the number of operations in flight is not the same in all rows, a
column queue_depth is required. The value dsync in the column sync means durable writes.

Exit codes: 0 FITTED; 3 DOES NOT FIT (a goal is missed). The file is written in both cases.")]
pub struct Options {
    /// The measured table, or results of another tool: a file or a directory.
    #[arg(long, value_name = "RESULTS")]
    from: PathBuf,
    /// Also predict these rows. The fit does not use them.
    #[arg(long, value_name = "RESULTS")]
    predict: Option<PathBuf>,
    /// New file for the model. Default: the table's name with .toml, in the current directory.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Seed for the random starting points of the fit and for the simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do not check how well the rows determine each parameter, and do not predict each row from
    /// the others.
    #[arg(long)]
    quick: bool,
    /// Set this goal to a percentage, instead of its default.
    #[arg(long, value_name = "NAME=PERCENT")]
    goal: Vec<String>,
}

/// Chooses and fits a model, and writes its file.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let source = options.from.file_name().map(|name| name.to_string_lossy().into_owned());
    let (Some(source), Some(own)) = (source, stem(&options.from)) else {
        let says = format!("{} is not a file", options.from.display());
        return Err(CliError::usage(says));
    };
    let path = options.save.clone().unwrap_or_else(|| PathBuf::from(format!("{own}.toml")));
    // A fit takes minutes, so an existing file must be reported before the fit.
    if path.exists() {
        return Err(exists(&path));
    }
    let table = read(&options.from, common)?;
    let other = options.predict.as_deref().map(|path| read(path, common)).transpose()?;
    let goals = fit::goals_of(&options.goal)?;
    let request = NewModelRequest {
        name: &stem(&path).unwrap_or(own),
        source: &source,
        fit: FitRequest {
            table: &table,
            test_table: other.as_ref(),
            overrides: &BTreeMap::new(),
            goals: &goals,
            options: FitOptions {
                seed: options.seed,
                diagnose: !options.quick,
                ..FitOptions::default()
            },
        },
    };
    let note = |text: &str| {
        if !common.quiet {
            notes::tell(text);
        }
    };
    let (text, outcome) = new_model(&request, &fit::progress_lines(&note))?;
    save(&path, &text)?;
    match common.json {
        true => bundle::print(&bundle::json(&outcome)?)?,
        false => show(&outcome.document(), common)?,
    }
    note(&format!("wrote {}", path.display()));
    Ok(if outcome.fits() { Exit::Ok } else { Exit::NoVerdict })
}

fn exists(path: &Path) -> CliError {
    CliError::usage(format!("{} exists already", path.display()))
        .hint("choose another file with --save")
}

fn save(path: &Path, text: &str) -> Result<(), CliError> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => CliError::environment(format!("cannot write {}: {error}", path.display())),
    })
}
