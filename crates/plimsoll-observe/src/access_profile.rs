//! What a workload's operations really were, counted from the operations themselves.
//!
//! A driving thread feeds each operation to a [`AccessProfiler`] of its own as it is issued, and hands it a
//! read's content now and then; at the end the threads' profilers are merged and read as a
//! [`AccessProfile`]. Nothing here allocates, waits or reads a clock per operation.
//!
//! Blocks of 4 KiB are numbered through all files. The working set is counted exactly in a bitmap, or
//! in a spatial sample of it where that would be large ([`place`]); reuse distances always in a sample
//! ([`reuse`], after SHARDS: C. Waldspurger et al., *Efficient MRC Construction with SHARDS*, FAST
//! '15). Other threads may look on while it goes on ([`live`]). Content is kept in a reservoir and looked at when the run is over ([`content`]).

mod content;
mod live;
mod order;
mod place;
mod reuse;

use plimsoll_evidence::observed::{AccessProfile, MissRatio};

use content::Reservoir;
use order::Order;
use place::{Blocks, Seen};
use reuse::Reuse;

pub use live::{AccessNow, Followed, LiveAccess};
pub use place::BLOCK_BYTES;

/// Reads from one look at their content to the next: a look copies one transfer.
const LOOK_EVERY: u32 = 256;

/// One side of the traffic: reads or writes.
#[derive(Clone, Debug)]
struct Side {
    count: u64,
    bytes: u64,
    seen: Seen,
}

/// What the operations of one driving thread were.
#[derive(Clone, Debug)]
pub struct AccessProfiler {
    blocks: Blocks,
    reads: Side,
    writes: Side,
    order: Order,
    reuse: Reuse,
    size_bytes_min: u64,
    size_bytes_max: u64,
    misaligned: u64,
    content: Reservoir,
    until_look: u32,
    /// Threads that this is the sum of: each saw only its own operations.
    parts: u32,
}

impl AccessProfiler {
    /// For `clients` issuers on files of these sizes. `seed` decides which content is kept.
    #[must_use]
    pub fn new(files_bytes: &[u64], clients: usize, seed: u64) -> Self {
        let blocks = Blocks::new(files_bytes);
        let side = || Side { count: 0, bytes: 0, seen: Seen::new(&blocks) };
        Self {
            reads: side(),
            writes: side(),
            order: Order::new(clients, blocks.total_bytes()),
            reuse: Reuse::new(&blocks),
            blocks,
            size_bytes_min: u64::MAX,
            size_bytes_max: 0,
            misaligned: 0,
            content: Reservoir::new(seed),
            until_look: 1,
            parts: 1,
        }
    }

    /// Forgets everything: the measured phase begins.
    pub fn reset(&mut self) {
        for side in [&mut self.reads, &mut self.writes] {
            (side.count, side.bytes) = (0, 0);
            side.seen.clear();
        }
        self.order.clear();
        self.reuse.clear();
        (self.size_bytes_min, self.size_bytes_max, self.misaligned) = (u64::MAX, 0, 0);
        self.content.clear();
        self.until_look = 1;
    }

    /// Takes an operation that a client issues. A transfer of no bytes (a flush) is passed over.
    #[inline(always)]
    pub fn operation(
        &mut self,
        client: u32,
        file: u32,
        is_read: bool,
        offset_bytes: u64,
        size_bytes: u32,
    ) {
        if size_bytes == 0 {
            return;
        }
        let size = u64::from(size_bytes);
        let side = if is_read { &mut self.reads } else { &mut self.writes };
        side.count += 1;
        side.bytes += size;
        self.order.take(client, is_read, file, offset_bytes, size);
        if size < self.size_bytes_min || size > self.size_bytes_max {
            self.size_bytes_min = self.size_bytes_min.min(size);
            self.size_bytes_max = self.size_bytes_max.max(size);
        }
        if !(offset_bytes | size).is_multiple_of(BLOCK_BYTES) {
            self.misaligned += 1;
        }
        let Some((first, last)) = self.blocks.range(file, offset_bytes, size) else { return };
        let place = self.blocks.place(first);
        side.seen.take(place);
        if is_read {
            self.reuse.take(place);
        }
        if first < last {
            self.rest(is_read, first + 1, last);
        }
    }

    /// The blocks of a transfer after its first. Apart, so that an operation of one block keeps its values in
    /// few registers.
    #[inline(never)]
    fn rest(&mut self, is_read: bool, first: u64, last: u64) {
        let side = if is_read { &mut self.reads } else { &mut self.writes };
        for block in first..=last {
            let place = self.blocks.place(block);
            side.seen.take(place);
            if is_read {
                self.reuse.take(place);
            }
        }
    }

    /// Whether the content of a read that has come back should be handed in now: one in 256.
    #[inline]
    pub fn wants_content(&mut self) -> bool {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            return true;
        }
        false
    }

    /// Takes the content of a read of `file` at `offset_bytes` that has come back.
    pub fn content(&mut self, file: u32, offset_bytes: u64, bytes: &[u8]) {
        self.content.take((file, offset_bytes), bytes);
    }

    /// Adds what another thread saw. Both must be of the same files.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            mine.count += theirs.count;
            mine.bytes += theirs.bytes;
            mine.seen.merge(&theirs.seen);
        }
        self.order.merge(&other.order);
        self.reuse.merge(&other.reuse);
        self.size_bytes_min = self.size_bytes_min.min(other.size_bytes_min);
        self.size_bytes_max = self.size_bytes_max.max(other.size_bytes_max);
        self.misaligned += other.misaligned;
        self.content.merge(&other.content);
        self.parts += other.parts;
    }

    /// Looks on from another thread while this goes on.
    #[must_use]
    pub fn live(&self) -> LiveAccess {
        LiveAccess::of(self)
    }

    /// Reads seen, and writes.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.reads.count, self.writes.count)
    }

    /// The figures. Slow: content is compressed here.
    #[must_use]
    pub fn totals(&self) -> AccessProfile {
        let (reads, writes) = (&self.reads, &self.writes);
        let all = reads.count + writes.count;
        let mean = |side: &Side| (side.count > 0).then(|| side.bytes as f64 / side.count as f64);
        let content = self.content.figures();
        AccessProfile {
            working_set_read_bytes: Some(reads.seen.bytes(&self.blocks)),
            working_set_written_bytes: Some(writes.seen.bytes(&self.blocks)),
            working_set_bytes: Some(reads.seen.bytes_with(&writes.seen, &self.blocks)),
            reach_bytes: Some(reads.seen.reach_bytes_with(&writes.seen, &self.blocks)),
            read_sequential_share: self.order.share(true),
            write_sequential_share: self.order.share(false),
            log_sequential_share: None,
            compressed_share: content.compressed_share,
            zero_share: content.zero_share,
            duplicate_share: content.duplicate_share,
            blocks_sampled: content.blocks,
            entropy_bits_per_byte: content.entropy_bits_per_byte,
            reads: Some(reads.count),
            writes: Some(writes.count),
            read_size_bytes_avg: mean(reads),
            write_size_bytes_avg: mean(writes),
            size_bytes_min: (all > 0).then_some(self.size_bytes_min),
            size_bytes_max: (all > 0).then_some(self.size_bytes_max),
            misaligned_share: (all > 0).then(|| self.misaligned as f64 / all as f64),
            miss_ratio: self.miss_ratio(),
        }
    }

    /// Threads each saw their own reads only, so that distances are their own too: between two reads
    /// of a block the others read as much again. Exact where threads work on different blocks, and
    /// an upper bound where they share them.
    fn miss_ratio(&self) -> Vec<MissRatio> {
        self.reuse.curve(u64::from(self.parts))
    }
}

#[cfg(test)]
mod tests;
