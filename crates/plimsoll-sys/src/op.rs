//! One transfer, as the ring and the thread pool take it.

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// Read into the buffer.
    Read,
    /// Write the buffer.
    Write,
    /// Write the buffer and complete when it is on stable storage (`RWF_DSYNC`).
    WriteDurable,
    /// `fdatasync` of the file; offset, size and buffer are ignored.
    Flush,
    /// `fsync` of the file: data and all metadata. Offset, size and buffer are ignored.
    Sync,
    /// Goes through the queue and does nothing: measures the queue's own ceiling.
    Nop,
}

impl OpKind {
    /// Whether bytes are moved.
    #[must_use]
    pub fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::WriteDurable)
    }
}

/// One operation on a file of the table, with its buffer in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOp {
    /// What to do.
    pub kind: OpKind,
    /// Index into the file table.
    pub file: u32,
    /// Byte offset in the file.
    pub offset_bytes: u64,
    /// Bytes to transfer.
    pub size_bytes: u32,
    /// Byte offset of the buffer in the arena.
    pub buffer_offset_bytes: u64,
    /// Handed back with the completion.
    pub user_data: u64,
}

/// Why an operation was not taken. Nothing was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// As many operations are in flight as the queue was made for: reap first.
    #[error("the queue is full: reap completions first")]
    Full,
    /// The buffer's range is not inside the arena.
    #[error("the buffer at {offset_bytes} + {size_bytes} bytes is outside the arena")]
    OutsideArena {
        /// Start of the range.
        offset_bytes: u64,
        /// Its length.
        size_bytes: u32,
    },
    /// An operation on names or attributes, which this kind of target does not carry.
    #[error("this kind of target carries no operations on names or attributes")]
    NoNames,
    /// The file's index is not in the table.
    #[error("file {0} is not in the file table")]
    UnknownFile(u32),
    /// The file range ends beyond 2⁶³ - 1.
    #[error("the range at {offset_bytes} + {size_bytes} bytes is beyond the largest file offset")]
    OffsetTooLarge {
        /// Start of the range.
        offset_bytes: u64,
        /// Its length.
        size_bytes: u32,
    },
}
