//! Figures of one kind of operation.

use serde::Serialize;

use super::{Figure, Latency};

/// Kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Reads of data.
    Read,
    /// Writes of data.
    Write,
    /// Discards.
    Trim,
    /// Flushes.
    Sync,
    /// All kinds of operations together. This kind is used for figures that do not state the kind
    /// of operation.
    #[default]
    All,
    /// Metadata operations: `create`, `stat`, `delete`.
    Name(String),
    /// Other operations. The text is the tool's word for the operations, such as transactions,
    /// samples or requests.
    Other(String),
}

impl Kind {
    /// Returns the name of the kind in lower case.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::All => "all",
            Self::Name(word) | Self::Other(word) => word,
        }
    }

    /// Returns true if each operation transfers data.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Figures of one kind of operation. If the result contains a quantity several times, perhaps in
/// different units, all values of the quantity are listed. These values must be equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Operation {
    /// Kind of operation.
    pub kind: Kind,
    /// Number of operations that completed.
    pub count: Vec<Figure>,
    /// Transferred bytes.
    pub bytes: Vec<Figure>,
    /// Number of bytes that each operation transfers, if this size is constant.
    pub size_bytes: Option<Figure>,
    /// Rate of the operations, in operations per second.
    pub rate_per_s: Vec<Figure>,
    /// Bandwidth of the operations, in bytes per second.
    pub bandwidth_per_s: Vec<Figure>,
    /// Length of the time for which the tool computed the rate and the bandwidth, in ns; `None` if
    /// this time is the run time of the part.
    pub window_ns: Option<Figure>,
    /// Latencies, with one element for each stage.
    pub latencies: Vec<Latency>,
    /// Failed operations.
    pub errors: Option<Figure>,
    /// Short transfers.
    pub short: Option<Figure>,
    /// Statistics of the tool's bandwidth samples, in bytes per second.
    pub bandwidth_sampled: Option<SampleStatistics>,
    /// Statistics of the tool's rate samples, in operations per second.
    pub rate_sampled: Option<SampleStatistics>,
}

impl Operation {
    /// Creates an operation without figures.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Returns true if the result states that no operations of this kind were done.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let nothing = |figures: &[Figure]| figures.iter().all(|figure| figure.value <= 0.0);
        let stated =
            !(self.count.is_empty() && self.bytes.is_empty() && self.rate_per_s.is_empty());
        stated && nothing(&self.count) && nothing(&self.bytes) && nothing(&self.rate_per_s)
    }
}

/// Statistics of samples that the tool took during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampleStatistics {
    /// Smallest sample.
    pub min: Option<Figure>,
    /// Mean value of the samples.
    pub mean: Option<Figure>,
    /// Largest sample.
    pub max: Option<Figure>,
    /// Standard deviation of the samples.
    pub stddev: Option<Figure>,
    /// Number of samples.
    pub samples: Option<Figure>,
}
