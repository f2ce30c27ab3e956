//! Phase that writes the log files of every database completely. The load then only overwrites
//! existing blocks.

use crate::step::{ClassGroup, IoKind};

use super::super::config::BLOCK_BYTES;
use super::super::context::Ctx;
use super::super::poison::Place;
use super::super::record::{BlockHead, NO_RECORD, format_block, seal_block};
use super::super::store::{LogPosition, Store};
use super::{Lane, Machine, Notes, PhaseIo, Request, Steps};

/// Formats the logs. Each log is filled with bytes that contain no repeats, and gets one block that
/// records the start of the log. The writes have the class `log_format`, which is not part of the
/// load.
pub type Format = Machine<FormatSteps>;

#[derive(Debug)]
pub struct FormatSteps {
    chunk_bytes: u32,
    place: usize,
    databases: usize,
    next_byte: u64,
    flushes_issued: u32,
    flushes_done: u32,
    flushing: bool,
}

impl Format {
    /// Creates the phase that formats the logs of all databases in `store`.
    pub fn new(store: Store, io: PhaseIo) -> Self {
        let blocks = io.chunk_bytes.clamp(BLOCK_BYTES, 64 << 20) / BLOCK_BYTES;
        let chunk_bytes = (blocks * BLOCK_BYTES).min(store.config.log_file_bytes);
        let steps = FormatSteps {
            chunk_bytes,
            place: 0,
            databases: store.databases.len(),
            next_byte: 0,
            flushes_issued: 0,
            flushes_done: 0,
            flushing: false,
        };
        Self::with(store, io.depth, steps)
    }
}

impl FormatSteps {
    fn fill(&self, store: &Store, start: u64, size: u32, lane: Lane, ctx: &mut Ctx<'_>) {
        let g = &store.geometry;
        let Some(state) = store.databases.get(self.place) else { return };
        let Some(bytes) = ctx.arena.bytes(lane.buffer_at, size) else { return };
        for (i, block) in bytes.chunks_exact_mut(BLOCK_BYTES as usize).enumerate() {
            let lsn = start + i as u64 * u64::from(BLOCK_BYTES);
            if lsn != LogPosition::FIRST_LSN {
                format_block(g, state.config.id, lsn / u64::from(BLOCK_BYTES), block);
                continue;
            }
            let position = LogPosition::formatted();
            let head = BlockHead {
                database: state.config.id,
                epoch: position.epoch,
                lsn,
                checkpoint: position.checkpoint,
                pages_used: state.config.pages_initial,
                used: 0,
                first_record: NO_RECORD,
                clean: true,
            };
            seal_block(g, &head, block);
        }
    }
}

impl Steps for FormatSteps {
    fn classes(&self) -> &'static [(&'static str, ClassGroup, bool)] {
        &[
            ("log_format", ClassGroup::Upkeep, false),
            ("log_format_flush", ClassGroup::Upkeep, false),
        ]
    }

    fn lane_bytes(&self) -> u64 {
        u64::from(self.chunk_bytes)
    }

    fn next(
        &mut self,
        store: &mut Store,
        lane: Lane,
        alone: bool,
        _notes: &mut Notes,
        ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if self.place >= store.databases.len() {
            return None;
        }
        if !self.flushing && self.next_byte < store.ring_bytes() {
            let start = self.next_byte;
            let (file, offset) = store.log_place(self.place, start);
            let in_file = u64::from(store.config.log_file_bytes) - offset;
            let size = in_file.min(u64::from(self.chunk_bytes)) as u32;
            self.next_byte += u64::from(size);
            self.fill(store, start, size, lane, ctx);
            let request = Request::new(IoKind::Write, self.place, file, offset, size);
            return Some(request.at(Place::Log(start)));
        }
        if !self.flushing && !alone {
            return None;
        }
        self.flushing = true;
        if self.flushes_issued >= store.config.log_files {
            return None;
        }
        self.flushes_issued += 1;
        let file = store.database_file(self.place) + self.flushes_issued;
        Some(Request::new(IoKind::Flush, self.place, file, 0, 0).class(1))
    }

    fn done(
        &mut self,
        store: &mut Store,
        _lane: Lane,
        request: Request,
        _got: u32,
        _notes: &mut Notes,
        _ctx: &mut Ctx<'_>,
    ) -> Option<Request> {
        if request.kind != IoKind::Flush {
            return None;
        }
        self.flushes_done += 1;
        if self.flushes_done == store.config.log_files {
            if let Some(state) = store.databases.get_mut(self.place) {
                state.log = LogPosition::formatted();
                state.generation_map.set_durable_lsn(state.log.next_lsn);
            }
            self.place += 1;
            self.next_byte = 0;
            (self.flushes_issued, self.flushes_done, self.flushing) = (0, 0, false);
        }
        None
    }

    fn total_bytes(&self, store: &Store) -> u64 {
        store.ring_bytes() * store.databases.len() as u64
    }

    fn finished(&self) -> bool {
        self.place >= self.databases
    }
}
