//! What the coordinating thread tells the driving threads.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The phase that is on, and whether to stop. Written by one thread, read by all.
#[derive(Debug, Default)]
pub struct Control {
    phase: AtomicU32,
    stop: AtomicBool,
}

impl Control {
    /// Starts in this phase.
    pub fn new(phase: u32) -> Self {
        Self { phase: AtomicU32::new(phase), stop: AtomicBool::new(false) }
    }

    /// Index of the phase that is on.
    pub fn phase(&self) -> u32 {
        self.phase.load(Ordering::Relaxed)
    }

    /// Begins another phase. Each driving thread changes over when it next looks, which is within
    /// one I/O or a tenth of a second.
    pub fn begin(&self, phase: u32) {
        self.phase.store(phase, Ordering::Relaxed);
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
