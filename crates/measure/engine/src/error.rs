//! Errors of the engine and of its targets. Each error states the operation, the file and a remedy.

use std::path::{Path, PathBuf};

use plimsoll_evidence::run::EndKind;
use plimsoll_plan::SizeBytes;
use plimsoll_record::recording::Failure;
use plimsoll_sys::SysError;
use plimsoll_sys::error::describe;
use plimsoll_sys::op::PushError;
use plimsoll_sys::ring::RingError;
use plimsoll_workload::planned::PlannedError;

/// Kind of failure. The command line selects an exit code and a hint by this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file system is full, or a quota is exceeded (`ENOSPC`, `EDQUOT`).
    NoSpace,
    /// The file system is mounted read-only (`EROFS`).
    ReadOnly,
    /// The file or directory does not exist (`ENOENT`, `ENOTDIR`, `ENODEV`, `ENXIO`).
    NotFound,
    /// The user does not have the necessary permission (`EACCES`, `EPERM`).
    Denied,
    /// Something else uses the device or file exclusively. For example, the device is mounted
    /// (`EBUSY`).
    Busy,
    /// A file that the run must create exists already (`EEXIST`).
    Exists,
    /// A directory that belongs to the run contains files that Plimsoll did not create
    /// (`ENOTEMPTY`).
    NotEmpty,
    /// The device or the network failed (`EIO` and other errors of data transfers).
    Device,
    /// Data that was read differs from the data that was written.
    Corrupt,
    /// Direct I/O was required, but the file system does not support it.
    NoDirect,
    /// io_uring was required, but is not available.
    NoRing,
    /// The machine does not have enough memory, threads or descriptors (`ENOMEM`, `EAGAIN`,
    /// `EMFILE`, `ENFILE`).
    NoResources,
    /// Another run uses the target.
    InUse,
    /// The target has too little space for the plan's data.
    TooSmall,
    /// The plan needs more memory than is available.
    Memory,
    /// The plan's files are larger than the limit of the shell (`ulimit -f`), or a file reached
    /// this limit during the run (`EFBIG`).
    FileLimit,
    /// A server of the target refused a request, failed or did not respond.
    Remote,
    /// The device contains data that the run would destroy.
    HasData,
    /// The plan, a path or an existing store is not valid, or is not supported.
    Config,
    /// The operator requested a stop.
    Stopped,
    /// The caller broke a rule of the engine. This is a defect in Plimsoll.
    Defect,
}

/// Failure of the engine or its target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// A system call failed. If the call was on a file, `path` is the path of this file.
    #[error("{doing}: {source}")]
    System {
        /// What the engine was doing, such as `opening` or `reserving 2147483648 bytes`.
        doing: String,
        /// System call that failed, with its path and its `errno`.
        source: SysError,
    },
    /// A read, a write or a flush failed.
    #[error("{doing} {} at byte {offset_bytes}: {}", .path.display(), describe(*.errno))]
    Transfer {
        /// What the engine was doing: `reading`, `writing` or `flushing`.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Offset of the transfer in the file.
        offset_bytes: u64,
        /// The `errno`, as a positive number.
        errno: i32,
    },
    /// A transfer succeeded, but it transferred fewer bytes than requested.
    #[error(
        "{doing} {} at byte {offset_bytes}: only {moved_bytes} of {size_bytes} bytes were \
         transferred",
        .path.display()
    )]
    Short {
        /// What the engine was doing: `reading` or `writing`.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Offset of the transfer in the file.
        offset_bytes: u64,
        /// Bytes requested.
        size_bytes: u32,
        /// Bytes moved.
        moved_bytes: u32,
    },
    /// The content of a block differs from its expected content.
    #[error(
        "{} at byte {offset_bytes}: {size_bytes} bytes do not have the expected content",
        .path.display()
    )]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the block in the file.
        offset_bytes: u64,
        /// Number of bytes whose content was checked.
        size_bytes: u32,
    },
    /// The plan requires direct I/O, and the file system refuses it.
    #[error("{} does not support direct I/O: {}", .path.display(), describe(*.errno))]
    NoDirect {
        /// Path of the file.
        path: PathBuf,
        /// The `errno` of the attempt to open the file for direct I/O.
        errno: i32,
    },
    /// The plan requires io_uring, which is unavailable.
    #[error("io_uring was required but is not available: {0}")]
    NoRing(RingError),
    /// The queue of the engine rejected an operation.
    #[error("defect: {0}")]
    Push(#[from] PushError),
    /// A thread panicked. The text contains the location and the message of the panic.
    #[error("{0}")]
    Defect(String),
    /// The work was stopped, because the operator requested a stop or because another thread
    /// failed.
    #[error("the work was stopped before it finished")]
    Stopped,
    /// The target does not respond. For a long time, either no operation has completed, or one
    /// operation has been outstanding.
    #[error(
        "no operation completed for {} s; {in_flight} operations are in flight at {what}",
        .after_ns / 1_000_000_000
    )]
    NoAnswer {
        /// Name of the target of the operations.
        what: String,
        /// Number of operations in flight.
        in_flight: usize,
        /// How long the engine has waited.
        after_ns: u64,
    },
    /// Requests to the target did not return, and the run abandoned them.
    #[error("requests to {what} did not complete within {} s and were abandoned", .after_ns / 1_000_000_000)]
    Abandoned {
        /// Name of the target of the requests.
        what: String,
        /// How long the engine waited.
        after_ns: u64,
    },
    /// Another run has locked the target.
    #[error("{} is locked: another run is using this target", .path.display())]
    InUse {
        /// Path of the lock file.
        path: PathBuf,
    },
    /// The target has too little space for the plan's data.
    #[error(
        "{} has {} free, but the plan's data needs {}",
        .path.display(), SizeBytes(*.free_bytes).about(), SizeBytes(*.needed_bytes).about()
    )]
    TooSmall {
        /// A directory of the target. The file system that contains this directory is too small.
        path: PathBuf,
        /// Number of bytes that the plan needs on this file system.
        needed_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// The plan needs more memory than this process may use.
    #[error(
        "about {} of memory are needed, most of it for {what}, but {limit} allows only {}",
        SizeBytes(*.needed_bytes).about(), SizeBytes(*.room_bytes).about()
    )]
    Memory {
        /// Kind of data that needs more memory than any other kind.
        what: &'static str,
        /// Approximate number of bytes that the plan needs.
        needed_bytes: u64,
        /// Bytes available.
        room_bytes: u64,
        /// Name of the limit that is exceeded.
        limit: &'static str,
    },
    /// The plan's files are larger than the maximum file size of this process.
    #[error(
        "the plan's largest file has {}, but ulimit -f allows only {}",
        SizeBytes(*.needed_bytes).about(), SizeBytes(*.limit_bytes).about()
    )]
    FileLimit {
        /// Size of the plan's largest file.
        needed_bytes: u64,
        /// Maximum file size of this process.
        limit_bytes: u64,
    },
    /// A server of the target refused a request, failed or did not respond.
    #[error("{doing}: {says}")]
    Remote {
        /// What the engine was doing, and with which server or object.
        doing: String,
        /// Response of the server, or the reason why the server did not respond.
        says: String,
        /// The `errno` that describes best how an operation failed; `None` for a failure during
        /// preparation.
        errno: Option<i32>,
    },
    /// The device contains data, and the operator has not allowed the run to destroy it.
    #[error("{} contains {what}, which this plan would overwrite", .path.display())]
    HasData {
        /// Path of the device.
        path: PathBuf,
        /// Description of the data on the device.
        what: String,
    },
    /// The device or one of its partitions is mounted.
    #[error("{} is mounted at {}", .path.display(), .at.display())]
    Mounted {
        /// Path of the device.
        path: PathBuf,
        /// Mount point.
        at: PathBuf,
    },
    /// The plan contains a setting that is not supported.
    #[error("{0}")]
    Config(String),
}

impl Failure for EngineError {
    fn end_kind(&self) -> EndKind {
        match self.kind() {
            ErrorKind::NoSpace | ErrorKind::TooSmall => EndKind::NoSpace,
            ErrorKind::Device => EndKind::IoError,
            ErrorKind::Corrupt => EndKind::Corruption,
            ErrorKind::Defect => EndKind::Defect,
            ErrorKind::Stopped => EndKind::Interrupted,
            _ => EndKind::Environment,
        }
    }

    fn says(&self) -> String {
        format!("{self}; {}", self.hint())
    }

    fn leaves_a_call(&self) -> bool {
        matches!(self, Self::Abandoned { .. } | Self::NoAnswer { .. })
    }
}

impl From<PlannedError> for EngineError {
    fn from(error: PlannedError) -> Self {
        match error {
            PlannedError::Numbers(says) => Self::Config(says),
            PlannedError::Arrivals(source) => Self::system("reading recorded arrivals", source),
        }
    }
}

impl EngineError {
    /// Creates the error of a failed system call. `doing` is what the engine was doing.
    #[must_use]
    pub fn system(doing: impl Into<String>, source: SysError) -> Self {
        Self::System { doing: doing.into(), source }
    }

    /// Returns the kind of failure, which determines the exit code and the hint.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::System { source, .. } => kind_of(source.errno),
            Self::Transfer { errno, .. } => kind_of(*errno),
            Self::Short { .. } => ErrorKind::Device,
            Self::Content { .. } => ErrorKind::Corrupt,
            Self::NoDirect { .. } => ErrorKind::NoDirect,
            Self::NoRing(_) => ErrorKind::NoRing,
            Self::InUse { .. } => ErrorKind::InUse,
            Self::TooSmall { .. } => ErrorKind::TooSmall,
            Self::HasData { .. } => ErrorKind::HasData,
            Self::Mounted { .. } => ErrorKind::Busy,
            Self::Memory { .. } => ErrorKind::Memory,
            Self::FileLimit { .. } => ErrorKind::FileLimit,
            Self::Config(_) => ErrorKind::Config,
            Self::Remote { errno: Some(errno), .. } => kind_of(*errno),
            Self::Remote { errno: None, .. } => ErrorKind::Remote,
            Self::Push(_) | Self::Defect(_) => ErrorKind::Defect,
            Self::Stopped => ErrorKind::Stopped,
            Self::NoAnswer { .. } | Self::Abandoned { .. } => ErrorKind::Device,
        }
    }

    /// Returns the path of the file, if the error concerns a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::System { source, .. } => source.path.as_deref(),
            Self::Transfer { path, .. }
            | Self::Short { path, .. }
            | Self::InUse { path }
            | Self::TooSmall { path, .. }
            | Self::HasData { path, .. }
            | Self::Mounted { path, .. }
            | Self::NoDirect { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns a hint that tells the user what to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.kind() {
            // The target may be on a server. Errors of a server are not in this host's log.
            ErrorKind::Device if self.leaves_a_call() => {
                "read the kernel's log (dmesg) or, if the target is on a server, the server's log; \
                 the target failed, not the test"
            }
            ErrorKind::Device | ErrorKind::Denied if matches!(self, Self::Remote { .. }) => {
                REMOTE_HINT
            }
            ErrorKind::NoSpace => {
                "free some space on the file system, or use a smaller data set in the plan"
            }
            ErrorKind::ReadOnly => "use a directory on a file system that is mounted for writing",
            ErrorKind::NotFound => "check the path, and that the file system is mounted",
            ErrorKind::Denied => {
                "run as a user who has permission to read and write the target, and check that a \
                 device is not read-only (blockdev --getro)"
            }
            ErrorKind::Busy => "unmount the target, or stop the process that uses it",
            ErrorKind::Exists => {
                "use another directory: Plimsoll never overwrites files that it did not create"
            }
            ErrorKind::NotEmpty => {
                "move the files that Plimsoll did not create to another directory, and remove this \
                 directory"
            }
            ErrorKind::Device => "read the kernel's log (dmesg); the target failed, not the test",
            ErrorKind::Corrupt => "don't trust this storage with data; keep it for examination",
            ErrorKind::NoDirect => "choose another file system, or allow buffered I/O in the plan",
            ErrorKind::NoRing => {
                "allow the thread engine in the plan, or set kernel.io_uring_disabled=0"
            }
            ErrorKind::NoResources => {
                "raise the limits (ulimit -n, -u, -l, -v) or use a lower queue depth"
            }
            ErrorKind::InUse => "wait until the other run has finished, or use another directory",
            ErrorKind::TooSmall => "reduce the data size in the plan, or use a larger target",
            ErrorKind::Memory => {
                "use fewer clients, a lower queue depth or a smaller cache in the plan, or raise \
                 the limit"
            }
            ErrorKind::FileLimit => {
                "raise the file size limit (ulimit -f), or use smaller files in the plan"
            }
            ErrorKind::Remote => REMOTE_HINT,
            ErrorKind::HasData => "choose another device, or repeat its full path in --destroy",
            ErrorKind::Config => "correct the plan or the path",
            ErrorKind::Stopped => "repeat the run, and do not interrupt it",
            ErrorKind::Defect => "this is a defect in Plimsoll: please report it",
        }
    }
}

const REMOTE_HINT: &str =
    "check that the server is running and grants access to this host, and read its log";

fn kind_of(errno: i32) -> ErrorKind {
    match errno {
        libc::ENOSPC | libc::EDQUOT => ErrorKind::NoSpace,
        libc::EROFS => ErrorKind::ReadOnly,
        libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO => ErrorKind::NotFound,
        libc::EACCES | libc::EPERM => ErrorKind::Denied,
        libc::EBUSY => ErrorKind::Busy,
        libc::EEXIST => ErrorKind::Exists,
        libc::ENOTEMPTY => ErrorKind::NotEmpty,
        libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE => ErrorKind::NoResources,
        libc::EFBIG => ErrorKind::FileLimit,
        libc::EBADF | libc::EFAULT => ErrorKind::Defect,
        _ => ErrorKind::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_happened_to_what_and_what_to_do() {
        let source = SysError::new("open", libc::EROFS).at(Path::new("/mnt/db1/a.edb"));
        let error = EngineError::system("opening", source);
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert_eq!(error.path(), Some(Path::new("/mnt/db1/a.edb")));
        assert!(error.to_string().contains("/mnt/db1/a.edb"), "{error}");
        assert!(error.hint().contains("mounted for writing"));
        let path = PathBuf::from("/x");
        let (doing, offset_bytes) = ("writing", 4096);
        let error = EngineError::Transfer { doing, path, offset_bytes, errno: libc::EIO };
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.to_string().starts_with("writing /x at byte 4096: "), "{error}");
        for errno in [libc::ETIMEDOUT, libc::EACCES] {
            let (doing, says, errno) = (String::new(), String::new(), Some(errno));
            let remote = EngineError::Remote { doing, says, errno };
            assert!(remote.hint().starts_with("check that the server is running"));
        }
        let silent = EngineError::Abandoned { what: "a file".into(), after_ns: 1 };
        assert!(silent.hint().contains("the server's log"));
    }
}
