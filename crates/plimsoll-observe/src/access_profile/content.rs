//! A reservoir of content that was read back, and what it is like.
//!
//! Transfers that are handed in are cut to at most 64 KiB and kept by reservoir sampling (J. Vitter,
//! *Random Sampling with a Reservoir*, ACM TOMS 11, 1985), so that the sample is of the whole phase.
//! They are laid side by side and compressed in pieces of 64 KiB: a block that is incompressible by
//! itself and the same as its neighbour compresses there, as it does in a storage system that looks
//! at more than 4 KiB (measured: 0.95 in pieces of 4 KiB, 0.27 in pieces of 64 KiB, for buffers that
//! are used again).

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::place::BLOCK_BYTES;

const BLOCK: usize = BLOCK_BYTES as usize;
/// A transfer's share of the sample.
const SLOT: usize = 64 << 10;
/// Bytes kept.
const RESERVOIR_BYTES: usize = 2 << 20;
/// Content is compressed in pieces of this.
const PIECE: usize = 64 << 10;

/// Content that was kept.
#[derive(Clone, Debug)]
pub(super) struct Reservoir {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    handed_in: u64,
    state: u64,
}

/// A transfer that is kept: where it was read, and where it lies in the sample.
#[derive(Clone, Copy, Debug)]
struct Slot {
    address: (u32, u64),
    start: usize,
    end: usize,
}

/// What the sample is like; `None` where nothing was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub blocks: u64,
    pub compressed_share: Option<f64>,
    pub zero_share: Option<f64>,
    pub duplicate_share: Option<f64>,
    pub entropy_bits_per_byte: Option<f64>,
}

impl Reservoir {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            bytes: Vec::with_capacity(RESERVOIR_BYTES),
            slots: Vec::with_capacity(RESERVOIR_BYTES / BLOCK),
            handed_in: 0,
            state: seed | 1,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.handed_in = 0;
    }

    /// Keeps a transfer that was read at an address (file and offset), or not. Never grows beyond what was
    /// reserved. What is read twice at one address is no duplicate: an address is kept once. Which
    /// addresses are kept is looked through only where this one would be.
    pub(super) fn take(&mut self, address: (u32, u64), transfer: &[u8]) {
        let transfer = &transfer[..transfer.len().min(SLOT)];
        if transfer.is_empty() {
            return;
        }
        self.handed_in += 1;
        let fits = self.bytes.len() + transfer.len() <= RESERVOIR_BYTES
            && self.slots.len() < self.slots.capacity();
        let at = if fits { 0 } else { self.random() % self.handed_in };
        if at >= self.slots.len().max(1) as u64
            || self.slots.iter().any(|slot| slot.address == address)
        {
            return;
        }
        if fits {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(transfer);
            self.slots.push(Slot { address, start, end: start + transfer.len() });
            return;
        }
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        if slot.end - slot.start == transfer.len() {
            slot.address = address;
            self.bytes[slot.start..slot.end].copy_from_slice(transfer);
        }
    }

    /// xorshift64 (G. Marsaglia, *Xorshift RNGs*, JSS 8, 2003): a sample needs no better.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Adds another thread's sample. Not on the data path: it may grow.
    pub(super) fn merge(&mut self, other: &Self) {
        for slot in &other.slots {
            if self.slots.iter().any(|mine| mine.address == slot.address) {
                continue;
            }
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&other.bytes[slot.start..slot.end]);
            let end = self.bytes.len();
            self.slots.push(Slot { address: slot.address, start, end });
        }
        self.handed_in += other.handed_in;
    }

    pub(super) fn figures(&self) -> Figures {
        describe(&self.bytes)
    }
}

/// What some bytes are like.
pub(super) fn describe(bytes: &[u8]) -> Figures {
    if bytes.is_empty() {
        return Figures::default();
    }
    let mut hashes = HashSet::new();
    let (mut blocks, mut zero, mut duplicates) = (0u64, 0u64, 0u64);
    for block in bytes.chunks_exact(BLOCK) {
        blocks += 1;
        zero += u64::from(block.iter().all(|byte| *byte == 0));
        duplicates += u64::from(!hashes.insert(xxh3_64(block)));
    }
    let mut compressed = 0usize;
    let mut out = vec![0u8; lz4_flex::block::get_maximum_output_size(PIECE)];
    for piece in bytes.chunks(PIECE) {
        let size = lz4_flex::block::compress_into(piece, &mut out).unwrap_or(piece.len());
        compressed += size.min(piece.len());
    }
    let share = |part: u64| (blocks > 0).then(|| part as f64 / blocks as f64);
    Figures {
        blocks,
        compressed_share: Some(compressed as f64 / bytes.len() as f64),
        zero_share: share(zero),
        duplicate_share: share(duplicates),
        entropy_bits_per_byte: Some(entropy_bits(bytes)),
    }
}

/// Shannon's entropy of the bytes' frequencies.
fn entropy_bits(bytes: &[u8]) -> f64 {
    let mut counts = [0u64; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = bytes.len() as f64;
    let bits = counts.iter().filter(|count| **count > 0).map(|count| {
        let share = *count as f64 / total;
        -share * share.log2()
    });
    bits.sum()
}
