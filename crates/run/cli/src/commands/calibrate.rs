//! `plimsoll calibrate`: measures the highest rates that this host can generate. If the rate of a
//! run is close to such a ceiling, the run was limited by the load generator, not by the storage.

use clap::Args;
use plimsoll_engine::calibrate::QueueFigures;

use super::bundle;
use crate::ceilings::{self, Ceilings};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;
use crate::progress::StderrProgress;

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll calibrate\n  plimsoll calibrate --json | jq \
    .score.score\n\nThe first run after each boot also measures these rates, and each bundle \
    contains them. With\nPLIMSOLL_CALIBRATE=never, runs do not measure them.")]
pub struct Options {}

/// Measures the host.
///
/// # Errors
/// Memory or `/dev/null` is not available.
pub fn carry_out(_options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let mut progress = StderrProgress::new(common.quiet);
    let ceilings = ceilings::measure(&places, &mut progress)?;
    if common.json {
        bundle::print(&bundle::json(&ceilings)?)?;
    } else {
        bundle::print(&describe(&ceilings))?;
    }
    Ok(Exit::Ok)
}

fn describe(ceilings: &Ceilings) -> String {
    let found = &ceilings.calibration;
    let mut rows: Vec<(&str, String, String)> = Vec::new();
    let queue = |figures: &QueueFigures| {
        let user_ns = figures.user_ps as f64 / 1000.0;
        let system_ns = figures.system_ps as f64 / 1000.0;
        (
            format!("{:.2} million ops/s", figures.operations_per_s as f64 / 1e6),
            format!("CPU time per operation: {user_ns:.1} ns user, {system_ns:.1} ns system"),
        )
    };
    let bandwidth = |bytes_per_s: u64| format!("{:.1} GB/s", bytes_per_s as f64 / 1e9);
    let mut row = |name, (figure, note): (String, String)| rows.push((name, figure, note));
    row("null target, queue depth 32", queue(&found.null));
    row("null target, queue depth 1", queue(&found.null_depth_1));
    match (&found.ring, &found.ring_missing) {
        (Some(ring), _) => row("io_uring to /dev/null, queue depth 32", queue(ring)),
        (None, why) => {
            let why = why.clone().unwrap_or_default();
            row("io_uring to /dev/null, queue depth 32", ("none".to_owned(), why));
        }
    }
    row("system calls to /dev/null", queue(&found.inline));
    let nothing = String::new;
    row(
        "an empty system call",
        (format!("{:.1} ns", found.system_call_ps as f64 / 1e3), nothing()),
    );
    row("copying in cache", (bandwidth(found.copy_hot_bytes_per_s), nothing()));
    row("copying memory", (bandwidth(found.copy_cold_bytes_per_s), nothing()));
    row("content", (bandwidth(found.content_bytes_per_s), found.instructions.clone()));
    row("checksum (CRC-32C)", (bandwidth(found.checksum_bytes_per_s), nothing()));
    let clock = &found.clock;
    let note = format!(
        "{}, resolution {} ns, differs by at most {} ns from the kernel's clock",
        clock.source, clock.resolution_ns, clock.error_ns_max
    );
    row("reading the clock", (format!("{:.1} ns", clock.cost_ps as f64 / 1e3), note));
    let note = "1,000 is the score of one core of the reference processor".to_owned();
    row("single-core score", (format!("{:.0}", ceilings.score.score), note));
    let wide = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let wide_figure = rows.iter().map(|(_, figure, _)| figure.len()).max().unwrap_or(0);
    let mut text = "Highest rates that one processor of this host reaches:\n\n".to_owned();
    for (name, figure, note) in rows {
        let line = format!("  {name:<wide$}  {figure:>wide_figure$}  {note}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
