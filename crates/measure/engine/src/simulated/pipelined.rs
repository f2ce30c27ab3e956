//! Device that processes many operations at the same time. Each action of the driving thread takes
//! simulated time.
//!
//! Each operation passes through a pipe of constant length. The operations leave the pipe one after
//! the other, which limits the throughput. Like disks and hypervisors, the device delays its
//! completion interrupts, so many operations complete together. The thread takes time to prepare an
//! operation, and the kernel takes time to submit it. The operations of one call reach the device
//! when the kernel has processed all of them, as with the block layer's plug.

use super::{Costs, Device, SimulatedQueue, VirtualClock};

pub(crate) struct PipelinedDevice {
    /// Interrupts occur only at multiples of this time.
    held_ns: u64,
    free_ns: u64,
}

impl PipelinedDevice {
    /// Time that an operation takes to pass through the pipe of the device.
    pub(crate) const PIPE_NS: u64 = 250_000;
    pub(crate) const SERVICE_NS: u64 = 10_000;
    pub(crate) const COSTS: Costs =
        Costs { step_ns: 200, call_ns: 300, work_ns: 2_000, wake_ns: 0 };

    pub(crate) fn queue(clock: &VirtualClock, depth: u32, held_ns: u64) -> SimulatedQueue<Self> {
        SimulatedQueue::new(clock, depth as usize, Self { held_ns, free_ns: 0 })
    }

    /// Returns pairs of a queue depth and an interrupt delay. Each depth is combined with two
    /// delays. One delay is zero. The other is the time in which nine tenths of the operations in
    /// flight complete.
    pub(crate) fn cases() -> impl Iterator<Item = (u32, u64)> {
        [1, 2, 4, 8, 16, 32, 64, 128].into_iter().flat_map(|depth| {
            let held = u64::from(depth) * Self::SERVICE_NS * 9 / 10;
            [(depth, 1), (depth, held)].into_iter().take(if depth == 1 { 1 } else { 2 })
        })
    }
}

impl Device for PipelinedDevice {
    fn done_ns(&mut self, now_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns + Self::PIPE_NS) + Self::SERVICE_NS;
        self.free_ns.next_multiple_of(self.held_ns)
    }
}
