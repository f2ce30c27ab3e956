//! `SHA256SUMS`: the seal of a bundle, in the format of `sha256sum -c`. The seal does not include
//! the derived files (`verdict.json`, `report.html`), because they can be recreated from the sealed
//! files.
//!
//! A seal lists all files in the directory except the derived files, sorted by name. No other form
//! of a seal is valid. A reader can therefore see from the directory which files the seal protects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::EvidenceError;
use crate::reserve;

/// Name of the seal in a bundle.
pub const FILE: &str = "SHA256SUMS";

/// Name of the file that contains the seal's signature.
pub const SIGNATURE: &str = "SHA256SUMS.minisig";

/// Files that the seal does not list: the derived files, the seal itself and its signature.
pub const DERIVED: [&str; 4] = ["verdict.json", "report.html", FILE, SIGNATURE];

/// Maximum size of a file that is read, in bytes. A file of a bundle has a few megabytes, but a
/// foreign file can have any size.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Returns the SHA-256 of the bytes, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
    Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Contents of the files in a directory whose seal is valid. They are the same bytes that were
/// checked against the seal.
#[derive(Clone, Debug)]
pub struct SealedFiles {
    directory: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    /// SHA-256 of the seal itself.
    pub sha256: String,
}

impl SealedFiles {
    /// Sorted names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// The file is not in the seal.
    pub fn bytes(&self, name: &str) -> Result<&[u8], EvidenceError> {
        self.files.get(name).map(Vec::as_slice).ok_or_else(|| EvidenceError::SealBroken {
            path: self.directory.clone(),
            what: format!("{name} is missing"),
        })
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// The file is not in the seal, or it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<&str, EvidenceError> {
        std::str::from_utf8(self.bytes(name)?).map_err(|error| EvidenceError::Malformed {
            path: self.directory.join(name),
            reason: error.to_string(),
        })
    }
}

/// Content of a directory that is to be sealed or checked.
struct DirectoryContent {
    files: BTreeMap<String, Vec<u8>>,
    /// Descriptions of directory entries that do not belong to a bundle.
    strange: Vec<String>,
}

fn read(directory: &Path) -> Result<DirectoryContent, EvidenceError> {
    let entries = fs::read_dir(directory).map_err(|e| EvidenceError::io("read", directory, e))?;
    let (mut files, mut strange) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|e| EvidenceError::io("read", directory, e))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| EvidenceError::io("read", &path, e))?;
        let Ok(name) = entry.file_name().into_string() else {
            strange.push(format!("{} was added", entry.file_name().to_string_lossy()));
            continue;
        };
        if is_unfinished(&name) && kind.is_file() {
            continue;
        }
        if !kind.is_file() {
            let what = if kind.is_symlink() { "a link" } else { "not a regular file" };
            strange.push(format!("{name} is {what}"));
            continue;
        }
        if DERIVED.contains(&name.as_str()) {
            continue;
        }
        files.insert(name, bytes_of(&path)?);
    }
    strange.sort();
    Ok(DirectoryContent { files, strange })
}

/// Returns true if a run that is killed can leave a file with this name. Such a file is an
/// incomplete derived file or the reserve.
fn is_unfinished(name: &str) -> bool {
    let half = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".new"));
    name == reserve::FILE || half.is_some_and(|of| DERIVED.contains(&of))
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, EvidenceError> {
    let io = |error| EvidenceError::io("read", path, error);
    let size_bytes = fs::metadata(path).map_err(io)?.len();
    if size_bytes > FILE_BYTES_MAX {
        let reason = format!("it has {size_bytes} bytes, but no file of a bundle is that large");
        return Err(EvidenceError::Malformed { path: path.to_path_buf(), reason });
    }
    fs::read(path).map_err(io)
}

fn text_of(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.iter().map(|(name, bytes)| format!("{}  {name}\n", sha256_hex(bytes))).collect()
}

/// Seals the bundle in `directory`, and returns the SHA-256 of the seal itself. Syncs first the
/// files, then the seal, then the directory. The ledger line with the hash of the seal is written
/// later. If this line exists, the files are therefore on disk too.
///
/// # Errors
/// A file cannot be read, or the seal cannot be written.
pub fn seal(directory: &Path) -> Result<String, EvidenceError> {
    let files = read(directory)?.files;
    let text = text_of(&files);
    let path = directory.join(FILE);
    files.keys().try_for_each(|name| sync(&directory.join(name)))?;
    fs::write(&path, &text).map_err(|e| EvidenceError::io("write", &path, e))?;
    sync(&path)?;
    sync(directory)?;
    directory.parent().filter(|above| *above != Path::new("")).map_or(Ok(()), sync)?;
    Ok(sha256_hex(text.as_bytes()))
}

/// Syncs a file, or the entries of a directory. If the file system cannot sync directories, does
/// nothing.
pub(crate) fn sync(path: &Path) -> Result<(), EvidenceError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    match synced {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput && path.is_dir() => Ok(()),
        other => other.map_err(|error| EvidenceError::io("sync", path, error)),
    }
}

/// Reads the sealed files of the bundle in `directory`, and checks these bytes against the seal.
///
/// # Errors
/// [`EvidenceError::SealBroken`] lists all files that differ, are missing or were added.
pub fn open(directory: &Path) -> Result<SealedFiles, EvidenceError> {
    let path = directory.join(FILE);
    let broken = |what: String| EvidenceError::SealBroken { path: directory.to_path_buf(), what };
    let seal = match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => bytes_of(&path)?,
        Ok(_) => return Err(broken(format!("{FILE} is not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(broken(format!("it has no seal ({FILE} is missing)")));
        }
        Err(error) => return Err(EvidenceError::io("read", &path, error)),
    };
    let found = read(directory)?;
    let expected = text_of(&found.files);
    if seal != expected.as_bytes() || !found.strange.is_empty() {
        return Err(broken(differences(&String::from_utf8_lossy(&seal), &expected, &found)));
    }
    let (files, sha256) = (found.files, sha256_hex(&seal));
    Ok(SealedFiles { directory: directory.to_path_buf(), files, sha256 })
}

/// Returns one description for each difference between the files and the seal.
fn differences(seal: &str, expected: &str, found: &DirectoryContent) -> String {
    fn sums(text: &str) -> BTreeMap<&str, &str> {
        text.lines().filter_map(|line| line.split_once("  ")).map(|(s, n)| (n, s)).collect()
    }
    let (sealed, now) = (sums(seal), sums(expected));
    let mut wrong = Vec::new();
    for (name, sum) in &sealed {
        match now.get(name) {
            None => wrong.push(format!("{name} is missing")),
            Some(is) if is != sum => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    let added = now.keys().filter(|name| !sealed.contains_key(*name));
    wrong.extend(added.map(|name| format!("{name} was added")));
    wrong.extend(found.strange.iter().cloned());
    if wrong.is_empty() {
        wrong.push(format!("{FILE} has the wrong format"));
    }
    wrong.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("run.json"), "{}").unwrap();
        fs::write(directory.path().join("series.csv"), "x").unwrap();
        seal(directory.path()).unwrap();
        directory
    }

    #[track_caller]
    fn says(directory: &tempfile::TempDir, sentence: &str) {
        let error = open(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with(sentence), "{error}");
    }

    #[test]
    fn reports_changed_missing_and_added_files() {
        let directory = sealed();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("verdict.json"), "derived").unwrap();
        fs::write(at(".report.html.new"), "half").unwrap();
        open(directory.path()).unwrap();
        fs::write(at("run.json"), "{ }").unwrap();
        fs::remove_file(at("series.csv")).unwrap();
        fs::write(at("plan.toml"), "").unwrap();
        says(&directory, "run.json was changed, series.csv is missing, plan.toml was added");
    }

    #[test]
    fn reports_entries_that_are_not_part_of_a_bundle() {
        let add: [(&str, fn(&Path), &str); 4] = [
            ("a", |at| fs::create_dir(at).unwrap(), "a is not a regular file"),
            (".b", |at| fs::write(at, "hidden").unwrap(), ".b was added"),
            ("c", |at| std::os::unix::fs::symlink("run.json", at).unwrap(), "c is a link"),
            (FILE, |at| fs::remove_file(at).unwrap(), "it has no seal (SHA256SUMS is missing)"),
        ];
        for (name, add, sentence) in add {
            let directory = sealed();
            add(&directory.path().join(name));
            says(&directory, sentence);
        }
        let directory = sealed();
        let at = |name: &str| directory.path().join(name);
        fs::rename(at("series.csv"), at("verdict.json")).unwrap();
        std::os::unix::fs::symlink("verdict.json", at("series.csv")).unwrap();
        says(&directory, "series.csv is missing, series.csv is a link");
    }

    #[test]
    fn a_seal_has_one_form() {
        for change in [
            |text: &str| text.replace("  run", " *run"),
            |text: &str| text.to_uppercase().replace("RUN.JSON", "run.json"),
            |text: &str| format!("{text}{text}"),
            |text: &str| format!("{text}\n"),
            |text: &str| text.lines().rev().map(|line| format!("{line}\n")).collect(),
            |text: &str| text.trim_end().to_owned(),
            |text: &str| text.replace('\n', "\r\n"),
            |text: &str| format!("# a remark\n{text}"),
        ] {
            let directory = sealed();
            let path = directory.path().join(FILE);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, change(&text)).unwrap();
            assert!(open(directory.path()).is_err(), "{}", change(&text));
        }
    }

    #[test]
    fn hashes_the_example_of_the_standard() {
        // The expected value is the SHA-256 of the empty message (FIPS 180-4).
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
    }
}
