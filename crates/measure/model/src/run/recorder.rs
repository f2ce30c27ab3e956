//! Collects the results of a run: the latencies of each class, the rate, the counters of the
//! stations, and the critical paths.

use super::measured::{ClassResult, Contribution, RunResult, StationResult};
use crate::core::{NS_PER_S, StationId};
use crate::stats::BatchMeans;
use crate::system::System;
use hdrhistogram::Histogram;
use plimsoll_evidence::latency::LATENCY_NS_MAX;

/// One in this number of I/Os is traced, to find the critical path of the I/O. Shares have a
/// precision of 1 % if 10,000 I/Os are traced. Tracing adds a few percent to the run time.
const TRACE_ONE_IN: u32 = 13;

struct Class {
    name: String,
    ops: u64,
    bytes: u64,
    sum_ns: u128,
    means: BatchMeans,
    histogram: Histogram<u64>,
}

/// Collects the latencies and counts of operations in the measured window.
pub(crate) struct Recorder {
    classes: Vec<Class>,
    opened_ns: u64,
    open: bool,
    events_before: u64,
}

impl Recorder {
    pub(crate) fn new(system: &mut System, names: &[&str]) -> Self {
        system.sim().trace_one_in(TRACE_ONE_IN, names.len());
        let classes = names
            .iter()
            .map(|name| Class {
                name: (*name).to_owned(),
                ops: 0,
                bytes: 0,
                sum_ns: 0,
                means: BatchMeans::default(),
                // Histograms store two significant digits: the width of a bucket is 1 % of its
                // value, so percentiles have a precision of 1 %.
                histogram: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2)
                    .unwrap_or_else(|_| unreachable!("the bounds are valid")),
            })
            .collect();
        Self { classes, opened_ns: 0, open: false, events_before: 0 }
    }

    /// Opens the measured window.
    pub(crate) fn open(&mut self, system: &mut System) {
        system.sim().open_window();
        self.opened_ns = system.now_ns();
        self.events_before = system.sim().events_done();
        self.open = true;
    }

    /// Records the end of an operation.
    #[inline]
    pub(crate) fn add(&mut self, class: usize, bytes: u64, latency_ns: u64) {
        if !self.open {
            return;
        }
        let class = &mut self.classes[class];
        class.ops += 1;
        class.bytes += bytes;
        class.sum_ns += u128::from(latency_ns);
        class.means.add(latency_ns as f64);
        class.histogram.saturating_record(latency_ns);
    }

    /// Closes the window.
    pub(crate) fn close(self, system: &mut System) -> RunResult {
        let now_ns = system.now_ns();
        let elapsed_ns = (now_ns - self.opened_ns).max(1);
        let seconds = elapsed_ns as f64 / NS_PER_S as f64;
        let stats = system.sim().close_window();
        let sim = system.sim();
        let stations: Vec<StationResult> = stats
            .into_iter()
            .enumerate()
            .map(|(i, stats)| {
                let id = StationId(i as u32);
                let servers = sim.servers(id);
                StationResult {
                    name: sim.name(id).to_owned(),
                    servers,
                    queues: sim.has_utilisation(id),
                    utilisation: stats.busy_ns as f64 / (elapsed_ns as f64 * f64::from(servers)),
                    customers_mean: stats.area_ns as f64 / elapsed_ns as f64,
                    visits_per_s: stats.departures as f64 / seconds,
                    sojourn_ns_mean: ratio(stats.sojourn_ns as f64, stats.departures),
                    stats,
                }
            })
            .collect();
        let little_error_max = stations.iter().map(|s| s.stats.little_error()).fold(0.0, f64::max);
        let classes: Vec<ClassResult> = self
            .classes
            .into_iter()
            .enumerate()
            .map(|(i, class)| {
                let (traced_ios, traced_ns, at) = sim.traced(i);
                let mut path: Vec<Contribution> = at
                    .iter()
                    .enumerate()
                    .filter(|(_, t)| t.visits > 0)
                    .map(|(station, t)| Contribution {
                        station,
                        waited_ns_mean: ratio(t.waited_ns as f64, traced_ios),
                        served_ns_mean: ratio(t.served_ns as f64, traced_ios),
                        share: (t.waited_ns + t.served_ns) as f64 / traced_ns.max(1) as f64,
                    })
                    .collect();
                path.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.station.cmp(&b.station)));
                ClassResult {
                    name: class.name,
                    ops: class.ops,
                    bytes: class.bytes,
                    ops_per_s: class.ops as f64 / seconds,
                    latency_ns: class.means.estimate(),
                    latency_ns_mean: ratio(class.sum_ns as f64, class.ops),
                    histogram: class.histogram,
                    path,
                }
            })
            .collect();
        let ops: u64 = classes.iter().map(|c| c.ops).sum();
        RunResult {
            ops,
            ops_per_s: ops as f64 / seconds,
            classes,
            stations,
            little_error_max,
            events: sim.events_done() - self.events_before,
            inside: system.inside().to_vec(),
        }
    }
}

fn ratio(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}
