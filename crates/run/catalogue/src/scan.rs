//! Scans the catalogue's directories for bundles and experiments.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_evidence::seal;

use crate::labels::labels_path;

/// Maximum number of nested experiments: a published experiment contains searches, and a search
/// contains runs.
const DEPTH_MAX: u32 = 4;
/// File that marks a directory as an experiment.
const EXPERIMENT: &str = "experiment.json";

/// File that marks a directory as a fleet run.
pub(crate) const FLEET: &str = "all/fleet.json";

/// Paths of one user's runs, ledger and index.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Directories of bundles and experiments. If two directories contain a bundle with the same
    /// name, the bundle in the first directory is used.
    pub directories: Vec<PathBuf>,
    pub ledger: PathBuf,
    /// Path of the index, which may be deleted at any time.
    pub index: PathBuf,
    /// True to also list runs of other users from the team's catalogue.
    pub is_shared: bool,
}

/// A bundle or experiment on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScannedDirectory {
    pub directory: PathBuf,
    /// Directory of the experiment that contains this directory; `None` if there is none.
    pub experiment: Option<PathBuf>,
    pub is_experiment: bool,
    /// Sizes and modification times of files in the bundle. If they change, the index reads the
    /// bundle again.
    pub stamp: String,
}

/// Returns all bundles and experiments in the root directories and their subdirectories. If a name
/// occurs twice, only the first directory is returned.
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
            // Symbolic links to directories are not followed.
            Ok(kind) if kind.is_dir() => directories.push(entry.file_name()),
            _ => drop(files.insert(entry.file_name())),
        }
    }
    // Names are sorted instead of paths, because comparisons of paths are slower.
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

/// Adds a directory to `scanned` if it is a bundle or an experiment. `siblings` are the files next
/// to it. Returns true for an experiment, false for a bundle, and `None` for other directories.
fn scan_directory(
    path: &Path,
    experiment: Option<&Path>,
    siblings: &HashSet<OsString>,
    scanned: &mut Vec<ScannedDirectory>,
) -> Option<bool> {
    let file = |name: &str| fs::metadata(path.join(name)).ok().filter(fs::Metadata::is_file);
    let (fleet, run) = (file(FLEET), file("run.json"));
    let is_experiment = fleet.is_none() && run.is_none() && file(EXPERIMENT).is_some();
    let (first, second) = match fleet.or(run) {
        Some(first) => (first, fs::metadata(path.join("verdict.json")).ok()),
        // If a bundle lacks a file, it counts as damaged, not as removed.
        None => (file(EXPERIMENT).or_else(|| file(seal::FILE))?, None),
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

/// Returns the size and modification time of a file.
fn file_stamp(metadata: &fs::Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{}:{}", metadata.len(), changed.map_or(0, |since| since.as_nanos()))
}

/// Margin for the resolution of modification times. Two changes within this time can result in the
/// same modification time. A directory that was changed so shortly before the scan, or during it,
/// therefore counts as changed.
const TIMESTAMP_TICK: Duration = Duration::from_millis(100);

/// Sizes and modification times of the ledger and of the directories that contain bundles and
/// labels.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    experiments: Vec<PathBuf>,
    /// Size and modification time of each path.
    stamps: Vec<(PathBuf, Option<(u64, SystemTime)>)>,
    is_settled: bool,
}

impl Fingerprint {
    /// Records the current state. `started` is the time at which the scan started.
    pub fn take(roots: &Roots, experiments: Vec<PathBuf>, started: SystemTime) -> Self {
        let stamps = stamps(roots, &experiments);
        let settled = |(_, stamp): &(PathBuf, Option<(u64, SystemTime)>)| {
            stamp.is_none_or(|(_, changed)| changed + TIMESTAMP_TICK < started)
        };
        Self { is_settled: stamps.iter().all(settled), experiments, stamps }
    }

    /// Returns true if the state is still the recorded state.
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
