//! A result that another tool reported. The types are the same for all tools.
//!
//! `plimsoll-import` fills a [`ToolResult`] from a file; `plimsoll-judge` checks whether all
//! figures can be true at the same time. Neither of the two invents values: a value that a file
//! does not state is `None` or empty, never zero. Every [`Figure`] contains its location in the
//! file, and the range of values that the tool would print in the same way. Rules therefore need no
//! additional tolerances, and a finding can name the field in the file.
//!
//! | type | content |
//! |---|---|
//! | [`ToolResult`] | source, [`Part`]s, figures that aggregate others ([`Aggregate`]), passes over the same data ([`Pass`]) |
//! | [`Part`] | one job, host, rank or phase: its [`Setting`], its [`Operation`]s, its [`Series`] |
//! | [`Operation`] | figures of one kind of operation: count, bytes, rates, [`Latency`] |

mod aggregate;
mod figure;
mod latency;
mod operation;
mod population;
mod series;
mod setting;

use std::collections::BTreeMap;

use serde::Serialize;

pub use aggregate::{Aggregate, Formula, Membership, Pass};
pub use figure::Figure;
pub use latency::{Bin, Latency, Percentile, Stage};
pub use operation::{Kind, Operation, SampleStatistics};
pub use population::{Claim, Population, Unit};
pub use series::{Point, Quantity, Series};
pub use setting::{CounterReset, Durability, MediaClass, Outstanding, Pattern, Setting};

/// Result of one run of a tool, or one row of a published table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolResult {
    /// Origin of the result.
    pub source: Source,
    /// Parts of the result: jobs, hosts, ranks or phases. A result that is not divided contains one
    /// part.
    pub parts: Vec<Part>,
    /// Figures that are aggregates of other figures.
    pub combined: Vec<Aggregate>,
    /// Numbers of parts that the result states. They are compared with the parts that the result
    /// contains.
    pub memberships: Vec<Membership>,
    /// Large sets of values. A set contains too many values to create a part for each of them.
    pub populations: Vec<Population>,
    /// Repeated passes over the same data, in order. The epochs of a training are such passes.
    pub passes: Vec<Pass>,
    /// Warnings and errors that the tool reported about its own result, in the tool's words.
    pub complaints: Vec<Complaint>,
    /// Sentences about content that was skipped or could not be read.
    pub remarks: Vec<String>,
    /// Options that the result states. The keys are the tool's names for the options.
    pub options: BTreeMap<String, String>,
}

impl ToolResult {
    /// Creates an empty result with this source.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self { source, ..Self::default() }
    }

    /// Returns a short name for tables. It consists of the name of the file and, if the file
    /// contains several results, of the location in the file.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.source.place {
            Some(place) => format!("{}:{place}", self.source.file),
            None => self.source.file.clone(),
        }
    }

    /// Returns all operations, each with the part to which it belongs.
    pub fn operations(&self) -> impl Iterator<Item = (&Part, &Operation)> {
        self.parts.iter().flat_map(|part| part.operations.iter().map(move |op| (part, op)))
    }
}

/// Origin of a result: the tool, and the file that contains the result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Source {
    /// Common name of the tool (`fio`); empty for a table that does not state the tool.
    pub tool: String,
    /// Version of the tool, as the result states it.
    pub version: Option<String>,
    /// Format of the file, such as `fio JSON`.
    pub format: String,
    /// Path of the file, relative to the imported path.
    pub file: String,
    /// Location of the result, if the file contains several results. It is a line, a phase or the
    /// name of a test.
    pub place: Option<String>,
    /// Time when the run started or ended, in seconds since 1970.
    pub taken_unix_s: Option<f64>,
}

/// A part of a result. The part has its own figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// Name of the part in the result; empty if the result is not divided.
    pub name: String,
    /// Host that ran the part.
    pub host: Option<String>,
    /// Number of the rank, job or client that ran the part.
    pub rank: Option<String>,
    /// Name of the group of parts that ran at the same time. The tool assigns the name; `None` if
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Requested workload.
    pub setting: Setting,
    /// Run time of the part, in ns.
    pub window_ns: Option<Figure>,
    /// Start time of the part, in seconds since 1970.
    pub start_unix_s: Option<f64>,
    /// Figures for each kind of operation.
    pub operations: Vec<Operation>,
    /// Share of the data operations whose completion latency is in a range, for each range. The
    /// shares of all ranges add up to 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_shares: Vec<Bin>,
    /// Figures of the result that are series over time.
    pub series: Vec<Series>,
    /// Number of errors.
    pub errors: Option<Figure>,
    /// CPU time of a generator thread, as a share of one CPU (0 to 1).
    pub generator_cpu_share: Option<Figure>,
    /// Counters of devices, as the tool reports them.
    pub devices: Vec<DeviceCounts>,
    /// True if this part is a total of other parts. Such a part must not be added to the other
    /// parts.
    pub is_total: bool,
}

/// Increase of a device's counters during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceCounts {
    /// Name of the device.
    pub name: String,
    /// Reads completed.
    pub reads: Option<Figure>,
    /// Writes completed.
    pub writes: Option<Figure>,
    /// Number of reads that the kernel merged into other reads.
    pub read_merges: Option<Figure>,
    /// Number of writes that the kernel merged into other writes.
    pub write_merges: Option<Figure>,
    /// Bytes read.
    pub read_bytes: Option<Figure>,
    /// Bytes written.
    pub written_bytes: Option<Figure>,
    /// Share of time in which the device was busy (0 to 1).
    pub busy_share: Option<Figure>,
}

/// A warning or an error that a tool reports about its own result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Complaint {
    /// Severity.
    pub weight: Weight,
    /// Text of the message.
    pub says: String,
    /// Location of the message in the result.
    pub field: String,
}

/// Severity of a warning or error that a tool reports about its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The tool states that the result is invalid, or the tool exited with an error.
    Invalid,
    /// The tool prints a warning.
    Warning,
}
