#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use plimsoll_evidence::events::{CommandRecord, EventRecord};
use plimsoll_evidence::fleet::UntilLost;
use plimsoll_evidence::series::Data;

use super::super::tests::fleet;
use super::super::{FleetVerdict, judge_fleet};
use super::*;
use crate::rules::fixtures::{self, LATENCY_NS, RATE, SECOND_NS};
use crate::verdict::VerdictKind;

/// The sum of all hosts measures from 5 s to 65 s, and the event is at 25 s.
const AT_NS: u64 = 25 * SECOND_NS;

/// Returns the sum of the hosts. Its rate is zero for `outage_s` after the event.
fn sum(outage_s: u64, limits: &str) -> Bundle {
    let event = "[[event]]\nname = \"cut\"\nat = \"20s\"\nhost = \"b\"\nrun = [\"cut\"]\nexpect_lost = \"c\"\n";
    let plan = "[workload.matrix]\nfile_size";
    let mut bundle = fixtures::reads_with(plan, &format!("{limits}{event}{plan}"));
    let is_silent = |tenth: u64| (200..200 + outage_s * 10).contains(&tenth);
    fixtures::rates(&mut bundle, |tenth| match is_silent(tenth) {
        true => (0, LATENCY_NS),
        false => (RATE / 10 + tenth * 7 % 11, LATENCY_NS),
    });
    bundle.series.retain(|row| !matches!(row.data, Data::Class { count: 0, .. }));
    let command = CommandRecord { argv: vec!["cut".to_owned()], ..CommandRecord::default() };
    bundle.run.events = vec![EventRecord {
        name: "cut".to_owned(),
        host: Some("b".to_owned()),
        at_ns: Some(AT_NS),
        command: Some(command),
        ..EventRecord::default()
    }];
    bundle
}

/// Judges a fleet of a, b and c after `change`. Before the change, host c was lost at the event.
fn judged(sum: &Bundle, kind: VerdictKind, change: impl Fn(&mut Fleet)) -> FleetVerdict {
    let (mut fleet, verdicts, merged) = fleet(&[1_000, 1_000], kind);
    fleet.events.clone_from(&sum.run.events);
    let until_lost = Some(UntilLost {
        heard_ns: AT_NS + SECOND_NS / 2,
        reports: 19,
        ops_per_s: Some(98.5),
        bytes_per_s: Some(403_456.0),
    });
    let (name, end) = ("c".to_owned(), HostEnd::LostAsExpected);
    let lost = Host { name, end, run: None, until_lost, ..fleet.hosts[0].clone() };
    fleet.hosts.push(lost);
    change(&mut fleet);
    judge_fleet(&fleet, &sum.plan, &verdicts, Some(&merged), &BTreeMap::new(), sum)
}

fn found<'v>(verdict: &'v FleetVerdict, rule: &str) -> Option<&'v Finding> {
    verdict.findings.iter().find(|finding| finding.rule == rule)
}

#[test]
fn a_host_that_is_lost_with_its_event_is_named_with_its_figures_and_is_no_failure() {
    let sum = sum(0, "");
    let verdict = judged(&sum, VerdictKind::Pass, |_| {});
    let loss = found(&verdict, LOSSES).unwrap();
    assert_eq!(loss.outcome, Outcome::Warn);
    assert_eq!(
        loss.says,
        "host c was lost with event \"cut\", as expected: its last message came 0.5 s after the \
         event, its rate until then was 98.5/s, from 19 reports; the totals and the windows include \
         only the other hosts"
    );
    assert!(found(&verdict, super::super::COMPLETE).is_none(), "{verdict:#?}");
    assert_eq!(verdict.verdict, VerdictKind::Pass, "{verdict:#?}");
    assert!((verdict.total.as_ref().unwrap().ops_per_s - 200.0).abs() < 1e-9, "{verdict:#?}");
    let unheard = judged(&sum, VerdictKind::Pass, |fleet| {
        fleet.hosts[2].until_lost = Some(UntilLost { heard_ns: AT_NS, ..UntilLost::default() });
    });
    assert!(found(&unheard, LOSSES).unwrap().says.contains("its rate until then is unknown"));
}

#[test]
fn a_host_that_does_not_die_or_that_no_event_stops_makes_the_run_invalid() {
    let sum = sum(0, "");
    let alive = judged(&sum, VerdictKind::Pass, |fleet| {
        fleet.hosts[2].end = HostEnd::Reported;
        fleet.hosts[2].until_lost = None;
    });
    let says = "event \"cut\" should have stopped c, but c sent messages until the run ended";
    assert_eq!(found(&alive, LOSSES).unwrap().says, says);
    assert_eq!(alive.verdict, VerdictKind::Invalid);
    let other = judged(&sum, VerdictKind::Pass, |fleet| fleet.hosts[2].name = "d".to_owned());
    let says = "host d was lost, and no event explains it";
    assert_eq!((other.verdict, other.reason.as_str()), (VerdictKind::Invalid, says));
    let never = judged(&sum, VerdictKind::Pass, |fleet| fleet.events[0].at_ns = None);
    assert_eq!(never.reason, "host c was lost, and no event explains it");
}

#[test]
fn limits_of_windows_are_checked_on_the_sum() {
    for (limits, kind, expected) in [
        ("[requirement.during]\noutage_max = \"12s\"\n", VerdictKind::Measured, Some(true)),
        ("[requirement.during]\noutage_max = \"9s\"\n", VerdictKind::Measured, Some(false)),
        ("[requirement.during]\noutage_max = \"9s\"\n", VerdictKind::Pass, Some(false)),
    ] {
        let verdict = judged(&sum(10, limits), kind, |_| {});
        let [check] = &verdict.checks[..] else { panic!("{verdict:#?}") };
        assert_eq!((check.name.as_str(), check.ok), ("during_outage", expected));
        assert!(check.note.starts_with("all hosts"), "{check:?}");
        if expected == Some(false) {
            assert!(
                verdict.reason.starts_with("all hosts together: during outage"),
                "{verdict:#?}"
            );
        }
        let word = if expected == Some(true) { VerdictKind::Pass } else { VerdictKind::Fail };
        assert_eq!(verdict.verdict, word, "{verdict:#?}");
    }
}

#[test]
fn a_host_is_judged_without_the_limits_of_windows() {
    let mut bundle = sum(10, "[requirement.during]\noutage_max = \"9s\"\n");
    assert!(crate::judge(&bundle).checks.iter().any(|check| check.name == "during_outage"));
    let own = crate::judge_host(&bundle);
    assert!(own.checks.is_empty() && own.reason.contains("no requirement"), "{own:#?}");
    bundle.run.events.clear();
    let rules = |verdict: &crate::Verdict| {
        verdict.findings.iter().any(|finding| OF_EVENTS.iter().any(|rule| rule.id == finding.rule))
    };
    assert!(rules(&crate::judge(&bundle)) && !rules(&crate::judge_host(&bundle)));
}

#[test]
fn a_command_that_ran_on_another_host_makes_the_run_invalid() {
    for (host, says) in [
        (Some("a".to_owned()), "event \"cut\" ran on a, but the plan names b"),
        (None, "event \"cut\" ran on the host of `plimsoll run`, but the plan names b"),
    ] {
        let mut sum = sum(0, "");
        sum.run.events[0].host = host;
        let verdict = judged(&sum, VerdictKind::Pass, |_| {});
        assert_eq!((verdict.verdict, verdict.reason.as_str()), (VerdictKind::Invalid, says));
    }
}

/// The sum of hosts whose rate rises until the event, so that it is unknown whether it was steady.
fn rising(limits: &str, accepted: &str) -> Bundle {
    let mut sum = sum(0, limits);
    fixtures::rates(&mut sum, |tenth| match tenth {
        0..200 => (RATE / 10 * (100 + tenth) / 200, LATENCY_NS),
        _ => (RATE / 10 + tenth * 7 % 11, LATENCY_NS),
    });
    sum.plan.evidence.accept_unknown = vec![accepted.to_owned()];
    sum
}

#[test]
fn an_unknown_rule_on_events_decides_as_in_a_single_run() {
    let limits = "[requirement.during]\noutage_max = \"12s\"\n";
    let rule = "before-unsteady";
    let of = |sum: &Bundle| {
        let verdict = judged(sum, VerdictKind::Measured, |_| {});
        assert_eq!(found(&verdict, rule).unwrap().outcome, Outcome::Unknown, "{verdict:#?}");
        verdict
    };
    let open = of(&rising(limits, ""));
    assert_eq!(open.verdict, VerdictKind::Inconclusive, "{open:#?}");
    let accepted = of(&rising(limits, rule));
    assert_eq!(accepted.verdict, VerdictKind::Pass, "{accepted:#?}");
    assert_eq!(accepted.accepted, [rule]);
    assert!(accepted.reason.ends_with("accepts these rules as unknown: before-unsteady"));
    // Without a requirement, the run only lists the open point.
    let mut unstated = rising("", "");
    unstated.plan.requirement = None;
    unstated.plan.claims_assumed = true;
    assert_eq!(of(&unstated).verdict, VerdictKind::Measured);
    // A plan cannot accept that it is unknown whether an event happened.
    let mut missed = rising("", "events");
    missed.plan.claims_assumed = true;
    missed.run.events[0] = EventRecord {
        name: "cut".to_owned(),
        missed: "the run ended before".to_owned(),
        ..EventRecord::default()
    };
    let verdict = judged(&missed, VerdictKind::Measured, |fleet| drop(fleet.hosts.pop()));
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{verdict:#?}");
}
