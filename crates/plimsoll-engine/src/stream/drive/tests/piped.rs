//! A device that works on many operations at once, and a thread whose every step takes time: does the
//! device ever wait for the thread?
//!
//! The device takes each operation through a pipe of constant length, and out of it one after the other:
//! that is its capacity. It tells of what is done by interrupts that are held back, as disks and
//! hypervisors do, so that many operations come back together. Putting an operation together takes the
//! thread time, and so does the kernel's work on it in the call that hands it over; what one call hands
//! over reaches the device when the kernel has worked on all of it, as behind the block layer's plug.

use super::*;

/// Time that the thread needs for each operation it takes back and starts, and for each call.
const STEP_NS: u64 = 200;
const CALL_NS: u64 = 300;
/// The kernel's work on each operation of a call.
const WORK_NS: u64 = 2_000;
/// Length of the device's pipe, and what each operation takes of its capacity.
const PIPE_NS: u64 = 250_000;
const SERVICE_NS: u64 = 10_000;

struct Piped {
    world: World,
    depth: usize,
    /// How much of the thread's own time counts: 1, or 0 for a thread that takes none.
    costs: u64,
    /// Interrupts come at multiples of this.
    held_ns: u64,
    queued: Vec<(u64, u32)>,
    /// When each operation can be seen, in the order in which they were handed over.
    flying: std::collections::VecDeque<(u64, u64, u32)>,
    free_ns: u64,
}

impl Piped {
    fn spend(&self, ns: u64) {
        self.world.advance_to(self.world.now() + self.costs * ns);
    }
}

impl Queue for Piped {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        self.spend(STEP_NS);
        self.queued.push((op.user_data, op.size_bytes));
        Ok(())
    }

    fn submit_and_wait(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), SysError> {
        self.spend(CALL_NS + WORK_NS * self.queued.len() as u64);
        let now = self.world.now();
        for (user_data, size) in self.queued.drain(..) {
            self.free_ns = self.free_ns.max(now + PIPE_NS) + SERVICE_NS;
            let seen_ns = self.free_ns.next_multiple_of(self.held_ns);
            self.flying.push_back((seen_ns, user_data, size));
        }
        if min > 0
            && let Some((first, ..)) = self.flying.front()
        {
            let deadline = timeout_ns.map_or(u64::MAX, |ns| now + ns);
            self.world.advance_to((*first).min(deadline));
        }
        Ok(())
    }

    fn arrived(&mut self) -> usize {
        let now = self.world.now();
        self.flying.iter().take_while(|(seen_ns, ..)| *seen_ns <= now).count()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let count = self.arrived().min(most);
        for (_, user_data, size) in self.flying.drain(..count) {
            self.world.advance_to(self.world.now() + self.costs * STEP_NS);
            each(user_data, Ok(size));
        }
        count
    }

    fn bytes(&mut self, _: u64, _: u32) -> Option<&mut [u8]> {
        None
    }

    fn tick_every(&mut self, _: u64) {}

    fn capacity(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.queued.len() + self.flying.len()
    }
}

/// Operations per second, and what was recorded.
fn run(depth: u32, costs: u64, held_ns: u64) -> (f64, Collector) {
    let world = World::default();
    let mut queue = Piped {
        world: world.clone(),
        depth: depth as usize,
        costs,
        held_ns,
        queued: Vec::new(),
        flying: std::collections::VecDeque::new(),
        free_ns: 0,
    };
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, _returns) = ends.remove(0);
    let mut collector = Collector::new(1, &[1], false);
    let no = AtomicBool::new(false);
    let (never, cut) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
    let stop = Stop { at_ns: &never, failed: &no, cut: &cut };
    let config = config(SECOND);
    let mut pacing = Closed::new(&[depth], 0);
    drive(&mut queue, &mut Same, &mut pacing, &mut world.clone(), config, outbox, stop).1.unwrap();
    for mut snapshot in inbox.try_iter() {
        collector.take(&mut snapshot, &mut |_| ());
    }
    (collector.window[0].operations as f64, collector)
}

#[test]
fn the_device_never_waits_for_the_thread() {
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        // At once, and when nine tenths of what is in flight is done.
        for held_ns in [1, (u64::from(depth) * SERVICE_NS * 9 / 10).max(1)] {
            if depth == 1 && held_ns > 1 {
                continue;
            }
            // A thread that takes no time gets what the device can do.
            let (capacity, _) = run(depth, 0, held_ns);
            let (achieved, collected) = run(depth, 1, held_ns);
            let share = achieved / capacity;
            assert!(share >= 0.98, "depth {depth}, held back {held_ns} ns: {share:.3}");
            // What operations waited for in the thread is known, and is no part of their latency.
            let lag = &collected.groups[0].lag_own;
            assert_eq!(lag.count(), collected.totals[0].sums.operations);
        }
    }
}

#[test]
fn latency_begins_at_the_hand_over_and_the_time_before_is_lag() {
    // Two places: the second is put together while the first is handed over.
    let (_, collected) = run(2, 1, 1);
    let sums = &collected.totals[0].sums;
    assert_eq!(sums.latency_ns, sums.service_ns);
    let least = CALL_NS + WORK_NS + PIPE_NS + SERVICE_NS;
    assert!(sums.latency_ns / sums.operations >= least);
    let lag = &collected.groups[0].lag_own;
    assert!(lag.min_ns().unwrap() >= STEP_NS, "{:?}", lag.min_ns());
}

#[test]
fn latency_and_lag_together_are_all_the_time_that_there_is() {
    // Each place is always in one of the two: in flight, or ready in this thread. What came back with
    // others and stood there until it was taken belongs to the lag alone.
    for (depth, held_ns) in [(1, 1), (4, 1), (32, 32 * SERVICE_NS * 9 / 10)] {
        let (achieved, collected) = run(depth, 1, held_ns);
        let (sums, group) = (&collected.totals[0].sums, &collected.groups[0]);
        let each_ns = (sums.latency_ns + group.lag_own_ns_sum) as f64 / sums.operations as f64;
        let outstanding = achieved * each_ns / 1e9;
        let share = outstanding / f64::from(depth);
        assert!((0.97..1.01).contains(&share), "depth {depth}, {held_ns} ns: {outstanding:.2}");
    }
}
