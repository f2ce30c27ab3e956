//! Sources, which choose the operations that a driver executes.

use std::any::Any;

use plimsoll_sys::op::OpKind;

use crate::backend::NameOp;

/// Tag for operations whose completion the source ignores ([`SourceCallbacks::followed`]).
pub const UNFOLLOWED: u32 = u32::MAX;

/// One operation that a client issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Kind of operation.
    pub kind: OpKind,
    /// Number of the class in which the operation is recorded.
    pub class: u16,
    /// Index of the file in the file table.
    pub file: u32,
    /// Offset in the file, in bytes.
    pub offset_bytes: u64,
    /// Number of bytes to transfer; 0 for a flush.
    pub size_bytes: u32,
    /// Number that the source chooses. The driver passes it back to the source with the completion.
    pub tag: u32,
}

/// Determines which methods of a source the driver must call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCallbacks {
    /// True if the driver calls [`Source::fill`] before each write.
    pub fill: bool,
    /// True if the driver calls [`Source::completed`] or [`Source::failed`] after each operation.
    pub completions: bool,
    /// True if these calls are only made for operations whose tag is not [`UNFOLLOWED`]. The calls
    /// are [`Source::completed`] and [`Source::failed`].
    pub followed: bool,
    /// True if the driver calls [`Source::wants_read_sample`] after each read that transferred all
    /// its bytes.
    pub read_samples: bool,
    /// True if the driver calls [`Source::names`] after an operation that transfers no data
    /// ([`OpKind::Nop`]).
    pub names: bool,
    /// Class in which the driver records how long each write took until the end of its flush.
    /// `None` if no flush follows the writes.
    pub durable: Option<DurableWriteClass>,
    /// Class in which the driver records the time to the first byte of reads. `None` if the target
    /// does not report this time.
    pub first_byte: Option<FirstByteClass>,
}

/// Classes in which the driver records the reads of a source and their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstByteClass {
    /// Number of the class for the time to the first byte.
    pub class: u16,
    /// Number of the class for the complete reads.
    pub reads: u16,
}

/// How the writes of a source become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableWriteClass {
    /// Number of the class in which a write is recorded together with its flush.
    pub class: u16,
    /// Number of writes that a client issues between two flushes.
    pub every_writes: u32,
}

/// Source of operations for a group of clients. Drivers call most sources through a pointer for
/// each operation. The methods must not allocate memory, wait, or read a clock.
pub trait Source: Any {
    /// Returns which methods the driver must call. The driver calls this function only once.
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks::default()
    }

    /// Returns the next operation of a client. Returns `None` if the client has no more operations.
    fn next(&mut self, client: u32) -> Option<Op>;

    /// Returns the class of the client's next operation, if this operation was due but will never
    /// start. The driver does not issue the operation. Returns `None` if the client has no more
    /// operations.
    fn never_started(&mut self, client: u32) -> Option<u16> {
        self.next(client).map(|op| op.class)
    }

    /// Returns the details of the operation from the last call of [`Source::next`], if it was an
    /// operation on names or attributes.
    fn names(&self) -> Option<NameOp> {
        None
    }

    /// Fills the buffer of a write. The driver calls this just before it issues the write.
    fn fill(&mut self, client: u32, op: &Op, buffer: &mut [u8]) {
        let _ = (client, op, buffer);
    }

    /// Called when an operation has transferred all its bytes. The source receives the operation
    /// and its buffer. Returns `false` if the content in the buffer is wrong. The driver then
    /// counts an error, and the source stores the finding.
    fn completed(&mut self, client: u32, op: &Op, buffer: &mut [u8]) -> bool {
        let _ = (client, op, buffer);
        true
    }

    /// Called when an operation has failed or has transferred fewer bytes than requested.
    fn failed(&mut self, client: u32, op: &Op) {
        let _ = (client, op);
    }

    /// Returns true if the source will check the content of the read that has just completed.
    fn wants_read_sample(&mut self) -> bool {
        false
    }

    /// Checks the content of a read for which [`Source::wants_read_sample`] returned true.
    fn sample_read(&mut self, op: &Op, buffer: &[u8]) {
        let _ = (op, buffer);
    }

    /// Called when the measured phase starts. All earlier operations belong to the warm-up.
    fn begin_measurement(&mut self) {}
}
