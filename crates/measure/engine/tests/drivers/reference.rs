//! Tests the drivers, their clocks, pacing and recording in real time, against a device with known
//! service times. This is a small version of `benches/run reference`.
//!
//! Delays on a busy machine are unknown, so these tests have no time limits. Instead, the device
//! records when each operation arrived and when it was done. Its queue records when the driver
//! pushed and reaped the operation. The reported latency of each operation must be between the
//! device's time and the driver's time. On any machine, each percentile must therefore be between
//! the percentiles of these two times. In virtual time, no other program uses the processor, and
//! the reported times equal the service times (`src/stream/drive/tests/random_latency.rs`,
//! `src/step/driver/tests.rs`).

use crate::law::{LAWS, Law};
use crate::step;
use crate::stream;
use crate::target::{DeviceTimes, DriverTimes, ReferenceDevice, WaitMode};
use plimsoll_engine::stream::pacing::{ClosedLoop, OpenLoop};
use plimsoll_record::collect::Collector;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::arrival::{Arrivals, Rate, Schedule, Warp};

/// Length of a case. `LEAD_NS` is the time between the device's readiness and the start.
const LENGTH_NS: u64 = 150_000_000;
const LEAD_NS: u64 = 10_000_000;
/// Number of operations in flight in the closed loops. `PLACES` is the number of slots of the open
/// loop.
const DEPTH: u32 = 8;
const PLACES: u32 = 4096;
/// Two clocks differ by at most this time, which is the cost of reading a clock.
const CLOCKS_NS: u64 = 2_000;
/// Largest relative width of a bucket in a histogram with three digits.
const DIGITS: f64 = 0.002;

/// Reported figures, in the same form for both drivers.
struct DriverReport<'a> {
    inside: u64,
    operations: u64,
    latency_ns_sum: u64,
    latency_ns_at: &'a dyn Fn(f64) -> u64,
}

/// Known times of all operations in ns: lower and upper bounds of the latencies, and the times at
/// which operations were done and reaped.
struct Truth {
    least: Vec<u64>,
    most: Vec<u64>,
    done: Vec<u64>,
    taken: Vec<u64>,
}

impl Truth {
    /// Computes the bounds. With a schedule, `from_ns` is the time at which each operation's
    /// latency starts, in order. Without a schedule, the latency starts between the push into the
    /// queue and the arrival at the device.
    fn of(known: &[DeviceTimes], mut held: Vec<DriverTimes>, from_ns: Option<Vec<u64>>) -> Self {
        // Sorts by push time, so that the order is that of the device's records.
        held.sort_by_key(|one| one.pushed_ns);
        assert_eq!(known.len(), held.len());
        let from = |at: usize, else_ns: u64| from_ns.as_ref().map_or(else_ns, |from| from[at]);
        let each = known.iter().zip(&held).enumerate();
        let bounds = each.map(|(at, (one, held))| {
            assert!(one.done_ns >= one.due_ns, "the device completes nothing too early");
            let least = one.done_ns - from(at, one.received_ns);
            (least, held.taken_ns - from(at, held.pushed_ns))
        });
        let (mut least, mut most): (Vec<u64>, Vec<u64>) = bounds.unzip();
        least.sort_unstable();
        most.sort_unstable();
        let done = known.iter().map(|one| one.done_ns).collect();
        Self { least, most, done, taken: held.iter().map(|one| one.taken_ns).collect() }
    }

    #[track_caller]
    fn holds(&self, name: &str, reported: &DriverReport<'_>, stop_ns: u64) {
        let count = self.least.len() as u64;
        assert!(count > 10, "{name}: {count} operations");
        assert_eq!(reported.operations, count, "{name}: each operation is reported once");
        let before = |at: &[u64]| at.iter().filter(|ns| **ns < stop_ns).count() as u64;
        // Operations that the driver reaps near the end may count as inside or as drained.
        let least = before(&self.taken).saturating_sub(u64::from(DEPTH));
        let inside = least..=before(&self.done);
        assert!(inside.contains(&reported.inside), "{name}: {} of {inside:?}", reported.inside);
        let sum = |of: &[u64]| of.iter().sum::<u64>();
        let slack_ns = count * CLOCKS_NS;
        let sums = sum(&self.least).saturating_sub(slack_ns)..=sum(&self.most) + slack_ns;
        let sum_ns = reported.latency_ns_sum;
        assert!(sums.contains(&sum_ns), "{name}: a sum of {sum_ns} ns beside {sums:?}");
        for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = (share * count as f64).ceil() as usize;
            let (least, most) = (self.least[rank - 1] as f64, self.most[rank - 1] as f64);
            let slack_ns = CLOCKS_NS as f64;
            let bounds = least * (1.0 - DIGITS) - slack_ns..=most * (1.0 + DIGITS) + slack_ns;
            let ns = (reported.latency_ns_at)(share) as f64;
            assert!(bounds.contains(&ns), "{name}, {share}: {ns} ns beside {bounds:?}");
        }
    }
}

/// Starts a device that serves `servers` operations at the same time. Also returns the start and
/// end of the measurement.
fn device(law: Law, places: u32, servers: u32, waiting: WaitMode) -> (ReferenceDevice, (u64, u64)) {
    let mut queue = ReferenceDevice::start(law, places, servers, waiting, None);
    queue.record_driver_times();
    let start_ns = monotonic_ns() + LEAD_NS;
    (queue, (start_ns, start_ns + LENGTH_NS))
}

/// Compares the stream driver's report of a class with the known times.
#[track_caller]
fn stream_holds(name: &str, truth: &Truth, collector: &Collector, stop_ns: u64) {
    let total = &collector.totals[0];
    let reported = DriverReport {
        inside: collector.window[0].operations,
        operations: total.latency.count(),
        latency_ns_sum: total.totals.latency_ns_sum,
        latency_ns_at: &|share| total.latency.quantile_ns(share).unwrap(),
    };
    truth.holds(name, &reported, stop_ns);
}

fn streamed(name: &str, law: Law, servers: u32, waiting: WaitMode) {
    let (mut queue, span) = device(law, DEPTH, servers, waiting);
    let collector =
        stream::report(&mut queue, ClosedLoop::new(&[DEPTH], span.0), span, (0, 0)).unwrap();
    let (known, held) = queue.end();
    let truth = Truth::of(&known, held, None);
    stream_holds(&format!("{} {name}", law.name()), &truth, &collector, span.1);
}

#[test]
fn a_closed_loop_reports_what_the_device_did() {
    for law in LAWS {
        streamed("as many servers", law, DEPTH, WaitMode::Sleeping);
        streamed("a quarter of them", law, DEPTH / 4, WaitMode::Sleeping);
    }
    streamed("watched", LAWS[0], DEPTH, WaitMode::Watching);
}

#[test]
fn an_open_loop_reports_all_the_time_since_the_schedule() {
    let arrivals = || -> Arrivals {
        let rate = Rate::per_s(4_000.0).unwrap();
        Schedule::Poisson { rate, warp: Warp::None }.part(0, 1, 42)
    };
    for law in LAWS {
        // With two servers, slow operations delay later operations, in the driver or in the device.
        for servers in [PLACES, 2] {
            let (mut queue, span) = device(law, PLACES, servers, WaitMode::Sleeping);
            let open = OpenLoop::new(vec![arrivals()], PLACES, span.0);
            let collector = stream::report(&mut queue, open, span, (50_000, 0)).unwrap();
            let (known, held) = queue.end();
            let from_ns = arrivals().take(known.len()).map(|due_ns| span.0 + due_ns).collect();
            let name = format!("{} open, {servers} servers", law.name());
            let truth = Truth::of(&known, held, Some(from_ns));
            stream_holds(&name, &truth, &collector, span.1);
        }
    }
}

#[test]
fn the_mail_stores_driver_reports_what_the_device_did() {
    for law in LAWS {
        for servers in [DEPTH, DEPTH / 4] {
            let (queue, span) = device(law, DEPTH, servers, WaitMode::Sleeping);
            let (found, queue) = step::report(queue, DEPTH, span).unwrap();
            let (known, held) = queue.end();
            let reported = DriverReport {
                inside: found.inside,
                operations: found.operations,
                latency_ns_sum: found.latency_ns_sum,
                latency_ns_at: &*found.latency_ns_at,
            };
            let name = format!("{} step, {servers} servers", law.name());
            Truth::of(&known, held, None).holds(&name, &reported, span.1);
        }
    }
}
