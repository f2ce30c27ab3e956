//! Implements `plimsoll verify` for a mail store. The check reads every page and every log block.
//! It reports each change that is missing although its commit was durable. It writes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{Damage, PhaseKind};
use plimsoll_record::progress::Watcher;
use plimsoll_sys::clock;
use plimsoll_workload::mailbox::{
    Failure, Finding, MailboxConfig, Phase, PhaseIo, Store, Verify, spread,
};
use plimsoll_workload::step::{FileSpec, StepWorkload};

use super::locator::Locator;
use super::manifest::{FILE, StoreState};
use super::run::LatestSnapshots;
use super::settings;
use super::store_directories::StoreDirectories;
use super::witness::{WitnessedCommits, read_commits};
use crate::backend::{Direct, Prefer};
use crate::matrix::memory::memory_bytes;
use crate::step::{Control, Event, PartResult, Stage, WorkloadProgress, run_stage};
use crate::work_dir::find_manifest::{FileState, file_state, has_manifest};
use crate::{EngineError, issue};

#[derive(Clone, Debug)]
pub struct StoreCheck {
    /// State in which the last run left the store.
    pub state: StoreState,
    /// Number of pages that were read and checked.
    pub pages_checked: u64,
    /// Number of pages that were compared with the log.
    pub pages_by_log: u64,
    /// Number of pages that are not in the log. These pages were compared with the generation map.
    pub pages_by_map: u64,
    /// Number of pages that are intact and in the correct position, but neither in the log nor in
    /// the map. The last acknowledged write of such a page may be missing.
    pub pages_unknown: u64,
    /// Number of databases whose generation map is missing, or may be older than the data. The
    /// check does not use such a map.
    pub maps_untrusted: u64,
    /// Number of log blocks that were acknowledged, and that were read and checked.
    pub log_blocks_checked: u64,
    /// Number of changes after the checkpoint. Recovery would replay these changes.
    pub log_changes: u64,
    /// Number of damaged pages whose damage is of a kind that a crash can cause and that the log
    /// can repair.
    pub pages_recoverable: u64,
    /// Number of commits that the witness recorded as acknowledged; `None` if no witness was given.
    pub commits_expected: Option<u64>,
    /// Number of commits in the witness's file that belong to other mail stores. The check skips
    /// these commits.
    pub commits_of_others: u64,
    /// List of damaged parts: missing files, short files, and up to a thousand findings of each
    /// state machine.
    pub damage: Vec<Damage>,
    /// Total number of damaged parts. It includes parts that are not in the list.
    pub damage_count: u64,
    /// Descriptions of mismatches with a map that is not trusted. These mismatches do not count as
    /// damage.
    pub unconfirmed: Vec<String>,
    /// True if the check read the whole store.
    pub complete: bool,
    /// The I/O error that ended the check; `None` if there was no error.
    pub io_error: Option<String>,
}

/// Returns true if `path`, or a directory directly in it, contains the manifest of a mail store.
/// The manifest need not be readable.
#[must_use]
pub fn is_mail_store(path: &Path) -> bool {
    has_manifest(path, FILE)
}

/// Checks the store at `path` and creates nothing. If a `witness` is given, the store must contain
/// every commit of this store that the witness recorded as acknowledged.
///
/// # Errors
/// Fails if `path` contains no store or only an incomplete copy of a store, or if a file cannot be
/// opened. Also fails if the store is in use or its creation was never completed. Missing or short
/// files are not errors: they are reported as damage.
pub fn check_store(
    path: &Path,
    witness: Option<&Path>,
    interrupt: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<StoreCheck, EngineError> {
    let (store_directories, in_place) = StoreDirectories::open(path)?;
    if store_directories.manifest.state == StoreState::Creating {
        return Err(EngineError::Config(format!(
            "the mail store at {} is incomplete: the run that created it ended before the store was \
             complete",
            path.display()
        )));
    }
    let config = settings::config_of(&store_directories.manifest)?;
    fits_memory(&config, memory_bytes())?;
    let store = settings::open_store_read_only(&store_directories.manifest, in_place)?;
    let absent = AbsentFiles::find(&store, &store_directories)?;
    let store = store.with_short_files(absent.present_bytes());
    let cpus = plimsoll_sys::cpu::allowed().map_or(1, |cpus| cpus.len() as u32);
    let witnessed = match witness {
        Some(path) => read_commits(path, store_directories.manifest.store_id)?,
        None => WitnessedCommits::default(),
    };
    // With a witness, one state machine checks the commits of all databases. Without a witness,
    // there is at most one state machine for each CPU, and each checks some of the databases.
    let parts = spread(store.config(), if witness.is_some() { 1 } else { cpus });
    let machines: Vec<Verify> = store
        .split(&parts)
        .into_iter()
        .map(|part| {
            let verify = Verify::new(part, witnessed.expected.clone(), PhaseIo::default());
            if store_directories.manifest.state == StoreState::Clean {
                verify.of_closed()
            } else {
                verify
            }
        })
        .collect();
    let ended = read_all(machines, &store_directories, &absent, interrupt, watcher);
    let mut check = StoreCheck {
        state: store_directories.manifest.state,
        pages_checked: 0,
        pages_by_log: 0,
        pages_by_map: 0,
        pages_unknown: 0,
        maps_untrusted: 0,
        log_blocks_checked: 0,
        log_changes: 0,
        pages_recoverable: 0,
        commits_expected: witness.map(|_| witnessed.count),
        commits_of_others: witnessed.foreign_count,
        damage: Vec::new(),
        damage_count: 0,
        unconfirmed: Vec::new(),
        complete: true,
        io_error: None,
    };
    let locator = Locator { directories: store_directories.directories(), config };
    check.damage.extend(absent.damage());
    check.damage_count += check.damage.len() as u64;
    for part in ended {
        part.outcome?;
        part.workload.iter().for_each(|machine| check.add(machine, &locator));
    }
    Ok(check)
}

/// Reads the whole store, with one thread for each state machine.
fn read_all(
    machines: Vec<Verify>,
    store_directories: &StoreDirectories,
    absent: &AbsentFiles,
    interrupt: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Vec<PartResult<Verify>> {
    let stage = Stage {
        directories: store_directories.directories(),
        held: store_directories.held.clone(),
        missing: absent.missing(),
        prefer: Prefer::Auto,
        direct: Direct::Auto,
        poll_completions: false,
        poll_submissions: false,
        spin_ns: 0,
        write: false,
        interval_ns: 500_000_000,
        histogram_interval_ns: u64::MAX,
        outage_max_ns: issue::OUTAGE_NS_MAX,
    };
    let started_ns = clock::monotonic_ns();
    let control = Arc::new(Control::new(0, started_ns));
    let classes: Vec<_> = machines.iter().map(|machine| machine.classes().to_vec()).collect();
    let mut latest = LatestSnapshots::new(&classes, |_| true);
    watcher.begin(PhaseKind::Verify);
    let progress_of = |machine: &Verify| {
        let progress = machine.progress();
        WorkloadProgress {
            done_bytes: progress.done_bytes,
            total_bytes: progress.total_bytes,
            ready: false,
        }
    };
    run_stage(machines, &stage, &control, progress_of, |event| match event {
        Event::Snapshot(snapshot) => latest.take(*snapshot),
        Event::Tick => {
            if interrupt.load(Ordering::Relaxed) {
                control.stop();
            }
            let elapsed_ns = clock::monotonic_ns().saturating_sub(started_ns);
            watcher.progress(PhaseKind::Verify, &latest.progress(elapsed_ns, 0));
        }
    })
}

impl StoreCheck {
    fn add(&mut self, machine: &Verify, locator: &Locator) {
        let report = machine.report();
        self.pages_checked += report.pages_checked;
        self.pages_by_log += report.pages_by_log;
        self.pages_by_map += report.pages_by_map;
        self.pages_unknown += report.pages_unknown;
        self.maps_untrusted += report.maps_untrusted;
        self.log_blocks_checked += report.log_blocks_checked;
        self.log_changes += report.log_changes;
        self.pages_recoverable += report.pages_rebuilt.iter().sum::<u64>();
        // Short files are already in the list of `AbsentFiles`.
        let (absent, other): (Vec<&Finding>, Vec<&Finding>) = machine
            .findings()
            .iter()
            .partition(|finding| matches!(finding.trouble, Failure::FileEnds { .. }));
        self.damage_count += report.findings.saturating_sub(absent.len() as u64);
        self.damage.extend(other.into_iter().map(|finding| locator.damage(finding)));
        self.unconfirmed
            .extend(machine.unconfirmed().iter().map(|finding| locator.describe(finding)));
        if let Some(poison) = machine.poison() {
            if poison.is_corruption() {
                self.damage_count += 1;
                self.damage.push(locator.damage(poison));
            } else {
                self.io_error.get_or_insert_with(|| locator.describe(poison));
            }
        }
        self.complete &= machine.is_complete();
    }
}

/// Files of a store that are missing, or that are shorter than expected.
struct AbsentFiles(Vec<(PathBuf, FileSpec, FileState)>);

impl AbsentFiles {
    /// Compares each file on disk with its expected size.
    fn find(store: &Store, store_directories: &StoreDirectories) -> Result<Self, EngineError> {
        let (open, directories) =
            (store_directories.held.directories(), store_directories.directories());
        let mut absent = Vec::new();
        for spec in store.files() {
            let number = spec.directory as usize;
            let (Some(own), Some(directory)) = (open.get(number), directories.get(number)) else {
                let says = format!("{} is in a directory that the plan does not list", spec.name);
                return Err(EngineError::Config(says));
            };
            let state = file_state(own, directory, Path::new(&spec.name), spec.size_bytes)?;
            if state != FileState::Whole {
                absent.push((directory.join(&spec.name), spec.clone(), state));
            }
        }
        Ok(Self(absent))
    }

    fn present_bytes(&self) -> BTreeMap<String, u64> {
        let held = |state| if let FileState::Short(held_bytes) = state { held_bytes } else { 0 };
        self.0.iter().map(|(_, spec, state)| (spec.name.clone(), held(*state))).collect()
    }

    fn missing(&self) -> Vec<PathBuf> {
        let missing = self.0.iter().filter(|(_, _, state)| *state == FileState::Missing);
        missing.map(|(path, ..)| path.clone()).collect()
    }

    fn damage(&self) -> impl Iterator<Item = Damage> {
        self.0.iter().map(|(path, spec, state)| {
            // `db03.edb`, `db03-log/0001.log`
            let digits = spec.name.trim_start_matches("db");
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let id = digits[..end].parse().unwrap_or(0u32);
            let (kind, says) = match state {
                FileState::Short(held) => {
                    let of = spec.size_bytes;
                    ("truncated", format!("the file is truncated: {held} of {of} bytes exist"))
                }
                _ => ("missing", "missing".to_owned()),
            };
            Damage {
                target: format!("db{id}"),
                page: 0,
                kind: kind.to_owned(),
                says: format!("database {id}: {says} ({})", path.display()),
            }
        })
    }
}

/// Rejects a store if its check would need more than half of the host's memory. The check needs
/// four bytes for each page and [`BLOCK_MEMORY_BYTES`] for each log block.
fn fits_memory(config: &MailboxConfig, memory_bytes: Option<u64>) -> Result<(), EngineError> {
    let pages: u64 = config.databases.iter().map(|d| u64::from(d.pages_max)).sum();
    let ring_bytes = u64::from(config.log_files) * u64::from(config.log_file_bytes);
    let blocks = (ring_bytes / 4096).saturating_mul(config.databases.len() as u64);
    let needed_bytes = (4 * pages).saturating_add(blocks.saturating_mul(BLOCK_MEMORY_BYTES));
    match memory_bytes {
        Some(memory_bytes) if needed_bytes > memory_bytes / 2 => Err(EngineError::Config(format!(
            "checking this store takes up to {needed_bytes} bytes of memory, but only \
             {memory_bytes} are available"
        ))),
        _ => Ok(()),
    }
}

/// Memory in bytes that the check needs for each log block, including the header of the block.
const BLOCK_MEMORY_BYTES: u64 = 64;
