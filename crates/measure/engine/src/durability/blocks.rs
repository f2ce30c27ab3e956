//! Blocks under test, their location, and all operations of the test except the load.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_plan::SyncMethod;

use super::{BATCH_MAX, BlockFile};
use crate::EngineError;

/// Location of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPlace {
    /// A directory. The test creates its own directory in it.
    Directory(PathBuf),
    /// A block device.
    Device(PathBuf),
    /// An NFS export, by its address. Plimsoll's own client accesses it, without a mount.
    Nfs(String),
    /// A bucket of an S3 store. Credentials are read from the environment.
    S3(BucketAddress),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// `s3://bucket/prefix`.
    pub url: String,
    /// Address of the store, `https://host:port` or `http://host:port`.
    pub endpoint: String,
    /// Region, which is part of the signature.
    pub region: String,
}

/// Target of a durability test.
#[derive(Clone, Debug)]
pub struct BlockTarget {
    /// Location.
    pub place: TargetPlace,
    /// Devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Number of the test.
    pub data_id: u64,
    /// Number of bytes under test.
    pub size_bytes: u64,
    /// Method that makes a write durable.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache.
    pub direct: bool,
    /// Timeout after which a call to a server fails.
    pub timeout: Duration,
}

impl TargetPlace {
    /// Returns the path, or the address as a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Device(path) => path,
            Self::Nfs(url) | Self::S3(BucketAddress { url, .. }) => Path::new(url),
        }
    }
}

/// Identity of a file system: type and id. After an unmount, the mount point has a different
/// identity.
pub type FileSystemId = (i64, String);

impl BlockTarget {
    /// Name of the test on a server.
    pub(super) fn server_name(&self) -> String {
        format!("durability-{:016x}", self.data_id)
    }

    /// Returns the result for a missing directory or file of the test.
    ///
    /// # Errors
    /// The path is on another file system than before the cut.
    pub(super) fn missing(&self, is_same_file_system: bool) -> Result<Reopened, EngineError> {
        if is_same_file_system {
            return Ok(Reopened::FileLost);
        }
        let path = self.place.path().display();
        Err(EngineError::Config(format!("{path} is on another file system than before the cut")))
    }
}

/// Blocks under test, and all operations of the test except the load.
pub trait TestedBlocks: BlockFile + fmt::Debug {
    /// Makes all completed writes durable, by the method that the test uses.
    ///
    /// # Errors
    /// The error of the target.
    fn sync_all(&self) -> io::Result<()>;

    /// Drops the blocks from this host's cache. Returns true if reads now reach the target.
    fn drop_cache(&self) -> bool;

    /// Removes the test's directory. Data on a device is not removed.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    fn remove(&self) -> Result<(), EngineError>;
}

/// Open target.
#[derive(Debug)]
pub struct OpenBlocks {
    pub blocks: Arc<dyn TestedBlocks>,
    /// Identity of the file system; `None` for a device.
    pub file_system: Option<FileSystemId>,
}

/// Result of opening a target after a cut.
#[derive(Debug)]
pub enum Reopened {
    /// The target is back.
    Open(OpenBlocks),
    /// The file system is available again, but the tested file is missing or too short.
    FileLost,
}

/// Returns the maximum number of writes that one flush makes durable; 1 if the test uses no flush.
pub(super) fn batch_max(sync: SyncMethod) -> usize {
    match sync {
        SyncMethod::Fsync | SyncMethod::Fdatasync => BATCH_MAX,
        SyncMethod::Dsync | SyncMethod::DirectOnly => 1,
    }
}
