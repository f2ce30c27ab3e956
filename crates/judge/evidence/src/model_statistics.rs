//! Statistics of a modelled system over the measured phase: sources of reads, destinations of
//! writes, station utilisation, and latency by station. In a model, these statistics are exact, not
//! inferred. The judge computes means from their sums and counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Statistics of a modelled system over the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelStatistics {
    /// Name of the model.
    pub model: String,
    /// Title of the model.
    pub title: String,
    /// Origin of the model file: `shipped`, or its path.
    pub origin: String,
    /// SHA-256 of the model file.
    pub model_sha256: String,
    /// Parameters that override the model file, each as dotted name and TOML value.
    pub set: BTreeMap<String, String>,
    /// Random seed of the run.
    pub seed: u64,
    /// I/O at each node. Each node runs one virtual machine of the workload.
    pub nodes: Vec<Node>,
    /// Stations in creation order.
    pub stations: Vec<Station>,
    /// Latency by station for each kind of operation, from a sample.
    pub paths: Vec<Path>,
    /// Number of simulated events.
    pub events: u64,
    /// Errors of the model relative to published systems; `None` if the model was never compared
    /// with a published system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ModelRecord>,
}

/// Errors of a model relative to published systems, and the conditions under which these errors
/// were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Workload of the published tests: `mailbox`, `matrix`.
    pub workload: String,
    /// Parameters that the published tests set.
    pub changed: Vec<String>,
    /// Errors for each kind of figure: `rate`, `read_latency`, `write_latency`,
    /// `log_write_latency`, `latency`.
    pub bands: BTreeMap<String, ErrorBand>,
}

/// Ratios of modelled to published figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBand {
    /// Number of published figures.
    pub figures: usize,
    /// Least ratio.
    pub least: f64,
    /// Largest ratio.
    pub largest: f64,
}

impl ErrorBand {
    /// Returns the range of values that a real system may have, if the model's error is as in the
    /// earlier comparisons.
    pub fn around(&self, modelled: f64) -> (f64, f64) {
        (modelled / self.largest, modelled / self.least)
    }
}

impl ModelRecord {
    /// Returns a sentence for each way in which a load is outside the checked range.
    pub fn unchecked(&self, workload: &str, changed: &BTreeMap<String, String>) -> Vec<String> {
        let mut says = Vec::new();
        if workload != self.workload {
            says.push(format!(
                "The model was never checked under a {workload} workload, only under {}.",
                self.workload
            ));
        }
        let new: Vec<&str> = changed
            .keys()
            .map(String::as_str)
            .filter(|path| !self.changed.iter().any(|known| known == path))
            .collect();
        if !new.is_empty() {
            says.push(format!(
                "The model was never checked with different values of {}.",
                new.join(", ")
            ));
        }
        says
    }
}

/// Number of I/Os, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of I/Os.
    pub ios: u64,
    /// Number of bytes.
    pub size_bytes: u64,
}

/// I/O that entered the system at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name, such as `node0`.
    pub name: String,
    /// Number of reads for each tier. A read is counted at the slowest tier that it needed: `zero`,
    /// `dram`, `log`, `ssd` or `hdd`.
    pub reads: BTreeMap<String, Tally>,
    /// Number of writes for each tier. A write is counted at the tier that made it durable.
    pub writes: BTreeMap<String, Tally>,
    /// Reads that needed data from another node.
    pub remote_reads: Tally,
    /// Number of metadata operations.
    pub metadata_ops: u64,
}

/// Queueing station: a queue and its servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// Name, such as `node0.drive.3`.
    pub name: String,
    /// Number of servers.
    pub servers: u32,
    /// True if the station has a utilisation; false for delays, gates and buckets.
    pub queues: bool,
    /// Integral over time of the number of busy servers.
    pub busy_ns: u64,
    /// Integral over time of the number of customers, both queued and in service.
    pub customers_ns: u64,
    /// Sum of the customers' sojourn times, computed from the timestamps of each customer.
    pub sojourn_ns: u64,
    /// Completed visits.
    pub visits: u64,
    /// Completed visits of background work.
    pub background_visits: u64,
    /// Maximum number of customers at the same time.
    pub customers_max: u32,
}

/// Latency of one kind of operation, divided among the stations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Name, such as `database read`.
    pub operation: String,
    /// Number of traced operations.
    pub traced: u64,
    /// Sum of the latencies of the traced operations.
    pub latency_ns_sum: u64,
    /// Shares of the stations, largest first. Their sum equals the latency.
    pub parts: Vec<Part>,
}

/// Share of the latency that a station causes, or that the same station causes on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the station; `*` replaces numbers if several stations are merged.
    pub station: String,
    /// Number of visits on the critical path.
    pub visits: u64,
    /// Time in the queue.
    pub waited_ns_sum: u64,
    /// Time in service.
    pub served_ns_sum: u64,
}

/// Replaces each number in a station's name by `*`, so that the names of similar stations are
/// equal.
pub fn generalise_name(name: &str) -> String {
    let mut out = String::new();
    let mut digits = false;
    for c in name.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !digits {
            out.push('*');
        }
        digits = c.is_ascii_digit();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::generalise_name;

    #[test]
    fn numbers_in_names_become_stars() {
        assert_eq!(generalise_name("node12.drive.3"), "node*.drive.*");
        assert_eq!(generalise_name("cpu"), "cpu");
    }
}
