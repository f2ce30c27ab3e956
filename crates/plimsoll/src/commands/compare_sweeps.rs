//! `plimsoll compare SWEEP_A SWEEP_B`: two sweeps, cell by cell.
//!
//! A side is the experiment of one sweep, or a directory that holds several of them: then each is one
//! measurement of every cell.

use std::path::{Path, PathBuf};

use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::compare::{Outcome, Side, SweepComparison, compare_sweeps};
use plimsoll_report::{sweeps_document, text};

use super::bundle;
use super::sides::{read_side, tell_custody};
use crate::common::Common;
use crate::custody::{Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{FILE, kind_of};

/// The sweeps of a side: the directory itself, or those within it; none where it is no sweep.
pub fn sweeps_in(directory: &Path) -> Vec<PathBuf> {
    let is_sweep = |path: &Path| {
        path.join(FILE).is_file() && kind_of(path).is_ok_and(|kind| kind == ExperimentKind::Sweep)
    };
    if is_sweep(directory) {
        return vec![directory.to_path_buf()];
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|path| is_sweep(path)).collect();
    all.sort();
    all
}

/// Compares sides of which at least one is a sweep; `None` where none is.
///
/// # Errors
/// Sides that are not all sweeps, or not two; one that cannot be read.
pub fn compare_named(
    named: &[String],
    accept: &[String],
) -> Result<Option<(SweepComparison, Vec<Together>)>, CliError> {
    let found: Result<Vec<PathBuf>, CliError> = named.iter().map(|n| bundle::find(n)).collect();
    let sweeps: Vec<Vec<PathBuf>> = found?.iter().map(|path| sweeps_in(path)).collect();
    if sweeps.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    if let Some(at) = sweeps.iter().position(Vec::is_empty) {
        let says = format!("{} is no sweep, and another side is one", named[at]);
        return Err(CliError::usage(says).hint("compare sweeps with sweeps, and runs with runs"));
    }
    let [a, b] = &sweeps[..] else {
        let says = format!("{} sweeps are named: compare two, cell by cell", named.len());
        return Err(CliError::usage(says).hint("plimsoll compare SWEEP_A SWEEP_B"));
    };
    let reader = Reader::new();
    let (a, b) = (runs_of(&reader, a)?, runs_of(&reader, b)?);
    let plan = |side: &[Together]| side[0].runs[0].bundle.run.name.clone();
    let names = match (plan(&a), plan(&b)) {
        (first, second) if first != second => [first, second],
        _ => ["A".to_owned(), "B".to_owned()],
    };
    let sides = [side(&names[0], &a), side(&names[1], &b)];
    let mut compared = compare_sweeps(&sides, accept);
    for (name, given) in names.iter().zip(named).filter(|(name, given)| name != given) {
        compared.remarks.push(format!("{name} is {given}."));
    }
    Ok(Some((compared, a.into_iter().chain(b).collect())))
}

fn side<'a>(name: &str, sweeps: &'a [Together]) -> Side<'a> {
    Side { name: name.to_owned(), runs: sweeps.iter().flat_map(Together::judged).collect() }
}

fn runs_of(reader: &Reader, sweeps: &[PathBuf]) -> Result<Vec<Together>, CliError> {
    sweeps.iter().map(|sweep| read_side(reader, sweep)).collect()
}

/// Shows a comparison of sweeps, writes its page, and says what it ends with.
///
/// # Errors
/// A page or stdout that cannot be written.
pub fn told(
    (compared, read): &(SweepComparison, Vec<Together>),
    html: Option<&Path>,
    common: &Common,
) -> Result<Exit, CliError> {
    let document = sweeps_document(compared);
    if let Some(path) = html {
        let page = bundle::document_html(&document)?;
        std::fs::write(path, page).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if common.json {
        bundle::print(&bundle::json(compared)?)?;
    } else {
        bundle::print(&text::document(&document, &bundle::style(common)))?;
    }
    tell_custody(read, common)?;
    let exit = match compared.outcome {
        Outcome::UnlikeConditions | Outcome::NotShown => Exit::NoVerdict,
        _ if compared.cells.is_empty() => Exit::NoVerdict,
        _ => Exit::Ok,
    };
    Ok(read.iter().fold(exit, |exit, side| side.weigh(exit)))
}
