//! `plimsoll audit`: judges results of other tools and claims without a result file, and explains
//! the rules.

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
    after_help = "Examples:\n  plimsoll audit result.json              a result of fio, vdbench, \
        elbencho, diskspd or another tool\n  plimsoll audit results/ --table         all results \
        in a directory or archive\n  plimsoll audit --iops 1e6 --size 4KiB --latency 0.25ms \
        --depth 256 --link 25Gb/s\n  plimsoll audit table.csv --outstanding 480 --link 5GB/s\n  \
        plimsoll audit --explain holes-read\n  plimsoll audit --rules --claim \
        tail-latency\n\nPlimsoll detects the format from the content; docs/audit.md lists all \
        formats. Exit code 3: a result is IMPOSSIBLE, DOUBTFUL or INVALID.\nA result file alone \
        (tier T3) does not show whether reads came from a cache, whether a rate can \
        be\nsustained, whether writes survive a power loss, or how high the tail latency \
        is.\n`plimsoll observe -- CMD` can show more."
)]
pub struct Options {
    /// Results: files, directories or archives (tar, tar.gz, zip).
    #[arg(value_name = "PATH", group = "claimed")]
    paths: Vec<PathBuf>,
    /// List the rules; with `--claim`, only the rules that affect this claim.
    #[arg(long, conflicts_with_all = ["paths", "explain"], group = "claimed")]
    rules: bool,
    /// Explain a rule: its meaning, its method, and what to do if it fails.
    #[arg(long, value_name = "RULE", conflicts_with = "paths")]
    explain: Option<String>,
    /// Print a table with one row per result.
    #[arg(long, requires = "paths")]
    table: bool,
    /// Sort the rows by this figure.
    #[arg(long, value_name = "COLUMN", default_value = "verdict")]
    sort: sort::Sort,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the rows as CSV to this file.
    #[arg(long, value_name = "FILE", requires = "paths")]
    csv: Option<PathBuf>,
    /// Kind of claim that the result should support, such as tail-latency. By default, Plimsoll
    /// chooses the kind that fits the operations in the result.
    #[arg(long, value_name = "CLAIM", requires = "claimed")]
    claim: Vec<String>,
    /// Number of operations in flight, summed over all clients, if the result does not contain this
    /// number.
    #[arg(long, visible_alias = "depth", value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    outstanding: Option<u64>,
    /// Rate of the slowest link, such as 5GB/s or 25Gb/s.
    #[arg(long, value_name = "RATE")]
    link: Option<String>,
    /// Total size of the storage system's caches.
    #[arg(long, value_name = "SIZE")]
    array_cache: Option<String>,
    /// Total memory of all hosts.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Kind of media: hdd, ssd, nvme, hybrid or memory.
    #[arg(long, value_name = "MEDIA")]
    media: Option<String>,
    /// Number of drives that store the data.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    drives: Option<u32>,
    #[command(flatten)]
    stated: claim::ClaimedFigures,
}

/// Judges the given results, or shows the rules.
///
/// # Errors
/// A file cannot be read, a format is unknown, or an option is invalid.
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
        [] => Err(CliError::usage("there is no result to audit")
            .hint("pass the file of a result, or a directory with results")
            .hint("or describe a claim with --iops, --bandwidth, --latency, --size, --depth")),
        [file] if !options.table && is_run_result(file) => {
            one::carry_out(file, &declared, options, common)
        }
        paths => study::carry_out(paths, &declared.reported(), options, common),
    }
}
