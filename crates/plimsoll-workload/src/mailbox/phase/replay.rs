//! Reads a log back: finds where it ends, and what it says of each page since a position.
//!
//! The end of the log is not recorded anywhere. It is found: the longest chain of valid blocks, each
//! right after the one before and of no older epoch, that contains the checkpoint which its own last
//! block names. Blocks beyond a gap (writes of which an earlier one was lost) do not contain theirs.

use std::collections::BTreeMap;

use crate::step::IoKind;

use super::super::config::BLOCK_BYTES;
use super::super::context::Ctx;
use super::super::page::u32_at;
use super::super::poison::Place;
use super::super::record::{
    BLOCK_HEADER_BYTES, BlockHead, Change, RECORD_HEADER_BYTES, parse_block,
};
use super::super::rng::{Choices, below};
use super::super::store::{LogPosition, Store};
use super::{Lane, Notes, Request};

/// No record is as large as this.
const RECORD_BYTES_MAX: usize = 1 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// A log that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// First block that is still there.
    pub start_lsn: u64,
    /// After the last block.
    pub end_lsn: u64,
    /// Where replaying must start.
    pub checkpoint: u64,
    pub pages_used: u32,
    /// Greatest epoch of any block in the ring.
    pub epoch: u32,
}

/// Finds the log among the blocks of a ring, given in any order.
pub(crate) fn find_chain(heads: &mut [BlockHead]) -> Option<Chain> {
    heads.sort_unstable_by_key(|head| (head.lsn, head.epoch));
    let epoch = heads.iter().map(|head| head.epoch).max()?;
    let mut best: Option<Chain> = None;
    let mut first = 0;
    for i in 0..heads.len() {
        let last = heads[i];
        let goes_on = heads
            .get(i + 1)
            .is_some_and(|next| next.lsn == last.lsn + BLOCK && next.epoch >= last.epoch);
        if goes_on {
            continue;
        }
        let (start_lsn, end_lsn) = (heads[first].lsn, last.lsn + BLOCK);
        first = i + 1;
        // The checkpoint may be the end: then nothing is to be replayed.
        if last.checkpoint >= start_lsn && last.checkpoint <= end_lsn {
            let (checkpoint, pages_used) = (last.checkpoint, last.pages_used);
            best = Some(Chain { start_lsn, end_lsn, checkpoint, pages_used, epoch });
        }
    }
    best
}

/// The last change of a page that the log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub start_lsn: u64,
    pub end_lsn: u64,
    pub change: Change,
}

/// Puts records together from blocks in order.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Bytes of a record of which not all have come, and where it starts.
    partial: Vec<u8>,
    partial_start: u64,
    pub changes: u64,
    pub pages: BTreeMap<u32, Replayed>,
}

impl Parser {
    /// Takes the next block. Records that start before `from_lsn` are passed over.
    pub fn block(&mut self, head: &BlockHead, block: &[u8], from_lsn: u64) {
        let used = BLOCK_HEADER_BYTES + usize::from(head.used);
        let Some(mut rest) = block.get(BLOCK_HEADER_BYTES..used) else { return };
        let first = usize::from(head.first_record);
        if self.partial.is_empty() || first == 0 {
            // A record that a crash cut short is followed by a block that starts with a new one.
            self.partial.clear();
            match rest.get(first..) {
                Some(records) => rest = records,
                None => return,
            }
        }
        let mut lsn = head.lsn + used as u64 - rest.len() as u64;
        while !rest.is_empty() {
            if self.partial.is_empty() {
                self.partial_start = lsn;
            }
            let wanted = match self.partial.len() {
                have @ 0..4 => 4 - have,
                have => match u32_at(&self.partial, 0) as usize {
                    size @ RECORD_HEADER_BYTES..RECORD_BYTES_MAX if size > have => size - have,
                    // No record is like that; the checksum says otherwise, so nobody wrote it.
                    _ => return self.partial.clear(),
                },
            };
            let piece = wanted.min(rest.len());
            self.partial.extend_from_slice(&rest[..piece]);
            rest = &rest[piece..];
            lsn += piece as u64;
            let size = u32_at(&self.partial, 0) as usize;
            if self.partial.len() >= RECORD_HEADER_BYTES && self.partial.len() == size {
                self.record(lsn, from_lsn);
            }
        }
    }

    fn record(&mut self, end_lsn: u64, from_lsn: u64) {
        let change = Change::decode(&self.partial);
        self.partial.clear();
        let start_lsn = self.partial_start;
        if let Some(change) = change.filter(|_| start_lsn >= from_lsn) {
            self.changes += 1;
            self.pages.insert(change.page, Replayed { start_lsn, end_lsn, change });
        }
    }
}

/// Reads the logs of a store's databases, one at a time.
#[derive(Debug)]
pub(crate) struct LogReader {
    chunk_bytes: u32,
    place: usize,
    next_byte: u64,
    reads_open: u32,
    heads: Vec<BlockHead>,
    stage: Stage,
    pub parser: Parser,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Reading all of the ring for its blocks' headers.
    Heads,
    /// Reading the blocks from here on for their records.
    Records {
        chain: Chain,
        from_lsn: u64,
        next_lsn: u64,
    },
    Ended(Option<Chain>),
}

/// What a log was found to be.
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// This.
    Log(Chain),
}

impl LogReader {
    pub fn new(store: &Store, chunk_bytes: u32) -> Self {
        let blocks = (chunk_bytes / BLOCK_BYTES).max(1);
        Self {
            chunk_bytes: (blocks * BLOCK_BYTES).min(store.config.log_file_bytes),
            place: 0,
            next_byte: 0,
            reads_open: 0,
            heads: Vec::new(),
            stage: Stage::Heads,
            parser: Parser::default(),
        }
    }

    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// Goes on to the log of the database at `place`.
    pub fn start(&mut self, place: usize) {
        (self.place, self.next_byte, self.reads_open) = (place, 0, 0);
        self.heads.clear();
        self.stage = Stage::Heads;
        self.parser = Parser::default();
    }

    /// The next read; `None` before a completion, or when the log has been read.
    pub fn next(&mut self, store: &Store, alone: bool) -> Option<Request> {
        match self.stage {
            Stage::Heads if self.next_byte < store.ring_bytes() => {
                let request = self.read(store, self.next_byte, store.ring_bytes());
                self.next_byte += u64::from(request.size_bytes);
                self.reads_open += 1;
                Some(request)
            }
            // Records can be cut by blocks, so they are read in order: one read at a time.
            Stage::Records { chain, next_lsn, .. } if alone && next_lsn < chain.end_lsn => {
                Some(self.read(store, next_lsn, chain.end_lsn))
            }
            _ => None,
        }
    }

    fn read(&self, store: &Store, lsn: u64, end: u64) -> Request {
        let (file, offset) = store.log_place(self.place, lsn);
        let in_file = u64::from(store.config.log_file_bytes) - offset;
        let size = in_file.min(u64::from(self.chunk_bytes)).min(end - lsn) as u32;
        Request::new(IoKind::Read, self.place, file, offset, size).at(Place::Log(lsn))
    }

    /// A read has completed. `from` says where to start, given the log and its checkpoint.
    pub fn done(
        &mut self,
        store: &Store,
        lane: Lane,
        request: Request,
        notes: &mut Notes,
        from: impl Fn(&Chain) -> u64,
        ctx: &mut Ctx<'_>,
    ) {
        let g = &store.geometry;
        let id = store.databases[self.place].config.id;
        let bytes = ctx.arena.bytes(lane.buffer_at, request.size_bytes);
        let blocks = bytes.iter().flat_map(|bytes| bytes.chunks_exact(BLOCK_BYTES as usize));
        match &mut self.stage {
            Stage::Heads => {
                self.reads_open -= 1;
                let Place::Log(start) = request.at else { return };
                let ring = store.ring_bytes();
                for (i, block) in blocks.enumerate() {
                    let place = start + i as u64 * BLOCK;
                    let head = parse_block(g, id, block);
                    self.heads.extend(head.filter(|head| head.lsn % ring == place));
                }
                if self.next_byte >= ring && self.reads_open == 0 {
                    self.heads_read(store, bytes.is_some(), from);
                }
            }
            Stage::Records { chain, from_lsn, next_lsn } => {
                for (i, block) in blocks.enumerate() {
                    let lsn = *next_lsn + i as u64 * BLOCK;
                    if let Some(head) = parse_block(g, id, block).filter(|head| head.lsn == lsn) {
                        self.parser.block(&head, block, *from_lsn);
                    }
                }
                notes.report.log_bytes += u64::from(request.size_bytes);
                *next_lsn += u64::from(request.size_bytes);
                if *next_lsn >= chain.end_lsn {
                    let (chain, from_lsn) = (*chain, *from_lsn);
                    if bytes.is_none() {
                        self.assume_changes(store, chain.end_lsn - from_lsn);
                    }
                    notes.report.log_changes += self.parser.changes;
                    self.stage = Stage::Ended(Some(chain));
                }
            }
            Stage::Ended(_) => {}
        }
    }

    fn heads_read(&mut self, store: &Store, has_bytes: bool, from: impl Fn(&Chain) -> u64) {
        let chain = if has_bytes {
            find_chain(&mut self.heads)
        } else {
            // A driver without data: the log is where the last machine left it.
            let state = &store.databases[self.place];
            let LogPosition { next_lsn, checkpoint, epoch } = state.log;
            let start_lsn = next_lsn.saturating_sub(store.ring_bytes()).max(LogPosition::FIRST_LSN);
            let pages_used = state.pages_used;
            Some(Chain { start_lsn, end_lsn: next_lsn, checkpoint, pages_used, epoch })
        };
        self.stage = match chain {
            None => Stage::Ended(None),
            Some(chain) => {
                let from_lsn = from(&chain).max(chain.start_lsn).min(chain.checkpoint);
                let next_lsn = from_lsn / BLOCK * BLOCK;
                if next_lsn >= chain.end_lsn {
                    Stage::Ended(Some(chain))
                } else {
                    Stage::Records { chain, from_lsn, next_lsn }
                }
            }
        };
    }

    /// Pages that as much log would have changed, where no data says which.
    fn assume_changes(&mut self, store: &Store, log_bytes: u64) {
        let state = &store.databases[self.place];
        let mut choices = Choices::new(store.config.seed, u64::from(state.config.id) << 33);
        let record = u64::from(store.config.record_bytes) * 2 / 3 + RECORD_HEADER_BYTES as u64;
        for _ in 0..log_bytes / record {
            let page = below(choices.bits(), u64::from(state.pages_used)) as u32;
            let directory = Default::default();
            let change = Change { page, generation: 0, slot: 0, data_bytes: 0, directory };
            self.parser.changes += 1;
            self.parser.pages.insert(page, Replayed { start_lsn: 0, end_lsn: 0, change });
        }
    }

    /// What was found, once everything has been read.
    pub fn found(&self) -> Option<Found> {
        match self.stage {
            Stage::Ended(None) => Some(Found::Nothing),
            Stage::Ended(Some(chain)) => Some(Found::Log(chain)),
            _ => None,
        }
    }
}
