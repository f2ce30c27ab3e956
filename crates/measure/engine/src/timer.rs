//! Time source of a driver: real, or simulated by a test.

use plimsoll_sys::clock::{Clock, sleep_until_ns};

/// Monotonic clock that can sleep. The compiler generates a driver for each implementation.
pub trait Timer {
    /// Returns the time in nanoseconds; never less than before.
    fn now_ns(&mut self) -> u64;
    /// Sleeps until `deadline_ns`, or shorter.
    fn sleep_until_ns(&mut self, deadline_ns: u64);
    /// Reads the clock until `deadline_ns`, without a sleep and its late wake-up.
    fn watch_until_ns(&mut self, deadline_ns: u64) {
        while self.now_ns() < deadline_ns {
            std::hint::spin_loop();
        }
    }
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
