//! Limits and priorities of the load generator's process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Limits and priorities of the load generator's process. A limit of control groups is the lowest
/// limit among the process's control group and all ancestors of the group. This holds for cgroup
/// versions 1 and 2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// True if the control groups could be read. If false, the limits of the control groups are
    /// unknown.
    pub groups_read: bool,
    /// Limit on memory, including the page cache; `None` if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPU quota as a number of CPUs, such as 1.5; `None` if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// I/O limits, sorted by device number. An example is `8:0 read-bytes-per-s 1048576`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<String>,
    /// Weights that are set for the control group, by name (`cpu`, `io`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
    /// I/O priority, such as `best-effort 4`. If it is `none`, the kernel derives the priority from
    /// the nice value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<String>,
    /// Nice value, from -20 to 19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i64>,
    /// Soft and hard limits of the process (`RLIMIT_*`). The keys are the kernel's names of the
    /// limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub process: BTreeMap<String, String>,
}
