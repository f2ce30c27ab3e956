//! Interface between a stateful workload and its driver.
//!
//! A stateful workload (the mail store) does no I/O and reads no clock. Its driver calls
//! [`StepWorkload::step`] with the current time and with the completions since the last call. The
//! driver then issues the I/Os that this function returns. It issues them to files
//! (`plimsoll-engine`), to a model in virtual time (`plimsoll-model`), or to a simulated disk that
//! loses and tears writes (the crash tests). Time, randomness and I/O are parameters of the
//! workload. The workload therefore makes the same choices in all three environments.

use core::fmt;

/// Time after the end of a phase during which an open loop still starts operations that were due
/// before this end. A minute is enough to process the backlog of a stall. If the target is
/// overloaded, no time would be enough.
pub const BACKLOG_NS: u64 = 60_000_000_000;

/// Kind of an [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// Reads `size_bytes` at `offset_bytes` into the buffer.
    Read,
    /// Writes the buffer. A crash may lose, reorder or tear the write until it has been flushed. To
    /// flush the write, a [`IoKind::Flush`] of the same file must be issued after the write has
    /// completed, and must then complete.
    Write,
    /// Writes the buffer, and completes only when the data is on stable storage (`RWF_DSYNC`).
    WriteDurable,
    /// Makes every completed write of the file durable (`fdatasync`). A flush has no buffer, offset
    /// or size.
    Flush,
}

/// One I/O that a workload asks its driver to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Token that the workload chooses. The [`Completion`] of the I/O contains the same token. It
    /// is unique among the I/Os in flight.
    pub token: u64,
    pub kind: IoKind,
    /// Index of the file in the list that [`StepWorkload::files`] returns.
    pub file: u32,
    /// Index of the class in which the I/O is recorded, in the list that [`StepWorkload::classes`]
    /// returns.
    pub class: u16,
    /// Offset in the file in bytes. It is a multiple of 4,096.
    pub offset_bytes: u64,
    /// Number of bytes to transfer. It is a multiple of 4,096, and 0 for a flush.
    pub size_bytes: u32,
    /// Offset of the buffer in the arena. It is a multiple of 4,096. The workload does not use the
    /// buffer until the I/O has completed.
    pub buffer_offset_bytes: u64,
    /// Intended start time, from which the latency is measured. In a closed loop, it is the time of
    /// the step. In an open loop, it is the time of the scheduled arrival.
    pub intended_ns: u64,
}

/// Completion of one [`Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Token of the [`Io`] that completed.
    pub token: u64,
    /// Number of bytes that were transferred, or the positive `errno`. The driver has already
    /// retried interrupted calls and continued short transfers. A transfer is therefore short only
    /// at the end of the file.
    pub result: Result<u32, i32>,
    /// Time just before the call that submitted the I/O to the target.
    pub submitted_ns: u64,
    /// Time at which the driver first saw the completion.
    pub completed_ns: u64,
}

/// What the workload waits for after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The workload waits until at least one of its I/Os completes.
    Completion,
    /// The workload waits until an I/O completes or until this time, whichever comes first.
    Until(u64),
    /// The workload has ended and has no I/O in flight. The driver must not step it again.
    Done,
}

/// Memory in which the buffers of I/Os are located.
pub trait Arena {
    /// Returns the bytes of a range, or `None` if the driver transfers no data (a model). If there
    /// is no data, the workload neither fills nor parses buffers. Instead, it uses its own record
    /// of what the buffers would contain.
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]>;
}

/// An [`Arena`] without memory. Drivers that transfer no data use it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBytes;

impl Arena for NoBytes {
    fn bytes(&mut self, _offset_bytes: u64, _size_bytes: u32) -> Option<&mut [u8]> {
        None
    }
}

/// An [`Arena`] on the heap, for tests and simulations. It is not aligned for direct I/O.
#[derive(Clone, Debug, Default)]
pub struct HeapArena(pub Vec<u8>);

impl Arena for HeapArena {
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        let start = usize::try_from(offset_bytes).ok()?;
        self.0.get_mut(start..start.checked_add(size_bytes as usize)?)
    }
}

/// Group to which a class of I/Os belongs. The group determines in which table of the reports the
/// class is listed, and whether its I/Os are transactional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClassGroup {
    /// I/Os that count towards the achieved rate: reads and writes of databases, and data
    /// operations of a matrix.
    Transactional,
    /// Operations on the names and attributes of files.
    Metadata,
    /// Sync operations of a matrix. They make earlier writes durable.
    Sync,
    /// Writes of a matrix or of a log. Each latency ends with the flush that made the write
    /// durable.
    Durable,
    /// Reads from an object store. Each latency ends when the first byte arrives.
    FirstByte,
    /// Log writes.
    Log,
    /// Background maintenance: sequential reads whose checksums are checked.
    Maintenance,
    /// Reads of a log that replicate it to other copies of the database.
    Replication,
    /// Formatting of logs, checkpoints, and flushes of databases.
    Upkeep,
    /// Reads and writes in one of these phases: preparation, checksum, backup and recovery.
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

/// Class of I/Os that are recorded together, such as `db3.read` or `db3.log_write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name of the class. The histogram and the series rows of the class have this name as their
    /// tag.
    pub name: String,
    pub group: ClassGroup,
    pub is_read: bool,
    /// Number of the database, or of another instance, to which the class belongs. Tables with one
    /// row for each instance use this number.
    pub instance: u32,
}

/// File of a workload. The driver opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Path of the file, relative to its directory, such as `db03.edb` or `db03-log/0007.log`.
    pub name: String,
    /// Index of the directory that contains the file. The list starts with the directories for
    /// databases. The directories for logs follow, in the order of the plan.
    pub directory: u32,
    /// Size of the file when the workload starts.
    pub size_bytes: u64,
}

/// A stateful workload. It is a state machine that does no I/O itself.
pub trait StepWorkload {
    /// Returns the files of the workload. [`Io::file`] is an index into this list.
    fn files(&self) -> &[FileSpec];
    /// Returns the classes of the workload. [`Io::class`] is an index into this list.
    fn classes(&self) -> &[Class];
    /// Returns the size of the arena that the workload requires. The driver allocates the arena
    /// before the first step.
    fn arena_size_bytes(&self) -> u64;
    /// Returns the maximum number of I/Os that the workload has in flight.
    fn depth_max(&self) -> usize;
    /// Advances the workload to `now_ns`. `completions` contains the completions since the last
    /// step, in the order in which the driver saw them. The workload appends the I/Os that the
    /// driver must issue to `out`, which the caller has cleared. The driver never calls this
    /// function concurrently.
    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait;
    /// Requests the end of the workload. After this, no operations start, except for arrivals of an
    /// open loop that were due before the stop. These operations may start for [`BACKLOG_NS`]. The
    /// workload writes its dirty data and makes it durable. A later step then returns
    /// [`Wait::Done`].
    fn stop(&mut self);
    /// Reports the arrivals of an open loop that were due before the stop and never started. Calls
    /// `each` for each of them, with the class that its I/O would have had and with its due time.
    /// The driver calls this function once, after the end.
    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        let _ = each;
    }
    /// Reports the writes that became durable in the last step, because a flush completed. Calls
    /// `each` with the class, the due time and the submission time of each write.
    fn durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Reports the writes that never became durable. Calls `each` with the same arguments as
    /// [`StepWorkload::durable`]. The driver calls this function once, after the end.
    fn never_durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        let _ = each;
    }
    /// Reports counters and their names (stalls, commits, errors…) for the evidence. The counters
    /// count from the start of the workload.
    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64));
}
