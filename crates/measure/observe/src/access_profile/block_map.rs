//! Numbers the blocks of all files in scattered order, and records touched blocks in a bitmap.
//!
//! A block's number is multiplied by an odd constant modulo a power of two. This bijection
//! distributes adjacent numbers (Knuth, *The Art of Computer Programming* 3, section 6.4, Fibonacci
//! hashing). The blocks whose scattered number begins with `k` zero bits are a spatial sample: one
//! block in 2^k. The remaining bits of the scattered number are the index of the block in the
//! sample, without gaps.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Size of the blocks in which the working set is counted.
pub const BLOCK_BYTES: u64 = 4096;

/// The odd number that is nearest to 2^64 divided by the golden ratio.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Multiplicative inverse of [`SCATTER`] modulo 2^64.
const GATHER: u64 = inverse(SCATTER);

/// Number of equal parts into which the data is divided. The number of parts with touched blocks
/// shows how much of the data an access pattern reaches.
const PARTS: u64 = 256;

/// Returns the inverse of an odd number modulo 2^64. In the lowest three bits, an odd number is its
/// own inverse. Each Newton step doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut correct = 3;
    while correct < u64::BITS {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        correct *= 2;
    }
    x
}

/// Maximum number of blocks in a bitmap: 2^21. A bitmap of this size takes 256 KiB, which fits in
/// the cache of a core. If the files have more than 8 GiB, the bitmap contains a sample of 2^21
/// blocks. If half of the sampled blocks are touched, the sampling error is 0.1 %.
const BITS_MAX: u32 = 21;

/// Assigns numbers to the blocks of all files.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// For each file, the number of its first block. The last entry is the end of the last file.
    first: Box<[u64]>,
    /// Number of bits of a scattered number.
    pub(super) bits: u32,
    /// Mask whose lowest `bits` bits are set.
    mask: u64,
}

impl Blocks {
    pub(super) fn new(files_bytes: &[u64]) -> Self {
        let mut first = vec![0u64];
        for bytes in files_bytes {
            let last = first.last().copied().unwrap_or(0);
            first.push(last.saturating_add(bytes.div_ceil(BLOCK_BYTES)));
        }
        let total = first.last().copied().unwrap_or(0).max(2);
        let bits = u64::BITS - (total - 1).leading_zeros();
        Self { first: first.into(), bits, mask: u64::MAX >> (u64::BITS - bits) }
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.first.last().copied().unwrap_or(0).saturating_mul(BLOCK_BYTES)
    }

    /// Returns the first and the last block number of a transfer; `None` if the transfer is outside
    /// the files.
    #[inline]
    pub(super) fn range(&self, file: u32, offset: u64, size: u64) -> Option<(u64, u64)> {
        let [begin, end] = *self.first.get(file as usize..file as usize + 2)? else { return None };
        let first = begin + offset / BLOCK_BYTES;
        let last = begin + (offset + size - 1) / BLOCK_BYTES;
        (last < end).then_some((first, last))
    }

    /// Returns the block with this scattered number.
    fn block(&self, place: u64) -> u64 {
        place.wrapping_mul(GATHER) & self.mask
    }

    /// Returns the scattered number of a block.
    #[inline]
    pub(super) fn place(&self, block: u64) -> u64 {
        block.wrapping_mul(SCATTER) & self.mask
    }
}

/// Bitmap of touched blocks. One thread writes the bitmap, and other threads may read it. No lock
/// is needed, because the words are atomic variables, which are only loaded and stored.
#[derive(Debug)]
pub(super) struct TouchedBlocks {
    /// Blocks with scattered numbers below this value are in the sample.
    limit: u64,
    shift: u32,
    pub(super) words: Arc<[AtomicU64]>,
}

impl Clone for TouchedBlocks {
    /// The clone has its own bitmap.
    fn clone(&self) -> Self {
        let copied = |word: &AtomicU64| AtomicU64::new(word.load(Relaxed));
        Self { words: self.words.iter().map(copied).collect(), ..*self }
    }
}

impl TouchedBlocks {
    pub(super) fn new(blocks: &Blocks) -> Self {
        let bits = blocks.bits.min(BITS_MAX);
        let words = (1usize << bits).div_ceil(64);
        Self {
            limit: 1 << bits,
            shift: blocks.bits - bits,
            words: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, place: u64) {
        if place < self.limit
            && let Some(word) = self.words.get((place / 64) as usize)
        {
            word.store(word.load(Relaxed) | 1 << (place % 64), Relaxed);
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter().zip(&*other.words) {
            mine.store(mine.load(Relaxed) | theirs.load(Relaxed), Relaxed);
        }
    }

    /// Returns the number of distinct bytes that were touched. Touched blocks count as a whole.
    pub(super) fn bytes(&self, blocks: &Blocks) -> u64 {
        touched_bytes(&[&self.words], self.shift, blocks.total_bytes())
    }

    /// Returns the number of distinct bytes that are marked in at least one of two bitmaps.
    pub(super) fn bytes_with(&self, other: &Self, blocks: &Blocks) -> u64 {
        touched_bytes(&[&self.words, &other.words], self.shift, blocks.total_bytes())
    }

    /// Divides the data into [`PARTS`] equal parts. Returns the total size of those parts that have
    /// a marked block in at least one of the two bitmaps.
    pub(super) fn reach_bytes_with(&self, other: &Self, blocks: &Blocks) -> u64 {
        let total = blocks.total_bytes() / BLOCK_BYTES;
        let parts = total.min(PARTS);
        if parts == 0 {
            return 0;
        }
        let mut reached = [false; PARTS as usize];
        for (at, (mine, theirs)) in self.words.iter().zip(&*other.words).enumerate() {
            let mut word = mine.load(Relaxed) | theirs.load(Relaxed);
            while word != 0 {
                let place = at as u64 * 64 + u64::from(word.trailing_zeros());
                word &= word - 1;
                let block = u128::from(blocks.block(place)).min(u128::from(total - 1));
                let part = block * u128::from(parts) / u128::from(total);
                if let Some(part) = reached.get_mut(part as usize) {
                    *part = true;
                }
            }
        }
        let count = reached.iter().filter(|part| **part).count() as u128;
        let bytes = u128::from(blocks.total_bytes()) * count / u128::from(parts);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the sampling shift: each sampled block represents 2^shift blocks.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }
}

/// Combines several bitmaps of the same blocks. Returns the size of the blocks that are marked in
/// at least one of them.
pub(super) fn touched_bytes(bitmaps: &[&Arc<[AtomicU64]>], shift: u32, total_bytes: u64) -> u64 {
    let words = bitmaps.first().map_or(0, |bitmap| bitmap.len());
    let of_all = |at: usize| {
        let word = |bitmap: &&Arc<[AtomicU64]>| bitmap.get(at).map_or(0, |word| word.load(Relaxed));
        bitmaps.iter().map(word).fold(0, |all, word| all | word)
    };
    let touched: u64 = (0..words).map(|at| u64::from(of_all(at).count_ones())).sum();
    (touched << shift).saturating_mul(BLOCK_BYTES).min(total_bytes)
}
