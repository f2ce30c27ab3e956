//! Signals from the coordinating thread to the driving threads: the current phase, and stop
//! requests.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use plimsoll_sys::clock::monotonic_ns;

const CONTINUE: u8 = 0;
const STOP: u8 = 1;
const ABORT: u8 = 2;

/// Value of a start time that has not been set yet.
const NEVER: u64 = u64::MAX;

/// Start of a phase. The coordinator sets it during the load.
#[derive(Debug)]
struct Mark {
    phase: AtomicU32,
    at_ns: AtomicU64,
}

impl Mark {
    /// Initial value: the start of the phase is not set.
    #[allow(clippy::declare_interior_mutable_const)]
    const UNSET: Self = Self { phase: AtomicU32::new(0), at_ns: AtomicU64::new(NEVER) };

    fn set(&self, phase: u32, at_ns: u64) -> u64 {
        self.phase.store(phase, Ordering::Relaxed);
        self.at_ns.store(at_ns, Ordering::Release);
        monotonic_ns().saturating_sub(at_ns)
    }

    /// Returns the phase and its start, if the phase has started at or before `now_ns`.
    #[inline]
    fn started_by(&self, now_ns: u64) -> Option<(u32, u64)> {
        let at_ns = self.at_ns.load(Ordering::Acquire);
        (at_ns <= now_ns).then(|| (self.phase.load(Ordering::Relaxed), at_ns))
    }
}

/// Phases of a stage, and its stop signal. One thread writes these values, and all threads read
/// them.
///
/// A load has three phases: before the measurement, the measurement, and the close. The coordinator
/// sets the starts of the second and third phase a little in advance
/// ([`plimsoll_record::drain::AHEAD_NS`]), so that every thread switches at the same time. A
/// completion belongs to the phase that contains the time of the completion.
#[derive(Debug)]
pub struct Control {
    phase: u32,
    start_ns: u64,
    measure: Mark,
    close: Mark,
    level: AtomicU8,
    /// Number of completions that threads saw after a stop request.
    completions: AtomicU64,
}

impl Control {
    /// Creates a control whose first phase, `phase`, started at `start_ns` on the drivers' clock.
    pub fn new(phase: u32, start_ns: u64) -> Self {
        let (level, completions) = (AtomicU8::new(CONTINUE), AtomicU64::new(0));
        Self { phase, start_ns, measure: Mark::UNSET, close: Mark::UNSET, level, completions }
    }

    /// Returns the first phase and its start.
    pub fn first(&self) -> (u32, u64) {
        (self.phase, self.start_ns)
    }

    /// Starts the measured phase at `at_ns`. Returns the delay after `at_ns` until the threads
    /// could read this start; 0 if they could read it in time.
    pub fn measure(&self, phase: u32, at_ns: u64) -> u64 {
        self.measure.set(phase, at_ns)
    }

    /// Ends the workload at `at_ns`, and also the measured phase if it has started. Returns the
    /// same delay as [`Control::measure`].
    pub fn close(&self, phase: u32, at_ns: u64) -> u64 {
        self.close.set(phase, at_ns)
    }

    /// Returns the measured phase and its start, if the phase has started.
    #[inline]
    pub fn measured(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.measure.started_by(now_ns)
    }

    /// Returns the closing phase and its start, if the phase has started.
    #[inline]
    pub fn closing(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.close.started_by(now_ns)
    }

    /// Requests that the workload ends immediately.
    pub fn stop(&self) {
        self.level.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Requests that the driving threads return immediately, even if operations are in flight.
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

    /// Counts a completion that a thread saw after a stop request.
    pub(super) fn count_completion(&self) {
        self.completions.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of completions that threads saw after a stop request.
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
