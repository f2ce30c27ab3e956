//! Counts the reuse distances of a spatial sample of blocks, and computes the miss-ratio curve from
//! them.
//!
//! The reuse distance of an access is the number of distinct blocks that were accessed since the
//! last access to the same block. If this distance is not smaller than the number of blocks in an
//! LRU cache, the cache misses the access. See R. Mattson et al., *Evaluation Techniques for
//! Storage Hierarchies*, IBM Systems Journal 9, 1970. In a spatial sample of one block in 2^k,
//! distances shrink by the same factor (SHARDS, FAST '15). The first access to a block is a miss at
//! every cache size. If first accesses were omitted, the curve of a uniform load would be 7
//! percentage points too low.
//!
//! Accesses are numbered consecutively. A Fenwick tree over these numbers counts the distances. The
//! tree contains only the last access to each block. When no numbers are left, the last accesses
//! are renumbered.

use plimsoll_evidence::observed::MissRatio;

use super::block_map::{BLOCK_BYTES, Blocks};

/// At most one block in 2^6 is sampled, so most accesses need only one comparison.
const SHIFT_MIN: u32 = 6;
/// At most 2^11 blocks are sampled.
const BITS_MAX: u32 = 11;
/// Number of accesses after which the last accesses are renumbered.
const TURNS: usize = 1 << 13;
/// Number of buckets. A bucket counts the distances between one power of two and the next.
const BUCKETS: usize = 64;
/// Value for a block that was never accessed.
const NEVER: u32 = u32::MAX;

/// Reuse distances of the sampled blocks.
#[derive(Clone, Debug)]
pub(super) struct Reuse {
    limit: u64,
    shift: u32,
    /// Number of each block's last access.
    last: Box<[u32]>,
    /// For each access number: the accessed block, if this access is still the last access to that
    /// block.
    at: Box<[u32]>,
    /// Fenwick tree over the last access to each block, indexed by access number plus 1.
    tree: Box<[u32]>,
    next: u32,
    standing: u32,
    /// Number of accesses in each bucket. Distances are counted in sampled blocks.
    distances: [u64; BUCKETS],
    cold: u64,
}

impl Reuse {
    pub(super) fn new(blocks: &Blocks) -> Self {
        let bits = blocks.bits.saturating_sub(SHIFT_MIN).min(BITS_MAX);
        Self {
            limit: 1 << bits,
            shift: blocks.bits - bits,
            last: vec![NEVER; 1 << bits].into(),
            at: vec![NEVER; TURNS].into(),
            tree: vec![0; TURNS + 1].into(),
            next: 0,
            standing: 0,
            distances: [0; BUCKETS],
            cold: 0,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, place: u64) {
        if place < self.limit {
            self.follow(place as u32);
        }
    }

    #[cold]
    fn follow(&mut self, place: u32) {
        if self.next as usize == TURNS {
            self.renumber();
        }
        let before = self.last[place as usize];
        if before == NEVER {
            self.cold += 1;
        } else {
            // The number of distinct blocks that were accessed since the last access to this block
            // equals the number of last accesses with a higher number.
            let distance = u64::from(self.standing - self.up_to(before));
            let bucket = (u64::BITS - distance.leading_zeros()) as usize;
            self.distances[bucket.min(BUCKETS - 1)] += 1;
            self.add(before, false);
            self.at[before as usize] = NEVER;
        }
        self.add(self.next, true);
        self.at[self.next as usize] = place;
        self.last[place as usize] = self.next;
        self.next += 1;
    }

    /// Renumbers the last accesses from 0, without changing their order.
    fn renumber(&mut self) {
        self.tree.fill(0);
        let mut next = 0;
        for turn in 0..TURNS {
            let place = self.at[turn];
            if place != NEVER {
                self.at[turn] = NEVER;
                self.at[next as usize] = place;
                self.last[place as usize] = next;
                next += 1;
            }
        }
        (self.next, self.standing) = (next, 0);
        for turn in 0..next {
            self.add(turn, true);
        }
    }

    fn add(&mut self, turn: u32, stands: bool) {
        let mut index = turn as usize + 1;
        while index < self.tree.len() {
            let node = &mut self.tree[index];
            *node = if stands { *node + 1 } else { *node - 1 };
            index += index & index.wrapping_neg();
        }
        self.standing = if stands { self.standing + 1 } else { self.standing - 1 };
    }

    /// Returns how many of the last accesses have an access number up to this number.
    fn up_to(&self, turn: u32) -> u32 {
        let mut index = turn as usize + 1;
        let mut sum = 0;
        while index > 0 {
            sum += self.tree[index];
            index &= index - 1;
        }
        sum
    }

    pub(super) fn clear(&mut self) {
        self.last.fill(NEVER);
        self.at.fill(NEVER);
        self.tree.fill(0);
        (self.next, self.standing, self.cold) = (0, 0, 0);
        self.distances = [0; BUCKETS];
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.distances.iter_mut().zip(&other.distances) {
            *mine += theirs;
        }
        self.cold += other.cold;
    }

    /// Returns the miss ratio for each cache size, from the smallest bucket to the largest observed
    /// distance. Distances are multiplied by `scale`.
    pub(super) fn curve(&self, scale: u64) -> Vec<MissRatio> {
        let all = self.cold + self.distances.iter().sum::<u64>();
        let Some(largest) = self.distances.iter().rposition(|count| *count > 0) else {
            return Vec::new();
        };
        let mut curve = Vec::new();
        let mut hits = 0;
        for (bucket, count) in self.distances.iter().enumerate().take(largest + 1) {
            hits += count;
            // Bucket `n` counts distances below 2^n, in sampled blocks.
            let blocks = (1u64 << bucket) << self.shift;
            curve.push(MissRatio {
                cache_bytes: blocks.saturating_mul(BLOCK_BYTES).saturating_mul(scale),
                miss_share: 1.0 - hits as f64 / all as f64,
            });
        }
        curve
    }
}
