//! The data that the runs of an experiment hand on to each other.

use std::cell::RefCell;
use std::path::PathBuf;

use plimsoll_engine::EngineError;
use plimsoll_engine::mailbox::Home;
use plimsoll_engine::matrix::DataHome;

use crate::error::{RunnerError, engine_error};

/// Between two runs: the data that the last one left for the next.
#[derive(Default)]
pub struct DataSlot {
    hands_on: bool,
    held: RefCell<Option<Held>>,
    /// Devices that an earlier run of the experiment found blank, or was given, and wrote to.
    written: RefCell<Vec<PathBuf>>,
}

/// Data that waits for the next run, locked.
pub struct Held {
    /// Where it lies.
    pub data: Data,
    /// The run that left it.
    pub run_id: String,
}

/// The data of a run.
pub enum Data {
    /// A mail store.
    Mail(Home),
    /// The files, or the device, of a matrix.
    Matrix(DataHome),
}

impl Data {
    /// Those directories as a message names them, each once.
    pub fn places(&self) -> String {
        let mut places = self.directories();
        places.sort();
        places.dedup();
        places.join(", ")
    }

    /// The directories that Plimsoll made for it.
    pub fn directories(&self) -> Vec<String> {
        match self {
            Self::Mail(home) => home.manifest.directories.clone(),
            Self::Matrix(home) => match &home.remote {
                Some(remote) => remote.directories(),
                None => {
                    let directories = home.manifest.directories.iter();
                    directories.map(|path| path.display().to_string()).collect()
                }
            },
        }
    }

    /// Removes it.
    ///
    /// # Errors
    /// What can't be removed.
    pub fn remove(self) -> Result<(), EngineError> {
        match self {
            Self::Mail(home) => home.remove(),
            Self::Matrix(home) => home.remove(),
        }
    }
}

impl std::fmt::Debug for DataSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataSlot").field("hands_on", &self.hands_on).finish_non_exhaustive()
    }
}

impl DataSlot {
    /// Each run makes its own data.
    pub fn fresh() -> Self {
        Self::default()
    }

    /// A run works on the data of the one before, if that left it clean.
    pub fn handed_on() -> Self {
        Self { hands_on: true, ..Self::default() }
    }

    /// Whether a run leaves its data for the next.
    pub fn hands_on(&self) -> bool {
        self.hands_on
    }

    /// The devices that may be overwritten: those that the operator gave up, and those that hold nothing
    /// but what earlier runs of the experiment wrote.
    pub fn given_up(&self, destroy: &[PathBuf]) -> Vec<PathBuf> {
        destroy.iter().cloned().chain(self.written.borrow().iter().cloned()).collect()
    }

    /// Notes a device that a run was allowed to write to.
    pub fn wrote(&self, device: PathBuf) {
        self.written.borrow_mut().push(device);
    }

    /// The data that waits.
    pub fn take(&self) -> Option<Held> {
        self.held.borrow_mut().take()
    }

    /// Leaves data for the next run.
    pub fn put(&self, held: Held) {
        *self.held.borrow_mut() = Some(held);
    }

    /// After the last run: removes what waits, or leaves it to the operator; returns where it lies
    /// then.
    ///
    /// # Errors
    /// Data that cannot be removed.
    pub fn finish(&self, keep: bool) -> Result<Vec<String>, RunnerError> {
        let Some(held) = self.take() else { return Ok(Vec::new()) };
        if keep {
            return Ok(held.data.directories());
        }
        held.data.remove().map_err(|error| engine_error(&error))?;
        Ok(Vec::new())
    }
}
