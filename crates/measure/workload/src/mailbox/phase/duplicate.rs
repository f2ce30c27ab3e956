//! Phase that copies the first database of a store to the other databases.

use crate::step::{ClassGroup, IoKind};

use super::super::context::Ctx;
use super::super::generation::Mark;
use super::super::page::{Directory, PageHead, check, render};
use super::super::poison::{Failure, Place};
use super::super::store::Store;
use super::{Chunks, Lane, Machine, Notes, PhaseIo, Request, Steps, chunk_pages};

/// Reads the first database from the target and checks it. Each page is then written, with new
/// stamps and content, to the same position in every other database.
pub type Duplicate = Machine<DuplicateSteps>;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 2;

#[derive(Debug)]
pub struct DuplicateSteps {
    chunk_pages: u32,
    page_bytes: u32,
    chunks: Chunks,
    databases: usize,
    flushes_issued: usize,
    flushes_done: usize,
    /// For each lane: the directories of the pages that this lane has read.
    read: Vec<Vec<Directory>>,
}

impl Duplicate {
    /// Creates the phase that copies the first database of `store` to all other databases.
    pub fn new(store: Store, io: PhaseIo) -> Self {
        let steps = DuplicateSteps {
            chunk_pages: chunk_pages(&store, io),
            page_bytes: store.config.page_bytes,
            chunks: Chunks::default(),
            databases: store.databases.len(),
            flushes_issued: 0,
            flushes_done: 0,
            read: vec![Vec::new(); io.depth.clamp(1, 1024) as usize],
        };
        Self::with(store, io.depth, steps)
    }
}

impl DuplicateSteps {
    fn buffer_bytes(&self) -> u64 {
        u64::from(self.chunk_pages) * u64::from(self.page_bytes)
    }

    /// Checks the pages of the first database that a lane has read. Stores the directories of these
    /// pages.
    fn check(
        &mut self,
        store: &Store,
        lane: Lane,
        (first, count): (u32, u32),
        ctx: &mut Ctx<'_>,
    ) -> bool {
        let g = store.geometry;
        let (Some(state), Some(read)) = (store.databases.first(), self.read.get_mut(lane.number))
        else {
            return false;
        };
        read.clear();
        for page in first..first + count {
            let at = lane.buffer_at + u64::from(page - first) * u64::from(g.page_bytes);
            let directory = match ctx.arena.bytes(at, g.page_bytes) {
                None => Directory::initial(&g, page),
                Some(bytes) => {
                    match check(&g, state.config.id, page, state.generation_map.get(page), bytes) {
                        Ok(head) => head.directory,
                        Err(fault) => {
                            ctx.fail(state.config.id, Place::Page(page), Failure::Page(fault));
                            return false;
                        }
                    }
                }
            };
            read.push(directory);
        }
        true
    }

    /// Renders pages of the database at position `to`. They are copies of the pages that the lane
    /// has read.
    fn restamp(
        &self,
        store: &mut Store,
        lane: Lane,
        (to, first, count): (usize, u32, u32),
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        let g = store.geometry;
        let file = store.database_file(to);
        let state = store.databases.get_mut(to)?;
        // If a database is smaller than the first database, its file has no space for the remaining
        // pages.
        let count = count.min(state.config.pages_max.saturating_sub(first));
        let pages = (first..first + count).zip(self.read.get(lane.number)?);
        for (page, &directory) in pages {
            let head = PageHead {
                run_id: g.run_id,
                database: state.config.id,
                page,
                generation: 1,
                lsn: 0,
                directory,
            };
            state.generation_map.set(page, Mark { acked: 0, in_flight: true });
            let at = u64::from(page - first) * u64::from(g.page_bytes);
            let at = lane.buffer_at + self.buffer_bytes() + at;
            if let Some(bytes) = ctx.arena.bytes(at, g.page_bytes) {
                render(&g, &head, bytes);
            }
        }
        let size = count * g.page_bytes;
        let request = Request {
            buffer_offset_bytes: self.buffer_bytes(),
            ..Request::new(IoKind::Write, to, file, g.page_offset(first), size)
        };
        Some(request.class(WRITE).at(Place::Page(first)))
    }
}

impl Steps for DuplicateSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        &[
            ("duplicate_read", ClassGroup::Phase, true),
            ("duplicate_write", ClassGroup::Phase, false),
            ("duplicate_flush", ClassGroup::Phase, false),
        ]
    }

    fn lane_bytes(&self) -> u64 {
        2 * self.buffer_bytes()
    }

    fn next(
        &mut self,
        store: &mut Store,
        _lane: Lane,
        alone: bool,
        _notes: &mut Notes,
        _ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if self.databases < 2 {
            return None;
        }
        if self.chunks.place == 0
            && let Some((0, first, count)) = self.chunks.next(store, self.chunk_pages)
        {
            let (file, offset) = (store.database_file(0), store.geometry.page_offset(first));
            let request = Request::new(IoKind::Read, 0, file, offset, count * self.page_bytes);
            return Some(request.class(READ).at(Place::Page(first)));
        }
        self.chunks.place = self.databases;
        if self.flushes_issued == 0 && !alone || self.flushes_issued + 1 >= self.databases {
            return None;
        }
        self.flushes_issued += 1;
        let (to, file) = (self.flushes_issued, store.database_file(self.flushes_issued));
        Some(Request::new(IoKind::Flush, to, file, 0, 0).class(FLUSH))
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
        let first = (request.offset_bytes / u64::from(self.page_bytes)) as u32;
        let count = request.size_bytes / self.page_bytes;
        match request.class {
            READ => {
                notes.report.pages_checked += u64::from(count);
                if !self.check(store, lane, (first, count), ctx) {
                    return None;
                }
            }
            WRITE => {
                let state = &mut store.databases[request.place];
                (first..first + count).for_each(|page| state.generation_map.set(page, Mark::at(1)));
                notes.report.pages_written += u64::from(count);
            }
            _ => {
                self.flushes_done += 1;
                return None;
            }
        }
        let to = request.place + 1;
        let target = store.databases.get_mut(to)?;
        // The keys of a copy depend on the size of its file. All databases therefore have the same
        // size.
        target.pages_used = target.config.pages_initial;
        self.restamp(store, lane, (to, first, count), ctx)
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let pages = store.databases.first().map_or(0, |state| u64::from(state.pages_used));
        match self.databases {
            0 | 1 => 0,
            databases => pages * u64::from(self.page_bytes) * databases as u64,
        }
    }

    fn finished(&self) -> bool {
        self.flushes_done + 1 >= self.databases
    }
}
