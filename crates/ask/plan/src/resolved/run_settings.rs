//! Settings for evidence, observation and engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{DirectIo, IoChoice, Media};

/// Minimum length and time resolution of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceNeeds {
    /// Minimum length of the measured phase; a shorter run is INCONCLUSIVE.
    pub min_measure_ns: u64,
    /// Interval of the time series.
    pub interval_ns: u64,
    /// Identifiers of audit rules whose result may be unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_unknown: Vec<String>,
}

/// Declared properties of the storage system, and its metrics endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// Declared data reduction ratio that the system reaches with this data, N to 1 (compression
    /// and deduplication).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_reduction: Option<f64>,
    /// Declared size of the system's caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_cache_bytes: Option<u64>,
    /// Declared size of the fast tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_bytes: Option<u64>,
    /// Declared rate of the slowest link to the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<u64>,
    /// Declared media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// Metrics endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricsEndpoint>,
}

/// Metrics endpoint in the Prometheus text format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsEndpoint {
    /// URL.
    pub url: String,
    /// Polling interval.
    pub interval_ns: u64,
    /// Metrics of the endpoint. The key is the name that Plimsoll uses (`read_source.cache`,
    /// `write_destination.ssd`, `data_reduction`…), the value is the endpoint's metric: `name` or
    /// `name{label="value"}`.
    pub names: BTreeMap<String, String>,
}

/// I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineChoice {
    /// I/O interface.
    pub io: IoChoice,
    /// Direct or buffered I/O.
    pub direct: DirectIo,
    /// Number of threads that issue I/O. With 0, there is one thread per core, but at most one per
    /// part of the workload.
    pub workers: u32,
    /// True to poll for completions (io_uring, on devices that support it).
    pub io_poll: bool,
    /// True to let a kernel thread submit the operations (io_uring).
    pub sq_poll: bool,
    /// True to let a waiting thread poll for completions before it sleeps. Omitted if true, so that
    /// the hashes of older plans stay valid.
    #[serde(default = "spins", skip_serializing_if = "Clone::clone")]
    pub spin: bool,
}

fn spins() -> bool {
    true
}
