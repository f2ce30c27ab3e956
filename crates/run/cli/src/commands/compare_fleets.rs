//! `plimsoll compare RUN_A RUN_B` for fleet runs: compares the totals of all hosts.

use std::path::{Path, PathBuf};

use plimsoll_judge::compare::{Comparison, FleetRun, FleetSide, compare_fleets};
use plimsoll_runner::compare::{Exemptions, NamedSide};
use plimsoll_runner::fleet::{FleetBundle, is_fleet, read};

use crate::error::CliError;

/// Returns the directory itself if it is a fleet bundle, otherwise the fleet bundles in it, sorted
/// by name.
fn fleets_in(directory: &Path) -> Vec<PathBuf> {
    if is_fleet(directory) {
        return vec![directory.to_path_buf()];
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut fleets: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|p| is_fleet(p)).collect();
    fleets.sort();
    fleets
}

/// Compares sides that are fleet runs or directories of fleet runs. Returns `None` if no side of
/// the comparison is a fleet run.
///
/// # Errors
/// Only some of the sides of the comparison are fleet runs, or evidence is unreadable or was
/// changed.
pub fn compare(
    given: &[NamedSide],
    taken: &Exemptions<'_>,
) -> Result<Option<Comparison>, CliError> {
    let found: Vec<Vec<PathBuf>> = given.iter().map(|side| fleets_in(&side.directory)).collect();
    if found.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    if let Some(other) = found.iter().position(Vec::is_empty) {
        let says = format!("{} is not a fleet run, but another side is one", given[other].argument);
        return Err(CliError::usage(says).hint("fleet runs can only be compared with fleet runs"));
    }
    let all = |paths: &Vec<PathBuf>| -> Result<Vec<FleetBundle>, CliError> {
        paths.iter().map(|path| read(path)).collect()
    };
    let all: Vec<Vec<FleetBundle>> = found.iter().map(all).collect::<Result<_, _>>()?;
    let sides: Vec<FleetSide<'_>> =
        given.iter().zip(&all).map(|(given, runs)| side(given, runs)).collect();
    Ok(Some(compare_fleets(&sides, taken.accept, taken.factors)))
}

fn side<'a>(given: &NamedSide, runs: &'a [FleetBundle]) -> FleetSide<'a> {
    let run = |left: &'a FleetBundle| FleetRun {
        run_id: &left.fleet.run_id,
        verdict: &left.verdict,
        hosts: left.hosts.iter().map(|(bundle, verdict)| (bundle, verdict)).collect(),
    };
    let name = given.name.clone().unwrap_or_else(|| given.argument.clone());
    FleetSide { name, runs: runs.iter().map(run).collect() }
}
