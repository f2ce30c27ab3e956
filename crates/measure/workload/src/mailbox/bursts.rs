//! Bursts of database writes: their times, and the number of pages that they leave dirty.

use super::config::MailboxConfig;

/// After a burst, at most the number of frames divided by this number are dirty.
const BURST_DIRTY_DIVISOR: usize = 4;

/// Bursts of writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// Time between two bursts; 0 if there are no bursts, and pages are written when necessary.
    interval_ns: u64,
    /// Start of the next burst.
    next_ns: u64,
    is_active: bool,
}

impl Bursts {
    /// Creates the bursts of the database at `place`. The bursts of different databases start at
    /// different times.
    pub fn new(config: &MailboxConfig, place: usize) -> Self {
        let interval_ns = config.write_interval_ns;
        let next_ns = interval_ns / config.databases.len().max(1) as u64 * place as u64;
        Self { interval_ns, next_ns, is_active: false }
    }

    /// Returns the start of the next burst, if there are bursts.
    pub fn deadline_ns(&self) -> Option<u64> {
        (self.interval_ns > 0).then_some(self.next_ns)
    }

    /// Starts a burst that is due. Returns false if writes must wait for the next burst.
    pub fn begin(&mut self, now_ns: u64) -> bool {
        if self.interval_ns > 0 && !self.is_active && self.next_ns <= now_ns {
            let missed = (now_ns - self.next_ns) / self.interval_ns;
            self.next_ns += (missed + 1) * self.interval_ns;
            self.is_active = true;
        }
        !self.is_waiting()
    }

    /// Ends the current burst.
    pub fn end(&mut self) {
        self.is_active = false;
    }

    /// Returns true if writes must wait for the next burst.
    pub fn is_waiting(&self) -> bool {
        self.interval_ns > 0 && !self.is_active
    }

    /// Returns true if a burst may end while `dirty` of `frames` frames are dirty, or if there is
    /// no burst.
    pub fn may_leave(&self, dirty: usize, frames: usize) -> bool {
        !self.is_active || dirty * BURST_DIRTY_DIVISOR <= frames
    }
}
