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
    /// File to which bytes were last appended. The next call usually appends to the same file.
    appended: Mutex<Option<(String, File)>>,
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
        *self.appended.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let temporary = self.path(&format!(".{name}.new"));
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, self.path(name))?;
        File::open(&self.directory)?.sync_all()
    }

    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        let same = appended.take().filter(|(open, _)| open == name);
        let open = || OpenOptions::new().create(true).append(true).open(self.path(name));
        let mut file = same.map_or_else(open, |(_, file)| Ok(file))?;
        file.write_all(bytes)?;
        if sync {
            file.sync_data()?;
        }
        *appended = Some((name.to_owned(), file));
        Ok(())
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
