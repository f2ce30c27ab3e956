//! Computes the access profile of a workload from the workload's own operations.
//!
//! Each driving thread passes its operations to an [`AccessProfiler`] when it issues them. It also
//! passes the content of some reads. At the end, the profilers are merged into one
//! [`AccessProfile`]. The code that runs for each operation does not allocate memory, wait or read
//! a clock.
//!
//! Blocks of 4 KiB are numbered across all files. The working set is counted exactly in a bitmap,
//! or in a spatial sample if the bitmap would be large ([`block_map`]). Reuse distances are always
//! sampled ([`reuse`], after SHARDS: C. Waldspurger et al., *Efficient MRC Construction with
//! SHARDS*, FAST '15). Other threads can read the counts during the run ([`live`]). Samples of the
//! read content are stored in a reservoir, and analysed after the run ([`content`]).

mod block_map;
mod content;
mod live;
mod order;
mod reuse;

use plimsoll_evidence::observed::{AccessProfile, MissRatio};

use block_map::{Blocks, TouchedBlocks};
use content::Reservoir;
use order::Order;
use reuse::Reuse;

pub use block_map::BLOCK_BYTES;
pub use live::{AccessCounts, LiveAccess, SequentialCount};

/// The content of one in this number of reads is sampled. A sample is a copy of one transfer.
const LOOK_EVERY: u32 = 256;

/// Counters of the reads or of the writes.
#[derive(Clone, Debug)]
struct Side {
    count: u64,
    bytes: u64,
    seen: TouchedBlocks,
}

/// Profiler of one driving thread.
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
    /// Number of threads whose counts this profiler contains. Each thread has counted only its own
    /// operations.
    parts: u32,
}

impl AccessProfiler {
    /// Creates a profiler for `clients` clients. `sizes` contains the sizes of the files. `seed`
    /// determines which content is sampled.
    #[must_use]
    pub fn new(files_bytes: &[u64], clients: usize, seed: u64) -> Self {
        let blocks = Blocks::new(files_bytes);
        let side = || Side { count: 0, bytes: 0, seen: TouchedBlocks::new(&blocks) };
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

    /// Clears all counts at the start of the measured phase.
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

    /// Counts an operation of a client. Transfers of zero bytes (flushes) are ignored.
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

    /// Counts all blocks of a transfer except the first. This is a separate function, so that
    /// operations on a single block use fewer registers.
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

    /// Returns true if the content of the completed read must be sampled. This is true for one read
    /// in 256.
    #[inline]
    pub fn samples_content(&mut self) -> bool {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            return true;
        }
        false
    }

    /// Samples the content of a completed read of `file` at `offset_bytes`.
    pub fn content(&mut self, file: u32, offset_bytes: u64, bytes: &[u8]) {
        self.content.take((file, offset_bytes), bytes);
    }

    /// Adds the counts of another thread, which must use the same files.
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

    /// Returns a handle. Other threads can read the counts with it.
    #[must_use]
    pub fn live(&self) -> LiveAccess {
        LiveAccess::of(self)
    }

    /// Returns two numbers: the number of reads and the number of writes.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.reads.count, self.writes.count)
    }

    /// Computes the profile. This is slow, because it compresses the sampled content.
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

    /// Between two reads of a block by one thread, other threads also read blocks. Each thread
    /// counts only its own reads, so the distances are too short and must be scaled. The scaled
    /// result is exact if threads use different blocks, and an upper bound if threads share blocks.
    fn miss_ratio(&self) -> Vec<MissRatio> {
        self.reuse.curve(u64::from(self.parts))
    }
}

#[cfg(test)]
mod tests;
