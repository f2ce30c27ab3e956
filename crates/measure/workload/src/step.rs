//! Interface between a stateful workload and its driver.
//!
//! A stateful workload (the mail store) does no I/O and reads no clock. Its driver calls
//! [`StepWorkload::step`] with the current time and the completions since the last call. The driver
//! then issues the returned I/Os: to files (`plimsoll-engine`), to a model in virtual time
//! (`plimsoll-model`), or to a simulated disk that loses and tears writes (the crash tests). Time,
//! randomness and I/O are parameters, so the workload's choices are the same in all three
//! environments.

use core::fmt;

/// Time after the stop during which an open loop still starts operations that were due before the
/// stop. A minute is enough to process the backlog of a stall. If the target is overloaded, no time
/// would be enough.
pub const BACKLOG_NS: u64 = 60_000_000_000;

/// Kind of an [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// Read `size_bytes` at `offset_bytes` into the buffer.
    Read,
    /// Write the buffer. A crash may lose, reorder or tear the write until it has been flushed. The
    /// write is flushed when a [`IoKind::Flush`] of the same file completes that was issued after
    /// the completion of the write.
    Write,
    /// Write the buffer, and complete only when it is on stable storage (`RWF_DSYNC`).
    WriteDurable,
    /// Make every completed write of the file durable (`fdatasync`). A flush has no buffer, offset
    /// or size.
    Flush,
}

/// One I/O that a workload requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Token that the workload chooses and the [`Completion`] returns. It is unique among the I/Os
    /// in flight.
    pub token: u64,
    /// Kind of the I/O.
    pub kind: IoKind,
    /// Index into the file table that the workload was built with ([`StepWorkload::files`]).
    pub file: u32,
    /// Index into [`StepWorkload::classes`], of the class in which the I/O is recorded.
    pub class: u16,
    /// Byte offset in the file; a multiple of 4,096.
    pub offset_bytes: u64,
    /// Number of bytes to transfer; a multiple of 4,096. It is 0 for a flush.
    pub size_bytes: u32,
    /// Offset of the buffer in the arena, a multiple of 4,096. The workload does not use the buffer
    /// until the I/O completes.
    pub buffer_offset_bytes: u64,
    /// Intended start. In a closed loop, this is the time of the step; in an open loop, the time of
    /// the scheduled arrival. The latency is measured from this time.
    pub intended_ns: u64,
}

/// Completion of one [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Token of the [`Io`] that completed.
    pub token: u64,
    /// Number of bytes transferred, or the positive `errno`. The driver has already retried
    /// interrupted calls and continued short transfers, so a transfer is short only at the end of
    /// the file.
    pub result: Result<u32, i32>,
    /// Time just before the I/O was submitted to the target.
    pub submitted_ns: u64,
    /// Time at which the driver saw the completion.
    pub completed_ns: u64,
}

/// Event that a workload waits for after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The workload has nothing to do until at least one of its I/Os completes.
    Completion,
    /// The workload waits for a completion or for this time, whichever is earlier.
    Until(u64),
    /// The workload has ended and has no I/O in flight. It must not be stepped again.
    Done,
}

/// Memory that contains the I/O buffers.
pub trait Arena {
    /// Returns the bytes of a range, or `None` if the driver transfers no data (a model). Without
    /// data, the workload neither fills nor parses buffers, and uses its own record of what they
    /// would contain.
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]>;
}

/// An [`Arena`] without memory, for drivers that transfer no data.
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

/// Group of an I/O class. It determines in which table reports list the class, and whether its I/Os
/// are transactional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClassGroup {
    /// I/Os that count for the achieved rate: database reads and writes, and data operations of a
    /// matrix.
    Transactional,
    /// Operations on names and attributes.
    Metadata,
    /// Sync operations, which make earlier writes of a matrix durable.
    Sync,
    /// Writes of a matrix or of a log, measured until the end of the flush that made each write
    /// durable.
    Durable,
    /// Reads from an object store, measured until the arrival of the first byte.
    FirstByte,
    /// Log writes.
    Log,
    /// Background maintenance: sequential reads that check checksums.
    Maintenance,
    /// Log reads that replicate a log to other copies of its database.
    Replication,
    /// Log formatting, checkpoints and flushes of databases.
    Upkeep,
    /// Reads and writes in a preparation, checksum, backup or recovery phase.
    Phase,
}

impl fmt::Display for ClassGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transactional => "transactional",
            Self::Metadata => "metadata",
            Self::Sync => "sync",
            Self::Durable => "durable",
            Self::FirstByte => "first_byte",
            Self::Log => "log",
            Self::Maintenance => "maintenance",
            Self::Replication => "replication",
            Self::Upkeep => "upkeep",
            Self::Phase => "phase",
        })
    }
}

/// A class of I/Os that are recorded together, such as `db3.read` or `db3.log_write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name of the class, which is the tag of its histogram and of its series rows.
    pub name: String,
    pub group: ClassGroup,
    pub is_read: bool,
    /// Index of the database, or of another instance. Tables with one row for each instance use it.
    pub instance: u32,
}

/// A file of a workload, which the driver opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Path relative to the directory, such as `db03.edb` or `db03-log/0007.log`.
    pub name: String,
    /// Index of the target directory. The directories for databases are first. The directories for
    /// logs follow, in the order of the plan.
    pub directory: u32,
    /// Size of the file when the workload starts.
    pub size_bytes: u64,
}

/// A stateful workload: a state machine that does no I/O itself.
pub trait StepWorkload {
    /// Returns the files of the workload; [`Io::file`] is an index into this list.
    fn files(&self) -> &[FileSpec];
    /// Returns the classes of the workload; [`Io::class`] is an index into this list.
    fn classes(&self) -> &[Class];
    /// Returns the required size of the arena, which the driver allocates before the first step.
    fn arena_size_bytes(&self) -> u64;
    /// Returns the maximum number of I/Os that the workload has in flight.
    fn depth_max(&self) -> usize;
    /// Advances to `now_ns`. `completions` contains the completions since the last step, in the
    /// order in which the driver saw them. The I/Os to issue are appended to `out`, which the
    /// caller has cleared. The driver never calls this function concurrently.
    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait;
    /// Requests the end. No further operations start, except arrivals of an open loop that were due
    /// before the stop; these may start for [`BACKLOG_NS`]. The workload writes back dirty data and
    /// makes it durable. A later step then returns [`Wait::Done`].
    fn stop(&mut self);
    /// Reports arrivals of an open loop that were due before the stop but never started. Calls
    /// `each` with the class that the I/O would have had, and the due time. The driver calls this
    /// function once, after the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        let _ = each;
    }
    /// Reports the writes that a flush made durable in the last step. Calls `each` with the class,
    /// the due time and the submission time of each write.
    fn durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Reports the writes that never became durable, with the same values as
    /// [`StepWorkload::durable`]. The driver calls this function once, after the end.
    fn never_durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Reports named counters (stalls, commits, errors…) for the evidence. They count from the
    /// start of the workload.
    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64));
}
