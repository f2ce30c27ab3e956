//! Stores a sample of the content that was read, and analyses it.
//!
//! A sample contains at most 64 KiB of each transfer. Reservoir sampling (J. Vitter, *Random
//! Sampling with a Reservoir*, ACM TOMS 11, 1985) ensures that the sample represents the whole
//! phase. The samples are concatenated and compressed in pieces of 64 KiB. If an incompressible
//! block is equal to the preceding block, this measurement counts it as compressible. A storage
//! system that compresses more than 4 KiB together does the same. If a load reuses its buffers, the
//! measured ratio is 0.95 with pieces of 4 KiB, and 0.27 with pieces of 64 KiB.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::block_map::BLOCK_BYTES;

const BLOCK: usize = BLOCK_BYTES as usize;
/// Maximum number of bytes that are sampled from one transfer.
const SLOT: usize = 64 << 10;
/// Size of the reservoir in bytes.
const RESERVOIR_BYTES: usize = 2 << 20;
/// Size of the pieces that are compressed, in bytes.
const PIECE: usize = 64 << 10;

/// Sampled content.
#[derive(Clone, Debug)]
pub(super) struct Reservoir {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    handed_in: u64,
    state: u64,
}

/// Address of a sampled transfer, and the position of its content in the sample.
#[derive(Clone, Copy, Debug)]
struct Slot {
    address: (u32, u64),
    start: usize,
    end: usize,
}

/// Statistics of the sample. All values are `None` if the sample is empty.
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

    /// Offers a transfer and its address (file and offset) to the reservoir. The reservoir never
    /// grows beyond its reserved memory. Data that is read again from the same address is not
    /// duplicate data, so each address is stored only once. The function searches for the address
    /// only if it would otherwise store the transfer.
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

    /// Random number generator xorshift64 (G. Marsaglia, *Xorshift RNGs*, JSS 8, 2003). Its quality
    /// is sufficient for sampling.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Adds another thread's sample. This function may allocate memory, because it is not on the
    /// data path.
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

/// Computes the statistics of a sample.
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

/// Returns Shannon's entropy, computed from the frequencies of the byte values.
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
