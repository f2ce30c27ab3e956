//! File handles, and the numbers by which operations refer to objects and servers.

use std::fmt;

/// Number of a server in a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

/// Number of a file or directory in a client. It is the index in the client's handle table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// A file handle (`nfs_fh3`). It consists of up to 64 bytes, which only the server interprets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    size: u8,
    bytes: [u8; 64],
}

impl Handle {
    /// The empty handle, which refers to no object. An entry of the handle table contains it until
    /// a LOOKUP or CREATE returns the real handle.
    pub const EMPTY: Self = Self { size: 0, bytes: [0; 64] };

    /// Creates a handle from bytes. Returns `None` if there are more than 64 bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut handle = Self::EMPTY;
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        handle.size = u8::try_from(bytes.len()).ok()?;
        Some(handle)
    }

    /// Returns the bytes of the handle.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size.min(64))]
    }

    /// Returns true for [`Handle::EMPTY`].
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
