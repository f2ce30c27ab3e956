//! Blocks numbered through all files, scattered, and a bitmap of those that were touched.
//!
//! A block's number is multiplied by an odd constant modulo a power of two: a bijection that scatters
//! neighbours (Knuth, *The Art of Computer Programming* 3, section 6.4, Fibonacci hashing). The
//! blocks whose scattered number begins with `k` zero bits are a spatial sample of one in 2^k, and
//! the remaining bits number them without gaps.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The unit in which working sets are counted.
pub const BLOCK_BYTES: u64 = 4096;

/// 2^64 over the golden ratio, made odd.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bitmaps are of at most 2^21 blocks: 256 KiB, which stay in a core's cache. Above 8 GiB a sample of
/// that many is taken; at half of them touched its error is 0.1 %.
const BITS_MAX: u32 = 21;

/// Blocks of all files.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// Number of the first block of each file, and one past the last.
    first: Box<[u64]>,
    /// Bits of a scattered number.
    pub(super) bits: u32,
    /// As many ones.
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

    /// Numbers of the first and last block of a transfer; `None` outside the files.
    #[inline]
    pub(super) fn range(&self, file: u32, offset: u64, size: u64) -> Option<(u64, u64)> {
        let [begin, end] = *self.first.get(file as usize..file as usize + 2)? else { return None };
        let first = begin + offset / BLOCK_BYTES;
        let last = begin + (offset + size - 1) / BLOCK_BYTES;
        (last < end).then_some((first, last))
    }

    /// The scattered number of a block.
    #[inline]
    pub(super) fn place(&self, block: u64) -> u64 {
        block.wrapping_mul(SCATTER) & self.mask
    }
}

/// Which blocks were touched. One thread writes; others may look on, which costs it nothing: words are loaded and
/// stored, never locked.
#[derive(Debug)]
pub(super) struct Seen {
    /// Places below this are of the sample.
    limit: u64,
    shift: u32,
    pub(super) words: Arc<[AtomicU64]>,
}

impl Clone for Seen {
    /// With bits of its own.
    fn clone(&self) -> Self {
        let copied = |word: &AtomicU64| AtomicU64::new(word.load(Relaxed));
        Self { words: self.words.iter().map(copied).collect(), ..*self }
    }
}

impl Seen {
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

    /// Distinct bytes touched, in whole blocks.
    pub(super) fn bytes(&self, blocks: &Blocks) -> u64 {
        touched_bytes(&[&self.words], self.shift, blocks.total_bytes())
    }

    /// Blocks of the sample stand for two to this power each.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }
}

/// Distinct bytes that bitmaps of the same blocks have between them, in whole blocks.
pub(super) fn touched_bytes(bitmaps: &[&Arc<[AtomicU64]>], shift: u32, total_bytes: u64) -> u64 {
    let words = bitmaps.first().map_or(0, |bitmap| bitmap.len());
    let of_all = |at: usize| {
        let word = |bitmap: &&Arc<[AtomicU64]>| bitmap.get(at).map_or(0, |word| word.load(Relaxed));
        bitmaps.iter().map(word).fold(0, |all, word| all | word)
    };
    let touched: u64 = (0..words).map(|at| u64::from(of_all(at).count_ones())).sum();
    (touched << shift).saturating_mul(BLOCK_BYTES).min(total_bytes)
}
