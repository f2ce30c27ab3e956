//! Operations of a client, and their completions.

use crate::error::CallError;

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads an object or a range of it.
    Get,
    /// Writes a whole object.
    Put,
    /// Requests the attributes of an object.
    Head,
    /// Removes an object.
    Delete,
    List,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::Head, Self::Delete, Self::List];

    /// Returns the name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Head => "head",
            Self::Delete => "delete",
            Self::List => "list",
        }
    }
}

/// One operation. Its buffer is a range of the arena that the caller passes to `poll`. The client
/// owns this range until the operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Reads `size_bytes` of an object from `offset_bytes` on. Completes with the number of bytes
    /// read.
    Get {
        /// The object.
        key: &'a str,
        /// Offset within the object.
        offset_bytes: u64,
        /// Number of bytes to read.
        size_bytes: u32,
        /// True if the object is `size_bytes` long. The request then needs no range header.
        whole: bool,
        /// Offset in the arena at which the bytes are stored.
        buffer_offset_bytes: u64,
    },
    /// Writes a whole object, in parts if the object is longer than a part. Completes with the
    /// number of bytes written.
    Put {
        /// The object.
        key: &'a str,
        /// Object size in bytes.
        size_bytes: u32,
        /// Offset in the arena at which the bytes of the object start.
        buffer_offset_bytes: u64,
    },
    /// Requests the attributes of an object.
    Head {
        /// The object.
        key: &'a str,
    },
    /// Removes an object. It is not an error if the object does not exist.
    Delete {
        /// The object.
        key: &'a str,
    },
    /// Lists the first names with a prefix (LIST version 2). Completes with the number of names.
    /// [`crate::Client::listed`] returns the names until the next LIST.
    List {
        prefix: &'a str,
        /// Maximum number of names to list; at most 1,000.
        names_max: u16,
    },
}

impl Op<'_> {
    /// Returns the kind of the operation.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Get { .. } => Kind::Get,
            Self::Put { .. } => Kind::Put,
            Self::Head { .. } => Kind::Head,
            Self::Delete { .. } => Kind::Delete,
            Self::List { .. } => Kind::List,
        }
    }
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Token with which the operation was submitted.
    pub token: u64,
    /// Kind of the operation.
    pub kind: Kind,
    /// The result of a GET or PUT is the number of bytes; the result of a LIST is the number of
    /// names. Other operations have the result 0.
    pub result: Result<u32, CallError>,
    /// Time of the submission.
    pub submitted_ns: u64,
    /// Time at which the client saw the first byte of the object; `None` if the operation is not a
    /// GET.
    pub first_byte_ns: Option<u64>,
    /// Time at which the client saw the result.
    pub completed_ns: u64,
}
