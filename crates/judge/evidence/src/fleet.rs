//! `fleet.json`: the merged evidence of a run on several hosts.
//!
//! The bundle of a host is never changed after the host's agent sealed it. The fleet's evidence
//! refers to each bundle by its seal. Times are on the fleet's clock, which is the coordinator's
//! clock. They are relative to the time when the first host started its run.

mod merge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::EventRecord;
use crate::observed::Sources;
use crate::run::{LedgerPosition, Membership, PhaseKind};

pub use merge::{MergedEvidence, Part, merge};

/// Version of the format of `fleet.json` that this build writes.
pub const VERSION: u32 = 1;

/// Name of the group of classes that count in the achieved rate.
const TRANSACTIONAL: &str = "transactional";

/// Value of [`Fleet::ended_early`] if the coordinator's operator interrupted the run.
pub const BY_OPERATOR: &str = "the operator interrupted it";

/// Evidence of a fleet run, stored next to the bundles of its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Version of the format. It is [`VERSION`] in evidence that this build writes.
    pub fleet_version: u32,
    /// Version of Plimsoll that runs on the coordinator.
    pub tool_version: String,
    /// Build of Plimsoll that runs on the coordinator.
    pub build: String,
    /// Name of the fleet run.
    pub run_id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of the plan text that was signed and sent to every host.
    pub plan_sha256: String,
    /// Public key with which the plan was signed.
    pub signed_by: String,
    /// Time of the start on the coordinator's wall clock, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Planned length of the measured phase.
    pub planned_measure_ns: u64,
    /// Length of the intervals in the series.
    pub interval_ns: u64,
    /// Reason why the run ended early ([`BY_OPERATOR`] or another reason); empty if it did not end
    /// early.
    pub ended_early: String,
    /// Experiment to which the run belongs; `None` if the run does not belong to an experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// Position of the run in the coordinator's ledger; `None` in evidence that earlier versions
    /// wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerPosition>,
    /// Events of the plan; empty if the plan has no events. Times are on the fleet's clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Time window in which all hosts measured; `None` if there was no time at which all hosts
    /// measured.
    pub window: Option<CommonWindow>,
    /// Increase of the storage system's counters during the window. `None` if the plan lists no
    /// metrics, or if the hosts have no common window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// All hosts that received the plan, in order of their names.
    pub hosts: Vec<Host>,
    /// For each class, the totals of all hosts within the window; empty without a
    /// common window.
    pub classes: Vec<Class>,
}

impl Fleet {
    /// Returns the hosts whose results are included in the totals. A host is excluded if an event
    /// of the plan was expected to stop it.
    pub fn counted(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.end != HostEnd::LostAsExpected)
    }
}

/// Time window in which all hosts measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonWindow {
    /// Start of the window: the time when the last host started its measurement.
    pub start_ns: u64,
    /// Length of the window. The window ends when the first host ends its measurement.
    pub duration_ns: u64,
    /// Skew: the time between the first host's start of its measurement and the last host's start.
    pub start_skew_ns: u64,
    /// Error bound of the skew: the sum of the two largest errors of the hosts' clock offsets.
    pub start_skew_error_ns: u64,
    /// Time between the first host's end of its measurement and the last host's end.
    pub end_skew_ns: u64,
    /// Number of whole intervals in the window.
    pub intervals: u64,
    /// True if the measurements of the hosts started or ended half an interval or more apart. The
    /// intervals outside the window were then removed. If false, the complete measured phase of
    /// each host is included.
    pub cut: bool,
}

/// Increase of a storage system's own counters during the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Increase of the counters for each source and destination. The unit is that of the system's
    /// counters.
    pub sources: Sources,
    /// Longest time between two successful polls.
    pub gap_ns_max: u64,
    /// Counters whose values are unknown. Each entry also states the reason.
    pub unknown: Vec<String>,
}

/// A host of the fleet, and the outcome of the host's part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Name of the host's agent.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Address from which the agent connected to the broker.
    pub address: String,
    /// Boot ID of the host. Agents with the same boot ID run on the same machine.
    pub boot_id: String,
    /// Version of Plimsoll that runs on the host.
    pub version: String,
    /// Build of Plimsoll that runs on the host.
    pub build: String,
    /// Offsets between the host's clock and the coordinator's clock, measured before and after the
    /// run.
    pub clock: Vec<Offset>,
    /// Outcome of the host's part of the run.
    pub end: HostEnd,
    /// Error message that begins with its subject; empty if the host finished.
    pub says: String,
    /// The host's run; `None` if the host's evidence did not arrive.
    pub run: Option<HostRun>,
    /// Results that the host reported before an event stopped it as expected; `None` for all other
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_lost: Option<UntilLost>,
}

/// Results of a lost host. They are from its reports to the coordinator, about one report a second.
/// The activity of the host after its last report is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UntilLost {
    /// Time of the host's last message.
    pub heard_ns: u64,
    /// Number of reports that the host sent in the measured phase.
    pub reports: u32,
    /// Mean of the rates in the reports, in I/Os per second; `None` if there was no report.
    pub ops_per_s: Option<f64>,
    /// Mean of the bandwidths in the reports, in bytes per second; `None` if there was no report.
    pub bytes_per_s: Option<f64>,
}

/// Outcome of a host's part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostEnd {
    /// The host's run ended, successfully or not, and its evidence arrived.
    Reported,
    /// The host stopped responding or restarted during the run.
    Lost,
    /// The host was lost, and an event of the plan expected this loss (`expect_lost`).
    LostAsExpected,
    /// The host could not execute the plan.
    Failed,
    /// The host's run ended, but its evidence did not arrive or does not match its seal.
    WithoutEvidence,
}

/// Offset between a host's clock and the coordinator's clock, computed from four timestamps (RFC
/// 5905, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Time on the host's clock minus time on the coordinator's clock.
    pub offset_ns: i64,
    /// Error bound of the offset: half of the round-trip time. The round-trip time excludes the
    /// processing time on the host.
    pub error_ns: u64,
    /// Time when the offset was measured, on the fleet's clock; negative before the start.
    pub at_ns: i64,
}

/// The part of a fleet run that one host executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRun {
    /// Name of the run and of its bundle.
    pub run_id: String,
    /// SHA-256 of the bundle's seal.
    pub seal_sha256: String,
    /// Start of the run on the fleet's clock.
    pub start_ns: u64,
    /// Phases that all hosts start at the same time. Each entry contains the scheduled start.
    pub starts: Vec<Start>,
    /// Phases of the host's run.
    pub phases: Vec<HostPhase>,
    /// Time that the host measured within the window.
    pub measured_ns: u64,
    /// Totals within the window for each class.
    pub classes: Vec<Class>,
    /// Increase of the workload's counters in the measured phase.
    pub counters: BTreeMap<String, u64>,
}

/// Scheduled start of a phase that all hosts start at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Kind of the phase.
    pub kind: PhaseKind,
    /// Time when the host was ready to start the phase.
    pub ready_ns: u64,
    /// Time when all hosts were due to start the phase.
    pub scheduled_ns: u64,
}

/// A phase of a host's run.
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
    /// Tag of the histogram of the class, such as `load.read`.
    pub name: String,
    /// Group, as in [`crate::run::ClassTotals::group`].
    pub group: String,
    /// True if the I/Os are reads, false if they are writes.
    pub is_read: bool,
    /// Number of I/Os that completed within the window. Rates are computed from it.
    pub count: u64,
    /// Bytes of the I/Os in `count`.
    pub size_bytes: u64,
    /// Number of I/Os whose latencies are included in the sum. If no intervals were removed, this
    /// number also includes I/Os that were due in the window but completed later.
    pub latency_count: u64,
    /// Sum of the latencies of these I/Os.
    pub latency_ns_sum: u64,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// Number of I/Os that failed in the whole measured phase.
    pub errors: u64,
}

impl Class {
    /// Adds the totals of the same class on another host.
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

    /// Returns the time when a phase started.
    #[must_use]
    pub fn phase_start_ns(&self, kind: PhaseKind) -> Option<u64> {
        self.phases.iter().find(|phase| phase.kind == kind).map(|phase| phase.start_ns)
    }
}

/// Interpolates the clock offset between two measurements. If the drift between them exceeds their
/// errors, the drift is added to the error bound, because clocks can drift unevenly.
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
