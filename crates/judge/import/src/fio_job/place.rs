//! Target of a fio job.

use std::fmt;

use plimsoll_plan::is_device_path;

/// Target that a job states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Directory in which fio creates its files.
    Folder(String),
    /// Block device.
    Device(String),
    /// An NFS export (`ioengine=nfs`).
    Nfs(String),
    /// Bucket (`ioengine=http`, `http_mode=s3`).
    S3 {
        /// `s3://bucket/prefix`.
        url: String,
        /// URL of the object store.
        endpoint: String,
        /// Region in the signature of each request.
        region: Option<String>,
    },
    /// The job has no target (`ioengine=null`).
    Null,
    /// The job does not state a target, so fio uses its working directory.
    WorkingDirectory,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "the folder {path}"),
            Self::Device(device) => write!(f, "the device {device}"),
            Self::Nfs(url) => write!(f, "the export {url}"),
            Self::S3 { url, endpoint, .. } => write!(f, "the bucket {url} at {endpoint}"),
            Self::Null => f.write_str("nothing (null)"),
            Self::WorkingDirectory => f.write_str("the working directory"),
        }
    }
}

/// Returns the names in a `filename` option. They are separated by colons; `\:` is a literal colon.
pub(super) fn names(filename: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = filename.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                if let Some(last) = names.last_mut() {
                    last.push(':');
                }
            }
            ':' => names.push(String::new()),
            other => {
                if let Some(last) = names.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Derives the target from `directory` and a file name. fio puts `directory` before every name, even
/// before an absolute path (filesetup.c, add_file).
pub(super) fn of(directory: Option<&str>, name: Option<&str>) -> Place {
    let path = match (directory, name) {
        (Some(directory), Some(name)) => {
            format!("{}/{}", directory.trim_end_matches('/'), name.trim_start_matches('/'))
        }
        (None, Some(name)) => name.to_owned(),
        (Some(directory), None) => return Place::Folder(directory.to_owned()),
        (None, None) => return Place::WorkingDirectory,
    };
    match path.rsplit_once('/') {
        Some(_) if is_device_path(&path) => Place::Device(path),
        Some(("", _)) => Place::Folder("/".to_owned()),
        Some((folder, _)) => Place::Folder(folder.to_owned()),
        None => Place::WorkingDirectory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_bare_colons() {
        assert_eq!(names("/dev/sda:/dev/sdb"), ["/dev/sda", "/dev/sdb"]);
        assert_eq!(names(r"/dev/dsk/foo@3,0\:c"), ["/dev/dsk/foo@3,0:c"]);
    }

    #[test]
    fn places_join_folder_and_name() {
        assert_eq!(of(None, Some("/mnt/x/file")), Place::Folder("/mnt/x".into()));
        assert_eq!(of(Some("/mnt"), Some("a/file")), Place::Folder("/mnt/a".into()));
        assert_eq!(of(Some("/mnt"), Some("file")), Place::Folder("/mnt".into()));
        assert_eq!(of(None, Some("/file")), Place::Folder("/".into()));
        assert_eq!(of(Some("/mnt/"), Some("/dev/sdb")), Place::Folder("/mnt/dev".into()));
        assert_eq!(of(None, Some("/dev/sdb")), Place::Device("/dev/sdb".into()));
        assert_eq!(of(Some("/dev"), Some("sdb")), Place::Device("/dev/sdb".into()));
        assert_eq!(of(None, Some("/dev/shm/a")), Place::Folder("/dev/shm".into()));
        assert_eq!(of(None, None), Place::WorkingDirectory);
    }
}
