//! The requirement of the application.

use serde::{Deserialize, Serialize};

use super::event::{StreamLimits, WindowLimits};
use super::limits::{LatencyLimit, LimitSet};

/// Rates and latencies that the application requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Minimum number of I/Os per second. For a mail store, transactional I/Os count. For a matrix,
    /// reads and writes count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_per_s: Option<f64>,
    /// Minimum number of metadata operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_ops_per_s: Option<f64>,
    /// True if `iops_per_s` was computed from the mailboxes: number of mailboxes × IOPS of each
    /// mailbox × (1 + margin).
    pub iops_from_workload: bool,
    /// Minimum bandwidth of reads and writes together, in bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Minimum amount of data that the run must write to the target and read back completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Length of the intervals for maximum latencies. A mean latency is computed for each interval,
    /// and the maximum latency is the largest of these means.
    pub latency_max_of_ns: u64,
    /// Maximum mean number of page-fault stalls per second (mail store).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_fault_stalls_max_per_s: Option<f64>,
    /// Set of default limits. Limits that the plan states override the default limits.
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
    /// Returns true if all limits in the requirement are limits of windows.
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
