//! A sweep without a plan: what is swept over what, in flags.

use std::path::Path;

use clap::Args;
use plimsoll_plan::{DurationNs, Plan, SizeBytes, SweepRequest, sizes_from_text, sweep_plan};

use crate::commands::chosen::{Changes, wrong};
use crate::error::CliError;

/// A sweep without a plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps without a plan")]
pub struct Flags {
    /// Sizes of one transfer: 4KiB..128KiB doubles, or a list.
    #[arg(long, value_name = "SIZES", conflicts_with = "plan")]
    sizes: Option<String>,
    /// Read shares in percent.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', conflicts_with = "plan")]
    reads: Vec<f64>,
    /// Patterns: random, sequential, zipf, hot-cold…
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', conflicts_with = "plan")]
    patterns: Vec<String>,
    /// Operations that each client keeps outstanding.
    #[arg(long, value_name = "DEPTH", value_delimiter = ',', conflicts_with = "plan")]
    queue_depths: Vec<u32>,
    /// Share of metadata operations in percent (directories, NFS).
    #[arg(long, value_name = "PERCENT", conflicts_with = "plan")]
    metadata: Option<f64>,
    /// Clients; one per share unless said otherwise.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    clients: Option<u32>,
    /// Files per share.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    files: Option<u32>,
    /// Size of a file; for a directory, unless stated and without --quick, so much that all files together are
    /// twice this host's memory, as far as a third of the free space goes: no cache of the host holds them.
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    file_size: Option<SizeBytes>,
    /// Length of a point; ten minutes unless said otherwise, which is ten hours for the whole table of 60 points.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["plan", "quick"])]
    measure: Option<DurationNs>,
    /// A first look: five seconds a point, which cannot show steady figures.
    #[arg(long, conflicts_with = "plan")]
    quick: bool,
}

impl Flags {
    /// The plan that they say.
    ///
    /// # Errors
    /// No target, or values that no plan takes.
    pub(super) fn plan(&self, changes: &Changes) -> Result<Plan, CliError> {
        let default = SweepRequest::default();
        if !changes.names_a_place() {
            return Err(CliError::usage("there is nothing to sweep over")
                .hint("name a plan, or a target with --path, --device, --nfs or --model"));
        }
        let targets = changes.places()?;
        let sizes = match &self.sizes {
            Some(text) => sizes(text)?,
            None => default.sizes,
        };
        let or = |given: &[f64], default: Vec<f64>| {
            if given.is_empty() { default } else { given.to_vec() }
        };
        let request = SweepRequest {
            name: default.name,
            made_by: default.made_by,
            targets,
            sizes,
            read_percents: or(&self.reads, default.read_percents),
            patterns: if self.patterns.is_empty() {
                default.patterns
            } else {
                self.patterns.clone()
            },
            queue_depths: if self.queue_depths.is_empty() {
                default.queue_depths
            } else {
                self.queue_depths.clone()
            },
            metadata_percent: self.metadata.unwrap_or(default.metadata_percent),
            clients: self.clients,
            files: self.files.unwrap_or(default.files),
            file_size: self.file_size.or_else(|| self.beyond_memory(changes, default.files)),
            measure: self.measure.or(default.measure),
            quick: self.quick,
        };
        changes.set_in(&sweep_plan(&request).map_err(|errors| wrong(&errors))?)
    }
}

impl Flags {
    /// A size of files that the host's memory does not hold; `None`: what a plan takes, where this is a first look,
    /// where there is no room for more, or where the host does not tell.
    fn beyond_memory(&self, changes: &Changes, files: u32) -> Option<SizeBytes> {
        let path = changes.path.first().filter(|_| !self.quick)?;
        let seen = plimsoll_observe::environment::collect(&[Path::new(path)]);
        let free_bytes = seen.mounts.first()?.free_bytes?;
        file_size(seen.memory_bytes?, free_bytes, self.files.unwrap_or(files))
    }
}

/// The size of each of so many files that are together twice as large as the memory, and take a third of the free
/// space at most. Less than a GiB is left to the plan.
fn file_size(memory_bytes: u64, free_bytes: u64, files: u32) -> Option<SizeBytes> {
    const GIB: u64 = 1 << 30;
    let all = memory_bytes.saturating_mul(2).min(free_bytes / 3);
    let each = all.checked_div(u64::from(files))? / GIB * GIB;
    (each >= GIB).then_some(SizeBytes(each))
}

/// Sizes separated by commas, each a size or a range that doubles.
fn sizes(given: &str) -> Result<Vec<SizeBytes>, CliError> {
    let mut all = Vec::new();
    for part in given.split(',') {
        let sizes = sizes_from_text(part.trim())
            .map_err(|error| CliError::usage(format!("--sizes {part}: {error}")))?;
        all.extend(sizes);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_larger_than_the_memory_where_there_is_room() {
        let gib = |n: u64| n << 30;
        assert_eq!(file_size(gib(16), gib(1_000), 1), Some(SizeBytes(gib(32))));
        assert_eq!(file_size(gib(16), gib(1_000), 5), Some(SizeBytes(gib(6))));
        assert_eq!(file_size(gib(64), gib(30), 1), Some(SizeBytes(gib(10))));
        assert_eq!(file_size(gib(64), gib(2), 1), None);
    }
}
