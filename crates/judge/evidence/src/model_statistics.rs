//! Statistics of a modelled system over the measured phase: sources of reads, destinations of
//! writes, station utilisation, and latency by station. On a model these are exact, not inferred.
//! The judge computes means from these
//! sums and counts.

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
    /// Parameters that override the model file: dotted name and TOML value.
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
    /// Errors of the model against published systems; `None` if it was never compared with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ModelRecord>,
}

/// Errors of a model against published systems, and the conditions under which they were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Workload of the published tests: `mailbox`, `matrix`.
    pub workload: String,
    /// Parameters that these tests set.
    pub changed: Vec<String>,
    /// By kind of figure: `rate`, `read_latency`, `write_latency`, `log_write_latency`, `latency`.
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
    /// Returns the values that a real system may have if the model errs as it did before.
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
                "The model was never checked with other values of {}.",
                new.join(", ")
            ));
        }
        says
    }
}

/// I/Os and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of I/Os.
    pub ios: u64,
    /// Number of bytes.
    pub size_bytes: u64,
}

/// I/O that entered the system at one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name, such as `node0`.
    pub name: String,
    /// Reads by the slowest tier that they needed: `zero`, `dram`, `log`, `ssd`, `hdd`.
    pub reads: BTreeMap<String, Tally>,
    /// Writes by the tier that made them durable.
    pub writes: BTreeMap<String, Tally>,
    /// Reads that needed another node.
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
    /// False for delays, gates and buckets, which have no utilisation.
    pub queues: bool,
    /// Integral of the number of busy servers over time.
    pub busy_ns: u64,
    /// Integral over time of the number of customers, queued or in service.
    pub customers_ns: u64,
    /// Sum of the customers' sojourn times, from their own timestamps.
    pub sojourn_ns: u64,
    /// Completed visits.
    pub visits: u64,
    /// Completed visits of background work.
    pub background_visits: u64,
    /// Maximum number of customers at once.
    pub customers_max: u32,
}

/// Latency by station of one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Name, such as `database read`.
    pub operation: String,
    /// Number of traced operations.
    pub traced: u64,
    /// Sum of their latencies.
    pub latency_ns_sum: u64,
    /// Shares of the stations, largest first. Their sum equals the latency.
    pub parts: Vec<Part>,
}

/// Share of the latency of one station, or of the same station on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the station; `*` replaces numbers if several stations are merged.
    pub station: String,
    /// Visits on the critical path.
    pub visits: u64,
    /// Time in the queue.
    pub waited_ns_sum: u64,
    /// Time in service.
    pub served_ns_sum: u64,
}

/// Replaces each number in a station's name by `*`, so that like stations compare equal.
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
