//! Who is told how a run goes.

use std::collections::BTreeMap;

use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress::Watcher;
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
    /// How often it told of itself in this phase, about once a second.
    pub told_in_phase: u32,
}

/// A host is told of that carries less than this share of the average: the rule `fleet-balance` has the same.
const SLOW_SHARE: f64 = 0.9;
/// No host is called slow before each has told this often how it goes: what is told first is of no whole interval.
const TOLD_MIN: u32 = 3;

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
        (average > 0.0 && share < SLOW_SHARE).then_some((name.as_str(), share))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
    }
}
