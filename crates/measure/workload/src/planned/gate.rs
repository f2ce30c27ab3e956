//! Gate of a stream that starts when an event happens.

use std::sync::atomic::{AtomicU64, Ordering};

/// Times at which a stream starts and ends, on the clock of the driver. The runner sets these times
/// when the events happen. The threads of the driver read them.
#[derive(Debug)]
pub struct StreamGate {
    from_ns: AtomicU64,
    to_ns: AtomicU64,
}

impl Default for StreamGate {
    fn default() -> Self {
        Self { from_ns: AtomicU64::new(u64::MAX), to_ns: AtomicU64::new(u64::MAX) }
    }
}

impl StreamGate {
    /// Sets the time at which the stream starts.
    pub fn open_at(&self, from_ns: u64) {
        self.from_ns.store(from_ns, Ordering::Release);
    }

    /// Sets the time at which the stream ends.
    pub fn close_at(&self, to_ns: u64) {
        self.to_ns.store(to_ns, Ordering::Release);
    }

    /// Returns the time at which the stream starts. Returns `None` if the event that starts the
    /// stream has not happened yet.
    #[must_use]
    pub fn from_ns(&self) -> Option<u64> {
        Some(self.from_ns.load(Ordering::Acquire)).filter(|ns| *ns < u64::MAX)
    }

    /// Returns the time at which the stream ends. Returns `None` if this time has not been set yet.
    #[must_use]
    pub fn to_ns(&self) -> Option<u64> {
        Some(self.to_ns.load(Ordering::Acquire)).filter(|ns| *ns < u64::MAX)
    }
}
