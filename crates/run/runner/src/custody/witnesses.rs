//! Ledger positions recorded in bundles. They reveal a ledger that was truncated or rewritten.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::ledger::position::ClaimedPosition;
use plimsoll_evidence::run::LedgerPosition;

/// Number of runs and experiments of the catalogue that are read, starting with the newest.
const WITNESSES_MAX: usize = 64;
/// Number of runs that are read from each experiment.
const WITNESSES_OF_EXPERIMENT_MAX: usize = 4;

/// Returns the ledger positions recorded by the newest bundles of a catalogue.
pub fn witnesses(runs: &Path) -> Vec<ClaimedPosition> {
    let newest = newest(runs, WITNESSES_MAX).into_iter();
    newest
        .flat_map(|path| match witness(&path) {
            Some(witness) => vec![witness],
            None => {
                let within = self::newest(&path, WITNESSES_OF_EXPERIMENT_MAX);
                within.iter().filter_map(|path| witness(path)).collect()
            }
        })
        .collect()
}

/// Returns the newest entries. Names of runs and experiments begin with their start time.
fn newest(directory: &Path, most: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    names.into_iter().rev().take(most).map(|name| directory.join(name)).collect()
}

fn witness(directory: &Path) -> Option<ClaimedPosition> {
    #[derive(serde::Deserialize)]
    struct RunJson {
        run_id: String,
        ledger: Option<LedgerPosition>,
    }
    let text = fs::read_to_string(directory.join("run.json")).ok()?;
    let RunJson { run_id, ledger } = serde_json::from_str(&text).ok()?;
    Some(ClaimedPosition { run_id, position: ledger? })
}
