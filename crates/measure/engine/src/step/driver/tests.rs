//! Tests the production loop in virtual time, with devices whose behaviour is known.

use std::sync::mpsc::{Receiver, channel};

use plimsoll_evidence::latency::histogram;
use plimsoll_record::histogram::Latencies;
use plimsoll_record::totals::OperationTotals;

use super::*;
use crate::simulated::{
    Costs, Device, FixedLatencyDevice, LAWS, PipelinedDevice, RandomLatencyDevice, Reads, SECOND,
    SimulatedQueue, VirtualClock, assert_figures_agree,
};

const BEFORE: u32 = 0;
const MEASURED: u32 = 1;
const CLOSE: u32 = 2;

/// Figures that a run reported for its measured phase.
struct MeasuredReport {
    /// I/Os that completed in the measured phase.
    inside: OperationTotals,
    /// I/Os that were in flight at the end of the measured phase.
    drained: OperationTotals,
    latencies: Vec<Latencies>,
    waits: u64,
    outcome: Result<(), EngineError>,
}

impl MeasuredReport {
    fn latency_ns_at(&self, quantile: f64) -> u64 {
        let mut all = histogram();
        self.latencies.iter().for_each(|part| all.add(part.latency.unpack()).unwrap());
        all.value_at_quantile(quantile)
    }
}

/// Runs for `seconds` with `depth` reads in flight, and measures all this time.
fn run<D: Device>(
    queue: SimulatedQueue<D>,
    depth: u32,
    seconds: u64,
    outage_max_ns: u64,
) -> MeasuredReport {
    let control = Control::new(BEFORE, 0);
    control.measure(MEASURED, 0);
    control.close(CLOSE, seconds * SECOND);
    let (snapshots, inbox) = channel();
    let clock = queue.clock();
    let outcome = drive(DriveArgs {
        workload: &mut Reads::new(depth),
        backend: &mut Backend::with_queue(queue, clock),
        control: &control,
        snapshots,
        thread: 0,
        interval_ns: SECOND,
        histogram_interval_ns: SECOND,
        outage_max_ns,
        read_progress: |_| WorkloadProgress::default(),
        ran_on: &mut Vec::new(),
    });
    collect(&inbox, outcome)
}

fn collect(inbox: &Receiver<IntervalSnapshot>, outcome: Result<(), EngineError>) -> MeasuredReport {
    let (inside, drained) = (OperationTotals::default(), OperationTotals::default());
    let mut reported = MeasuredReport { inside, drained, latencies: Vec::new(), waits: 0, outcome };
    for snapshot in inbox.try_iter().filter(|snapshot| snapshot.phase == MEASURED) {
        let sums = if snapshot.drained { &mut reported.drained } else { &mut reported.inside };
        sums.add(&snapshot.totals[0]);
        reported.waits += snapshot.own.count;
        reported.latencies.extend(snapshot.latencies);
    }
    reported
}

#[test]
fn the_device_never_waits_for_the_thread() {
    for (depth, held_ns) in PipelinedDevice::cases() {
        let go = |costs| {
            let mut queue = PipelinedDevice::queue(&VirtualClock::default(), depth, held_ns);
            queue.costs = costs;
            let reported = run(queue, depth, 1, 600 * SECOND);
            reported.outcome.as_ref().unwrap();
            assert_eq!(
                reported.waits, reported.inside.operations,
                "each wait in the thread is known"
            );
            reported.inside.operations as f64
        };
        let share = go(PipelinedDevice::COSTS) / go(Costs::default());
        assert!(share >= 0.98, "depth {depth}, held back {held_ns} ns: {share:.3}");
    }
}

#[test]
fn what_is_reported_is_what_was_drawn() {
    for law in LAWS {
        // The first device serves all eight operations in flight at the same time, and the second
        // device only two.
        for servers in [8, 2] {
            let (queue, took_ns) =
                RandomLatencyDevice::queue(&VirtualClock::default(), 8, law, servers);
            let reported = run(queue, 8, 1, 600 * SECOND);
            reported.outcome.as_ref().unwrap();
            let mut took_ns = took_ns.borrow_mut();
            let counted = reported.inside.counted() + reported.drained.counted();
            assert_eq!(counted, took_ns.len() as u64, "{law:?}");
            let sum_ns = reported.inside.latency_ns_sum + reported.drained.latency_ns_sum;
            assert_figures_agree(law, &mut took_ns, sum_ns, &|quantile| {
                reported.latency_ns_at(quantile)
            });
        }
    }
}

#[test]
fn a_stall_across_the_end_counts_with_its_whole_length() {
    let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 8, 1_000_000);
    queue.device.stall = (9 * SECOND, 99 * SECOND);
    let reported = run(queue, 8, 10, 600 * SECOND);
    reported.outcome.as_ref().unwrap();
    assert_eq!(reported.inside.operations, 8 * 9_000, "eight each millisecond until the stall");
    assert_eq!((reported.drained.operations, reported.drained.abandoned), (8, 0));
    assert!(reported.drained.latency_ns_max >= 90 * SECOND);
    assert!(reported.latency_ns_at(1.0) >= 90 * SECOND);
}

#[test]
fn a_starved_thread_leaves_what_waited() {
    // No read completes, so the record consists of exactly the eight reads in flight.
    let mut queue = FixedLatencyDevice::queue(&VirtualClock::default(), 8, 1_000_000);
    queue.device.stall = (0, 10_000 * SECOND);
    let reported = run(queue, 8, 10, 60 * SECOND);
    assert!(matches!(reported.outcome, Err(EngineError::NoAnswer { in_flight: 8, .. })));
    assert_eq!((reported.inside.counted(), reported.drained.abandoned), (0, 8));
    assert!(reported.latency_ns_at(0.01) >= 60 * SECOND);
}
