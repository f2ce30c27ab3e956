//! The time that a driver lives in: real, or a test's.

use plimsoll_sys::clock::{Clock, sleep_until_ns};

/// A monotonic clock that can be slept on. Drivers are compiled for each.
pub trait Timer {
    /// Nanoseconds; never less than before.
    fn now_ns(&mut self) -> u64;
    /// Sleeps until `deadline_ns`, or less.
    fn sleep_until_ns(&mut self, deadline_ns: u64);
}

impl Timer for Clock {
    #[inline(always)]
    fn now_ns(&mut self) -> u64 {
        Clock::now_ns(self)
    }

    fn sleep_until_ns(&mut self, deadline_ns: u64) {
        sleep_until_ns(deadline_ns);
    }
}
