//! `plimsoll audit`: judges results of other tools and claims without a file, and explains the
//! rules.

mod claim;
mod declaration;
mod one;
mod rules;
mod sort;
mod study;

pub use study::write;

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::audit::is_run_result;

use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  plimsoll audit result.json              what fio, vdbench, elbencho, \
    diskspd and others wrote\n  plimsoll audit results/ --table         every result below a \
    directory, or in an archive\n  plimsoll audit --iops 1e6 --size 4KiB --latency 0.25ms \
    --depth 256 --link 25Gb/s\n  plimsoll audit table.csv --outstanding 480 --link \
    5GB/s\n  plimsoll audit --explain holes-read\n  plimsoll audit --rules --claim \
    tail-latency\n\nPlimsoll detects the form from the content; docs/audit.md lists all \
    forms. Exit code 3: a result is IMPOSSIBLE, DOUBTFUL or INVALID.\nA result file alone \
    (tier T3) never shows the source of reads, sustained rates,\nsurvival of a power loss, \
    or the tail. `plimsoll observe -- CMD` shows more."
)]
pub struct Options {
    /// Results: files, directories or archives (tar, tar.gz, zip).
    #[arg(value_name = "PATH", group = "claimed")]
    paths: Vec<PathBuf>,
    /// List the rules; with `--claim`, those that affect it.
    #[arg(long, conflicts_with_all = ["paths", "explain"], group = "claimed")]
    rules: bool,
    /// Explain a rule: its meaning, its method and what to do.
    #[arg(long, value_name = "RULE", conflicts_with = "paths")]
    explain: Option<String>,
    /// Print one row per result.
    #[arg(long, requires = "paths")]
    table: bool,
    /// Order of the rows.
    #[arg(long, value_name = "COLUMN", default_value = "verdict")]
    sort: sort::Sort,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the rows as CSV to this file.
    #[arg(long, value_name = "FILE", requires = "paths")]
    csv: Option<PathBuf>,
    /// The claim of the figure; by default the one that its operations suggest.
    #[arg(long, value_name = "CLAIM", requires = "claimed")]
    claim: Vec<String>,
    /// Operations in flight over all clients, if the result does not state them.
    #[arg(long, visible_alias = "depth", value_name = "COUNT")]
    outstanding: Option<u64>,
    /// Rate of the slowest link, such as 5GB/s or 25Gb/s.
    #[arg(long, value_name = "RATE")]
    link: Option<String>,
    /// Size of the storage system's caches.
    #[arg(long, value_name = "SIZE")]
    array_cache: Option<String>,
    /// Total memory of the hosts.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Kind of media: hdd, ssd, nvme, hybrid or memory.
    #[arg(long, value_name = "MEDIA")]
    media: Option<String>,
    /// Number of drives that store the data.
    #[arg(long, value_name = "COUNT")]
    drives: Option<u32>,
    #[command(flatten)]
    stated: claim::ClaimedFigures,
}

/// Judges the named results, or shows the rules.
///
/// # Errors
/// An unreadable file, an unknown format, or an invalid option.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if options.rules {
        return rules::list(&declaration::claims(&options.claim)?, common);
    }
    if let Some(id) = &options.explain {
        return rules::explain(id, common);
    }
    let declared = declaration::of(options)?;
    if let Some(reported) = options.stated.result(options)? {
        return study::one(&reported, &declared.reported(), options, common);
    }
    match &options.paths[..] {
        [] => Err(CliError::usage("nothing to audit")
            .hint("name a result's file or a directory of results")
            .hint("or state a claim: --iops, --bandwidth, --latency, --size, --depth")),
        [file] if !options.table && is_run_result(file) => {
            one::carry_out(file, &declared, options, common)
        }
        paths => study::carry_out(paths, &declared.reported(), options, common),
    }
}
