//! Runs the production driver of stateful workloads with any queue, on the real clock.

use std::sync::mpsc::channel;

use plimsoll_engine::backend::{Backend, Queue};
use plimsoll_engine::step::{self, Control, DriveArgs, WorkloadProgress};
use plimsoll_evidence::latency::histogram;
use plimsoll_sys::clock::{Clock, sleep_until_ns};

use super::reads::Reads;

/// Returns the latency in ns at a quantile from 0 to 1.
type QuantileNs = Box<dyn Fn(f64) -> u64>;

/// Report of the measured phase.
pub struct StepReport {
    /// Number of operations that completed in the phase.
    pub inside: u64,
    /// Number of all operations of the phase, including those in flight at its end.
    pub operations: u64,
    pub latency_ns_sum: u64,
    pub latency_ns_at: QuantileNs,
}

/// Drives reads with `depth` in flight from `start_ns` to `stop_ns`, and measures all this time.
/// Returns the report and the queue.
///
/// # Errors
/// Returns an error if the queue fails.
pub fn report<Q: Queue>(
    queue: Q,
    depth: u32,
    (start_ns, stop_ns): (u64, u64),
) -> Result<(StepReport, Q), String> {
    let control = Control::new(0, start_ns);
    control.measure(1, start_ns);
    control.close(2, stop_ns);
    let (snapshots, inbox) = channel();
    let mut backend = Backend::with_queue(queue, Clock::new());
    sleep_until_ns(start_ns);
    step::drive(DriveArgs {
        workload: &mut Reads::new(depth),
        backend: &mut backend,
        control: &control,
        snapshots,
        thread: 0,
        interval_ns: 1_000_000_000,
        histogram_interval_ns: 1_000_000_000,
        outage_max_ns: 600_000_000_000,
        read_progress: |_| WorkloadProgress::default(),
        ran_on: &mut Vec::new(),
    })
    .map_err(|error| error.to_string())?;
    let (mut inside, mut latency_ns_sum, mut latencies) = (0, 0, histogram());
    for snapshot in inbox.try_iter().filter(|snapshot| snapshot.phase == 1) {
        inside += if snapshot.drained { 0 } else { snapshot.totals[0].operations };
        latency_ns_sum += snapshot.totals[0].latency_ns_sum;
        for part in &snapshot.latencies {
            latencies.add(part.latency.unpack()).map_err(|error| error.to_string())?;
        }
    }
    let operations = latencies.len();
    let latency_ns_at: QuantileNs = Box::new(move |share| latencies.value_at_quantile(share));
    let reported = StepReport { inside, operations, latency_ns_sum, latency_ns_at };
    Ok((reported, backend.into_queue()))
}
