//! Compares the hosts' I/O with the storage system's own counters.
//!
//! A host's cache, a server in between, or a wrongly mounted share can answer I/O that never
//! reaches the storage system. The hosts cannot detect this. The storage system's own counters show
//! such I/O, if the plan names these counters.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::{Class, CommonWindow, Fleet, System};
use plimsoll_plan::MetricsEndpoint;

use super::SYSTEM;
use crate::finding::{Finding, Outcome};
use crate::rules::evidence;

/// Tolerance for the counters. The I/O between two readings of the counters is tolerated in
/// addition.
const SLACK: f64 = 0.1;
/// Minimum number of I/Os for the comparison. The system's internal I/O can reach this number.
const COUNT_MIN: u64 = 100;

/// I/O that the hosts sent to the system, in one direction.
struct DirectionTotals {
    word: &'static str,
    count: u64,
    bytes: u64,
    /// Value of the storage system's counters. `None` if the plan names no such counters.
    counted: Option<f64>,
}

enum CounterAgreement {
    Agrees,
    /// The storage system counted less I/O than the hosts. Contains the counted share, and the unit
    /// of the I/O in words.
    Less(f64, String),
    More(f64, String),
}

/// Compares the I/O with the counters. `None` if the plan names no metrics of the system, or if the
/// hosts themselves recorded them (earlier versions).
pub(super) fn check(
    fleet: &Fleet,
    metrics: &[MetricsEndpoint],
    bundles: &BTreeMap<String, &Bundle>,
) -> Option<Finding> {
    let by_hosts = bundles.values().any(|bundle| !bundle.plan.observe.metrics.is_empty());
    let window = fleet.window?;
    let Some(system) = &fleet.system else {
        if metrics.is_empty() || by_hosts {
            return None;
        }
        let says = "the plan names the storage system's own counters, but the evidence does not \
                    contain their values";
        let finding = Finding::new(SYSTEM, Outcome::Unknown, says);
        return Some(
            finding.advise("run again with a version of Plimsoll that reads these counters"),
        );
    };
    let sides = sides(fleet, system);
    let slack = SLACK + system.gap_ns_max as f64 / window.duration_ns.max(1) as f64;
    let agreements: Vec<(&DirectionTotals, CounterAgreement)> = sides
        .iter()
        .filter(|side| side.count >= COUNT_MIN)
        .filter_map(|side| Some((side, compare_counters(side, slack)?)))
        .collect();
    let finding = summarise(&agreements, system, window);
    let finding = finding.with("gap_ns_max", system.gap_ns_max);
    Some(sides.iter().fold(finding, |finding, side| {
        let name = |of: &str| format!("{}_{of}", side.word);
        let finding = finding.with(&name("count"), side.count).with(&name("bytes"), side.bytes);
        match side.counted {
            Some(counted) => finding.with(&name("by_the_system"), counted),
            None => finding,
        }
    }))
}

fn summarise(
    agreements: &[(&DirectionTotals, CounterAgreement)],
    system: &System,
    window: CommonWindow,
) -> Finding {
    let less = agreements.iter().find_map(|(side, agreement)| match agreement {
        CounterAgreement::Less(share, of) => Some((side.word, *share, of)),
        _ => None,
    });
    if let Some((word, share, of)) = less {
        let says = format!(
            "the storage system counted only {} of {of} that all hosts {word}: a cache in front of \
             it served the other I/O, or its counters omit a part{}",
            evidence::percent(share),
            match system.unknown.is_empty() {
                true => String::new(),
                false => format!(" (unknown counters: {})", system.unknown.join("; ")),
            }
        );
        return Finding::new(SYSTEM, Outcome::Unknown, says).advise(
            "use direct I/O and more data than fits into the hosts' caches, and name counters that \
             include all I/O of this volume",
        );
    }
    if !system.unknown.is_empty() {
        let says =
            format!("the storage system's counters are unknown: {}", system.unknown.join("; "));
        return Finding::new(SYSTEM, Outcome::Warn, says)
            .advise("make sure that the coordinator can reach the endpoint during the whole run");
    }
    let more = agreements.iter().find_map(|(side, agreement)| match agreement {
        CounterAgreement::More(times, of) => Some((side.word, *times, of)),
        _ => None,
    });
    if let Some((word, times, of)) = more {
        let says = format!(
            "the storage system counted {times:.1} times {of} that all hosts {word}: other clients \
             use it too, or its counters include copies"
        );
        return Finding::new(SYSTEM, Outcome::Warn, says)
            .advise("name counters that include only the clients' I/O on this volume");
    }
    if agreements.is_empty() {
        let says = format!(
            "for {:.1} s, the storage system's counters do not include the load of all hosts",
            window.duration_ns as f64 / 1e9
        );
        return Finding::new(SYSTEM, Outcome::Warn, says)
            .advise("name counters of reads or writes (`read_source.*`, `write_destination.*`)");
    }
    let words: Vec<&str> = agreements.iter().map(|(side, _)| side.word).collect();
    let says = format!(
        "the storage system's counters match the load that all hosts {}",
        words.join(" and ")
    );
    Finding::new(SYSTEM, Outcome::Pass, says)
}

fn sides(fleet: &Fleet, system: &System) -> [DirectionTotals; 2] {
    let side = |word, is_read, of: &BTreeMap<String, f64>| {
        let classes =
            || fleet.classes.iter().filter(move |class: &&Class| class.is_read == is_read);
        DirectionTotals {
            word,
            count: classes().map(|class| class.count).fold(0, u64::saturating_add),
            bytes: classes().map(|class| class.size_bytes).fold(0, u64::saturating_add),
            counted: (!of.is_empty()).then(|| of.values().sum()),
        }
    };
    [
        side("read", true, &system.sources.reads_from),
        side("wrote", false, &system.sources.writes_to),
    ]
}

/// Compares one direction. The plan does not state whether the counters count I/Os or bytes. The
/// function uses the unit whose total is closer to the counters.
fn compare_counters(side: &DirectionTotals, slack: f64) -> Option<CounterAgreement> {
    let counted = side.counted?;
    let ratio = |requested: u64| counted / requested.max(1) as f64;
    let far = |ratio: f64| ratio.max(f64::MIN_POSITIVE).ln().abs();
    let (of_count, of_bytes) = (ratio(side.count), ratio(side.bytes));
    let (ratio, of) = match far(of_count) <= far(of_bytes) {
        true => (of_count, format!("{} I/Os", side.count)),
        false => (of_bytes, evidence::size(side.bytes)),
    };
    Some(match ratio {
        r if !r.is_finite() || r < 1.0 - slack => CounterAgreement::Less(ratio, of),
        r if r > 1.0 + slack => CounterAgreement::More(ratio, of),
        _ => CounterAgreement::Agrees,
    })
}
