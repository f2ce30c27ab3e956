//! Real-time target inside the process, with known service times.
//!
//! The device is a separate thread that polls a ring for operations from the driver. Each operation
//! gets a random service time. If the number of servers is limited, it also waits for a server.
//! When both times are over, the device puts the operation into a second ring for the driver. The
//! device records three times of each operation, which it reads from `CLOCK_MONOTONIC`:
//!
//! - *received*: the time at which the driver's submission arrived, before the device started to
//!   process it;
//! - *due*: the time received, plus the wait for a server, plus the service time. The time from
//!   *received* to *due* is the true latency;
//! - *done*: the earliest time at which the driver could see the completion. If other programs use
//!   the processor, it is later than *due*. That delay is caused by the device, not by the driver.
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

/// Number of operations that the device can record without allocating memory.
const DEVICE_TIMES_MAX: usize = 1 << 20;

/// How an idle driver waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// The driver polls the ring without sleeping, so it sees each completion after its own steps
    /// only.
    Watching,
    /// The driver sleeps, and the device wakes it, like an interrupt.
    Sleeping,
    /// The driver first polls for a time, like the threads of a run, and then sleeps.
    Polling,
}

/// Times of one operation in the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceTimes {
    pub received_ns: u64,
    /// Random service time.
    pub drawn_ns: u64,
    pub due_ns: u64,
    pub done_ns: u64,
}

/// Times at which the driver pushed and reaped an operation, recorded by the queue.
#[derive(Clone, Copy, Debug)]
pub struct DriverTimes {
    pub pushed_ns: u64,
    pub taken_ns: u64,
}

/// State that driver and device share: two rings of slots, and the arrival time of each slot.
struct SharedRings {
    received_ns: Box<[AtomicU64]>,
    submitted: Box<[AtomicU64]>,
    submitted_end: AtomicUsize,
    completed: Box<[AtomicU64]>,
    completed_end: AtomicUsize,
    driver_sleeps: AtomicBool,
    stopped: AtomicBool,
}

/// Driver's end.
pub struct ReferenceDevice {
    shared: Arc<SharedRings>,
    device: Option<JoinHandle<Vec<DeviceTimes>>>,
    capacity: usize,
    wait_mode: WaitMode,
    sizes: Box<[u32]>,
    queued: Vec<u32>,
    submitted: usize,
    taken: usize,
    tick_ns: u64,
    in_flight: usize,
    /// Times in the order in which operations were reaped; `None` if they are not recorded.
    driver_times: Option<Vec<DriverTimes>>,
    pushed_ns: Box<[u64]>,
}

fn ring(length: usize) -> Box<[AtomicU64]> {
    (0..length).map(|_| AtomicU64::new(0)).collect()
}

impl ReferenceDevice {
    /// Starts a device with space for `capacity` operations. It serves `servers` of them at the
    /// same time, on the CPU `cpu` if given. The calling thread must be the driver.
    pub fn start(
        law: Law,
        capacity: u32,
        servers: u32,
        wait_mode: WaitMode,
        cpu: Option<usize>,
    ) -> Self {
        // The length is a power of two, so that the counters wrap at the same point as the rings.
        let length = (capacity.max(1) as usize).next_power_of_two();
        let shared = Arc::new(SharedRings {
            received_ns: ring(length),
            submitted: ring(length),
            submitted_end: AtomicUsize::new(0),
            completed: ring(length),
            completed_end: AtomicUsize::new(0),
            driver_sleeps: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let device = Device {
            shared: Arc::clone(&shared),
            driver: std::thread::current(),
            draws: Draws::new(law),
            free_ns: (servers < capacity).then(|| (0..servers).map(|_| Reverse(0)).collect()),
            in_flight: BinaryHeap::with_capacity(length),
            device_times: preallocate(),
        };
        let device = std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                // Without pinning, the device runs on any CPU, and `done` includes its delays.
                let _ = plimsoll_sys::cpu::pin_thread(cpu);
            }
            device.run()
        });
        Self {
            shared,
            device: Some(device),
            capacity: capacity as usize,
            wait_mode,
            sizes: vec![0; length].into_boxed_slice(),
            queued: Vec::with_capacity(length),
            submitted: 0,
            taken: 0,
            tick_ns: 1_000_000_000,
            in_flight: 0,
            driver_times: None,
            pushed_ns: vec![0; length].into_boxed_slice(),
        }
    }

    /// From now on, records the times at which the driver pushed and reaped each operation.
    pub fn record_driver_times(&mut self) {
        self.driver_times = Some(Vec::new());
    }

    /// Stops the device. Returns the times that the device and the driver recorded for each
    /// operation.
    pub fn end(mut self) -> (Vec<DeviceTimes>, Vec<DriverTimes>) {
        self.shared.stopped.store(true, Ordering::Release);
        let device_times = self.device.take().and_then(|device| device.join().ok());
        (device_times.unwrap_or_default(), self.driver_times.take().unwrap_or_default())
    }

    fn ready_count(&self) -> usize {
        self.shared.completed_end.load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    fn wait(&self, until_ns: u64) {
        while self.ready_count() == 0 {
            let now_ns = monotonic_ns();
            if now_ns >= until_ns {
                return;
            }
            if self.wait_mode == WaitMode::Watching {
                spin_loop();
                continue;
            }
            self.shared.driver_sleeps.store(true, Ordering::SeqCst);
            if self.ready_count() == 0 {
                std::thread::park_timeout(Duration::from_nanos(until_ns - now_ns));
            }
            self.shared.driver_sleeps.store(false, Ordering::SeqCst);
        }
    }
}

impl Queue for ReferenceDevice {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.in_flight >= self.capacity {
            return Err(PushError::Full);
        }
        let place = op.user_data as usize;
        self.sizes[place] = op.size_bytes;
        if self.driver_times.is_some() {
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
            shared.received_ns[place as usize].store(now_ns, Ordering::Relaxed);
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
        self.ready_count()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let ready_count = self.ready_count().min(most);
        for _ in 0..ready_count {
            let at = self.taken % self.shared.completed.len();
            let place = self.shared.completed[at].load(Ordering::Relaxed);
            self.taken = self.taken.wrapping_add(1);
            self.in_flight -= 1;
            if let Some(driver_times) = &mut self.driver_times {
                let pushed_ns = self.pushed_ns[place as usize];
                driver_times.push(DriverTimes { pushed_ns, taken_ns: monotonic_ns() });
            }
            each(place, Ok(self.sizes[place as usize]));
        }
        ready_count
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

impl Drop for ReferenceDevice {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
    }
}

/// Allocates memory for the times and touches every page, because the first access would delay the
/// device.
fn preallocate() -> Vec<DeviceTimes> {
    let mut room = vec![DeviceTimes { received_ns: 1, ..DeviceTimes::default() }; DEVICE_TIMES_MAX];
    room.clear();
    room
}

/// Thread of the device.
struct Device {
    shared: Arc<SharedRings>,
    driver: Thread,
    draws: Draws,
    /// Times at which the servers become free; `None` if there are as many servers as slots.
    free_ns: Option<BinaryHeap<Reverse<u64>>>,
    /// Due time of each operation in flight, with its slot and its index in `device_times`.
    in_flight: BinaryHeap<Reverse<(u64, usize, u64)>>,
    device_times: Vec<DeviceTimes>,
}

impl Device {
    fn run(mut self) -> Vec<DeviceTimes> {
        let shared = Arc::clone(&self.shared);
        let (mut submitted, mut completed) = (0usize, 0usize);
        while !shared.stopped.load(Ordering::Acquire) {
            let end = shared.submitted_end.load(Ordering::Acquire);
            while submitted != end {
                let place = &shared.submitted[submitted % shared.submitted.len()];
                let place = place.load(Ordering::Relaxed);
                submitted = submitted.wrapping_add(1);
                self.begin(place, shared.received_ns[place as usize].load(Ordering::Relaxed));
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
                // Reads the time just before the driver can see the completion.
                self.device_times[number].done_ns = monotonic_ns();
                shared.completed_end.store(completed, Ordering::SeqCst);
                wakes = true;
            }
            if wakes && shared.driver_sleeps.swap(false, Ordering::SeqCst) {
                self.driver.unpark();
            }
            spin_loop();
        }
        self.device_times
    }

    fn begin(&mut self, place: u64, received_ns: u64) {
        let drawn_ns = self.draws.draw_ns();
        let servers = self.free_ns.as_mut();
        let free_ns = servers.and_then(|free_ns| free_ns.pop()).map_or(0, |Reverse(ns)| ns);
        let due_ns = free_ns.max(received_ns) + drawn_ns;
        if let Some(free_ns) = &mut self.free_ns {
            free_ns.push(Reverse(due_ns));
        }
        self.in_flight.push(Reverse((due_ns, self.device_times.len(), place)));
        self.device_times.push(DeviceTimes { received_ns, drawn_ns, due_ns, done_ns: 0 });
    }
}
