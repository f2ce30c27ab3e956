//! Data that the runs of an experiment share.

use std::cell::RefCell;
use std::path::PathBuf;

use plimsoll_engine::EngineError;
use plimsoll_engine::mailbox::StoreDirectories;
use plimsoll_engine::matrix::DataSet;

use crate::error::{RunnerError, engine_error};

/// Slot that keeps an experiment's data between two runs.
#[derive(Default)]
pub struct DataSlot {
    reuses_data: bool,
    contents: RefCell<Option<SlotData>>,
    /// Devices to which an earlier run of the experiment wrote. The run had permission, or the
    /// device was blank.
    written_devices: RefCell<Vec<PathBuf>>,
}

/// Locked data for the next run.
pub struct SlotData {
    pub data: Data,
    /// Id of the run that wrote the data.
    pub run_id: String,
}

/// Data set that a run created.
pub enum Data {
    Mail(StoreDirectories),
    /// Files or device of a matrix workload.
    Matrix(DataSet),
}

impl Data {
    /// Returns the directories as one string for messages.
    pub fn places(&self) -> String {
        let mut places = self.directories();
        places.sort();
        places.dedup();
        places.join(", ")
    }

    /// Returns the directories that Plimsoll created.
    pub fn directories(&self) -> Vec<String> {
        match self {
            Self::Mail(store_directories) => store_directories.manifest.directories.clone(),
            Self::Matrix(data_set) => match &data_set.remote {
                Some(remote) => remote.directories(),
                None => {
                    let directories = data_set.manifest.directories.iter();
                    directories.map(|path| path.display().to_string()).collect()
                }
            },
        }
    }

    /// Returns the text about a device whose data cannot be removed. It is part of the message
    /// about kept data.
    pub fn kept_device(&self) -> Option<String> {
        let Self::Matrix(data_set) = self else { return None };
        let device = data_set.written_device()?.display();
        Some(format!("{device}: the next run that writes to this device needs --destroy {device}"))
    }

    /// Removes the data.
    ///
    /// # Errors
    /// The data cannot be removed.
    pub fn remove(self) -> Result<(), EngineError> {
        match self {
            Self::Mail(store_directories) => store_directories.remove(),
            Self::Matrix(data_set) => data_set.remove(),
        }
    }
}

impl std::fmt::Debug for DataSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataSlot").field("reuses_data", &self.reuses_data).finish_non_exhaustive()
    }
}

impl DataSlot {
    /// Creates a slot for runs that do not share data, because each run creates its own.
    pub fn fresh() -> Self {
        Self::default()
    }

    /// Creates a slot for runs that reuse data, provided that the previous run left the data in a
    /// clean state.
    pub fn reused() -> Self {
        Self { reuses_data: true, ..Self::default() }
    }

    /// Returns true if runs reuse data.
    pub fn reuses_data(&self) -> bool {
        self.reuses_data
    }

    /// Returns the devices that may be overwritten: the devices that the user specified, and those
    /// that contain only data from earlier runs of the experiment.
    pub fn overwritable_devices(&self, destroy: &[PathBuf]) -> Vec<PathBuf> {
        destroy.iter().cloned().chain(self.written_devices.borrow().iter().cloned()).collect()
    }

    /// Records a device that a run was allowed to write to.
    pub fn record_device(&self, device: PathBuf) {
        self.written_devices.borrow_mut().push(device);
    }

    /// Removes the data from the slot and returns it.
    pub fn take(&self) -> Option<SlotData> {
        self.contents.borrow_mut().take()
    }

    /// Stores data in the slot for the next run.
    pub fn put(&self, data: SlotData) {
        *self.contents.borrow_mut() = Some(data);
    }

    /// Removes the data after the last run, or keeps it. Returns the directories and devices of kept
    /// data.
    ///
    /// # Errors
    /// The data cannot be removed.
    pub fn finish(&self, keep: bool) -> Result<Vec<String>, RunnerError> {
        let Some(held) = self.take() else { return Ok(Vec::new()) };
        if keep {
            return Ok(held.data.directories());
        }
        let kept = held.data.kept_device();
        held.data.remove().map_err(|error| engine_error(&error))?;
        Ok(kept.into_iter().collect())
    }
}
