//! The resolved plan: every default filled in, plain integers with the unit in the name.
//!
//! This is what engine, model, judge and report work from, and what the bundle keeps as
//! `resolved.toml` with its SHA-256. Written once, it must stay readable for ever: fields that are
//! added later carry a serde default that means what older versions did, none is renamed, and
//! [`RESOLVED_VERSION`] goes up when an older reader would misunderstand the form.

mod fleet;
mod limits;
mod mailbox;
mod matrix;
mod matrix_points;
mod phases;
mod requirement;
mod space;
mod surroundings;
mod target;
mod text;
mod trace;
mod words;

use serde::{Deserialize, Serialize};

pub use fleet::{HostChange, Placement};
pub use limits::{LatencyClass, LatencyLimit, LatencyStatistic, LimitOrigin, LimitSet};
pub use mailbox::{
    CACHE_BYTES_PER_THREAD, Mailbox, Maintenance, OperationMix, default_cache_bytes,
    least_cache_bytes,
};
pub use matrix::{
    Arrival, Content, FileSet, Imported, Matrix, MatrixAxes, MetadataMix, Pattern, SizeShare,
    Stream, SyncPolicy,
};
pub use matrix_points::MatrixPoint;
pub use phases::{Phases, Repeat};
pub use requirement::Requirement;
pub use space::DirectoryNeed;
pub use surroundings::{EngineChoice, EvidenceNeeds, MetricsEndpoint, Observe};
pub use target::{Target, TargetKind};
pub use text::ResolvedError;
pub use trace::{TraceMap, TraceSource};
pub use words::{
    CacheState, Carries, Claim, Condition, DirectIo, Durability, IoChoice, Layout, Media, Pace,
    SyncKind,
};

/// Version of the resolved form that this build writes.
pub const RESOLVED_VERSION: u32 = 1;

/// A plan with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// Version of this form; see [`RESOLVED_VERSION`].
    pub resolved_version: u32,
    /// Name of the plan.
    pub name: String,
    /// What it is for, in a sentence or two; may be empty.
    pub description: String,
    /// Who answers for the plan; plans that name nobody are written as they always were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// True for a short run that shows the tool and can't show the storage.
    pub demonstration: bool,
    /// Name of the practice that the settings follow, such as `best practice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub practice: Option<String>,
    /// What the figures are said to show.
    pub claims: Vec<Claim>,
    /// True where the plan states no claim and no requirement, so that the claims are those that its
    /// operations suggest: what then can't be shown is said, and doesn't leave the run undecided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims_assumed: bool,
    /// What a comparison asks about; plans that name nothing are written as they always were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compare_factors: Vec<String>,
    /// What the application needs. Without it there is no PASS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirement: Option<Requirement>,
    /// The systems under test: one, or several named ones in a comparison.
    pub targets: Vec<Target>,
    /// The source of operations.
    pub workload: Workload,
    /// Phases and their lengths.
    pub phases: Phases,
    /// How much must be measured, and how finely.
    pub evidence: EvidenceNeeds,
    /// What is known or watched of the system beneath.
    pub observe: Observe,
    /// How often.
    pub repeat: Repeat,
    /// How I/O is issued.
    pub engine: EngineChoice,
    /// Which agents of a fleet carry it; `None`: whoever runs it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Placement>,
}

/// The source of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The mail store.
    Mailbox(Mailbox),
    /// Streams of reads, writes and metadata operations (also those of an imported fio job).
    Matrix(Matrix),
}

impl Workload {
    /// `mailbox`, `matrix`, `fio` for an imported job, `trace` for one that is replayed.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mailbox(_) => "mailbox",
            Self::Matrix(m) if m.imported.is_some() => "fio",
            Self::Matrix(_) if self.trace().is_some() => "trace",
            Self::Matrix(_) => "matrix",
        }
    }

    /// The mail store, if that is the workload.
    #[must_use]
    pub fn mailbox(&self) -> Option<&Mailbox> {
        match self {
            Self::Mailbox(m) => Some(m),
            Self::Matrix(_) => None,
        }
    }

    /// The trace that is replayed, if one is.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceSource> {
        self.matrix()?.streams.iter().find_map(|stream| stream.trace.as_ref())
    }

    /// The matrix, if that is the workload.
    #[must_use]
    pub fn matrix(&self) -> Option<&Matrix> {
        match self {
            Self::Matrix(m) => Some(m),
            Self::Mailbox(_) => None,
        }
    }
}

impl ResolvedPlan {
    /// The plan for one of its targets, as a comparison runs it. `None` if there is no such target.
    #[must_use]
    pub fn for_target(&self, index: usize) -> Option<Self> {
        let target = self.targets.get(index)?.clone();
        Some(Self { targets: vec![target], ..self.clone() })
    }
}
