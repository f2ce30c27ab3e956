//! Access profile of the running load, which other threads can read.
//!
//! The words of the profile are written only by the driving thread, and other threads read them.
//! The counts that a reader sees may be a few operations old. Shortly after the start of the
//! measured phase, it may still see counts from before that phase.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::AccessProfiler;
use super::block_map::touched_bytes;
use super::order::Counts;

/// Handle for reading one [`AccessProfiler`] from another thread.
#[derive(Clone, Debug)]
pub struct LiveAccess {
    read: Arc<[AtomicU64]>,
    written: Arc<[AtomicU64]>,
    shift: u32,
    total_bytes: u64,
    counts: Arc<Counts>,
}

/// Combined counts of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccessCounts {
    /// Number of distinct bytes read so far, in blocks of 4 KiB.
    pub working_set_read_bytes: u64,
    /// Number of distinct bytes written so far, in blocks of 4 KiB.
    pub working_set_written_bytes: u64,
    /// Number of sequential reads, and of all reads except the first read of each client.
    pub reads: SequentialCount,
    /// Number of sequential writes, and of all writes except the first write of each client.
    pub writes: SequentialCount,
}

/// Number of operations, and number of sequential operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequentialCount {
    count: u64,
    sequential: u64,
}

impl SequentialCount {
    /// Returns the random share of the operations since `before`; `None` if there were no
    /// operations, or if the counts were reset.
    #[must_use]
    pub fn random_share_since(self, before: Self) -> Option<f64> {
        let count = self.count.checked_sub(before.count).filter(|count| *count > 0)?;
        let sequential = self.sequential.checked_sub(before.sequential)?;
        // The two counters are not read at exactly the same moment.
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

    /// Combines the counts of all threads, which must use the same files; `None` if there are no
    /// threads.
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
