//! `plimsoll clean`: removes what runs that were killed left: data on targets, and generation maps in the
//! state directory whose data is gone.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use plimsoll_engine::{Cleaned, Fate, collect_maps, remove_data};
use serde::Serialize;

use super::bundle;
use crate::common::Common;
use crate::error::{CliError, engine_error};
use crate::exit::Exit;
use crate::places::Places;

/// Options of `clean`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll clean                  generation maps whose data is gone\n  plimsoll \
    clean /mnt/db1         what killed runs left there, too\n  plimsoll clean /mnt/db1 --kept  data that runs \
    kept there, too\n\nOnly files that Plimsoll made are removed, and directories when they are empty then. \
    Bundles and the ledger stay."
)]
pub struct Options {
    /// Directories that plans named, or own directories of runs below them (plimsoll-NAME).
    paths: Vec<PathBuf>,
    /// Remove data that a run was asked to keep, too.
    #[arg(long)]
    kept: bool,
    /// Remove generation maps too of which it can't be told whether their data is gone: of a file system that
    /// is not mounted now, or of an earlier version of Plimsoll.
    #[arg(long)]
    unknown: bool,
}

/// What `--json` prints.
#[derive(Debug, Default, Serialize)]
struct Told {
    data_removed: Vec<PathBuf>,
    removals_finished: usize,
    data_kept: Vec<PathBuf>,
    maps_removed: u64,
    maps_removed_bytes: u64,
    maps_needed: u64,
    maps_unknown: u64,
    /// Directories with data of runs that are under way, were killed, or were asked to keep it.
    data_found: BTreeSet<PathBuf>,
}

/// Removes.
///
/// # Errors
/// A directory that is in use, or what can't be removed.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let stores = Places::from_environment()?.stores();
    let mut told = Told::default();
    for path in &options.paths {
        let cleaned =
            remove_data(path, &stores, options.kept).map_err(|error| engine_error(&error))?;
        let Cleaned { removed, finished, kept } = cleaned;
        told.data_removed.extend(removed);
        told.removals_finished += finished;
        told.data_kept.extend(kept);
    }
    let fates = collect_maps(&stores, options.unknown).map_err(|error| engine_error(&error))?;
    for (_, fate) in fates {
        match fate {
            Fate::Removed(bytes) => {
                told.maps_removed += 1;
                told.maps_removed_bytes += bytes;
            }
            Fate::Needed(data) => {
                told.maps_needed += 1;
                told.data_found.insert(data);
            }
            Fate::Unknown(_) => told.maps_unknown += 1,
        }
    }
    bundle::print(&if common.json { bundle::json(&told)? } else { describe(&told) })?;
    Ok(Exit::Ok)
}

fn describe(told: &Told) -> String {
    let mut text = String::new();
    for path in &told.data_removed {
        text.push_str(&format!("removed {}\n", path.display()));
    }
    if told.removals_finished > 0 {
        text.push_str(&format!("finished {} removals that were cut off\n", told.removals_finished));
    }
    for path in &told.data_kept {
        text.push_str(&format!("{} stays: a run was asked to keep it (--kept)\n", path.display()));
    }
    let Told { maps_removed, maps_removed_bytes, maps_needed, maps_unknown, .. } = told;
    text.push_str(&format!(
        "generation maps: {maps_removed} removed ({maps_removed_bytes} bytes), {maps_needed} still needed\n"
    ));
    for data in &told.data_found {
        let place = data.display();
        text.push_str(&format!(
            "data at {place}: of a run that is under way, was killed or was asked to keep it; `plimsoll clean \
             {place}` removes it where it was killed\n"
        ));
    }
    if *maps_unknown > 0 {
        text.push_str(&format!(
            "{maps_unknown} generation maps stay: whether their data is gone can't be told here (--unknown)\n"
        ));
    }
    text
}
