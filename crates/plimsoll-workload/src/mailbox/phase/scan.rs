//! Reads every page of every database and checks it.

use crate::step::{ClassGroup, IoKind};

use super::super::context::Ctx;
use super::super::page::check;
use super::super::poison::{Place, Trouble};
use super::super::store::Store;
use super::{Chunks, Lane, Machine, Notes, PhaseIo, Request, Steps, chunk_pages};

/// Reads every page in use, front to back, database after database, and checks each against its
/// generation. Goes on after a damaged page and lists it.
pub type Scan = Machine<ScanSteps>;

/// For which phase a scan is, which names its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanKind {
    /// The checksum phase: class `checksum_read`.
    Checksum,
    /// Streaming backup, reading whole databases: class `backup_read`.
    Backup,
}

/// What [`Scan`] does.
#[derive(Debug)]
pub struct ScanSteps {
    kind: ScanKind,
    chunk_pages: u32,
    page_bytes: u32,
    chunks: Chunks,
    open_chunks: u64,
    all_issued: bool,
}

impl Scan {
    /// Scans the databases of `store`, which must have been closed cleanly, or recovered.
    pub fn new(store: Store, kind: ScanKind, io: PhaseIo) -> Self {
        let steps = ScanSteps {
            kind,
            chunk_pages: chunk_pages(&store, io),
            page_bytes: store.config.page_bytes,
            chunks: Chunks::default(),
            open_chunks: 0,
            all_issued: false,
        };
        Self::with(store, io.depth, steps)
    }
}

impl Steps for ScanSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        match self.kind {
            ScanKind::Checksum => &[("checksum_read", ClassGroup::Phase, true)],
            ScanKind::Backup => &[("backup_read", ClassGroup::Phase, true)],
        }
    }

    fn lane_bytes(&self) -> u64 {
        u64::from(self.chunk_pages) * u64::from(self.page_bytes)
    }

    fn next(
        &mut self,
        store: &mut Store,
        _lane: Lane,
        _alone: bool,
        _notes: &mut Notes,
        _ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        let Some((place, first, count)) = self.chunks.next(store, self.chunk_pages) else {
            self.all_issued = true;
            return None;
        };
        self.open_chunks += 1;
        let (file, offset) = (store.database_file(place), store.geometry.page_offset(first));
        let request = Request::new(IoKind::Read, place, file, offset, count * self.page_bytes);
        Some(request.at(Place::Page(first)))
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
        self.open_chunks -= 1;
        let g = store.geometry;
        let state = store.databases.get(request.place)?;
        let first = (request.offset_bytes / u64::from(self.page_bytes)) as u32;
        for i in 0..request.size_bytes / self.page_bytes {
            let (page, mark) = (first + i, state.marks.get(first + i));
            let at = lane.buffer_at + u64::from(i) * u64::from(self.page_bytes);
            notes.report.pages_checked += 1;
            let Some(bytes) = ctx.arena.bytes(at, self.page_bytes) else { continue };
            if let Err(fault) = check(&g, state.config.id, page, mark, bytes) {
                notes.find(state.config.id, Place::Page(page), Trouble::Page(fault));
            }
        }
        None
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let pages: u64 = store.databases.iter().map(|state| u64::from(state.pages_used)).sum();
        pages * u64::from(self.page_bytes)
    }

    fn finished(&self) -> bool {
        self.all_issued && self.open_chunks == 0
    }
}
