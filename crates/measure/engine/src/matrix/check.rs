//! Verifies the data set of an earlier run. The check compares every unit with its expected
//! contents.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{Damage, Phase, PhaseKind};
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::planned::pace::Pace;
use plimsoll_workload::stamp::Finding;

use super::data_set::DataSet;
use super::manifest::{DataFile, FILE};
use super::pass::pass_classes;
use super::pass::{CHUNKS_IN_FLIGHT, Pass, PassPlan, PassSource};
use crate::EngineError;
use crate::backend::{BackendConfig, Direct, FileSource};
use crate::placement::Placement;
use crate::stream::run::{Event, Group, RunConfig, Target, UNTIL_DONE_NS, run_with_events};
use crate::work_dir::DEV_NULL;
use crate::work_dir::find_manifest::{FileState, has_manifest};

#[derive(Clone, Debug)]
pub struct DataCheck {
    /// True if all data was read.
    pub complete: bool,
    /// Number of units that were checked.
    pub blocks_checked: u64,
    /// Number of damaged units, plus the number of files that are missing or too short.
    pub damage_count: u64,
    /// List of damage: the files that are missing or too short, and the first damage that each
    /// thread detected.
    pub damage: Vec<Damage>,
    /// First I/O error, which ended the check; `None` if no I/O failed.
    pub io_error: Option<String>,
}

/// Returns true if `path`, or a directory directly in it, contains the manifest of a data set. The
/// manifest need not be readable.
#[must_use]
pub fn is_data_set(path: &Path) -> bool {
    has_manifest(path, FILE)
}

/// Reads and verifies the data set at `path`. The work is distributed over all CPUs.
///
/// # Errors
/// Fails if `path` has no data set or if a file cannot be opened. Also fails if the data set is in
/// use or was not closed.
pub fn check_data(
    path: &Path,
    interrupt: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<DataCheck, EngineError> {
    let (data_set, file_states) = DataSet::open_at(path)?;
    let mut plan = PassPlan::new(&data_set, Pass::Check, false)?;
    let unit_bytes = u64::from(data_set.manifest.unit_bytes);
    let held = |(state, size): (&FileState, &u64)| match state {
        FileState::Whole => *size,
        FileState::Short(held) => held / unit_bytes * unit_bytes,
        FileState::Missing => 0,
    };
    plan.sizes_bytes = file_states.iter().zip(plan.sizes_bytes.iter()).map(held).collect();
    let cpus = plimsoll_sys::cpu::allowed().unwrap_or_default();
    let threads = cpus.len().max(1);
    // The CPU limits the speed of the verification, not the disk.
    let place =
        |at: usize| cpus.get(at).map(|cpu| Placement::pinned(*cpu, "a CPU for each thread"));
    let groups = (0..threads).map(|at| {
        group(&data_set, &file_states, &plan, (at, threads), place(at).unwrap_or_default())
    });
    let names = pass_classes().into_iter().map(|class| class.name).collect();
    let config = RunConfig { classes: names, ..RunConfig::new(&[], UNTIL_DONE_NS) };
    let started_ns = monotonic_ns();
    watcher.begin(PhaseKind::Verify);
    let (mut report, sources) =
        run_with_events(&config, groups.collect(), interrupt, &mut |event| {
            if matches!(event, Event::Tick) {
                let progress = Progress {
                    elapsed_ns: monotonic_ns().saturating_sub(started_ns),
                    done_bytes: plan.done_bytes.load(Ordering::Relaxed),
                    total_bytes: plan.total_bytes(),
                    ..Progress::default()
                };
                watcher.progress(PhaseKind::Verify, &progress);
            }
        })?;
    report.error.take().map_or(Ok(()), Err)?;
    let done_bytes = plan.done_bytes.load(Ordering::Relaxed);
    let complete = done_bytes == plan.total_bytes();
    watcher.end(&Phase {
        kind: PhaseKind::Verify,
        start_ns: 0,
        duration_ns: monotonic_ns().saturating_sub(started_ns),
        read_bytes: done_bytes,
        written_bytes: 0,
        reached: complete,
        note: String::new(),
        boundary_error_ns: None,
    });
    let files = data_set.files().iter().zip(&file_states);
    let mut damage: Vec<Damage> = files.filter_map(|(file, state)| absent(file, *state)).collect();
    let (mut blocks_checked, mut damage_count) = (0, damage.len() as u64);
    for source in sources.iter().flatten() {
        let (counts, first) = source.found();
        damage_count += counts.damaged();
        blocks_checked += counts.good + counts.damaged();
        damage.extend(first.map(|finding| describe(&data_set, &finding)));
    }
    let failure = report.groups.iter().find_map(|group| group.failure());
    let io_error = failure.map(|error| error.to_string());
    Ok(DataCheck { complete, blocks_checked, damage_count, damage, io_error })
}

/// Describes a file that is missing or too short as damage. Returns `None` if the file is complete.
fn absent(file: &DataFile, state: FileState) -> Option<Damage> {
    let path = file.path.display().to_string();
    let (kind, says) = match state {
        FileState::Whole => return None,
        FileState::Short(held) => {
            let of = file.size_bytes;
            ("truncated", format!("{path}: the file is truncated: {held} of {of} bytes exist"))
        }
        FileState::Missing => ("missing", format!("{path}: missing")),
    };
    Some(Damage { target: path, page: 0, kind: kind.to_owned(), says })
}

fn group(
    data_set: &DataSet,
    file_states: &[FileState],
    plan: &PassPlan,
    (at, threads): (usize, usize),
    place: Placement,
) -> Group<PassSource> {
    let source = |(file, state): (&DataFile, &FileState)| match state {
        // A missing file has no data to read.
        FileState::Missing => FileSource::read_only(DEV_NULL),
        FileState::Whole | FileState::Short(_) => FileSource::read_only(&file.path),
    };
    let files = data_set.files().iter().zip(file_states).map(source).collect();
    Group {
        name: format!("check-{at}"),
        place,
        target: Target::Files(BackendConfig {
            files,
            held: data_set.held.clone(),
            // Direct I/O can only read whole sectors.
            direct: match data_set.manifest.unit_bytes.is_multiple_of(512) {
                true => Direct::Auto,
                false => Direct::Off,
            },
            ..BackendConfig::default()
        }),
        source: plan.part(at as u64, threads as u64),
        clients: 1,
        pace: Pace::Closed { depth: CHUNKS_IN_FLIGHT },
        cap: None,
        size_bytes_max: data_set.chunk_bytes(),
        operations_max: u64::MAX,
        spin_ns: 0,
    }
}

/// Converts a finding to an entry for the bundle.
pub(super) fn describe(data_set: &DataSet, finding: &Finding) -> Damage {
    let file = data_set.files().get(finding.target as usize);
    let path = file.map_or(String::new(), |file| file.path.display().to_string());
    let (offset_bytes, kind) = (finding.offset_bytes, finding.damage.name());
    let (generation, damage) = (finding.expected.generation, finding.damage);
    Damage {
        page: offset_bytes / u64::from(data_set.manifest.unit_bytes.max(1)),
        kind: kind.to_owned(),
        says: format!(
            "{path} at byte {offset_bytes}: {kind} ({damage}; generation {generation} was expected)"
        ),
        target: path,
    }
}
