//! The matrix's streams (`plimsoll_workload::matrix`) as a source of operations for files and devices.
//!
//! The workload decides every operation, so that a plan gives the same ones here, over NFS and on a
//! model; this only hands them to the driver, fills writes and checks reads. Operations on names and
//! attributes go to targets that carry them and are refused at the start elsewhere.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_observe::AccessProfiler;
use plimsoll_sys::op::OpKind;
use plimsoll_workload::content::{Content, ContentError};
use plimsoll_workload::matrix::{
    self, InFlight, MatrixError, MetadataKind, Sample, Sampler, StreamConfig, StreamPart, Tracker,
};
use plimsoll_workload::stamp::{DamageCounts, Finding, Generations};

use super::source::{Durable, Op, Source, UNFOLLOWED, Wants};
use crate::backend::NameOp;

/// How often another operation is taken where a write can't be followed.
const ELSEWHERE_MAX: u32 = 16;

/// What writes carry.
#[derive(Clone, Debug)]
pub enum WriteContent {
    /// Whatever the buffers hold: bytes that don't compress, the same ones again and again.
    Buffers,
    /// Made for each write, never the same twice; not followed.
    Made(Content),
    /// Made, and followed where a block is in the sample.
    Sampled {
        /// Makes it.
        content: Content,
        /// Shared by all threads.
        sample: Arc<Sample>,
    },
    /// Made, and followed: by file, what each unit should hold.
    Followed {
        /// Makes it.
        content: Content,
        /// Shared by all threads.
        generations: Arc<[Generations]>,
        /// Check what is read, to the bit.
        verify_reads: bool,
        /// Otherwise check the blocks of it that are read.
        sample: Option<Arc<Sample>>,
    },
}

/// Why a stream can't be driven here.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SourceError {
    /// The stream itself.
    #[error(transparent)]
    Stream(#[from] MatrixError),
    /// Its content can't be made for its transfers.
    #[error("stream {stream:?}: {source}")]
    Content {
        /// The stream.
        stream: String,
        /// Why.
        source: ContentError,
    },
    /// It has operations on names or attributes.
    #[error("stream {0:?} has metadata operations: they need an NFS target")]
    Metadata(String),
    /// Reads are to be checked against content that carries no stamps.
    #[error("stream {0:?}: reads can't be checked without stamps")]
    NoStamps(String),
    /// The generations don't cover what its operations reach.
    #[error("stream {stream:?}: generations of file {file} are tracked for {units} units only")]
    Untracked {
        /// The stream.
        stream: String,
        /// The file.
        file: u32,
        /// What is tracked of it.
        units: usize,
    },
}

/// What the checks of a thread's reads came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// Units by verdict.
    pub counts: DamageCounts,
    /// The first damaged unit.
    pub first_finding: Option<Finding>,
    /// Reads of the measured phase that were checked.
    pub reads: u64,
    /// Units of those that were whole.
    pub units: u64,
}

#[derive(Debug)]
enum Work {
    Nothing,
    Made { content: Content, writes: u32 },
    Sampled { content: Content, writes: u32, sampler: Box<Sampler> },
    Followed(Box<Followed>),
}

/// Every write is followed.
#[derive(Debug)]
struct Followed {
    tracker: Tracker,
    verify_reads: bool,
    sample: Option<Arc<Sample>>,
    unit_bytes: u64,
    /// Reads of the measured phase that were checked.
    reads: u64,
    /// Units that were found whole before it.
    good_before: u64,
}

impl Followed {
    /// Whether a read is to be checked.
    #[inline]
    fn checks(&self, file: u32, offset_bytes: u64, size_bytes: u32) -> bool {
        let (first, units) =
            (offset_bytes / self.unit_bytes, u64::from(size_bytes) / self.unit_bytes);
        let touches = |sample: &Arc<Sample>| sample.touches(file, first, units);
        self.verify_reads || self.sample.as_ref().is_some_and(touches)
    }
}

/// Some clients of a stream, for one thread.
#[derive(Debug)]
pub struct MatrixSource {
    part: StreamPart,
    /// The clients, by their numbers in the stream.
    clients: Box<[u32]>,
    first_class: u16,
    work: Work,
    /// The last operation, if it was one on names or attributes.
    names: Option<NameOp>,
    /// What the operations were, where that is counted.
    profiler: Option<Box<AccessProfiler>>,
    /// Whether the target carries those.
    has_names: bool,
    /// Whether the operations are those of a trace, of which none may be passed over.
    replays: bool,
}

impl MatrixSource {
    /// The clients `clients` of a stream, at most `places` of their operations in flight.
    ///
    /// # Errors
    /// A [`SourceError`] says what can't be.
    pub fn new(
        config: StreamConfig,
        clients: Range<u32>,
        content: WriteContent,
        places: u32,
    ) -> Result<Self, SourceError> {
        if config.metadata_percent > 0.0 {
            return Err(SourceError::Metadata(config.name));
        }
        Self::of_clients(config, clients.collect(), content, places)
    }

    /// Some clients of a stream, by their numbers in it, operations on names and attributes too.
    ///
    /// # Errors
    /// A [`SourceError`] says what can't be.
    pub fn of_clients(
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
            WriteContent::Followed { content, generations, verify_reads, sample } => {
                Work::Followed(Box::new(Followed {
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
        let replays = config.trace.is_some();
        let part = StreamPart::new(config, first..end)?;
        Ok(Self {
            part,
            clients,
            first_class: 0,
            work,
            names: None,
            profiler: None,
            has_names,
            replays,
        })
    }

    /// Counts its classes from `first_class` on, where several streams are recorded side by side.
    #[must_use]
    pub fn with_first_class(mut self, first_class: u16) -> Self {
        self.first_class = first_class;
        self
    }

    /// The clients, by their numbers in the stream.
    #[must_use]
    pub fn clients(&self) -> &[u32] {
        &self.clients
    }

    /// Number of the first of its classes.
    #[must_use]
    pub fn first_class(&self) -> u16 {
        self.first_class
    }

    /// Whether it replays a trace, and has given all of it.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.part.is_replayed()
    }

    /// Has what the operations are counted.
    #[must_use]
    pub fn with_profiler(mut self, profiler: AccessProfiler) -> Self {
        self.profiler = Some(Box::new(profiler));
        self
    }

    /// What the operations were, where that was counted.
    #[must_use]
    pub fn profiler(&self) -> Option<&AccessProfiler> {
        self.profiler.as_deref()
    }

    /// What the checks have come to so far.
    #[must_use]
    pub fn checks(&self) -> Checks {
        match &self.work {
            Work::Followed(followed) => {
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

/// Whether the content fits the transfers, and the generations cover the files.
fn check(config: &StreamConfig, content: &WriteContent) -> Result<(), SourceError> {
    let (content, generations, verify_reads) = match content {
        WriteContent::Buffers => return Ok(()),
        WriteContent::Made(content) | WriteContent::Sampled { content, .. } => {
            (content, None, false)
        }
        WriteContent::Followed { content, generations, verify_reads, .. } => {
            (content, Some(generations), *verify_reads)
        }
    };
    let stream = || config.name.clone();
    let wrong = |source| SourceError::Content { stream: stream(), source };
    for size_bytes in config.all_sizes_bytes() {
        content.first_unit(config.align_bytes, size_bytes as usize).map_err(wrong)?;
    }
    content.first_unit(config.files.offset_bytes, 0).map_err(wrong)?;
    if verify_reads && !content.has_stamps() {
        return Err(SourceError::NoStamps(stream()));
    }
    let Some(generations) = generations else { return Ok(()) };
    let needed = config.files.file_size_bytes / content.unit_bytes() as u64;
    for share in 0..config.files.shares {
        for file in 0..config.files.files_per_share {
            let file = config.files.file(share, file);
            let units = generations.get(file as usize).map_or(0, Generations::units);
            if (units as u64) < needed {
                return Err(SourceError::Untracked { stream: stream(), file, units });
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
    /// Keeps an operation on names or attributes for [`Source::names`].
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
        let followed = match &mut self.work {
            Work::Followed(followed) => followed,
            Work::Sampled { sampler, .. } => {
                let kind = kind(next.kind)?;
                let (file, offset, size) = (next.file, next.offset_bytes, next.size_bytes);
                let followed = match kind {
                    OpKind::Read => sampler.begin_read(file, offset, size),
                    OpKind::Write | OpKind::WriteDurable => sampler.begin_write(file, offset, size),
                    _ => None,
                };
                let tag = followed.map_or(UNFOLLOWED, InFlight::number);
                return Some(op(&next, kind, tag, first_class));
            }
            _ => return Some(op(&next, kind(next.kind)?, UNFOLLOWED, first_class)),
        };
        let (mut next, mut tries) = (next, 0);
        loop {
            let kind = kind(next.kind)?;
            let (file, offset, size) = (next.file, next.offset_bytes, next.size_bytes);
            let begun = match kind {
                OpKind::Write | OpKind::WriteDurable => {
                    tries += 1;
                    match followed.tracker.begin_write(file, offset, size) {
                        Some(begun) => begun,
                        // Six writes of one unit are in flight: another operation instead.
                        None if tries < ELSEWHERE_MAX && !self.replays => {
                            next = self.part.next(client)?;
                            if let matrix::OpKind::Metadata(kind) = next.kind {
                                return Some(self.named(kind, client, &next));
                            }
                            continue;
                        }
                        // Nowhere to write: read what is being written.
                        None => {
                            let read = matrix::Op { class: 0, ..next };
                            return Some(op(&read, OpKind::Read, UNFOLLOWED, first_class));
                        }
                    }
                }
                OpKind::Read if followed.checks(file, offset, size) => {
                    let Some(begun) = followed.tracker.begin_read(file, offset, size) else {
                        return Some(op(&next, kind, UNFOLLOWED, first_class));
                    };
                    begun
                }
                _ => return Some(op(&next, kind, UNFOLLOWED, first_class)),
            };
            return Some(op(&next, kind, begun.number(), first_class));
        }
    }
}

impl Source for MatrixSource {
    fn wants(&self) -> Wants {
        let fill = !matches!(self.work, Work::Nothing);
        let completions = matches!(self.work, Work::Followed(_));
        let followed = matches!(self.work, Work::Sampled { .. });
        let (names, looks) = (self.has_names, self.profiler.is_some());
        let config = self.part.config();
        let durable = config.durable_class().map(|class| Durable {
            class: self.first_class + class,
            every_writes: config.sync.every_writes.max(1),
        });
        Wants { fill, completions, followed, names, looks, durable }
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

    fn wants_look(&mut self) -> bool {
        self.profiler.as_mut().is_some_and(|profiler| profiler.samples_content())
    }

    fn look(&mut self, op: &Op, buffer: &[u8]) {
        if let Some(profiler) = &mut self.profiler {
            profiler.content(op.file, op.offset_bytes, buffer);
        }
    }

    fn measure_begins(&mut self) {
        if let Some(profiler) = &mut self.profiler {
            profiler.reset();
        }
        match &mut self.work {
            Work::Sampled { sampler, .. } => sampler.measure_begins(),
            Work::Followed(followed) => {
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
            Work::Followed(followed) => {
                followed.tracker.fill(InFlight::from_number(op.tag), buffer)
            }
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
            Work::Followed(followed) if is_read => {
                followed.reads += 1;
                let Followed { tracker, sample, .. } = &mut **followed;
                return match sample {
                    Some(sample) => tracker.end_sampled_read(begun, buffer, sample),
                    None => tracker.end_read(begun, buffer),
                };
            }
            Work::Followed(followed) => followed.tracker.end_write(begun, true),
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
            Work::Followed(followed) if is_read => followed.tracker.drop_read(begun),
            Work::Followed(followed) => followed.tracker.end_write(begun, false),
        }
    }
}

#[cfg(test)]
mod tests;
