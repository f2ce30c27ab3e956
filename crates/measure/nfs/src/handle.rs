//! File handles, and the small numbers by which a client's operations name objects and servers.

use std::fmt;

/// A server added to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

/// A file or directory registered with a client: an index into its handle table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// A file handle (`nfs_fh3`): up to 64 bytes that mean something to the server only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    size: u8,
    bytes: [u8; 64],
}

impl Handle {
    /// The handle of no object: what a table entry holds before a LOOKUP or CREATE fills it.
    pub const EMPTY: Self = Self { size: 0, bytes: [0; 64] };

    /// A handle of the given bytes; `None` when there are more than 64.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut handle = Self::EMPTY;
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        handle.size = u8::try_from(bytes.len()).ok()?;
        Some(handle)
    }

    /// Handle as bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size.min(64))]
    }

    /// True for [`Handle::EMPTY`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle(")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
