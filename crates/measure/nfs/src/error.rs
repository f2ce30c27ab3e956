//! Errors of calls.
//!
//! A [`CallError`] is small and `Copy`, because completions on the data path contain it. It
//! distinguishes error replies of the server (NFS status, RPC rejection), violations of the
//! protocol by the server ([`Violation`]), and missing replies.

use nfs3_types::nfs3::nfsstat3;
use thiserror::Error;

/// Violation of the protocol by the server. If the framing is broken, the client closes the
/// connection, and every call on it fails. If only the content of a reply is damaged, only this
/// call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The record ends in the middle of a field.
    #[error("the reply ends in the middle of its field `{field}`")]
    Truncated {
        /// The incomplete field.
        field: &'static str,
    },
    /// A record is longer than any valid reply to an outstanding call.
    #[error("a record has {record_bytes} bytes, but no valid reply exceeds {limit_bytes}")]
    Oversized {
        /// Size announced by the fragments that were received.
        record_bytes: u64,
        /// Maximum size.
        limit_bytes: u64,
    },
    /// A record has too many fragments.
    #[error("a record was split into more than {limit} fragments")]
    TooManyFragments {
        /// Maximum number.
        limit: u32,
    },
    /// A reply matches no outstanding call on this connection.
    #[error(
        "a reply has XID {xid:#010x}, but no call with this XID is outstanding on the \
     connection"
    )]
    UnknownXid {
        /// XID of the reply.
        xid: u32,
    },
    /// The value of a field is not valid for its type.
    #[error("the field `{field}` has the value {value}, which is not valid for its type")]
    BadValue {
        /// The field.
        field: &'static str,
        /// Value received.
        value: u32,
    },
    /// A variable-length field is too long for its type.
    #[error("the field `{field}` has a length of {size_bytes} bytes; the maximum is {limit_bytes}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Size that the reply announces.
        size_bytes: u32,
        /// Maximum size.
        limit_bytes: u32,
    },
    /// In the reply to a READ, the count differs from the length of the data.
    #[error("the reply to READ reports {count} bytes but contains {data_bytes}")]
    CountMismatch {
        /// Value of the count field.
        count: u32,
        /// Length of the data.
        data_bytes: u32,
    },
    /// In the reply to a WRITE, the server reports more bytes than the client sent.
    #[error("the reply to WRITE reports {count} bytes, but only {size_bytes} were sent")]
    CountTooLarge {
        /// Value of the count field.
        count: u32,
        /// Size of the request.
        size_bytes: u32,
    },
    /// The reply to a WRITE states a weaker stability than the client requested, which RFC 1813
    /// (3.3.7) forbids.
    #[error(
        "the reply to WRITE states the stability {committed}, which is weaker than the \
     requested {requested}"
    )]
    WeakerStability {
        /// Stability that the reply states.
        committed: u32,
        /// Requested stability.
        requested: u32,
    },
    /// A reply contains bytes after its last field.
    #[error("{size_bytes} bytes follow the end of the reply")]
    Trailing {
        /// Number of bytes after the last field.
        size_bytes: u64,
    },
}

/// The server's RPC layer rejected a call (RFC 5531, 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RpcError {
    /// PROG_UNAVAIL.
    #[error(
        "the server does not provide this program (PROG_UNAVAIL): check that NFS version 3 is \
     enabled"
    )]
    ProgramUnavailable,
    /// PROG_MISMATCH.
    #[error(
        "the server supports versions {low} to {high} of this program, but not version 3 \
     (PROG_MISMATCH)"
    )]
    ProgramMismatch {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// PROC_UNAVAIL.
    #[error("the server does not know this procedure (PROC_UNAVAIL)")]
    ProcedureUnavailable,
    /// GARBAGE_ARGS.
    #[error("the server could not decode the arguments (GARBAGE_ARGS)")]
    GarbageArguments,
    /// SYSTEM_ERR.
    #[error("the server ran out of memory or had another internal error (SYSTEM_ERR)")]
    SystemError,
    /// RPC_MISMATCH.
    #[error("the server supports RPC versions {low} to {high}, but not version 2 (RPC_MISMATCH)")]
    RpcMismatch {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// The server rejected the credential with AUTH_ERROR and this `auth_stat`.
    #[error(
        "the server rejected the AUTH_SYS credential (auth_stat {0}): check the export \
     options of the server"
    )]
    Auth(u32),
}

/// Reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The server answered with an NFS status other than NFS3_OK.
    #[error("{}: {}", .0, explain(*.0))]
    Status(nfsstat3),
    /// The server answered with a status that RFC 1813 does not define.
    #[error("the server returned status {0}, which NFS version 3 does not define")]
    UnknownStatus(u32),
    /// The server's RPC layer rejected the call.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The server violated the protocol.
    #[error("the server violated the protocol: {0}")]
    Violation(#[from] Violation),
    /// No reply arrived within the time limit, in spite of retransmissions and reconnections.
    #[error("no reply arrived within {} ms, after {transmissions} transmissions", after_ns / 1_000_000)]
    TimedOut {
        /// Time since the first transmission.
        after_ns: u64,
        /// Number of transmissions.
        transmissions: u32,
    },
    /// The server accepted a READ or WRITE but transferred no bytes.
    #[error("the server transferred no bytes, although the end of the file was not reached")]
    NoProgress,
}

impl CallError {
    /// Returns the closest `errno`, for callers that need an error number.
    #[must_use]
    pub fn errno(self) -> i32 {
        const EIO: i32 = 5;
        const EPROTO: i32 = 71;
        const ETIMEDOUT: i32 = 110;
        match self {
            Self::Status(status) => errno_of(status),
            Self::UnknownStatus(_) | Self::NoProgress => EIO,
            Self::Rpc(RpcError::Auth(_)) => 13,
            Self::Rpc(_) | Self::Violation(_) => EPROTO,
            Self::TimedOut { .. } => ETIMEDOUT,
        }
    }
}

/// Returns the Linux `errno` for an NFS status. By design, the lowest NFS codes are equal to the
/// `errno` (RFC 1813, 2.6).
fn errno_of(status: nfsstat3) -> i32 {
    match status {
        nfsstat3::NFS3ERR_STALE => 116,
        nfsstat3::NFS3ERR_NAMETOOLONG => 36,
        nfsstat3::NFS3ERR_NOTEMPTY => 39,
        nfsstat3::NFS3ERR_DQUOT => 122,
        nfsstat3::NFS3ERR_REMOTE => 66,
        nfsstat3::NFS3ERR_BADHANDLE => 116,
        nfsstat3::NFS3ERR_NOTSUPP => 95,
        nfsstat3::NFS3ERR_JUKEBOX => 11,
        other => match other as i32 {
            code @ 0..=31 => code,
            _ => 5,
        },
    }
}

/// Returns a line with the meaning of a status and a hint.
#[must_use]
pub fn explain(status: nfsstat3) -> &'static str {
    match status {
        nfsstat3::NFS3_OK => "success",
        nfsstat3::NFS3ERR_PERM => "the user is not the owner: check uid and gid of the target",
        nfsstat3::NFS3ERR_NOENT => "no such file or directory",
        nfsstat3::NFS3ERR_IO => "the server's storage failed: check the server's log",
        nfsstat3::NFS3ERR_NXIO => "the server's device does not exist",
        nfsstat3::NFS3ERR_ACCES => {
            "permission denied: check uid, gid and the export's squash option"
        }
        nfsstat3::NFS3ERR_EXIST => "the name already exists",
        nfsstat3::NFS3ERR_XDEV => "the names are on different file systems",
        nfsstat3::NFS3ERR_NODEV => "no such device",
        nfsstat3::NFS3ERR_NOTDIR => "the object is not a directory",
        nfsstat3::NFS3ERR_ISDIR => "the object is a directory",
        nfsstat3::NFS3ERR_INVAL => "the server rejected an argument as invalid",
        nfsstat3::NFS3ERR_FBIG => "the file would be too large for the server",
        nfsstat3::NFS3ERR_NOSPC => "the server's file system is full",
        nfsstat3::NFS3ERR_ROFS => "the export is read-only",
        nfsstat3::NFS3ERR_MLINK => "too many hard links",
        nfsstat3::NFS3ERR_NAMETOOLONG => "the name is too long for the server",
        nfsstat3::NFS3ERR_NOTEMPTY => "the directory is not empty",
        nfsstat3::NFS3ERR_DQUOT => "the quota is exceeded",
        nfsstat3::NFS3ERR_STALE => {
            "the file handle is stale: the file was removed, or the export was replaced"
        }
        nfsstat3::NFS3ERR_REMOTE => "the path has too many levels of remote mounts",
        nfsstat3::NFS3ERR_BADHANDLE => "the server does not recognise the file handle",
        nfsstat3::NFS3ERR_NOT_SYNC => "the guard of SETATTR did not match",
        nfsstat3::NFS3ERR_BAD_COOKIE => "the READDIR cookie is stale: read the directory again",
        nfsstat3::NFS3ERR_NOTSUPP => "the server does not support this operation",
        nfsstat3::NFS3ERR_TOOSMALL => "the buffer or request is too small for the server",
        nfsstat3::NFS3ERR_SERVERFAULT => "the server had an internal error: check the server's log",
        nfsstat3::NFS3ERR_BADTYPE => "the server does not support objects of this type",
        nfsstat3::NFS3ERR_JUKEBOX => "the server repeatedly requested to try again later",
    }
}

/// Reason why a submission was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The maximum number of operations, `depth_max`, is outstanding. The caller must poll first.
    #[error("the client's maximum number of operations is outstanding: poll first")]
    Full,
    /// The object or server is not registered with this client, or its handle is not yet known.
    #[error("the object is not registered with this client, or its file handle is not yet known")]
    NoHandle,
    /// The size of a transfer is 0, or exceeds the client's maximum.
    #[error("a transfer of {size_bytes} bytes is not possible: use 1 to {limit_bytes} bytes")]
    Size {
        /// Requested size.
        size_bytes: u32,
        /// Maximum size.
        limit_bytes: u32,
    },
    /// A name is empty or longer than 255 bytes.
    #[error("a name of {size_bytes} bytes is not possible: use 1 to 255 bytes")]
    Name {
        /// Length in bytes.
        size_bytes: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_named_and_explained() {
        let all = [
            0u32, 1, 2, 5, 6, 13, 17, 18, 19, 20, 21, 22, 27, 28, 30, 31, 63, 66, 69, 70, 71,
            10001, 10002, 10003, 10004, 10005, 10006, 10007, 10008,
        ];
        for code in all {
            let status = crate::xdr::status(code).unwrap();
            let text = CallError::Status(status).to_string();
            assert!(text.starts_with("NFS3") && text.contains(": "), "{text}");
            assert!(code == 0 || CallError::Status(status).errno() > 0);
        }
        assert_eq!(crate::xdr::status(99), Err(CallError::UnknownStatus(99)));
        assert_eq!(CallError::Status(nfsstat3::NFS3ERR_NOSPC).errno(), 28);
        assert_eq!(CallError::Status(nfsstat3::NFS3ERR_STALE).errno(), 116);
    }
}
