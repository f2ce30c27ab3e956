//! Tests against a known reference: the times that the driver reports must agree with the device's
//! random service times within 1 % and 2 µs.

use super::*;
use crate::simulated::{LAWS, Law, RandomLatencyDevice, assert_figures_agree};

/// Drives the device, compares the report with the device's service times, and returns the number
/// of operations.
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
        // The first device has one server for each operation in flight; the second has one server
        // for every four operations.
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
        // A Poisson count of 60,000 has a standard deviation of 0.4 %.
        assert!((rate / rate_per_s - 1.0).abs() < 0.02, "{rate}");
        // With four servers, operations wait in the target for a free server, and these waits
        // count.
        check(law, 4, 60, open());
    }
}
