//! The requested workload, as the result states it.

use serde::Serialize;

use super::Figure;

/// Requested workload of a part. A field is `None` if the result does not state it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Setting {
    /// Operations in flight.
    pub outstanding: Option<Outstanding>,
    /// Operations in flight per issuer, if the number of issuers is unknown.
    pub outstanding_of_each: Option<Figure>,
    /// Number of issuing threads or processes.
    pub threads: Option<Figure>,
    /// Percentage of reads.
    pub read_percent: Option<Figure>,
    /// Access pattern.
    pub pattern: Option<Pattern>,
    /// Working set of all parts of this kind together, in bytes.
    pub working_set_bytes: Option<Figure>,
    /// True if direct I/O was requested.
    pub direct: Option<bool>,
    /// Durability of writes.
    pub durability: Option<Durability>,
    /// Rate limit, in operations per second.
    pub rate_limit_per_s: Option<Figure>,
    /// Bandwidth limit, in bytes per second.
    pub bandwidth_limit_per_s: Option<Figure>,
    /// Requested run time, in ns.
    pub duration_ns: Option<Figure>,
    /// Duration of the warm-up before the measurement, in ns.
    pub warm_up_ns: Option<Figure>,
    /// Reset of the tool's counters while operations were in flight.
    pub counter_reset: CounterReset,
    /// Target: a path, a device or a bucket.
    pub target: Option<String>,
    /// Media class of the target, as stated in the result or derived from it.
    pub media: Option<MediaClass>,
    /// Number of drives in the target.
    pub drives: Option<Figure>,
    /// Total memory of all hosts, in bytes.
    pub memory_bytes: Option<Figure>,
    /// True if the tool wrote the same block of data repeatedly.
    pub data_repeats: Option<bool>,
    /// True if the data consisted only of zeroes.
    pub data_zero: Option<bool>,
    /// Reason why no storage was used, in words: an engine that performs no I/O (fio's `null`), or a
    /// target such as `/dev/zero` or memory.
    pub no_storage: Option<String>,
}

/// Reset of a tool's counters during the run. Operations in flight at that moment are included in
/// some figures and missing in other figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterReset {
    /// No reset: the counters include all operations, from the first to the last.
    #[default]
    Never,
    /// The options imply a reset, for example a warm-up.
    Stated,
    /// It is unknown: the format does not show the option that would reset the counters.
    Unknown,
}

/// Operations in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// Maximum.
    pub most: Figure,
    /// True if the tool always has the maximum number of operations in flight: a closed loop that
    /// replaces each operation when it completes, without pauses, limits or batches.
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

/// Durability of writes, derived from the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Each write is on stable storage when it completes (`O_SYNC`, `O_DSYNC`, FUA).
    EachWrite,
    /// A flush follows each write, or a fixed number of writes.
    Flushed,
    /// The tool flushes once, at the end.
    AtEnd,
    /// Durability was not requested.
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
