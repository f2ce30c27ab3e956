//! `run.json`: what was run, in which phases, how it ended, and the totals of the measured phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The schema version that this build writes. Readers accept every older one.
pub const SCHEMA_VERSION: u32 = 1;

/// What carried the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// Real storage in real time.
    Real,
    /// A model in virtual time.
    Model,
    /// A foreign tool; its result was imported.
    Foreign,
}

/// How far the evidence can be trusted (DESIGN §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// Our own engine.
    T1,
    /// A foreign tool under our observation.
    T2,
    /// A result file alone.
    T3,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// Every phase was carried out.
    Completed,
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupted,
    /// The target answered an I/O with an error, or a transfer stayed short.
    IoError,
    /// The target is full.
    NoSpace,
    /// A page, log record or stamp was not what had been written.
    Corruption,
    /// The environment failed: a path went away, a lock was lost, a file could not be made.
    Environment,
    /// Plimsoll itself failed: a thread of it panicked.
    Defect,
}

impl EndKind {
    /// The word in the ledger.
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

/// The end of a run, with the sentence that names what happened to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub kind: EndKind,
    /// What happened, to what; empty for a completed run.
    pub says: String,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// Making the first database or data set.
    Create,
    /// Copying the first database to the others.
    Duplicate,
    /// Writing log files in full before their first use.
    FormatLogs,
    /// Bringing flash to its steady state.
    Condition,
    /// Dropping or keeping caches.
    Caches,
    /// Load that is not yet measured.
    WarmUp,
    /// The measurement.
    Measure,
    /// Writing back what is dirty and closing cleanly.
    Close,
    /// Checking every page.
    Verify,
    /// Replaying log files.
    SoftRecovery,
    /// Reading whole databases.
    Backup,
    /// Removing what the run made.
    CleanUp,
}

impl PhaseKind {
    /// The name that people read.
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

/// One phase as it was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Which.
    pub kind: PhaseKind,
    /// From the start of the run.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Bytes read from the target.
    pub read_bytes: u64,
    /// Bytes written to the target.
    pub written_bytes: u64,
    /// False when it was cut short, or did not reach what it was for (a warm-up whose cache never
    /// filled).
    pub reached: bool,
    /// What the report says beside it.
    pub note: String,
    /// Of the measured phase: the longest time before its start or after its end in which a driving
    /// thread may have counted I/Os as the phase's own. 0: it begins and ends exactly. `None`: another
    /// phase, or recorded by a version that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary_error_ns: Option<u64>,
}

/// Totals of one class of I/O over the measured phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotals {
    /// Such as `db3.read`; the tag of its histogram.
    pub name: String,
    /// `transactional`, `log`, `maintenance`, `replication`, `upkeep` or `phase`.
    pub group: String,
    /// Index of the database or other instance.
    pub instance: u32,
    /// True for reads.
    pub is_read: bool,
    /// I/Os that completed, and those that `abandoned` and `never_started` count. A coalesced transfer
    /// is one.
    pub count: u64,
    /// Bytes transferred by those that completed.
    pub size_bytes: u64,
    /// Sum of latencies, from the intended start to the completion.
    pub latency_ns_sum: u64,
    /// The largest single latency.
    pub latency_ns_max: u64,
    /// Sum of service times, from just before submission to the completion.
    pub service_ns_sum: u64,
    /// The largest single service time.
    pub service_ns_max: u64,
    /// I/Os that ended in an error.
    pub errors: u64,
    /// How many of `count` had begun or were due in the phase and had not completed at its end.
    /// Latencies have them, rates leave them out.
    #[serde(default)]
    pub drained: u64,
    /// Bytes of those that completed after all.
    #[serde(default)]
    pub drained_bytes: u64,
    /// How many of `drained` had been handed to the target and had not come back by the end of the
    /// drain. Each counts in all latencies with the time that it had waited until then, which is the
    /// least that it can have taken. `None`: the version that measured left them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<u64>,
    /// How many of `drained` were due in the phase (open loop) and had not been handed to the target
    /// by the end of the drain. They count in latencies as `abandoned` does, and have no service time.
    /// `None`: as there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_started: Option<u64>,
}

impl ClassTotals {
    /// A class of which nothing has been counted yet; what did not come back is unknown.
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

    /// I/Os whose latency is only known to be at least what was recorded: abandoned and never
    /// started. `None` where the version that measured left them out.
    #[must_use]
    pub fn unfinished(&self) -> Option<u64> {
        Some(self.abandoned?.saturating_add(self.never_started?))
    }

    /// I/Os that were handed to the target: those that have a service time.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.count.saturating_sub(self.never_started.unwrap_or(0))
    }

    /// I/Os that completed within the phase: what rates count.
    #[must_use]
    pub fn count_within(&self) -> u64 {
        self.count.saturating_sub(self.drained)
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes_within(&self) -> u64 {
        self.size_bytes.saturating_sub(self.drained_bytes)
    }
}

/// A database (or other instance) of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// As the report names it.
    pub name: String,
    /// Directory of its data.
    pub path: String,
    /// Directory of its log, where it has one.
    pub log_path: Option<String>,
    /// Bytes in use when the measurement began.
    pub size_bytes_initial: u64,
    /// Bytes in use when it ended.
    pub size_bytes_final: u64,
    /// Bytes of the file.
    pub allocated_bytes: u64,
}

/// How the I/O was issued to one directory or device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEngine {
    /// The directory or device.
    pub path: String,
    /// True where the page cache was bypassed (`O_DIRECT`).
    pub direct: bool,
    /// Why, where it was not.
    pub why: String,
}

/// How the I/O was issued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// `io_uring`, `threads` or `model`.
    pub kind: String,
    /// Why this one.
    pub why: String,
    /// Operating-system threads that issued.
    pub threads: u32,
    /// Logical sessions or clients.
    pub sessions: u32,
    /// True when a new operation starts only after an earlier one has ended, so that a stall of the
    /// target holds the load back.
    pub closed_loop: bool,
    /// Each directory or device.
    pub paths: Vec<PathEngine>,
    /// Which clock, its resolution and cost.
    pub clock: Clock,
    /// What io_uring gave of what it was asked for, by the kernel's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_features: Vec<String>,
    /// What the kernel did not give, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_refusals: Vec<String>,
    /// How waiting threads polled for completions; `None`: an older version, or no files or devices of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<Polling>,
}

/// How waiting threads polled for completions before they slept. The CPU time that it took is in
/// [`GeneratorThread::spun_ns`](crate::observed::GeneratorThread::spun_ns).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polling {
    /// Longest polling time of a wait; 0: threads slept at once.
    pub longest_ns: u64,
    /// Why they slept at once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
}

/// The clock that latencies were read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Such as `CLOCK_MONOTONIC (tsc)`; `virtual` on a model.
    pub source: String,
    /// Smallest step seen.
    pub resolution_ns: u64,
    /// Cost of a reading, in picoseconds.
    pub cost_ps: u64,
}

/// What a page, record or stamp that did not check looked like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Database, file or device.
    pub target: String,
    /// Page or block number in it.
    pub page: u64,
    /// `corrupt`, `torn`, `lost`, `stale`, `misdirected`, `unwritten`, `truncated` or `missing`.
    pub kind: String,
    /// The sentence with the numbers.
    pub says: String,
}

/// What the check of all data found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Pages read and checked by the verify phase; `None`: it did not run to its end.
    pub pages_checked: Option<u64>,
    /// Log blocks read back and checked by the verify phase: each that was acknowledged in the last round
    /// of the ring. `None`: it did not run to its end, there is no log, or an older version did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_blocks_checked: Option<u64>,
    /// Failed checks, of the verify phase and of all reads before it.
    pub errors: u64,
    /// The first of them, at most 100.
    pub damage: Vec<Damage>,
    /// What was checked of a sample while it was measured, and of writes right after; `None`: nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
}

/// Content that was checked without a check of all data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Reads of the measured phase whose content was checked.
    pub reads: u64,
    /// Blocks of those.
    pub blocks: u64,
    /// Writes that were read back after the measured phase.
    pub writes_read_back: u64,
    /// Blocks of those.
    pub blocks_read_back: u64,
}

/// Where a run stands in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPosition {
    /// Line number of its start, from 1.
    pub position: u64,
    /// SHA-256 of the line before it.
    pub previous_sha256: String,
    /// Runs of the same plan that were started before this one on this machine.
    pub earlier_runs_of_plan: u64,
    /// How many of them did not complete.
    pub earlier_runs_not_completed: u64,
    /// Runs outside of its own experiment that asked the same of the same system before, whatever their
    /// plans are called ([`crate::ledger::Question`]); `None` in bundles of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_runs_alike: Option<u64>,
    /// How many of them did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_alike_not_completed: Option<u64>,
    /// Runs outside of its own experiment that put the same workload on the same system before, and
    /// required something else of it; absent in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_required_otherwise: Option<u64>,
    /// When the ledger's first line was written, nanoseconds since 1970. What came before is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<u64>,
    /// SHA-256 of the ledger's first line, which tells one ledger from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sha256: Option<String>,
    /// SHA-256 of the line of this run's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_sha256: Option<String>,
    /// Of the bundles that lay in the catalogue: how many the ledger did not hold where they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundles_not_held: Option<u64>,
    /// In what the ledger was not what its head said when this run started; `None`: it was, or had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_differed: Option<String>,
}

/// Why several runs belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// Repeats of one plan.
    Repeat,
    /// Steps of a search for the load line.
    Tune,
    /// Arms of a comparison, in turns.
    Compare,
    /// Points of a sweep.
    Sweep,
    /// Stages of a job, one after the other.
    Stages,
    /// Arms of a published experiment.
    Published,
}

impl ExperimentKind {
    /// The word in `run.json` and in lists.
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

/// A run's place in an experiment: runs that belong together and are read together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Name of the experiment's directory.
    pub id: String,
    /// Why its runs belong together.
    pub kind: ExperimentKind,
    /// Which side the run is of: the target in a comparison, `16 threads` in a search; empty where
    /// all runs are alike.
    pub arm: String,
    /// Which run of the experiment it was, from 1 in the order carried out.
    pub number: u32,
    /// The run that made, or last changed, the data that this one found; `None`: it made its own.
    pub data_of_run: Option<String>,
}

/// `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the bundle's form.
    pub schema_version: u32,
    /// Version of Plimsoll that wrote it.
    pub tool_version: String,
    /// Digest of the sources that judged and reported it first; `None` in bundles of older versions. The
    /// same build derives the same verdict and report from it, to the byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Name of the bundle's directory.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of `resolved.toml`.
    pub plan_sha256: String,
    /// What carried the load.
    pub driver: Driver,
    /// How far the evidence can be trusted.
    pub tier: Tier,
    /// Wall clock at the start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// How it ended.
    pub end: End,
    /// Its place in the ledger; `None` where no ledger could be written.
    pub ledger: Option<LedgerPosition>,
    /// The public key that its seal was signed with, as minisign writes it; `None`: it was not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Its place in an experiment; `None`: it stands alone, and made its own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// How the I/O was issued.
    pub engine: Engine,
    /// The phases in the order carried out.
    pub phases: Vec<Phase>,
    /// Totals of the measured phase.
    pub classes: Vec<ClassTotals>,
    /// The databases.
    pub instances: Vec<Instance>,
    /// Counters of the workload over the measured phase: stalls, commits, and so on.
    pub counters: BTreeMap<String, u64>,
    /// What the checks of data found.
    pub checks: Checks,
}

impl Run {
    /// The measured phase, if it was reached.
    pub fn measure(&self) -> Option<&Phase> {
        self.phases.iter().find(|p| p.kind == PhaseKind::Measure)
    }

    /// Sum of a figure over the classes that `pick` takes.
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

    /// A run without phases that is in no ledger.
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
        }
    }
}
