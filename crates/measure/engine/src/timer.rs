//! Time source for a driver. It is the real clock, or a clock that a test simulates.

use plimsoll_sys::clock::{Clock, sleep_until_ns};

/// Monotonic clock that can sleep. The compiler generates a separate driver for each implementation
/// of this trait.
pub trait Timer {
    /// Returns the current time in nanoseconds. The time never decreases.
    fn now_ns(&mut self) -> u64;
    /// Sleeps until `deadline_ns`. It may return before this time.
    fn sleep_until_ns(&mut self, deadline_ns: u64);
    /// Polls the clock until `deadline_ns`. This function does not sleep, because a wake-up could
    /// be late.
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
