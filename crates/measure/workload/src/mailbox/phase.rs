//! Phases before and after the load: creation, format, duplication, scan, recovery and
//! verification.
//!
//! Each phase implements [`Steps`] and runs in a [`Machine`]. The machine has a fixed number of
//! lanes. Each lane has a buffer and at most one I/O in flight. The machine asks the steps for the
//! next I/O of each idle lane.

mod create;
mod duplicate;
mod format;
mod recover;
mod replay;
mod ring;
mod scan;
mod verify;

pub use create::Create;
pub use duplicate::Duplicate;
pub use format::Format;
pub use recover::{Recover, ReplayFrom};
pub use scan::{Scan, ScanKind};
pub use verify::{ExpectedCommits, Verify};

use crate::step::{Arena, Class, ClassGroup, Completion, FileSpec, Io, IoKind, StepWorkload, Wait};

use super::context::{Ctx, trouble};
use super::page::Damage;
use super::poison::{Failure, Finding, Place, Poison};
use super::store::Store;

/// Maximum number of findings that are stored. Other findings are only counted.
const FINDINGS_MAX: usize = 1000;

/// Size of a phase's I/Os, and the number of I/Os in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseIo {
    /// Size of one I/O in bytes, which is rounded to whole pages. An I/O of the log is not larger
    /// than a log file.
    pub chunk_bytes: u32,
    /// Maximum number of I/Os that a phase has in flight.
    pub depth: u32,
}

impl Default for PhaseIo {
    /// Returns a size of 1 MiB, and eight I/Os in flight.
    fn default() -> Self {
        Self { chunk_bytes: 1 << 20, depth: 8 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes transferred.
    pub done_bytes: u64,
    /// Number of bytes to transfer, as far as it is known. It may grow during the phase.
    pub total_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Report {
    pub pages_checked: u64,
    /// For each kind of damage ([`Damage::ALL`]): number of damaged pages that can be restored from
    /// the log. A crash may cause such damage.
    pub pages_rebuilt: [u64; Damage::ALL.len()],
    /// Number of pages that recovery wrote.
    pub pages_written: u64,
    /// Number of bytes of the log that were read to parse its records.
    pub log_bytes: u64,
    /// Number of changes that were found in the log after the checkpoint, or in the requested
    /// files.
    pub log_changes: u64,
    /// Number of acknowledged log blocks that were read and checked.
    pub log_blocks_checked: u64,
    /// Number of pages that were compared with the log, because the log determines their content.
    pub pages_by_log: u64,
    /// Number of pages that were compared with the generation map, because the log does not mention
    /// them.
    pub pages_by_map: u64,
    /// Number of checked pages that are undamaged and at their position, but may be out of date:
    /// neither the log nor the map shows which version was acknowledged last.
    pub pages_unknown: u64,
    /// Number of databases whose generation map is not reliable.
    pub maps_untrusted: u64,
    /// Number of expected commits that the store contains.
    pub commits_found: u64,
    /// Total number of findings. It includes findings that were counted and not stored.
    pub findings: u64,
}

/// A phase of a mail store: a workload that ends by itself and returns a result.
pub trait Phase: StepWorkload {
    fn progress(&self) -> Progress;
    /// Returns the error that ended the phase early; `None` if there was no such error.
    fn poison(&self) -> Option<&Poison>;
    /// Returns the first thousand findings about confirmed damage.
    fn findings(&self) -> &[Finding];
    /// Returns suspected damage: pages or blocks that differ from an expectation whose source is
    /// not reliable. This is not evidence that the target is at fault.
    fn unconfirmed(&self) -> &[Finding];
    /// Returns the result of the phase.
    fn report(&self) -> Report;
    /// Returns true if the phase completed, so it was not stopped and did not fail.
    fn is_complete(&self) -> bool;
    /// Returns the store, which the next machine uses.
    fn into_store(self: Box<Self>) -> Store;
}

/// I/O that a phase requests for a lane.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub kind: IoKind,
    pub file: u32,
    /// Position of the database in the mail store.
    pub place: usize,
    /// Index of the I/O's class in the list of classes that each database has.
    pub class: u16,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    /// Offset in the lane's buffer at which the transferred data starts.
    pub buffer_offset_bytes: u64,
    /// Location that an error message states if the I/O fails.
    pub at: Place,
    /// True if it is not an error that the file ends before the end of the transfer.
    pub may_be_short: bool,
}

impl Request {
    /// Creates a transfer whose data starts at the beginning of the lane's buffer.
    pub fn new(kind: IoKind, place: usize, file: u32, offset_bytes: u64, size_bytes: u32) -> Self {
        Self {
            kind,
            file,
            place,
            class: 0,
            offset_bytes,
            size_bytes,
            buffer_offset_bytes: 0,
            at: Place::File,
            may_be_short: false,
        }
    }

    pub fn class(self, class: u16) -> Self {
        Self { class, ..self }
    }

    pub fn at(self, at: Place) -> Self {
        Self { at, ..self }
    }
}

/// Number of a lane, and the location of its buffer in the arena.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub number: usize,
    pub buffer_at: u64,
}

/// Findings and counters that the machine records for a phase.
#[derive(Debug, Default)]
pub struct Notes {
    pub findings: Vec<Finding>,
    pub unconfirmed: Vec<Finding>,
    pub report: Report,
}

impl Notes {
    pub fn find(&mut self, database: u32, place: Place, trouble: Failure) {
        self.report.findings += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { database, place, trouble });
        }
    }

    pub fn find_unconfirmed(&mut self, database: u32, place: Place, trouble: Failure) {
        if self.unconfirmed.len() < FINDINGS_MAX {
            self.unconfirmed.push(Finding { database, place, trouble });
        }
    }
}

/// Steps of a phase. The [`Machine`] issues the I/Os of the steps and handles their completions.
pub trait Steps {
    /// Returns the classes that each database has, with their names and groups.
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)];
    /// Returns the size of a lane's buffer in bytes.
    fn lane_bytes(&self) -> u64;
    /// Returns the next I/O for an idle lane. Returns `None` if the lane has no more work, or if
    /// its work depends on the completion of another I/O. `alone` is true if no I/O is in flight.
    fn next(
        &mut self,
        store: &mut Store,
        lane: Lane,
        alone: bool,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request>;
    /// Handles an I/O of the lane that completed successfully and transferred `got` bytes. If the
    /// lane continues immediately, returns its next I/O.
    fn done(
        &mut self,
        store: &mut Store,
        lane: Lane,
        request: Request,
        got: u32,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request>;
    /// Returns the number of bytes that the phase will transfer.
    fn total_bytes(&self, store: &Store) -> u64;
    /// Returns true if all steps of the phase are complete.
    fn finished(&self) -> bool;
}

/// Issues the I/Os of a phase and handles their completions.
pub struct Machine<S> {
    pub(crate) store: Store,
    pub(crate) steps: S,
    pub(crate) notes: Notes,
    classes: Vec<Class>,
    lanes: Vec<Option<Request>>,
    lane_bytes: u64,
    in_flight: usize,
    done_bytes: u64,
    stopping: bool,
    ended: bool,
    poison: Option<Poison>,
}

impl<S: Steps> Machine<S> {
    pub(crate) fn with(store: Store, depth: u32, steps: S) -> Self {
        let of = |id: u32| {
            let class = move |&(name, group, is_read): &(&str, ClassGroup, bool)| Class {
                name: format!("db{id}.{name}"),
                group,
                is_read,
                instance: id,
            };
            steps.classes().iter().map(class)
        };
        let classes = store.databases.iter().flat_map(|state| of(state.config.id)).collect();
        Self {
            classes,
            lanes: vec![None; depth.clamp(1, 1024) as usize],
            lane_bytes: steps.lane_bytes().next_multiple_of(4096),
            store,
            steps,
            notes: Notes::default(),
            in_flight: 0,
            done_bytes: 0,
            stopping: false,
            ended: false,
            poison: None,
        }
    }

    fn lane(&self, number: usize) -> Lane {
        Lane { number, buffer_at: number as u64 * self.lane_bytes }
    }

    fn issue(&mut self, lane: Lane, request: Request, ctx: &mut Ctx<'_>) {
        self.lanes[lane.number] = Some(request);
        self.in_flight += 1;
        let per_database = self.steps.classes().len();
        ctx.out.push(Io {
            token: lane.number as u64,
            kind: request.kind,
            file: request.file,
            class: (request.place * per_database) as u16 + request.class,
            offset_bytes: request.offset_bytes,
            size_bytes: request.size_bytes,
            buffer_offset_bytes: lane.buffer_at + request.buffer_offset_bytes,
            intended_ns: ctx.now_ns,
        });
    }

    fn complete(&mut self, completion: &Completion, ctx: &mut Ctx<'_>) {
        let number = completion.token as usize;
        let Some(request) = self.lanes.get_mut(number).and_then(Option::take) else { return };
        self.in_flight -= 1;
        let required = if request.may_be_short { 0 } else { request.size_bytes };
        if let Some(trouble) = trouble(completion, required) {
            let database = self.store.databases[request.place].config.id;
            ctx.fail(database, request.at, trouble);
            return;
        }
        let got = completion.result.unwrap_or(0).min(request.size_bytes);
        self.done_bytes += u64::from(request.size_bytes);
        let lane = self.lane(number);
        let Self { steps, store, notes, .. } = self;
        let next = steps.done(store, lane, request, got, notes, ctx);
        if let Some(next) = next.filter(|_| ctx.poison.is_none() && !self.stopping) {
            self.issue(lane, next, ctx);
        }
    }

    fn fill_lanes(&mut self, ctx: &mut Ctx<'_>) {
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_some() || ctx.poison.is_some() {
                continue;
            }
            let (lane, alone) = (self.lane(number), self.in_flight == 0);
            let Self { steps, store, notes, .. } = self;
            let Some(request) = steps.next(store, lane, alone, notes, ctx) else { return };
            self.issue(lane, request, ctx);
        }
    }
}

impl<S: Steps> StepWorkload for Machine<S> {
    fn files(&self) -> &[FileSpec] {
        self.store.files()
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn arena_size_bytes(&self) -> u64 {
        self.lanes.len() as u64 * self.lane_bytes
    }

    fn depth_max(&self) -> usize {
        self.lanes.len()
    }

    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait {
        if self.ended {
            return Wait::Done;
        }
        let mut poison = self.poison.take();
        let mut ctx = Ctx { now_ns, arena, out, poison: &mut poison };
        for completion in completions {
            self.complete(completion, &mut ctx);
        }
        if ctx.poison.is_none() && !self.stopping {
            self.fill_lanes(&mut ctx);
        }
        self.poison = poison;
        self.ended = self.in_flight == 0;
        if self.ended { Wait::Done } else { Wait::Completion }
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64)) {
        let Report { pages_checked, pages_written, log_bytes, log_changes, findings, .. } =
            self.notes.report;
        let instance = self.store.databases.first().map_or(0, |state| state.config.id);
        each("pages_checked", instance, pages_checked);
        each("pages_written", instance, pages_written);
        each("log_bytes_read", instance, log_bytes);
        each("log_changes", instance, log_changes);
        each("log_blocks_checked", instance, self.notes.report.log_blocks_checked);
        each("findings", instance, findings);
    }
}

impl<S: Steps> Phase for Machine<S> {
    fn progress(&self) -> Progress {
        let total_bytes = self.steps.total_bytes(&self.store).max(self.done_bytes);
        Progress { done_bytes: self.done_bytes, total_bytes }
    }

    fn poison(&self) -> Option<&Poison> {
        self.poison.as_ref()
    }

    fn findings(&self) -> &[Finding] {
        &self.notes.findings
    }

    fn unconfirmed(&self) -> &[Finding] {
        &self.notes.unconfirmed
    }

    fn report(&self) -> Report {
        self.notes.report
    }

    fn is_complete(&self) -> bool {
        self.ended && self.poison.is_none() && self.steps.finished()
    }

    fn into_store(self: Box<Self>) -> Store {
        self.store
    }
}

/// Divides the pages of a file into chunks, from the first page to the last page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunks {
    pub place: usize,
    pub page: u32,
}

/// Returns the number of whole pages that fit in a chunk.
pub(crate) fn chunk_pages(store: &Store, io: PhaseIo) -> u32 {
    let page = store.config.page_bytes;
    io.chunk_bytes.clamp(page, 64 << 20) / page
}

impl Chunks {
    /// Returns the next chunk of the databases in `places`. The result contains the position of the
    /// database, the first page and the number of pages.
    pub fn next(&mut self, store: &Store, pages: u32) -> Option<(usize, u32, u32)> {
        loop {
            let state = store.databases.get(self.place)?;
            let left = state.pages_used.saturating_sub(self.page);
            if left > 0 {
                let count = left.min(pages);
                let chunk = (self.place, self.page, count);
                self.page += count;
                return Some(chunk);
            }
            (self.place, self.page) = (self.place + 1, 0);
        }
    }
}
