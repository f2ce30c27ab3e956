//! Blocks numbered through all files, scattered, and a bitmap of those that were touched.
//!
//! A block's number is multiplied by an odd constant modulo a power of two: a bijection that scatters
//! neighbours (Knuth, *The Art of Computer Programming* 3, section 6.4, Fibonacci hashing). The
//! blocks whose scattered number begins with `k` zero bits are a spatial sample of one in 2^k, and
//! the remaining bits number them without gaps.

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

/// Which blocks were touched.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Places below this are of the sample.
    limit: u64,
    shift: u32,
    words: Box<[u64]>,
}

impl Seen {
    pub(super) fn new(blocks: &Blocks) -> Self {
        let bits = blocks.bits.min(BITS_MAX);
        let words = (1usize << bits).div_ceil(64);
        Self { limit: 1 << bits, shift: blocks.bits - bits, words: vec![0; words].into() }
    }

    #[inline]
    pub(super) fn take(&mut self, place: u64) {
        if place < self.limit
            && let Some(word) = self.words.get_mut((place / 64) as usize)
        {
            *word |= 1 << (place % 64);
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Distinct bytes touched, in whole blocks.
    pub(super) fn bytes(&self, blocks: &Blocks) -> u64 {
        let touched: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        (touched << self.shift).saturating_mul(BLOCK_BYTES).min(blocks.total_bytes())
    }
}
