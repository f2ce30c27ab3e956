//! The resolved plan. It contains all defaults. All quantities are plain integers, and the field
//! names contain their units.
//!
//! The engine, the model, the judge and the report use the resolved plan. The bundle contains it as
//! `resolved.toml` with its SHA-256. All later versions of Plimsoll must be able to read this file.
//! Therefore fields are never renamed, and a new field has a serde default that preserves the
//! meaning of older files. [`RESOLVED_VERSION`] increases if an older version of Plimsoll would
//! misread a new file.

mod durability;
mod event;
mod fleet;
mod limits;
mod mailbox;
mod matrix;
mod matrix_points;
mod phases;
mod requirement;
mod run_settings;
mod space;
mod target;
mod text;
mod trace;
mod words;

use serde::{Deserialize, Serialize};

pub use durability::DurabilityPhase;
pub use event::{
    Bound, Event, Limits, RelativeLimit, StreamLimits, Throttle, Window, WindowLimits,
};
pub use fleet::{HostChange, Placement};
pub use limits::{LatencyClass, LatencyLimit, LatencyStatistic, LimitOrigin, LimitSet};
pub use mailbox::{
    CACHE_BYTES_PER_THREAD, Mailbox, Maintenance, OperationMix, default_cache_bytes,
    least_cache_bytes,
};
pub use matrix::{
    Arrival, Content, FileSet, ImportedJob, Matrix, MatrixAxes, MetadataMix, Pattern, SizeShare,
    Stream, SyncPolicy,
};
pub use matrix_points::MatrixPoint;
pub use phases::{Phases, Repeat};
pub use requirement::Requirement;
pub use run_settings::{EngineChoice, EvidenceNeeds, MetricsEndpoint, Observe};
pub use space::DirectoryNeed;
pub use target::{Target, TargetKind};
pub use text::ResolvedError;
pub use trace::{TraceMap, TraceSource};
pub use words::{
    CacheState, Carries, Claim, Condition, CutKind, DirectIo, Durability, IoChoice, Layout, Media,
    OnLostHost, Pace, SyncKind, SyncMethod,
};

/// Format version of the resolved plan that this build writes.
pub const RESOLVED_VERSION: u32 = 1;

/// A plan with every default filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// Version of the format ([`RESOLVED_VERSION`]).
    pub resolved_version: u32,
    /// Name of the plan.
    pub name: String,
    /// Purpose of the plan, in one or two sentences. It may be empty.
    pub description: String,
    /// Owner of the plan. The field is omitted if it is not set, so that the hashes of older plans
    /// stay valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seed for all random choices of a run.
    pub seed: u64,
    /// True for a short run that demonstrates the tool. Such a run cannot characterise the storage.
    pub demonstration: bool,
    /// States how the settings of the system were chosen, such as `best practice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub practice: Option<String>,
    /// List of the claims that the results should support.
    pub claims: Vec<Claim>,
    /// True if the plan states neither a claim nor a requirement. The claims are then derived from
    /// the plan's operations. If the evidence does not support such a claim, the report states
    /// this, but the verdict does not become INCONCLUSIVE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims_assumed: bool,
    /// Conditions that differ intentionally between the sides of a comparison. The field is omitted
    /// if it is empty, so that the hashes of older plans stay valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compare_factors: Vec<String>,
    /// Requirement of the application. If a plan has no requirement, the verdict is never PASS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirement: Option<Requirement>,
    /// Systems under test. There is one system, or there are several systems with names in a
    /// comparison.
    pub targets: Vec<Target>,
    /// Operations that the run issues.
    pub workload: Workload,
    /// Events in the measured phase. The field is omitted if it is empty, so that the hashes of
    /// older plans stay valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Durability test after the load. The field is omitted if the plan has no durability test, so
    /// that the hashes of older plans stay valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityPhase>,
    /// Phases and their lengths.
    pub phases: Phases,
    /// Minimum length of the measurement, and its time resolution.
    pub evidence: EvidenceNeeds,
    /// Properties of the storage system that the plan states, and the metrics endpoints of the
    /// system.
    pub observe: Observe,
    /// Number of runs, and whether they reuse data.
    pub repeat: Repeat,
    /// I/O engine.
    pub engine: EngineChoice,
    /// Selects the agents of a fleet that run the plan; `None` if the command line selects the
    /// agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Placement>,
}

/// Operations that a run issues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Mail store.
    Mailbox(Mailbox),
    /// Streams of reads, writes and metadata operations. Streams of an imported fio job are
    /// included.
    Matrix(Matrix),
}

impl Workload {
    /// Returns the word for the workload: `mailbox` for a mail store, `matrix` for streams, `fio`
    /// for an imported job, or `trace` for a replay.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mailbox(_) => "mailbox",
            Self::Matrix(m) if m.imported.is_some() => "fio",
            Self::Matrix(_) if self.trace().is_some() => "trace",
            Self::Matrix(_) => "matrix",
        }
    }

    /// Returns the mail store, if it is the workload.
    #[must_use]
    pub fn mailbox(&self) -> Option<&Mailbox> {
        match self {
            Self::Mailbox(m) => Some(m),
            Self::Matrix(_) => None,
        }
    }

    /// Returns the replayed trace if the workload is a replay.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceSource> {
        self.matrix()?.streams.iter().find_map(|stream| stream.trace.as_ref())
    }

    /// Returns the matrix, if it is the workload.
    #[must_use]
    pub fn matrix(&self) -> Option<&Matrix> {
        match self {
            Self::Matrix(m) => Some(m),
            Self::Mailbox(_) => None,
        }
    }
}

impl ResolvedPlan {
    /// Returns true if the run continues after a failed I/O because a window allows failed I/Os.
    #[must_use]
    pub fn allows_errors(&self) -> bool {
        let windows = self.requirement.iter().flat_map(|requirement| &requirement.windows);
        windows.filter_map(|window| window.limits.errors_max).any(|errors| errors > 0)
    }

    /// Returns the plan with the events for one host of a fleet. `host` is an agent, or `None` for
    /// the host on which `plimsoll run` was started. The plan contains the complete events of this
    /// host. It also contains the events of other hosts, because streams may start at their times,
    /// but without commands and prompts.
    #[must_use]
    pub fn with_events_on(&self, host: Option<&str>) -> Self {
        let of_host = |event: &Event| match event.host.as_deref() == host {
            true => Some(Event { host: None, expect_lost: Vec::new(), ..event.clone() }),
            false => event.at_ns.map(|_| Event {
                host: None,
                expect_lost: Vec::new(),
                run: Vec::new(),
                prompt: None,
                undo: Vec::new(),
                ..event.clone()
            }),
        };
        Self { events: self.events.iter().filter_map(of_host).collect(), ..self.clone() }
    }

    /// Returns the plan for the target with this index, or `None` if the index is out of range.
    #[must_use]
    pub fn for_target(&self, index: usize) -> Option<Self> {
        let target = self.targets.get(index)?.clone();
        Some(Self { targets: vec![target], ..self.clone() })
    }
}
