//! Transfer operation of the ring and the thread pool.

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// Reads data into the buffer.
    Read,
    /// Writes the buffer.
    Write,
    /// Writes the buffer, and completes when it is on stable storage (`RWF_DSYNC`).
    WriteDurable,
    /// `fdatasync` of the file; ignores offset, size and buffer.
    Flush,
    /// `fsync` of the file: data and all metadata. Ignores offset, size and buffer.
    Sync,
    /// No I/O. Used to measure the limit of the queue itself.
    Nop,
}

impl OpKind {
    /// Returns true if the operation transfers bytes.
    #[must_use]
    pub fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::WriteDurable)
    }
}

/// Operation on a file of the file table. Its buffer is in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOp {
    pub kind: OpKind,
    /// Index into the file table.
    pub file: u32,
    /// Byte offset in the file.
    pub offset_bytes: u64,
    /// Number of bytes to transfer.
    pub size_bytes: u32,
    /// Byte offset of the buffer in the arena.
    pub buffer_offset_bytes: u64,
    /// Value that is returned with the completion.
    pub user_data: u64,
}

/// Reason why an operation was rejected. Nothing was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The maximum number of operations is in flight: reap completions first.
    #[error("the queue is full: reap completions first")]
    Full,
    /// The buffer's range is not inside the arena.
    #[error("the buffer at {offset_bytes} + {size_bytes} bytes is outside the arena")]
    OutsideArena {
        /// Start of the range.
        offset_bytes: u64,
        /// Length of the range.
        size_bytes: u32,
    },
    /// Metadata operation that this kind of target does not support.
    #[error("this kind of target does not support operations on names or attributes")]
    NoNames,
    /// The file index is not in the table.
    #[error("file {0} is not in the file table")]
    UnknownFile(u32),
    /// The end of the file range is greater than 2⁶³ - 1.
    #[error(
        "the range at {offset_bytes} + {size_bytes} bytes ends after the largest possible \
        file offset"
    )]
    OffsetTooLarge {
        /// Start of the range.
        offset_bytes: u64,
        /// Length of the range.
        size_bytes: u32,
    },
}
