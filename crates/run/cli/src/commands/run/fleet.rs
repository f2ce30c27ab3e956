//! `plimsoll run --resume RUN --fleet …`, and the output of a fleet run.

use std::sync::atomic::AtomicBool;

use plimsoll_fleet::coordinator::{self, Options};
use plimsoll_fleet::driver::forward;
use plimsoll_report::fleet_document;
use plimsoll_runner::fleet::FleetBundle;

use crate::commands::bundle;
use crate::commands::run_options::RunOptions;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;

/// Resumes a run and shows its verdict.
///
/// # Errors
/// The run is not running, the server cannot be reached, or evidence cannot be written.
pub fn resume(
    run_id: &str,
    after: &RunOptions,
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    after.refuse_with_fleet()?;
    let (server, places) = after.hosts.reached(&after.sign)?;
    let bundles = places.bundles(after.out.as_deref())?;
    let options = Options { server, agents: None, names: Vec::new(), places, bundles };
    let left =
        coordinator::resume(run_id, &options, interrupt, &mut |event| forward(progress, event))?;
    show(&left, common)?;
    Ok(left.exit)
}

/// Shows the verdict of a fleet run.
///
/// # Errors
/// Stdout cannot be written.
pub fn show(left: &FleetBundle, common: &Globals) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&left.verdict)?);
    }
    let document = fleet_document(&left.fleet, &left.verdict, &left.combined, &left.hosts);
    let mut text = plimsoll_report::text::document(&document, &bundle::style(common));
    text.push_str(&format!("\nreport: {}\n", left.directory.join("report.html").display()));
    bundle::print(&text)
}
