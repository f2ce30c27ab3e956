//! Combines the hosts' own verdicts: their claims, limits, findings and declarations. A claim must
//! be supported on all hosts. Each limit is shown for the host with the smallest margin.
//!
//! A sum proves no more than its weakest part, so the host with the weakest evidence determines the
//! support of a claim. Claims are supported only if a fleet rule confirms that the total is the sum
//! over the hosts.

use std::collections::BTreeMap;

use plimsoll_evidence::fleet::Fleet;

use super::{FleetVerdict, SUMS};
use crate::claim::ClaimStatus;
use crate::finding::{Finding, Outcome};
use crate::verdict::{Check, Quantity, Verdict};

pub(super) fn add(
    verdict: FleetVerdict,
    fleet: &Fleet,
    verdicts: &BTreeMap<String, Verdict>,
) -> FleetVerdict {
    let reported: Vec<(&str, &Verdict)> = fleet
        .hosts
        .iter()
        .filter_map(|host| Some((host.name.as_str(), verdicts.get(&host.name)?)))
        .collect();
    let all = |of_fleet: &[String], of: fn(&Verdict) -> &Vec<String>| {
        let of_hosts = reported.iter().flat_map(|(_, verdict)| of(verdict));
        let mut all: Vec<String> = of_fleet.iter().chain(of_hosts).cloned().collect();
        all.sort();
        all.dedup();
        all
    };
    FleetVerdict {
        demonstration: reported.iter().any(|(_, verdict)| verdict.demonstration),
        claims: claims(&verdict.findings, &reported, fleet.counted().count()),
        checks: [&verdict.checks[..], &checks(&reported)].concat(),
        host_findings: findings(&reported),
        accepted: all(&verdict.accepted, |verdict| &verdict.accepted),
        declared: all(&verdict.declared, |verdict| &verdict.declared),
        ..verdict
    }
}

fn claims(
    of_fleet: &[Finding],
    reported: &[(&str, &Verdict)],
    hosts: usize,
) -> BTreeMap<String, ClaimStatus> {
    let is_open = |finding: &&Finding| matches!(finding.outcome, Outcome::Fail | Outcome::Unknown);
    let is_changed = |finding: &Finding| finding.rule == SUMS && finding.outcome == Outcome::Fail;
    let least = match of_fleet.iter().find(is_open) {
        Some(_) if of_fleet.iter().any(is_changed) => ClaimStatus::Refuted,
        Some(_) => ClaimStatus::NotShown,
        None if reported.len() < hosts => ClaimStatus::NotShown,
        None => ClaimStatus::Believable,
    };
    let names = reported.iter().flat_map(|(_, verdict)| verdict.claims.keys());
    let status = |name: &String| {
        let of = |(_, verdict): &(&str, &Verdict)| {
            verdict.claims.get(name).copied().unwrap_or(ClaimStatus::NotShown)
        };
        reported.iter().map(of).fold(least, worse)
    };
    names.map(|name| (name.clone(), status(name))).collect()
}

fn worse(a: ClaimStatus, b: ClaimStatus) -> ClaimStatus {
    let rank = |status| match status {
        ClaimStatus::Believable => 0,
        ClaimStatus::AsDeclared => 1,
        ClaimStatus::NotShown => 2,
        ClaimStatus::Refuted => 3,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// Returns one check for each limit. It is the check of the host with the smallest margin.
fn checks(reported: &[(&str, &Verdict)]) -> Vec<Check> {
    let mut worst: Vec<(&str, Check)> = Vec::new();
    for (host, verdict) in reported {
        for check in &verdict.checks {
            match worst.iter_mut().find(|(_, known)| known.name == check.name) {
                Some(known) if is_nearer(check, &known.1) => *known = (*host, check.clone()),
                Some(_) => {}
                None => worst.push((*host, check.clone())),
            }
        }
    }
    let noted = |(host, mut check): (&str, Check)| {
        let place = match reported.len() {
            1 => host.to_owned(),
            hosts => format!("{host}, worst of {hosts} hosts"),
        };
        check.note = match check.note.is_empty() {
            true => place,
            false => format!("{place}: {}", check.note),
        };
        check
    };
    worst.into_iter().map(noted).collect()
}

/// Returns true if `check` is worse than `known`. A failed check is worst, then an undecided check,
/// then a check that is met. Of two equal checks, the one closer to its limit is worse.
fn is_nearer(check: &Check, known: &Check) -> bool {
    let rank = |check: &Check| match check.ok {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    let used = |check: &Check| {
        let (limit, measured) = values(&check.quantity);
        let share = measured.map_or(f64::INFINITY, |measured| measured / limit);
        if check.at_least { 1.0 / share } else { share }
    };
    match rank(check).cmp(&rank(known)) {
        std::cmp::Ordering::Equal => used(check) > used(known),
        order => order.is_lt(),
    }
}

fn values(quantity: &Quantity) -> (f64, Option<f64>) {
    match *quantity {
        Quantity::Latency { limit_ns, measured_ns } => {
            (limit_ns as f64, measured_ns.map(|ns| ns as f64))
        }
        Quantity::Rate { limit_per_s, measured_per_s } => (limit_per_s, measured_per_s),
        Quantity::Count { limit_count, measured_count } => {
            (limit_count as f64, measured_count.map(|count| count as f64))
        }
        Quantity::Bandwidth { limit_bytes_per_s, measured_bytes_per_s } => {
            (limit_bytes_per_s as f64, measured_bytes_per_s)
        }
        Quantity::Capacity { limit_bytes, measured_bytes } => {
            (limit_bytes as f64, measured_bytes.map(|bytes| bytes as f64))
        }
    }
}

/// Returns the findings on the hosts, worst first. If a rule has findings with the same outcome on
/// several hosts, only one finding is returned, with the text of the first host.
fn findings(reported: &[(&str, &Verdict)]) -> Vec<Finding> {
    let mut groups: Vec<(Vec<&str>, &Finding)> = Vec::new();
    for (host, verdict) in reported {
        for finding in &verdict.findings {
            let alike = |(_, known): &&mut (Vec<&str>, &Finding)| {
                known.rule == finding.rule && known.outcome == finding.outcome
            };
            match groups.iter_mut().find(alike) {
                Some((hosts, _)) if hosts.last() == Some(host) => {}
                Some((hosts, _)) => hosts.push(host),
                None => groups.push((vec![host], finding)),
            }
        }
    }
    groups.sort_by_key(|(_, finding)| finding.outcome);
    let said = |(hosts, finding): (Vec<&str>, &Finding)| {
        let same = |host: &&str| {
            let of = reported.iter().find(|(name, _)| name == host).map(|(_, v)| &v.findings);
            of.into_iter().flatten().any(|other| other.says == finding.says)
        };
        let says = match (hosts.as_slice(), hosts.iter().all(same)) {
            ([host], _) => format!("on {host}: {}", finding.says),
            (_, true) => format!("on {}: {}", places(&hosts, reported.len()), finding.says),
            ([host, others @ ..], false) => {
                let others = places(others, reported.len());
                format!("on {host}: {} (the same rule also applies on {others})", finding.says)
            }
            ([], false) => finding.says.clone(),
        };
        Finding { says, ..finding.clone() }
    };
    groups.into_iter().map(said).collect()
}

/// Returns the names of the hosts. If there are many hosts, only some of the names are returned.
fn places(hosts: &[&str], of: usize) -> String {
    const NAMED_MAX: usize = 4;
    match hosts {
        [_, _] if of == 2 => "both hosts".to_owned(),
        hosts if hosts.len() == of => format!("all {of} hosts"),
        hosts if hosts.len() > NAMED_MAX => {
            let more = hosts.len() - NAMED_MAX;
            format!("{} and {more} more", hosts[..NAMED_MAX].join(", "))
        }
        hosts => hosts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(claims: &[(&str, ClaimStatus)]) -> Verdict {
        let mut verdict = crate::judge(&crate::rules::fixtures::reads());
        verdict.findings.clear();
        verdict.checks.clear();
        verdict.claims = claims.iter().map(|(name, s)| ((*name).to_owned(), *s)).collect();
        verdict
    }

    fn check(measured_ns: Option<u64>, ok: Option<bool>) -> Check {
        let quantity = Quantity::Latency { limit_ns: 20_000_000, measured_ns };
        Check { ok, ..Check::undecided("read_latency_avg", quantity, false) }
    }

    #[test]
    fn a_claim_stands_as_on_the_host_where_it_stands_worst_and_on_none_where_the_sum_is_open() {
        use ClaimStatus::{AsDeclared, Believable, NotShown, Refuted};
        let one = verdict(&[("media-read", Believable), ("requirement", Believable)]);
        let two = verdict(&[("media-read", AsDeclared), ("tail-latency", Refuted)]);
        let reported = [("a", &one), ("b", &two)];
        let status = |of_fleet: &[Finding], hosts| {
            let all = claims(of_fleet, &reported, hosts);
            (all["media-read"], all["requirement"], all["tail-latency"])
        };
        assert_eq!(status(&[], 2), (AsDeclared, NotShown, Refuted), "b does not say the second");
        assert_eq!(status(&[], 3), (NotShown, NotShown, Refuted), "a third host is missing");
        let warned = Finding::new(SUMS, Outcome::Warn, "");
        assert_eq!(status(&[warned], 2).0, AsDeclared);
        let open = Finding::new(super::super::TOGETHER, Outcome::Unknown, "");
        assert_eq!(status(std::slice::from_ref(&open), 2).0, NotShown);
        let changed = Finding::new(SUMS, Outcome::Fail, "");
        assert_eq!(status(&[open, changed], 2).0, Refuted);
    }

    #[test]
    fn a_limit_is_told_of_the_host_that_keeps_it_least() {
        let least = |checks: &[Check]| {
            let verdicts: Vec<Verdict> = checks
                .iter()
                .map(|check| Verdict { checks: vec![check.clone()], ..verdict(&[]) })
                .collect();
            let reported: Vec<(&str, &Verdict)> =
                ["a", "b", "c"].into_iter().zip(&verdicts).collect();
            let all = super::checks(&reported);
            assert_eq!(all.len(), 1);
            all[0].note.clone()
        };
        let (quick, slow) = (check(Some(5), Some(true)), check(Some(9), Some(true)));
        let (broken, open) = (check(Some(30_000_000), Some(false)), check(None, None));
        assert_eq!(least(&[quick.clone(), slow.clone()]), "b, worst of 2 hosts");
        assert_eq!(least(&[slow.clone(), open.clone(), quick.clone()]), "b, worst of 3 hosts");
        assert_eq!(least(&[open, broken, slow]), "b, worst of 3 hosts");
        assert_eq!(least(&[quick]), "a");
        let rate = |measured: f64| Check {
            ok: Some(true),
            ..Check::undecided(
                "achieved_iops",
                Quantity::Rate { limit_per_s: 100.0, measured_per_s: Some(measured) },
                true,
            )
        };
        assert_eq!(least(&[rate(500.0), rate(101.0)]), "b, worst of 2 hosts");
    }

    #[test]
    fn what_several_hosts_found_is_told_once_with_their_names() {
        let with = |says: &[(&str, Outcome, &str)]| Verdict {
            findings: says.iter().map(|(rule, o, says)| Finding::new(rule, *o, *says)).collect(),
            ..verdict(&[])
        };
        let one = with(&[("same", Outcome::Warn, "alike"), ("own", Outcome::Unknown, "of 1")]);
        let two = with(&[("same", Outcome::Warn, "alike"), ("other", Outcome::Warn, "of 2")]);
        let three = with(&[("other", Outcome::Warn, "of 3"), ("same", Outcome::Warn, "alike")]);
        let reported = [("a", &one), ("b", &two), ("c", &three)];
        let says: Vec<String> = findings(&reported).into_iter().map(|f| f.says).collect();
        assert_eq!(
            says,
            ["on a: of 1", "on all 3 hosts: alike", "on b: of 2 (the same rule also applies on c)"]
        );
        assert_eq!(places(&["a", "b"], 2), "both hosts");
        let names = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(places(&names, 9), "a, b, c, d and 2 more");
    }
}
