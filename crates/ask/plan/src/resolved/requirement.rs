//! Requirement of the application.

use serde::{Deserialize, Serialize};

use super::event::{StreamLimits, WindowLimits};
use super::limits::{LatencyLimit, LimitSet};

/// Requirement of the application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Minimum I/Os per second: transactional I/Os of a mail store, or reads and writes of a
    /// matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_per_s: Option<f64>,
    /// Minimum metadata operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_ops_per_s: Option<f64>,
    /// True if `iops_per_s` was computed as mailboxes × IOPS per mailbox × (1 + margin).
    pub iops_from_workload: bool,
    /// Minimum bytes per second, for reads and writes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Minimum amount of data that the run writes to the target and reads back completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Length of the intervals for maximum latencies. A maximum latency is the largest interval
    /// mean.
    pub latency_max_of_ns: u64,
    /// Maximum rate of page-fault stalls per second, as a mean (mail store).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_fault_stalls_max_per_s: Option<f64>,
    /// Set of limits that the plan's own limits override.
    pub limit_set: LimitSet,
    /// Latency limits. The verdict has one row for each limit.
    pub limits: Vec<LatencyLimit>,
    /// Limits of the windows around the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowLimits>,
    /// Limits of single streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamLimits>,
}

impl Requirement {
    /// Returns true if the requirement only contains limits of windows around events.
    #[must_use]
    pub fn has_only_windows(&self) -> bool {
        !self.windows.is_empty()
            && self.iops_per_s.is_none()
            && self.metadata_ops_per_s.is_none()
            && self.bandwidth_bytes_per_s.is_none()
            && self.capacity_bytes.is_none()
            && self.page_fault_stalls_max_per_s.is_none()
            && self.limits.is_empty()
            && self.streams.is_empty()
    }
}
