//! A device that works on many operations at once, and a thread whose every step takes time.
//!
//! The device takes each operation through a pipe of constant length, and out of it one after the other:
//! that is its capacity. It tells of what is done by interrupts that are held back, as disks and
//! hypervisors do, so that many operations come back together. Putting an operation together takes the
//! thread time, and so does the kernel's work on it in the call that hands it over; what one call hands
//! over reaches the device when the kernel has worked on all of it, as behind the block layer's plug.

use super::{Costs, Device, Simulated, World};

pub(crate) struct Piped {
    /// Interrupts come at multiples of this.
    held_ns: u64,
    free_ns: u64,
}

impl Piped {
    /// Length of the device's pipe, and what each operation takes of its capacity.
    pub(crate) const PIPE_NS: u64 = 250_000;
    pub(crate) const SERVICE_NS: u64 = 10_000;
    pub(crate) const COSTS: Costs =
        Costs { step_ns: 200, call_ns: 300, work_ns: 2_000, wake_ns: 0 };

    pub(crate) fn queue(world: &World, depth: u32, held_ns: u64) -> Simulated<Self> {
        Simulated::new(world, depth as usize, Self { held_ns, free_ns: 0 })
    }

    /// Depths, and for each how far interrupts are held back: not at all, and until nine tenths of what is in
    /// flight are done.
    pub(crate) fn cases() -> impl Iterator<Item = (u32, u64)> {
        [1, 2, 4, 8, 16, 32, 64, 128].into_iter().flat_map(|depth| {
            let held = u64::from(depth) * Self::SERVICE_NS * 9 / 10;
            [(depth, 1), (depth, held)].into_iter().take(if depth == 1 { 1 } else { 2 })
        })
    }
}

impl Device for Piped {
    fn done_ns(&mut self, now_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns + Self::PIPE_NS) + Self::SERVICE_NS;
        self.free_ns.next_multiple_of(self.held_ns)
    }
}
