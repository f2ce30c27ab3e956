//! Where a run's bundle is written: the place that was asked for, with the space that it will take held
//! from the start, and other places if it does not fit there in the end.

use std::path::{Path, PathBuf};

use plimsoll_evidence::BundleWriter;
use plimsoll_plan::{Condition, ResolvedPlan, Workload};

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::places::Places;

/// What every bundle takes at least: plan, environment, totals and report.
const BYTES_MIN: u64 = 4 << 20;
/// More is not held: what a run of days leaves beyond this is written all the same.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes of a row of `series.csv`, from bundles of real runs (58 to 62).
const ROW_BYTES: u64 = 80;
/// Rows of an interval that are not of classes of I/O: processors, memory, devices.
const OTHER_ROWS: u64 = 48;
/// Bytes of a histogram's line in `latency.hlog`, from bundles of real runs (1,300 to 1,600).
const HISTOGRAM_BYTES: u64 = 2048;
/// Histograms of one class at most: the engine's intervals are that long.
const HISTOGRAMS_MAX: u64 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// About how many bytes the bundle of a run of this plan takes.
pub fn expected_bytes(plan: &ResolvedPlan) -> u64 {
    let classes = match &plan.workload {
        // Seven classes of I/O for each database, and those of the phases before and after.
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
    // Each class twice: its latency, and its service time.
    let histograms = (phases.measure_ns / SECOND_NS).min(HISTOGRAMS_MAX) + 1;
    let histograms = 2 * histograms.saturating_mul(classes);
    let bytes = rows
        .saturating_mul(ROW_BYTES)
        .saturating_add(histograms.saturating_mul(HISTOGRAM_BYTES))
        .saturating_add(BYTES_MIN);
    bytes.min(BYTES_MAX)
}

/// Makes the bundle's directory in the place that was asked for and holds its space there.
///
/// # Errors
/// A directory that cannot be made, or too little space.
pub fn begin(parent: &Path, run_id: &str, hold_bytes: u64) -> Result<BundleWriter, RunnerError> {
    let mut writer = BundleWriter::create(parent, run_id)?;
    // Nothing to hold: the lock alone, which says that the run lives.
    if let Err(error) = writer.reserve(hold_bytes) {
        // Nothing is in it yet.
        drop(writer.discard());
        let mib = hold_bytes.div_ceil(1 << 20);
        return Err(RunnerError::from(error)
            .hint(format!("the evidence of this run takes up to {mib} MiB: free space there"))
            .hint("or name a directory on another file system with --out"));
    }
    Ok(writer)
}

/// Directories in which a bundle is made that does not fit where it was asked for, the first that takes
/// it: this user's own first, then those for what is passing.
pub fn others(places: &Places, asked: &Path) -> Vec<PathBuf> {
    let mut all = vec![places.runs.clone(), places.state.join("runs"), places.cache.join("runs")];
    let passing = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    all.extend(passing.into_iter().filter(|directory: &PathBuf| directory.is_absolute()));
    let mut seen: Vec<PathBuf> = vec![asked.to_path_buf()];
    all.retain(|directory| {
        let new = !seen.contains(directory);
        seen.push(directory.clone());
        new
    });
    all
}

/// A bundle that was written, with what `write` gave.
pub struct Written<T> {
    /// The bundle's directory.
    pub directory: PathBuf,
    /// What writing it gave.
    pub given: T,
    /// Why it is not where it was asked for, if it is not.
    pub elsewhere_because: Option<RunnerError>,
}

/// Writes a bundle with `write`: where it was begun, or else in the first of `others` that takes it. What
/// was written of it elsewhere is removed.
///
/// # Errors
/// What went wrong in the place that was asked for, where no other takes it either.
pub fn write<T>(
    begun: BundleWriter,
    run_id: &str,
    others: &[PathBuf],
    mut write: impl FnMut(&BundleWriter) -> Result<T, RunnerError>,
) -> Result<Written<T>, RunnerError> {
    let first = match write(&begun) {
        Ok(given) => {
            let directory = begun.directory().to_path_buf();
            return Ok(Written { directory, given, elsewhere_because: None });
        }
        Err(error) if error.kind != Exit::Environment => return Err(error),
        Err(error) => error,
    };
    for parent in others {
        let Ok(writer) = BundleWriter::create(parent, run_id) else { continue };
        match write(&writer) {
            Ok(given) => {
                let directory = writer.directory().to_path_buf();
                // Where its place is gone there is nothing to remove.
                drop(begun.discard());
                return Ok(Written { directory, given, elsewhere_because: Some(first) });
            }
            Err(_) => drop(writer.discard()),
        }
    }
    Err(first.hint("no other place took the bundle either: what was measured is lost"))
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;

    fn bytes(measure: &str) -> u64 {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\npath = \"/tmp\"\n[workload.mailbox]\nmailboxes = 10\n\
             mailbox_size = \"1GiB\"\ndatabases = 8\n[phases]\nmeasure = \"{measure}\"\n\
             [evidence]\nmin_measure = \"10s\"\n"
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
        let begun = BundleWriter::create(&first, "run").unwrap();
        let full = |writer: &BundleWriter| match writer.directory().starts_with(&first) {
            true => Err(RunnerError::environment("no space left")),
            false => Ok(writer.seal()?),
        };
        let written = write(begun, "run", std::slice::from_ref(&second), full).unwrap();
        assert_eq!(written.directory, second.join("run"));
        assert!(written.elsewhere_because.unwrap().message.contains("no space left"));
        assert!(!first.join("run").exists(), "what was begun there is removed");
        assert_eq!(written.given.len(), 64);
    }

    #[test]
    fn the_place_that_was_asked_for_is_no_other_place() {
        let places =
            Places { state: "/s".into(), runs: "/r".into(), cache: "/c".into(), signer: None };
        let others = others(&places, Path::new("/r"));
        assert_eq!(others[..2], [PathBuf::from("/s/runs"), "/c/runs".into()]);
        assert!(others.contains(&"/dev/shm".into()));
    }
}
