//! Who is told how a run goes.

use std::collections::BTreeMap;

use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress::{Progress, Watcher};
use serde::{Deserialize, Serialize};

use crate::finished::Finished;

/// Is told of phases as a [`Watcher`] is, and of what happens beside them.
pub trait Listener: Watcher {
    /// A sentence on what goes on.
    fn say(&mut self, text: &str);
    /// What has to be told, even to somebody who wants to hear nothing else.
    fn warn(&mut self, text: &str);
    /// Which of several parts begins: a stage of a job, a step of a search, a point, a run.
    fn part(&mut self, text: &str) {
        self.say(text);
    }
    /// How several hosts go together; about once a second.
    fn fleet(&mut self, now: &FleetNow) {
        let _ = now;
    }
    /// A run of several, or the only one, has ended and was judged.
    fn finished(&mut self, run: &Finished) {
        let _ = run;
    }
}

/// How several hosts go together.
#[derive(Clone, Debug, Default)]
pub struct FleetNow {
    /// What most of them do.
    pub kind: Option<PhaseKind>,
    /// How many there are; those that have told nothing yet are not in `hosts`.
    pub count: usize,
    /// What each told last, by name.
    pub hosts: BTreeMap<String, HostNow>,
}

/// How one of several hosts goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNow {
    /// The phase that it is in.
    pub phase: String,
    /// I/Os per second.
    pub rate_ops_per_s: f64,
    /// Bytes per second.
    pub rate_bytes_per_s: f64,
    /// Mean latency; `None`: nothing has ended lately.
    pub latency_ns_avg: Option<u64>,
    /// Since its phase began, and how long that lasts; 0 where time is not what it goes by.
    pub elapsed_ns: u64,
    /// As above.
    pub total_ns: u64,
    /// Bytes done, and of how many; 0 where bytes are not what it goes by.
    pub done_bytes: u64,
    /// As above.
    pub total_bytes: u64,
    /// How often it told of itself in this phase, about once a second.
    pub told_in_phase: u32,
}

/// A host is told of that carries less than this share of the average: the rule `fleet-balance` has the same.
const SLOW_SHARE: f64 = 0.9;
/// No host is called slow before each has told this often how it goes: what is told first is of no whole interval.
const TOLD_MIN: u32 = 3;
/// And none that lies within so many standard deviations of what chance gives: a Poisson stream of 300/s has between 230 and
/// 370 arrivals in most seconds.
const DEVIATIONS: f64 = 4.0;

impl FleetNow {
    /// The hosts that are in the phase that most are in.
    pub fn together(&self) -> impl Iterator<Item = (&String, &HostNow)> {
        let label = self.kind.map_or("", PhaseKind::label);
        self.hosts.iter().filter(move |(_, host)| host.phase == label)
    }

    /// The sum of a figure over them.
    pub fn sum(&self, of: fn(&HostNow) -> f64) -> f64 {
        self.together().map(|(_, host)| of(host)).sum()
    }

    /// All of them as if they were one: sums, the mean latency of their I/Os, and the time of the one that is behind.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let hosts = || self.together().map(|(_, host)| host);
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

    /// The slowest of them with its share of their average rate, where all are in the phase and it is well below.
    #[must_use]
    pub fn slow(&self) -> Option<(&str, f64)> {
        let count = self.together().filter(|(_, host)| host.told_in_phase >= TOLD_MIN).count();
        if count < self.count.max(2) {
            return None;
        }
        let average = self.sum(|host| host.rate_ops_per_s) / count as f64;
        let rate = |host: &HostNow| host.rate_ops_per_s;
        let (name, host) = self.together().min_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
        let share = host.rate_ops_per_s / average;
        // What was told is of about a second.
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
        let host = |elapsed_ns, rate_ops_per_s, latency_ns| HostNow {
            phase: PhaseKind::Measure.label().to_owned(),
            rate_ops_per_s,
            latency_ns_avg: latency_ns,
            elapsed_ns,
            total_ns: 10,
            done_bytes: 1,
            total_bytes: 4,
            ..HostNow::default()
        };
        let hosts = [("a", host(6, 100.0, Some(30))), ("b", host(4, 300.0, Some(10)))];
        let late =
            ("c", HostNow { phase: PhaseKind::WarmUp.label().to_owned(), ..host(1, 9.0, Some(9)) });
        let now = FleetNow {
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
        assert_eq!(FleetNow::default().progress(), Progress::default());
    }

    #[test]
    fn a_slow_host_is_told_once_all_are_in_the_phase() {
        let host = |phase: PhaseKind, rate: f64| HostNow {
            phase: phase.label().to_owned(),
            rate_ops_per_s: rate,
            told_in_phase: TOLD_MIN,
            ..HostNow::default()
        };
        let mut now = FleetNow { kind: Some(PhaseKind::Measure), count: 3, ..FleetNow::default() };
        now.hosts.insert("a".into(), host(PhaseKind::Measure, 100.0));
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 20.0));
        now.hosts.insert("c".into(), host(PhaseKind::WarmUp, 1.0));
        assert_eq!((now.sum(|h| h.rate_ops_per_s), now.together().count()), (120.0, 2));
        assert_eq!(now.slow(), None, "one is on its way");
        now.hosts.insert("c".into(), host(PhaseKind::Measure, 120.0));
        let (name, share) = now.slow().unwrap();
        assert_eq!((name, share), ("b", 0.25));
        now.hosts.get_mut("b").unwrap().told_in_phase = 1;
        assert_eq!(now.slow(), None, "its first interval is not whole");
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 101.0));
        assert_eq!(now.slow(), None);
        now.hosts.insert("b".into(), host(PhaseKind::Measure, 85.0));
        assert_eq!(now.slow(), None, "as chance has it");
    }
}
