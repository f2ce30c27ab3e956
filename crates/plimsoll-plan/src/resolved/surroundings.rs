//! What is asked of the evidence, of observation and of the engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{DirectIo, IoChoice, Media};

/// How much must be measured, and how finely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceNeeds {
    /// A shorter measured phase is INCONCLUSIVE.
    pub min_measure_ns: u64,
    /// Length of an interval of the series.
    pub interval_ns: u64,
    /// Rules of the audit that may stay unknown, by their identifiers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_unknown: Vec<String>,
}

/// What is declared of the system beneath, and where its own statistics are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// Declared: how many to one the system reduces this data (compression and duplicates).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_reduction: Option<f64>,
    /// Declared: size of its caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_cache_bytes: Option<u64>,
    /// Declared: size of its fast tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_bytes: Option<u64>,
    /// Declared: rate of the slowest link to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<u64>,
    /// Declared: its media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// Its own statistics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricsEndpoint>,
}

/// A place that answers with metrics in the Prometheus text format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsEndpoint {
    /// Where it answers.
    pub url: String,
    /// Time from one question to the next.
    pub interval_ns: u64,
    /// Our name (`read_source.cache`, `write_destination.ssd`, `data_reduction`…) to the metric's:
    /// `name` or `name{label="value"}`.
    pub names: BTreeMap<String, String>,
}

/// How I/O is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineChoice {
    /// Which interface.
    pub io: IoChoice,
    /// Past the page cache or through it.
    pub direct: DirectIo,
    /// Driving threads; 0: one per core, and no more than the workload has parts.
    pub workers: u32,
    /// Whether completions are polled for (io_uring, devices that can).
    pub io_poll: bool,
    /// Whether a kernel thread picks submissions up (io_uring).
    pub sq_poll: bool,
    /// Whether a waiting thread polls for completions before it sleeps. Left out if true: plans keep their hash.
    #[serde(default = "spins", skip_serializing_if = "Clone::clone")]
    pub spin: bool,
}

fn spins() -> bool {
    true
}
