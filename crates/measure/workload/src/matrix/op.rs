//! Operations of streams, and the classes in which the operations are recorded.

use plimsoll_plan::SyncKind;

use super::MetadataKind;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    Read,
    Write,
    /// A write that completes only when its data is on stable storage.
    WriteDurable,
    Fsync,
    Fdatasync,
    /// An operation on the name or the attributes of a file.
    Metadata(MetadataKind),
}

/// An operation that a client issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: OpKind,
    /// Index of the operation's class in [`classes`].
    pub class: u16,
    pub share: u32,
    /// Number of the data file in the file table. Create, remove, rename and readdir do not use
    /// this field.
    pub file: u32,
    /// Offset at which a transfer starts in the file, in bytes.
    pub offset_bytes: u64,
    /// Size of a transfer in bytes. It is 0 if the operation transfers no data.
    pub size_bytes: u32,
    /// Number of the small file that the operation creates, removes or renames; see
    /// [`super::name_text`].
    pub name: u64,
    /// New number of the small file, if the operation is a rename.
    pub new_name: u64,
}

impl Op {
    /// Creates an operation that transfers no data.
    pub(super) fn bare(kind: OpKind, share: u32, file: u32) -> Self {
        let (class, size_bytes) = (class_of(kind), 0);
        Self { kind, class, share, file, offset_bytes: 0, size_bytes, name: 0, new_name: 0 }
    }
}

/// Class of operations. The operations of a class are recorded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name of the class, such as `matrix.read`.
    pub name: String,
    /// Kind of the operations in the class. Durable writes are recorded as writes. The two kinds of
    /// sync are recorded as `sync`.
    pub kind: OpKind,
    /// Event with which the latency of each operation in the class ends.
    pub end: LatencyEnd,
}

/// Event with which the latency of an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyEnd {
    /// The latency ends when the operation completes.
    Completion,
    /// The latency ends when the flush that makes the write durable completes.
    Flush,
    /// The latency ends when the first byte of a read arrives.
    FirstByte,
}

/// Returns the index of the class in which operations of this kind are recorded. It is the same for
/// every stream.
pub(super) fn class_of(kind: OpKind) -> u16 {
    match kind {
        OpKind::Read => 0,
        OpKind::Write | OpKind::WriteDurable => 1,
        OpKind::Fsync | OpKind::Fdatasync => 2,
        OpKind::Metadata(kind) => 3 + kind as u16,
    }
}

/// Returns all classes of a stream, in the order of [`Op::class`]: read, write, sync, and the
/// metadata operations. If the stream issues flushes, a class for durable writes follows. In this
/// class, the latency of a write ends with its flush.
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
