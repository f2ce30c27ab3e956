//! Operations of streams, and the classes in which they are recorded.

use plimsoll_plan::SyncKind;

use super::MetadataKind;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    Read,
    Write,
    /// A write that completes when the data is on stable storage.
    WriteDurable,
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// An operation on names or attributes.
    Metadata(MetadataKind),
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Index into [`classes`].
    pub class: u16,
    pub share: u32,
    /// Number of the data file in the file table. It is not used for create, remove, rename and
    /// readdir.
    pub file: u32,
    /// Byte offset of a transfer.
    pub offset_bytes: u64,
    /// Size of a transfer in bytes; 0 if the operation is not a transfer.
    pub size_bytes: u32,
    /// Number of the small file that is created, removed or renamed; see [`super::name_text`].
    pub name: u64,
    /// Number that a small file gets by a rename.
    pub new_name: u64,
}

impl Op {
    /// Creates an operation that transfers no data.
    pub(super) fn bare(kind: OpKind, share: u32, file: u32) -> Self {
        let (class, size_bytes) = (class_of(kind), 0);
        Self { kind, class, share, file, offset_bytes: 0, size_bytes, name: 0, new_name: 0 }
    }
}

/// A class: operations whose results are recorded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name, such as `matrix.read`.
    pub name: String,
    /// Kind of the operations. Durable writes are recorded as writes, and both kinds of sync as
    /// `sync`.
    pub kind: OpKind,
    /// Event at which the latency of each operation ends.
    pub end: LatencyEnd,
}

/// Event at which the latency of an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyEnd {
    /// The operation completes.
    Completion,
    /// The flush that makes a write durable completes.
    Flush,
    /// The first byte of a read arrives.
    FirstByte,
}

/// Returns the class index of a kind of operation, which is the same for every stream.
pub(super) fn class_of(kind: OpKind) -> u16 {
    match kind {
        OpKind::Read => 0,
        OpKind::Write | OpKind::WriteDurable => 1,
        OpKind::Fsync | OpKind::Fdatasync => 2,
        OpKind::Metadata(kind) => 3 + kind as u16,
    }
}

/// Returns all classes of a stream, in the order of [`Op::class`]: read, write, sync and the
/// metadata operations. If the stream flushes, a class of durable writes follows. A latency in this
/// class includes a write and its flush.
#[must_use]
pub fn classes(stream: &str, sync: SyncKind) -> Vec<Class> {
    let flushes = sync.flushes();
    let sync = if sync == SyncKind::Fdatasync { OpKind::Fdatasync } else { OpKind::Fsync };
    let data = [(OpKind::Read, "read"), (OpKind::Write, "write"), (sync, "sync")];
    let metadata = MetadataKind::ALL.map(|kind| (OpKind::Metadata(kind), kind.word()));
    data.into_iter()
        .chain(metadata)
        .map(|(kind, word)| (kind, word, LatencyEnd::Completion))
        .chain(flushes.then_some((OpKind::Write, "durable", LatencyEnd::Flush)))
        .map(|(kind, word, end)| Class { name: format!("{stream}.{word}"), kind, end })
        .collect()
}
