//! Sources of operations.

use std::any::Any;

use plimsoll_sys::op::OpKind;

use crate::backend::NameOp;

/// Tag of an operation whose completion the source ignores ([`SourceCallbacks::followed`]).
pub const UNFOLLOWED: u32 = u32::MAX;

/// One operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Kind of operation.
    pub kind: OpKind,
    /// Class that records the operation.
    pub class: u16,
    /// Index into the file table.
    pub file: u32,
    /// Byte offset in the file.
    pub offset_bytes: u64,
    /// Number of bytes to transfer; 0 for a flush.
    pub size_bytes: u32,
    /// Tag for the source. The source receives it again with the completion.
    pub tag: u32,
}

/// Methods of a source that the driver must call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCallbacks {
    /// True to call [`Source::fill`] before each write.
    pub fill: bool,
    /// True to call [`Source::completed`] or [`Source::failed`] after each operation.
    pub completions: bool,
    /// True to call [`Source::completed`] and [`Source::failed`] only for operations whose tag is
    /// not [`UNFOLLOWED`].
    pub followed: bool,
    /// True to call [`Source::wants_read_sample`] after each complete read.
    pub read_samples: bool,
    /// True to call [`Source::names`] after an operation without data ([`OpKind::Nop`]).
    pub names: bool,
    /// Class that records the time of each write until the end of its flush; `None` if no flush
    /// follows the writes.
    pub durable: Option<DurableWriteClass>,
    /// Class that records the time to the first byte of reads, if the target reports it.
    pub first_byte: Option<FirstByteClass>,
}

/// Classes for the reads of a source and for their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstByteClass {
    /// Class that records the time to the first byte.
    pub class: u16,
    /// Class that records complete reads.
    pub reads: u16,
}

/// Durability of the writes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableWriteClass {
    /// Class that records writes together with their flushes.
    pub class: u16,
    /// Number of writes of a client between two flushes.
    pub every_writes: u32,
}

/// Operations of a group of clients. Drivers call most sources through a pointer, for each
/// operation. The methods must not allocate memory, wait or read a clock.
pub trait Source: Any {
    /// Returns the methods that the driver must call. The driver reads this only once.
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks::default()
    }

    /// Returns the next operation of a client, or `None` after the client's end.
    fn next(&mut self, client: u32) -> Option<Op>;

    /// Returns the class of the client's next operation, which was due but will never start. The
    /// driver does not issue this operation. Returns `None` after the client's end.
    fn never_started(&mut self, client: u32) -> Option<u16> {
        self.next(client).map(|op| op.class)
    }

    /// Returns the operation on names or attributes, if the last result of [`Source::next`] was
    /// such an operation.
    fn names(&self) -> Option<NameOp> {
        None
    }

    /// Fills the buffer of a write just before it is issued.
    fn fill(&mut self, client: u32, op: &Op, buffer: &mut [u8]) {
        let _ = (client, op, buffer);
    }

    /// Receives an operation that transferred all its bytes, with its buffer. Returns `false` if
    /// the check of the content failed. The driver then counts an error, and the source stores the
    /// finding.
    fn completed(&mut self, client: u32, op: &Op, buffer: &mut [u8]) -> bool {
        let _ = (client, op, buffer);
        true
    }

    /// Receives an operation that failed or transferred fewer bytes than requested.
    fn failed(&mut self, client: u32, op: &Op) {
        let _ = (client, op);
    }

    /// Returns true if the source checks the read that has just completed.
    fn wants_read_sample(&mut self) -> bool {
        false
    }

    /// Checks the content of a sampled read.
    fn sample_read(&mut self, op: &Op, buffer: &[u8]) {
        let _ = (op, buffer);
    }

    /// Marks the start of the measured phase. All earlier operations belonged to the warm-up.
    fn begin_measurement(&mut self) {}
}
