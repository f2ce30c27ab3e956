//! `fleet.json`: what several hosts did together, and what their evidence adds up to.
//!
//! Each host's own bundle stays as its agent sealed it; a fleet's evidence names each with its seal. Times are on the
//! fleet's clock, which is the coordinator's, and count from the start of the first host's run.

mod merge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observed::Sources;
use crate::run::{LedgerPosition, Membership, PhaseKind};

pub use merge::{Merged, Part, merge};

/// The version of `fleet.json` that this build writes.
pub const VERSION: u32 = 1;

/// The group of classes that the achieved rate counts.
const TRANSACTIONAL: &str = "transactional";

/// What [`Fleet::ended_early`] says of a run that the operator of its coordinator interrupted.
pub const BY_OPERATOR: &str = "the operator interrupted it";

/// The evidence of a fleet beside the bundles of its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// [`VERSION`].
    pub fleet_version: u32,
    /// The tool that coordinated.
    pub tool_version: String,
    /// Its build.
    pub build: String,
    /// Name of the fleet's run.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of the plan's text as it was signed and sent to every host.
    pub plan_sha256: String,
    /// The public key that it was signed with.
    pub signed_by: String,
    /// The coordinator's wall clock at the start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How long the plan has it measured.
    pub planned_measure_ns: u64,
    /// Length of an interval of the series.
    pub interval_ns: u64,
    /// Who ended it before its end, in words ([`BY_OPERATOR`], or another reason); empty where nobody did.
    pub ended_early: String,
    /// Its place in an experiment; `None`: it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// Its place in the ledger of who coordinated; `None` in evidence of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerPosition>,
    /// The time in which every host measured, where all of them did.
    pub window: Option<Common>,
    /// What the storage system's own counters say of that time; `None` where the plan names none, or there is no such
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// Every host that was asked, in the order of their names.
    pub hosts: Vec<Host>,
    /// What all hosts did within the window, by class; empty without a window.
    pub classes: Vec<Class>,
}

/// The time in which every host measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// When the last host began.
    pub start_ns: u64,
    /// From then to when the first one ended.
    pub duration_ns: u64,
    /// Time from the first host's start to the last one's.
    pub start_skew_ns: u64,
    /// By how much that may be wrong: the errors of the two clocks' offsets.
    pub start_skew_error_ns: u64,
    /// Time from the first host's end to the last one's.
    pub end_skew_ns: u64,
    /// Whole intervals in it.
    pub intervals: u64,
    /// Whether hosts lay so far apart that whole intervals of some were cut away. Where not, each host's measured phase
    /// is counted whole.
    pub cut: bool,
}

/// What a storage system's own counters rose by while all hosts measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// By source and destination, in the unit of its counters.
    pub sources: Sources,
    /// The longest time from one answer to the next.
    pub gap_ns_max: u64,
    /// What is not known, and why.
    pub unknown: Vec<String>,
}

/// A host, and what became of its part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The agent's name.
    pub name: String,
    /// The host's own name.
    pub host: String,
    /// The address that it reached the broker from.
    pub address: String,
    /// Identity of the boot: agents that have the same run on one machine.
    pub boot_id: String,
    /// The agent's version.
    pub version: String,
    /// Its build.
    pub build: String,
    /// Its clock against the coordinator's, before the run and after it.
    pub clock: Vec<Offset>,
    /// How its part ended.
    pub end: HostEnd,
    /// What happened, to what; empty where it came to its end.
    pub says: String,
    /// Its run, where its evidence arrived.
    pub run: Option<HostRun>,
}

/// How a host's part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostEnd {
    /// Its run ended, however, and its evidence is here.
    Reported,
    /// It went silent, or started again in mid-run.
    Lost,
    /// It could not carry the plan out.
    Failed,
    /// Its run ended, and its evidence did not arrive, or is not what it says.
    WithoutEvidence,
}

/// A clock against the coordinator's, as four time stamps tell it (RFC 5905, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// What the host's clock shows more than the coordinator's.
    pub offset_ns: i64,
    /// By how much that may be wrong: half of the round trip without the time on the host.
    pub error_ns: u64,
    /// The coordinator's clock when it was measured, from the fleet's start; before it: negative.
    pub at_ns: i64,
}

/// A host's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRun {
    /// Its name, which is that of its bundle.
    pub run_id: String,
    /// SHA-256 of the bundle's seal.
    pub seal_sha256: String,
    /// Start of the run on the fleet's clock.
    pub start_ns: u64,
    /// When phases were to begin, and did.
    pub starts: Vec<Start>,
    /// The phases.
    pub phases: Vec<HostPhase>,
    /// How long it measured, of what is counted here.
    pub measured_ns: u64,
    /// What it did within the window, by class.
    pub classes: Vec<Class>,
    /// Its workload's counters over its measured phase.
    pub counters: BTreeMap<String, u64>,
}

/// A phase that all hosts began together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Which.
    pub kind: PhaseKind,
    /// When the host was ready.
    pub ready_ns: u64,
    /// When all were to begin.
    pub scheduled_ns: u64,
}

/// A phase of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPhase {
    /// Which.
    pub kind: PhaseKind,
    /// When it began.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Whether it did all that it was for.
    pub reached: bool,
}

/// What one class of I/O did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Such as `load.read`; the tag of its histogram.
    pub name: String,
    /// As in a run's classes.
    pub group: String,
    /// True for reads.
    pub is_read: bool,
    /// I/Os that completed within the window: what rates count.
    pub count: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// I/Os that latencies count: those that were due in the window too, where it was not cut.
    pub latency_count: u64,
    /// Sum of their latencies.
    pub latency_ns_sum: u64,
    /// The largest.
    pub latency_ns_max: u64,
    /// I/Os of the whole measured phase that ended in an error.
    pub errors: u64,
}

impl Class {
    /// Adds what another host did.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.size_bytes += other.size_bytes;
        self.latency_count += other.latency_count;
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(other.latency_ns_sum);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
        self.errors += other.errors;
    }
}

impl HostRun {
    /// The classes that its rates are of: those that the achieved rate of a run counts, which is of databases and not of
    /// logs, checkpoints or checks. Of a host that has none (operations on names alone), all.
    pub fn rated(&self) -> impl Iterator<Item = &Class> {
        let is_rated = |class: &&Class| class.group == TRANSACTIONAL;
        let has_some = self.classes.iter().any(|class| is_rated(&class));
        self.classes.iter().filter(move |class| !has_some || is_rated(class))
    }

    /// I/Os per second within the window, of [`HostRun::rated`].
    #[must_use]
    pub fn ops_per_s(&self) -> Option<f64> {
        self.per_s(|class| class.count)
    }

    /// Bytes per second within the window, of the same.
    #[must_use]
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.per_s(|class| class.size_bytes)
    }

    fn per_s(&self, of: impl Fn(&Class) -> u64) -> Option<f64> {
        let sum: u64 = self.rated().map(of).sum();
        (self.measured_ns > 0).then(|| sum as f64 * 1e9 / self.measured_ns as f64)
    }

    /// When a phase began.
    #[must_use]
    pub fn began_ns(&self, kind: PhaseKind) -> Option<u64> {
        self.phases.iter().find(|phase| phase.kind == kind).map(|phase| phase.start_ns)
    }
}

/// The offset at a moment between two measurements, and by how much it may be wrong: as clocks may have run apart
/// unevenly, what they ran apart beyond both errors counts too.
#[must_use]
pub fn between(measured: &[Offset], at_ns: i64) -> Option<Offset> {
    let (first, last) = (measured.first()?, measured.last()?);
    let apart_ns = last.offset_ns.abs_diff(first.offset_ns);
    let span_ns = (last.at_ns - first.at_ns).max(1);
    let share = ((at_ns - first.at_ns) as f64 / span_ns as f64).clamp(0.0, 1.0);
    let moved_ns = (last.offset_ns - first.offset_ns) as f64 * share;
    let both_ns = first.error_ns + last.error_ns;
    Some(Offset {
        offset_ns: first.offset_ns + moved_ns as i64,
        error_ns: first.error_ns.max(last.error_ns) + apart_ns.saturating_sub(both_ns),
        at_ns,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn between_two_measurements_a_clock_runs_evenly_and_what_it_ran_is_in_its_error() {
        let at = |offset_ns, error_ns, at_ns| Offset { offset_ns, error_ns, at_ns };
        let measured = [at(100, 10, 0), at(300, 20, 1_000)];
        let found = between(&measured, 500).unwrap();
        assert_eq!((found.offset_ns, found.error_ns), (200, 20 + 170));
        assert_eq!(between(&measured[..1], 500).unwrap().offset_ns, 100);
        assert!(between(&[], 0).is_none());
    }
}
