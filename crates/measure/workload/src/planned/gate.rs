//! Gate of a stream that starts at an event.

use std::sync::atomic::{AtomicU64, Ordering};

/// Start and end of a stream, on the driver's clock. The runner sets these times when the events
/// happen, and the driver's threads read them.
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
    /// Starts the stream.
    pub fn open_at(&self, from_ns: u64) {
        self.from_ns.store(from_ns, Ordering::Release);
    }

    /// Ends the stream.
    pub fn close_at(&self, to_ns: u64) {
        self.to_ns.store(to_ns, Ordering::Release);
    }

    /// Returns the start of the stream; `None` if the event that starts it has not happened yet.
    #[must_use]
    pub fn from_ns(&self) -> Option<u64> {
        Some(self.from_ns.load(Ordering::Acquire)).filter(|ns| *ns < u64::MAX)
    }

    /// Returns the end of the stream; `None` if no end is set yet.
    #[must_use]
    pub fn to_ns(&self) -> Option<u64> {
        Some(self.to_ns.load(Ordering::Acquire)).filter(|ns| *ns < u64::MAX)
    }
}
