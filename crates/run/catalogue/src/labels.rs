//! Tags and notes that users add to a run. They are in the file `NAME.labels.json` next to the
//! bundle or experiment `NAME`. The seal does not include them, but an export does.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::CatalogueError;

/// Suffix of the name of a labels file.
pub(crate) const SUFFIX: &str = ".labels.json";

/// Tags and note of one run or experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    #[serde(default)]
    pub tags: BTreeSet<String>,
    #[serde(default)]
    pub note: String,
}

/// Returns the path of the file that stores the labels of a bundle or experiment. The file need not
/// exist.
pub fn labels_path(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().map_or_else(OsString::new, OsString::from);
    name.push(SUFFIX);
    directory.with_file_name(name)
}

impl Labels {
    /// Reads the labels of a bundle or experiment.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain labels.
    pub fn of(directory: &Path) -> Result<Self, CatalogueError> {
        let path = labels_path(directory);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| CatalogueError::io("read", &path, error.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(CatalogueError::io("read", &path, error)),
        }
    }

    /// Writes the labels atomically. Empty labels delete the file.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), CatalogueError> {
        let path = labels_path(directory);
        if *self == Self::default() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(CatalogueError::io("remove", &path, error))
                }
                _ => Ok(()),
            };
        }
        let io = |error| CatalogueError::io("write", &path, error);
        let text = serde_json::to_string_pretty(self).map_err(|error| io(error.into()))?;
        let new = path.with_extension("json.new");
        let mut file = fs::File::create(&new).map_err(io)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        fs::rename(&new, &path).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn labels_are_stored_beside_the_bundle_without_empty_files() {
        let root = tempfile::tempdir().unwrap();
        let bundle = root.path().join("20261123-1");
        fs::create_dir(&bundle).unwrap();
        let mut labels = Labels::of(&bundle).unwrap();
        labels.tags.insert("before".to_owned());
        labels.note = "the old controller".to_owned();
        labels.write(&bundle).unwrap();
        assert!(root.path().join("20261123-1.labels.json").is_file());
        assert_eq!(Labels::of(&bundle).unwrap(), labels);
        Labels::default().write(&bundle).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        fs::write(labels_path(&bundle), "{\"tag\": 1}").unwrap();
        assert!(Labels::of(&bundle).unwrap_err().to_string().contains("20261123-1.labels.json"));
    }
}
