//! What the operations are while the load goes on, for who looks on from another thread.
//!
//! A driving thread stores into words that nobody else writes; whoever looks on loads them now and then. What is
//! seen may be some operations old, and a moment after the measured phase began a part of what was before it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::AccessProfiler;
use super::order::Counts;
use super::place::touched_bytes;

/// Looks on at one [`AccessProfiler`].
#[derive(Clone, Debug)]
pub struct LiveAccess {
    read: Arc<[AtomicU64]>,
    written: Arc<[AtomicU64]>,
    shift: u32,
    total_bytes: u64,
    counts: Arc<Counts>,
}

/// What the operations of all threads were, up to a look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccessNow {
    /// Distinct bytes that were read so far, in blocks of 4 KiB.
    pub working_set_read_bytes: u64,
    /// Distinct bytes that were written.
    pub working_set_written_bytes: u64,
    /// Reads that were no client's first, and those of them that followed its last operation.
    pub reads: Followed,
    /// The same of the writes.
    pub writes: Followed,
}

/// Operations, and those of them that followed the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    count: u64,
    sequential: u64,
}

impl Followed {
    /// The share that did not follow, of those since `before`; `None`: there were none, or counting began anew.
    #[must_use]
    pub fn random_share_since(self, before: Self) -> Option<f64> {
        let count = self.count.checked_sub(before.count).filter(|count| *count > 0)?;
        let sequential = self.sequential.checked_sub(before.sequential)?;
        // The two counts are not of the very same moment.
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

    /// What the operations of all of these were; all must be of the same files. `None` without any.
    #[must_use]
    pub fn now(all: &[Self]) -> Option<AccessNow> {
        let first = all.first()?;
        let touched = |bitmap: fn(&Self) -> &Arc<[AtomicU64]>| {
            let bitmaps: Vec<_> = all.iter().map(bitmap).collect();
            touched_bytes(&bitmaps, first.shift, first.total_bytes)
        };
        let followed = |is_read: bool| {
            let mut sum = Followed::default();
            for (sequential, count) in all.iter().map(|one| one.counts.of(is_read)) {
                sum.count += count;
                sum.sequential += sequential;
            }
            sum
        };
        Some(AccessNow {
            working_set_read_bytes: touched(|one| &one.read),
            working_set_written_bytes: touched(|one| &one.written),
            reads: followed(true),
            writes: followed(false),
        })
    }
}
