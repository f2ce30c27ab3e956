//! Device that completes each operation after a fixed time. During a stall, it completes no
//! operation.

use super::{Device, SimulatedQueue, VirtualClock};

pub(crate) struct FixedLatencyDevice {
    service_ns: u64,
    /// Times at which the stall starts and ends.
    pub(crate) stall: (u64, u64),
    /// Number of operations that the device completes. The operation after them never completes.
    pub(crate) lost_after: u64,
}

impl FixedLatencyDevice {
    pub(crate) fn queue(
        clock: &VirtualClock,
        capacity: usize,
        service_ns: u64,
    ) -> SimulatedQueue<Self> {
        SimulatedQueue::new(
            clock,
            capacity,
            Self { service_ns, stall: (0, 0), lost_after: u64::MAX },
        )
    }
}

impl Device for FixedLatencyDevice {
    fn done_ns(&mut self, now_ns: u64) -> u64 {
        let (from, to) = self.stall;
        let done = now_ns + self.service_ns;
        let done = if done > from && now_ns < to { to + self.service_ns } else { done };
        let is_lost = self.lost_after == 0;
        self.lost_after = self.lost_after.wrapping_sub(1);
        if is_lost { u64::MAX } else { done }
    }
}
