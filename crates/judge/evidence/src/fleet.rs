//! `fleet.json`: the merged evidence of a run on several hosts.
//!
//! The bundle of a host is never changed after the host's agent sealed it. The fleet's evidence
//! refers to each bundle by its seal. Times are on the fleet's clock, which is the clock of the
//! coordinator. They are relative to the start of the host that started first.

mod merge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::EventRecord;
use crate::observed::Sources;
use crate::run::{LedgerPosition, Membership, PhaseKind};

pub use merge::{MergedEvidence, Part, merge};

/// Version of `fleet.json` that this build writes.
pub const VERSION: u32 = 1;

/// Name of the group whose classes count in the achieved rate.
const TRANSACTIONAL: &str = "transactional";

/// Value of [`Fleet::ended_early`] if the coordinator's operator interrupted the run.
pub const BY_OPERATOR: &str = "the operator interrupted it";

/// Evidence of a fleet run, stored next to the bundles of its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Format version, [`VERSION`].
    pub fleet_version: u32,
    /// Version of Plimsoll on the coordinator.
    pub tool_version: String,
    /// Build of Plimsoll on the coordinator.
    pub build: String,
    /// Name of the fleet run.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of the plan text that was signed and sent to every host.
    pub plan_sha256: String,
    /// Public key with which the plan was signed.
    pub signed_by: String,
    /// Coordinator's wall clock at the start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Planned length of the measurement.
    pub planned_measure_ns: u64,
    /// Interval length of the series.
    pub interval_ns: u64,
    /// Reason why the run ended early ([`BY_OPERATOR`] or another reason); empty if it did not end
    /// early.
    pub ended_early: String,
    /// Experiment to which the run belongs; `None` for a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// Position of the run in the coordinator's ledger; `None` in evidence that earlier versions
    /// wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerPosition>,
    /// Events of the plan; empty if the plan has no events. Times are on the fleet's clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Time window in which all hosts measured at the same time; `None` if there was no such
    /// window.
    pub window: Option<CommonWindow>,
    /// Counters of the storage system over the window. `None` if the plan lists no metrics or there
    /// is no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// All hosts that received the plan, in order of their names.
    pub hosts: Vec<Host>,
    /// Totals of all hosts within the window, for each class; empty if there is no window.
    pub classes: Vec<Class>,
}

impl Fleet {
    /// Returns the hosts whose figures are included in the totals. A host is excluded if an event
    /// of the plan was expected to stop it.
    pub fn counted(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.end != HostEnd::LostAsExpected)
    }
}

/// Window in which all hosts measured at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonWindow {
    /// Start of the window: the time when the last host started its measurement.
    pub start_ns: u64,
    /// Length of the window. It ends when the measurement of a host ends first.
    pub duration_ns: u64,
    /// Skew: time from the earliest start of a host's measurement to the latest start.
    pub start_skew_ns: u64,
    /// Error bound of the skew: the sum of the two largest clock offset errors of the hosts.
    pub start_skew_error_ns: u64,
    /// Time from the earliest end of a host's measurement to the latest end.
    pub end_skew_ns: u64,
    /// Number of whole intervals in the window.
    pub intervals: u64,
    /// True if the hosts' measurements were shifted by half an interval or more. The intervals
    /// outside the window were then removed. If false, the complete measured phase of each host is
    /// included.
    pub cut: bool,
}

/// Increase of a storage system's own counters during the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Increase of the counters by source and destination, in the unit of the system's counters.
    pub sources: Sources,
    /// Longest time between two successful polls.
    pub gap_ns_max: u64,
    /// Counters whose values are unknown, each with the reason.
    pub unknown: Vec<String>,
}

/// A host of the fleet, and the outcome of its part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Name of the agent.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Address from which the agent connected to the broker.
    pub address: String,
    /// Boot ID of the host. Agents with the same boot ID run on the same machine.
    pub boot_id: String,
    /// Version of Plimsoll on the host.
    pub version: String,
    /// Build of Plimsoll on the host.
    pub build: String,
    /// Offsets between the host's clock and the coordinator's clock, measured before and after the
    /// run.
    pub clock: Vec<Offset>,
    /// Outcome of the host's part.
    pub end: HostEnd,
    /// Error message that begins with its subject; empty if the host finished.
    pub says: String,
    /// The host's run; `None` if the host's evidence did not arrive.
    pub run: Option<HostRun>,
    /// Figures from before the loss, if an event stopped the host as expected; `None` for all other
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_lost: Option<UntilLost>,
}

/// Figures of a lost host. They are from its reports to the coordinator, about one report a second.
/// What the host did after its last report is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UntilLost {
    /// Time of the host's last message.
    pub heard_ns: u64,
    /// Number of reports that the host sent in the measured phase.
    pub reports: u32,
    /// Mean of the reported I/Os per second; `None` if there was no report.
    pub ops_per_s: Option<f64>,
    /// Mean of the reported bytes per second; `None` if there was no report.
    pub bytes_per_s: Option<f64>,
}

/// Outcome of a host's part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostEnd {
    /// The run ended, successfully or not, and its evidence arrived.
    Reported,
    /// The host stopped responding or restarted during the run.
    Lost,
    /// The host was lost, as an event of the plan expects (`expect_lost`).
    LostAsExpected,
    /// The host could not execute the plan.
    Failed,
    /// The run ended, but its evidence did not arrive or does not match its seal.
    WithoutEvidence,
}

/// Offset between a host's clock and the coordinator's clock, computed from four timestamps (RFC
/// 5905, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Time on the host's clock minus time on the coordinator's clock.
    pub offset_ns: i64,
    /// Error bound: half of the round-trip time, excluding the processing time on the host.
    pub error_ns: u64,
    /// Time of the measurement on the fleet's clock; negative before the start.
    pub at_ns: i64,
}

/// The part of a fleet run that one host executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRun {
    /// Name of the run and its bundle.
    pub run_id: String,
    /// SHA-256 of the bundle's seal.
    pub seal_sha256: String,
    /// Start of the run on the fleet's clock.
    pub start_ns: u64,
    /// Phases that all hosts start at the same time, with their scheduled starts.
    pub starts: Vec<Start>,
    /// Phases of the run.
    pub phases: Vec<HostPhase>,
    /// Duration of the part of the host's measurement that is in the window.
    pub measured_ns: u64,
    /// Totals within the window, by class.
    pub classes: Vec<Class>,
    /// Increase of the workload's counters in the measured phase.
    pub counters: BTreeMap<String, u64>,
}

/// Scheduled start of a phase that all hosts start at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Kind of the phase.
    pub kind: PhaseKind,
    /// Time when the host was ready.
    pub ready_ns: u64,
    /// Time when all hosts were due to start.
    pub scheduled_ns: u64,
}

/// Phase of a host's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPhase {
    /// Kind of the phase.
    pub kind: PhaseKind,
    /// Start time.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Number of bytes that the phase read and wrote.
    pub bytes: u64,
    /// True if the phase reached its goal.
    pub reached: bool,
}

/// Totals of one class of I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Tag of the class's histogram, such as `load.read`.
    pub name: String,
    /// Group, as in [`crate::run::ClassTotals::group`].
    pub group: String,
    /// True if the I/Os are reads, false if they are writes.
    pub is_read: bool,
    /// Number of I/Os that completed within the window. Rates are computed from it.
    pub count: u64,
    /// Bytes of the I/Os in `count`.
    pub size_bytes: u64,
    /// Number of I/Os whose latency is included in the sum. If no intervals were removed, they
    /// include I/Os that were due in the window but completed later.
    pub latency_count: u64,
    /// Sum of the latencies.
    pub latency_ns_sum: u64,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// Number of I/Os that failed in the whole measured phase.
    pub errors: u64,
}

impl Class {
    /// Adds another host's totals of the same class.
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
    /// Returns the classes that are counted in the achieved rate: transactional I/O, but not logs,
    /// checkpoints or checks. If there is no transactional class, as in metadata workloads, returns
    /// all classes.
    pub fn rated(&self) -> impl Iterator<Item = &Class> {
        let is_rated = |class: &&Class| class.group == TRANSACTIONAL;
        let has_some = self.classes.iter().any(|class| is_rated(&class));
        self.classes.iter().filter(move |class| !has_some || is_rated(class))
    }

    /// Returns the I/Os per second of the classes in [`HostRun::rated`] within the window.
    #[must_use]
    pub fn ops_per_s(&self) -> Option<f64> {
        self.per_s(|class| class.count)
    }

    /// Returns the bytes per second of the classes in [`HostRun::rated`] within the window.
    #[must_use]
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.per_s(|class| class.size_bytes)
    }

    fn per_s(&self, of: impl Fn(&Class) -> u64) -> Option<f64> {
        let sum: u64 = self.rated().map(of).sum();
        (self.measured_ns > 0).then(|| sum as f64 * 1e9 / self.measured_ns as f64)
    }

    /// Returns the start of a phase.
    #[must_use]
    pub fn phase_start_ns(&self, kind: PhaseKind) -> Option<u64> {
        self.phases.iter().find(|phase| phase.kind == kind).map(|phase| phase.start_ns)
    }
}

/// Interpolates the clock offset between two measurements. A drift that exceeds the errors of the
/// two measurements is added to the error bound, because clocks can drift unevenly.
#[must_use]
pub fn interpolate_offset(measured: &[Offset], at_ns: i64) -> Option<Offset> {
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
    fn interpolates_a_clock_offset_and_its_error() {
        let at = |offset_ns, error_ns, at_ns| Offset { offset_ns, error_ns, at_ns };
        let measured = [at(100, 10, 0), at(300, 20, 1_000)];
        let found = interpolate_offset(&measured, 500).unwrap();
        assert_eq!((found.offset_ns, found.error_ns), (200, 20 + 170));
        assert_eq!(interpolate_offset(&measured[..1], 500).unwrap().offset_ns, 100);
        assert!(interpolate_offset(&[], 0).is_none());
    }
}
