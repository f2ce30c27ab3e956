//! `plimsoll clean`: removes leftovers of killed runs: data on targets, and generation maps without
//! data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use plimsoll_engine::{CleanupReport, MapGcOutcome, collect_maps, remove_data};
use serde::Serialize;

use super::bundle;
use crate::common::Globals;
use crate::error::{CliError, engine_error};
use crate::exit::Exit;
use crate::places::Places;

/// Options of `clean`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll clean                  generation maps whose data is \
        gone\n  plimsoll clean /mnt/db1         also the data that killed runs left there\n  \
        plimsoll clean /mnt/db1 --kept  also the data that runs kept there\n\nOnly files that \
        Plimsoll created, and directories that become empty, are removed. Bundles and the ledger \
        are never removed."
)]
pub struct Options {
    /// Target directories of plans, or one run's subdirectory plimsoll-NAME in a target directory.
    paths: Vec<PathBuf>,
    /// Also remove data that was kept on purpose (--keep).
    #[arg(long)]
    kept: bool,
    /// Also remove generation maps whose data cannot be checked, because the file system is not
    /// mounted or because an earlier version of Plimsoll created the map.
    #[arg(long)]
    unknown: bool,
}

/// Result that `--json` prints.
#[derive(Debug, Default, Serialize)]
struct CleanReport {
    data_removed: Vec<PathBuf>,
    removals_finished: usize,
    data_kept: Vec<PathBuf>,
    maps_removed: u64,
    maps_removed_bytes: u64,
    maps_needed: u64,
    maps_unknown: u64,
    /// Directories that contain data of running or killed runs, or data that was kept on purpose.
    data_found: BTreeSet<PathBuf>,
}

/// Removes the leftovers.
///
/// # Errors
/// A directory is in use, or data cannot be removed.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let stores = Places::from_environment()?.stores();
    let mut report = CleanReport::default();
    for path in &options.paths {
        let cleaned =
            remove_data(path, &stores, options.kept).map_err(|error| engine_error(&error))?;
        let CleanupReport { removed, finished, kept } = cleaned;
        report.data_removed.extend(removed);
        report.removals_finished += finished;
        report.data_kept.extend(kept);
    }
    let outcomes = collect_maps(&stores, options.unknown).map_err(|error| engine_error(&error))?;
    for (_, outcome) in outcomes {
        match outcome {
            MapGcOutcome::Removed(bytes) => {
                report.maps_removed += 1;
                report.maps_removed_bytes += bytes;
            }
            MapGcOutcome::Needed(data) => {
                report.maps_needed += 1;
                report.data_found.insert(data);
            }
            MapGcOutcome::Unknown(_) => report.maps_unknown += 1,
        }
    }
    bundle::print(&if common.json { bundle::json(&report)? } else { describe(&report) })?;
    Ok(Exit::Ok)
}

fn describe(report: &CleanReport) -> String {
    let mut text = String::new();
    for path in &report.data_removed {
        text.push_str(&format!("removed {}\n", path.display()));
    }
    if report.removals_finished > 0 {
        text.push_str(&format!("completed {} interrupted removals\n", report.removals_finished));
    }
    for path in &report.data_kept {
        text.push_str(&format!(
            "{} was not removed, because its data was kept on purpose (--kept removes it)\n",
            path.display()
        ));
    }
    let CleanReport { maps_removed, maps_removed_bytes, maps_needed, maps_unknown, .. } = report;
    text.push_str(&format!(
        "generation maps: {maps_removed} removed ({maps_removed_bytes} bytes), {maps_needed} still needed\n"
    ));
    for data in &report.data_found {
        let place = data.display();
        text.push_str(&format!(
            "{place} contains data of a running or killed run, or data that was kept on purpose; \
             `plimsoll clean {place}` removes the data of killed runs\n"
        ));
    }
    if *maps_unknown > 0 {
        text.push_str(&format!(
            "{maps_unknown} generation maps were not removed, because it is unknown whether their \
             data still exists (--unknown removes them)\n"
        ));
    }
    text
}
