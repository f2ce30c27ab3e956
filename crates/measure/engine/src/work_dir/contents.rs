//! Recognises the files and directories that belong to the data of a run. A removal deletes nothing
//! else.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// Names of the files and directories that belong to the data in a run's own directory. Plimsoll
/// did not create anything with another name.
#[derive(Clone, Debug)]
pub(crate) enum Contents {
    /// Names for a mail store, such as `db03.edb` and `db03-log/0007.log`.
    Mail {
        databases: u32,
        /// Number of log files that each database has.
        log_files: u32,
    },
    /// Names for a data set: the listed files, the directories of their trees, and the small files
    /// for operations on names.
    Data {
        /// Paths of the files, relative to the run's own directory.
        files: HashSet<PathBuf>,
    },
}

/// Maximum number of directory levels in a tree. The directories of the share and of the small
/// files are included.
pub(crate) const DEPTH_MAX: usize = 16;

impl Contents {
    /// Returns true if a regular file with this relative path belongs to the data.
    pub fn owns_file(&self, below: &Path) -> bool {
        match self {
            Self::Mail { databases, log_files } => {
                let Some(parts) = parts(below) else { return false };
                match parts[..] {
                    [file] => number(file, "db", ".edb", 2).is_some_and(|id| id < *databases),
                    [directory, file] => {
                        number(directory, "db", "-log", 2).is_some_and(|id| id < *databases)
                            && number(file, "", ".log", 4).is_some_and(|file| file < *log_files)
                    }
                    _ => false,
                }
            }
            Self::Data { files } => files.contains(below) || is_small_file(below),
        }
    }

    /// Returns true if a directory with this relative path belongs to the data.
    pub fn owns_directory(&self, below: &Path) -> bool {
        let Some(parts) = parts(below) else { return false };
        match self {
            Self::Mail { databases, .. } => match parts[..] {
                [name] => number(name, "db", "-log", 2).is_some_and(|id| id < *databases),
                _ => false,
            },
            Self::Data { .. } => parts.len() <= DEPTH_MAX && parts.iter().all(|part| is_tree(part)),
        }
    }
}

/// Splits a relative path with only normal components into its parts.
fn parts(below: &Path) -> Option<Vec<&str>> {
    let part = |component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    };
    below.components().map(part).collect()
}

/// Parses the number in a name. Numbers with fewer than `digits` digits are padded with zeros;
/// larger numbers have more digits.
fn number(name: &str, before: &str, after: &str, digits: usize) -> Option<u32> {
    let text = name.strip_prefix(before)?.strip_suffix(after)?;
    let number: u32 = text.parse().ok()?;
    (text == format!("{number:0digits$}")).then_some(number)
}

/// Returns true for names such as `STREAM-s00`, `s00`, `d000`, `STREAM-s00-small` and `s00-small`.
fn is_tree(name: &str) -> bool {
    let share = |name: &str| {
        let last = name.rsplit('-').next().unwrap_or_default();
        number(last, "s", "", 2).is_some()
    };
    number(name, "d", "", 3).is_some() || share(name.strip_suffix("-small").unwrap_or(name))
}

/// Returns true for a name such as `m00001-0000000017` in a directory of small files.
fn is_small_file(below: &Path) -> bool {
    let Some(parts) = parts(below) else { return false };
    let [above @ .., directory, file] = &parts[..] else { return false };
    let digits =
        |text: &str, least| text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit());
    let named = file
        .strip_prefix('m')
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(client, number)| digits(client, 5) && digits(number, 10));
    named && directory.ends_with("-small") && is_tree(directory) && above.iter().all(|p| is_tree(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_store_owns_its_databases_and_logs_and_nothing_else() {
        let own = Contents::Mail { databases: 12, log_files: 3 };
        for name in ["db00.edb", "db11.edb", "db03-log/0002.log"] {
            assert!(own.owns_file(Path::new(name)), "{name}");
        }
        for name in [
            "db12.edb",
            "db1.edb",
            "db001.edb",
            "db+1.edb",
            "db00.edb.bak",
            "db00-log/0003.log",
            "db00-log/2.log",
            "db00-log/x/0001.log",
            "mail.edb",
            "../db00.edb",
            "/db00.edb",
            "",
        ] {
            assert!(!own.owns_file(Path::new(name)), "{name}");
        }
        assert!(own.owns_directory(Path::new("db11-log")));
        assert!(!own.owns_directory(Path::new("db12-log")));
        assert!(!own.owns_directory(Path::new("photos")));
    }

    #[test]
    fn a_data_set_owns_what_it_lists_and_the_small_files_of_its_clients() {
        let files = HashSet::from([PathBuf::from("s00-f000.data"), "s01/d000/d001/x.data".into()]);
        let own = Contents::Data { files };
        for name in [
            "s00-f000.data",
            "s01/d000/d001/x.data",
            "s00-small/m00003-0000000009",
            "s01/d000/scan-s00-small/m123456-12345678901",
        ] {
            assert!(own.owns_file(Path::new(name)), "{name}");
        }
        for name in [
            "s00-f001.data",
            "s00-small/mine.txt",
            "small/m00003-0000000009",
            "m00003-0000000009",
            "home/s00-small/m00003-0000000009",
            "s00-small/m3-9",
        ] {
            assert!(!own.owns_file(Path::new(name)), "{name}");
        }
        for name in ["s01", "s01/d000", "scan-s12/d001", "s00-small", "scan-s00-small"] {
            assert!(own.owns_directory(Path::new(name)), "{name}");
        }
        for name in ["s1", "data", "d1", "s01/backup", "small"] {
            assert!(!own.owns_directory(Path::new(name)), "{name}");
        }
    }
}
