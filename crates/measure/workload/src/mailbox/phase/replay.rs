//! Reads a log: finds its end, and the latest record of each page after a given position.
//!
//! No record states where the log ends. The end is therefore determined in two steps. First, older
//! blocks are discarded: a crash may have left blocks of an older epoch after the start of a newer
//! epoch. Second, the remaining blocks form chains of consecutive blocks. The last block of each
//! chain records a checkpoint. The log is the last chain that contains its own checkpoint. If a
//! write was lost, the chain after the gap does not contain its checkpoint.

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
use super::ring::{self, Chain, Ring};
use super::{Lane, Notes, Request};

/// Upper limit for the size of a record. Every valid record is smaller.
const RECORD_BYTES_MAX: usize = 1 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Determines which blocks of a ring belong to the log. The blocks may be in any order.
pub(crate) fn find_chain(heads: &mut Vec<BlockHead>) -> Option<Chain> {
    heads.sort_unstable_by_key(|head| (head.lsn, head.epoch));
    // This block belongs to an older epoch, and a crash left it after the end of the log. It must
    // not fill a gap between blocks of the newer epoch.
    let mut epoch = 0;
    heads.retain(|head| {
        epoch = epoch.max(head.epoch);
        head.epoch == epoch
    });
    let epoch_lsn = heads.iter().find(|head| head.epoch == epoch).map_or(0, |head| head.lsn);
    let mut best: Option<Chain> = None;
    let mut first = 0;
    for i in 0..heads.len() {
        let last = heads[i];
        let goes_on = heads.get(i + 1).is_some_and(|next| next.lsn == last.lsn + BLOCK);
        if goes_on {
            continue;
        }
        let (start_lsn, end_lsn) = (heads[first].lsn, last.lsn + BLOCK);
        first = i + 1;
        // The checkpoint may be the end of the log. In this case, there is nothing to replay.
        if last.checkpoint >= start_lsn && last.checkpoint <= end_lsn {
            let BlockHead { checkpoint, pages_used, clean, .. } = last;
            best =
                Some(Chain { start_lsn, end_lsn, checkpoint, pages_used, epoch, epoch_lsn, clean });
        }
    }
    best
}

/// Latest change of a page in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastChange {
    pub start_lsn: u64,
    pub end_lsn: u64,
    pub change: Change,
}

/// Assembles the records of a log from its blocks. The blocks must be in order.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Bytes of a record that is not yet complete, and the log position at which the record starts.
    partial: Vec<u8>,
    partial_start: u64,
    /// Log position from which on records are counted.
    count_from_lsn: u64,
    pub changes: u64,
    pub pages: BTreeMap<u32, LastChange>,
}

impl Parser {
    /// Processes the next block of the log. Skips records that start before `from_lsn`.
    pub fn block(&mut self, head: &BlockHead, block: &[u8], from_lsn: u64) {
        let used = BLOCK_HEADER_BYTES + usize::from(head.used);
        let Some(mut rest) = block.get(BLOCK_HEADER_BYTES..used) else { return };
        let first = usize::from(head.first_record);
        if self.partial.is_empty() || first == 0 {
            // If a crash cut a record short, the next block starts with a new record.
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
            let required = match self.partial.len() {
                have @ 0..4 => 4 - have,
                have => match u32_at(&self.partial, 0) as usize {
                    size @ RECORD_HEADER_BYTES..RECORD_BYTES_MAX if size > have => size - have,
                    // A store never writes a record of this size. The checksum of the block is
                    // right, so another program must have written the block.
                    _ => return self.partial.clear(),
                },
            };
            let piece = required.min(rest.len());
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
            self.changes += u64::from(start_lsn >= self.count_from_lsn);
            self.pages.insert(change.page, LastChange { start_lsn, end_lsn, change });
        }
    }
}

/// Determines which records of a log are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    /// All records after the checkpoint are read.
    Checkpoint,
    /// All records after the checkpoint are read. In addition, the records in the last part of the
    /// log are read. The value is the length of this part in bytes.
    Back(u64),
    /// All records that exist are read. Only the records after the checkpoint are counted.
    All,
}

/// Reads the logs of a store's databases, one log after the other.
#[derive(Debug)]
pub(crate) struct LogReader {
    chunk_bytes: u32,
    place: usize,
    next_byte: u64,
    reads_open: u32,
    heads: Vec<BlockHead>,
    ring: Ring,
    read_from: ReadFrom,
    /// True if the log was last closed in such a way that certainly no write was in flight.
    pub closed: bool,
    /// Log position up to which the log was durable, as its blocks prove.
    pub proven_durable_lsn: u64,
    stage: Stage,
    pub parser: Parser,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The reader reads the whole ring, to get the headers of the blocks.
    Heads,
    /// The reader reads the blocks after `next_lsn`, to get their records.
    Records {
        chain: Chain,
        from_lsn: u64,
        next_lsn: u64,
    },
    Ended(Option<Chain>),
}

/// Result of reading a log.
pub(crate) enum LogScan {
    /// The ring contains no log.
    Nothing,
    Log(Chain),
}

impl LogReader {
    pub fn new(store: &Store, chunk_bytes: u32, read_from: ReadFrom, closed: bool) -> Self {
        let blocks = (chunk_bytes / BLOCK_BYTES).max(1);
        let mut ring = Ring::default();
        ring.clear(store.ring_bytes());
        Self {
            chunk_bytes: (blocks * BLOCK_BYTES).min(store.config.log_file_bytes),
            place: 0,
            next_byte: 0,
            reads_open: 0,
            heads: Vec::new(),
            ring,
            read_from,
            closed,
            proven_durable_lsn: 0,
            stage: Stage::Heads,
            parser: Parser::default(),
        }
    }

    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// Starts to read the log of the database at position `place`.
    pub fn start(&mut self, store: &Store, place: usize) {
        (self.place, self.next_byte, self.reads_open) = (place, 0, 0);
        self.heads.clear();
        self.ring.clear(store.ring_bytes());
        self.proven_durable_lsn = 0;
        self.stage = Stage::Heads;
        self.parser = Parser::default();
    }

    /// Returns the next read. Returns `None` if another read must complete first, or if the end of
    /// the log has been reached.
    pub fn next(&mut self, store: &Store, alone: bool, notes: &mut Notes) -> Option<Request> {
        if let Stage::Heads = self.stage {
            let ring_bytes = store.ring_bytes();
            self.next_byte = self.readable(store, self.next_byte, ring_bytes);
            if self.next_byte < ring_bytes {
                let request = self.read(store, self.next_byte, ring_bytes);
                self.next_byte += u64::from(request.size_bytes);
                self.next_byte = self.readable(store, self.next_byte, ring_bytes);
                self.reads_open += 1;
                return Some(request);
            }
            if self.reads_open == 0 {
                // All files of the log are empty, so there is no log.
                self.heads_read(store, true, notes);
            }
        }
        match self.stage {
            // A record may continue in the next block. The blocks are therefore read in order, with
            // one read at a time.
            Stage::Records { chain, next_lsn, .. } if alone && next_lsn < chain.end_lsn => {
                Some(self.read(store, next_lsn, chain.end_lsn))
            }
            _ => None,
        }
    }

    /// Returns the first log position, starting at `lsn`, whose byte exists in its file. Returns
    /// `end` if there is no such position before `end`.
    fn readable(&self, store: &Store, mut lsn: u64, end: u64) -> u64 {
        let file_bytes = u64::from(store.config.log_file_bytes);
        while lsn < end {
            let (file, offset) = store.log_place(self.place, lsn);
            if offset + BLOCK <= store.held_bytes(file) {
                return lsn;
            }
            lsn += file_bytes - offset;
        }
        end
    }

    fn read(&self, store: &Store, lsn: u64, end: u64) -> Request {
        let (file, offset) = store.log_place(self.place, lsn);
        let in_file = store.held_bytes(file) / BLOCK * BLOCK - offset;
        let size = in_file.min(u64::from(self.chunk_bytes)).min(end - lsn) as u32;
        Request::new(IoKind::Read, self.place, file, offset, size).at(Place::Log(lsn))
    }

    /// Handles a completed read.
    pub fn done(
        &mut self,
        store: &Store,
        lane: Lane,
        request: Request,
        notes: &mut Notes,
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
                for (i, block) in blocks.enumerate() {
                    let head = self.ring.note(g, id, start + i as u64 * BLOCK, block);
                    self.heads.extend(head);
                }
                if self.next_byte >= store.ring_bytes() && self.reads_open == 0 {
                    self.heads_read(store, bytes.is_some(), notes);
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

    /// Called after the whole ring was read. Determines which blocks of the ring are the log, and
    /// lists the blocks that are missing.
    fn heads_read(&mut self, store: &Store, has_bytes: bool, notes: &mut Notes) {
        let state = &store.databases[self.place];
        let chain = if has_bytes {
            find_chain(&mut self.heads)
        } else {
            // The driver has no data. However, the previous machine has recorded the position of
            // the log.
            let LogPosition { next_lsn, checkpoint, epoch } = state.log;
            let start_lsn = next_lsn.saturating_sub(store.ring_bytes()).max(LogPosition::FIRST_LSN);
            Some(Chain {
                start_lsn,
                end_lsn: next_lsn,
                checkpoint,
                pages_used: state.pages_used,
                epoch,
                epoch_lsn: LogPosition::FIRST_LSN,
                clean: checkpoint >= next_lsn,
            })
        };
        let Some(chain) = chain else {
            self.stage = Stage::Ended(None);
            return;
        };
        if has_bytes {
            let whole = (ring::whole_from(store, &chain, self.closed), chain.end_lsn);
            self.ring.check(state.config.id, &self.heads, whole, notes);
            self.proven_durable_lsn = ring::proven_durable_lsn(store, &self.heads, &chain);
        }
        let from_lsn = match self.read_from {
            ReadFrom::All if has_bytes => chain.start_lsn,
            ReadFrom::All | ReadFrom::Checkpoint => chain.checkpoint,
            ReadFrom::Back(bytes) => chain.end_lsn.saturating_sub(bytes),
        };
        let from_lsn = from_lsn.max(chain.start_lsn).min(chain.checkpoint);
        self.parser.count_from_lsn = match self.read_from {
            ReadFrom::Back(_) => from_lsn,
            _ => chain.checkpoint,
        };
        let next_lsn = from_lsn / BLOCK * BLOCK;
        self.stage = if next_lsn >= chain.end_lsn {
            Stage::Ended(Some(chain))
        } else {
            Stage::Records { chain, from_lsn, next_lsn }
        };
    }

    /// If there is no data, the changed pages are not known. This function chooses as many random
    /// pages as a log of this length would change.
    fn assume_changes(&mut self, store: &Store, log_bytes: u64) {
        let state = &store.databases[self.place];
        let mut choices = Choices::new(store.config.seed, u64::from(state.config.id) << 33);
        let record = u64::from(store.config.record_bytes) * 2 / 3 + RECORD_HEADER_BYTES as u64;
        for _ in 0..log_bytes / record {
            let page = below(choices.bits(), u64::from(state.pages_used)) as u32;
            let directory = Default::default();
            let change = Change { page, generation: 0, slot: 0, data_bytes: 0, directory };
            self.parser.changes += 1;
            self.parser.pages.insert(page, LastChange { start_lsn: 0, end_lsn: 0, change });
        }
    }

    /// Returns the result. All reads must have completed.
    pub fn found(&self) -> Option<LogScan> {
        match self.stage {
            Stage::Ended(None) => Some(LogScan::Nothing),
            Stage::Ended(Some(chain)) => Some(LogScan::Log(chain)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mailbox::log::{LogWiring, LogWriter};
    use crate::mailbox::page::Directory;
    use crate::mailbox::record::parse_block;
    use crate::mailbox::{DatabaseConfig, Geometry, MailboxConfig};
    use crate::step::{Arena, HeapArena, Io};

    fn head(lsn: u64, epoch: u32, checkpoint: u64) -> BlockHead {
        let (database, pages_used, used, first_record) = (0, 9, 0, u16::MAX);
        let clean = false;
        BlockHead { database, epoch, lsn, checkpoint, pages_used, used, first_record, clean }
    }

    fn blocks(lsns: core::ops::Range<u64>, epoch: u32, checkpoint: u64) -> Vec<BlockHead> {
        lsns.map(|block| head(block * BLOCK, epoch, checkpoint * BLOCK)).collect()
    }

    fn ends(mut heads: Vec<BlockHead>) -> Option<(u64, u64)> {
        find_chain(&mut heads).map(|chain| (chain.start_lsn / BLOCK, chain.end_lsn / BLOCK))
    }

    #[test]
    fn a_log_ends_at_its_first_gap() {
        assert_eq!(ends(blocks(5..20, 1, 8)), Some((5, 20)));
        // In this case, block 17 was lost, but blocks 18 and 19 were written.
        let gap = [blocks(5..17, 1, 8), blocks(18..20, 1, 8)].concat();
        assert_eq!(ends(gap.clone()), Some((5, 17)));
        // In this case, a recovery has filled the gap with a block of a newer epoch. The blocks
        // after it belong to the older epoch.
        let filled = [gap, blocks(17..18, 2, 18)].concat();
        assert_eq!(ends(filled.clone()), Some((5, 18)));
        // In this case, two blocks of the newer epoch were in flight, and only the second block was
        // written. The gap between them contains a block of the older epoch, which is not part of
        // the log.
        let gap = [filled, blocks(19..20, 2, 18)].concat();
        let gap = gap.into_iter().filter(|head| (head.lsn / BLOCK, head.epoch) != (19, 1));
        assert_eq!(ends(gap.collect()), Some((5, 18)));
        assert_eq!(ends(Vec::new()), None);
    }

    #[test]
    fn a_chain_without_its_checkpoint_is_no_log() {
        assert_eq!(ends(blocks(15..20, 1, 8)), None);
        // In this case, the blocks before the gap are from the previous round of the ring.
        let old = [blocks(2..6, 1, 1), blocks(8..20, 1, 9)].concat();
        assert_eq!(ends(old), Some((8, 20)));
    }

    #[test]
    fn a_closed_log_has_nothing_to_replay() {
        let mut heads = blocks(5..20, 3, 8);
        heads[14].checkpoint = 20 * BLOCK;
        let chain = find_chain(&mut heads).unwrap();
        assert_eq!((chain.checkpoint, chain.end_lsn, chain.epoch), (20 * BLOCK, 20 * BLOCK, 3));
    }

    type WrittenBlock = (BlockHead, Vec<u8>);

    /// Appends records of these sizes. If the flag of a record is true, a flush is requested after
    /// it. Returns the blocks that were written, and the log position after each record.
    fn write(records: &[(u32, bool)]) -> (Vec<WrittenBlock>, Vec<(u64, u64)>) {
        let databases = vec![DatabaseConfig::new(0, 0, 0, 100)];
        let config = MailboxConfig { record_bytes: 9000, ..MailboxConfig::new(7, 8, databases, 1) };
        let config = MailboxConfig { log_buffer_bytes: 1 << 20, ..config };
        let g = Geometry::new(&config);
        let wiring = LogWiring {
            place: 0,
            database: 0,
            database_file: 0,
            write_class: 0,
            flush_class: 0,
            durable_class: 0,
            buffer_at: 0,
        };
        let mut log = LogWriter::new(&config, wiring, LogPosition::formatted(), 5);
        let mut arena = HeapArena(vec![0; 1 << 20]);
        let (mut out, mut poison) = (Vec::<Io>::new(), None);
        let mut written = Vec::new();
        let mut ends = Vec::new();
        for (i, &(data_bytes, flush)) in records.iter().enumerate() {
            let (page, generation, slot) = (i as u32, 1 + i as u32, (i % 16) as u8);
            let directory = Directory([i as u32; 16]);
            let change = Change { page, generation, slot, data_bytes, directory };
            change.encode(log.scratch(change.size_bytes()));
            ends.push(log.append(0, change.size_bytes(), 5, &mut arena));
            if flush || i + 1 == records.len() {
                let ctx =
                    &mut Ctx { now_ns: 0, arena: &mut arena, out: &mut out, poison: &mut poison };
                log.want(u64::MAX);
                log.pump(&g, 8192, ctx);
                for io in out.drain(..) {
                    let bytes =
                        arena.bytes(io.buffer_offset_bytes, io.size_bytes).unwrap().to_vec();
                    for block in bytes.chunks_exact(4096) {
                        written.push((parse_block(&g, 0, block).unwrap(), block.to_vec()));
                    }
                    log.write_done(io.token as u32, 0);
                }
            }
        }
        (written, ends)
    }

    fn records() -> impl Strategy<Value = Vec<(u32, bool)>> {
        let data = prop_oneof![Just(0u32), Just(2000), 0u32..9000, 3800u32..4100];
        proptest::collection::vec((data, any::<bool>()), 1..60)
    }

    proptest! {
        /// A record of any size is read back unchanged, even if it is split by blocks and flushes.
        #[test]
        fn records_come_back(records in records()) {
            let (written, ends) = write(&records);
            let mut parser = Parser::default();
            let mut lsn = 8192;
            for (head, block) in &written {
                prop_assert_eq!(head.lsn, lsn);
                lsn += BLOCK;
                parser.block(head, block, 0);
            }
            prop_assert_eq!(parser.changes as usize, records.len());
            for (i, (start, end)) in ends.iter().enumerate() {
                let replayed = parser.pages[&(i as u32)];
                prop_assert_eq!((replayed.start_lsn, replayed.end_lsn), (*start, *end));
                prop_assert_eq!(replayed.change.data_bytes, records[i].0);
                prop_assert_eq!(replayed.change.directory, Directory([i as u32; 16]));
                prop_assert!(*end <= lsn);
            }
        }

        /// A log that was truncated after any block is read up to the last complete record. If the
        /// log continues after a recovery, it is read up to its new end.
        #[test]
        fn a_cut_log_gives_what_was_whole(records in records(), cut in 0usize..80) {
            let (written, ends) = write(&records);
            let kept = cut.min(written.len());
            let end = 8192 + kept as u64 * BLOCK;
            let mut parser = Parser::default();
            written[..kept].iter().for_each(|(head, block)| parser.block(head, block, 0));
            let whole = ends.iter().filter(|(_, e)| *e <= end).count();
            prop_assert_eq!(parser.changes as usize, whole);
            // After the recovery, the next block starts with a complete record.
            for (head, block) in &written {
                parser.block(head, block, 0);
            }
            prop_assert_eq!(parser.changes as usize, whole + records.len());
        }

        /// The parser does not panic on any block.
        #[test]
        fn any_payload_can_be_parsed(
            bytes in proptest::collection::vec(any::<u8>(), 4096),
            used in 0u16..=4032,
            first_record in any::<u16>(),
        ) {
            let mut parser = Parser::default();
            let head = BlockHead { used, first_record, ..head(8192, 1, 8192) };
            parser.block(&head, &bytes, 0);
            parser.block(&head, &bytes, 0);
        }
    }
}
