//! Determines which blocks of a log's ring must exist, and what damaged the blocks that are
//! missing.
//!
//! Every block between two positions was acknowledged, and is not overwritten before the next round
//! of the ring. One of these positions is the end of the log. The other position is usually the
//! length of the ring before the end. After a crash, it can be later by up to the size of the log
//! buffer, because writes in flight at the crash may have overwritten the oldest blocks.

use std::collections::BTreeMap;

use super::super::config::BLOCK_BYTES;
use super::super::geometry::Geometry;
use super::super::page::Damage;
use super::super::poison::{Failure, Place};
use super::super::record::{BlockHead, LogFault, check_block, parse_block};
use super::super::store::{LogPosition, Store};
use super::Notes;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Part of a ring that belongs to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Log position of the first block that exists.
    pub start_lsn: u64,
    /// Log position at which the last block ends.
    pub end_lsn: u64,
    /// Log position at which the replay starts.
    pub checkpoint: u64,
    pub pages_used: u32,
    /// Highest epoch that any block in the ring has.
    pub epoch: u32,
    /// Log position of the first block with the highest epoch.
    pub epoch_lsn: u64,
    /// True if the last block records that the store was closed.
    pub clean: bool,
}

/// Returns the log position from which on every block must exist, up to the end of the log.
/// `closed` is true if no write was in flight when the log was last closed.
pub(crate) fn whole_from(store: &Store, chain: &Chain, closed: bool) -> u64 {
    let (ring, buffer) = (store.ring_bytes(), u64::from(store.config.log_buffer_bytes));
    let reach = if closed && chain.clean { 0 } else { buffer };
    let from = (chain.end_lsn + reach).saturating_sub(ring).max(LogPosition::FIRST_LSN);
    // Before the newest epoch started, a crash had interrupted writes. These writes may have
    // overwritten the blocks before this position.
    let crashed = chain.epoch > LogPosition::formatted().epoch;
    let cut = if crashed { (chain.epoch_lsn + buffer).saturating_sub(ring) } else { 0 };
    from.max(cut)
}

/// Returns the position up to which the log was certainly durable. When a block was submitted, all
/// blocks before it had been acknowledged, except for blocks less than one buffer length older. The
/// last block therefore proves this position.
pub(crate) fn proven_durable_lsn(store: &Store, heads: &[BlockHead], chain: &Chain) -> u64 {
    let buffer = u64::from(store.config.log_buffer_bytes);
    let last = heads.iter().filter(|head| head.epoch == chain.epoch).map(|head| head.lsn).max();
    last.map_or(0, |lsn| (lsn + BLOCK).saturating_sub(buffer))
}

/// Returns the last log position before `end_lsn` whose block is stored at the byte `at` of the
/// ring.
pub(crate) fn lsn_at(at: u64, end_lsn: u64, ring_bytes: u64) -> Option<u64> {
    let back = (end_lsn % ring_bytes + ring_bytes - at - BLOCK) % ring_bytes;
    (end_lsn - BLOCK.min(end_lsn)).checked_sub(back)
}

/// The blocks of a ring. They are checked after the end of the log is known.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    ring_bytes: u64,
    seen: Vec<RingBlock>,
    /// Blocks that were found at a wrong position. The key is the byte offset in the ring at which
    /// the block was found. The value is the log position of the block.
    misdirected: BTreeMap<u64, u64>,
}

/// State of one slot in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RingBlock {
    /// The block cannot be read, because the file ends before it.
    #[default]
    Nothing,
    /// The slot contains a block of this log that belongs at this position. The block may be from
    /// any round of the ring.
    Block,
    /// The slot contains no block that belongs at this position. The value is the kind of damage.
    Other(Damage),
}

impl Ring {
    /// Discards all blocks. The ring now has this number of bytes.
    pub fn clear(&mut self, ring_bytes: u64) {
        self.ring_bytes = ring_bytes;
        self.misdirected.clear();
        self.seen.clear();
        self.seen.resize((ring_bytes / BLOCK) as usize, RingBlock::Nothing);
    }

    /// Records the block at the byte `at` of the ring. If the block belongs at this position,
    /// returns its header.
    pub fn note(
        &mut self,
        g: &Geometry,
        database: u32,
        at: u64,
        block: &[u8],
    ) -> Option<BlockHead> {
        let slot = self.seen.get_mut((at / BLOCK) as usize)?;
        let head = parse_block(g, database, block).filter(|head| head.lsn % self.ring_bytes == at);
        if head.is_some() {
            *slot = RingBlock::Block;
        } else if let Err(fault) = check_block(g, database, (at, self.ring_bytes), block) {
            *slot = RingBlock::Other(fault.damage);
            if let (Damage::Misdirected, Some(lsn)) = (fault.damage, fault.found_lsn) {
                self.misdirected.insert(at, lsn);
            }
        }
        head
    }

    /// Checks that every block of `from..end` exists. `heads` contains the headers of the log,
    /// sorted by position. If a file is too short, reports the file and not each of its missing
    /// blocks.
    pub fn check(
        &self,
        database: u32,
        heads: &[BlockHead],
        (from, end): (u64, u64),
        notes: &mut Notes,
    ) {
        let mut there = heads.iter().map(|head| head.lsn).peekable();
        for lsn in (from.next_multiple_of(BLOCK)..end).step_by(BLOCK as usize) {
            let at = lsn % self.ring_bytes;
            let Some(seen) = self.seen.get((at / BLOCK) as usize) else { return };
            if *seen == RingBlock::Nothing {
                continue;
            }
            notes.report.log_blocks_checked += 1;
            while there.peek().is_some_and(|head| *head < lsn) {
                there.next();
            }
            if there.peek() == Some(&lsn) {
                continue;
            }
            let fault = match seen {
                RingBlock::Other(damage) => {
                    LogFault { damage: *damage, found_lsn: self.misdirected.get(&at).copied() }
                }
                _ => {
                    let found = heads.iter().find(|head| head.lsn % self.ring_bytes == at);
                    LogFault { damage: Damage::Lost, found_lsn: found.map(|head| head.lsn) }
                }
            };
            notes.find(database, Place::Log(lsn), Failure::LogBlock(fault));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_of_the_ring_belongs_to_the_last_position_that_came_by() {
        let (ring, end) = (10 * BLOCK, 23 * BLOCK);
        let at = |place: u64| lsn_at(place * BLOCK, end, ring).map(|lsn| lsn / BLOCK);
        let all: Vec<_> = (0..10).map(|place| at(place).unwrap()).collect();
        assert_eq!(all, [20, 21, 22, 13, 14, 15, 16, 17, 18, 19]);
        // If the log is in its first round, the slots after its end were never written.
        let first: Vec<_> = (0..10).map(|p| lsn_at(p * BLOCK, 3 * BLOCK, ring)).collect();
        assert_eq!(first[..3], [Some(0), Some(BLOCK), Some(2 * BLOCK)]);
        assert!(first[3..].iter().all(Option::is_none));
    }
}
