//! What a modelled system knows of itself over the measured phase: where reads were served from and
//! where writes went, what its stations did, and where the time of operations went. On a model this is
//! the truth, not an inference. Sums and counts; means are made from them by the judge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A system's own statistics over the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inside {
    /// The model.
    pub model: String,
    /// Its title.
    pub title: String,
    /// Where its file came from: `shipped`, or the path it was read from.
    pub origin: String,
    /// SHA-256 of the model's text.
    pub model_sha256: String,
    /// Parameters that differed from the file: dotted name and TOML value.
    pub set: BTreeMap<String, String>,
    /// Seed of this run's choices.
    pub seed: u64,
    /// What entered at each node; each runs one virtual machine of the load.
    pub nodes: Vec<Node>,
    /// Stations, in the order in which the system was built.
    pub stations: Vec<Station>,
    /// Where the time of each kind of operation went, from a sample of them.
    pub paths: Vec<Path>,
    /// Events that were simulated.
    pub events: u64,
}

/// I/Os and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub size_bytes: u64,
}

/// What entered at one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Such as `node0`.
    pub name: String,
    /// Reads by the slowest place that one needed: `zero`, `dram`, `log`, `ssd`, `hdd`.
    pub reads: BTreeMap<String, Tally>,
    /// Writes by the place that made them durable.
    pub writes: BTreeMap<String, Tally>,
    /// Reads that needed another node.
    pub remote_reads: Tally,
    /// Metadata operations.
    pub metadata_ops: u64,
}

/// A station: servers with a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// Such as `node0.drive.3`.
    pub name: String,
    /// Servers.
    pub servers: u32,
    /// False for delays, gates and buckets, which have no utilisation.
    pub queues: bool,
    /// Integral of the number of busy servers.
    pub busy_ns: u64,
    /// Integral of the number of customers, waiting or in service.
    pub customers_ns: u64,
    /// Sum of the times that customers spent inside, from their own stamps.
    pub sojourn_ns: u64,
    /// Visits that ended.
    pub visits: u64,
    /// Of which background.
    pub background_visits: u64,
    /// Most customers at once.
    pub customers_max: u32,
}

/// Where the time of one kind of operation went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Such as `database read`.
    pub operation: String,
    /// Operations that were followed.
    pub traced: u64,
    /// Sum of their latencies.
    pub latency_ns_sum: u64,
    /// What the stations had of it, largest first. The sums add up to the latency.
    pub parts: Vec<Part>,
}

/// What one station, or like stations of all nodes, had of the time of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The station; with a star for a number where several are taken together.
    pub station: String,
    /// Visits on the critical path.
    pub visits: u64,
    /// Time queued.
    pub waited_ns_sum: u64,
    /// Time in service.
    pub served_ns_sum: u64,
}

/// A station's name with a star for each number in it, so that like stations go together.
pub fn like(name: &str) -> String {
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
    use super::like;

    #[test]
    fn numbers_in_names_become_stars() {
        assert_eq!(like("node12.drive.3"), "node*.drive.*");
        assert_eq!(like("cpu"), "cpu");
    }
}
