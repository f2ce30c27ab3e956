//! The tested blocks, their location, and the operations of the test. The load is in a separate
//! module.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_plan::SyncMethod;

use super::{BATCH_MAX, BlockFile};
use crate::EngineError;

/// Location of the tested blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPlace {
    /// A directory, in which the test creates its own directory.
    Directory(PathBuf),
    Device(PathBuf),
    /// Address of an NFS export. Plimsoll's own client accesses the export, without a mount.
    Nfs(String),
    /// A bucket of an S3 store. The credentials are read from the environment.
    S3(BucketAddress),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// `s3://bucket/prefix`.
    pub url: String,
    /// Address of the S3 store, `https://host:port` or `http://host:port`.
    pub endpoint: String,
    /// Region of the store. Requests are signed for this region.
    pub region: String,
}

/// Target of a durability test.
#[derive(Clone, Debug)]
pub struct BlockTarget {
    /// Location.
    pub place: TargetPlace,
    /// Paths of the devices whose data the operator allows the test to overwrite.
    pub destroy: Vec<PathBuf>,
    /// Number that identifies the test.
    pub data_id: u64,
    /// Size of all tested blocks in bytes.
    pub size_bytes: u64,
    /// Method with which the test makes a write durable.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache of this host.
    pub direct: bool,
    /// A call to a server fails after this time without a response.
    pub timeout: Duration,
}

impl TargetPlace {
    /// Returns the path of the target. For a server, this is its address in the form of a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Device(path) => path,
            Self::Nfs(url) | Self::S3(BucketAddress { url, .. }) => Path::new(url),
        }
    }
}

/// Type and id of a file system, which identify it. After an unmount, the mount point has a
/// different identity.
pub type FileSystemId = (i64, String);

impl BlockTarget {
    /// Name that the test uses for its data on a server.
    pub(super) fn server_name(&self) -> String {
        format!("durability-{:016x}", self.data_id)
    }

    /// Returns the result of opening a target whose directory or file is missing.
    ///
    /// # Errors
    /// Fails if the path is now on another file system than before the power cut.
    pub(super) fn missing(&self, is_same_file_system: bool) -> Result<Reopened, EngineError> {
        if is_same_file_system {
            return Ok(Reopened::FileLost);
        }
        let path = self.place.path().display();
        Err(EngineError::Config(format!("{path} is on a different file system after the cut")))
    }
}

/// The tested blocks, with all operations of the test except those of the load.
pub trait TestedBlocks: BlockFile + fmt::Debug {
    /// Makes all completed writes durable, with the method that the plan selects for this test.
    ///
    /// # Errors
    /// Fails if the target reports an error.
    fn sync_all(&self) -> io::Result<()>;

    /// Drops the blocks from this host's cache. Returns true if later reads are answered by the
    /// target.
    fn drop_cache(&self) -> bool;

    /// Removes the test's directory. If the target is a device, its data is not removed.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    fn remove(&self) -> Result<(), EngineError>;
}

/// Open target.
#[derive(Debug)]
pub struct OpenBlocks {
    pub blocks: Arc<dyn TestedBlocks>,
    /// Identity of the file system that contains the blocks; `None` for a device.
    pub file_system: Option<FileSystemId>,
}

/// Result of opening a target after a power cut.
#[derive(Debug)]
pub enum Reopened {
    /// The target is available again and was opened.
    Open(OpenBlocks),
    /// The file system is available again, but the tested file is missing or too short.
    FileLost,
}

/// Returns the maximum number of writes that one flush makes durable. Returns 1 if the test uses no
/// flush.
pub(super) fn batch_max(sync: SyncMethod) -> usize {
    match sync {
        SyncMethod::Fsync | SyncMethod::Fdatasync => BATCH_MAX,
        SyncMethod::Dsync | SyncMethod::DirectOnly => 1,
    }
}
