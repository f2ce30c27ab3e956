//! Access profile of the running load, for readers in other threads.
//!
//! A driving thread stores into words that only it writes, and readers load them. A reader may see
//! counts that are some operations old. Shortly after the start of the measured phase, it may still
//! see counts from before.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::AccessProfiler;
use super::block_map::touched_bytes;
use super::order::Counts;

/// Handle to read one [`AccessProfiler`] from another thread.
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
    /// Distinct bytes read until now, in blocks of 4 KiB.
    pub working_set_read_bytes: u64,
    /// Distinct bytes written until now, in blocks of 4 KiB.
    pub working_set_written_bytes: u64,
    /// Sequential reads among all reads, except for the first of each client.
    pub reads: SequentialCount,
    /// Sequential writes among all writes, except for the first of each client.
    pub writes: SequentialCount,
}

/// Number of operations, and number of sequential operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequentialCount {
    count: u64,
    sequential: u64,
}

impl SequentialCount {
    /// Returns the random share of the operations since `before`; `None` if there were none or the
    /// counts were reset.
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

    /// Combines the counts of all threads, which must use the same files; `None` without any.
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
