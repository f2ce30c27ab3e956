//! Phase that proves that every durably committed change exists. If changes are missing, it lists
//! them. It never writes.

use std::collections::BTreeMap;

use crate::step::{ClassGroup, IoKind};

use super::super::context::Ctx;
use super::super::generation::Mark;
use super::super::page::{Damage, Directory, Fault, PageHead, check, parse};
use super::super::poison::{Failure, Place};
use super::super::session::Commit;
use super::super::store::{LogPosition, Store};
use super::replay::{LastChange, LogReader, LogScan, ReadFrom};
use super::ring;
use super::ring::Chain;
use super::{Lane, Machine, Notes, PhaseIo, Request, Steps, chunk_pages};

/// Reads the log of each database, and then every page.
///
/// Every acknowledged block of the ring must exist, and the log must reach the last acknowledged
/// commit. If the log contains a change of a page after the checkpoint, the page may be in any
/// state that a crash can cause, because the log determines its content. If the log only contains
/// changes of a page before the checkpoint, the page must contain these changes. Any other page
/// must have the generation that the generation map recorded as acknowledged. If the map is not
/// reliable, such a page must be undamaged and at its correct position. It is then counted as
/// unknown.
pub type Verify = Machine<VerifySteps>;

const LOG_READ: u16 = 0;
const READ: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Log,
    Pages,
    Ended,
}

/// Commits that a witness recorded as acknowledged. For each slot, only the latest commit is
/// stored.
#[derive(Clone, Debug, Default)]
pub struct ExpectedCommits(BTreeMap<(u32, u32), BTreeMap<u8, Commit>>);

impl ExpectedCommits {
    /// Adds a commit. It replaces an earlier commit of the same slot.
    pub fn add(&mut self, commit: Commit) {
        let page = self.0.entry((commit.database, commit.page)).or_default();
        let last = page.entry(commit.slot).or_insert(commit);
        if last.version <= commit.version {
            *last = commit;
        }
    }

    /// Compares the slots of a page with the expected commits, and removes these commits from the
    /// list.
    fn take(&mut self, database: u32, page: u32, directory: &Directory, notes: &mut Notes) {
        for commit in self.0.remove(&(database, page)).unwrap_or_default().into_values() {
            let slot = usize::from(commit.slot);
            let (found, live) = (directory.version(slot), directory.is_live(slot));
            // The slot may also have a later version, from a commit that was lazy or was not yet
            // acknowledged.
            if found > commit.version || found == commit.version && live == commit.live {
                notes.report.commits_found += 1;
            } else {
                missing(&commit, found, notes);
            }
        }
    }
}

fn missing(commit: &Commit, found_version: u32, notes: &mut Notes) {
    let (slot, version) = (commit.slot, commit.version);
    let trouble = Failure::CommitMissing { slot, version, found_version };
    notes.find(commit.database, Place::Page(commit.page), trouble);
}

#[derive(Debug)]
pub struct VerifySteps {
    chunk_pages: u32,
    page_bytes: u32,
    reader: LogReader,
    place: usize,
    stage: Stage,
    end_lsn: u64,
    checkpoint: u64,
    /// True if the generation map of the current database is reliable.
    map_trusted: bool,
    /// Latest change of each page, from the whole log that exists.
    replayed: BTreeMap<u32, LastChange>,
    next_page: u32,
    open_chunks: u32,
    expected: ExpectedCommits,
}

impl Verify {
    /// Creates the phase that verifies the databases of `store`. From `store`, the phase uses only
    /// the generation maps. All other state comes from the log. `expected` contains further commits
    /// that must exist.
    pub fn new(store: Store, expected: ExpectedCommits, io: PhaseIo) -> Self {
        let steps = VerifySteps {
            chunk_pages: chunk_pages(&store, io),
            page_bytes: store.config.page_bytes,
            reader: LogReader::new(&store, io.chunk_bytes, ReadFrom::All, false),
            place: 0,
            stage: if store.databases.is_empty() { Stage::Ended } else { Stage::Log },
            end_lsn: 0,
            checkpoint: 0,
            map_trusted: true,
            replayed: BTreeMap::new(),
            next_page: 0,
            open_chunks: 0,
            expected,
        };
        Self::with(store, io.depth, steps)
    }

    /// Marks the store as closed and not written afterwards. All blocks of the rings must then
    /// exist.
    #[must_use]
    pub fn of_closed(mut self) -> Self {
        self.steps.reader.closed = true;
        self
    }
}

impl VerifySteps {
    fn log_read(&mut self, store: &mut Store, notes: &mut Notes) {
        let chain = match self.reader.found() {
            None => return,
            Some(LogScan::Nothing) => None,
            Some(LogScan::Log(chain)) => Some(chain),
        };
        let pages_held = store.pages_held(self.place);
        let log_whole_from = chain.map(|chain| ring::whole_from(store, &chain, self.reader.closed));
        let state = &mut store.databases[self.place];
        let id = state.config.id;
        self.replayed = core::mem::take(&mut self.reader.parser.pages);
        (self.end_lsn, self.checkpoint) = (u64::MAX, 0);
        self.map_trusted = state.generation_map.is_trusted(chain.map_or(0, |chain| chain.end_lsn));
        notes.report.maps_untrusted += u64::from(!self.map_trusted);
        if let Some(Chain { end_lsn, checkpoint, pages_used, epoch, .. }) = chain {
            let mapped_lsn = state.generation_map.durable_lsn();
            let proven_lsn = self.reader.proven_durable_lsn;
            let acknowledged_lsn =
                if self.map_trusted { mapped_lsn.max(proven_lsn) } else { proven_lsn };
            let place = Place::Log(end_lsn);
            if end_lsn < acknowledged_lsn {
                notes.find(id, place, Failure::LogEnds { end_lsn, acknowledged_lsn });
            } else if end_lsn < mapped_lsn {
                let acknowledged_lsn = mapped_lsn;
                notes.find_unconfirmed(id, place, Failure::LogEnds { end_lsn, acknowledged_lsn });
            }
            (self.end_lsn, self.checkpoint) = (end_lsn, checkpoint);
            let last = self.replayed.keys().next_back().map_or(0, |last| last + 1);
            state.pages_used = pages_used.max(last).min(state.config.pages_max);
            state.log = LogPosition { next_lsn: end_lsn, checkpoint, epoch };
            state.log_whole_from = log_whole_from.unwrap_or(0);
        } else {
            notes.find(id, Place::Log(LogPosition::FIRST_LSN), Failure::NoLog);
        }
        if pages_held < state.pages_used {
            let pages_used = state.pages_used;
            let trouble = Failure::FileEnds { pages: pages_held, pages_used };
            notes.find(id, Place::Page(pages_held), trouble);
        }
        self.next_page = 0;
        self.stage = Stage::Pages;
    }

    fn page(&mut self, store: &Store, page: u32, bytes: &[u8], notes: &mut Notes) {
        let g = &store.geometry;
        let state = &store.databases[self.place];
        let id = state.config.id;
        let mark = if self.map_trusted { state.generation_map.get(page) } else { Mark::UNKNOWN };
        let replayed = self.replayed.get(&page).copied();
        let to_replay = replayed.filter(|replayed| replayed.start_lsn >= self.checkpoint);
        notes.report.pages_checked += 1;
        let checked = check(g, id, page, mark, bytes);
        if let Ok(head) = checked
            && head.lsn > self.end_lsn
        {
            let trouble = Failure::PageAhead { page_lsn: head.lsn, end_lsn: self.end_lsn };
            return notes.find(id, Place::Page(page), trouble);
        }
        let directory = match (checked, to_replay) {
            (Ok(head), None) => {
                self.settled(id, page, &head, replayed.as_ref(), notes);
                head.directory
            }
            (checked, Some(replayed)) => {
                notes.report.pages_by_log += 1;
                match checked {
                    Ok(head) if head.lsn >= replayed.end_lsn => head.directory,
                    Ok(_) => replayed.change.directory,
                    Err(fault) => {
                        notes.report.pages_rebuilt[fault.damage as usize] += 1;
                        replayed.change.directory
                    }
                }
            }
            (Err(fault), None) => {
                notes.find(id, Place::Page(page), Failure::Page(fault));
                // The page has an older generation. Its slots still show which commits are missing.
                match parse(g, bytes).filter(|head| (head.database, head.page) == (id, page)) {
                    Some(head) => head.directory,
                    None => Directory::default(),
                }
            }
        };
        self.expected.take(id, page, &directory, notes);
    }

    /// Checks that an undamaged page is up to date, if the log need not restore it. If the log
    /// contains a change of the page before the checkpoint, the page must contain this change.
    /// Otherwise, the generation in the map is compared. If the map is not reliable either, the
    /// page is counted as unknown.
    fn settled(
        &self,
        id: u32,
        page: u32,
        head: &PageHead,
        replayed: Option<&LastChange>,
        notes: &mut Notes,
    ) {
        match replayed {
            Some(replayed) if head.lsn < replayed.end_lsn => {
                let expected_generation = replayed.change.generation;
                let behind = expected_generation.saturating_sub(head.generation);
                let damage = if behind == 1 { Damage::Lost } else { Damage::Stale };
                let fault = Fault { damage, found: Some(*head), expected_generation };
                notes.find(id, Place::Page(page), Failure::Page(fault));
            }
            Some(_) => notes.report.pages_by_log += 1,
            None if self.map_trusted => notes.report.pages_by_map += 1,
            None => notes.report.pages_unknown += 1,
        }
    }

    fn end_database(&mut self, store: &Store, notes: &mut Notes) {
        let id = store.databases[self.place].config.id;
        let left: Vec<_> = self.expected.0.keys().copied().filter(|key| key.0 == id).collect();
        for key in left {
            let commits = self.expected.0.remove(&key).unwrap_or_default();
            commits.values().for_each(|commit| missing(commit, 0, notes));
        }
        self.place += 1;
        self.stage = Stage::Ended;
        if self.place < store.databases.len() {
            self.stage = Stage::Log;
            self.reader.start(store, self.place);
        }
    }
}

impl Steps for VerifySteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        &[("verify_log_read", ClassGroup::Phase, true), ("verify_read", ClassGroup::Phase, true)]
    }

    fn lane_bytes(&self) -> u64 {
        let pages = u64::from(self.chunk_pages) * u64::from(self.page_bytes);
        pages.max(u64::from(self.reader.chunk_bytes()))
    }

    fn next(
        &mut self,
        store: &mut Store,
        _lane: Lane,
        alone: bool,
        notes: &mut Notes,
        _ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        loop {
            match self.stage {
                Stage::Log => {
                    if let Some(request) = self.reader.next(store, alone, notes) {
                        return Some(request.class(LOG_READ));
                    }
                    self.reader.found()?;
                    self.log_read(store, notes);
                }
                Stage::Pages => {
                    let used = store.databases.get(self.place)?.pages_used;
                    let used = used.min(store.pages_held(self.place));
                    let (first, count) =
                        (self.next_page, (used - self.next_page).min(self.chunk_pages));
                    if count > 0 {
                        self.next_page += count;
                        self.open_chunks += 1;
                        let file = store.database_file(self.place);
                        let (at, size) =
                            (store.geometry.page_offset(first), count * self.page_bytes);
                        let request = Request::new(IoKind::Read, self.place, file, at, size);
                        return Some(request.class(READ).at(Place::Page(first)));
                    }
                    if self.open_chunks > 0 {
                        return None;
                    }
                    self.end_database(store, notes);
                }
                Stage::Ended => return None,
            }
        }
    }

    fn done(
        &mut self,
        store: &mut Store,
        lane: Lane,
        request: Request,
        _got: u32,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if request.class == LOG_READ {
            self.reader.done(store, lane, request, notes, ctx);
            return None;
        }
        self.open_chunks -= 1;
        let first = (request.offset_bytes / u64::from(self.page_bytes)) as u32;
        for i in 0..request.size_bytes / self.page_bytes {
            let at = lane.buffer_at + u64::from(i) * u64::from(self.page_bytes);
            match ctx.arena.bytes(at, self.page_bytes) {
                Some(bytes) => self.page(store, first + i, bytes, notes),
                None => notes.report.pages_checked += 1,
            }
        }
        None
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let pages: u64 = store.databases.iter().map(|state| u64::from(state.pages_used)).sum();
        pages * u64::from(self.page_bytes) + store.ring_bytes() * store.databases.len() as u64
    }

    fn finished(&self) -> bool {
        self.stage == Stage::Ended
    }
}
