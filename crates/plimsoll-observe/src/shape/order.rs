//! Whether an issuer's operations follow each other: the sequential share per client.
//!
//! An operation is sequential where it begins where its client's last one of the same kind ended, or
//! no further ahead than a few transfers: clients that share one cursor take turns. On random
//! addresses that happens by chance in `window / total` of the operations, so the window is held to
//! a thousandth of the space.

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

/// Sequential share of one side of the traffic.
#[derive(Clone, Debug)]
pub(super) struct Order {
    last: Box<[Last]>,
    window_bytes_max: u64,
    sequential: u64,
    judged: u64,
}

impl Order {
    pub(super) fn new(clients: usize, total_bytes: u64) -> Self {
        Self {
            last: vec![NONE; clients.max(1)].into(),
            window_bytes_max: total_bytes / SPACE_PARTS,
            sequential: 0,
            judged: 0,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, client: u32, file: u32, offset: u64, size: u64) {
        let Some(last) = self.last.get_mut(client as usize) else { return };
        if last.file != u32::MAX {
            self.judged += 1;
            let window = (size * AHEAD_TRANSFERS).min(self.window_bytes_max);
            let ahead = offset.wrapping_sub(last.end_bytes);
            self.sequential += u64::from(last.file == file && (ahead == 0 || ahead < window));
        }
        *last = Last { file, end_bytes: offset + size };
    }

    pub(super) fn clear(&mut self) {
        self.last.fill(NONE);
        (self.sequential, self.judged) = (0, 0);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sequential += other.sequential;
        self.judged += other.judged;
    }

    /// `None` before a client's second operation.
    pub(super) fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.sequential as f64 / self.judged as f64)
    }
}
