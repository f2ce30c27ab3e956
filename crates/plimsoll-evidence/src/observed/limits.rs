//! Limits and priorities that the process of the load ran under.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Limits and priorities of the process of the load. Those of control groups are the tightest of the
/// process's group and its ancestors, of versions 1 and 2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Whether the control groups could be read. If not, no limit of theirs is known.
    pub groups_read: bool,
    /// Memory, page cache included; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPUs by quota, such as 1.5; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// I/O limits by device number, such as `8:0 read-bytes-per-s 1048576`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<String>,
    /// Weights of control groups by name (`cpu`, `io`), where they are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
    /// I/O priority, such as `best-effort 4`; `none` follows the nice value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<String>,
    /// Nice value, from -20 to 19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i64>,
    /// Limits of the process (`RLIMIT_*`) by the kernel's names, soft and hard.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub process: BTreeMap<String, String>,
}
