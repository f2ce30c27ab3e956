//! Phase that reads and checks every page of every database, and every block of the logs.

use crate::step::{ClassGroup, IoKind};

use super::super::config::BLOCK_BYTES;
use super::super::context::Ctx;
use super::super::page::check;
use super::super::poison::{Failure, Place};
use super::super::record::check_block;
use super::super::store::{LogPosition, Store};
use super::ring::lsn_at;
use super::{Chunks, Lane, Machine, Notes, PhaseIo, Request, Steps, chunk_pages};

/// Reads every page in use, database after database, from the first page to the last page. Checks
/// the generation of each page. If a page is damaged, the scan lists it and continues.
///
/// The checksum phase first reads the logs. Every block from the last round of the ring was
/// acknowledged. Each slot of the ring must therefore contain the block that belongs there. This
/// check finds damage to the log that the load could not detect.
pub type Scan = Machine<ScanSteps>;

/// Purpose of a scan. It determines the class in which the I/O is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanKind {
    /// The scan is the checksum phase. Its classes are `checksum_read` and `log_check_read`.
    Checksum,
    /// The scan reads and checks every page in order to warm caches. Its class is `checksum_read`.
    Warm,
    /// The scan is a streaming backup, which reads whole databases. Its class is `backup_read`.
    Backup,
}

#[derive(Debug)]
pub struct ScanSteps {
    kind: ScanKind,
    chunk_pages: u32,
    page_bytes: u32,
    /// Position of the database whose log is read next. If all logs were read, it is the number of
    /// databases.
    log_place: usize,
    /// Byte offset of the next read in the ring of this log.
    log_byte: u64,
    chunks: Chunks,
    open_chunks: u64,
    all_issued: bool,
}

const READ: u16 = 0;
const LOG_READ: u16 = 1;

impl Scan {
    /// Creates a scan of all databases in `store`. The store must have been closed cleanly or
    /// recovered.
    pub fn new(store: Store, kind: ScanKind, io: PhaseIo) -> Self {
        let steps = ScanSteps {
            kind,
            chunk_pages: chunk_pages(&store, io),
            page_bytes: store.config.page_bytes,
            log_place: if kind == ScanKind::Checksum { 0 } else { usize::MAX },
            log_byte: 0,
            chunks: Chunks::default(),
            open_chunks: 0,
            all_issued: false,
        };
        Self::with(store, io.depth, steps)
    }
}

impl ScanSteps {
    /// Returns the next read of a log. Returns `None` if all logs were read.
    fn log_read(&mut self, store: &Store) -> Option<Request> {
        if self.log_byte >= store.ring_bytes() {
            (self.log_place, self.log_byte) = (self.log_place + 1, 0);
        }
        if self.log_place >= store.databases.len() {
            return None;
        }
        let (file, offset) = store.log_place(self.log_place, self.log_byte);
        let in_file = u64::from(store.config.log_file_bytes) - offset;
        let size = in_file.min(self.lane_bytes() / BLOCK * BLOCK);
        let at = Place::Log(self.log_byte);
        self.log_byte += size;
        let request = Request::new(IoKind::Read, self.log_place, file, offset, size as u32);
        Some(request.class(LOG_READ).at(at))
    }

    /// Checks the log blocks that a read has returned.
    fn log_done(
        store: &Store,
        lane: Lane,
        request: Request,
        notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<()> {
        let Place::Log(start) = request.at else { return None };
        let state = store.databases.get(request.place)?;
        let (id, ring_bytes) = (state.config.id, store.ring_bytes());
        let from = state.log_whole_from.max(LogPosition::FIRST_LSN);
        for number in 0..u64::from(request.size_bytes) / BLOCK {
            let at = start + number * BLOCK;
            let lsn = lsn_at(at, state.log.next_lsn, ring_bytes).filter(|lsn| *lsn >= from);
            let Some(lsn) = lsn else { continue };
            notes.report.log_blocks_checked += 1;
            let block = ctx.arena.bytes(lane.buffer_at + number * BLOCK, BLOCK_BYTES);
            let checked =
                block.map(|block| check_block(&store.geometry, id, (lsn, ring_bytes), block));
            if let Some(Err(fault)) = checked {
                notes.find(id, Place::Log(lsn), Failure::LogBlock(fault));
            }
        }
        Some(())
    }
}

const BLOCK: u64 = BLOCK_BYTES as u64;

impl Steps for ScanSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        match self.kind {
            ScanKind::Checksum => &[
                ("checksum_read", ClassGroup::Phase, true),
                ("log_check_read", ClassGroup::Phase, true),
            ],
            ScanKind::Warm => &[("checksum_read", ClassGroup::Phase, true)],
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
        if let Some(request) = self.log_read(store) {
            self.open_chunks += 1;
            return Some(request);
        }
        let Some((place, first, count)) = self.chunks.next(store, self.chunk_pages) else {
            self.all_issued = true;
            return None;
        };
        self.open_chunks += 1;
        let (file, offset) = (store.database_file(place), store.geometry.page_offset(first));
        let request = Request::new(IoKind::Read, place, file, offset, count * self.page_bytes);
        Some(request.class(READ).at(Place::Page(first)))
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
        if request.class == LOG_READ {
            Self::log_done(store, lane, request, notes, ctx)?;
            return None;
        }
        let g = store.geometry;
        let state = store.databases.get(request.place)?;
        let first = (request.offset_bytes / u64::from(self.page_bytes)) as u32;
        for i in 0..request.size_bytes / self.page_bytes {
            let (page, mark) = (first + i, state.generation_map.get(first + i));
            let at = lane.buffer_at + u64::from(i) * u64::from(self.page_bytes);
            notes.report.pages_checked += 1;
            let Some(bytes) = ctx.arena.bytes(at, self.page_bytes) else { continue };
            if let Err(fault) = check(&g, state.config.id, page, mark, bytes) {
                notes.find(state.config.id, Place::Page(page), Failure::Page(fault));
            }
        }
        None
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        let pages: u64 = store.databases.iter().map(|state| u64::from(state.pages_used)).sum();
        let logs = match self.kind {
            ScanKind::Checksum => store.ring_bytes() * store.databases.len() as u64,
            ScanKind::Warm | ScanKind::Backup => 0,
        };
        pages * u64::from(self.page_bytes) + logs
    }

    fn finished(&self) -> bool {
        self.all_issued && self.open_chunks == 0
    }
}
