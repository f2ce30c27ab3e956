//! What a result says of one kind of operation.

use serde::Serialize;

use super::{Figure, Latency};

/// A kind of operation.
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
    /// Everything that the part did, together; the default for a figure that is not divided.
    #[default]
    All,
    /// Operations on names: `create`, `stat`, `delete`.
    Name(String),
    /// Anything else, by the tool's word: transactions, samples, requests.
    Other(String),
}

impl Kind {
    /// In lower case, as shown.
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

    /// True where each operation moves data.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// What is said of one kind of operation. A quantity that the result prints more than once, in the same
/// unit or another, is listed as often: all of them have to agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Operation {
    /// Which kind.
    pub kind: Kind,
    /// Operations that were completed.
    pub count: Vec<Figure>,
    /// Bytes that they moved.
    pub bytes: Vec<Figure>,
    /// Size of each, bytes, where all have the same.
    pub size_bytes: Option<Figure>,
    /// Operations per second.
    pub rate_per_s: Vec<Figure>,
    /// Bytes per second.
    pub bandwidth_per_s: Vec<Figure>,
    /// The time by which rate and bandwidth were made, ns; else that of the part.
    pub window_ns: Option<Figure>,
    /// Latencies, by stage.
    pub latencies: Vec<Latency>,
    /// Operations that failed.
    pub errors: Option<Figure>,
    /// Operations that moved less than they should.
    pub short: Option<Figure>,
    /// What the tool made of its own samples of the bandwidth, bytes per second.
    pub bandwidth_sampled: Option<Sampled>,
    /// What the tool made of its own samples of the rate, operations per second.
    pub rate_sampled: Option<Sampled>,
}

impl Operation {
    /// Nothing but the kind.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// True where the result says of it that it was never done.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let nothing = |figures: &[Figure]| figures.iter().all(|figure| figure.value <= 0.0);
        let stated =
            !(self.count.is_empty() && self.bytes.is_empty() && self.rate_per_s.is_empty());
        stated && nothing(&self.count) && nothing(&self.bytes) && nothing(&self.rate_per_s)
    }
}

/// Figures that a tool made of samples taken during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampled {
    /// Least sample.
    pub min: Option<Figure>,
    /// Mean of the samples.
    pub mean: Option<Figure>,
    /// Greatest sample.
    pub max: Option<Figure>,
    /// Standard deviation of the samples.
    pub stddev: Option<Figure>,
    /// How many.
    pub samples: Option<Figure>,
}
