//! Which bundles and experiments lie in the directories of a catalogue.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::labels::labels_path;

/// Experiments hold experiments at most this deep: a published one, its searches, their runs.
const DEPTH_MAX: u32 = 4;
/// What says that a directory is an experiment.
const EXPERIMENT: &str = "experiment.json";

/// What says that a directory is the run of a fleet.
pub(crate) const FLEET: &str = "all/fleet.json";

/// Where the runs of one user lie.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Directories that hold bundles and experiments; of two bundles of one name the first counts.
    pub directories: Vec<PathBuf>,
    /// The ledger.
    pub ledger: PathBuf,
    /// The index, which may be removed at any time.
    pub index: PathBuf,
    /// Whether runs of others are told too that the team's catalogue held.
    pub is_shared: bool,
}

/// A bundle or experiment on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScannedDirectory {
    pub directory: PathBuf,
    /// The experiment's directory that it lies in.
    pub experiment: Option<PathBuf>,
    pub is_experiment: bool,
    /// Changes when what the index has of it may have changed.
    pub stamp: String,
}

/// Everything below the roots, each once.
pub(crate) fn scan(roots: &Roots) -> Vec<ScannedDirectory> {
    let mut scanned: Vec<ScannedDirectory> = Vec::new();
    for root in &roots.directories {
        scan_below(root, None, DEPTH_MAX, &mut scanned);
    }
    let mut seen = std::collections::BTreeSet::new();
    scanned.retain(|one| seen.insert(one.directory.file_name().map(ToOwned::to_owned)));
    scanned
}

fn scan_below(
    directory: &Path,
    experiment: Option<&Path>,
    depth: u32,
    scanned: &mut Vec<ScannedDirectory>,
) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let (mut directories, mut files) = (Vec::new(), HashSet::new());
    for entry in entries {
        match entry.file_type() {
            // A link to a directory is no directory here.
            Ok(kind) if kind.is_dir() => directories.push(entry.file_name()),
            _ => drop(files.insert(entry.file_name())),
        }
    }
    // Names and not paths: those are compared part by part.
    directories.sort_unstable();
    for name in directories {
        let path = directory.join(name);
        let Some(is_experiment) = scan_directory(&path, experiment, &files, scanned) else {
            continue;
        };
        if is_experiment && depth > 0 {
            scan_below(&path, Some(&path), depth - 1, scanned);
        }
    }
}

/// Notes what lies in a directory, whose parent has these files; whether it is an experiment. `None`: neither that nor
/// a bundle.
fn scan_directory(
    path: &Path,
    experiment: Option<&Path>,
    siblings: &HashSet<OsString>,
    scanned: &mut Vec<ScannedDirectory>,
) -> Option<bool> {
    let file = |name: &str| fs::metadata(path.join(name)).ok().filter(fs::Metadata::is_file);
    let (fleet, run) = (file(FLEET), file("run.json"));
    let is_experiment = fleet.is_none() && run.is_none();
    let (first, second) = match fleet.or(run) {
        Some(first) => (first, fs::metadata(path.join("verdict.json")).ok()),
        None => (file(EXPERIMENT)?, None),
    };
    let labels = labels_path(path);
    let labels = labels.file_name().filter(|name| siblings.contains(*name)).map(|_| &labels);
    let labels = labels.and_then(|path| fs::metadata(path).ok());
    let second = if is_experiment { Some(&first) } else { second.as_ref() };
    let stamps = [Some(&first), second, labels.as_ref()];
    let stamp =
        stamps.map(|metadata| metadata.map_or_else(|| "-".to_owned(), file_stamp)).join(" ");
    scanned.push(ScannedDirectory {
        directory: path.to_path_buf(),
        experiment: experiment.map(Path::to_path_buf),
        is_experiment,
        stamp,
    });
    Some(is_experiment)
}

/// Size and time of a file's last change.
fn file_stamp(metadata: &fs::Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{}:{}", metadata.len(), changed.map_or(0, |since| since.as_nanos()))
}

/// A change this soon before, or at any time after, the reading began may not show in the time of a directory: file
/// systems stamp with the clock's tick.
const TIMESTAMP_TICK: Duration = Duration::from_millis(100);

/// What a catalogue was read from, as it lay there: the ledger, and the directories in which bundles and labels come
/// and go.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    experiments: Vec<PathBuf>,
    /// By place, its length and the time of its last change.
    stamps: Vec<(PathBuf, Option<(u64, SystemTime)>)>,
    is_settled: bool,
}

impl Fingerprint {
    /// As it lies there now; the reading began at `begun`.
    pub fn take(roots: &Roots, experiments: Vec<PathBuf>, started: SystemTime) -> Self {
        let stamps = stamps(roots, &experiments);
        let settled = |(_, stamp): &(PathBuf, Option<(u64, SystemTime)>)| {
            stamp.is_none_or(|(_, changed)| changed + TIMESTAMP_TICK < started)
        };
        Self { is_settled: stamps.iter().all(settled), experiments, stamps }
    }

    /// Whether it lies there as it did.
    pub fn is_unchanged(&self, roots: &Roots) -> bool {
        self.is_settled && stamps(roots, &self.experiments) == self.stamps
    }
}

fn stamps(roots: &Roots, experiments: &[PathBuf]) -> Vec<(PathBuf, Option<(u64, SystemTime)>)> {
    let places = roots.directories.iter().chain([&roots.ledger]).chain(experiments);
    let stamp = |path: &PathBuf| {
        let known = fs::metadata(path).ok();
        let known = known.and_then(|data| Some((data.len(), data.modified().ok()?)));
        (path.clone(), known)
    };
    places.map(stamp).collect()
}
