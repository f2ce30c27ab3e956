//! A result as the tool that made it reports it, in words that belong to no tool.
//!
//! `plimsoll-import` fills a [`Reported`] from a file; `plimsoll-judge` asks whether its figures can all
//! be true at once. Neither adds anything: what a file does not say stays `None` or an empty list, and
//! an unknown is never zero. Every [`Figure`] carries the span of values that would have been printed
//! as it is, and the place where it stands, so that a rule needs no tolerance of its own and a finding
//! can name the field.
//!
//! | a result | holds |
//! |---|---|
//! | [`Reported`] | where it is from, its [`Part`]s, what claims to be made of what ([`Combined`]), passes over the same data ([`Pass`]) |
//! | [`Part`] | one job, host, rank or phase: its [`Setting`], its [`Operation`]s, its [`Series`] |
//! | [`Operation`] | what is said of one kind of operation: count, bytes, rates, [`Latency`] |

mod combined;
mod figure;
mod latency;
mod operation;
mod population;
mod series;
mod setting;

use std::collections::BTreeMap;

use serde::Serialize;

pub use combined::{Combined, How, Membership, Pass};
pub use figure::Figure;
pub use latency::{Bin, Latency, Percentile, Stage};
pub use operation::{Kind, Operation, Sampled};
pub use population::{Claim, Population, Unit};
pub use series::{Point, Quantity, Series};
pub use setting::{CounterReset, Durability, MediaClass, Outstanding, Pattern, Setting};

/// One result: what one run of a tool reports, or one row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reported {
    /// Where it is from.
    pub source: Source,
    /// Jobs, hosts, ranks, phases. A result that is not divided has one.
    pub parts: Vec<Part>,
    /// Which figures claim to be made of which others.
    pub combined: Vec<Combined>,
    /// How many parts there should be, where the result says so.
    pub memberships: Vec<Membership>,
    /// Values that are too many for a part each.
    pub populations: Vec<Population>,
    /// Repeated passes over the same data, in order (epochs of a training).
    pub passes: Vec<Pass>,
    /// What the tool itself says against its result, in its own words.
    pub complaints: Vec<Complaint>,
    /// What was left aside or could not be read, one sentence each.
    pub remarks: Vec<String>,
    /// Options as stated, by their names in the tool.
    pub options: BTreeMap<String, String>,
}

impl Reported {
    /// An empty result of that source.
    #[must_use]
    pub fn of(source: Source) -> Self {
        Self { source, ..Self::default() }
    }

    /// Short name for tables: the file, and the place in it where it holds several results.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.source.place {
            Some(place) => format!("{}:{place}", self.source.file),
            None => self.source.file.clone(),
        }
    }

    /// All operations of all parts, each with its part.
    pub fn operations(&self) -> impl Iterator<Item = (&Part, &Operation)> {
        self.parts.iter().flat_map(|part| part.operations.iter().map(move |op| (part, op)))
    }
}

/// Where a result is from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Source {
    /// The tool, as people call it (`fio`); empty for a table that names none.
    pub tool: String,
    /// Its version, as it states it.
    pub version: Option<String>,
    /// The form it was read as, such as `fio JSON`.
    pub format: String,
    /// The file, relative to what was named.
    pub file: String,
    /// The place in the file where that holds several results: a line, a phase, a test's name.
    pub place: Option<String>,
    /// When the run began or ended, seconds since 1970.
    pub taken_unix_s: Option<f64>,
}

/// A part of a result whose figures belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// As the result names it; empty where it is not divided.
    pub name: String,
    /// The host that it ran on.
    pub host: Option<String>,
    /// Rank, job number or client.
    pub rank: Option<String>,
    /// What was asked of the storage.
    pub setting: Setting,
    /// How long it ran, ns.
    pub window_ns: Option<Figure>,
    /// When it began, seconds since 1970.
    pub start_unix_s: Option<f64>,
    /// What was done.
    pub operations: Vec<Operation>,
    /// How it went over time.
    pub series: Vec<Series>,
    /// Errors that the part counts.
    pub errors: Option<Figure>,
    /// Share of one CPU that a generator's thread used, 0 to 1.
    pub generator_cpu_share: Option<Figure>,
    /// Devices as the tool saw them.
    pub devices: Vec<DeviceCounts>,
    /// True for a total of other parts, which is not one more of them.
    pub is_total: bool,
}

/// What a device's counters said over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceCounts {
    /// Name of the device.
    pub name: String,
    /// Reads completed.
    pub reads: Option<Figure>,
    /// Writes completed.
    pub writes: Option<Figure>,
    /// Reads that the kernel merged into others.
    pub read_merges: Option<Figure>,
    /// Writes that the kernel merged into others.
    pub write_merges: Option<Figure>,
    /// Bytes read.
    pub read_bytes: Option<Figure>,
    /// Bytes written.
    pub written_bytes: Option<Figure>,
    /// Share of the time in which the device had something to do, 0 to 1.
    pub busy_share: Option<Figure>,
}

/// What a tool says against its own result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Complaint {
    /// How much it weighs.
    pub weight: Weight,
    /// Its words.
    pub says: String,
    /// Where they stand.
    pub field: String,
}

/// How much a tool's own complaint weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The tool calls the result invalid, or it ended with an error.
    Invalid,
    /// The tool warns.
    Warning,
}
