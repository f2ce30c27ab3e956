//! Requirement of the application.

use serde::{Deserialize, Serialize};

use super::event::{StreamLimits, WindowLimits};
use super::limits::{LatencyLimit, LimitSet};

/// Rates and latencies that the application requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Minimum number of I/Os per second. For a mail store, these are transactional I/Os; for a
    /// matrix, reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_per_s: Option<f64>,
    /// Minimum number of metadata operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_ops_per_s: Option<f64>,
    /// True if `iops_per_s` was computed as mailboxes × IOPS per mailbox × (1 + margin).
    pub iops_from_workload: bool,
    /// Minimum sum of the read and write rates, in bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Minimum amount of data that the run must write to the target and read back completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Length of the intervals for maximum latencies. A maximum latency is the largest of the mean
    /// latencies of all intervals.
    pub latency_max_of_ns: u64,
    /// Maximum mean number of page-fault stalls per second (mail store).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_fault_stalls_max_per_s: Option<f64>,
    /// Set of default limits. Limits in the plan override them.
    pub limit_set: LimitSet,
    /// Latency limits. The verdict has one row for each limit.
    pub limits: Vec<LatencyLimit>,
    /// Limits for the windows before, during and after the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowLimits>,
    /// Limits of single streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamLimits>,
}

impl Requirement {
    /// Returns true if the requirement contains no limits other than those of windows.
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
