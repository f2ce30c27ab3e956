//! Source of operations for the streams of a matrix (`plimsoll_workload::matrix`), for files and
//! devices.
//!
//! The workload chooses every operation. A plan therefore has the same operations on files, over
//! NFS and on a model. This source passes the operations to the driver, fills the buffers of writes
//! and checks the data of reads. Operations on names and attributes need a target that supports
//! them. Other targets reject these operations when the run starts.

use std::sync::Arc;

use plimsoll_observe::AccessProfiler;
use plimsoll_sys::op::OpKind;
use plimsoll_workload::content::{Content, ContentError};
use plimsoll_workload::matrix::{
    self, InFlight, MatrixError, MetadataKind, Sample, Sampler, StreamConfig, StreamPart, Tracker,
};
use plimsoll_workload::stamp::{DamageCounts, Finding, Generations};

use super::source::{DurableWriteClass, FirstByteClass, Op, Source, SourceCallbacks, UNFOLLOWED};
use crate::backend::NameOp;

#[derive(Clone, Debug)]
pub enum WriteContent {
    /// Every write contains the initial content of its buffer, which is incompressible.
    Buffers,
    /// The content is generated for each write and is never repeated. It is not tracked.
    Made(Content),
    /// The content is generated. It is tracked only for the blocks in the sample.
    Sampled {
        /// Generator of the content.
        content: Content,
        /// Sample of blocks. All threads share it.
        sample: Arc<Sample>,
    },
    /// The content is generated. It is tracked for all blocks: the generations record the expected
    /// content of each unit of a file.
    Tracked {
        /// Generator of the content.
        content: Content,
        /// Generations of the units in each file. All threads share them.
        generations: Arc<[Generations]>,
        /// True if every bit of every read is checked.
        verify_reads: bool,
        /// Sample of blocks. If `verify_reads` is false, only reads that touch these blocks are
        /// checked.
        sample: Option<Arc<Sample>>,
    },
}

/// Reason why this thread can't drive a stream.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SourceError {
    /// The stream itself is invalid.
    #[error(transparent)]
    Stream(#[from] MatrixError),
    /// The content can't be generated for transfers of the stream's sizes.
    #[error("stream {stream:?}: {source}")]
    Content {
        stream: String,
        /// Reason why the content can't be generated.
        source: ContentError,
    },
    /// The plan checks reads, but the content has no stamps.
    #[error("stream {0:?}: reads can't be checked without stamps")]
    NoStamps(String),
    /// Generations are not tracked for all blocks that the operations access.
    #[error("stream {stream:?}: in file {file}, the generations of only {units} units are tracked")]
    Untracked {
        stream: String,
        file: u32,
        /// Number of units in the file whose generations are tracked.
        units: usize,
    },
}

/// Result of the content checks for all reads of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// Number of units, counted by verdict.
    pub counts: DamageCounts,
    /// First damaged unit that was detected.
    pub first_finding: Option<Finding>,
    /// Number of checked reads in the measured phase.
    pub reads: u64,
    /// Number of intact units in the checked reads of the measured phase.
    pub units: u64,
}

#[derive(Debug)]
enum Work {
    Nothing,
    Made { content: Content, writes: u32 },
    Sampled { content: Content, writes: u32, sampler: Box<Sampler> },
    Tracked(Box<TrackedWork>),
}

/// State of a source whose writes are all tracked.
#[derive(Debug)]
struct TrackedWork {
    tracker: Tracker,
    verify_reads: bool,
    sample: Option<Arc<Sample>>,
    unit_bytes: u64,
    /// Number of checked reads in the measured phase.
    reads: u64,
    /// Number of intact units in the checked reads before the measured phase.
    good_before: u64,
}

impl TrackedWork {
    /// Returns true if the content of this read must be checked.
    #[inline]
    fn checks(&self, file: u32, offset_bytes: u64, size_bytes: u32) -> bool {
        let (first, units) =
            (offset_bytes / self.unit_bytes, u64::from(size_bytes) / self.unit_bytes);
        let touches = |sample: &Arc<Sample>| sample.touches(file, first, units);
        self.verify_reads || self.sample.as_ref().is_some_and(touches)
    }
}

/// Source of operations for the clients of one stream that one thread drives.
#[derive(Debug)]
pub struct MatrixSource {
    part: StreamPart,
    /// For each client of this source: its number in the stream.
    clients: Box<[u32]>,
    first_class: u16,
    work: Work,
    /// Latest operation, if it was an operation on names or attributes.
    names: Option<NameOp>,
    /// Profiler that counts the operations; `None` if the run does not profile operations.
    profiler: Option<Box<AccessProfiler>>,
    /// True if the target supports operations on names.
    has_names: bool,
}

impl MatrixSource {
    /// Creates a source for some clients of a stream. `clients` contains the numbers of these
    /// clients in the stream, and `places` is the maximum number of operations in flight.
    ///
    /// # Errors
    /// [`SourceError`] if the stream can't be driven with this content.
    pub fn new(
        config: StreamConfig,
        clients: Box<[u32]>,
        content: WriteContent,
        places: u32,
    ) -> Result<Self, SourceError> {
        check(&config, &content)?;
        let size_bytes_max = config.size_bytes_max();
        let work = match content {
            WriteContent::Buffers => Work::Nothing,
            WriteContent::Made(content) => Work::Made { content, writes: 0 },
            WriteContent::Sampled { content, sample } => Work::Sampled {
                sampler: Box::new(Sampler::new(content.clone(), sample, places, size_bytes_max)),
                content,
                writes: 0,
            },
            WriteContent::Tracked { content, generations, verify_reads, sample } => {
                Work::Tracked(Box::new(TrackedWork {
                    unit_bytes: content.unit_bytes() as u64,
                    tracker: Tracker::new(content, generations, places, size_bytes_max),
                    verify_reads,
                    sample: sample.filter(|_| !verify_reads),
                    reads: 0,
                    good_before: 0,
                }))
            }
        };
        let first = clients.iter().copied().min().unwrap_or(0);
        let end = clients.iter().copied().max().map_or(0, |last| last.saturating_add(1));
        let has_names = config.metadata_percent > 0.0;
        let part = StreamPart::new(config, first..end)?;
        Ok(Self { part, clients, first_class: 0, work, names: None, profiler: None, has_names })
    }

    /// Sets the number of the source's first class. With different numbers, several streams can be
    /// recorded together.
    #[must_use]
    pub fn with_first_class(mut self, first_class: u16) -> Self {
        self.first_class = first_class;
        self
    }

    /// Returns the numbers that this source's clients have in the stream.
    #[must_use]
    pub fn clients(&self) -> &[u32] {
        &self.clients
    }

    /// Returns the number of this source's first class.
    #[must_use]
    pub fn first_class(&self) -> u16 {
        self.first_class
    }

    /// Returns true if the source replays a trace and has issued all operations of its part.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.part.is_replayed()
    }

    /// Adds a profiler that counts the operations.
    #[must_use]
    pub fn with_profiler(mut self, profiler: AccessProfiler) -> Self {
        self.profiler = Some(Box::new(profiler));
        self
    }

    /// Returns the profiler, if the run profiles operations.
    #[must_use]
    pub fn profiler(&self) -> Option<&AccessProfiler> {
        self.profiler.as_deref()
    }

    /// Returns the results of all checks so far.
    #[must_use]
    pub fn checks(&self) -> Checks {
        match &self.work {
            Work::Tracked(followed) => {
                let counts = followed.tracker.counts();
                Checks {
                    counts,
                    first_finding: followed.tracker.first_finding(),
                    reads: followed.reads,
                    units: counts.good.saturating_sub(followed.good_before),
                }
            }
            Work::Sampled { sampler, .. } => {
                let found = sampler.found();
                Checks {
                    counts: found.counts,
                    first_finding: found.first_finding,
                    reads: found.reads,
                    units: found.counts.good,
                }
            }
            _ => Checks::default(),
        }
    }
}

/// Checks that content can be generated for the sizes of the transfers.
///
/// # Errors
/// [`SourceError::Content`].
pub fn check_content(config: &StreamConfig, content: &Content) -> Result<(), SourceError> {
    let wrong = |source| SourceError::Content { stream: config.name.clone(), source };
    for size_bytes in config.all_sizes_bytes() {
        content.first_unit(config.align_bytes, size_bytes as usize).map_err(wrong)?;
    }
    content.first_unit(config.files.offset_bytes, 0).map_err(wrong)?;
    Ok(())
}

/// Checks that content can be generated for the sizes of the transfers, and that the generations of
/// all blocks are tracked.
fn check(config: &StreamConfig, content: &WriteContent) -> Result<(), SourceError> {
    let (content, generations, verify_reads) = match content {
        WriteContent::Buffers => return Ok(()),
        WriteContent::Made(content) | WriteContent::Sampled { content, .. } => {
            (content, None, false)
        }
        WriteContent::Tracked { content, generations, verify_reads, .. } => {
            (content, Some(generations), *verify_reads)
        }
    };
    check_content(config, content)?;
    if verify_reads && !content.has_stamps() {
        return Err(SourceError::NoStamps(config.name.clone()));
    }
    let Some(generations) = generations else { return Ok(()) };
    let needed = config.files.file_size_bytes / content.unit_bytes() as u64;
    for share in 0..config.files.shares {
        for file in 0..config.files.files_per_share {
            let file = config.files.file(share, file);
            let units = generations.get(file as usize).map_or(0, Generations::units);
            if (units as u64) < needed {
                return Err(SourceError::Untracked { stream: config.name.clone(), file, units });
            }
        }
    }
    Ok(())
}

#[inline]
fn op(from: &matrix::Op, kind: OpKind, tag: u32, first_class: u16) -> Op {
    let matrix::Op { class, file, offset_bytes, size_bytes, .. } = *from;
    Op { kind, class: first_class + class, file, offset_bytes, size_bytes, tag }
}

#[inline]
fn kind(kind: matrix::OpKind) -> Option<OpKind> {
    Some(match kind {
        matrix::OpKind::Read => OpKind::Read,
        matrix::OpKind::Write => OpKind::Write,
        matrix::OpKind::WriteDurable => OpKind::WriteDurable,
        matrix::OpKind::Fsync => OpKind::Sync,
        matrix::OpKind::Fdatasync => OpKind::Flush,
        matrix::OpKind::Metadata(_) => return None,
    })
}

impl MatrixSource {
    /// Stores an operation on names or attributes, which [`Source::names`] returns later.
    fn named(&mut self, kind: MetadataKind, client: u32, next: &matrix::Op) -> Op {
        let matrix::Op { share, file, name, new_name, .. } = *next;
        self.names = Some(NameOp { kind, client, share, file, name, new_name });
        op(next, OpKind::Nop, UNFOLLOWED, self.first_class)
    }

    #[inline(always)]
    fn choose(&mut self, client: u32) -> Option<Op> {
        let client = *self.clients.get(client as usize)?;
        let first_class = self.first_class;
        let next = self.part.next(client)?;
        if let matrix::OpKind::Metadata(kind) = next.kind {
            return Some(self.named(kind, client, &next));
        }
        let kind = kind(next.kind)?;
        let (file, offset, size) = (next.file, next.offset_bytes, next.size_bytes);
        let is_write = matches!(kind, OpKind::Write | OpKind::WriteDurable);
        let begun = match &mut self.work {
            Work::Tracked(followed) if is_write => followed.tracker.begin_write(file, offset, size),
            Work::Tracked(followed) if kind == OpKind::Read => {
                let is_checked = followed.checks(file, offset, size);
                is_checked.then(|| followed.tracker.begin_read(file, offset, size)).flatten()
            }
            Work::Sampled { sampler, .. } if is_write => sampler.begin_write(file, offset, size),
            Work::Sampled { sampler, .. } if kind == OpKind::Read => {
                sampler.begin_read(file, offset, size)
            }
            _ => None,
        };
        Some(op(&next, kind, begun.map_or(UNFOLLOWED, InFlight::number), first_class))
    }
}

impl Source for MatrixSource {
    fn callbacks(&self) -> SourceCallbacks {
        let fill = !matches!(self.work, Work::Nothing);
        let completions = matches!(self.work, Work::Tracked(_));
        let followed = matches!(self.work, Work::Sampled { .. });
        let (names, read_samples) = (self.has_names, self.profiler.is_some());
        let config = self.part.config();
        let durable = config.durable_class().map(|class| DurableWriteClass {
            class: self.first_class + class,
            every_writes: config.sync.every_writes.max(1),
        });
        let first_byte = config.first_byte_class().map(|class| FirstByteClass {
            class: self.first_class + class,
            reads: self.first_class,
        });
        SourceCallbacks { fill, completions, followed, names, read_samples, durable, first_byte }
    }

    fn names(&self) -> Option<NameOp> {
        self.names
    }

    #[inline(always)]
    fn next(&mut self, client: u32) -> Option<Op> {
        let op = self.choose(client)?;
        if let Some(profiler) = &mut self.profiler {
            let is_read = op.kind == OpKind::Read;
            profiler.operation(client, op.file, is_read, op.offset_bytes, op.size_bytes);
        }
        Some(op)
    }

    fn never_started(&mut self, client: u32) -> Option<u16> {
        let client = *self.clients.get(client as usize)?;
        Some(self.first_class + self.part.next(client)?.class)
    }

    fn wants_read_sample(&mut self) -> bool {
        self.profiler.as_mut().is_some_and(|profiler| profiler.samples_content())
    }

    fn sample_read(&mut self, op: &Op, buffer: &[u8]) {
        if let Some(profiler) = &mut self.profiler {
            profiler.content(op.file, op.offset_bytes, buffer);
        }
    }

    fn begin_measurement(&mut self) {
        if let Some(profiler) = &mut self.profiler {
            profiler.reset();
        }
        match &mut self.work {
            Work::Sampled { sampler, .. } => sampler.measure_begins(),
            Work::Tracked(followed) => {
                (followed.reads, followed.good_before) = (0, followed.tracker.counts().good);
            }
            Work::Nothing | Work::Made { .. } => {}
        }
    }

    #[inline]
    fn fill(&mut self, _: u32, op: &Op, buffer: &mut [u8]) {
        let filled = match &mut self.work {
            Work::Nothing => return,
            Work::Made { content, writes } => {
                *writes = writes.wrapping_add(1).max(1);
                content.fill(op.file, op.offset_bytes, |_| *writes, buffer)
            }
            Work::Sampled { content, writes, sampler } => {
                *writes = writes.wrapping_add(1).max(1);
                match op.tag {
                    UNFOLLOWED => content.fill(op.file, op.offset_bytes, |_| *writes, buffer),
                    tag => sampler.fill(InFlight::from_number(tag), *writes, buffer),
                }
            }
            Work::Tracked(followed) => match op.tag {
                UNFOLLOWED => followed.tracker.fill_untracked(op.file, op.offset_bytes, buffer),
                tag => followed.tracker.fill(InFlight::from_number(tag), buffer),
            },
        };
        debug_assert!(filled.is_ok(), "transfers were checked to be whole units");
    }

    fn completed(&mut self, _: u32, op: &Op, buffer: &mut [u8]) -> bool {
        if op.tag == UNFOLLOWED {
            return true;
        }
        let begun = InFlight::from_number(op.tag);
        let is_read = op.kind == OpKind::Read;
        match &mut self.work {
            Work::Nothing | Work::Made { .. } => {}
            Work::Sampled { sampler, .. } if is_read => return sampler.end_read(begun, buffer),
            Work::Sampled { sampler, .. } => sampler.end_write(begun, true),
            Work::Tracked(followed) if is_read => {
                followed.reads += 1;
                let TrackedWork { tracker, sample, .. } = &mut **followed;
                return match sample {
                    Some(sample) => tracker.end_sampled_read(begun, buffer, sample),
                    None => tracker.end_read(begun, buffer),
                };
            }
            Work::Tracked(followed) => followed.tracker.end_write(begun, true),
        }
        true
    }

    fn failed(&mut self, _: u32, op: &Op) {
        if op.tag == UNFOLLOWED {
            return;
        }
        let begun = InFlight::from_number(op.tag);
        let is_read = op.kind == OpKind::Read;
        match &mut self.work {
            Work::Nothing | Work::Made { .. } => {}
            Work::Sampled { sampler, .. } if is_read => sampler.drop_read(begun),
            Work::Sampled { sampler, .. } => sampler.end_write(begun, false),
            Work::Tracked(followed) if is_read => followed.tracker.drop_read(begun),
            Work::Tracked(followed) => followed.tracker.end_write(begun, false),
        }
    }
}

#[cfg(test)]
mod tests;
