//! Target inside the process with known service times, in real time.
//!
//! The device is a separate thread. It watches a ring for operations from the driver. Each
//! operation gets a drawn service time, and a server if servers are limited. When both are over,
//! the device records the time and puts the operation into a second ring for the driver. The device
//! records three times of each operation, on its own reading of `CLOCK_MONOTONIC`:
//!
//! - *asked*: when the driver's hand-over arrived, before any work on it;
//! - *due*: asked, plus the wait for a server, plus the drawn time. This is the drawn latency;
//! - *done*: when the driver could see the completion. It is later if other programs take the
//!   processor, and the delay is the device's, not the driver's.
#![allow(dead_code)] // each program uses a part of it

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use plimsoll_engine::backend::Queue;
use plimsoll_sys::SysError;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::op::{PushError, RingOp};

use super::law::{Draws, Law};

/// Number of operations that the device records without allocating.
const KNOWN_ROOM: usize = 1 << 20;

/// Waiting mode of an idle driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The driver watches the ring: only its own steps delay its view of a completion.
    Watching,
    /// The driver sleeps, and the device wakes it, as an interrupt does.
    Sleeping,
    /// The driver polls as the threads of a run do, and then sleeps.
    Polling,
}

/// Times of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub asked_ns: u64,
    /// Drawn service time.
    pub drawn_ns: u64,
    pub due_ns: u64,
    pub done_ns: u64,
}

/// Times at which the driver pushed and took an operation, read by the queue.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub pushed_ns: u64,
    pub taken_ns: u64,
}

/// State that driver and device share: two rings of places, and the times of each place.
struct Shared {
    asked: Box<[AtomicU64]>,
    submitted: Box<[AtomicU64]>,
    submitted_end: AtomicUsize,
    completed: Box<[AtomicU64]>,
    completed_end: AtomicUsize,
    sleeps: AtomicBool,
    over: AtomicBool,
}

/// Driver's end.
pub struct Reference {
    shared: Arc<Shared>,
    device: Option<JoinHandle<Vec<Known>>>,
    capacity: usize,
    waiting: Waiting,
    sizes: Box<[u32]>,
    queued: Vec<u32>,
    submitted: usize,
    taken: usize,
    tick_ns: u64,
    in_flight: usize,
    /// Times in the order of taking; `None` if not requested.
    held: Option<Vec<Held>>,
    pushed_ns: Box<[u64]>,
}

fn ring(length: usize) -> Box<[AtomicU64]> {
    (0..length).map(|_| AtomicU64::new(0)).collect()
}

impl Reference {
    /// Starts a device for `capacity` operations, of which `servers` are served at a time, on `cpu`
    /// if given. The calling thread must be the driver.
    pub fn start(
        law: Law,
        capacity: u32,
        servers: u32,
        waiting: Waiting,
        cpu: Option<usize>,
    ) -> Self {
        // A power of two, so that places of the rings wrap with the counters.
        let length = (capacity.max(1) as usize).next_power_of_two();
        let shared = Arc::new(Shared {
            asked: ring(length),
            submitted: ring(length),
            submitted_end: AtomicUsize::new(0),
            completed: ring(length),
            completed_end: AtomicUsize::new(0),
            sleeps: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let device = Device {
            shared: Arc::clone(&shared),
            driver: std::thread::current(),
            draws: Draws::new(law),
            free_ns: (servers < capacity).then(|| (0..servers).map(|_| Reverse(0)).collect()),
            in_flight: BinaryHeap::with_capacity(length),
            known: touched(),
        };
        let device = std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                // Without pinning the device runs anywhere, and `done` includes its delays.
                let _ = plimsoll_sys::cpu::pin_thread(cpu);
            }
            device.run()
        });
        Self {
            shared,
            device: Some(device),
            capacity: capacity as usize,
            waiting,
            sizes: vec![0; length].into_boxed_slice(),
            queued: Vec::with_capacity(length),
            submitted: 0,
            taken: 0,
            tick_ns: 1_000_000_000,
            in_flight: 0,
            held: None,
            pushed_ns: vec![0; length].into_boxed_slice(),
        }
    }

    /// Records from now on when the driver pushed and took each operation.
    pub fn keep_held(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Ends the device. Returns the times of each operation, in the order of the hand-overs.
    pub fn end(mut self) -> (Vec<Known>, Vec<Held>) {
        self.shared.over.store(true, Ordering::Release);
        let known = self.device.take().and_then(|device| device.join().ok());
        (known.unwrap_or_default(), self.held.take().unwrap_or_default())
    }

    fn there(&self) -> usize {
        self.shared.completed_end.load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    fn wait(&self, until_ns: u64) {
        while self.there() == 0 {
            let now_ns = monotonic_ns();
            if now_ns >= until_ns {
                return;
            }
            if self.waiting == Waiting::Watching {
                spin_loop();
                continue;
            }
            self.shared.sleeps.store(true, Ordering::SeqCst);
            if self.there() == 0 {
                std::thread::park_timeout(Duration::from_nanos(until_ns - now_ns));
            }
            self.shared.sleeps.store(false, Ordering::SeqCst);
        }
    }
}

impl Queue for Reference {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.in_flight >= self.capacity {
            return Err(PushError::Full);
        }
        let place = op.user_data as usize;
        self.sizes[place] = op.size_bytes;
        if self.held.is_some() {
            self.pushed_ns[place] = monotonic_ns();
        }
        self.queued.push(place as u32);
        self.in_flight += 1;
        Ok(())
    }

    fn submit_and_wait(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), SysError> {
        let now_ns = monotonic_ns();
        for place in self.queued.drain(..) {
            let shared = &*self.shared;
            shared.asked[place as usize].store(now_ns, Ordering::Relaxed);
            let at = self.submitted % shared.submitted.len();
            shared.submitted[at].store(u64::from(place), Ordering::Relaxed);
            self.submitted = self.submitted.wrapping_add(1);
        }
        self.shared.submitted_end.store(self.submitted, Ordering::Release);
        if min > 0 && self.in_flight > 0 {
            self.wait(now_ns.saturating_add(timeout_ns.unwrap_or(self.tick_ns)));
        }
        Ok(())
    }

    fn arrived(&mut self) -> usize {
        self.there()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let there = self.there().min(most);
        for _ in 0..there {
            let at = self.taken % self.shared.completed.len();
            let place = self.shared.completed[at].load(Ordering::Relaxed);
            self.taken = self.taken.wrapping_add(1);
            self.in_flight -= 1;
            if let Some(held) = &mut self.held {
                let pushed_ns = self.pushed_ns[place as usize];
                held.push(Held { pushed_ns, taken_ns: monotonic_ns() });
            }
            each(place, Ok(self.sizes[place as usize]));
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
        self.in_flight
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
    }
}

/// Allocates and touches room for the times: a first touch of a page would delay the device.
fn touched() -> Vec<Known> {
    let mut room = vec![Known { asked_ns: 1, ..Known::default() }; KNOWN_ROOM];
    room.clear();
    room
}

/// Thread of the device.
struct Device {
    shared: Arc<Shared>,
    driver: Thread,
    draws: Draws,
    /// Time at which each server becomes free; `None` if there are as many servers as places.
    free_ns: Option<BinaryHeap<Reverse<u64>>>,
    /// Operations by due time, with their place and their index in `known`.
    in_flight: BinaryHeap<Reverse<(u64, usize, u64)>>,
    known: Vec<Known>,
}

impl Device {
    fn run(mut self) -> Vec<Known> {
        let shared = Arc::clone(&self.shared);
        let (mut submitted, mut completed) = (0usize, 0usize);
        while !shared.over.load(Ordering::Acquire) {
            let end = shared.submitted_end.load(Ordering::Acquire);
            while submitted != end {
                let place = &shared.submitted[submitted % shared.submitted.len()];
                let place = place.load(Ordering::Relaxed);
                submitted = submitted.wrapping_add(1);
                self.begin(place, shared.asked[place as usize].load(Ordering::Relaxed));
            }
            let now_ns = monotonic_ns();
            let mut wakes = false;
            while let Some(Reverse((due_ns, number, place))) = self.in_flight.peek().copied() {
                if due_ns > now_ns {
                    break;
                }
                self.in_flight.pop();
                let at = completed % shared.completed.len();
                shared.completed[at].store(place, Ordering::Relaxed);
                completed = completed.wrapping_add(1);
                // The time is read just before the driver can see the completion.
                self.known[number].done_ns = monotonic_ns();
                shared.completed_end.store(completed, Ordering::SeqCst);
                wakes = true;
            }
            if wakes && shared.sleeps.swap(false, Ordering::SeqCst) {
                self.driver.unpark();
            }
            spin_loop();
        }
        self.known
    }

    fn begin(&mut self, place: u64, asked_ns: u64) {
        let drawn_ns = self.draws.draw_ns();
        let servers = self.free_ns.as_mut();
        let free_ns = servers.and_then(|free_ns| free_ns.pop()).map_or(0, |Reverse(ns)| ns);
        let due_ns = free_ns.max(asked_ns) + drawn_ns;
        if let Some(free_ns) = &mut self.free_ns {
            free_ns.push(Reverse(due_ns));
        }
        self.in_flight.push(Reverse((due_ns, self.known.len(), place)));
        self.known.push(Known { asked_ns, drawn_ns, due_ns, done_ns: 0 });
    }
}
