//! Compares the latencies that the driver reports with the service times of a device, which are
//! random. The two must agree within 1 % and 2 µs.

use super::*;
use crate::simulated::{LAWS, Law, RandomLatencyDevice, assert_figures_agree};

/// Drives the device, and compares the reported latencies with the device's service times. Returns
/// the number of operations.
fn check<P: Pacing>(law: Law, servers: usize, seconds: u64, pacing: P) -> usize {
    let (queue, took_ns) = RandomLatencyDevice::queue(&VirtualClock::default(), 4096, law, servers);
    let collected = report_of(queue, pacing, config(seconds * SECOND));
    let (total, mut took_ns) = (&collected.totals[0], took_ns.borrow_mut());
    assert_eq!(total.totals.operations, took_ns.len() as u64, "{law:?}");
    let quantile_ns = |quantile| total.latency.quantile_ns(quantile).unwrap();
    assert_figures_agree(law, &mut took_ns, total.totals.latency_ns_sum, &quantile_ns);
    took_ns.len()
}

#[test]
fn a_closed_loop_reports_what_was_drawn() {
    for law in LAWS {
        // Eight operations are in flight. The first device serves all eight operations at the same
        // time. The second device serves only two operations at the same time.
        for servers in [8, 2] {
            check(law, servers, 1, ClosedLoop::new(&[8], 0));
        }
    }
}

#[test]
fn an_open_loop_reports_what_was_drawn_at_the_rate_that_was_asked() {
    for law in LAWS {
        let rate_per_s = 1_000.0;
        let rate = Rate::per_s(rate_per_s).unwrap();
        let schedule = Schedule::Poisson { rate, warp: Warp::None };
        let open = || OpenLoop::new(vec![schedule.part(0, 1, 42)], 4096, 0);
        let rate = check(law, 4096, 60, open()) as f64 / 60.0;
        // A count with a Poisson distribution and a mean of 60,000 has a standard deviation of 0.4
        // %.
        assert!((rate / rate_per_s - 1.0).abs() < 0.02, "{rate}");
        // With four servers, some operations wait in the target for a free server. Their latency
        // includes this wait.
        check(law, 4, 60, open());
    }
}
