//! Where operations come from.

use plimsoll_sys::op::OpKind;

/// One operation that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// Under which class it is recorded.
    pub class: u16,
    /// Index into the file table.
    pub file: u32,
    /// Byte offset in the file.
    pub offset_bytes: u64,
    /// Bytes to transfer; 0 for a flush.
    pub size_bytes: u32,
    /// The source's own: handed back with the completion.
    pub tag: u32,
}

/// What a source wants to be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// [`Source::fill`] before each write.
    pub fill: bool,
    /// [`Source::completed`] or [`Source::failed`] after each operation.
    pub completions: bool,
}

/// The operations of a group of clients. A driver is compiled for each kind of source; its methods
/// must not allocate, wait or read a clock.
pub trait Source {
    /// What it wants to be asked for; read once.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// The next operation of a client, or `None` when that client has ended.
    fn next(&mut self, client: u32) -> Option<Op>;

    /// Fills the buffer of a write that is about to be issued.
    fn fill(&mut self, client: u32, op: &Op, buffer: &mut [u8]) {
        let _ = (client, op, buffer);
    }

    /// Takes an operation that moved everything it was to move, with its buffer. `false` where a check
    /// of the content failed: it counts as an error, and the source keeps what it found.
    fn completed(&mut self, client: u32, op: &Op, buffer: &mut [u8]) -> bool {
        let _ = (client, op, buffer);
        true
    }

    /// Takes an operation that failed or moved less than it was to move.
    fn failed(&mut self, client: u32, op: &Op) {
        let _ = (client, op);
    }
}
