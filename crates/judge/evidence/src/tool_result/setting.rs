//! The workload that the user requested, according to the result.

use serde::Serialize;

use super::Figure;

/// Workload that the user requested for a part. A field is `None` if the result does not state its
/// value.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Setting {
    /// Number of operations in flight.
    pub outstanding: Option<Outstanding>,
    /// Number of operations that each thread or process has in flight, if the number of threads or
    /// processes is unknown.
    pub outstanding_of_each: Option<Figure>,
    /// Number of threads or processes that issue operations.
    pub threads: Option<Figure>,
    /// Percentage of reads among the requested operations.
    pub read_percent: Option<Figure>,
    /// Access pattern.
    pub pattern: Option<Pattern>,
    /// Size of the working set in bytes, summed over all parts of this kind.
    pub working_set_bytes: Option<Figure>,
    /// True if direct I/O was requested.
    pub direct: Option<bool>,
    /// How writes are made durable.
    pub durability: Option<Durability>,
    /// Rate limit, in operations per second.
    pub rate_limit_per_s: Option<Figure>,
    /// Bandwidth limit, in bytes per second.
    pub bandwidth_limit_per_s: Option<Figure>,
    /// Requested run time, in ns.
    pub duration_ns: Option<Figure>,
    /// Duration of the warm-up before the measurement, in ns.
    pub warm_up_ns: Option<Figure>,
    /// States whether the tool reset its counters while operations were in flight.
    pub counter_reset: CounterReset,
    /// Target of the part: a path, a device or a bucket.
    pub target: Option<String>,
    /// Media class of the target. The result states it, or it is derived from the result.
    pub media: Option<MediaClass>,
    /// Number of drives in the target.
    pub drives: Option<Figure>,
    /// Total memory of all hosts, in bytes.
    pub memory_bytes: Option<Figure>,
    /// True if the tool wrote the same block of data repeatedly.
    pub data_repeats: Option<bool>,
    /// True if the data consisted only of zeroes.
    pub data_zero: Option<bool>,
    /// Reason why the tool used no storage, if it used none. Examples are an engine that performs
    /// no I/O (fio's `null`), and a target such as `/dev/zero` or memory.
    pub no_storage: Option<String>,
}

/// States whether a tool reset its counters during the run. After a reset, some figures include the
/// operations that were in flight at that moment, and other figures do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterReset {
    /// The tool did not reset its counters. They include all operations, from the first to the
    /// last.
    #[default]
    Never,
    /// The options imply that the tool reset its counters. An example is an option for a warm-up.
    Stated,
    /// It is unknown whether the tool reset its counters. The format does not show the option that
    /// would reset them.
    Unknown,
}

/// Number of operations in flight. Also states whether this number is constant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// Maximum.
    pub most: Figure,
    /// True if the maximum number of operations is always in flight. This is the case in a closed
    /// loop without pauses, limits or batches, in which a new operation starts as soon as another
    /// operation completes.
    pub kept: bool,
}

/// Access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Random addresses.
    Random,
    /// Ascending addresses.
    Sequential,
}

/// How writes are made durable, according to the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Each write is on stable storage when it completes (`O_SYNC`, `O_DSYNC`, FUA).
    EachWrite,
    /// A flush follows each write, or a fixed number of writes.
    Flushed,
    /// The tool flushes once, at the end.
    AtEnd,
    /// The options do not request durability.
    Nothing,
}

/// Media class, to which physical limits apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaClass {
    /// Rotating disks.
    Hdd,
    /// Flash with a SATA or SAS interface.
    Ssd,
    /// Flash on PCIe.
    Nvme,
}
