//! Which blocks of a log's ring must be there, and what is wrong with those that are not.
//!
//! Every block between two positions was acknowledged and may not be overwritten before the ring comes
//! round. The later position is the end of the log. The earlier one is a ring before it, and as much
//! later as writes could reach beyond the end that a crash cut off: no block is handed to the target
//! further than a log buffer beyond what is durable.

use std::collections::BTreeMap;

use super::super::config::BLOCK_BYTES;
use super::super::geometry::Geometry;
use super::super::page::Damage;
use super::super::poison::{Failure, Place};
use super::super::record::{BlockHead, LogFault, check_block, parse_block};
use super::super::store::{LogPosition, Store};
use super::Notes;

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
    /// First position of that epoch that is still there.
    pub epoch_lsn: u64,
    /// The last block says that the store was closed.
    pub clean: bool,
}

/// First position from which every block up to the end must be there. `closed`: nothing was in flight
/// when the log was last left.
pub(crate) fn whole_from(store: &Store, chain: &Chain, closed: bool) -> u64 {
    let (ring, buffer) = (store.ring_bytes(), u64::from(store.config.log_buffer_bytes));
    let reach = if closed && chain.clean { 0 } else { buffer };
    let from = (chain.end_lsn + reach).saturating_sub(ring).max(LogPosition::FIRST_LSN);
    // Where an epoch begins, a crash had cut off writes beyond it.
    let crashed = chain.epoch > LogPosition::formatted().epoch;
    let cut = if crashed { (chain.epoch_lsn + buffer).saturating_sub(ring) } else { 0 };
    from.max(cut)
}

/// Position up to which the log was durable, as its own blocks prove: one that lies a buffer beyond the
/// end of the chain was handed to the target when all before it had been acknowledged.
pub(crate) fn proven_durable_lsn(store: &Store, heads: &[BlockHead], chain: &Chain) -> u64 {
    let buffer = u64::from(store.config.log_buffer_bytes);
    let last = heads.iter().filter(|head| head.epoch == chain.epoch).map(|head| head.lsn).max();
    last.map_or(0, |lsn| (lsn + BLOCK).saturating_sub(buffer))
}

/// The position whose block belongs at byte `at` of the ring, of those up to `end_lsn`.
pub(crate) fn lsn_at(at: u64, end_lsn: u64, ring_bytes: u64) -> Option<u64> {
    let back = (end_lsn % ring_bytes + ring_bytes - at - BLOCK) % ring_bytes;
    (end_lsn - BLOCK.min(end_lsn)).checked_sub(back)
}

/// Blocks of a ring as they were read: what is at each place, to be judged once the end is known.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    ring_bytes: u64,
    seen: Vec<RingBlock>,
    /// Of blocks that belong elsewhere, by the byte of the ring where they are: their position.
    misdirected: BTreeMap<u64, u64>,
}

/// State of a slot of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RingBlock {
    /// It could not be read: its file ends before it.
    #[default]
    Nothing,
    /// A block of this log that belongs at this place, of one round or another.
    Block,
    /// Something else.
    Other(Damage),
}

impl Ring {
    /// Resets the state, for a ring of this many bytes.
    pub fn clear(&mut self, ring_bytes: u64) {
        self.ring_bytes = ring_bytes;
        self.misdirected.clear();
        self.seen.clear();
        self.seen.resize((ring_bytes / BLOCK) as usize, RingBlock::Nothing);
    }

    /// Notes the block at byte `at` of the ring; gives its head where it belongs there.
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

    /// Checks that every block of `from..end` is there; `heads` are those of the log, by position. Blocks
    /// of a file that is too short are not listed: the file is.
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
        // A log that has not come round yet.
        let first: Vec<_> = (0..10).map(|p| lsn_at(p * BLOCK, 3 * BLOCK, ring)).collect();
        assert_eq!(first[..3], [Some(0), Some(BLOCK), Some(2 * BLOCK)]);
        assert!(first[3..].iter().all(Option::is_none));
    }
}
