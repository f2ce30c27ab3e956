//! Directory of a run's bundle. Space for the bundle is reserved at the start. If the bundle still
//! does not fit at the end, it is written to a fallback directory.

use std::path::{Path, PathBuf};

use plimsoll_evidence::BundleWriter;
use plimsoll_plan::{Condition, ResolvedPlan, Workload};

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::places::Places;

/// Space for the plan, environment, totals and report, which every bundle contains.
const BYTES_MIN: u64 = 4 << 20;
/// Maximum reserved space. A run that lasts for days may write more than this.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes per row of `series.csv`; rows of real runs have 58 to 62 bytes.
const ROW_BYTES: u64 = 80;
/// Rows that each interval adds to `series.csv` for processors, memory and devices.
const OTHER_ROWS: u64 = 48;
/// Bytes per line of `latency.hlog`; lines of real runs have 1,300 to 1,600 bytes.
const HISTOGRAM_BYTES: u64 = 2048;
/// Maximum number of histograms per class. The engine chooses the interval so that no class has
/// more histograms.
const HISTOGRAMS_MAX: u64 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// Estimates the size of a run's bundle.
pub fn expected_bytes(plan: &ResolvedPlan) -> u64 {
    let classes = match &plan.workload {
        // Each database has seven classes of I/O. The preparation and clean-up phases add further
        // classes.
        Workload::Mailbox(mailbox) => u64::from(mailbox.databases).saturating_mul(8) + 8,
        Workload::Matrix(matrix) => 8 * matrix.streams.len() as u64 + 8,
    };
    let phases = &plan.phases;
    let conditioned_ns = match phases.condition {
        Condition::None => 0,
        _ => phases.condition_max_ns,
    };
    let loaded_ns = phases.warm_up_ns.saturating_add(phases.measure_ns);
    let loaded_ns = loaded_ns.saturating_add(conditioned_ns);
    let intervals = loaded_ns / plan.evidence.interval_ns.max(1) + 1;
    let rows = intervals.saturating_mul(classes + OTHER_ROWS);
    // Each class has two histograms: latency and service time.
    let histograms = (phases.measure_ns / SECOND_NS).min(HISTOGRAMS_MAX) + 1;
    let histograms = 2 * histograms.saturating_mul(classes);
    let bytes = rows
        .saturating_mul(ROW_BYTES)
        .saturating_add(histograms.saturating_mul(HISTOGRAM_BYTES))
        .saturating_add(BYTES_MIN);
    bytes.min(BYTES_MAX)
}

/// Creates the bundle's directory and reserves its space.
///
/// # Errors
/// The directory cannot be created, or there is too little space.
pub fn create(
    parent: &Path,
    run_id: &str,
    reserve_bytes: u64,
) -> Result<BundleWriter, RunnerError> {
    let mut writer = BundleWriter::create(parent, run_id)?;
    // With 0 bytes, this only acquires the lock, which shows that the run is alive.
    if let Err(error) = writer.reserve(reserve_bytes) {
        // The directory is still empty, so nothing is lost.
        drop(writer.discard());
        let mib = reserve_bytes.div_ceil(1 << 20);
        return Err(RunnerError::from(error)
            .hint(format!(
                "the evidence of this run needs up to {mib} MiB: free some space on the file system \
                 of that directory"
            ))
            .hint("or specify a directory on another file system with --out"));
    }
    Ok(writer)
}

/// Returns fallback directories, in order of preference: this user's own directories, then
/// temporary ones.
pub fn fallback_directories(places: &Places, requested: &Path) -> Vec<PathBuf> {
    let mut all = vec![places.runs.clone(), places.state.join("runs"), places.cache.join("runs")];
    let temporary = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    all.extend(temporary.into_iter().filter(|directory: &PathBuf| directory.is_absolute()));
    let mut seen: Vec<PathBuf> = vec![requested.to_path_buf()];
    all.retain(|directory| {
        let new = !seen.contains(directory);
        seen.push(directory.clone());
        new
    });
    all
}

pub struct WrittenBundle<T> {
    pub directory: PathBuf,
    /// Value returned by the function that wrote the bundle.
    pub output: T,
    /// Error that made the requested directory unusable, if the bundle is in a fallback directory.
    pub fallback_reason: Option<RunnerError>,
}

/// Calls `write` to write a bundle to its original directory. If that fails, tries the fallback
/// directories in order. Partly written bundles are removed.
///
/// # Errors
/// If no fallback is usable either: the error of the original directory.
pub fn write<T>(
    original: BundleWriter,
    run_id: &str,
    fallbacks: &[PathBuf],
    mut write: impl FnMut(&BundleWriter) -> Result<T, RunnerError>,
) -> Result<WrittenBundle<T>, RunnerError> {
    let first = match write(&original) {
        Ok(output) => {
            let directory = original.directory().to_path_buf();
            return Ok(WrittenBundle { directory, output, fallback_reason: None });
        }
        Err(error) if error.kind != Exit::Environment => return Err(error),
        Err(error) => error,
    };
    for parent in fallbacks {
        let Ok(writer) = BundleWriter::create(parent, run_id) else { continue };
        match write(&writer) {
            Ok(output) => {
                let directory = writer.directory().to_path_buf();
                // If the directory no longer exists, there is nothing to remove.
                drop(original.discard());
                return Ok(WrittenBundle { directory, output, fallback_reason: Some(first) });
            }
            Err(_) => drop(writer.discard()),
        }
    }
    Err(first.hint(
        "the bundle could not be written to any other directory either: the measurement is lost",
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;

    fn bytes(measure: &str) -> u64 {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\npath = \"/tmp\"\n[workload.mailbox]\nmailboxes = \
             10\nmailbox_size = \"1GiB\"\ndatabases = 8\n[phases]\nmeasure = \
             \"{measure}\"\n[evidence]\nmin_measure = \"10s\"\n"
        );
        expected_bytes(&Plan::parse(&text, "test").unwrap().resolve())
    }

    #[test]
    fn a_longer_run_takes_more_and_never_more_than_a_gibibyte() {
        assert!(bytes("30s") > BYTES_MIN && bytes("30s") < 32 << 20, "{}", bytes("30s"));
        assert!(bytes("2h") > 64 << 20 && bytes("2h") < 512 << 20, "{}", bytes("2h"));
        assert_eq!(bytes("2000h"), BYTES_MAX);
    }

    #[test]
    fn a_bundle_that_cannot_be_written_where_it_was_begun_goes_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("a"), directory.path().join("b"));
        let original = BundleWriter::create(&first, "run").unwrap();
        let full = |writer: &BundleWriter| match writer.directory().starts_with(&first) {
            true => Err(RunnerError::environment("no space left")),
            false => Ok(writer.seal()?),
        };
        let written = write(original, "run", std::slice::from_ref(&second), full).unwrap();
        assert_eq!(written.directory, second.join("run"));
        assert!(written.fallback_reason.unwrap().message.contains("no space left"));
        assert!(!first.join("run").exists(), "the partly written bundle is removed");
        assert_eq!(written.output.len(), 64);
    }

    #[test]
    fn the_place_that_was_asked_for_is_no_other_place() {
        let places =
            Places { state: "/s".into(), runs: "/r".into(), cache: "/c".into(), signer: None };
        let others = fallback_directories(&places, Path::new("/r"));
        assert_eq!(others[..2], [PathBuf::from("/s/runs"), "/c/runs".into()]);
        assert!(others.contains(&"/dev/shm".into()));
    }
}
