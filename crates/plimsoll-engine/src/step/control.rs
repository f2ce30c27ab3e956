//! What the coordinating thread tells the driving threads.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use plimsoll_sys::clock::monotonic_ns;

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const ABORT: u8 = 2;

/// The beginning of a phase that has not been set yet.
const NEVER: u64 = u64::MAX;

/// When a phase begins, once that is set.
#[derive(Debug)]
struct Mark {
    phase: AtomicU32,
    at_ns: AtomicU64,
}

impl Mark {
    /// Each mark begins as a copy of this.
    #[allow(clippy::declare_interior_mutable_const)]
    const UNSET: Self = Self { phase: AtomicU32::new(0), at_ns: AtomicU64::new(NEVER) };

    fn set(&self, phase: u32, at_ns: u64) -> u64 {
        self.phase.store(phase, Ordering::Relaxed);
        self.at_ns.store(at_ns, Ordering::Release);
        monotonic_ns().saturating_sub(at_ns)
    }

    /// The phase and its start, if it has begun by `now_ns`.
    #[inline]
    fn begun(&self, now_ns: u64) -> Option<(u32, u64)> {
        let at_ns = self.at_ns.load(Ordering::Acquire);
        (at_ns <= now_ns).then(|| (self.phase.load(Ordering::Relaxed), at_ns))
    }
}

/// The phases of a stage, and whether to stop. Written by one thread, read by all.
///
/// A load has three: before the measurement, the measurement, and the close. The starts of the second
/// and third are set a little ahead ([`plimsoll_record::drain::AHEAD_NS`]), so that every thread changes over at
/// the same time: a completion counts in the phase that its own time lies in.
#[derive(Debug)]
pub struct Control {
    phase: u32,
    start_ns: u64,
    measure: Mark,
    close: Mark,
    level: AtomicU8,
    /// Times that a stopping thread saw something come back.
    beats: AtomicU64,
}

impl Control {
    /// Starts in this phase, which began at `start_ns` on the drivers' clock.
    pub fn new(phase: u32, start_ns: u64) -> Self {
        let (level, beats) = (AtomicU8::new(GO_ON), AtomicU64::new(0));
        Self { phase, start_ns, measure: Mark::UNSET, close: Mark::UNSET, level, beats }
    }

    /// The first phase and when it began.
    pub fn first(&self) -> (u32, u64) {
        (self.phase, self.start_ns)
    }

    /// Has the measured phase begin at `at_ns`. Returns how long after that the threads could know: 0
    /// where they knew in time.
    pub fn measure(&self, phase: u32, at_ns: u64) -> u64 {
        self.measure.set(phase, at_ns)
    }

    /// Has the measured phase, if it was come to, end at `at_ns`, and the workload with it. Returns as
    /// [`Control::measure`] does.
    pub fn close(&self, phase: u32, at_ns: u64) -> u64 {
        self.close.set(phase, at_ns)
    }

    /// The measured phase and its start, if it has begun.
    #[inline]
    pub fn measured(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.measure.begun(now_ns)
    }

    /// The phase after the measured one and its start, if it has begun.
    #[inline]
    pub fn closing(&self, now_ns: u64) -> Option<(u32, u64)> {
        self.close.begun(now_ns)
    }

    /// Asks the workload to end, at once.
    pub fn stop(&self) {
        self.level.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Has the driving threads leave at once, whatever is in flight.
    pub fn abort(&self) {
        self.level.fetch_max(ABORT, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    #[inline]
    pub fn stopped(&self, now_ns: u64) -> bool {
        self.level.load(Ordering::Relaxed) >= STOP || self.closing(now_ns).is_some()
    }

    /// Whether the driving threads are to leave.
    pub fn aborted(&self) -> bool {
        self.level.load(Ordering::Relaxed) == ABORT
    }

    /// A thread that was asked to end saw something come back.
    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
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
