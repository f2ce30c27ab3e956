//! Access profile of the running load, which other threads can read.
//!
//! Only the driving thread writes the words of the profile; other threads read them. The counts
//! that a reader sees may be a few operations old. Shortly after the start of the measured phase, a
//! reader may still see counts from before that phase.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::AccessProfiler;
use super::block_map::touched_bytes;
use super::order::Counts;

/// Handle to one [`AccessProfiler`], for other threads that read its counts.
#[derive(Clone, Debug)]
pub struct LiveAccess {
    read: Arc<[AtomicU64]>,
    written: Arc<[AtomicU64]>,
    shift: u32,
    total_bytes: u64,
    counts: Arc<Counts>,
}

/// Counts of all threads, combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccessCounts {
    /// Size of the data that was read at least once, counted in blocks of 4 KiB.
    pub working_set_read_bytes: u64,
    /// Size of the data that was written at least once, counted in blocks of 4 KiB.
    pub working_set_written_bytes: u64,
    /// Counts all reads except the first read of each client, and the sequential reads among them.
    pub reads: SequentialCount,
    /// Counts all writes except the first write of each client, and the sequential writes among
    /// them.
    pub writes: SequentialCount,
}

/// Returns two numbers: the number of operations, and the number of sequential operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequentialCount {
    count: u64,
    sequential: u64,
}

impl SequentialCount {
    /// Returns the share of random operations since `before`; `None` if there were no operations,
    /// or if the counts were reset.
    #[must_use]
    pub fn random_share_since(self, before: Self) -> Option<f64> {
        let count = self.count.checked_sub(before.count).filter(|count| *count > 0)?;
        let sequential = self.sequential.checked_sub(before.sequential)?;
        // The two counters are read one after the other, so the second may already include a later
        // operation.
        Some(1.0 - (sequential as f64 / count as f64).min(1.0))
    }
}

impl LiveAccess {
    pub(super) fn of(profiler: &AccessProfiler) -> Self {
        Self {
            read: Arc::clone(&profiler.reads.seen.words),
            written: Arc::clone(&profiler.writes.seen.words),
            shift: profiler.reads.seen.shift(),
            total_bytes: profiler.blocks.total_bytes(),
            counts: Arc::clone(&profiler.order.counts),
        }
    }

    /// Combines the counts of all threads. The threads must use the same files. `None` if there are
    /// no threads.
    #[must_use]
    pub fn now(all: &[Self]) -> Option<AccessCounts> {
        let first = all.first()?;
        let touched = |bitmap: fn(&Self) -> &Arc<[AtomicU64]>| {
            let bitmaps: Vec<_> = all.iter().map(bitmap).collect();
            touched_bytes(&bitmaps, first.shift, first.total_bytes)
        };
        let followed = |is_read: bool| {
            let mut sum = SequentialCount::default();
            for (sequential, count) in all.iter().map(|one| one.counts.of(is_read)) {
                sum.count += count;
                sum.sequential += sequential;
            }
            sum
        };
        Some(AccessCounts {
            working_set_read_bytes: touched(|one| &one.read),
            working_set_written_bytes: touched(|one| &one.written),
            reads: followed(true),
            writes: followed(false),
        })
    }
}
