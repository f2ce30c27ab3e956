//! The log of one database. It consists of a buffer of blocks and a ring of files, and commits are
//! grouped.
//!
//! Records are appended to the buffer. A flush seals the current block and writes all blocks that
//! have not been written. A block that was submitted is therefore never written again. Several
//! flushes may be in flight. The log is durable up to the first flush that has not completed.
//! Blocks of the ring may be overwritten only if the checkpoint in a *durable* block header permits
//! it, because recovery knows no other checkpoint.

use std::collections::VecDeque;

use plimsoll_plan::Durability;

use crate::step::{Arena, Io, IoKind};

use super::config::{BLOCK_BYTES, MailboxConfig};
use super::context::{Ctx, Purpose, Token, flush};
use super::geometry::{Geometry, blocks};
use super::poison::{Failure, Place};
use super::record::{
    BLOCK_HEADER_BYTES, BLOCK_PAYLOAD_BYTES, BlockHead, NO_RECORD, RECORD_HEADER_BYTES, advance,
    seal_block,
};
use super::store::{LogPosition, log_place};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Number of blocks in the ring that are reserved for blocks that record a checkpoint. Records must
/// not use them. If the log is full, only a recorded checkpoint can free space.
const RESERVED_BLOCKS: u64 = 8;

/// State of a block that is in the buffer and not yet sealed.
#[derive(Clone, Copy, Debug)]
struct Meta {
    used: u16,
    first_record: u16,
    /// Number of pages in use after the last record that ends in this block or in an earlier block.
    pages_used: u32,
}

/// A log write that is in flight.
#[derive(Clone, Copy, Debug)]
struct Piece {
    id: u32,
    end: u64,
    checkpoint: u64,
    /// Time at which the write was submitted; `None` until the write has completed.
    submitted_ns: Option<u64>,
}

/// Initial capacity of the list of writes that complete between two flushes of the log.
const UNFLUSHED_WRITES: usize = 256;

/// A flush that is in flight. It may consist of flushes of several log files.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    target: u64,
    checkpoint: u64,
    left: u32,
}

/// Counters of one log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogCounts {
    pub writes: u64,
    pub sequential_writes: u64,
    pub write_bytes: u64,
    pub flushes: u64,
    pub record_bytes: u64,
}

/// Numbers that identify the log in its I/Os and in its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWiring {
    pub place: usize,
    pub database: u32,
    pub database_file: u32,
    pub write_class: u16,
    pub flush_class: u16,
    pub durable_class: u16,
    pub buffer_at: u64,
}

/// The log of one database.
#[derive(Debug)]
pub(crate) struct LogWriter {
    wiring: LogWiring,
    durability: Durability,
    file_bytes: u64,
    ring_bytes: u64,
    buffer_blocks: u64,
    writes_max: usize,
    lazy_ns: u64,
    epoch: u32,
    /// Log position at which the next payload byte is appended.
    pos: u64,
    issued: u64,
    written: u64,
    durable: u64,
    recorded_checkpoint: u64,
    required: u64,
    pages_used: u32,
    /// Time at which the oldest data that is not yet written was appended; `None` if all data was
    /// written.
    waiting_since_ns: Option<u64>,
    metas: Vec<Meta>,
    pieces: VecDeque<Piece>,
    /// Writes that have completed and are not yet durable. Each entry contains the end position and
    /// the submission time of a write.
    unflushed: VecDeque<(u64, u64)>,
    /// Times at which the writes that the latest flush made durable were submitted.
    flushed: Vec<u64>,
    next_piece: u32,
    written_checkpoint: u64,
    syncing: Option<PendingFlush>,
    last_end: (u32, u64),
    scratch: Vec<u8>,
    #[cfg(test)]
    pub mutant: super::Mutant,
    pub counts: LogCounts,
}

impl LogWriter {
    pub fn new(
        config: &MailboxConfig,
        wiring: LogWiring,
        at: LogPosition,
        pages_used: u32,
    ) -> Self {
        let buffer_blocks = u64::from(config.log_buffer_bytes / BLOCK_BYTES);
        let writes_max = config.log_writes_in_flight as usize;
        let before = log_place(config, wiring.database_file, at.next_lsn - BLOCK);
        Self {
            wiring,
            durability: config.durability,
            file_bytes: u64::from(config.log_file_bytes),
            ring_bytes: u64::from(config.log_files) * u64::from(config.log_file_bytes),
            buffer_blocks,
            writes_max,
            lazy_ns: config.lazy_flush_ns,
            epoch: at.epoch,
            pos: at.next_lsn,
            issued: at.next_lsn,
            written: at.next_lsn,
            durable: at.next_lsn,
            recorded_checkpoint: at.checkpoint,
            required: 0,
            pages_used,
            waiting_since_ns: None,
            metas: vec![
                Meta { used: 0, first_record: NO_RECORD, pages_used };
                buffer_blocks as usize
            ],
            pieces: VecDeque::with_capacity(Self::pieces_max(config)),
            unflushed: VecDeque::with_capacity(UNFLUSHED_WRITES),
            flushed: Vec::with_capacity(UNFLUSHED_WRITES),
            next_piece: 0,
            written_checkpoint: at.checkpoint,
            syncing: None,
            last_end: (before.0, before.1 + BLOCK),
            scratch: vec![0; RECORD_HEADER_BYTES + config.record_bytes as usize],
            #[cfg(test)]
            mutant: super::Mutant::None,
            counts: LogCounts::default(),
        }
    }

    /// Returns the maximum number of log writes in flight. One flush may consist of several writes,
    /// because it is split at the end of a file and at the end of the buffer.
    pub fn pieces_max(config: &MailboxConfig) -> usize {
        let cuts = u64::from(config.log_buffer_bytes / config.log_file_bytes) as usize + 2;
        config.log_writes_in_flight as usize + cuts
    }

    /// Maximum number of files that one flush of the log can affect.
    pub fn sync_files_max(config: &MailboxConfig) -> usize {
        (config.log_buffer_bytes / config.log_file_bytes) as usize + 2
    }

    /// Returns the log position at which the next record will start. If a database has no dirty
    /// pages, this is also its checkpoint.
    pub fn append_lsn(&self) -> u64 {
        self.pos
    }

    pub fn durable_lsn(&self) -> u64 {
        self.durable
    }

    /// Returns the log position before which all blocks have been submitted.
    pub fn issued_lsn(&self) -> u64 {
        self.issued
    }

    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.syncing.is_none()
    }

    pub fn position(&self) -> LogPosition {
        let checkpoint = self.recorded_checkpoint;
        LogPosition { next_lsn: self.durable, checkpoint, epoch: self.epoch }
    }

    /// Returns true if the buffer and the ring have space for a record of `data_bytes`.
    pub fn has_room(&self, data_bytes: u32) -> bool {
        let end = advance(self.pos, RECORD_HEADER_BYTES + data_bytes as usize);
        self.fits(end, RESERVED_BLOCKS)
    }

    fn fits(&self, end: u64, reserve: u64) -> bool {
        let last = end.div_ceil(BLOCK);
        let in_buffer = last <= blocks(self.written.min(self.durable)) + self.buffer_blocks;
        let ring = blocks(self.ring_bytes);
        #[cfg(test)]
        if self.mutant == super::Mutant::RingBeyondCheckpoint {
            return in_buffer;
        }
        in_buffer && last + reserve <= blocks(self.recorded_checkpoint) + ring
    }

    /// Returns true if it is useful to write a separate block for this checkpoint. The checkpoint
    /// must release much more of the ring than the block occupies. If each small advance of the
    /// checkpoint were recorded, the blocks that record checkpoints would fill the ring.
    pub fn is_worth_recording(&self, checkpoint: u64) -> bool {
        let released = blocks(checkpoint).saturating_sub(blocks(self.recorded_checkpoint));
        released >= (blocks(self.ring_bytes) / 16).max(4)
    }

    /// Returns true if the ring is so full that space becomes free only after a new checkpoint was
    /// recorded.
    pub fn ring_is_full(&self) -> bool {
        let last = blocks(self.pos) + 2 * RESERVED_BLOCKS;
        last + self.buffer_blocks / 4 > blocks(self.recorded_checkpoint) + blocks(self.ring_bytes)
    }

    /// Returns the memory for the next record. The caller fills it and then calls
    /// [`LogWriter::append`].
    pub fn scratch(&mut self, size_bytes: usize) -> &mut [u8] {
        let size = size_bytes.min(self.scratch.len());
        &mut self.scratch[..size]
    }

    /// Appends the record that is in the scratch memory. After this change, `pages_used` pages are
    /// in use. The caller has checked that there is enough space. Returns the log positions at
    /// which the record starts and ends.
    pub fn append(
        &mut self,
        now_ns: u64,
        size: usize,
        pages_used: u32,
        arena: &mut dyn Arena,
    ) -> (u64, u64) {
        if self.pos.is_multiple_of(BLOCK) {
            self.open_block();
        }
        let start = self.pos;
        let block = blocks(self.pos);
        let meta = self.meta(block);
        if meta.first_record == NO_RECORD {
            meta.first_record = meta.used;
        }
        let mut done = 0;
        while done < size {
            if self.pos.is_multiple_of(BLOCK) {
                self.open_block();
            }
            let block = blocks(self.pos);
            let piece = (size - done).min((BLOCK - self.pos % BLOCK) as usize);
            let at = self.buffer_offset(block) + self.pos % BLOCK;
            if let Some(bytes) = arena.bytes(at, piece as u32) {
                bytes.copy_from_slice(&self.scratch[done..done + piece]);
            }
            self.meta(block).used += piece as u16;
            self.pos += piece as u64;
            done += piece;
        }
        // The record adds a page. If the log ends within this record, the page does not exist after
        // a recovery.
        self.pages_used = pages_used;
        let last = blocks(self.pos - 1);
        self.meta(last).pages_used = pages_used;
        self.counts.record_bytes += size as u64;
        self.waiting_since_ns.get_or_insert(now_ns);
        (start, self.pos)
    }

    fn open_block(&mut self) {
        let block = blocks(self.pos);
        let pages_used = self.pages_used;
        *self.meta(block) = Meta { used: 0, first_record: NO_RECORD, pages_used };
        self.pos += BLOCK_HEADER_BYTES as u64;
    }

    fn meta(&mut self, block: u64) -> &mut Meta {
        let at = (block % self.buffer_blocks) as usize;
        &mut self.metas[at]
    }

    fn buffer_offset(&self, block: u64) -> u64 {
        self.wiring.buffer_at + block % self.buffer_blocks * BLOCK
    }

    /// Requests that the log is made durable up to `lsn`.
    pub fn want(&mut self, lsn: u64) {
        self.required = self.required.max(lsn);
    }

    /// Returns the latest time at which the oldest lazy commit that is not yet written must be
    /// written.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.waiting_since_ns.map(|since| since.saturating_add(self.lazy_ns))
    }

    /// Issues a flush if a flush is due.
    #[inline(always)]
    pub fn pump(&mut self, g: &Geometry, checkpoint: u64, ctx: &mut Ctx<'_>) {
        let pending = self.pos > self.issued;
        let due = pending
            && (self.required > self.issued
                || self.pos - self.issued >= self.buffer_blocks / 2 * BLOCK
                || self.deadline_ns().is_some_and(|deadline| ctx.now_ns >= deadline));
        if due && self.pieces.len() < self.writes_max {
            self.issue(g, checkpoint, false, ctx);
        }
        self.pump_sync(ctx);
    }

    /// Writes a block that records `checkpoint`, even if no record was appended. Returns false if
    /// this is not possible now.
    pub fn force(&mut self, g: &Geometry, checkpoint: u64, clean: bool, ctx: &mut Ctx<'_>) -> bool {
        if self.pieces.len() >= self.writes_max || !self.fits(self.pos + BLOCK, 0) {
            return false;
        }
        if self.pos == self.issued {
            self.open_block();
        }
        self.issue(g, checkpoint, clean, ctx);
        true
    }

    fn issue(&mut self, g: &Geometry, checkpoint: u64, clean: bool, ctx: &mut Ctx<'_>) {
        self.pos = self.pos.next_multiple_of(BLOCK);
        for block in blocks(self.issued)..blocks(self.pos) {
            let Meta { used, first_record, pages_used } = *self.meta(block);
            let head = BlockHead {
                database: self.wiring.database,
                epoch: self.epoch,
                lsn: block * BLOCK,
                // A store that is closed has written all its pages. Its checkpoint is therefore the
                // end of the log.
                checkpoint: if clean { self.pos } else { checkpoint },
                pages_used,
                used,
                first_record,
                clean,
            };
            if let Some(bytes) = ctx.arena.bytes(self.buffer_offset(block), BLOCK_BYTES) {
                seal_block(g, &head, bytes);
            }
        }
        let carried = if clean { self.pos } else { checkpoint };
        while self.issued < self.pos {
            let buffer_bytes = self.buffer_blocks * BLOCK;
            let file_end = (self.issued / self.file_bytes + 1) * self.file_bytes;
            let wrap = (self.issued / buffer_bytes + 1) * buffer_bytes;
            let end = self.pos.min(file_end).min(wrap);
            self.issue_piece(end, carried, ctx);
        }
        self.waiting_since_ns = None;
    }

    fn issue_piece(&mut self, end: u64, checkpoint: u64, ctx: &mut Ctx<'_>) {
        let within = self.issued % self.ring_bytes;
        let file = self.wiring.database_file + 1 + (within / self.file_bytes) as u32;
        let offset_bytes = within % self.file_bytes;
        let size_bytes = (end - self.issued) as u32;
        let id = self.next_piece;
        self.next_piece = self.next_piece.wrapping_add(1);
        self.pieces.push_back(Piece { id, end, checkpoint, submitted_ns: None });
        ctx.out.push(Io {
            token: Token::pack(Purpose::LogWrite, self.wiring.place, id),
            kind: match self.durability {
                Durability::Dsync => IoKind::WriteDurable,
                Durability::Fdatasync => IoKind::Write,
            },
            file,
            class: self.wiring.write_class,
            offset_bytes,
            size_bytes,
            buffer_offset_bytes: self.buffer_offset(blocks(self.issued)),
            intended_ns: ctx.now_ns,
        });
        self.counts.writes += 1;
        self.counts.write_bytes += u64::from(size_bytes);
        let follows = self.last_end == (file, offset_bytes)
            || offset_bytes == 0 && self.last_end.1 == self.file_bytes;
        self.counts.sequential_writes += u64::from(follows);
        self.last_end = (file, offset_bytes + u64::from(size_bytes));
        self.issued = end;
    }

    /// Returns the requested size of the log write with this token. Returns `None` if this write is
    /// not in flight.
    pub fn piece_bytes(&self, id: u32) -> Option<u32> {
        let mut start = self.written;
        for piece in &self.pieces {
            if piece.id == id {
                return Some((piece.end - start) as u32);
            }
            start = piece.end;
        }
        None
    }

    /// Handles the completion of a log write.
    pub fn write_done(&mut self, id: u32, submitted_ns: u64) {
        if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.id == id) {
            piece.submitted_ns = Some(submitted_ns);
        }
        while let Some(piece) = self.pieces.front().copied() {
            let Some(submitted_ns) = piece.submitted_ns else { break };
            self.pieces.pop_front();
            self.written = piece.end;
            self.written_checkpoint = piece.checkpoint;
            if self.durability == Durability::Dsync {
                self.durable = piece.end;
                self.recorded_checkpoint = piece.checkpoint;
            } else {
                self.unflushed.push_back((piece.end, submitted_ns));
            }
        }
    }

    /// Flushes the files that were written. Does nothing if writes are durable when they complete.
    #[inline(always)]
    fn pump_sync(&mut self, ctx: &mut Ctx<'_>) {
        if self.durability == Durability::Dsync
            || self.syncing.is_some()
            || self.written == self.durable
        {
            return;
        }
        let first = self.durable / self.file_bytes;
        let last = (self.written - 1) / self.file_bytes;
        let files = blocks(self.ring_bytes) / blocks(self.file_bytes);
        for number in first..=last {
            let file = self.wiring.database_file + 1 + (number % files) as u32;
            let token = Token::pack(Purpose::LogFlush, self.wiring.place, (number - first) as u32);
            ctx.out.push(flush(token, file, self.wiring.flush_class, ctx.now_ns));
            self.counts.flushes += 1;
        }
        let left = (last - first + 1) as u32;
        self.syncing =
            Some(PendingFlush { target: self.written, checkpoint: self.written_checkpoint, left });
    }

    /// Handles the completion of a flush of a log file.
    pub fn flush_done(&mut self) {
        let Some(syncing) = self.syncing.as_mut() else { return };
        syncing.left -= 1;
        if syncing.left == 0 {
            self.durable = syncing.target;
            self.recorded_checkpoint = syncing.checkpoint;
            self.syncing = None;
            while let Some((_, ns)) = self.unflushed.front().filter(|(end, _)| *end <= self.durable)
            {
                self.flushed.push(*ns);
                self.unflushed.pop_front();
            }
        }
    }

    /// Calls `each` for each write that became durable since the last call of this function. The
    /// arguments are the class and the submission time of the write.
    pub fn durable_writes(&mut self, each: &mut dyn FnMut(u16, u64)) {
        self.flushed.drain(..).for_each(|ns| each(self.wiring.durable_class, ns));
    }

    /// Calls `each` for each write that never became durable. The arguments are the class and the
    /// submission time of the write.
    pub fn unflushed_writes(&mut self, each: &mut dyn FnMut(u16, u64)) {
        self.unflushed.drain(..).for_each(|(_, ns)| each(self.wiring.durable_class, ns));
    }

    /// Ends the run because a log I/O failed. The error contains the position of this I/O.
    pub fn fail(&self, trouble: Failure, ctx: &mut Ctx<'_>) {
        ctx.fail(self.wiring.database, Place::Log(self.written), trouble);
    }
}

const _: () = assert!(BLOCK_PAYLOAD_BYTES < u16::MAX as usize);
