//! Files of a witness. The files are in a directory of this host, or on another host.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Access to the files of a witness. File names contain no directories.
pub trait WitnessFiles: Debug + Send + Sync {
    /// Reads a file.
    ///
    /// # Errors
    /// The error is `NotFound` if the file does not exist. Other errors come from the file system
    /// or the network.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Creates or replaces a file. The new content is durable when this function returns.
    ///
    /// # Errors
    /// Fails if the file system or the network reports an error.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Appends to a file. Creates the file if it is missing. If `sync` is true, the appended bytes
    /// are durable when this function returns.
    ///
    /// # Errors
    /// Fails if the file system or the network reports an error.
    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Fails if the file system or the network reports an error.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes all files and then the directory.
    ///
    /// # Errors
    /// Fails if the file system or the network reports an error.
    fn remove_all(&self) -> io::Result<()>;
    /// Returns the path of a file, which is used in messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// Witness files in a directory of this host.
#[derive(Debug)]
pub struct LocalFiles {
    directory: PathBuf,
    /// File to which bytes were last appended. The next call usually appends to the same file. The
    /// handle is `None` if a write failed. The file may then end with a part of a record, so
    /// nothing is appended to it until it is replaced.
    appended: Mutex<Option<(String, Option<File>)>>,
}

impl LocalFiles {
    /// Creates the directory if it is missing. The second result is true if the directory is new.
    ///
    /// # Errors
    /// Fails if the parent directory does not exist, or if the file system reports another error.
    pub fn create(directory: &Path) -> io::Result<(Self, bool)> {
        let is_new = match fs::create_dir(directory) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {
                false
            }
            Err(error) => return Err(error),
        };
        let directory = directory.to_path_buf();
        Ok((Self { directory, appended: Mutex::default() }, is_new))
    }
}

impl WitnessFiles for LocalFiles {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // The record of the test is also replaced after a write to another file has failed.
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = appended.take_if(|(open, file)| open == name || file.is_some());
        drop(appended);
        let temporary = self.path(&format!(".{name}.new"));
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, self.path(name))?;
        File::open(&self.directory)?.sync_all()
    }

    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match appended.take() {
            Some((open, Some(file))) if open == name => file,
            Some((open, None)) if open == name => {
                *appended = Some((open, None));
                return Err(io::Error::other("an earlier write to this file failed"));
            }
            _ => OpenOptions::new().create(true).append(true).open(self.path(name))?,
        };
        let written = file.write_all(bytes).and_then(|()| match sync {
            true => file.sync_data(),
            false => Ok(()),
        });
        *appended = Some((name.to_owned(), written.is_ok().then_some(file)));
        written
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        *self.appended.lock().unwrap_or_else(PoisonError::into_inner) = None;
        fs::remove_file(self.path(name))
    }

    fn remove_all(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_appended_after_a_failed_write() {
        let directory = tempfile::tempdir().unwrap();
        let files = LocalFiles::create(directory.path()).unwrap().0;
        std::os::unix::fs::symlink("/dev/full", files.path("acks")).unwrap();
        let error = files.append("acks", b"record", false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // The disk has space again.
        fs::remove_file(files.path("acks")).unwrap();
        files.replace("other", b"").unwrap();
        assert!(files.append("acks", b"record", false).is_err());
        files.replace("acks", b"").unwrap();
        files.append("acks", b"record", true).unwrap();
        files.append("acks", b"record", false).unwrap();
        assert_eq!(files.read("acks").unwrap(), b"recordrecord");
    }
}
