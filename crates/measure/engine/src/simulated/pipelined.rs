//! Device that works on many operations at once. Every step of the driving thread takes simulated
//! time.
//!
//! Each operation passes through a pipe of constant length, and the operations leave the pipe one
//! after the other, which limits the capacity. The device delays its completion interrupts, like
//! disks and hypervisors, so many operations complete together. The thread needs time to prepare an
//! operation, and so does the kernel in the call that submits it. The operations of one call reach
//! the device when the kernel has processed all of them, like with the block layer's plug.

use super::{Costs, Device, SimulatedQueue, VirtualClock};

pub(crate) struct PipelinedDevice {
    /// Interrupts occur at multiples of this time.
    held_ns: u64,
    free_ns: u64,
}

impl PipelinedDevice {
    /// Length of the device's pipe, and the share of its capacity that each operation uses.
    pub(crate) const PIPE_NS: u64 = 250_000;
    pub(crate) const SERVICE_NS: u64 = 10_000;
    pub(crate) const COSTS: Costs =
        Costs { step_ns: 200, call_ns: 300, work_ns: 2_000, wake_ns: 0 };

    pub(crate) fn queue(clock: &VirtualClock, depth: u32, held_ns: u64) -> SimulatedQueue<Self> {
        SimulatedQueue::new(clock, depth as usize, Self { held_ns, free_ns: 0 })
    }

    /// Returns depths, and two interrupt delays for each: none, and the time until nine tenths of
    /// the operations in flight have completed.
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
