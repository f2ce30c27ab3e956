//! Phases before and after the load: create, format, duplicate, scan, recover, verify.
//!
//! Each phase implements [`Steps`] and runs in a [`Machine`]. The machine has a fixed number of
//! lanes, each with a buffer and at most one I/O in flight. For each idle lane, the machine
//! requests the next I/O from the steps.

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

/// Maximum number of stored findings; further findings are only counted.
const FINDINGS_MAX: usize = 1000;

/// Size and queue depth of a phase's I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseIo {
    /// Size of one I/O in bytes, rounded to whole pages. For log I/O, it is at most the size of a
    /// log file.
    pub chunk_bytes: u32,
    /// Number of I/Os that a phase has in flight.
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
    /// Known number of bytes to transfer. It may grow during the phase.
    pub total_bytes: u64,
}

/// Result of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Report {
    pub pages_checked: u64,
    /// Number of pages that differ from the log but can be restored from it, for each kind of
    /// damage ([`Damage::ALL`]). A crash may cause such damage.
    pub pages_rebuilt: [u64; Damage::ALL.len()],
    /// Number of pages that recovery wrote.
    pub pages_written: u64,
    /// Number of log bytes that were read in order to parse the records.
    pub log_bytes: u64,
    /// Number of changes found in the log after the checkpoint (or in the requested files).
    pub log_changes: u64,
    /// Number of acknowledged log blocks that were read and checked.
    pub log_blocks_checked: u64,
    /// Number of checked pages whose content the log determines.
    pub pages_by_log: u64,
    /// Number of checked pages that the log does not mention, but whose generation the map
    /// determines.
    pub pages_by_map: u64,
    /// Number of checked pages that are undamaged and at their position, but may be out of date:
    /// neither log nor map shows whether they have the last acknowledged version.
    pub pages_unknown: u64,
    /// Number of databases with an unreliable generation map.
    pub maps_untrusted: u64,
    /// Number of expected commits that were found.
    pub commits_found: u64,
    /// Total number of findings. It includes findings that are counted but not listed.
    pub findings: u64,
}

/// A phase: a workload that ends by itself and has a result.
pub trait Phase: StepWorkload {
    fn progress(&self) -> Progress;
    /// Returns the error that ended the phase before its completion, if any.
    fn poison(&self) -> Option<&Poison>;
    /// Returns the first thousand findings of confirmed damage.
    fn findings(&self) -> &[Finding];
    /// Returns suspected damage: pages or blocks that differ from an expectation with an unreliable
    /// source. Such damage is not evidence against the target.
    fn unconfirmed(&self) -> &[Finding];
    /// Returns the result of the phase.
    fn report(&self) -> Report;
    /// Returns true if the phase completed: it was not stopped and did not fail.
    fn is_complete(&self) -> bool;
    /// Returns the store, which the next machine uses.
    fn into_store(self: Box<Self>) -> Store;
}

/// An I/O that a phase requests for a lane.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub kind: IoKind,
    pub file: u32,
    /// Position of the database in the store.
    pub place: usize,
    /// Index into the classes that each database has.
    pub class: u16,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    /// Offset of the transfer in the lane's buffer.
    pub buffer_offset_bytes: u64,
    /// Location that error messages report.
    pub at: Place,
    /// True if the file may end before the end of the transfer.
    pub may_be_short: bool,
}

impl Request {
    /// Creates a transfer that starts at the beginning of the lane's buffer.
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

/// A lane, with its number and the location of its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub number: usize,
    pub buffer_at: u64,
}

/// The findings of a phase, which the machine records.
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

/// Steps of a phase. The [`Machine`] issues and completes their I/Os.
pub trait Steps {
    /// Returns the names and groups of the classes that each database has.
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)];
    /// Returns the size of a lane's buffer in bytes.
    fn lane_bytes(&self) -> u64;
    /// Returns the next step of an idle lane; `None` if the lane has no work, or none until another
    /// I/O completes. `alone` is true if no I/O is in flight.
    fn next(
        &mut self,
        store: &mut Store,
        lane: Lane,
        alone: bool,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request>;
    /// Handles the successful completion of the lane's I/O, which transferred `got` bytes. Returns
    /// the next I/O if the lane continues immediately.
    fn done(
        &mut self,
        store: &mut Store,
        lane: Lane,
        request: Request,
        got: u32,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request>;
    /// Returns the total number of bytes to transfer.
    fn total_bytes(&self, store: &Store) -> u64;
    /// Returns true if all steps of the phase are complete.
    fn finished(&self) -> bool;
}

/// Issues and completes the I/Os of a phase.
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

/// Splits the pages of a file into chunks, from front to back.
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
    /// Returns the next chunk in the databases `places`. The result is the position of the
    /// database, the first page, and the number of pages.
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
