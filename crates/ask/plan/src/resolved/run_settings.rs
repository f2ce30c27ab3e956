//! Settings of the sections `[evidence]`, `[observe]` and `[engine]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{DirectIo, IoChoice, Media};

/// Minimum length of the measurement, and its time resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceNeeds {
    /// Minimum length of the measured phase. If the measured phase is shorter, the run is
    /// INCONCLUSIVE.
    pub min_measure_ns: u64,
    /// Length of the intervals in the time series.
    pub interval_ns: u64,
    /// Identifiers of audit rules. If the result of such a rule is unknown, this does not prevent a
    /// PASS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_unknown: Vec<String>,
}

/// Properties of the storage system that the plan states, and the metrics endpoints of the system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// Ratio by which the system's compression and deduplication reduce this data, N to 1. The plan
    /// states this ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_reduction: Option<f64>,
    /// Size of the system's caches, as the plan states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_cache_bytes: Option<u64>,
    /// Size of the system's fast tier, as the plan states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_bytes: Option<u64>,
    /// Bandwidth of the slowest network link between this host and the system, as the plan states
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<u64>,
    /// Declared media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// Metrics endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricsEndpoint>,
}

/// An endpoint that returns metrics in the Prometheus text format.
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
    /// States whether Plimsoll uses direct I/O or buffered I/O.
    pub direct: DirectIo,
    /// Number of threads that issue I/O. If the number is 0, Plimsoll starts one thread for each
    /// core, but not more threads than the workload has parts.
    pub workers: u32,
    /// True if io_uring polls for completions. The device must support polling.
    pub io_poll: bool,
    /// True if a kernel thread submits the operations. This is possible only with io_uring.
    pub sq_poll: bool,
    /// True if a waiting thread polls for completions before it sleeps. The field is omitted if it
    /// is true, so that the hashes of older plans stay valid.
    #[serde(default = "spins", skip_serializing_if = "Clone::clone")]
    pub spin: bool,
}

fn spins() -> bool {
    true
}
