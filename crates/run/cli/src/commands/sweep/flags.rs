//! Flags of a sweep without a plan.

use std::path::Path;

use clap::Args;
use plimsoll_plan::{DurationNs, Plan, SizeBytes, SweepRequest, sizes_from_text, sweep_plan};

use crate::commands::plan_changes::{Changes, plan_error};
use crate::error::CliError;

/// Flags of a sweep without a plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps without a plan")]
pub struct Flags {
    /// Sizes of one transfer: a list, or 4KiB..128KiB in powers of two.
    #[arg(long, value_name = "SIZES", conflicts_with = "plan")]
    sizes: Option<String>,
    /// Read shares in percent.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', conflicts_with = "plan")]
    reads: Vec<f64>,
    /// Patterns: random, sequential, zipf, hot-cold…
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', conflicts_with = "plan")]
    patterns: Vec<String>,
    /// Operations in flight per client.
    #[arg(long, value_name = "DEPTH", value_delimiter = ',', conflicts_with = "plan")]
    queue_depths: Vec<u32>,
    /// Share of metadata operations in percent (directories, NFS).
    #[arg(long, value_name = "PERCENT", conflicts_with = "plan")]
    metadata: Option<f64>,
    /// Clients; one per share by default.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    clients: Option<u32>,
    /// Files per share.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    files: Option<u32>,
    /// Size of a file; for a directory, by default and without --quick, large enough that all files
    /// take twice this host's memory (but at most a third of the free space).
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    file_size: Option<SizeBytes>,
    /// Duration of a point; ten minutes by default, which is ten hours for a table of 60 points.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["plan", "quick"])]
    measure: Option<DurationNs>,
    /// A quick demonstration: five seconds per point, too short for steady figures.
    #[arg(long, conflicts_with = "plan")]
    quick: bool,
}

impl Flags {
    /// Returns the plan.
    ///
    /// # Errors
    /// No target, or invalid values.
    pub(super) fn plan(&self, changes: &Changes) -> Result<Plan, CliError> {
        let default = SweepRequest::default();
        if !changes.has_target() {
            return Err(CliError::usage("nothing to sweep over")
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
        changes.set_in(&sweep_plan(&request).map_err(|errors| plan_error(&errors))?)
    }
}

impl Flags {
    /// Returns a size of files beyond the host's memory; `None` with --quick, without space, or if
    /// the memory is unknown.
    fn beyond_memory(&self, changes: &Changes, files: u32) -> Option<SizeBytes> {
        let path = changes.path.first().filter(|_| !self.quick)?;
        let seen = plimsoll_observe::environment::collect(&[Path::new(path)]);
        let free_bytes = seen.mounts.first()?.free_bytes?;
        file_size(seen.memory_bytes?, free_bytes, self.files.unwrap_or(files))
    }
}

/// Returns the size of each of `files` files that together take twice the memory, limited to a
/// third of the free space. Below 1 GiB the plan's default applies.
fn file_size(memory_bytes: u64, free_bytes: u64, files: u32) -> Option<SizeBytes> {
    const GIB: u64 = 1 << 30;
    let all = memory_bytes.saturating_mul(2).min(free_bytes / 3);
    let each = all.checked_div(u64::from(files))? / GIB * GIB;
    (each >= GIB).then_some(SizeBytes(each))
}

/// Parses sizes separated by commas, each a size or a doubling range.
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
