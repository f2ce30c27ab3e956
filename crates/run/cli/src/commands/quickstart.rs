//! `plimsoll quickstart`: a small mailbox test on this machine in about a minute.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use plimsoll_engine::mailbox::written_bytes;
use plimsoll_plan::{QuickstartFacts, quickstart};

use super::run_options::RunOptions;
use crate::common::Globals;
use crate::error::{CliError, engine_error};
use crate::exit::Exit;
use crate::interrupt;
use crate::places::Places;

/// Maximum size of the data: 2 GiB or 5 % of the free space, whichever is smaller.
const DATA_BYTES_MAX: u64 = 2 << 30;
const FREE_DIVISOR: u64 = 20;
/// Maximum duration of the test writes that measure the write speed of the storage.
const WRITE_NS: u64 = 10_000_000_000;

const DEMONSTRATION: &str = "This is a demonstration: it takes about a minute and uses little data. \
                             It shows how Plimsoll judges, but not how much load this storage \
                             sustains. To measure that load, use `plimsoll run` with your own plan.";

/// Options of `quickstart`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll quickstart\n  plimsoll quickstart --path /mnt/san \
    --keep\n  plimsoll quickstart --json | jq .verdict")]
pub struct Options {
    /// Directory on the file system to test. Default: this user's cache directory.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    #[command(flatten)]
    after: RunOptions,
}

/// Runs the quickstart.
///
/// # Errors
/// There is too little space, or a directory cannot be written.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let mut progress = options.after.metrics.progress("quickstart", common)?;
    let interrupt = interrupt::flag_on_signal()?;
    let directory = directory(options)?;
    if common.json {
        progress.say(DEMONSTRATION);
    } else {
        super::bundle::print(&format!("{DEMONSTRATION}\n\n"))?;
    }
    let free_bytes = free_bytes(&directory)?;
    let name = directory.display().to_string();
    let facts = QuickstartFacts {
        free_bytes,
        write_bytes_in_ten_seconds: u64::MAX,
        directory: name.clone(),
    };
    // Check the free space and the directory's name before any file is written.
    let largest =
        quickstart(&facts).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    if options.after.dry_run {
        progress.say(
            "a run first tests the write speed for at most ten seconds, and uses less data if the \
             storage is slow; a dry run omits this test and states the largest size",
        );
        return super::run::run_plan(&largest, &options.after, common, &mut progress, &interrupt);
    }
    let limit_bytes = DATA_BYTES_MAX.min(free_bytes / FREE_DIVISOR);
    progress.say(&format!(
        "testing the write speed of {} for at most ten seconds",
        directory.display()
    ));
    let write_bytes_in_ten_seconds = written_bytes(&directory, limit_bytes, WRITE_NS, &interrupt)
        .map_err(|error| engine_error(&error))?;
    if interrupt.load(Ordering::Relaxed) {
        let says = "interrupted before the run started: nothing was measured, and all test files \
                    were removed";
        return Err(CliError::new(Exit::Interrupted, says));
    }
    let plan = quickstart(&QuickstartFacts { write_bytes_in_ten_seconds, ..facts })
        .map_err(|error| CliError::environment(format!("{name}: {error}")))?;
    super::run::run_plan(&plan, &options.after, common, &mut progress, &interrupt)
}

/// Returns the directory to test. Without --path, this is the cache directory, which is created if
/// missing.
fn directory(options: &Options) -> Result<PathBuf, CliError> {
    let directory = match &options.path {
        Some(path) => path.clone(),
        None => {
            let cache = Places::from_environment()?.cache;
            std::fs::create_dir_all(&cache).map_err(|error| {
                CliError::environment(format!("cannot create {}: {error}", cache.display()))
                    .hint("choose a directory with --path")
            })?;
            cache
        }
    };
    directory.canonicalize().map_err(|error| {
        CliError::usage(format!("{}: {error}", directory.display()))
            .hint("choose an existing directory with --path")
    })
}

fn free_bytes(directory: &Path) -> Result<u64, CliError> {
    let statistics = rustix::fs::statvfs(directory).map_err(|error| {
        CliError::environment(format!(
            "cannot determine the free space of {}: {error}",
            directory.display()
        ))
    })?;
    Ok(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}
