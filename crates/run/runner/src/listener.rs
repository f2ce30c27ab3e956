//! Listeners of a run's progress, and the progress of a fleet.

use std::collections::BTreeMap;

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress::{Progress, Watcher};
use serde::{Deserialize, Serialize};

use crate::finished_run::FinishedRun;

/// Receives phases (like a [`Watcher`]) and messages.
pub trait Listener: Watcher {
    /// Receives a message about the run.
    fn say(&mut self, text: &str);
    /// Receives a warning. Warnings are shown even in quiet mode.
    fn warn(&mut self, text: &str);
    /// Receives the start of a stage, step, point or run.
    fn part(&mut self, text: &str) {
        self.say(text);
    }
    /// Receives the progress of a fleet, about once a second.
    fn fleet(&mut self, now: &FleetProgress) {
        let _ = now;
    }
    /// Receives the record of one of the plan's events when its command or undo has started or
    /// ended. Times are on the driver's clock.
    fn event(&mut self, record: &EventRecord) {
        let _ = record;
    }
    /// Receives a finished and judged run.
    fn finished(&mut self, run: &FinishedRun) {
        let _ = run;
    }
}

#[derive(Clone, Debug, Default)]
pub struct FleetProgress {
    /// Phase in which most hosts are.
    pub kind: Option<PhaseKind>,
    /// Number of hosts, including those that have not reported.
    pub count: usize,
    /// Latest report of each host, by name.
    pub hosts: BTreeMap<String, HostStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostStatus {
    /// Current phase.
    pub phase: String,
    /// I/Os per second.
    pub rate_ops_per_s: f64,
    /// Bytes per second.
    pub rate_bytes_per_s: f64,
    /// Mean latency; `None` if no operation finished recently.
    pub latency_ns_avg: Option<u64>,
    /// Time since the phase began; 0 if the phase is not limited by time.
    pub elapsed_ns: u64,
    /// Duration of the phase; 0 if it is not limited by time.
    pub total_ns: u64,
    /// Number of bytes transferred so far; 0 if the phase is not limited by bytes.
    pub done_bytes: u64,
    /// Number of bytes after which the phase ends; 0 if the phase is not limited by bytes.
    pub total_bytes: u64,
    /// Number of reports in this phase, about one per second.
    #[serde(rename = "told_in_phase")]
    pub reports_in_phase: u32,
}

/// A host is slow if its rate is below this fraction of the average. The rule `fleet-balance` uses
/// the same fraction.
const SLOW_SHARE: f64 = 0.9;
/// Number of reports that each host must have sent before a host is called slow. The first report
/// does not contain a whole interval.
const REPORTS_MIN: u32 = 3;
/// A host is called slow only if its rate is this many standard deviations below the average. A
/// Poisson stream of 300/s has between 230 and 370 arrivals in almost every second.
const DEVIATIONS: f64 = 4.0;

impl FleetProgress {
    /// Returns the hosts that are in the phase of most hosts.
    pub fn in_common_phase(&self) -> impl Iterator<Item = (&String, &HostStatus)> {
        let label = self.kind.map_or("", PhaseKind::label);
        self.hosts.iter().filter(move |(_, host)| host.phase == label)
    }

    /// Returns the sum of a value over the hosts that are in the common phase.
    pub fn sum(&self, of: fn(&HostStatus) -> f64) -> f64 {
        self.in_common_phase().map(|(_, host)| of(host)).sum()
    }

    /// Combines the reports of the hosts that are in the common phase. Adds up rates and bytes,
    /// computes the mean latency over all I/Os, and uses the times of the slowest host.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let hosts = || self.in_common_phase().map(|(_, host)| host);
        let behind = hosts().max_by_key(|host| host.total_ns.saturating_sub(host.elapsed_ns));
        let (mut weight, mut latency_ns) = (0.0, 0.0);
        for host in hosts() {
            if let Some(ns) = host.latency_ns_avg.filter(|_| host.rate_ops_per_s > 0.0) {
                weight += host.rate_ops_per_s;
                latency_ns += host.rate_ops_per_s * ns as f64;
            }
        }
        Progress {
            elapsed_ns: behind.map_or(0, |host| host.elapsed_ns),
            total_ns: behind.map_or(0, |host| host.total_ns),
            done_bytes: hosts().map(|host| host.done_bytes).sum(),
            total_bytes: hosts().map(|host| host.total_bytes).sum(),
            rate_ops_per_s: self.sum(|host| host.rate_ops_per_s),
            rate_bytes_per_s: self.sum(|host| host.rate_bytes_per_s),
            latency_ns_avg: (weight > 0.0).then(|| (latency_ns / weight) as u64),
        }
    }

    /// Returns the slowest host and its fraction of the average rate, if all hosts are in the
    /// common phase and this host's rate is significantly below the average.
    #[must_use]
    pub fn slow(&self) -> Option<(&str, f64)> {
        let count =
            self.in_common_phase().filter(|(_, host)| host.reports_in_phase >= REPORTS_MIN).count();
        if count < self.count.max(2) {
            return None;
        }
        let average = self.sum(|host| host.rate_ops_per_s) / count as f64;
        let rate = |host: &HostStatus| host.rate_ops_per_s;
        let (name, host) = self.in_common_phase().min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
        let share = host.rate_ops_per_s / average;
        // A report describes about one second.
        let is_chance = average - host.rate_ops_per_s < DEVIATIONS * average.sqrt();
        (average > 0.0 && share < SLOW_SHARE && !is_chance).then_some((name.as_str(), share))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hosts_are_as_far_as_the_one_that_is_behind() {
        let host = |elapsed_ns, rate_ops_per_s, latency_ns| HostStatus {
            phase: PhaseKind::Measure.label().to_owned(),
            rate_ops_per_s,
            latency_ns_avg: latency_ns,
            elapsed_ns,
            total_ns: 10,
            done_bytes: 1,
            total_bytes: 4,
            ..HostStatus::default()
        };
        let hosts = [("a", host(6, 100.0, Some(30))), ("b", host(4, 300.0, Some(10)))];
        let late = (
            "c",
            HostStatus { phase: PhaseKind::WarmUp.label().to_owned(), ..host(1, 9.0, Some(9)) },
        );
        let now = FleetProgress {
            kind: Some(PhaseKind::Measure),
            count: 3,
            hosts: hosts
                .into_iter()
                .chain([late])
                .map(|(name, host)| (name.into(), host))
                .collect(),
        };
        let all = now.progress();
        assert_eq!((all.elapsed_ns, all.total_ns, all.done_bytes, all.total_bytes), (4, 10, 2, 8));
        assert_eq!((all.rate_ops_per_s, all.latency_ns_avg), (400.0, Some(15)));
        assert_eq!(FleetProgress::default().progress(), Progress::default());
    }

    #[test]
    fn a_slow_host_is_told_once_all_are_in_the_phase() {
        let host = |phase: PhaseKind, rate: f64| HostStatus {
            phase: phase.label().to_owned(),
            rate_ops_per_s: rate,
            reports_in_phase: REPORTS_MIN,
            ..HostStatus::default()
        };
        let mut now =
            FleetProgress { kind: Some(PhaseKind::Measure), count: 3, ..FleetProgress::default() };
        now.hosts.insert("a".into(), host(PhaseKind::Measure, 100.0));
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 20.0));
        now.hosts.insert("c".into(), host(PhaseKind::WarmUp, 1.0));
        assert_eq!((now.sum(|h| h.rate_ops_per_s), now.in_common_phase().count()), (120.0, 2));
        assert_eq!(now.slow(), None, "one is on its way");
        now.hosts.insert("c".into(), host(PhaseKind::Measure, 120.0));
        let (name, share) = now.slow().unwrap();
        assert_eq!((name, share), ("b", 0.25));
        now.hosts.get_mut("b").unwrap().reports_in_phase = 1;
        assert_eq!(now.slow(), None, "its first interval is not whole");
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 101.0));
        assert_eq!(now.slow(), None);
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 85.0));
        assert_eq!(now.slow(), None, "as chance has it");
    }
}

/// Listener of tests, which records messages.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct RecordedMessages(pub(crate) Vec<String>);

#[cfg(test)]
impl plimsoll_record::progress::Watcher for RecordedMessages {
    fn begin(&mut self, _: plimsoll_evidence::run::PhaseKind) {}
    fn progress(
        &mut self,
        _: plimsoll_evidence::run::PhaseKind,
        _: &plimsoll_record::progress::Progress,
    ) {
    }
    fn end(&mut self, _: &plimsoll_evidence::run::Phase) {}
}

#[cfg(test)]
impl Listener for RecordedMessages {
    fn say(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    fn warn(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}
