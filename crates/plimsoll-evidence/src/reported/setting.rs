//! What was asked of the storage, as far as the result says so.

use serde::Serialize;

use super::Figure;

/// What a part was told to do. Every field is optional: a result that does not state one says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Setting {
    /// Operations in flight.
    pub outstanding: Option<Outstanding>,
    /// Operations in flight of each issuer, where their number is not stated.
    pub outstanding_of_each: Option<Figure>,
    /// Issuing threads or processes.
    pub threads: Option<Figure>,
    /// Share of the operations that read, percent.
    pub read_percent: Option<Figure>,
    /// Order of the addresses.
    pub pattern: Option<Pattern>,
    /// Size of the data that was worked on, bytes, all parts of this kind together.
    pub working_set_bytes: Option<Figure>,
    /// True where the page cache was to be passed by.
    pub direct: Option<bool>,
    /// What makes writes last.
    pub durability: Option<Durability>,
    /// A limit on the rate, operations per second.
    pub rate_limit_per_s: Option<Figure>,
    /// A limit on the bandwidth, bytes per second.
    pub bandwidth_limit_per_s: Option<Figure>,
    /// How long it was to run, ns.
    pub duration_ns: Option<Figure>,
    /// How long it ran before anything was counted, ns.
    pub warm_up_ns: Option<Figure>,
    /// Whether the tool reset its counters while operations were in flight.
    pub counter_reset: CounterReset,
    /// What it worked on: a path, a device, a bucket.
    pub target: Option<String>,
    /// What the target is said or seen to be.
    pub media: Option<MediaClass>,
    /// How many drives the target has.
    pub drives: Option<Figure>,
    /// Memory of all hosts, bytes.
    pub memory_bytes: Option<Figure>,
    /// True where one block of data was written over and over.
    pub data_repeats: Option<bool>,
    /// True where the data was zeroes.
    pub data_zero: Option<bool>,
}

/// Whether a tool reset its counters during the run, so that operations in flight at that moment are counted
/// in one figure and missing in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterReset {
    /// The counters ran from the first operation to the last.
    #[default]
    Never,
    /// The options say so, for example a warm-up.
    Stated,
    /// The form does not print the option that would reset them.
    Unknown,
}

/// Operations in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// At most so many at once.
    pub most: Figure,
    /// True where the tool replaces each operation at once when it is done: a closed loop without
    /// pauses, limits or batches, so that it is also about how many there were.
    pub kept: bool,
}

/// Order of the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Anywhere.
    Random,
    /// One after the other.
    Sequential,
}

/// What makes writes last, as the options say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Each write is on stable storage before it is done (`O_SYNC`, `O_DSYNC`, FUA).
    EachWrite,
    /// A flush after each write or each few of them.
    Flushed,
    /// One flush at the end.
    AtEnd,
    /// Nothing was asked for.
    Nothing,
}

/// A class of media, for its physical limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaClass {
    /// Rotating disks.
    Hdd,
    /// Flash behind SATA or SAS.
    Ssd,
    /// Flash on PCIe.
    Nvme,
}
