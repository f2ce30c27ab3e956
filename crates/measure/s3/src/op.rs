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
    /// GET of `size_bytes` from `offset_bytes` of an object; completes with the bytes read.
    Get {
        /// The object.
        key: &'a str,
        /// Offset within the object.
        offset_bytes: u64,
        /// Number of bytes to read.
        size_bytes: u32,
        /// True to omit the range header, because the object is `size_bytes` long.
        whole: bool,
        /// Destination in the arena.
        buffer_offset_bytes: u64,
    },
    /// PUT of a whole object, in parts if it is longer than a part. Completes with the number of
    /// bytes written.
    Put {
        /// The object.
        key: &'a str,
        /// Object size in bytes.
        size_bytes: u32,
        /// Source in the arena.
        buffer_offset_bytes: u64,
    },
    /// HEAD of an object.
    Head {
        /// The object.
        key: &'a str,
    },
    /// DELETE of an object. A missing object is not an error.
    Delete {
        /// The object.
        key: &'a str,
    },
    /// LIST (version 2) of the first names with a prefix. Completes with the number of names.
    /// [`crate::Client::listed`] returns the names until the next LIST.
    List {
        prefix: &'a str,
        /// Maximum number of names, up to 1,000.
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
    /// Token from the submission of the operation.
    pub token: u64,
    /// Kind of the operation.
    pub kind: Kind,
    /// For GET and PUT the number of bytes, for LIST the number of names, otherwise 0.
    pub result: Result<u32, CallError>,
    /// Time of the submission.
    pub submitted_ns: u64,
    /// Time at which the client saw the first byte of the object; `None` for all but a GET.
    pub first_byte_ns: Option<u64>,
    /// Time at which the client saw the result.
    pub completed_ns: u64,
}
