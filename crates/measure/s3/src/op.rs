//! Operations of a client, and their completions.

use crate::error::CallError;

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads an object or a range of it.
    Get,
    /// Writes a whole object.
    Put,
    /// Asks for an object's attributes.
    Head,
    /// Removes an object.
    Delete,
    /// Lists names.
    List,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::Head, Self::Delete, Self::List];

    /// Name in lower case.
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

/// One operation. Buffers are ranges of the arena that the caller passes when it polls; they belong to
/// the client until the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// GET of `size_bytes` from `offset_bytes` of an object; completes with the bytes read.
    Get {
        /// The object.
        key: &'a str,
        /// Where in it.
        offset_bytes: u64,
        /// How much.
        size_bytes: u32,
        /// Leave the range out: the object is `size_bytes` long.
        whole: bool,
        /// Where to.
        buffer_offset_bytes: u64,
    },
    /// PUT of a whole object; in parts where it is longer than a part. Completes with its bytes.
    Put {
        /// The object.
        key: &'a str,
        /// Object size in bytes.
        size_bytes: u32,
        /// Where from.
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
    /// LIST (version 2) of the first names with a prefix; completes with their number. The names stay
    /// readable in [`crate::Client::listed`] until the next one.
    List {
        /// The prefix.
        prefix: &'a str,
        /// Most names, up to 1,000.
        names_max: u16,
    },
}

impl Op<'_> {
    /// Kind of operation.
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

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Token that the operation was submitted with.
    pub token: u64,
    /// Kind of operation.
    pub kind: Kind,
    /// Bytes for GET and PUT, names for LIST, else 0.
    pub result: Result<u32, CallError>,
    /// When it was first handed over.
    pub submitted_ns: u64,
    /// When its end was seen.
    pub completed_ns: u64,
}
