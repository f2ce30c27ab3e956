//! Where operations come from.

use std::any::Any;

use plimsoll_sys::op::OpKind;

use crate::backend::NameOp;

/// The tag of an operation whose end its source does not ask for ([`Wants::followed`]).
pub const UNFOLLOWED: u32 = u32::MAX;

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
    /// The same after those alone whose tag is not [`UNFOLLOWED`].
    pub followed: bool,
    /// [`Source::wants_look`] after each read that moved everything.
    pub looks: bool,
    /// [`Source::names`] after an operation that is none of data ([`OpKind::Nop`]).
    pub names: bool,
    /// Where flushes follow the writes, the class that records each write to the end of its flush.
    pub durable: Option<Durable>,
}

/// How the writes of a source become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// Class of the writes with their flushes.
    pub class: u16,
    /// Writes of a client between two flushes.
    pub every_writes: u32,
}

/// The operations of a group of clients. Drivers ask most kinds through a pointer, once an operation; their methods
/// must not allocate, wait or read a clock.
pub trait Source: Any {
    /// What it wants to be asked for; read once.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// The next operation of a client, or `None` when that client has ended.
    fn next(&mut self, client: u32) -> Option<Op>;

    /// The class of the operation that a client would want next. That operation was due and will never
    /// be started: nothing is done for it. `None` when that client has ended.
    fn never_started(&mut self, client: u32) -> Option<u16> {
        self.next(client).map(|op| op.class)
    }

    /// The operation on names or attributes that [`Source::next`] gave last, if it was one.
    fn names(&self) -> Option<NameOp> {
        None
    }

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

    /// Whether the read that has just come back should be looked at.
    fn wants_look(&mut self) -> bool {
        false
    }

    /// Looks at the content of such a read.
    fn look(&mut self, op: &Op, buffer: &[u8]) {
        let _ = (op, buffer);
    }

    /// The measured phase begins: what came before was warm-up.
    fn measure_begins(&mut self) {}
}
