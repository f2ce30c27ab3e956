//! `SHA256SUMS`: the seal of a bundle, in the form that `sha256sum -c` reads. Derived files
//! (`verdict.json`, `report.html`) lie outside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::EvidenceError;

/// Name of the seal in a bundle.
pub const FILE: &str = "SHA256SUMS";

/// Files of a bundle that are derived from it and may be written again.
pub const DERIVED: [&str; 3] = ["verdict.json", "report.html", FILE];

/// SHA-256 in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sums(directory: &Path) -> Result<BTreeMap<String, String>, EvidenceError> {
    let entries = fs::read_dir(directory).map_err(|e| EvidenceError::io("read", directory, e))?;
    let mut sums = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(|e| EvidenceError::io("read", directory, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if DERIVED.contains(&name.as_str()) || name.starts_with('.') || !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).map_err(|e| EvidenceError::io("read", &path, e))?;
        sums.insert(name, sha256_hex(&bytes));
    }
    Ok(sums)
}

/// Seals the bundle in `directory`; returns the SHA-256 of the seal itself.
///
/// # Errors
/// A file that cannot be read, or a seal that cannot be written.
pub fn seal(directory: &Path) -> Result<String, EvidenceError> {
    let text: String =
        sums(directory)?.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let path = directory.join(FILE);
    fs::write(&path, &text).map_err(|e| EvidenceError::io("write", &path, e))?;
    Ok(sha256_hex(text.as_bytes()))
}

/// Checks the seal of the bundle in `directory`.
///
/// # Errors
/// [`EvidenceError::SealBroken`] with every file that differs, is missing or was added.
pub fn check(directory: &Path) -> Result<(), EvidenceError> {
    let path = directory.join(FILE);
    let text = fs::read_to_string(&path).map_err(|e| EvidenceError::io("read", &path, e))?;
    let sealed: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once("  ")).map(|(s, n)| (n, s)).collect();
    let found = sums(directory)?;
    let mut wrong = Vec::new();
    for (&name, &sum) in &sealed {
        match found.get(name) {
            None => wrong.push(format!("{name} is missing")),
            Some(now) if now != sum => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    let added = found.keys().filter(|name| !sealed.contains_key(name.as_str()));
    wrong.extend(added.map(|name| format!("{name} was added")));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(EvidenceError::SealBroken { path: directory.to_path_buf(), what: wrong.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_changed_missing_and_added_files() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("run.json"), "{}").unwrap();
        fs::write(at("series.csv"), "x").unwrap();
        seal(directory.path()).unwrap();
        fs::write(at("verdict.json"), "derived").unwrap();
        check(directory.path()).unwrap();
        fs::write(at("run.json"), "{ }").unwrap();
        fs::remove_file(at("series.csv")).unwrap();
        fs::write(at("plan.toml"), "").unwrap();
        let error = check(directory.path()).unwrap_err().to_string();
        let expected = "run.json was changed, series.csv is missing, plan.toml was added";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn hashes_as_the_standard_says() {
        // FIPS 180-4, the example of the empty message.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
    }
}
