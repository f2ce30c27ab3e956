//! Two sweeps, cell by cell.
//!
//! A side is the experiment of one sweep, or a directory that holds several of them: then each is one
//! measurement of every cell.

use std::path::{Path, PathBuf};

use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::compare::{Side, SweepComparison, compare_sweeps};

use super::{Given, read_side};
use crate::custody::{Reader, Together};
use crate::error::RunnerError;
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
pub fn compare_given(
    reader: &Reader,
    given: &[Given],
    accept: &[String],
) -> Result<Option<(SweepComparison, Vec<Together>)>, RunnerError> {
    let sweeps: Vec<Vec<PathBuf>> = given.iter().map(|one| sweeps_in(&one.directory)).collect();
    if sweeps.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    if let Some(at) = sweeps.iter().position(Vec::is_empty) {
        let says = format!("{} is no sweep, and another side is one", given[at].called);
        return Err(RunnerError::usage(says).hint("compare sweeps with sweeps, and runs with runs"));
    }
    let [a, b] = &sweeps[..] else {
        let says = format!("{} sweeps are named: compare two, cell by cell", given.len());
        return Err(RunnerError::usage(says).hint("plimsoll compare SWEEP_A SWEEP_B"));
    };
    let (a, b) = (runs_of(reader, a)?, runs_of(reader, b)?);
    let plan = |side: &[Together]| side[0].runs[0].bundle.run.name.clone();
    let names = match (plan(&a), plan(&b)) {
        (first, second) if first != second => [first, second],
        _ => ["A".to_owned(), "B".to_owned()],
    };
    let sides = [side(&names[0], &a), side(&names[1], &b)];
    let mut compared = compare_sweeps(&sides, accept);
    for (name, one) in names.iter().zip(given).filter(|(name, one)| **name != one.called) {
        compared.remarks.push(format!("{name} is {}.", one.called));
    }
    Ok(Some((compared, a.into_iter().chain(b).collect())))
}

fn side<'a>(name: &str, sweeps: &'a [Together]) -> Side<'a> {
    Side { name: name.to_owned(), runs: sweeps.iter().flat_map(Together::judged).collect() }
}

fn runs_of(reader: &Reader, sweeps: &[PathBuf]) -> Result<Vec<Together>, RunnerError> {
    sweeps.iter().map(|sweep| read_side(reader, sweep)).collect()
}
