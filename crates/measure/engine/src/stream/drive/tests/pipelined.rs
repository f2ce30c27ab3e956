//! Tests that a device never has to wait for the thread that drives it.

use super::*;
use crate::simulated::{Costs, PipelinedDevice};

/// Runs a driving thread whose actions have these costs. Returns the rate in operations per second,
/// and the collected records.
fn run(depth: u32, costs: Costs, held_ns: u64) -> (f64, Collector) {
    let mut queue = PipelinedDevice::queue(&VirtualClock::default(), depth, held_ns);
    queue.costs = costs;
    let collector = report_of(queue, ClosedLoop::new(&[depth], 0), config(SECOND));
    (collector.window[0].operations as f64, collector)
}

#[test]
fn the_device_never_waits_for_the_thread() {
    for (depth, held_ns) in PipelinedDevice::cases() {
        // If the thread has no costs, the device reaches its maximum rate.
        let (capacity, _) = run(depth, Costs::default(), held_ns);
        let (achieved, collected) = run(depth, PipelinedDevice::COSTS, held_ns);
        let share = achieved / capacity;
        assert!(share >= 0.98, "depth {depth}, held back {held_ns} ns: {share:.3}");
        // The time that an operation waits in the thread is recorded as lag, not as latency.
        let lag = &collected.groups[0].own.times;
        assert_eq!(lag.count(), collected.totals[0].totals.operations);
    }
}

#[test]
fn latency_begins_at_the_hand_over_and_the_time_before_is_lag() {
    // With two slots, the thread prepares one operation while the kernel submits the other
    // operation.
    let (_, collected) = run(2, PipelinedDevice::COSTS, 1);
    let sums = &collected.totals[0].totals;
    assert_eq!(sums.latency_ns_sum, sums.service_ns_sum);
    let costs = PipelinedDevice::COSTS;
    let least =
        costs.call_ns + costs.work_ns + PipelinedDevice::PIPE_NS + PipelinedDevice::SERVICE_NS;
    assert!(sums.latency_ns_sum / sums.operations >= least);
    let lag = &collected.groups[0].own.times;
    assert!(lag.quantile_ns(0.0).unwrap() >= costs.step_ns, "{:?}", lag.quantile_ns(0.0));
}

#[test]
fn latency_and_lag_together_are_all_the_time_that_there_is() {
    // At any time, each slot is either in flight or ready in this thread. If several completions
    // arrive together, each completion waits until the thread reaps it. This wait only counts as
    // lag.
    for (depth, held_ns) in [(1, 1), (4, 1), (32, 32 * PipelinedDevice::SERVICE_NS * 9 / 10)] {
        let (achieved, collected) = run(depth, PipelinedDevice::COSTS, held_ns);
        let (sums, group) = (&collected.totals[0].totals, &collected.groups[0]);
        let each_ns =
            (sums.latency_ns_sum + group.own.waits.ns_sum) as f64 / sums.operations as f64;
        let outstanding = achieved * each_ns / 1e9;
        let share = outstanding / f64::from(depth);
        assert!((0.97..1.01).contains(&share), "depth {depth}, {held_ns} ns: {outstanding:.2}");
    }
}
