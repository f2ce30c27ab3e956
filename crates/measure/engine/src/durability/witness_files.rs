//! Files of a witness. They are in a directory of this host, or on another host.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files of a witness. Their names contain no directories.
pub trait WitnessFiles: Debug + Send + Sync {
    /// Reads a file.
    ///
    /// # Errors
    /// `NotFound` if the file does not exist; other errors of the file system or the network.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Replaces or creates a file. The new content is durable.
    ///
    /// # Errors
    /// Fails on an error of the file system or of the network.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Appends to a file, and creates it if it is missing. The bytes are durable if `sync` is true.
    ///
    /// # Errors
    /// Fails on an error of the file system or of the network.
    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Fails on an error of the file system or of the network.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes all files and the directory.
    ///
    /// # Errors
    /// Fails on an error of the file system or of the network.
    fn remove_all(&self) -> io::Result<()>;
    /// Returns the path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// Files in a directory of this host.
#[derive(Debug)]
pub struct LocalFiles {
    directory: PathBuf,
    /// File to which the last append was made. The next append usually uses the same file.
    appended: Mutex<Option<(String, File)>>,
}

impl LocalFiles {
    /// Creates the directory if it is missing. Also returns whether it is new.
    ///
    /// # Errors
    /// Fails if the parent does not exist, or on another error of the file system.
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
