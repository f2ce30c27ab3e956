//! `store.json`: the description of a mail store on disk. `plimsoll verify` reads it, and so do
//! later runs. Each directory of the store contains an identical copy.

use std::fs;
use std::path::Path;

use plimsoll_plan::Mailbox;
use plimsoll_workload::mailbox::LogPosition;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::open_target::HeldTarget;
use crate::work_dir::contents::Contents;
use crate::work_dir::{self, DataManifest};
use plimsoll_sys::SysError;

/// Name of the manifest file in each directory of a store.
pub const FILE: &str = "store.json";
/// Version number of the manifest's format.
pub const VERSION: u32 = 1;

/// State in which a run left a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreState {
    /// The databases are being created. A store in this state contains no data that can be
    /// recovered.
    Creating,
    /// A run opened the store and has not closed it. The log must be replayed.
    InUse,
    /// The store was closed. The database files contain every change.
    Clean,
}

/// Saved state of one database. It is valid while no run uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Id of the database.
    pub id: u32,
    /// Number of pages that contain records now or have contained records.
    pub pages_used: u32,
    /// Log position at which the next block will be written.
    pub next_lsn: u64,
    /// Log position up to which the database file durably contains every change.
    pub checkpoint_lsn: u64,
    /// Number that increases with every recovery of the database.
    pub epoch: u32,
}

impl Position {
    /// Creates the saved state from the store's own type.
    pub fn new(id: u32, pages_used: u32, log: LogPosition) -> Self {
        let LogPosition { next_lsn, checkpoint, epoch } = log;
        Self { id, pages_used, next_lsn, checkpoint_lsn: checkpoint, epoch }
    }

    /// Converts the saved state to the store's own type.
    pub fn log(self) -> LogPosition {
        let Self { next_lsn, checkpoint_lsn: checkpoint, epoch, .. } = self;
        LogPosition { next_lsn, checkpoint, epoch }
    }
}

/// Manifest of a mail store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version number of the manifest's format.
    pub store_version: u32,
    /// Identity of the store. Each of its pages and log blocks contains it.
    pub store_id: u64,
    /// Name of the plan that created the store.
    pub plan: String,
    /// Seed from which the content is generated.
    pub seed: u64,
    /// Size and settings of the store, as in the plan.
    pub mailbox: Mailbox,
    /// Absolute paths of the store's directories. The directories for databases come first, and
    /// then the directories for logs.
    pub directories: Vec<String>,
    /// Number of directories for databases. The remaining directories are for logs.
    pub database_directories: u32,
    /// Directory that contains the generation maps.
    #[serde(rename = "marks")]
    pub generation_maps: String,
    /// State in which the last run left the store.
    pub state: StoreState,
    /// Identity of the boot during which the store was last opened. The maps can be stale after a
    /// power loss.
    pub boot_id: String,
    /// State of each database. It is valid while no run uses the store.
    pub positions: Vec<Position>,
}

impl DataManifest for Manifest {
    const FILE: &'static str = FILE;
    const WHAT: &'static str = "mail store";
    const VERSION: u32 = VERSION;

    fn version(&self) -> u32 {
        self.store_version
    }

    fn id(&self) -> u64 {
        self.store_id
    }

    fn plan(&self) -> &str {
        &self.plan
    }

    fn contents(&self) -> Contents {
        let Mailbox { databases, log_files, .. } = self.mailbox;
        Contents::Mail { databases, log_files }
    }

    fn check(&self) -> Result<(), String> {
        let Mailbox { databases, log_files, .. } = self.mailbox;
        let all = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
        let dealt = (1..=all).contains(&self.database_directories);
        if !dealt || all > DIRECTORIES_MAX {
            return Err(format!(
                "{} of its {all} directories are for databases, which is not possible",
                self.database_directories
            ));
        }
        if self.directories.iter().any(|directory| !Path::new(directory).is_absolute()) {
            return Err("the path of a directory is not absolute".to_owned());
        }
        if databases > DATABASES_MAX || u64::from(databases) * u64::from(log_files) > LOG_FILES_MAX
        {
            return Err(format!(
                "{databases} databases with {log_files} log files each are more than a store can \
                 have"
            ));
        }
        Ok(())
    }
}

/// The limits that a manifest must satisfy are higher than the limits for plans.
const DIRECTORIES_MAX: u32 = 4096;
const DATABASES_MAX: u32 = 4096;
const LOG_FILES_MAX: u64 = 1 << 22;

impl Manifest {
    /// Reads the manifest in `directory`. Returns `None` if the directory contains no manifest.
    ///
    /// # Errors
    /// Fails if the manifest cannot be read or is not valid.
    pub fn read(directory: &Path) -> Result<Option<Self>, EngineError> {
        work_dir::read_manifest(directory)
    }

    /// Writes the manifest to each of the store's open directories.
    ///
    /// # Errors
    /// Fails if a directory cannot be written.
    pub(crate) fn write(&self, held: &HeldTarget) -> Result<(), EngineError> {
        work_dir::write_manifest(self, held)
    }

    /// Returns true if the store was last opened during the current boot. The maps then agree with
    /// the data.
    pub fn is_of_this_boot(&self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == boot_id()
    }
}

/// Returns the identity of the current boot. Returns an empty string if the kernel provides no
/// identity.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Converts the error of a failed file operation to an engine error.
pub(super) fn io(doing: &str, path: &Path, error: &std::io::Error) -> EngineError {
    EngineError::system(doing, SysError::from_io("write", error).at(path))
}
