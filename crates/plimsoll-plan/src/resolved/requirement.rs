//! What the application needs.

use serde::{Deserialize, Serialize};

use super::limits::{LatencyLimit, LimitSet};

/// What the application needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Minimum I/Os per second: transactional I/O of a mail store, reads and writes of a matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_per_s: Option<f64>,
    /// Minimum operations on names and attributes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_ops_per_s: Option<f64>,
    /// True when `iops_per_s` is mailboxes × IOPS per mailbox × (1 + margin) and not stated.
    pub iops_from_workload: bool,
    /// Least bytes per second, reads and writes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Least data that the target holds, laid out and read back whole by the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// A maximum latency is the largest mean of intervals this long.
    pub latency_max_of_ns: u64,
    /// Most page-fault stalls per second on average (mail store).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_fault_stalls_max_per_s: Option<f64>,
    /// Which set of limits was taken before the plan's own.
    pub limit_set: LimitSet,
    /// Latency ceilings, each one row of the verdict.
    pub limits: Vec<LatencyLimit>,
}
