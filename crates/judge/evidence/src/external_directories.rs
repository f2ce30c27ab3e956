//! Lists the directories that contain bundles but are outside the catalogue (`--out`). The list is
//! a text file with one JSON string on each line. It contains only the paths, not the bundles.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::EvidenceError;

/// Adds a directory to the list, unless the list already contains it. A path that is not UTF-8 is
/// not added; the bundles in it can still be specified by their paths.
///
/// # Errors
/// The file cannot be written.
pub fn add(file: &Path, directory: &Path) -> Result<(), EvidenceError> {
    let io = |error| EvidenceError::io("write", file, error);
    let whole = directory.canonicalize().map_err(|e| EvidenceError::io("find", directory, e))?;
    let Some(text) = whole.to_str().filter(|_| !list(file).contains(&whole)) else {
        return Ok(());
    };
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(io)?;
    }
    let line = format!("{}\n", serde_json::Value::from(text));
    let mut open = OpenOptions::new().append(true).create(true).open(file).map_err(io)?;
    // Writes the line with a single call, so that lines of concurrent processes are not mixed.
    open.write_all(line.as_bytes()).map_err(io)
}

/// Returns the directories in the list. Skips lines that it cannot read.
pub fn list(file: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let path = |line: &str| serde_json::from_str::<PathBuf>(line).ok();
    text.lines().filter_map(path).filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_is_listed_once_under_any_name() {
        let root = tempfile::tempdir().unwrap();
        let (file, odd) = (root.path().join("state/noted"), root.path().join("a\n\"b"));
        fs::create_dir(&odd).unwrap();
        for _ in 0..2 {
            add(&file, &odd).unwrap();
        }
        fs::write(&file, format!("{}not a line\n", fs::read_to_string(&file).unwrap())).unwrap();
        assert_eq!(list(&file), BTreeSet::from([odd.canonicalize().unwrap()]));
        assert!(add(&file, &root.path().join("nowhere")).is_err());
    }
}
