//! `data.json`: what a data set on disk is, so that `plimsoll verify` knows what it should hold and a
//! later run knows that it is ours. Each of its directories holds the same copy.

use std::path::{Path, PathBuf};

use plimsoll_workload::content::is_unit;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::open_target::{HeldTarget, beneath};
use crate::work_dir::contents::Contents;
use crate::work_dir::{self, Manifested};

/// Name of the file in each directory of a data set.
pub const FILE: &str = "data.json";
/// Version of the manifest's form.
pub const VERSION: u32 = 1;

/// In which state a data set was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataState {
    /// It is being made.
    Creating,
    /// It was opened for a run that did not come to its end.
    InUse,
    /// What each unit should hold is in the generation files.
    Clean,
}

/// One file of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFile {
    /// Where it is: absolute.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
    /// How many to one its content compresses.
    pub compressibility: f64,
    /// Share of its 4 KiB blocks that are copies of others.
    pub duplicate_share: f64,
    /// Whether its units carry stamps.
    pub stamps: bool,
}

/// The manifest of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub data_version: u32,
    /// Its number: part of all content, in every stamp.
    pub data_id: u64,
    /// Name of the plan that made it.
    pub plan: String,
    /// Bytes of a unit: each carries a stamp.
    pub unit_bytes: u32,
    /// The directories that Plimsoll made for it: absolute.
    pub directories: Vec<PathBuf>,
    /// Its files, by number.
    pub files: Vec<DataFile>,
    /// Directory of the generation files.
    pub generations: PathBuf,
    /// How it was left.
    pub state: DataState,
}

impl Manifested for Manifest {
    const FILE: &'static str = FILE;
    const WHAT: &'static str = "data set";
    const VERSION: u32 = VERSION;

    fn version(&self) -> u32 {
        self.data_version
    }

    fn id(&self) -> u64 {
        self.data_id
    }

    fn plan(&self) -> &str {
        &self.plan
    }

    fn contents(&self) -> Contents {
        let below = |file: &DataFile| self.place_of(&file.path).map(|(_, below)| below);
        Contents::Data { files: self.files.iter().filter_map(below).collect() }
    }

    fn check(&self) -> Result<(), String> {
        if !is_unit(self.unit_bytes) {
            return Err(format!("units of {} bytes", self.unit_bytes));
        }
        if self.directories.is_empty() || self.directories.iter().any(|path| !path.is_absolute()) {
            return Err("a directory is missing or not absolute".to_owned());
        }
        let mut all_bytes = 0u64;
        for file in &self.files {
            let whole = file.size_bytes.is_multiple_of(self.unit_bytes.into());
            let sum = all_bytes.checked_add(file.size_bytes).filter(|sum| *sum < 1 << 62);
            match sum {
                Some(sum) if whole => all_bytes = sum,
                _ => return Err(format!("{} of {} bytes", file.path.display(), file.size_bytes)),
            }
            if self.place_of(&file.path).is_none() {
                let says = "lies in none of its directories";
                return Err(format!("{} {says}", file.path.display()));
            }
        }
        Ok(())
    }
}

impl Manifest {
    /// The directory, by number, and the name below it of a file of the data set; `None` where it lies in
    /// none of them.
    pub(crate) fn place_of(&self, path: &Path) -> Option<(usize, PathBuf)> {
        let mut directories = self.directories.iter().enumerate();
        let (number, below) = directories
            .find_map(|(at, directory)| Some((at, path.strip_prefix(directory).ok()?)))?;
        beneath::is_plain(below).then(|| (number, below.to_path_buf()))
    }

    /// Reads the manifest in `directory`; `None` where there is none.
    ///
    /// # Errors
    /// A manifest that can't be read, or is none of ours.
    pub fn read(directory: &Path) -> Result<Option<Self>, EngineError> {
        work_dir::read_manifest(directory)
    }

    /// Writes the manifest to each of the directories, which are open.
    ///
    /// # Errors
    /// A directory that can't be written.
    pub(crate) fn write(&self, held: &HeldTarget) -> Result<(), EngineError> {
        work_dir::write_manifest(self, held.directories())
    }
}
