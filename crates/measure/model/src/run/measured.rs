//! The result of a run.

use crate::blocks::NodeCounters;
use crate::core::StationStats;
use crate::stats::Estimate;
use hdrhistogram::Histogram;

#[derive(Clone, Debug)]
pub struct RunResult {
    /// Number of operations that completed in the measured window.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    pub classes: Vec<ClassResult>,
    /// Results of the stations, in the order in which the stations were created.
    pub stations: Vec<StationResult>,
    /// Largest relative deviation from Little's law among all stations.
    pub little_error_max: f64,
    /// Number of simulated events.
    pub events: u64,
    /// For each node: counters of the requests that entered the system at this node since the
    /// system was built.
    pub inside: Vec<NodeCounters>,
}

/// A class of operations.
#[derive(Clone, Debug)]
pub struct ClassResult {
    /// Name of the class, such as `read`.
    pub name: String,
    /// Number of operations of this class.
    pub ops: u64,
    /// Number of bytes that these operations transferred.
    pub bytes: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Mean latency, with a confidence interval.
    pub latency_ns: Estimate,
    /// Mean latency over all operations of the window.
    pub latency_ns_mean: f64,
    /// Latencies.
    pub histogram: Histogram<u64>,
    /// Contributions of the stations to the mean latency, the largest first. A contribution is the
    /// time for which operations waited or were served at a station. It is measured on the critical
    /// paths of a sample of operations.
    pub path: Vec<Contribution>,
}

/// Contribution of one station to the latency of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// Index into [`RunResult::stations`].
    pub station: usize,
    /// Mean queueing time of an operation at this station.
    pub waited_ns_mean: f64,
    /// Mean service time of an operation at this station.
    pub served_ns_mean: f64,
    /// Share of the mean latency that is spent at this station.
    pub share: f64,
}

/// Results of a station in the measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct StationResult {
    pub name: String,
    pub servers: u32,
    /// True for a server with a queue, and for a bucket, which limits a rate; false for delays and
    /// gates, which have no utilisation.
    pub queues: bool,
    /// Share of the station's servers that were busy, averaged over the window.
    pub utilisation: f64,
    /// Mean number of customers that wait or are served.
    pub customers_mean: f64,
    /// Number of visits per second.
    pub visits_per_s: f64,
    /// Mean duration of a visit, including the time in the queue.
    pub sojourn_ns_mean: f64,
    /// The counters.
    pub stats: StationStats,
}

impl RunResult {
    /// Returns the mean latency over all operations of several classes.
    pub fn latency_ns_mean(&self, classes: impl Fn(&ClassResult) -> bool) -> f64 {
        let chosen = || self.classes.iter().filter(|c| classes(c));
        let ops: u64 = chosen().map(|c| c.ops).sum();
        let sum: f64 = chosen().map(|c| c.latency_ns_mean * c.ops as f64).sum();
        if ops == 0 { 0.0 } else { sum / ops as f64 }
    }

    /// Returns a percentile of the latencies of all classes. The percentile is given as a number
    /// from 0 to 100. `None` if there were no operations.
    pub fn latency_ns_percentile(&self, percentile: f64) -> Option<u64> {
        let mut classes = self.classes.iter().map(|class| &class.histogram);
        let mut all = classes.next()?.clone();
        for histogram in classes {
            all.add(histogram).ok()?;
        }
        (!all.is_empty()).then(|| all.value_at_percentile(percentile))
    }

    /// Returns the station that limits the rate. This is the server or bucket with the highest
    /// utilisation.
    pub fn bottleneck(&self) -> Option<&StationResult> {
        self.stations
            .iter()
            .filter(|s| s.queues)
            .max_by(|a, b| a.utilisation.total_cmp(&b.utilisation))
    }
}
