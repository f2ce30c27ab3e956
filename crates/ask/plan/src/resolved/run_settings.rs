//! Settings of the sections `[evidence]`, `[observe]` and `[engine]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{DirectIo, IoChoice, Media};

/// Minimum length and time resolution of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceNeeds {
    /// Minimum length of the measured phase. If it is shorter, the run is INCONCLUSIVE.
    pub min_measure_ns: u64,
    /// Length of an interval of the time series.
    pub interval_ns: u64,
    /// Identifiers of audit rules that do not prevent a PASS if their result is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_unknown: Vec<String>,
}

/// Properties of the storage system that the plan declares, and the system's metrics endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// Declared ratio by which the system's compression and deduplication reduce this data, N to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_reduction: Option<f64>,
    /// Declared size of the system's caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_cache_bytes: Option<u64>,
    /// Declared size of the fast tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_bytes: Option<u64>,
    /// Declared bandwidth of the slowest network link between this host and the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<u64>,
    /// Declared media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// Metrics endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricsEndpoint>,
}

/// Endpoint that returns metrics in the Prometheus text format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsEndpoint {
    /// URL.
    pub url: String,
    /// Polling interval.
    pub interval_ns: u64,
    /// Metrics that Plimsoll reads from the endpoint. The key is Plimsoll's name of the metric
    /// (`read_source.cache`, `write_destination.ssd`, `data_reduction`…). The value is the
    /// endpoint's name: `name` or `name{label="value"}`.
    pub names: BTreeMap<String, String>,
}

/// I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineChoice {
    /// I/O interface.
    pub io: IoChoice,
    /// Whether Plimsoll uses direct or buffered I/O.
    pub direct: DirectIo,
    /// Number of threads that issue I/O. With 0, Plimsoll starts one thread per core, but not more
    /// threads than the workload has parts.
    pub workers: u32,
    /// True if io_uring polls for completions. The device must support polling.
    pub io_poll: bool,
    /// True if a kernel thread submits the operations (io_uring).
    pub sq_poll: bool,
    /// True if a waiting thread polls for completions before it sleeps. The field is omitted if it
    /// is true, so that the hashes of older plans stay valid.
    #[serde(default = "spins", skip_serializing_if = "Clone::clone")]
    pub spin: bool,
}

fn spins() -> bool {
    true
}
