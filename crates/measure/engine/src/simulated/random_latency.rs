//! Device that completes each operation after a random service time. The device records these
//! service times.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use super::law::{Draws, Law};
use super::{Device, SimulatedQueue, VirtualClock};

/// Device that serves at most `servers` operations at the same time. Operations are served in the
/// order of their arrival.
pub(crate) struct RandomLatencyDevice {
    draws: Draws,
    free_ns: BinaryHeap<Reverse<u64>>,
    /// For each operation: the time that it spent in the device. It includes the wait for a free
    /// server.
    took_ns: Rc<RefCell<Vec<u64>>>,
}

impl RandomLatencyDevice {
    /// Creates the queue, and the list in which the device records how long each operation took.
    pub(crate) fn queue(
        clock: &VirtualClock,
        capacity: usize,
        law: Law,
        servers: usize,
    ) -> (SimulatedQueue<Self>, Rc<RefCell<Vec<u64>>>) {
        let took_ns = Rc::new(RefCell::new(Vec::new()));
        let free_ns = (0..servers).map(|_| Reverse(0)).collect();
        let drawn = Self { draws: Draws::new(law), free_ns, took_ns: Rc::clone(&took_ns) };
        (SimulatedQueue::new(clock, capacity, drawn), took_ns)
    }
}

impl Device for RandomLatencyDevice {
    fn done_ns(&mut self, now_ns: u64) -> u64 {
        let free_ns = self.free_ns.pop().map_or(0, |Reverse(ns)| ns);
        let done = free_ns.max(now_ns) + self.draws.draw_ns();
        self.free_ns.push(Reverse(done));
        self.took_ns.borrow_mut().push(done - now_ns);
        done
    }
}

#[track_caller]
fn assert_close(what: &str, reported: f64, drawn: f64) {
    let error = (reported - drawn).abs();
    let most = drawn * 0.01 + 2_000.0;
    assert!(error <= most, "{what}: {reported} reported, {drawn} drawn");
}

/// Compares the sum and the percentiles that the driver reported with the service times that the
/// device recorded.
#[track_caller]
pub(crate) fn assert_figures_agree(
    law: Law,
    took_ns: &mut [u64],
    latency_ns_sum: u64,
    quantile_ns: &dyn Fn(f64) -> u64,
) {
    took_ns.sort_unstable();
    let mean = |sum: u64| sum as f64 / took_ns.len() as f64;
    assert_close("mean", mean(latency_ns_sum), mean(took_ns.iter().sum()));
    for quantile in [0.5, 0.99, 0.999] {
        let rank = (quantile * took_ns.len() as f64).ceil() as usize;
        let reported = quantile_ns(quantile) as f64;
        assert_close(&format!("{law:?} {quantile}"), reported, took_ns[rank - 1] as f64);
    }
}
