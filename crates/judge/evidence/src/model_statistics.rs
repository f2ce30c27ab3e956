//! Statistics of a modelled system in the measured phase: the tiers that served reads and received
//! writes, and the utilisation and latency of stations. The counts are exact. The judge computes
//! means from the sums and counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Statistics of a modelled system in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelStatistics {
    /// Name of the model.
    pub model: String,
    /// Title of the model.
    pub title: String,
    /// Origin of the model file: `shipped`, or the path of the file.
    pub origin: String,
    /// SHA-256 of the text of the model file.
    pub model_sha256: String,
    /// Parameters that override values in the model file. The key is the dotted name of a
    /// parameter; the value is a TOML value.
    pub set: BTreeMap<String, String>,
    /// Random seed of the run.
    pub seed: u64,
    /// I/O that each node received. Each node runs one virtual machine of the workload.
    pub nodes: Vec<Node>,
    /// Stations in the order in which they were created.
    pub stations: Vec<Station>,
    /// Latency of each kind of operation, divided among the stations. It was measured for a sample
    /// of the operations.
    pub paths: Vec<Path>,
    /// Number of simulated events.
    pub events: u64,
    /// Differences between the model's results and published results of real systems; `None` if the
    /// model was never compared with a published result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ModelRecord>,
}

/// Differences between a model's results and published results of real systems, and the conditions
/// of the published tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Workload of the published tests: `mailbox` or `matrix`.
    pub workload: String,
    /// Parameters that the published tests set.
    pub changed: Vec<String>,
    /// Errors for each kind of result: `rate`, `read_latency`, `write_latency`,
    /// `log_write_latency`, `latency`.
    pub bands: BTreeMap<String, ErrorBand>,
}

/// Smallest and largest ratio of a modelled result to the published result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBand {
    /// Number of published results that were compared.
    pub figures: usize,
    /// Least ratio.
    pub least: f64,
    /// Largest ratio.
    pub largest: f64,
}

impl ErrorBand {
    /// Returns the range in which the result of a real system is expected. The range assumes that
    /// the model's error is the same as in the earlier comparisons.
    pub fn around(&self, modelled: f64) -> (f64, f64) {
        (modelled / self.largest, modelled / self.least)
    }
}

impl ModelRecord {
    /// Returns one sentence for each difference between the conditions of a run and the conditions
    /// under which the model was checked.
    pub fn unchecked(&self, workload: &str, changed: &BTreeMap<String, String>) -> Vec<String> {
        let mut says = Vec::new();
        if workload != self.workload {
            says.push(format!(
                "The model was never checked with a {workload} workload, only with {}.",
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

/// Number of I/Os, and number of bytes that they transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of I/Os.
    pub ios: u64,
    /// Number of bytes.
    pub size_bytes: u64,
}

/// I/O that clients sent to one node of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name of the node, such as `node0`.
    pub name: String,
    /// Number of reads at each tier. A read is counted at the slowest tier that it used: `zero`,
    /// `dram`, `log`, `ssd` or `hdd`.
    pub reads: BTreeMap<String, Tally>,
    /// Number of writes at each tier. A write is counted at the tier that made it durable.
    pub writes: BTreeMap<String, Tally>,
    /// Number of reads that needed data from another node.
    pub remote_reads: Tally,
    /// Number of metadata operations.
    pub metadata_ops: u64,
}

/// A station: a queue and its servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// Name of the station, such as `node0.drive.3`.
    pub name: String,
    /// Number of servers of the station.
    pub servers: u32,
    /// True if the station has a utilisation: a server can be busy, and a bucket limits a rate. False
    /// for delays and gates.
    pub queues: bool,
    /// Number of busy servers, integrated over time.
    pub busy_ns: u64,
    /// Number of customers that are queued or in service, integrated over time.
    pub customers_ns: u64,
    /// Sum of the sojourn times of the customers, computed from the timestamps of each customer.
    pub sojourn_ns: u64,
    /// Completed visits.
    pub visits: u64,
    /// Number of completed visits that background work made.
    pub background_visits: u64,
    /// Largest number of customers that were at the station at the same time.
    pub customers_max: u32,
}

/// Latency of one kind of operation, divided among the stations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Name of the kind of operation, such as `database read`.
    pub operation: String,
    /// Number of traced operations.
    pub traced: u64,
    /// Sum of the latencies of the traced operations.
    pub latency_ns_sum: u64,
    /// For each station, the part of the latency that it causes, the largest part first. The parts
    /// add up to the whole latency.
    pub parts: Vec<Part>,
}

/// Part of the latency that a station causes, or that the corresponding stations of all nodes cause
/// together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the station; `*` replaces numbers if several stations are merged.
    pub station: String,
    /// Number of visits to the station on the critical paths.
    pub visits: u64,
    /// Time that operations waited in the queue of the station.
    pub waited_ns_sum: u64,
    /// Time for which the station served operations.
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
