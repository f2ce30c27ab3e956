//! Phase that writes the first database of a store.

use crate::step::{ClassGroup, IoKind};

use super::super::context::Ctx;
use super::super::generation::Mark;
use super::super::page::{Directory, PageHead, render};
use super::super::poison::Place;
use super::super::store::Store;
use super::{Lane, Machine, Notes, PhaseIo, Request, Steps, chunk_pages};

/// Writes every page of the first database, from the first page to the last page. Then flushes the
/// database file.
pub type Create = Machine<CreateSteps>;

#[derive(Debug)]
pub struct CreateSteps {
    chunk_pages: u32,
    page_bytes: u32,
    next_page: u32,
    flush_issued: bool,
    finished: bool,
}

impl Create {
    /// Creates the phase that writes the first database of `store`.
    pub fn new(store: Store, io: PhaseIo) -> Self {
        let steps = CreateSteps {
            chunk_pages: chunk_pages(&store, io),
            page_bytes: store.config.page_bytes,
            next_page: 0,
            flush_issued: false,
            finished: store.databases.is_empty(),
        };
        Self::with(store, io.depth, steps)
    }
}

impl Steps for CreateSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        &[("create_write", ClassGroup::Phase, false), ("create_flush", ClassGroup::Phase, false)]
    }

    fn lane_bytes(&self) -> u64 {
        u64::from(self.chunk_pages) * u64::from(self.page_bytes)
    }

    fn next(
        &mut self,
        store: &mut Store,
        lane: Lane,
        alone: bool,
        _notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        let g = store.geometry;
        let file = store.database_file(0);
        let state = store.databases.first_mut()?;
        let count = (state.config.pages_initial - self.next_page).min(self.chunk_pages);
        if count == 0 {
            if !alone || self.flush_issued {
                return None;
            }
            self.flush_issued = true;
            return Some(Request::new(IoKind::Flush, 0, file, 0, 0).class(1));
        }
        let first = self.next_page;
        self.next_page += count;
        for page in first..first + count {
            let head = PageHead {
                run_id: g.run_id,
                database: state.config.id,
                page,
                generation: 1,
                lsn: 0,
                directory: Directory::initial(&g, page),
            };
            state.generation_map.set(page, Mark { acked: 0, in_flight: true });
            let at = lane.buffer_at + u64::from(page - first) * u64::from(g.page_bytes);
            if let Some(bytes) = ctx.arena.bytes(at, g.page_bytes) {
                render(&g, &head, bytes);
            }
        }
        let size = count * g.page_bytes;
        let request = Request::new(IoKind::Write, 0, file, g.page_offset(first), size);
        Some(request.at(Place::Page(first)))
    }

    fn done(
        &mut self,
        store: &mut Store,
        _lane: Lane,
        request: Request,
        _got: u32,
        notes: &mut Notes,
        _ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if request.kind == IoKind::Flush {
            self.finished = true;
            return None;
        }
        let page_bytes = store.config.page_bytes;
        let state = store.databases.first_mut()?;
        let first = (request.offset_bytes / u64::from(page_bytes)) as u32;
        for page in first..first + request.size_bytes / page_bytes {
            state.generation_map.set(page, Mark::at(1));
            notes.report.pages_written += 1;
        }
        state.pages_used = state.config.pages_initial;
        None
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let pages = store.databases.first().map_or(0, |state| state.config.pages_initial);
        u64::from(pages) * u64::from(self.page_bytes)
    }

    fn finished(&self) -> bool {
        self.finished
    }
}
