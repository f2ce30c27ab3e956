//! Flags of a sweep without a plan, in addition to those that describe a load.

use std::path::Path;

use clap::Args;
use plimsoll_plan::{SizeBytes, SweepRequest};

use crate::commands::load_flags::{LoadFlags, LoadPlan, targets};
use crate::commands::plan_changes::Changes;
use crate::error::CliError;

/// Flags of a sweep without a plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Flags for a sweep without a plan")]
pub struct Flags {
    /// Share of metadata operations in percent (only for directories and NFS exports).
    #[arg(long, value_name = "PERCENT", conflicts_with = "plan")]
    metadata: Option<f64>,
    /// Measure each point for only five seconds, as a demonstration. This is too short for steady
    /// figures.
    #[arg(long, conflicts_with_all = ["plan", "measure", "runtime"])]
    quick: bool,
}

impl Flags {
    /// Returns the named plan, or the plan of the sweep that the flags describe.
    ///
    /// # Errors
    /// The plan is invalid, there is no target, or several runs of each point were requested.
    pub(super) fn plan(
        &self,
        name: Option<&str>,
        load: &LoadFlags,
        changes: &Changes,
    ) -> Result<LoadPlan, CliError> {
        let again = "repeat the sweep with --restart; `plimsoll compare` accepts a directory with \
             several sweeps as one side";
        load.refuse_runs("sweep", "point", again)?;
        if let Some(name) = name {
            return load.named_plan(name, changes);
        }
        let default = SweepRequest::default();
        let request = SweepRequest {
            targets: targets("plimsoll sweep", changes)?,
            metadata_percent: self.metadata.unwrap_or(default.metadata_percent),
            file_size: self.beyond_memory(changes, load.files().unwrap_or(default.files)),
            quick: self.quick,
            ..default
        };
        load.sweep_plan(request, changes)
    }

    /// Returns a file size for which the files together are larger than the host's memory. Returns
    /// `None` with --quick, if there is not enough space, or if the memory size is unknown.
    fn beyond_memory(&self, changes: &Changes, files: u32) -> Option<SizeBytes> {
        let path = changes.path.first().filter(|_| !self.quick)?;
        let seen = plimsoll_observe::environment::collect(&[Path::new(path)]);
        let free_bytes = seen.mounts.first()?.free_bytes?;
        file_size(seen.memory_bytes?, free_bytes, files)
    }
}

/// Returns the size of one file. All files together are twice as large as the memory, but use at
/// most a third of the free space. Returns `None` if a file would be smaller than 1 GiB; the plan's
/// default then applies.
fn file_size(memory_bytes: u64, free_bytes: u64, files: u32) -> Option<SizeBytes> {
    const GIB: u64 = 1 << 30;
    let all = memory_bytes.saturating_mul(2).min(free_bytes / 3);
    let each = all.checked_div(u64::from(files))? / GIB * GIB;
    (each >= GIB).then_some(SizeBytes(each))
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
