//! Targets of known behaviour in virtual time, for the tests of drivers.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use plimsoll_sys::SysError;
use plimsoll_sys::op::{PushError, RingOp};

use crate::backend::Queue;
use crate::timer::Timer;

mod drawn;
#[path = "../tests/support/law.rs"]
mod law;
mod piped;
#[path = "../tests/support/reads.rs"]
mod reads;
mod served;

pub(crate) use drawn::{Drawn, figures_agree};
pub(crate) use law::{LAWS, Law};
pub(crate) use piped::Piped;
pub(crate) use reads::Reads;
pub(crate) use served::Served;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Virtual time that clock and queue share.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Rc<RefCell<u64>>);

impl World {
    pub(crate) fn now(&self) -> u64 {
        *self.0.borrow()
    }

    pub(crate) fn advance_to(&self, ns: u64) {
        let mut now = self.0.borrow_mut();
        *now = ns.max(*now);
    }
}

impl Timer for World {
    fn now_ns(&mut self) -> u64 {
        self.now()
    }

    fn sleep_until_ns(&mut self, deadline_ns: u64) {
        self.advance_to(deadline_ns);
    }
}

/// Time that the driving thread needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    /// Cost of preparing or taking one operation.
    pub(crate) step_ns: u64,
    /// Cost of each call.
    pub(crate) call_ns: u64,
    /// Kernel's cost for each operation of a call.
    pub(crate) work_ns: u64,
    /// Delay of the thread after a wait.
    pub(crate) wake_ns: u64,
}

/// Service times of a device.
pub(crate) trait Device {
    /// Returns when the completion of an operation that arrives at `now_ns` becomes visible.
    fn done_ns(&mut self, now_ns: u64) -> u64;
}

/// Queue to a device.
pub(crate) struct Simulated<D> {
    world: World,
    pub(crate) device: D,
    capacity: usize,
    pub(crate) costs: Costs,
    tick_ns: u64,
    queued: Vec<(u64, u32)>,
    /// By operation: time of its completion, number of earlier operations, user data and size.
    in_flight: BinaryHeap<Reverse<(u64, u64, u64, u32)>>,
    handed_over: u64,
    /// True if a wait ended by its timeout. As in a ring, the timer counts as a completion without
    /// an operation.
    ticked: bool,
    /// Called whenever the driver takes completions.
    pub(crate) beside: Option<Box<dyn FnMut()>>,
}

impl<D: Device> Simulated<D> {
    pub(crate) fn new(world: &World, capacity: usize, device: D) -> Self {
        Self {
            world: world.clone(),
            device,
            capacity,
            costs: Costs::default(),
            tick_ns: SECOND,
            queued: Vec::new(),
            in_flight: BinaryHeap::new(),
            handed_over: 0,
            ticked: false,
            beside: None,
        }
    }

    pub(crate) fn world(&self) -> World {
        self.world.clone()
    }

    fn spend(&self, ns: u64) {
        self.world.advance_to(self.world.now() + ns);
    }
}

impl<D: Device> Queue for Simulated<D> {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.in_flight() >= self.capacity {
            return Err(PushError::Full);
        }
        self.spend(self.costs.step_ns);
        self.queued.push((op.user_data, op.size_bytes));
        Ok(())
    }

    fn submit_and_wait(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), SysError> {
        let Costs { call_ns, work_ns, .. } = self.costs;
        self.spend(call_ns + work_ns * self.queued.len() as u64);
        let now = self.world.now();
        for (user_data, size) in self.queued.drain(..) {
            let done_ns = self.device.done_ns(now);
            self.in_flight.push(Reverse((done_ns, self.handed_over, user_data, size)));
            self.handed_over += 1;
        }
        let deadline = now.saturating_add(timeout_ns.unwrap_or(self.tick_ns));
        match self.in_flight.peek() {
            Some(Reverse((first, ..))) if min > 0 => {
                self.ticked |= deadline < *first;
                self.world.advance_to((*first).min(deadline));
                self.spend(self.costs.wake_ns);
            }
            // As in the ring, only the timeout ends this wait.
            None if min > 0 && timeout_ns.is_some() => self.world.advance_to(deadline),
            _ => {}
        }
        Ok(())
    }

    fn arrived(&mut self) -> usize {
        let now = self.world.now();
        let done = self.in_flight.iter().filter(|Reverse((done, ..))| *done <= now).count();
        done + usize::from(self.ticked)
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        if let Some(beside) = &mut self.beside {
            beside();
        }
        let most = most.saturating_sub(usize::from(std::mem::take(&mut self.ticked)));
        let there = self.arrived().min(most);
        for _ in 0..there {
            let Some(Reverse((.., user_data, size))) = self.in_flight.pop() else { break };
            self.spend(self.costs.step_ns);
            each(user_data, Ok(size));
        }
        there
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
