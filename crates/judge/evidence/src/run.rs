//! `run.json`: the phases of a run, its outcome, and the totals of the measured phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::durability::DurabilityTest;
use crate::events::EventRecord;

/// Version of the schema that this build writes. Readers also accept all older versions.
pub const SCHEMA_VERSION: u32 = 1;

/// The program that generated the load, and the kind of storage that it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// Plimsoll generated the load on real storage, in real time.
    Real,
    /// Plimsoll generated the load on a model of storage, in virtual time.
    Model,
    /// A different tool generated the load. Its result was imported.
    Foreign,
}

/// Level of trust in the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// Plimsoll's own engine measured.
    T1,
    /// A different tool measured while Plimsoll observed the host and its devices.
    T2,
    /// The only evidence is the result file of a different tool.
    T3,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// All phases were executed.
    Completed,
    /// The run received SIGINT, SIGTERM or SIGHUP.
    Interrupted,
    /// An I/O failed, or transferred fewer bytes than requested.
    IoError,
    /// The target is full.
    NoSpace,
    /// The content of a page, log record or stamp differed from the content that was written.
    Corruption,
    /// The environment failed: for example, a path vanished, a lock was lost, or a file could not
    /// be created.
    Environment,
    /// Plimsoll itself failed, for example because a thread panicked.
    Defect,
}

impl EndKind {
    /// Returns the word for the outcome, as the ledger uses it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::IoError => "io-error",
            Self::NoSpace => "no-space",
            Self::Corruption => "corruption",
            Self::Environment => "environment",
            Self::Defect => "defect",
        }
    }
}

/// How a run ended, with an error message if it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How the run ended.
    pub kind: EndKind,
    /// Error message. It begins with its subject, and it is empty if the run completed.
    pub says: String,
}

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// Creating the first database or data set.
    Create,
    /// Copying the first database to the other databases.
    Duplicate,
    /// Writing complete log files before their first use.
    FormatLogs,
    /// Writing to flash until it is in its steady state.
    Condition,
    /// Dropping the caches or filling the caches.
    Caches,
    /// Load before the measurement, whose results are discarded.
    WarmUp,
    /// The measurement.
    Measure,
    /// Writing back dirty data and closing cleanly.
    Close,
    /// Checking every page.
    Verify,
    /// Replaying log files.
    SoftRecovery,
    /// Reading whole databases.
    Backup,
    /// Removing the files that the run created.
    CleanUp,
}

impl PhaseKind {
    /// Returns the name of the phase that is shown to users.
    pub fn label(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Duplicate => "duplicate",
            Self::FormatLogs => "format logs",
            Self::Condition => "condition",
            Self::Caches => "caches",
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
            Self::Close => "close",
            Self::Verify => "checksum",
            Self::SoftRecovery => "soft recovery",
            Self::Backup => "streaming backup",
            Self::CleanUp => "clean up",
        }
    }
}

/// A phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Kind of the phase.
    pub kind: PhaseKind,
    /// Start of the phase, relative to the start of the run.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Number of bytes that were read from the target.
    pub read_bytes: u64,
    /// Number of bytes that were written to the target.
    pub written_bytes: u64,
    /// True if the phase reached its goal. False if the phase was interrupted or missed its goal.
    /// An example is a warm-up in which the cache never filled up.
    pub reached: bool,
    /// Remark for the report.
    pub note: String,
    /// Uncertainty of the start and end of the measured phase. A load thread may have counted I/Os
    /// that completed up to this time before the start or after the end. 0 if the start and end are
    /// exact. `None` for other phases, and in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary_error_ns: Option<u64>,
}

/// Totals of one class of I/O over the measured phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotals {
    /// Name of the class, such as `db3.read`. It is also the tag of the histogram of the class.
    pub name: String,
    /// Group of the class: `transactional`, `log`, `maintenance`, `replication`, `upkeep` or
    /// `phase`.
    pub group: String,
    /// Index of the database, or of another instance of the workload.
    pub instance: u32,
    /// True if the I/Os are reads, false if they are writes.
    pub is_read: bool,
    /// Number of I/Os that completed, plus `abandoned` and `never_started`. A coalesced transfer is
    /// counted once.
    pub count: u64,
    /// Number of bytes that the completed I/Os transferred.
    pub size_bytes: u64,
    /// Sum of the latencies from the intended start to the completion.
    pub latency_ns_sum: u64,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// Sum of the service times. A service time is the time from just before the submission until
    /// the completion.
    pub service_ns_sum: u64,
    /// Largest service time.
    pub service_ns_max: u64,
    /// Failed I/Os.
    pub errors: u64,
    /// Number of I/Os in `count` that had started or were due in the phase, but had not completed
    /// when it ended. Latencies include these I/Os, but rates do not.
    #[serde(default)]
    pub drained: u64,
    /// Number of bytes that drained I/Os transferred, if they completed.
    #[serde(default)]
    pub drained_bytes: u64,
    /// Number of I/Os in `drained` that were submitted but did not complete before the drain ended.
    /// Latencies include the time that these I/Os had taken until then, as a lower bound. `None` in
    /// bundles of versions that did not record this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<u64>,
    /// Number of I/Os in `drained` that an open loop should have started in the phase but never
    /// submitted. As for the I/Os in `abandoned`, latencies include a lower bound for them. They
    /// have no service time. `None` for the same reason as in `abandoned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_started: Option<u64>,
}

impl ClassTotals {
    /// Creates a class that has no I/O. The numbers of its unfinished I/Os are unknown.
    #[must_use]
    pub fn empty(name: String, group: String, instance: u32, is_read: bool) -> Self {
        Self {
            name,
            group,
            instance,
            is_read,
            count: 0,
            size_bytes: 0,
            latency_ns_sum: 0,
            latency_ns_max: 0,
            service_ns_sum: 0,
            service_ns_max: 0,
            errors: 0,
            drained: 0,
            drained_bytes: 0,
            abandoned: None,
            never_started: None,
        }
    }

    /// Returns the number of I/Os whose latency is known only as a lower bound. These are abandoned
    /// I/Os and I/Os that never started. `None` in bundles of versions that did not record these
    /// numbers.
    #[must_use]
    pub fn unfinished(&self) -> Option<u64> {
        Some(self.abandoned?.saturating_add(self.never_started?))
    }

    /// Returns the number of I/Os that were submitted. Only these I/Os have a service time.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.count.saturating_sub(self.never_started.unwrap_or(0))
    }

    /// Returns the number of I/Os that completed within the phase. Rates are computed from this
    /// number.
    #[must_use]
    pub fn count_within(&self) -> u64 {
        self.count.saturating_sub(self.drained)
    }

    /// Returns the number of bytes of the I/Os that completed within the phase.
    #[must_use]
    pub fn bytes_within(&self) -> u64 {
        self.size_bytes.saturating_sub(self.drained_bytes)
    }
}

/// A database, or another instance of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Name of the instance, as the report shows it.
    pub name: String,
    /// Data directory.
    pub path: String,
    /// Directory of the log; `None` if the plan has no log directory.
    pub log_path: Option<String>,
    /// Used part of the file in bytes, at the start of the measurement.
    pub size_bytes_initial: u64,
    /// Used part of the file in bytes, at the end of the measurement.
    pub size_bytes_final: u64,
    /// Size of the file in bytes.
    pub allocated_bytes: u64,
}

/// Settings of the I/O engine for a directory or device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEngine {
    /// The directory or device.
    pub path: String,
    /// True if I/O bypassed the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Reason why I/O did not bypass the page cache, if it did not.
    pub why: String,
    /// True if the plan left the use of direct I/O to Plimsoll, and the file system refused
    /// `O_DIRECT` for a file. I/O then used the page cache. `None` in bundles of older versions, or
    /// if the target has no files on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_refused: Option<bool>,
}

/// The I/O engine of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Name of the engine: `io_uring`, `threads` or `model`.
    pub kind: String,
    /// Reason why this engine was chosen.
    pub why: String,
    /// Number of operating-system threads that issued I/O.
    pub threads: u32,
    /// Number of sessions or clients that the workload simulates.
    pub sessions: u32,
    /// True if each operation starts only after an earlier operation has ended. A stall of the
    /// target then also stops the load.
    pub closed_loop: bool,
    /// Engine settings for each directory or device.
    pub paths: Vec<PathEngine>,
    /// The clock, with its resolution and cost.
    pub clock: Clock,
    /// Names of the io_uring features that the kernel granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_features: Vec<String>,
    /// Names of the io_uring features that the kernel refused, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_refusals: Vec<String>,
    /// How threads polled for completions before they slept. `None` in bundles of older versions,
    /// or if the target has no files or devices on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<Polling>,
}

/// How threads polled for completions before they slept. The CPU time of polling is in
/// [`GeneratorThread::spun_ns`](crate::observed::GeneratorThread::spun_ns).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polling {
    /// Maximum time for which a thread polled before it slept; 0 if threads slept without polling.
    pub longest_ns: u64,
    /// Reason why threads slept without polling. Empty if threads polled before they slept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
}

/// The clock with which latencies were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Name of the clock, such as `CLOCK_MONOTONIC (tsc)`; `virtual` for a model.
    pub source: String,
    /// Resolution of the clock: its smallest observed step.
    pub resolution_ns: u64,
    /// Time that it takes to read the clock, in picoseconds.
    pub cost_ps: u64,
}

/// A page, record or stamp whose content failed a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Name of the database, file or device.
    pub target: String,
    /// Number of the page or block.
    pub page: u64,
    /// Kind of damage: `corrupt`, `torn`, `lost`, `stale`, `misdirected`, `unwritten`, `truncated`
    /// or `missing`.
    pub kind: String,
    /// Description of the damage, with numbers.
    pub says: String,
}

/// Results of the data checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Number of pages that the verify phase read and checked; `None` if the phase did not finish.
    pub pages_checked: Option<u64>,
    /// Number of log blocks that the verify phase read back and checked. These are all blocks that
    /// were acknowledged in the last round through the ring of log files. `None` if the check did
    /// not finish, if there is no log, or if the bundle's version did not check the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_blocks_checked: Option<u64>,
    /// Number of checks that failed, in the verify phase and in earlier reads.
    pub errors: u64,
    /// The first checks that failed, at most 100.
    pub damage: Vec<Damage>,
    /// Counts of two checks: a sample of the reads is checked during the measurement, and a sample
    /// of the writes is read back and checked right after it. `None` if no sample was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledChecks>,
}

/// Number of content checks that were made on samples of reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledChecks {
    /// Number of reads that were checked in the measured phase.
    pub reads: u64,
    /// Number of blocks in the reads that were checked.
    pub blocks: u64,
    /// Number of writes that were read back after the measured phase.
    pub writes_read_back: u64,
    /// Number of blocks in the writes that were read back.
    pub blocks_read_back: u64,
}

/// The position of a run in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPosition {
    /// Number of the line that records the start of the run. Lines are counted from 1.
    pub position: u64,
    /// SHA-256 of the line before that line.
    pub previous_sha256: String,
    /// Number of earlier runs on this machine that had the same plan.
    pub earlier_runs_of_plan: u64,
    /// Number of these runs that did not complete.
    pub earlier_runs_not_completed: u64,
    /// Number of earlier runs with the same workload on the same system, whatever the names of
    /// their plans ([`crate::ledger::Question`]). Runs of the same experiment are excluded. `None`
    /// in bundles of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_runs_alike: Option<u64>,
    /// Number of those similar runs that did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_alike_not_completed: Option<u64>,
    /// Number of earlier runs that had the same workload and system, but a different requirement.
    /// Runs of the same experiment are excluded. Absent in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_required_otherwise: Option<u64>,
    /// Time of the ledger's first line, in nanoseconds since 1970. The ledger does not contain runs
    /// from before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// SHA-256 of the ledger's first line, which identifies the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sha256: Option<String>,
    /// SHA-256 of the line that records the start of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_sha256: Option<String>,
    /// Number of bundles in the catalogue that state a position in the ledger at which the ledger
    /// does not contain their run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles_not_held: Option<u64>,
    /// Description of a mismatch between the ledger and its head at the start of this run; `None`
    /// if they matched or there was no head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_differed: Option<String>,
}

/// Kind of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// Repeated runs of the same plan.
    Repeat,
    /// Steps of a search for the highest load that meets the requirement.
    Tune,
    /// Runs of a comparison. The runs alternate between the sides of the comparison.
    Compare,
    /// Points of a sweep.
    Sweep,
    /// Stages of a job, which run one after another.
    Stages,
    /// Runs of a published experiment, which has several arms.
    Published,
}

impl ExperimentKind {
    /// Returns the word for the kind, as `run.json` and lists use it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Tune => "tune",
            Self::Compare => "compare",
            Self::Sweep => "sweep",
            Self::Stages => "stages",
            Self::Published => "published",
        }
    }
}

/// The experiment to which a run belongs, and the number of the run in the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Name of the experiment's directory.
    pub id: String,
    /// Kind of the experiment.
    pub kind: ExperimentKind,
    /// Name of the arm to which the run belongs, such as a target in a comparison, or `16 threads`
    /// in a search. Empty if the experiment has no arms.
    pub arm: String,
    /// Number of the run in the experiment, from 1, in order of execution.
    pub number: u32,
    /// Name of the run that created or last changed the data that this run used; `None` if this run
    /// created its own data.
    pub data_of_run: Option<String>,
}

/// Content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Schema version of the bundle.
    pub schema_version: u32,
    /// Version of Plimsoll that wrote the bundle.
    pub tool_version: String,
    /// Digest that identifies the sources of a build. It belongs to the build that first judged and
    /// reported the run. Builds with the same digest derive the same verdict and report, byte for
    /// byte. `None` in bundles of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Name of the bundle's directory.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of `resolved.toml`.
    pub plan_sha256: String,
    /// The program that generated the load, and the kind of storage that it used.
    pub driver: Driver,
    /// Level of trust in the evidence.
    pub tier: Tier,
    /// Start of the run on the wall clock, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Duration of the run.
    pub duration_ns: u64,
    /// How the run ended.
    pub end: End,
    /// Position of the run in the ledger; `None` if no ledger could be written.
    pub ledger: Option<LedgerPosition>,
    /// Public key that belongs to the signature of the seal, in minisign's format; `None` if the
    /// seal is not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Experiment to which the run belongs; `None` if the run belongs to no experiment and created
    /// its own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// I/O engine.
    pub engine: Engine,
    /// Phases of the run, in the order of execution.
    pub phases: Vec<Phase>,
    /// Totals of each class of I/O in the measured phase.
    pub classes: Vec<ClassTotals>,
    /// The databases.
    pub instances: Vec<Instance>,
    /// Counters of the workload in the measured phase, such as stalls and commits.
    pub counters: BTreeMap<String, u64>,
    /// Results of the data checks.
    pub checks: Checks,
    /// Events of the plan; empty if the plan has no events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Durability test with power cuts after the load; `None` if the plan has no cuts, or if the
    /// run ended before the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityTest>,
}

impl Run {
    /// Returns the measured phase, if the run reached this phase.
    pub fn measure(&self) -> Option<&Phase> {
        self.phases.iter().find(|p| p.kind == PhaseKind::Measure)
    }

    /// Returns the class with this name; `None` if the measured phase had no I/O of this class.
    pub fn class(&self, name: &str) -> Option<&ClassTotals> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Returns the sum of a value over the classes that `pick` selects.
    pub fn sum(
        &self,
        pick: impl Fn(&ClassTotals) -> bool,
        of: impl Fn(&ClassTotals) -> u64,
    ) -> u64 {
        self.classes.iter().filter(|c| pick(c)).map(of).sum()
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;

    /// Returns a run that has no phases and no position in a ledger.
    pub fn run() -> Run {
        Run {
            schema_version: SCHEMA_VERSION,
            tool_version: "0".to_owned(),
            build: None,
            run_id: "run".to_owned(),
            name: "p".to_owned(),
            plan_sha256: String::new(),
            driver: Driver::Real,
            tier: Tier::T1,
            started_unix_ns: 0,
            duration_ns: 0,
            end: End { kind: EndKind::Completed, says: String::new() },
            ledger: None,
            signed_by: None,
            experiment: None,
            engine: Engine::default(),
            phases: Vec::new(),
            classes: Vec::new(),
            instances: Vec::new(),
            counters: BTreeMap::new(),
            checks: Checks::default(),
            events: Vec::new(),
            durability: None,
        }
    }
}
