//! Whether an issuer's operations follow each other: the sequential share per client.
//!
//! An operation is sequential where it begins where its client's last read or its last write ended, or
//! no further ahead than a few transfers: reads and writes may share one cursor or have one each, and
//! clients that share one take turns. On random addresses that happens by chance in twice
//! `window / total` of the operations, so the window is held to a thousandth of the space.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Transfers ahead that still count: as many threads as one cursor is likely shared by.
const AHEAD_TRANSFERS: u64 = 16;

/// The window is at most one part in so many of the space.
const SPACE_PARTS: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    file: u32,
    end_bytes: u64,
}

const NONE: Last = Last { file: u32::MAX, end_bytes: 0 };

impl Last {
    fn leads_to(self, file: u32, offset: u64, window: u64) -> bool {
        let ahead = offset.wrapping_sub(self.end_bytes);
        self.file == file && (ahead == 0 || ahead < window)
    }
}

/// Sequential share of the reads and of the writes.
#[derive(Debug)]
pub(super) struct Order {
    /// Of each client: its last write, and its last read.
    last: Box<[[Last; 2]]>,
    window_bytes_max: u64,
    pub(super) counts: Arc<Counts>,
}

/// Operations that followed their client's last ones, and those that could: of the writes, and of the reads. One thread
/// writes, others may look on. Apart from what other threads write, so that none waits for the other's cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    sequential: [AtomicU64; 2],
    judged: [AtomicU64; 2],
}

impl Counts {
    /// Of the reads, or of the writes: those that followed, and those that could.
    pub(super) fn of(&self, is_read: bool) -> (u64, u64) {
        let side = usize::from(is_read);
        (self.sequential[side].load(Relaxed), self.judged[side].load(Relaxed))
    }
}

/// No lock: there is one writer.
#[inline]
fn raise(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed) + by, Relaxed);
}

impl Clone for Order {
    /// With counts of its own.
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
            raise(&self.counts.judged[side], 1);
            let window = (size * AHEAD_TRANSFERS).min(self.window_bytes_max);
            if both[side].leads_to(file, offset, window)
                || both[other].leads_to(file, offset, window)
            {
                raise(&self.counts.sequential[side], 1);
            }
        }
        both[side] = Last { file, end_bytes: offset + size };
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
            raise(&self.counts.sequential[side], sequential);
            raise(&self.counts.judged[side], judged);
        }
    }

    /// Of the reads, or of the writes; `None` before a client's second one.
    pub(super) fn share(&self, is_read: bool) -> Option<f64> {
        let (sequential, judged) = self.counts.of(is_read);
        (judged > 0).then(|| sequential as f64 / judged as f64)
    }
}
