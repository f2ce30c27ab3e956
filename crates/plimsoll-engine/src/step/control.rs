//! What the coordinating thread tells the driving threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The phase that is on, and whether to stop. Written by one thread, read by all.
#[derive(Debug, Default)]
pub struct Control {
    phase: AtomicU32,
    phase_start_ns: AtomicU64,
    stop: AtomicBool,
}

impl Control {
    /// Starts in this phase, which began at `start_ns` on the drivers' clock.
    pub fn new(phase: u32, start_ns: u64) -> Self {
        Self {
            phase: AtomicU32::new(phase),
            phase_start_ns: AtomicU64::new(start_ns),
            stop: AtomicBool::new(false),
        }
    }

    /// Index of the phase that is on.
    pub fn phase(&self) -> u32 {
        self.phase.load(Ordering::Acquire)
    }

    /// When it began: intervals of all threads count from here, so that they can be added up.
    pub fn phase_start_ns(&self) -> u64 {
        self.phase_start_ns.load(Ordering::Relaxed)
    }

    /// Begins another phase, now. Each driving thread changes over when it next looks: before it
    /// records another completion, and within a tenth of a second.
    pub fn begin(&self, phase: u32, start_ns: u64) {
        self.phase_start_ns.store(start_ns, Ordering::Relaxed);
        self.phase.store(phase, Ordering::Release);
    }

    /// Asks the workload to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
