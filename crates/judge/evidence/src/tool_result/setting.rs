//! Requested workload, as stated in the result.

use serde::Serialize;

use super::Figure;

/// Requested workload of a part. All fields are optional: a field that the result does not state is
/// `None`.
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
    /// Working set in bytes, of all parts of this kind together.
    pub working_set_bytes: Option<Figure>,
    /// True if direct I/O was requested.
    pub direct: Option<bool>,
    /// Durability of writes.
    pub durability: Option<Durability>,
    /// Rate limit, operations per second.
    pub rate_limit_per_s: Option<Figure>,
    /// Bandwidth limit, bytes per second.
    pub bandwidth_limit_per_s: Option<Figure>,
    /// Requested run time, ns.
    pub duration_ns: Option<Figure>,
    /// Warm-up before the measurement, ns.
    pub warm_up_ns: Option<Figure>,
    /// Counter reset while operations were in flight.
    pub counter_reset: CounterReset,
    /// Target: a path, a device or a bucket.
    pub target: Option<String>,
    /// Media class of the target, as stated in the result or derived from it.
    pub media: Option<MediaClass>,
    /// Number of drives in the target.
    pub drives: Option<Figure>,
    /// Total memory of all hosts, bytes.
    pub memory_bytes: Option<Figure>,
    /// True if the tool wrote the same block of data repeatedly.
    pub data_repeats: Option<bool>,
    /// True if the data was all zero.
    pub data_zero: Option<bool>,
    /// True if the engine completes operations without performing them (fio's `null`).
    pub performs_nothing: bool,
}

/// Reset of a tool's counters during the run. Operations in flight at that moment are counted in
/// some figures and missing in others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterReset {
    /// No reset: the counters include all operations, from the first to the last.
    #[default]
    Never,
    /// The options imply a reset, for example a warm-up.
    Stated,
    /// The format does not show the option that would reset them.
    Unknown,
}

/// Operations in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// Maximum.
    pub most: Figure,
    /// True if the tool always has the maximum in flight: a closed loop that replaces each
    /// operation on completion, without pauses, limits or batches.
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

/// Durability of writes, from the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Each write is on stable storage before it completes (`O_SYNC`, `O_DSYNC`, FUA).
    EachWrite,
    /// A flush follows each write or every few writes.
    Flushed,
    /// The tool flushes once, at the end.
    AtEnd,
    /// No durability was requested.
    Nothing,
}

/// Media class, for physical limits.
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
