//! Phase that replays the log and restores pages that a crash lost.

use crate::step::{ClassGroup, IoKind};

use super::super::config::BLOCK_BYTES;
use super::super::context::Ctx;
use super::super::generation::Mark;
use super::super::geometry::Geometry;
use super::super::page::{PageHead, check, parse, render};
use super::super::poison::{Failure, Place};
use super::super::record::{BlockHead, NO_RECORD, seal_block};
use super::super::store::{DatabaseState, LogPosition, Store};
use super::replay::{LastChange, LogReader, LogScan, ReadFrom};
use super::ring;
use super::ring::Chain;
use super::{Lane, Machine, Notes, PhaseIo, Request, Steps};

/// Reads the log of each database, and every page that the log changed since the checkpoint. If a
/// page differs from the log, recovery rewrites it. Recovery then flushes the database file and
/// appends a block that records the recovery. This block starts a new epoch of the log.
///
/// A crash during recovery does no harm. The next recovery starts from the beginning and has the
/// same result.
pub type Recover = Machine<RecoverSteps>;

/// Determines the log position at which [`Recover`] starts the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFrom {
    /// The replay starts at the checkpoint. It reads only the part of the log that is necessary.
    Checkpoint,
    /// The replay starts at least this number of log files before the end of the log, if these
    /// files still exist. Recovery rewrites every page that they mention. The soft recovery phase
    /// generates its I/O in this way.
    LogFiles(u32),
}

const LOG_READ: u16 = 0;
const READ: u16 = 1;
const WRITE: u16 = 2;
const FLUSH: u16 = 3;
const LOG_WRITE: u16 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Log,
    Pages,
    Flush,
    FinalBlock,
    Ended,
}

#[derive(Debug)]
pub struct RecoverSteps {
    from: ReplayFrom,
    page_bytes: u32,
    reader: LogReader,
    place: usize,
    stage: Stage,
    chain: Option<Chain>,
    /// Pages that recovery must still check, in descending order.
    left: Vec<u32>,
    pages_total: u64,
    requested: bool,
    #[cfg(test)]
    pub(crate) mutant: super::super::Mutant,
}

impl Recover {
    /// Creates the phase that recovers the databases of `store`. From `store`, recovery uses only
    /// the generation maps. All other state comes from the log. [`PhaseIo::chunk_bytes`] is the
    /// size of log reads.
    pub fn new(store: Store, from: ReplayFrom, io: PhaseIo) -> Self {
        let log_file_bytes = u64::from(store.config.log_file_bytes);
        let (read, closed) = match from {
            ReplayFrom::Checkpoint => (ReadFrom::Checkpoint, false),
            ReplayFrom::LogFiles(files) => {
                (ReadFrom::Back(u64::from(files) * log_file_bytes), true)
            }
        };
        let steps = RecoverSteps {
            from,
            page_bytes: store.config.page_bytes,
            reader: LogReader::new(&store, io.chunk_bytes, read, closed),
            place: 0,
            stage: if store.databases.is_empty() { Stage::Ended } else { Stage::Log },
            chain: None,
            left: Vec::new(),
            pages_total: 0,
            requested: false,
            #[cfg(test)]
            mutant: super::super::Mutant::None,
        };
        Self::with(store, io.depth, steps)
    }
}

/// Sets the mark of a page to the generation of the page, which matches the log.
fn settle(state: &mut DatabaseState, page: u32, generation: u32) {
    state.generation_map.set(page, Mark::at(generation));
}

impl RecoverSteps {
    fn log_read(&mut self, store: &mut Store, notes: &mut Notes, ctx: &mut Ctx<'_>) {
        let state = &mut store.databases[self.place];
        let id = state.config.id;
        let chain = match self.reader.found() {
            None => return,
            Some(LogScan::Nothing) => {
                return ctx.fail(id, Place::Log(LogPosition::FIRST_LSN), Failure::NoLog);
            }
            Some(LogScan::Log(chain)) => chain,
        };
        let acknowledged_lsn = match state.generation_map.is_trusted(chain.end_lsn) {
            true => state.generation_map.durable_lsn(),
            false => 0,
        };
        let acknowledged_lsn = acknowledged_lsn.max(self.reader.proven_durable_lsn);
        if chain.end_lsn < acknowledged_lsn {
            let trouble = Failure::LogEnds { end_lsn: chain.end_lsn, acknowledged_lsn };
            notes.find(id, Place::Log(chain.end_lsn), trouble);
        }
        state.pages_used = chain.pages_used;
        let pages = &self.reader.parser.pages;
        if let Some(&last) = pages.keys().next_back() {
            state.pages_used = state.pages_used.max(last + 1).min(state.config.pages_max);
        }
        self.left = pages.keys().rev().copied().filter(|&p| p < state.pages_used).collect();
        self.pages_total += self.left.len() as u64;
        self.chain = Some(chain);
        self.stage = Stage::Pages;
    }

    /// Compares a page with its latest change in the log. If recovery must write the page, renders
    /// it into the buffer of the lane.
    fn judge(
        &self,
        store: &mut Store,
        lane: Lane,
        (page, got): (u32, u32),
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        let g = store.geometry;
        let (place, file) = (self.place, store.database_file(self.place));
        let state = store.databases.get_mut(place)?;
        let (id, chain) = (state.config.id, self.chain?);
        let replayed = *self.reader.parser.pages.get(&page)?;
        let mark = state.generation_map.get(page);
        notes.report.pages_checked += 1;
        let write = Request::new(IoKind::Write, place, file, g.page_offset(page), g.page_bytes);
        let write = write.class(WRITE).at(Place::Page(page));
        let Some(bytes) = ctx.arena.bytes(lane.buffer_at, g.page_bytes) else {
            notes.report.pages_written += 1;
            return Some(write);
        };
        let checked = check(&g, id, page, mark, bytes);
        let head = own(&g, id, page, bytes);
        if replayed.start_lsn < chain.checkpoint && got == g.page_bytes {
            // The page was durable before the checkpoint. A crash can therefore not have caused
            // this damage.
            if let Err(fault) = checked {
                ctx.fail(id, Place::Page(page), Failure::Page(fault));
                return None;
            }
        }
        if let Some(head) = head.filter(|head| head.lsn > chain.end_lsn) {
            let trouble = Failure::PageAhead { page_lsn: head.lsn, end_lsn: chain.end_lsn };
            notes.find(id, Place::Page(page), trouble);
        }
        let current =
            head.filter(|head| head.lsn >= replayed.end_lsn && mark.allows(head.generation));
        if let Some(head) = current.filter(|_| self.from == ReplayFrom::Checkpoint) {
            settle(state, page, head.generation);
            return None;
        }
        if let Err(fault) = checked {
            notes.report.pages_rebuilt[fault.damage as usize] += 1;
        }
        let found = head.map_or(0, |head| head.generation).max(replayed.change.generation);
        let generation = mark.newest_of(found) + 1;
        state.generation_map.set(page, Mark { acked: generation - 1, in_flight: true });
        render(&g, &rebuilt(&g, id, generation, &replayed), bytes);
        notes.report.pages_written += 1;
        Some(write)
    }

    fn final_block(&self, store: &Store, lane: Lane, ctx: &mut Ctx<'_>) -> Option<Request> {
        let g = &store.geometry;
        let (state, chain) = (store.databases.get(self.place)?, self.chain?);
        let lsn = chain.end_lsn;
        if let Some(bytes) = ctx.arena.bytes(lane.buffer_at, BLOCK_BYTES) {
            let head = BlockHead {
                database: state.config.id,
                epoch: self.next_epoch(&chain),
                lsn,
                checkpoint: lsn + u64::from(BLOCK_BYTES),
                pages_used: state.pages_used,
                used: 0,
                first_record: NO_RECORD,
                clean: true,
            };
            seal_block(g, &head, bytes);
        }
        let (file, offset) = store.log_place(self.place, lsn);
        let request = Request::new(IoKind::WriteDurable, self.place, file, offset, BLOCK_BYTES);
        Some(request.class(LOG_WRITE).at(Place::Log(lsn)))
    }

    fn next_epoch(&self, chain: &Chain) -> u32 {
        #[cfg(test)]
        if self.mutant == super::super::Mutant::EpochKept {
            return chain.epoch;
        }
        chain.epoch + 1
    }

    fn end_database(&mut self, store: &mut Store) {
        let Some(chain) = self.chain.take() else { return };
        let next_lsn = chain.end_lsn + u64::from(BLOCK_BYTES);
        let log_whole_from = ring::whole_from(store, &chain, self.reader.closed);
        let state = &mut store.databases[self.place];
        state.log_whole_from = log_whole_from;
        state.log = LogPosition { next_lsn, checkpoint: next_lsn, epoch: self.next_epoch(&chain) };
        let acknowledged = state.generation_map.durable_lsn().max(next_lsn);
        state.generation_map.set_durable_lsn(acknowledged);
        self.place += 1;
        self.requested = false;
        self.stage = Stage::Ended;
        if self.place < store.databases.len() {
            self.stage = Stage::Log;
            self.reader.start(store, self.place);
        }
    }
}

/// Returns the header of a page that was read. Returns `None` if the page is damaged, or if it is
/// not page number `page` of this store.
fn own(g: &Geometry, database: u32, page: u32, bytes: &[u8]) -> Option<PageHead> {
    let place = (g.run_id, database, page);
    parse(g, bytes).filter(|head| (head.run_id, head.database, head.page) == place)
}

/// Returns the header that the page must have according to the log. The header includes the
/// directory.
fn rebuilt(g: &Geometry, database: u32, generation: u32, replayed: &LastChange) -> PageHead {
    PageHead {
        run_id: g.run_id,
        database,
        page: replayed.change.page,
        generation,
        lsn: replayed.end_lsn,
        directory: replayed.change.directory,
    }
}

impl Steps for RecoverSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        &[
            ("recovery_log_read", ClassGroup::Phase, true),
            ("recovery_read", ClassGroup::Phase, true),
            ("recovery_write", ClassGroup::Phase, false),
            ("recovery_flush", ClassGroup::Phase, false),
            ("recovery_log_write", ClassGroup::Phase, false),
        ]
    }

    fn lane_bytes(&self) -> u64 {
        u64::from(self.reader.chunk_bytes().max(self.page_bytes))
    }

    fn next(
        &mut self,
        store: &mut Store,
        lane: Lane,
        alone: bool,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if self.stage == Stage::Log {
            match self.reader.next(store, alone, notes) {
                Some(request) => return Some(request.class(LOG_READ)),
                None => self.log_read(store, notes, ctx),
            }
        }
        let file = store.database_file(self.place);
        match self.stage {
            Stage::Pages => {
                if let Some(page) = self.left.pop() {
                    let offset = store.geometry.page_offset(page);
                    let read = IoKind::Read;
                    let request = Request::new(read, self.place, file, offset, self.page_bytes);
                    let request = Request { may_be_short: true, ..request };
                    return Some(request.class(READ).at(Place::Page(page)));
                }
                if !alone {
                    return None;
                }
                self.stage = Stage::Flush;
                Some(Request::new(IoKind::Flush, self.place, file, 0, 0).class(FLUSH))
            }
            Stage::FinalBlock if !self.requested => {
                self.requested = true;
                self.final_block(store, lane, ctx)
            }
            _ => None,
        }
    }

    fn done(
        &mut self,
        store: &mut Store,
        lane: Lane,
        request: Request,
        got: u32,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        match (request.class, request.at) {
            (LOG_READ, _) => {
                self.reader.done(store, lane, request, notes, ctx);
                None
            }
            (READ, Place::Page(page)) => {
                if got < request.size_bytes {
                    let rest = request.size_bytes - got;
                    let at = lane.buffer_at + u64::from(got);
                    ctx.arena.bytes(at, rest).into_iter().for_each(|bytes| bytes.fill(0));
                }
                self.judge(store, lane, (page, got), notes, ctx)
            }
            (WRITE, Place::Page(page)) => {
                let state = &mut store.databases[self.place];
                let generation = state.generation_map.get(page).newest();
                settle(state, page, generation);
                None
            }
            (FLUSH, _) => {
                self.stage = Stage::FinalBlock;
                None
            }
            _ => {
                self.end_database(store);
                None
            }
        }
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let logs = store.ring_bytes() * store.databases.len() as u64;
        logs + 2 * self.pages_total * u64::from(self.page_bytes)
    }

    fn finished(&self) -> bool {
        self.stage == Stage::Ended
    }
}
