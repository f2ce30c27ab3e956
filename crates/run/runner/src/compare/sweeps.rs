//! Compares two sweeps cell by cell.
//!
//! A side of the comparison is one sweep, or a directory of several sweeps. Each sweep contributes
//! one measurement to every cell.

use std::path::{Path, PathBuf};

use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::compare::{Side, SweepComparison, compare_sweeps};

use super::{NamedSide, read_side};
use crate::custody::{Reader, RunSet};
use crate::error::RunnerError;
use crate::experiment::{FILE, kind_of};

/// Returns the sweeps of a side of the comparison: the side's directory if it is a sweep, otherwise
/// the sweeps in this directory. Empty if there are no sweeps.
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

/// Compares sides if at least one is a sweep; returns `None` otherwise.
///
/// # Errors
/// Not all sides are sweeps, the number of sides is not two, or a side of the comparison cannot be
/// read.
pub fn compare_sweep_sides(
    reader: &Reader,
    named_sides: &[NamedSide],
    accept: &[String],
) -> Result<Option<(SweepComparison, Vec<RunSet>)>, RunnerError> {
    let sweeps: Vec<Vec<PathBuf>> =
        named_sides.iter().map(|one| sweeps_in(&one.directory)).collect();
    if sweeps.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    if let Some(at) = sweeps.iter().position(Vec::is_empty) {
        let says =
            format!("{} is not a sweep, but another side is a sweep", named_sides[at].argument);
        return Err(RunnerError::usage(says).hint("compare sweeps with sweeps, and runs with runs"));
    }
    let [a, b] = &sweeps[..] else {
        let says =
            format!("{} sweeps were given, but exactly two must be given", named_sides.len());
        return Err(RunnerError::usage(says).hint("run: plimsoll compare SWEEP_A SWEEP_B"));
    };
    let (a, b) = (read_sweeps(reader, a)?, read_sweeps(reader, b)?);
    let plan = |side: &[RunSet]| side[0].runs[0].bundle.run.name.clone();
    let names = match (plan(&a), plan(&b)) {
        (first, second) if first != second => [first, second],
        _ => ["A".to_owned(), "B".to_owned()],
    };
    let sides = [side(&names[0], &a), side(&names[1], &b)];
    let mut compared = compare_sweeps(&sides, accept);
    for (name, one) in names.iter().zip(named_sides).filter(|(name, one)| **name != one.argument) {
        compared.remarks.push(format!("{name} stands for {}.", one.argument));
    }
    Ok(Some((compared, a.into_iter().chain(b).collect())))
}

fn side<'a>(name: &str, sweeps: &'a [RunSet]) -> Side<'a> {
    Side { name: name.to_owned(), runs: sweeps.iter().flat_map(RunSet::judged).collect() }
}

fn read_sweeps(reader: &Reader, sweeps: &[PathBuf]) -> Result<Vec<RunSet>, RunnerError> {
    sweeps.iter().map(|sweep| read_side(reader, sweep)).collect()
}
