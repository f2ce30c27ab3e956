//! The contract between a stateful workload and whatever drives it.
//!
//! A stateful workload (the mail store) does no I/O and reads no clock. Its driver calls
//! [`StepWorkload::step`] with the present time and the completions since the last call, and issues
//! the I/Os that come back: to files (`plimsoll-engine`), to a model in virtual time
//! (`plimsoll-model`) or to a simulated disk that loses and tears writes (the crash tests). Because
//! time, randomness and I/O are all passed in, the three see the same choices.

use core::fmt;

/// How long after the stop what was due before it in an open loop is still started. An overloaded
/// target's backlog has no end; a minute is enough for one that was held up.
pub const BACKLOG_NS: u64 = 60_000_000_000;

/// Kind of an [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// Read `size_bytes` at `offset_bytes` into the buffer.
    Read,
    /// Write the buffer. It may be lost, reordered or torn in a crash until a later
    /// [`IoKind::Flush`] of the same file that was issued after this write completed has completed.
    Write,
    /// Write the buffer, and complete only when it is on stable storage (`RWF_DSYNC`).
    WriteDurable,
    /// Make every completed write of the file durable (`fdatasync`). No buffer, offset or size.
    Flush,
}

/// One I/O that a workload wants issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Chosen by the workload, handed back in the [`Completion`]. Unique among those in flight.
    pub token: u64,
    /// Kind of the I/O.
    pub kind: IoKind,
    /// Index into the file table that the workload was built with ([`StepWorkload::files`]).
    pub file: u32,
    /// Index into [`StepWorkload::classes`]: under which name it is recorded.
    pub class: u16,
    /// Byte offset in the file; a multiple of 4,096.
    pub offset_bytes: u64,
    /// Bytes to transfer; a multiple of 4,096. 0 for a flush.
    pub size_bytes: u32,
    /// Where in the arena the bytes are: an offset in bytes, a multiple of 4,096. The workload
    /// leaves that range alone until the completion.
    pub buffer_offset_bytes: u64,
    /// When the operation should have started: the time of the step in a closed loop, the
    /// scheduled arrival in an open one. Latency counts from here.
    pub intended_ns: u64,
}

/// The end of one [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The token of the [`Io`].
    pub token: u64,
    /// Bytes transferred, or the positive `errno`. The driver has already retried interrupted calls
    /// and continued short transfers; a short count here is the end of the file.
    pub result: Result<u32, i32>,
    /// Just before the I/O was handed to the target.
    pub submitted_ns: u64,
    /// When its completion was seen.
    pub completed_ns: u64,
}

/// Event that a workload waits for after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing until at least one of its I/Os completes.
    Completion,
    /// A completion, or this time, whichever is first.
    Until(u64),
    /// It has ended and has no I/O in flight. It must not be stepped again.
    Done,
}

/// Memory of I/O buffers.
pub trait Arena {
    /// The bytes of a range, or `None` if the driver transfers no data (a model): then the
    /// workload neither fills nor parses buffers and answers from what it knows to be there.
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]>;
}

/// An [`Arena`] without memory, for drivers that carry no data.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBytes;

impl Arena for NoBytes {
    fn bytes(&mut self, _offset_bytes: u64, _size_bytes: u32) -> Option<&mut [u8]> {
        None
    }
}

/// An [`Arena`] on the heap, for tests and simulations (not aligned for direct I/O).
#[derive(Clone, Debug, Default)]
pub struct HeapArena(pub Vec<u8>);

impl Arena for HeapArena {
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        let start = usize::try_from(offset_bytes).ok()?;
        self.0.get_mut(start..start.checked_add(size_bytes as usize)?)
    }
}

/// Group of an I/O class, which decides in which table it is reported and whether it counts as
/// transactional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClassGroup {
    /// The I/O that the achieved rate counts: database reads and writes, data of a matrix.
    Transactional,
    /// Operations on names and attributes.
    Metadata,
    /// Syncs, which make earlier writes of a matrix durable.
    Sync,
    /// Writes of a matrix or of a log, each to the end of the flush that made it durable.
    Durable,
    /// Log writes.
    Log,
    /// Background maintenance: sequential checksum reads.
    Maintenance,
    /// Log reads on behalf of other copies.
    Replication,
    /// Log formatting, checkpoints and flushes of databases.
    Upkeep,
    /// Reads and writes of a preparation, checksum, backup or recovery phase.
    Phase,
}

impl fmt::Display for ClassGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transactional => "transactional",
            Self::Metadata => "metadata",
            Self::Sync => "sync",
            Self::Durable => "durable",
            Self::Log => "log",
            Self::Maintenance => "maintenance",
            Self::Replication => "replication",
            Self::Upkeep => "upkeep",
            Self::Phase => "phase",
        })
    }
}

/// The name under which I/Os are recorded, such as `db3.read` or `db3.log_write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Tag of the histogram and of the series rows.
    pub name: String,
    /// Group of the class.
    pub group: ClassGroup,
    /// True for reads.
    pub is_read: bool,
    /// Index of the database (or other instance) it belongs to, for tables per instance.
    pub instance: u32,
}

/// A file that a workload does I/O on; the driver opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Name below the directory, such as `db03.edb` or `db03-log/0007.log`.
    pub name: String,
    /// Index of the target directory: databases first, then logs, as the plan lists them.
    pub directory: u32,
    /// Size that the file has when the workload starts.
    pub size_bytes: u64,
}

/// A stateful workload: a state machine without I/O of its own.
pub trait StepWorkload {
    /// The files it works on; [`Io::file`] indexes this.
    fn files(&self) -> &[FileSpec];
    /// The classes it records under; [`Io::class`] indexes this.
    fn classes(&self) -> &[Class];
    /// Returns the required arena size; the driver allocates it before the first step.
    fn arena_size_bytes(&self) -> u64;
    /// The most I/Os it ever has in flight.
    fn depth_max(&self) -> usize;
    /// Advances to `now_ns`. `completions` are those since the last step, in the order seen; I/Os to
    /// issue are appended to `out` (cleared by the caller). Never called concurrently.
    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait;
    /// Asks it to end: sessions start no new operation but, in an open loop and for at most
    /// [`BACKLOG_NS`], those that were due before; dirty state is written back and made durable, and a
    /// later step returns [`Wait::Done`].
    fn stop(&mut self);
    /// Tells what was due before the stop in an open loop and was never begun: the class that its I/O
    /// would have had, and when it was due. Asked once, after the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        let _ = each;
    }
    /// Returns the writes that a flush made durable in the last step: class, due time and
    /// submission time.
    fn durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Gives the writes that no flush has made durable, in the same way. Asked once, after the end.
    fn never_durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Counters since the start by name (stalls, commits, errors…): for the evidence, cumulative.
    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64));
}
