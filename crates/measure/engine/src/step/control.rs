//! Signals that the coordinating thread sends to the driving threads: the current phase, and
//! requests to stop.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use plimsoll_sys::clock::monotonic_ns;

const CONTINUE: u8 = 0;
const STOP: u8 = 1;
const ABORT: u8 = 2;

/// Start time of a phase whose start has not been set yet.
const NEVER: u64 = u64::MAX;

/// Number and start time of a phase. The coordinator sets them during the load.
#[derive(Debug)]
struct Mark {
    phase: AtomicU32,
    at_ns: AtomicU64,
}

impl Mark {
    /// Initial value. The start of the phase is not set.
    #[allow(clippy::declare_interior_mutable_const)]
    const UNSET: Self = Self { phase: AtomicU32::new(0), at_ns: AtomicU64::new(NEVER) };

    fn set(&self, phase: u32, at_ns: u64) -> u64 {
        self.phase.store(phase, Ordering::Relaxed);
        self.at_ns.store(at_ns, Ordering::Release);
        monotonic_ns().saturating_sub(at_ns)
    }

    /// Returns the number and the start time of the phase, if it started at or before `now_ns`.
    #[inline]
    fn started_by(&self, now_ns: u64) -> Option<(u32, u64)> {
        let at_ns = self.at_ns.load(Ordering::Acquire);
        (at_ns <= now_ns).then(|| (self.phase.load(Ordering::Relaxed), at_ns))
    }
}

/// Phases of a stage, and the signal that stops it. One thread sets these values, and all threads
/// read them.
///
/// A load has three phases: before the measurement, the measurement, and the close. The coordinator
/// sets the start times of the second and third phase shortly before these times
/// ([`plimsoll_record::drain::AHEAD_NS`]). All threads can then switch at the same time. A
/// completion belongs to the phase in which the operation completed.
#[derive(Debug)]
pub struct Control {
    phase: u32,
    start_ns: u64,
    measure: Mark,
    close: Mark,
    level: AtomicU8,
    /// Number of completions that threads observed after a stop request.
    completions: AtomicU64,
}

impl Control {
    /// Creates the signals for a load. Its first phase has the number `phase` and started at
    /// `start_ns` on the drivers' clock.
    pub fn new(phase: u32, start_ns: u64) -> Self {
        let (level, completions) = (AtomicU8::new(CONTINUE), AtomicU64::new(0));
        Self { phase, start_ns, measure: Mark::UNSET, close: Mark::UNSET, level, completions }
    }

    /// Returns the number and the start time of the first phase.
    pub fn first(&self) -> (u32, u64) {
        (self.phase, self.start_ns)
    }

    /// Sets the start of the measured phase to `at_ns`. Returns how long after `at_ns` the threads
    /// could read this value. Returns 0 if they could read it in time.
    pub fn measure(&self, phase: u32, at_ns: u64) -> u64 {
        self.measure.set(phase, at_ns)
    }

    /// Sets the end of the workload to `at_ns`. The measured phase also ends then, if it has
    /// started. Returns the same delay as [`Control::measure`].
    pub fn close(&self, phase: u32, at_ns: u64) -> u64 {
        self.close.set(phase, at_ns)
    }

    /// Returns the number and the start time of the measured phase, if it has started.
    #[inline]
    pub fn measured(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.measure.started_by(now_ns)
    }

    /// Returns the number and the start time of the closing phase, if it has started.
    #[inline]
    pub fn closing(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.close.started_by(now_ns)
    }

    /// Requests that the workload ends as soon as possible.
    pub fn stop(&self) {
        self.level.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Requests that the driving threads return immediately, even if operations are still in
    /// flight.
    pub fn abort(&self) {
        self.level.fetch_max(ABORT, Ordering::Relaxed);
    }

    /// Returns true if the workload must end.
    #[inline]
    pub fn stopped(&self, now_ns: u64) -> bool {
        self.level.load(Ordering::Relaxed) >= STOP || self.closing(now_ns).is_some()
    }

    /// Returns true if the driving threads must return immediately.
    pub fn aborted(&self) -> bool {
        self.level.load(Ordering::Relaxed) == ABORT
    }

    /// Counts one completion that a thread observed after a stop request.
    pub(super) fn count_completion(&self) {
        self.completions.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many completions threads observed after a stop request.
    pub(super) fn completions(&self) -> u64 {
        self.completions.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_begin_at_their_times_and_not_when_they_are_set() {
        let control = Control::new(3, 50);
        let ahead_ns = monotonic_ns() + 3_600_000_000_000;
        assert_eq!(control.measure(4, ahead_ns), 0, "an hour ahead is in time");
        assert_eq!(control.measured(ahead_ns - 1), None);
        assert_eq!(control.measured(ahead_ns), Some((4, ahead_ns)));
        assert!(!control.stopped(ahead_ns));
        assert!(control.close(5, 70) > 0, "long ago is too late");
        assert_eq!((control.closing(69), control.closing(70)), (None, Some((5, 70))));
        assert!(control.stopped(70));
    }
}
