//! `store.json`: what a mail store on disk is, so that `plimsoll verify` and a later run know it. Each
//! of the store's directories holds the same copy.

use std::fs;
use std::path::Path;

use plimsoll_plan::Mailbox;
use plimsoll_workload::mailbox::LogPosition;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::open_target::HeldTarget;
use crate::work_dir::contents::Contents;
use crate::work_dir::{self, Manifested};
use plimsoll_sys::SysError;

/// Name of the file in each directory of a store.
pub const FILE: &str = "store.json";
/// Version of the manifest's form.
pub const VERSION: u32 = 1;

/// In which state a store was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreState {
    /// Its databases are being made; there is nothing to recover.
    Creating,
    /// It was opened and not closed: the log has to be replayed.
    InUse,
    /// It was closed: every change is in the databases.
    Clean,
}

/// Where one database stands when the store is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Id of the database.
    pub id: u32,
    /// Pages that hold, or held, records.
    pub pages_used: u32,
    /// The next log block is written here.
    pub next_lsn: u64,
    /// Every change before this is durable in the database file.
    pub checkpoint_lsn: u64,
    /// Grows with every recovery.
    pub epoch: u32,
}

impl Position {
    /// As the store has it.
    pub fn new(id: u32, pages_used: u32, log: LogPosition) -> Self {
        let LogPosition { next_lsn, checkpoint, epoch } = log;
        Self { id, pages_used, next_lsn, checkpoint_lsn: checkpoint, epoch }
    }

    /// As the store wants it.
    pub fn log(self) -> LogPosition {
        let Self { next_lsn, checkpoint_lsn: checkpoint, epoch, .. } = self;
        LogPosition { next_lsn, checkpoint, epoch }
    }
}

/// The manifest of a mail store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub store_version: u32,
    /// Identity of the store: in every page and log block of it.
    pub store_id: u64,
    /// Name of the plan that made it.
    pub plan: String,
    /// Seed of its content.
    pub seed: u64,
    /// Its size and all its settings.
    pub mailbox: Mailbox,
    /// Directories of databases and logs, as the store counts them: absolute.
    pub directories: Vec<String>,
    /// How many of them are for databases; the rest are for logs.
    pub database_directories: u32,
    /// Directory of its generation maps.
    #[serde(rename = "marks")]
    pub generation_maps: String,
    /// How it was left.
    pub state: StoreState,
    /// The boot during which it was last opened; the maps do not survive a loss of power.
    pub boot_id: String,
    /// Where each database stands; meaningful unless in use.
    pub positions: Vec<Position>,
}

impl Manifested for Manifest {
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
                "{} of {all} directories for databases",
                self.database_directories
            ));
        }
        if self.directories.iter().any(|directory| !Path::new(directory).is_absolute()) {
            return Err("a directory is not absolute".to_owned());
        }
        if databases > DATABASES_MAX || u64::from(databases) * u64::from(log_files) > LOG_FILES_MAX
        {
            return Err(format!("{databases} databases with {log_files} log files each"));
        }
        Ok(())
    }
}

/// More of each than any plan may ask for.
const DIRECTORIES_MAX: u32 = 4096;
const DATABASES_MAX: u32 = 4096;
const LOG_FILES_MAX: u64 = 1 << 22;

impl Manifest {
    /// Reads the manifest in `directory`; `None` where there is none.
    ///
    /// # Errors
    /// A manifest that cannot be read, or is none of ours.
    pub fn read(directory: &Path) -> Result<Option<Self>, EngineError> {
        work_dir::read_manifest(directory)
    }

    /// Writes the manifest to each of the store's directories, which are open.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub(crate) fn write(&self, held: &HeldTarget) -> Result<(), EngineError> {
        work_dir::write_manifest(self, held.directories())
    }

    /// Whether the store was last opened during this boot of the host: then its maps are as new as its data.
    pub fn is_of_this_boot(&self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == boot_id()
    }
}

/// Identity of this boot of the host; empty where the kernel does not tell.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// A failed file operation as an engine error.
pub(super) fn io(doing: &str, path: &Path, error: &std::io::Error) -> EngineError {
    EngineError::system(doing, SysError::from_io("write", error).at(path))
}
