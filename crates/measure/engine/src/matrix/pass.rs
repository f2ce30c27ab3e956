//! A pass writes or reads the whole data once, to create it or to verify it. All threads together
//! process each byte once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_plan::Layout;
use plimsoll_sys::file;
use plimsoll_sys::op::OpKind;
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::{InFlight, Tracker};
use plimsoll_workload::stamp::{DamageCounts, Finding, Generations};
use plimsoll_workload::step::{Class, ClassGroup};

use super::data_set::DataSet;
use super::manifest::DataFile;
use crate::stream::source::{Op, Source, SourceCallbacks};
use crate::{EngineError, blocking_call};

/// Number of transfers that each thread has in flight.
pub const CHUNKS_IN_FLIGHT: u32 = 8;

/// What a pass does with the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Writes all data for the first time.
    Fill,
    /// Reads all data. If generations are tracked, also verifies the data.
    Check,
}

/// Source of operations on consecutive chunks. It issues the part of a pass that one thread
/// executes.
#[derive(Debug)]
pub struct PassSource {
    pass: Pass,
    sizes_bytes: Arc<[u64]>,
    contents: Arc<[Content]>,
    content_of: Arc<[usize]>,
    /// Trackers, one for each kind of content. The list is empty if the pass does not verify data.
    trackers: Vec<Tracker>,
    file: u32,
    offset_bytes: u64,
    chunks_left: u64,
    zeros: bool,
    done_bytes: Arc<AtomicU64>,
    chunk_bytes: u32,
}

/// Parameters of a pass.
#[derive(Clone, Debug)]
pub struct PassPlan {
    /// What the pass does with the data.
    pub pass: Pass,
    /// Size of each file. The index is the file number.
    pub sizes_bytes: Arc<[u64]>,
    /// Kinds of content that the files have. Each kind is listed once.
    pub contents: Arc<[Content]>,
    /// For each file: index of its content in `contents`.
    pub content_of: Arc<[usize]>,
    /// Expected generations of the units in each file; `None` if generations are not tracked.
    pub generations: Option<Arc<[Generations]>>,
    /// True if the pass writes zeros instead of generated content.
    pub zeros: bool,
    /// Number of bytes that all threads together have processed.
    pub done_bytes: Arc<AtomicU64>,
    /// Size of one transfer in bytes.
    pub chunk_bytes: u32,
}

impl PassPlan {
    /// Plans a pass over the data of `data_set`.
    ///
    /// # Errors
    /// Fails if a file's content cannot be generated.
    pub fn new(data_set: &DataSet, pass: Pass, zeros: bool) -> Result<Self, EngineError> {
        let mut kinds: Vec<&DataFile> = Vec::new();
        let mut content_of = Vec::new();
        for file in data_set.files() {
            let same =
                |kind: &&DataFile| DataFile { path: kind.path.clone(), ..file.clone() } == **kind;
            content_of.push(kinds.iter().position(same).unwrap_or(kinds.len()));
            if content_of.last() == Some(&kinds.len()) {
                kinds.push(file);
            }
        }
        let contents: Result<Vec<Content>, EngineError> =
            kinds.into_iter().map(|file| data_set.content(file)).collect();
        Ok(Self {
            pass,
            sizes_bytes: data_set.files().iter().map(|file| file.size_bytes).collect(),
            contents: contents?.into(),
            content_of: content_of.into(),
            generations: data_set.generations.clone(),
            zeros,
            done_bytes: Arc::default(),
            chunk_bytes: data_set.chunk_bytes(),
        })
    }

    /// Returns the total size of the data.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.sizes_bytes.iter().sum()
    }

    fn chunks(&self) -> u64 {
        self.sizes_bytes.iter().map(|size| size.div_ceil(self.chunk_bytes.into())).sum()
    }

    /// Divides the pass into `parts` parts. Returns the source of operations for part number
    /// `part`.
    #[must_use]
    pub fn part(&self, part: u64, parts: u64) -> PassSource {
        let (all, parts) = (self.chunks(), parts.max(1));
        let (first, after) = (all * part / parts, all * (part + 1) / parts);
        let tracker = |content: &Content, generations: &Arc<[Generations]>| {
            let generations = Arc::clone(generations);
            Tracker::new(content.clone(), generations, CHUNKS_IN_FLIGHT, self.chunk_bytes)
        };
        let trackers = match &self.generations {
            Some(generations) if self.pass == Pass::Check => {
                self.contents.iter().map(|content| tracker(content, generations)).collect()
            }
            _ => Vec::new(),
        };
        let mut source = PassSource {
            pass: self.pass,
            sizes_bytes: Arc::clone(&self.sizes_bytes),
            contents: Arc::clone(&self.contents),
            content_of: Arc::clone(&self.content_of),
            trackers,
            file: 0,
            offset_bytes: 0,
            chunks_left: after - first,
            zeros: self.zeros,
            done_bytes: Arc::clone(&self.done_bytes),
            chunk_bytes: self.chunk_bytes,
        };
        source.skip(first);
        source
    }
}

impl PassSource {
    /// Skips the first `chunks` chunks. Chunks are counted over all files.
    fn skip(&mut self, mut chunks: u64) {
        for size_bytes in self.sizes_bytes.iter() {
            let here = size_bytes.div_ceil(self.chunk_bytes.into());
            if chunks < here {
                self.offset_bytes = chunks * u64::from(self.chunk_bytes);
                return;
            }
            chunks -= here;
            self.file += 1;
        }
    }

    /// Returns the counts of damaged units, and the first damage that this source detected.
    #[must_use]
    pub fn found(&self) -> (DamageCounts, Option<Finding>) {
        let (mut counts, mut first) = (DamageCounts::default(), None);
        for tracker in &self.trackers {
            counts.merge(&tracker.counts());
            first = first.or(tracker.first_finding());
        }
        (counts, first)
    }

    fn content(&self, file: u32) -> Option<usize> {
        self.content_of.get(file as usize).copied()
    }

    fn tracker(&mut self, file: u32) -> Option<&mut Tracker> {
        let content = self.content(file)?;
        self.trackers.get_mut(content)
    }
}

impl Source for PassSource {
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks {
            fill: self.pass == Pass::Fill,
            completions: true,
            ..SourceCallbacks::default()
        }
    }

    fn next(&mut self, _client: u32) -> Option<Op> {
        if self.chunks_left == 0 {
            return None;
        }
        while self.offset_bytes >= *self.sizes_bytes.get(self.file as usize)? {
            (self.file, self.offset_bytes) = (self.file + 1, 0);
        }
        let (file, offset_bytes) = (self.file, self.offset_bytes);
        let left_bytes = self.sizes_bytes.get(file as usize)? - offset_bytes;
        let size_bytes = left_bytes.min(self.chunk_bytes.into()) as u32;
        self.offset_bytes += u64::from(self.chunk_bytes);
        self.chunks_left -= 1;
        let followed =
            self.tracker(file).and_then(|t| t.begin_read(file, offset_bytes, size_bytes));
        let tag = followed.map_or(u32::MAX, InFlight::number);
        let kind = if self.pass == Pass::Fill { OpKind::Write } else { OpKind::Read };
        let class = u16::from(self.pass == Pass::Fill);
        Some(Op { kind, class, file, offset_bytes, size_bytes, tag })
    }

    fn fill(&mut self, _client: u32, op: &Op, buffer: &mut [u8]) {
        if self.zeros {
            return buffer.fill(0);
        }
        let Some(content) = self.content(op.file).and_then(|at| self.contents.get(at)) else {
            return;
        };
        let filled = content.fill(op.file, op.offset_bytes, |_| 1, buffer);
        debug_assert!(filled.is_ok(), "files were checked to be whole units");
    }

    fn completed(&mut self, _client: u32, op: &Op, buffer: &mut [u8]) -> bool {
        self.done_bytes.fetch_add(op.size_bytes.into(), Ordering::Relaxed);
        if op.tag != u32::MAX
            && let Some(tracker) = self.tracker(op.file)
        {
            // Damage is counted here and reported at the end of the pass. The pass continues to
            // verify the remaining data.
            let _ = tracker.end_read(InFlight::from_number(op.tag), buffer);
        }
        true
    }

    fn failed(&mut self, _client: u32, op: &Op) {
        if op.tag != u32::MAX
            && let Some(tracker) = self.tracker(op.file)
        {
            tracker.drop_read(InFlight::from_number(op.tag));
        }
    }
}

/// Sets the length of the files without writing data. Depending on the layout, disk space is
/// reserved (`allocated`) or each file consists of a single hole (`sparse`).
///
/// # Errors
/// Fails if a system call fails. The error contains the `errno` and the path.
pub fn lay_out(data_set: &DataSet, layout: Layout, stop: &AtomicBool) -> Result<(), EngineError> {
    for data in data_set.files() {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let fd = data_set.open(data, true)?;
        let made = if layout == Layout::Sparse {
            file::truncate(&fd, data.size_bytes)
        } else {
            reserve(&fd, data)
        };
        made.map_err(|error| {
            let doing = format!("reserving {} bytes", data.size_bytes);
            EngineError::system(doing, error.at(&data.path))
        })?;
    }
    Ok(())
}

/// Reserves disk space for a file. If the file system cannot reserve space, this function only sets
/// the length of the file.
fn reserve(fd: &std::os::fd::OwnedFd, data: &DataFile) -> Result<(), plimsoll_sys::SysError> {
    match file::allocate(fd, data.size_bytes) {
        Err(error) if [libc::EOPNOTSUPP, libc::ENOSYS].contains(&error.errno) => {
            file::truncate(fd, data.size_bytes)
        }
        result => result,
    }
}

/// After the operator's request to stop, the run abandons a flush after this time.
const FLUSH_TIMEOUT_AFTER_STOP: Duration = Duration::from_secs(20);

/// Returns the time limit for flushing a file. It is ten minutes plus one second for each MB of the
/// file.
fn flush_timeout(size_bytes: u64) -> Duration {
    Duration::from_secs(600 + size_bytes / 1_000_000)
}

/// Flushes all files to stable storage.
///
/// # Errors
/// Fails with the `errno` of `fsync` and the path. Also fails if a flush takes longer than
/// [`flush_timeout`].
pub fn sync(data_set: &DataSet) -> Result<(), EngineError> {
    for data in data_set.files() {
        let fd = data_set.open(data, true)?;
        let (what, timeout) = (data.path.display().to_string(), flush_timeout(data.size_bytes));
        let flush = move || file::sync_all(&fd);
        blocking_call::run_with_limits(&what, timeout, FLUSH_TIMEOUT_AFTER_STOP, flush)?
            .map_err(|error| EngineError::system("flushing", error.at(&data.path)))?;
    }
    Ok(())
}

/// Returns the classes in which a pass over the data records its operations.
#[must_use]
pub fn pass_classes() -> Vec<Class> {
    let class = |name: &str, is_read| Class {
        name: name.to_owned(),
        group: ClassGroup::Phase,
        is_read,
        instance: 0,
    };
    vec![class("data.read", true), class("data.write", false)]
}
