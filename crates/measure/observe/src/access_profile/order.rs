//! Counts the sequential operations of each client.
//!
//! An operation is sequential if it starts at the end of its client's last read or write, or at
//! most a few transfers later. This rule works if the reads and writes of a client use one cursor
//! or separate cursors, and also if several clients share a cursor. If addresses are random, a
//! share of `2 × window / total` of the operations satisfies this condition by chance. The window
//! is therefore at most a thousandth of the total space.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Largest gap between two operations that still counts as sequential, in transfers. It is unlikely
/// that more than this number of threads share one cursor.
const AHEAD_TRANSFERS: u64 = 16;

/// The total space divided by this number is the maximum size of the window.
const SPACE_PARTS: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastAccess {
    file: u32,
    end_bytes: u64,
}

const NONE: LastAccess = LastAccess { file: u32::MAX, end_bytes: 0 };

impl LastAccess {
    fn leads_to(self, file: u32, offset: u64, window: u64) -> bool {
        let ahead = offset.wrapping_sub(self.end_bytes);
        self.file == file && (ahead == 0 || ahead < window)
    }
}

/// Counts the sequential share of reads and of writes.
#[derive(Debug)]
pub(super) struct Order {
    /// For each client: the end of its last write and the end of its last read.
    last: Box<[[LastAccess; 2]]>,
    window_bytes_max: u64,
    pub(super) counts: Arc<Counts>,
}

/// Counts for writes and for reads: the operations that could have been sequential, and those that
/// were sequential. One thread writes the counters, and other threads may read them. The counters
/// of each thread have their own cache line, so that threads do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    sequential: [AtomicU64; 2],
    judged: [AtomicU64; 2],
}

impl Counts {
    /// Returns two numbers for the reads or the writes: the number of sequential operations, and
    /// the number of operations that could have been sequential.
    pub(super) fn of(&self, is_read: bool) -> (u64, u64) {
        let side = usize::from(is_read);
        (self.sequential[side].load(Relaxed), self.judged[side].load(Relaxed))
    }
}

/// No lock is needed, because only one thread writes the counters.
#[inline]
fn add_to_counter(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed) + by, Relaxed);
}

impl Clone for Order {
    /// The clone has its own counters.
    fn clone(&self) -> Self {
        let (last, window_bytes_max) = (self.last.clone(), self.window_bytes_max);
        let mut own = Self { last, window_bytes_max, counts: Arc::default() };
        own.merge(self);
        own
    }
}

impl Order {
    pub(super) fn new(clients: usize, total_bytes: u64) -> Self {
        Self {
            last: vec![[NONE; 2]; clients.max(1)].into(),
            window_bytes_max: total_bytes / SPACE_PARTS,
            counts: Arc::default(),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, client: u32, is_read: bool, file: u32, offset: u64, size: u64) {
        let Some(both) = self.last.get_mut(client as usize) else { return };
        let (side, other) = (usize::from(is_read), usize::from(!is_read));
        if both[side].file != u32::MAX {
            add_to_counter(&self.counts.judged[side], 1);
            let window = (size * AHEAD_TRANSFERS).min(self.window_bytes_max);
            if both[side].leads_to(file, offset, window)
                || both[other].leads_to(file, offset, window)
            {
                add_to_counter(&self.counts.sequential[side], 1);
            }
        }
        both[side] = LastAccess { file, end_bytes: offset + size };
    }

    pub(super) fn clear(&mut self) {
        self.last.fill([NONE; 2]);
        for counter in self.counts.sequential.iter().chain(&self.counts.judged) {
            counter.store(0, Relaxed);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for side in 0..2 {
            let (sequential, judged) = other.counts.of(side == 1);
            add_to_counter(&self.counts.sequential[side], sequential);
            add_to_counter(&self.counts.judged[side], judged);
        }
    }

    /// Returns the sequential share of reads or writes; `None` until a client has issued two reads
    /// or two writes.
    pub(super) fn share(&self, is_read: bool) -> Option<f64> {
        let (sequential, judged) = self.counts.of(is_read);
        (judged > 0).then(|| sequential as f64 / judged as f64)
    }
}
