//! `data.json`: the description of a data set on disk. `plimsoll verify` reads the expected
//! contents from it. With this file, a later run recognises data that Plimsoll created. Each
//! directory of the data set contains an identical copy.

use std::path::{Path, PathBuf};

use plimsoll_workload::content::is_unit;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::open_target::{HeldTarget, openat};
use crate::work_dir::contents::Contents;
use crate::work_dir::{self, DataManifest};

/// Name of the manifest file in each directory of a data set.
pub const FILE: &str = "data.json";
/// Version number of the manifest's format.
pub const VERSION: u32 = 1;

/// State in which a run left a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataState {
    /// The data is being created.
    Creating,
    /// A run opened the data and has not closed it.
    InUse,
    /// The run closed the data. The generation files now contain the expected generation of each
    /// unit.
    Clean,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFile {
    /// Absolute path.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Compression ratio of the content. A value of N means "N to 1".
    pub compressibility: f64,
    /// Fraction of the 4 KiB blocks whose content is a copy of another block.
    pub duplicate_share: f64,
    /// True if each unit contains a stamp.
    pub stamps: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version number of the manifest's format.
    pub data_version: u32,
    /// Number of the data set. This number is part of all content and of every stamp.
    pub data_id: u64,
    /// Name of the plan that created the data.
    pub plan: String,
    /// Size of a unit in bytes. Each unit can contain a stamp.
    pub unit_bytes: u32,
    /// Absolute paths of the directories that Plimsoll created for the data.
    pub directories: Vec<PathBuf>,
    pub files: Vec<DataFile>,
    /// Directory that contains the generation files.
    pub generations: PathBuf,
    /// State in which the last run left the data.
    pub state: DataState,
}

impl DataManifest for Manifest {
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
            return Err(format!("its unit size of {} bytes is not valid", self.unit_bytes));
        }
        if self.directories.is_empty() || self.directories.iter().any(|path| !path.is_absolute()) {
            return Err("it lists no directory, or a path that is not absolute".to_owned());
        }
        let mut all_bytes = 0u64;
        for file in &self.files {
            let whole = file.size_bytes.is_multiple_of(self.unit_bytes.into());
            let sum = all_bytes.checked_add(file.size_bytes).filter(|sum| *sum < 1 << 62);
            match sum {
                Some(sum) if whole => all_bytes = sum,
                _ => {
                    let (path, size_bytes) = (file.path.display(), file.size_bytes);
                    return Err(format!(
                        "the file {path} has an invalid size of {size_bytes} bytes"
                    ));
                }
            }
            if self.place_of(&file.path).is_none() {
                let says = "is in none of its directories";
                return Err(format!("{} {says}", file.path.display()));
            }
        }
        Ok(())
    }
}

impl Manifest {
    /// Returns the number of the directory that contains a file, and the file's path relative to
    /// this directory. Returns `None` if none of the directories contains the file.
    pub(crate) fn place_of(&self, path: &Path) -> Option<(usize, PathBuf)> {
        let mut directories = self.directories.iter().enumerate();
        let (number, below) = directories
            .find_map(|(at, directory)| Some((at, path.strip_prefix(directory).ok()?)))?;
        openat::is_plain(below).then(|| (number, below.to_path_buf()))
    }

    /// Reads the manifest in `directory`. Returns `None` if the directory contains no manifest.
    ///
    /// # Errors
    /// Fails if the manifest cannot be read or is not valid.
    pub fn read(directory: &Path) -> Result<Option<Self>, EngineError> {
        work_dir::read_manifest(directory)
    }

    /// Writes the manifest to each of the open directories.
    ///
    /// # Errors
    /// Fails if a directory cannot be written.
    pub(crate) fn write(&self, held: &HeldTarget) -> Result<(), EngineError> {
        work_dir::write_manifest(self, held)
    }
}
