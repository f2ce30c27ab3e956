//! `data.json`: what a data set on disk is, so that `plimsoll verify` knows what it should hold and a
//! later run knows that it is ours. Each of its directories holds the same copy.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use serde::{Deserialize, Serialize};

use crate::EngineError;

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

impl Manifest {
    /// Reads the manifest in `directory`; `None` where there is none.
    ///
    /// # Errors
    /// A manifest that can't be read, or is none of ours.
    pub fn read(directory: &Path) -> Result<Option<Self>, EngineError> {
        let path = directory.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let error = SysError::from_io("read", &error).at(&path);
                return Err(EngineError::system("reading a data set's manifest", error));
            }
        };
        let manifest: Self = serde_json::from_str(&text).map_err(|error| {
            EngineError::Config(format!("{} is not a data set's manifest: {error}", path.display()))
        })?;
        if manifest.data_version > VERSION {
            return Err(EngineError::Config(format!(
                "{} has version {}, and this Plimsoll reads up to {VERSION}",
                path.display(),
                manifest.data_version
            )));
        }
        Ok(Some(manifest))
    }

    /// Writes the manifest to each of the directories.
    ///
    /// # Errors
    /// A directory that can't be written.
    pub fn write(&self) -> Result<(), EngineError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| EngineError::Config(format!("a data set's manifest: {error}")))?;
        for directory in &self.directories {
            let (path, temporary) = (directory.join(FILE), directory.join(".data.json.new"));
            let write = || {
                let mut file = fs::File::create(&temporary)?;
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                fs::rename(&temporary, &path)
            };
            write().map_err(|error| {
                let error = SysError::from_io("write", &error).at(&path);
                EngineError::system("writing a data set's manifest", error)
            })?;
        }
        Ok(())
    }
}
