//! Simulated targets, which run in virtual time and whose behaviour is known. The tests of the
//! drivers use them.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use plimsoll_sys::SysError;
use plimsoll_sys::op::{PushError, RingOp};

use crate::backend::Queue;
use crate::timer::Timer;

mod fixed_latency;
#[path = "../tests/support/law.rs"]
mod law;
mod pipelined;
mod random_latency;
#[path = "../tests/support/reads.rs"]
mod reads;

pub(crate) use fixed_latency::FixedLatencyDevice;
pub(crate) use law::{LAWS, Law};
pub(crate) use pipelined::PipelinedDevice;
pub(crate) use random_latency::{RandomLatencyDevice, assert_figures_agree};
pub(crate) use reads::Reads;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Clock for virtual time. The driver and the queue share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct VirtualClock(Rc<RefCell<u64>>);

impl VirtualClock {
    pub(crate) fn now(&self) -> u64 {
        *self.0.borrow()
    }

    pub(crate) fn advance_to(&self, ns: u64) {
        let mut now = self.0.borrow_mut();
        *now = ns.max(*now);
    }
}

impl Timer for VirtualClock {
    fn now_ns(&mut self) -> u64 {
        self.now()
    }

    fn sleep_until_ns(&mut self, deadline_ns: u64) {
        self.advance_to(deadline_ns);
    }

    fn watch_until_ns(&mut self, deadline_ns: u64) {
        self.advance_to(deadline_ns);
    }
}

/// How much virtual time the actions of the driving thread take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    /// Time that the thread takes to prepare or process one operation.
    pub(crate) step_ns: u64,
    /// Time that each system call takes, in addition to its operations.
    pub(crate) call_ns: u64,
    /// Time that the kernel takes for each operation of a call.
    pub(crate) work_ns: u64,
    /// Time from the end of a wait until the thread runs again.
    pub(crate) wake_ns: u64,
}

/// Model of a device, which determines the service time of each operation.
pub(crate) trait Device {
    /// Returns the time at which the completion of an operation becomes visible. The operation
    /// arrives at `now_ns`.
    fn done_ns(&mut self, now_ns: u64) -> u64;
}

pub(crate) struct SimulatedQueue<D> {
    clock: VirtualClock,
    pub(crate) device: D,
    capacity: usize,
    pub(crate) costs: Costs,
    tick_ns: u64,
    queued: Vec<(u64, u32)>,
    /// For each operation: its completion time, the number of operations submitted before it, its
    /// user data and its size.
    in_flight: BinaryHeap<Reverse<(u64, u64, u64, u32)>>,
    handed_over: u64,
    /// True if a wait ended because its timeout expired. As in a ring, the timer then counts as a
    /// completion that belongs to no operation.
    ticked: bool,
    /// Function that is called each time the driver reaps completions.
    pub(crate) on_reap: Option<Box<dyn FnMut()>>,
}

impl<D: Device> SimulatedQueue<D> {
    pub(crate) fn new(clock: &VirtualClock, capacity: usize, device: D) -> Self {
        Self {
            clock: clock.clone(),
            device,
            capacity,
            costs: Costs::default(),
            tick_ns: SECOND,
            queued: Vec::new(),
            in_flight: BinaryHeap::new(),
            handed_over: 0,
            ticked: false,
            on_reap: None,
        }
    }

    pub(crate) fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    fn advance(&self, ns: u64) {
        self.clock.advance_to(self.clock.now() + ns);
    }
}

impl<D: Device> Queue for SimulatedQueue<D> {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.in_flight() >= self.capacity {
            return Err(PushError::Full);
        }
        self.advance(self.costs.step_ns);
        self.queued.push((op.user_data, op.size_bytes));
        Ok(())
    }

    fn submit_and_wait(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), SysError> {
        let Costs { call_ns, work_ns, .. } = self.costs;
        self.advance(call_ns + work_ns * self.queued.len() as u64);
        let now = self.clock.now();
        for (user_data, size) in self.queued.drain(..) {
            let done_ns = self.device.done_ns(now);
            self.in_flight.push(Reverse((done_ns, self.handed_over, user_data, size)));
            self.handed_over += 1;
        }
        let deadline = now.saturating_add(timeout_ns.unwrap_or(self.tick_ns));
        match self.in_flight.peek() {
            Some(Reverse((first, ..))) if min > 0 => {
                self.ticked |= deadline < *first;
                self.clock.advance_to((*first).min(deadline));
                self.advance(self.costs.wake_ns);
            }
            // As in a ring, only the timeout can end this wait.
            None if min > 0 && timeout_ns.is_some() => self.clock.advance_to(deadline),
            _ => {}
        }
        Ok(())
    }

    fn arrived(&mut self) -> usize {
        let now = self.clock.now();
        let done = self.in_flight.iter().filter(|Reverse((done, ..))| *done <= now).count();
        done + usize::from(self.ticked)
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        if let Some(on_reap) = &mut self.on_reap {
            on_reap();
        }
        let most = most.saturating_sub(usize::from(std::mem::take(&mut self.ticked)));
        let completed = self.arrived().min(most);
        for _ in 0..completed {
            let Some(Reverse((.., user_data, size))) = self.in_flight.pop() else { break };
            self.advance(self.costs.step_ns);
            each(user_data, Ok(size));
        }
        completed
    }

    fn tick_every(&mut self, every_ns: u64) {
        self.tick_ns = every_ns;
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn in_flight(&self) -> usize {
        self.queued.len() + self.in_flight.len()
    }
}
