//! A reference that is known: a target that completes each operation after a drawn service time, and writes
//! down what it drew. What the driver reports has to be that, within 1 % and 2 µs.

use super::*;

const MICROSECOND: u64 = 1_000;

/// How service times are drawn.
#[derive(Clone, Copy, Debug)]
enum Law {
    Constant(u64),
    Exponential(f64),
    /// Most take the first, one of fifty the second.
    Bimodal(u64, u64),
}

impl Law {
    fn draw(self, uniform: f64) -> u64 {
        match self {
            Self::Constant(ns) => ns,
            Self::Exponential(mean_ns) => (-mean_ns * (1.0 - uniform).ln()).max(1.0) as u64,
            Self::Bimodal(fast, slow) => {
                if uniform < 0.98 {
                    fast
                } else {
                    slow
                }
            }
        }
    }
}

/// Serves at most `servers` operations at a time, in the order of their coming.
struct Drawn {
    world: World,
    law: Law,
    free_ns: BinaryHeap<Reverse<u64>>,
    random: u64,
    queued: Vec<(u64, u32)>,
    flying: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The time that each operation took here, its wait for a server included.
    took_ns: Rc<RefCell<Vec<u64>>>,
}

impl Drawn {
    /// Uniform in 0..1 (SplitMix64; S. Vigna, public domain constants).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Queue for Drawn {
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        self.queued.push((op.user_data, op.size_bytes));
        Ok(())
    }

    fn submit_and_wait(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), SysError> {
        let now = self.world.now();
        for (user_data, size) in std::mem::take(&mut self.queued) {
            let uniform = self.uniform();
            let free_ns = self.free_ns.pop().map_or(0, |Reverse(ns)| ns);
            let done = free_ns.max(now) + self.law.draw(uniform);
            self.free_ns.push(Reverse(done));
            self.took_ns.borrow_mut().push(done - now);
            self.flying.push(Reverse((done, user_data, size)));
        }
        let deadline = now.saturating_add(timeout_ns.unwrap_or(SECOND));
        if min > 0
            && let Some(Reverse((first, ..))) = self.flying.peek()
        {
            self.world.advance_to((*first).min(deadline));
        }
        Ok(())
    }

    fn arrived(&mut self) -> usize {
        let now = self.world.now();
        self.flying.iter().filter(|Reverse((done, ..))| *done <= now).count()
    }

    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let now = self.world.now();
        let mut count = 0;
        while let Some(Reverse((done, user_data, size))) = self.flying.peek().copied() {
            if done > now || count == most {
                break;
            }
            self.flying.pop();
            each(user_data, Ok(size));
            count += 1;
        }
        count
    }

    fn bytes(&mut self, _: u64, _: u32) -> Option<&mut [u8]> {
        None
    }

    fn tick_every(&mut self, _: u64) {}

    fn capacity(&self) -> usize {
        4096
    }

    fn in_flight(&self) -> usize {
        self.queued.len() + self.flying.len()
    }
}

/// Drives the target, and gives what was reported and what was drawn, in ascending order.
fn run<P: Pacing>(law: Law, servers: usize, seconds: u64, mut pacing: P) -> (Collector, Vec<u64>) {
    let world = World::default();
    let took_ns = Rc::new(RefCell::new(Vec::new()));
    let mut queue = Drawn {
        world: world.clone(),
        law,
        free_ns: (0..servers).map(|_| Reverse(0)).collect(),
        random: 7,
        queued: Vec::new(),
        flying: BinaryHeap::new(),
        took_ns: Rc::clone(&took_ns),
    };
    let (inbox, mut ends) = connect(&[1]);
    let (outbox, _returns) = ends.remove(0);
    let mut collector = Collector::new(1, &[1], false);
    let (never, no) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
    let cut = AtomicBool::new(false);
    let stop = Stop { at_ns: &never, failed: &no, cut: &cut };
    let (config, mut clock) = (config(seconds * SECOND), world);
    drive(&mut queue, &mut Same, &mut pacing, &mut clock, config, outbox, stop).1.unwrap();
    for mut snapshot in inbox.try_iter() {
        collector.take(&mut snapshot, &mut |_| ());
    }
    let mut took_ns = took_ns.borrow().clone();
    took_ns.sort_unstable();
    (collector, took_ns)
}

#[track_caller]
fn agrees(what: &str, reported: f64, drawn: f64) {
    let error = (reported - drawn).abs();
    let most = drawn * 0.01 + 2.0 * MICROSECOND as f64;
    assert!(error <= most, "{what}: {reported} reported, {drawn} drawn");
}

#[track_caller]
fn figures_agree(law: Law, (collected, took_ns): &(Collector, Vec<u64>)) {
    let total = &collected.totals[0];
    assert_eq!(total.sums.operations, took_ns.len() as u64, "{law:?}");
    let mean = |sum: u64| sum as f64 / took_ns.len() as f64;
    agrees("mean", mean(total.sums.latency_ns), mean(took_ns.iter().sum()));
    for quantile in [0.5, 0.99, 0.999] {
        let rank = (quantile * took_ns.len() as f64).ceil() as usize;
        let reported = total.latency.quantile_ns(quantile).unwrap() as f64;
        agrees(&format!("{law:?} {quantile}"), reported, took_ns[rank - 1] as f64);
    }
}

const LAWS: [Law; 3] = [
    Law::Constant(50 * MICROSECOND),
    Law::Exponential(1_000.0 * MICROSECOND as f64),
    Law::Bimodal(100 * MICROSECOND, 20_000 * MICROSECOND),
];

#[test]
fn a_closed_loop_reports_what_was_drawn() {
    for law in LAWS {
        // As many servers as operations in flight, and a quarter of them.
        for servers in [8, 2] {
            figures_agree(law, &run(law, servers, 1, Closed::new(&[8], 0)));
        }
    }
}

#[test]
fn an_open_loop_reports_what_was_drawn_at_the_rate_that_was_asked() {
    for law in LAWS {
        let rate_per_s = 1_000.0;
        let rate = Rate::per_s(rate_per_s).unwrap();
        let schedule = Schedule::Poisson { rate, warp: Warp::None };
        let open = || Open::new(vec![schedule.part(0, 1, 42)], 4096, 0);
        let found = run(law, 4096, 60, open());
        figures_agree(law, &found);
        let rate = found.1.len() as f64 / 60.0;
        // A Poisson count of 60,000 has a standard deviation of 0.4 %.
        assert!((rate / rate_per_s - 1.0).abs() < 0.02, "{rate}");
        // Four servers: operations wait for one in the target, and that counts.
        figures_agree(law, &run(law, 4, 60, open()));
    }
}
