//! Journal of the coordinator's events. Each step is recorded before it is executed. A resumed run
//! therefore repeats no command, and undoes all events that were not undone yet.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::events::EventRecord;
use serde::{Deserialize, Serialize};

use crate::card::boot_id;

/// Events of a measured phase whose commands or undos were started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EventJournal {
    /// Boot id of the host. The times in the journal are on the monotonic clock of this boot.
    boot_id: String,
    /// Start of the measured phase.
    pub(super) start_ns: u64,
    /// Latest record of each event.
    pub(super) records: Vec<EventRecord>,
}

impl EventJournal {
    pub(super) fn new(start_ns: u64) -> Self {
        Self { boot_id: boot_id(), start_ns, records: Vec::new() }
    }

    /// Reads the journal of a process that was killed; `None` if the process had not started any
    /// events.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Returns true if the times of the journal are on the current monotonic clock.
    pub(super) fn is_of_this_boot(&self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == boot_id()
    }

    /// Writes the journal atomically.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let half = path.with_extension("half");
        fs::write(&half, serde_json::to_vec(self)?)?;
        fs::rename(&half, path)
    }

    /// Returns a function that adds a record to the journal and writes the journal.
    pub(super) fn writer(mut self, path: PathBuf) -> plimsoll_runner::events::StepWriter {
        Box::new(move |record: &EventRecord| {
            self.records.retain(|known| known.name != record.name);
            self.records.push(record.clone());
            self.write(&path)
        })
    }
}
