//! Operations of a client, and their completions.

use nfs3_types::nfs3::sattr3;

use crate::error::CallError;
use crate::handle::{ObjectId, ServerId};

/// The procedures of NFS version 3, by their numbers (RFC 1813, 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Procedure {
    /// Does nothing, so its latency is the round-trip time.
    Null = 0,
    /// Reads attributes.
    GetAttr = 1,
    /// Changes attributes.
    SetAttr = 2,
    /// Finds a name in a directory.
    Lookup = 3,
    /// Returns the accesses that the server permits.
    Access = 4,
    /// Reads data.
    Read = 6,
    /// Writes data.
    Write = 7,
    /// Creates a file.
    Create = 8,
    /// Creates a directory.
    MakeDir = 9,
    /// Removes a file.
    Remove = 12,
    /// Removes a directory.
    RemoveDir = 13,
    /// Renames a file or directory.
    Rename = 14,
    /// Lists names.
    ReadDir = 16,
    /// Lists names with attributes and handles.
    ReadDirPlus = 17,
    /// Reads the file system's free space.
    FsStat = 18,
    /// Reads the file system's limits.
    FsInfo = 19,
    /// Reads the limits on names and links.
    PathConf = 20,
    /// Makes unstable writes durable.
    Commit = 21,
}

impl Procedure {
    /// All procedures that this client calls.
    pub const ALL: [Self; 18] = [
        Self::Null,
        Self::GetAttr,
        Self::SetAttr,
        Self::Lookup,
        Self::Access,
        Self::Read,
        Self::Write,
        Self::Create,
        Self::MakeDir,
        Self::Remove,
        Self::RemoveDir,
        Self::Rename,
        Self::ReadDir,
        Self::ReadDirPlus,
        Self::FsStat,
        Self::FsInfo,
        Self::PathConf,
        Self::Commit,
    ];

    /// Returns the name in lower case. Tags of histograms contain this name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::GetAttr => "getattr",
            Self::SetAttr => "setattr",
            Self::Lookup => "lookup",
            Self::Access => "access",
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::MakeDir => "mkdir",
            Self::Remove => "remove",
            Self::RemoveDir => "rmdir",
            Self::Rename => "rename",
            Self::ReadDir => "readdir",
            Self::ReadDirPlus => "readdirplus",
            Self::FsStat => "fsstat",
            Self::FsInfo => "fsinfo",
            Self::PathConf => "pathconf",
            Self::Commit => "commit",
        }
    }
}

/// Durability that a WRITE must have when the server replies (`stable_how`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Stability {
    /// The server may store the data in memory until a COMMIT.
    #[default]
    Unstable = 0,
    /// The server must store the data durably, but not necessarily the attributes.
    DataSync = 1,
    /// The server must store data and attributes durably.
    FileSync = 2,
}

/// Behaviour of a CREATE if the file already exists (`createhow3`).
#[derive(Clone, Copy, Debug)]
pub enum CreateHow<'a> {
    /// Uses the existing file.
    Unchecked(&'a sattr3),
    /// Fails with NFS3ERR_EXIST.
    Guarded(&'a sattr3),
    /// Fails with NFS3ERR_EXIST unless the existing file was created with the same verifier. The
    /// call can therefore be retransmitted safely.
    Exclusive([u8; 8]),
}

/// An operation. Offsets of buffers refer to the arena that the caller passes to `poll`. The client
/// owns the buffer's range until the operation completes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the fields are the arguments of the same names in RFC 1813
pub enum Op<'a> {
    /// NULL.
    Null { server: ServerId },
    /// GETATTR.
    GetAttr { object: ObjectId },
    /// A SETATTR without a guard.
    SetAttr { object: ObjectId, change: &'a sattr3 },
    /// A LOOKUP, which stores the handle in the entry `into`.
    Lookup { dir: ObjectId, name: &'a [u8], into: Option<ObjectId> },
    /// An ACCESS. The result is the mask of permitted accesses.
    Access { object: ObjectId, mask: u32 },
    /// A READ. The result is the number of bytes that were read. It is smaller than the requested
    /// number only at the end of the file.
    Read { file: ObjectId, offset_bytes: u64, size_bytes: u32, buffer_offset_bytes: u64 },
    /// A WRITE. The result is the number of written bytes, which is always the requested number.
    Write {
        file: ObjectId,
        offset_bytes: u64,
        size_bytes: u32,
        buffer_offset_bytes: u64,
        stability: Stability,
    },
    /// A COMMIT of a range, or with size 0 of the whole file. It applies to every unstable write in
    /// the range that completed before the COMMIT was passed to a connection. When the COMMIT
    /// completes, these writes are durable, even if the server has restarted.
    Commit { file: ObjectId, offset_bytes: u64, size_bytes: u32 },
    /// A CREATE, which stores the handle in the entry `into` if the reply contains a handle.
    Create { dir: ObjectId, name: &'a [u8], how: CreateHow<'a>, into: Option<ObjectId> },
    /// MKDIR.
    MakeDir { dir: ObjectId, name: &'a [u8], attributes: &'a sattr3, into: Option<ObjectId> },
    /// REMOVE.
    Remove { dir: ObjectId, name: &'a [u8] },
    /// RMDIR.
    RemoveDir { dir: ObjectId, name: &'a [u8] },
    /// RENAME.
    Rename { from_dir: ObjectId, from: &'a [u8], to_dir: ObjectId, to: &'a [u8] },
    /// A READDIR that starts at a cookie. The result is the number of entries.
    ReadDir { dir: ObjectId, cookie: u64, verifier: [u8; 8], size_bytes: u32 },
    /// A READDIRPLUS that starts at a cookie. The result is the number of entries.
    ReadDirPlus { dir: ObjectId, cookie: u64, verifier: [u8; 8], size_bytes: u32 },
    /// FSSTAT.
    FsStat { object: ObjectId },
    /// FSINFO.
    FsInfo { object: ObjectId },
    /// PATHCONF.
    PathConf { object: ObjectId },
}

impl Op<'_> {
    /// Returns the procedure of the operation.
    #[inline]
    #[must_use]
    pub fn procedure(&self) -> Procedure {
        match self {
            Self::Null { .. } => Procedure::Null,
            Self::GetAttr { .. } => Procedure::GetAttr,
            Self::SetAttr { .. } => Procedure::SetAttr,
            Self::Lookup { .. } => Procedure::Lookup,
            Self::Access { .. } => Procedure::Access,
            Self::Read { .. } => Procedure::Read,
            Self::Write { .. } => Procedure::Write,
            Self::Commit { .. } => Procedure::Commit,
            Self::Create { .. } => Procedure::Create,
            Self::MakeDir { .. } => Procedure::MakeDir,
            Self::Remove { .. } => Procedure::Remove,
            Self::RemoveDir { .. } => Procedure::RemoveDir,
            Self::Rename { .. } => Procedure::Rename,
            Self::ReadDir { .. } => Procedure::ReadDir,
            Self::ReadDirPlus { .. } => Procedure::ReadDirPlus,
            Self::FsStat { .. } => Procedure::FsStat,
            Self::FsInfo { .. } => Procedure::FsInfo,
            Self::PathConf { .. } => Procedure::PathConf,
        }
    }
}

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Token that the caller passed when it submitted the operation.
    pub token: u64,
    /// Procedure of the operation.
    pub procedure: Procedure,
    /// Result, or the error. It is the number of bytes for READ and WRITE, the mask for ACCESS, the
    /// number of entries for READDIR and READDIRPLUS, and 0 for all other procedures.
    pub result: Result<u32, CallError>,
    /// Time just before the operation was first sent. If there was no connection, it is the time at
    /// which the operation would have been sent, so the latency includes the time without a
    /// connection.
    pub submitted_ns: u64,
    /// Time at which the client received the reply.
    pub completed_ns: u64,
    /// Number of retransmissions of the operation's calls.
    pub retransmissions: u32,
}
