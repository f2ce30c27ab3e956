//! Format of the log. This module creates and parses the blocks and records of the log.
//!
//! The log is one endless stream of bytes. A position in this stream (LSN) is a byte offset. The
//! stream is stored in blocks of 4 KiB, in a ring of files. Block `n` is at slot `n mod ring`. Each
//! block has this layout:
//!
//! ```text
//! 0  crc32c of bytes 4.. │ 4 magic │ 8 run id │ 16 database │ 20 epoch │ 24 LSN │ 32 checkpoint
//! 40 pages used │ 44 payload bytes │ 46 first record (0xffff: none starts here) │ 48 flags │ 52 0
//! 64 payload
//! ```
//! An acknowledged block is not overwritten before the next round of the ring. The epoch increases
//! with every recovery. If a crash left blocks after the end of the log, these blocks therefore
//! never become part of the new log.
//!
//! A record contains the whole directory of its page after the change (the post-image). The latest
//! record of a page is therefore sufficient to restore the page from any state after a crash.

use plimsoll_sys::simd;

use super::config::{BLOCK_BYTES, SLOTS_MAX};
use super::geometry::{Geometry, blocks};
use super::page::{Damage, Directory, u16_at, u32_at, u64_at};

/// Number of bytes in a block that come before its payload.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// Number of payload bytes in a block.
pub const BLOCK_PAYLOAD_BYTES: usize = BLOCK_BYTES as usize - BLOCK_HEADER_BYTES;
/// Number of bytes in a record that come before its data.
pub const RECORD_HEADER_BYTES: usize = 32 + 4 * SLOTS_MAX;

const MAGIC: u32 = u32::from_le_bytes(*b"PLMl");
/// Value of the header field `first record` in a block in which no record starts.
pub(crate) const NO_RECORD: u16 = u16::MAX;

/// Contents of a log block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    /// Id of the database to which the log belongs.
    pub database: u32,
    /// Epoch of the block. The epoch increases with every recovery.
    pub epoch: u32,
    /// Log position (LSN) of the block. It is a multiple of 4,096.
    pub lsn: u64,
    /// Log position before which every change is durable in the database file.
    pub checkpoint: u64,
    /// Number of pages that the database uses.
    pub pages_used: u32,
    /// Number of payload bytes that this block uses.
    pub used: u16,
    /// Offset of the first record that starts in this block, counted in payload bytes. It is 0xffff
    /// if no record starts in the block.
    pub first_record: u16,
    /// True if the store was closed after this block. Recovery then has no log to replay.
    pub clean: bool,
}

/// Completes a block whose payload is already written. Writes the header, fills the space after the
/// payload, and computes the checksum.
pub(crate) fn seal_block(g: &Geometry, head: &BlockHead, block: &mut [u8]) {
    let end = BLOCK_HEADER_BYTES + usize::from(head.used).min(BLOCK_PAYLOAD_BYTES);
    let counter = blocks(head.lsn) << 1;
    simd::fill(g.log_key(head.database, head.epoch), counter, &mut block[end..]);
    block[..BLOCK_HEADER_BYTES].fill(0);
    block[4..8].copy_from_slice(&MAGIC.to_le_bytes());
    block[8..16].copy_from_slice(&g.run_id.to_le_bytes());
    block[16..20].copy_from_slice(&head.database.to_le_bytes());
    block[20..24].copy_from_slice(&head.epoch.to_le_bytes());
    block[24..32].copy_from_slice(&head.lsn.to_le_bytes());
    block[32..40].copy_from_slice(&head.checkpoint.to_le_bytes());
    block[40..44].copy_from_slice(&head.pages_used.to_le_bytes());
    block[44..46].copy_from_slice(&head.used.to_le_bytes());
    block[46..48].copy_from_slice(&head.first_record.to_le_bytes());
    block[48] = u8::from(head.clean);
    let crc = simd::crc32c(0, &block[4..]);
    block[0..4].copy_from_slice(&crc.to_le_bytes());
}

/// Fills a block of a log that is being preallocated. The bytes contain no zeros and no repeats,
/// and they are never a valid block.
pub(crate) fn format_block(g: &Geometry, database: u32, place: u64, block: &mut [u8]) {
    simd::fill(g.log_key(database, 0), place << 1 | 1, block);
    block[4..8].copy_from_slice(b"PLMf");
}

/// Damage to a log block that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFault {
    /// Kind of damage. All sectors of a block share one checksum, so a torn block is reported as
    /// corrupt.
    pub damage: Damage,
    /// Log position of the block that was found in place of the expected block; `None` if no block
    /// was found.
    pub found_lsn: Option<u64>,
}

/// Checks a block. It was read from the position `lsn` in the log of `database`. The ring of this
/// log has `ring_bytes` bytes.
pub(crate) fn check_block(
    g: &Geometry,
    database: u32,
    (lsn, ring_bytes): (u64, u64),
    block: &[u8],
) -> Result<BlockHead, LogFault> {
    let fault = |damage, found_lsn| Err(LogFault { damage, found_lsn });
    let Some((run_id, head)) = parse_any_block(block) else {
        if block.iter().all(|byte| *byte == 0) {
            return fault(Damage::Unwritten, None);
        }
        // The slot still contains the bytes from the format phase. The first write to this slot
        // therefore never reached the target.
        let mut filler = [0; BLOCK_BYTES as usize];
        format_block(g, database, blocks(lsn % ring_bytes.max(1)), &mut filler);
        let damage = if block == filler { Damage::Lost } else { Damage::Corrupt };
        return fault(damage, None);
    };
    if run_id != g.run_id {
        return fault(Damage::Stale, None);
    }
    if head.database == database && head.lsn == lsn {
        return Ok(head);
    }
    let older_round = head.lsn < lsn && (lsn - head.lsn).is_multiple_of(ring_bytes.max(1));
    if head.database == database && older_round {
        return fault(Damage::Lost, Some(head.lsn));
    }
    fault(Damage::Misdirected, Some(head.lsn))
}

/// Parses a block that belongs to the log of `database` in this store. Returns `None` for any other
/// bytes.
pub(crate) fn parse_block(g: &Geometry, database: u32, block: &[u8]) -> Option<BlockHead> {
    let (run_id, head) = parse_any_block(block)?;
    (run_id == g.run_id && head.database == database).then_some(head)
}

/// Parses a block that belongs to the log of any store. Also returns the number of the store.
/// Returns `None` for any other bytes.
fn parse_any_block(block: &[u8]) -> Option<(u64, BlockHead)> {
    let whole = block.len() == BLOCK_BYTES as usize && u32_at(block, 4) == MAGIC;
    if !whole || simd::crc32c(0, &block[4..]) != u32_at(block, 0) {
        return None;
    }
    let head = BlockHead {
        database: u32_at(block, 16),
        epoch: u32_at(block, 20),
        lsn: u64_at(block, 24),
        checkpoint: u64_at(block, 32),
        pages_used: u32_at(block, 40),
        used: u16_at(block, 44),
        first_record: u16_at(block, 46),
        clean: block[48] == 1,
    };
    let sane = usize::from(head.used) <= BLOCK_PAYLOAD_BYTES && head.lsn.is_multiple_of(4096);
    sane.then_some((u64_at(block, 8), head))
}

/// A log record, which describes one change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub page: u32,
    /// Generation that the next write of the page will have.
    pub generation: u32,
    pub slot: u8,
    /// Number of bytes of data that follow the record in the log.
    pub data_bytes: u32,
    /// Directory of the page after the change.
    pub directory: Directory,
}

impl Change {
    /// Returns the size of the record in bytes, including its data.
    pub fn size_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.data_bytes as usize
    }

    /// Writes the header of the record.
    pub(crate) fn encode(&self, out: &mut [u8]) {
        out[..RECORD_HEADER_BYTES].fill(0);
        out[0..4].copy_from_slice(&(self.size_bytes() as u32).to_le_bytes());
        out[4..8].copy_from_slice(&self.page.to_le_bytes());
        out[8..12].copy_from_slice(&self.generation.to_le_bytes());
        out[12] = self.slot;
        for (slot, entry) in self.directory.0.iter().enumerate() {
            out[32 + 4 * slot..36 + 4 * slot].copy_from_slice(&entry.to_le_bytes());
        }
    }

    /// Parses the header of a record. Returns `None` if the header is not valid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let size = u32_at(bytes, 0) as usize;
        if bytes.len() < RECORD_HEADER_BYTES || !(RECORD_HEADER_BYTES..1 << 20).contains(&size) {
            return None;
        }
        let mut directory = Directory::default();
        for (slot, entry) in directory.0.iter_mut().enumerate() {
            *entry = u32_at(bytes, 32 + 4 * slot);
        }
        Some(Self {
            page: u32_at(bytes, 4),
            generation: u32_at(bytes, 8),
            slot: bytes[12],
            data_bytes: (size - RECORD_HEADER_BYTES) as u32,
            directory,
        })
    }
}

/// Returns the log position that is `bytes` bytes of payload after `lsn`. The headers of blocks are
/// not counted.
pub(crate) fn advance(lsn: u64, bytes: usize) -> u64 {
    let (header, payload) = (BLOCK_HEADER_BYTES as u64, BLOCK_PAYLOAD_BYTES as u64);
    let block = lsn / 4096;
    let within = (lsn % 4096).saturating_sub(header);
    let total = block * payload + within + bytes as u64;
    // If the position is at the end of a block, it is not moved to the next block. That block may
    // never be started.
    let (block, within) = match (total / payload, total % payload) {
        (block, 0) if bytes > 0 => (block - 1, payload),
        pair => pair,
    };
    block * 4096 + header + within
}
