use plimsoll_evidence::fleet::{CommonWindow, HostPhase, HostRun, Offset, Start};
use plimsoll_plan::MetricsEndpoint;

use super::*;
use crate::finding::Finding;

const SECOND: u64 = 1_000_000_000;

/// Judges a fleet whose bundles are not available.
fn judge_fleet(
    fleet: &Fleet,
    verdicts: &BTreeMap<String, Verdict>,
    merged: Option<&MergedEvidence>,
) -> FleetVerdict {
    judge_with(fleet, verdicts, merged, &BTreeMap::new(), &[])
}

/// Judges a fleet whose plan has these metrics and no events.
fn judge_with(
    fleet: &Fleet,
    verdicts: &BTreeMap<String, Verdict>,
    merged: Option<&MergedEvidence>,
    bundles: &BTreeMap<String, &Bundle>,
    metrics: &[MetricsEndpoint],
) -> FleetVerdict {
    let mut sum = crate::rules::fixtures::reads();
    sum.plan.requirement = None;
    sum.plan.observe.metrics = metrics.to_vec();
    super::judge_fleet(fleet, &sum.plan, verdicts, merged, bundles, &sum)
}

fn class(count: u64) -> Class {
    Class {
        name: "load.read".into(),
        group: "transactional".into(),
        is_read: true,
        count,
        size_bytes: count * 4096,
        latency_count: count,
        latency_ns_sum: count * 1_000_000,
        latency_ns_max: 2_000_000,
        errors: 0,
    }
}

fn host(name: &str, count: u64, start_ns: u64) -> Host {
    Host {
        name: name.into(),
        host: name.into(),
        address: "10.0.0.1".into(),
        boot_id: name.into(),
        version: "1".into(),
        build: "b".into(),
        clock: vec![Offset { offset_ns: 0, error_ns: 100_000, at_ns: -1 }],
        end: HostEnd::Reported,
        says: String::new(),
        until_lost: None,
        run: Some(HostRun {
            run_id: format!("run-{name}"),
            seal_sha256: String::new(),
            start_ns: 0,
            starts: Vec::new(),
            phases: vec![HostPhase {
                kind: PhaseKind::Measure,
                start_ns,
                duration_ns: 10 * SECOND,
                bytes: 0,
                reached: true,
            }],
            measured_ns: 10 * SECOND,
            classes: vec![class(count)],
            counters: BTreeMap::new(),
        }),
    }
}

fn verdict(kind: VerdictKind) -> Verdict {
    let mut verdict = crate::judge(&crate::rules::fixtures::reads());
    verdict.verdict = kind;
    verdict.reason = "as it was made".into();
    verdict.findings.clear();
    verdict
}

/// Creates a fleet with one host for each I/O count. All hosts have the verdict `kind`.
pub(super) fn fleet(
    counts: &[u64],
    kind: VerdictKind,
) -> (Fleet, BTreeMap<String, Verdict>, MergedEvidence) {
    let names = ["a", "b", "c", "d"];
    let hosts: Vec<Host> = counts.iter().zip(names).map(|(n, name)| host(name, *n, 0)).collect();
    let verdicts = hosts.iter().map(|host| (host.name.clone(), verdict(kind))).collect();
    let count = counts.iter().sum();
    let mut read = plimsoll_evidence::latency::histogram();
    read.record_n(1_000_000, count).unwrap();
    let merged = MergedEvidence {
        hosts: counts.iter().map(|count| (vec![class(*count)], 10 * SECOND)).collect(),
        classes: vec![class(count)],
        latency: BTreeMap::from([("load.read".to_owned(), read)]),
        ..MergedEvidence::default()
    };
    let fleet = Fleet {
        fleet_version: 1,
        tool_version: "1".into(),
        build: "b".into(),
        run_id: "fleet".into(),
        name: "p".into(),
        plan_sha256: String::new(),
        signed_by: String::new(),
        started_unix_ns: 0,
        planned_measure_ns: 10 * SECOND,
        interval_ns: SECOND,
        ended_early: String::new(),
        experiment: None,
        ledger: None,
        system: None,
        events: Vec::new(),
        window: Some(CommonWindow {
            start_ns: 0,
            duration_ns: 10 * SECOND,
            start_skew_ns: 1_000,
            start_skew_error_ns: 200_000,
            end_skew_ns: 1_000,
            intervals: 10,
            cut: false,
        }),
        hosts,
        classes: merged.classes.clone(),
    };
    (fleet, verdicts, merged)
}

fn found<'v>(verdict: &'v FleetVerdict, rule: &str) -> &'v Finding {
    verdict.findings.iter().find(|f| f.rule == rule).unwrap_or_else(|| panic!("{verdict:#?}"))
}

#[test]
fn a_fleet_passes_where_each_host_does_and_its_figures_are_sums() {
    let (fleet, verdicts, merged) = fleet(&[1_000, 1_100], VerdictKind::Pass);
    let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Pass, "{judged:#?}");
    assert_eq!(judged.passed, [COMPLETE, TOGETHER, SUMS, ALIKE, BALANCE]);
    let total = judged.total.unwrap();
    assert!((total.ops_per_s - 210.0).abs() < 1e-9, "{}", total.ops_per_s);
    assert!((total.host_ops_per_s_avg - 105.0).abs() < 1e-9);
    assert_eq!((total.slowest_host.as_str(), total.classes[0].count), ("a", 2_100));
    assert!(total.classes[0].latency_ns_p99.is_some());
    assert!(total.classes[0].latency_ns_p999.is_none(), "2,100 samples bear no p99.9");
}

#[test]
fn a_rate_is_of_what_the_achieved_rate_counts_and_not_of_logs() {
    let (mut fleet, verdicts, mut merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    let log = Class {
        name: "log.write".into(),
        group: "log".into(),
        is_read: false,
        latency_ns_max: 9_000_000,
        ..class(50_000)
    };
    for (host, (classes, _)) in fleet.hosts.iter_mut().zip(&mut merged.hosts) {
        host.run.as_mut().unwrap().classes.push(log.clone());
        classes.push(log.clone());
    }
    let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
    assert!((judged.total.unwrap().ops_per_s - 200.0).abs() < 1e-9);
    let host = &judged.hosts[0];
    assert_eq!((host.latency_ns_avg, host.latency_ns_max), (Some(1_000_000), Some(2_000_000)));
    // If the hosts did no other I/O, the log I/O counts.
    for host in &mut fleet.hosts {
        host.run.as_mut().unwrap().classes.retain(|class| class.group == "log");
    }
    let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
    assert_eq!(judged.hosts[0].ops_per_s, Some(5_000.0));
}

#[test]
fn the_worst_of_the_hosts_verdicts_is_the_fleets_and_names_its_host() {
    use VerdictKind as V;
    for (mine, expected) in [
        (V::Invalid, V::Invalid),
        (V::Fail, V::Fail),
        (V::Inconclusive, V::Inconclusive),
        (V::Measured, V::Measured),
    ] {
        let (fleet, mut verdicts, merged) = fleet(&[1_000, 1_000], V::Pass);
        verdicts.insert("b".into(), verdict(mine));
        let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
        assert_eq!(judged.verdict, expected);
        assert!(mine == V::Measured || judged.reason.starts_with("b: "), "{}", judged.reason);
    }
}

#[test]
fn a_host_that_is_missing_makes_it_invalid_by_name_and_leaves_no_sum() {
    for end in [HostEnd::Lost, HostEnd::Failed, HostEnd::WithoutEvidence] {
        let (mut fleet, mut verdicts, merged) = fleet(&[1_000, 1_000, 1_000], VerdictKind::Pass);
        fleet.hosts[1].end = end;
        fleet.hosts[1].says = "no heartbeat for 10 s".into();
        fleet.hosts[1].run = None;
        verdicts.remove("b");
        let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
        assert_eq!(judged.verdict, VerdictKind::Invalid, "{end:?}");
        assert!(
            judged.reason.contains('b') && judged.reason.contains("no heartbeat"),
            "{judged:?}"
        );
        assert!(judged.total.is_none(), "a smaller sum is none");
    }
}

#[test]
fn hosts_that_did_not_measure_together_are_told_by_the_last_ones_name() {
    let (mut apart, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    apart.hosts[1] = host("b", 1_000, 9_000_000);
    apart.window.as_mut().unwrap().start_skew_ns = 9_000_000;
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Pass);
    assert_eq!(found(&judged, TOGETHER).outcome, Outcome::Warn);
    assert!(found(&judged, TOGETHER).says.contains("the last host to start was b"));

    let window = apart.window.as_mut().unwrap();
    (window.cut, window.duration_ns) = (true, 9_400_000_000);
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Inconclusive);

    apart.window.as_mut().unwrap().duration_ns = 5 * SECOND;
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Invalid);
    assert!(judged.reason.contains("the last host to start was b"), "{}", judged.reason);
    let advice = |judged: &FleetVerdict| found(judged, TOGETHER).advice.clone();
    assert!(advice(&judged).contains("an earlier phase took longer"), "{judged:#?}");
    // The start time reached the host late.
    let late = apart.hosts[1].run.as_mut().unwrap();
    late.starts = vec![Start { kind: PhaseKind::Measure, ready_ns: 0, scheduled_ns: 0 }];
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert!(advice(&judged).contains("connection to the NATS server"), "{judged:#?}");

    apart.window = None;
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Invalid);
    assert!(judged.total.is_none());

    apart.ended_early = "the operator interrupted it".into();
    let judged = judge_fleet(&apart, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Inconclusive);
}

#[test]
fn a_sum_that_is_none_is_refuted() {
    let (mut more, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    more.classes[0].count += 1;
    let judged = judge_fleet(&more, &verdicts, Some(&merged));
    assert_eq!(
        (judged.verdict, judged.reason.contains("differ from the sums")),
        (VerdictKind::Invalid, true)
    );
    let (mut more, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    if let Some(run) = more.hosts[0].run.as_mut() {
        run.classes[0].count += 1;
    }
    let judged = judge_fleet(&more, &verdicts, Some(&merged));
    assert_eq!(judged.verdict, VerdictKind::Invalid);
}

#[test]
fn a_slow_host_is_told_with_what_only_its_own_evidence_shows() {
    let (slow, mut verdicts, merged) = fleet(&[1_000, 400, 1_000], VerdictKind::Pass);
    for (name, own) in [("a", "both"), ("b", "both"), ("b", "cpu-steal"), ("c", "both")] {
        let finding = Finding::new(own, Outcome::Warn, format!("{own} of {name}"));
        verdicts.get_mut(name).unwrap().findings.push(finding);
    }
    let judged = judge_fleet(&slow, &verdicts, Some(&merged));
    let says = &found(&judged, BALANCE).says;
    assert!(
        says.starts_with("host b reaches 40.0/s, 50.0 %") && says.ends_with("cpu-steal of b"),
        "{says}"
    );
}

#[test]
fn agents_of_one_machine_or_of_several_builds_are_told() {
    let (mut one, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    one.hosts.iter_mut().for_each(|host| host.boot_id = "same".into());
    let judged = judge_fleet(&one, &verdicts, Some(&merged));
    assert!(found(&judged, ALIKE).says.contains("one machine"));
    one.hosts[1].build = "other".into();
    let judged = judge_fleet(&one, &verdicts, Some(&merged));
    assert!(found(&judged, ALIKE).says.contains("different builds"));
}

#[test]
fn a_slow_hosts_cause_is_the_value_that_stands_out() {
    let (slow, verdicts, merged) = fleet(&[1_000, 400, 1_000], VerdictKind::Pass);
    let well = crate::rules::fixtures::reads();
    let mut held = well.clone();
    held.observed.cpu.steal_avg = Some(0.25);
    let bundles: BTreeMap<String, &Bundle> =
        [("a", &well), ("b", &held), ("c", &well)].map(|(name, b)| (name.into(), b)).into();
    let judged = judge_with(&slow, &verdicts, Some(&merged), &bundles, &[]);
    let says = &found(&judged, BALANCE).says;
    assert!(says.contains("the hypervisor took CPU time from it: 25 %"), "{says}");
    assert!(!judged.passed.contains(&NETWORK.to_owned()), "no network, nothing passed");
}

#[test]
fn what_all_hosts_asked_is_held_against_their_mounts_each_machines_once() {
    use plimsoll_evidence::observed::NetworkMount;
    let (mut two, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    let requested = crate::rules::evidence::read_bytes(&crate::rules::fixtures::reads());
    let far = |server_read_bytes| {
        let mut bundle = crate::rules::fixtures::reads();
        let mount_point = "/mnt".to_owned();
        bundle.observed.network_mounts =
            vec![NetworkMount { mount_point, server_read_bytes, ..NetworkMount::default() }];
        bundle
    };
    let judge = |fleet: &Fleet, a: &Bundle, b: &Bundle| {
        let bundles = [("a".to_owned(), a), ("b".to_owned(), b)].into();
        judge_with(fleet, &verdicts, Some(&merged), &bundles, &[])
    };
    let (whole, none) = (far(requested), far(0));
    assert!(judge(&two, &whole, &whole).passed.contains(&NETWORK.to_owned()));
    let judged = judge(&two, &whole, &none);
    assert_eq!(found(&judged, NETWORK).outcome, Outcome::Warn);
    assert_eq!(found(&judged, NETWORK).evidence["read_network_bytes"], requested);
    // Two agents on one machine read the same counters of its network mount.
    two.hosts.iter_mut().for_each(|host| host.boot_id = "same".into());
    let judged = judge(&two, &whole, &whole);
    assert_eq!(found(&judged, NETWORK).outcome, Outcome::Warn, "counted once");
    let both = far(requested * 2);
    assert!(judge(&two, &both, &both).passed.contains(&NETWORK.to_owned()));
    let judged = judge(&two, &both, &crate::rules::fixtures::reads());
    let says = &found(&judged, NETWORK).says;
    assert!(says.contains("traffic of b is unknown"), "not checked is not passed: {says}");
}

#[test]
fn what_clients_of_our_own_asked_is_held_against_the_hosts_interfaces_each_namespace_once() {
    use plimsoll_evidence::observed::{Interface, LinkCounters, Links, Server};
    let (mut two, verdicts, merged) = fleet(&[1_000, 1_000], VerdictKind::Pass);
    let reads = crate::rules::fixtures::reads_with("path = \"/x\"", "nfs = [\"nfs://h/e\"]");
    let requested = crate::rules::evidence::read_bytes(&reads);
    let far = |namespace: &str, received_bytes, sent_bytes| {
        let mut bundle = reads.clone();
        bundle.environment.mounts.clear();
        bundle.environment.devices.clear();
        let counters = LinkCounters { received_bytes, sent_bytes, ..LinkCounters::default() };
        let eth0 =
            Interface { name: "eth0".into(), counters: Some(counters), ..Interface::default() };
        bundle.observed.links = Some(Links {
            namespace: Some(namespace.into()),
            interfaces: vec![eth0],
            ..Links::default()
        });
        let server = Server { local: Some(false), ..Server::default() };
        bundle.observed.servers = vec![server];
        bundle
    };
    let judge = |fleet: &Fleet, a: &Bundle, b: &Bundle| {
        let bundles = [("a".to_owned(), a), ("b".to_owned(), b)].into();
        judge_with(fleet, &verdicts, Some(&merged), &bundles, &[])
    };
    let (one, two_of) = (far("net:[1]", requested, 0), far("net:[2]", requested, 0));
    assert!(judge(&two, &one, &two_of).passed.contains(&NETWORK.to_owned()));
    let judged = judge(&two, &one, &far("net:[2]", 0, requested));
    let finding = found(&judged, NETWORK);
    assert_eq!(
        (finding.outcome, &finding.evidence["read_network_bytes"]),
        (Outcome::Warn, &requested.into())
    );
    assert!(
        finding.says.contains("unknown how the other bytes were transferred"),
        "no cache is accused: {}",
        finding.says
    );
    // Agents on one machine read the same counters, unless each agent has a separate network
    // namespace.
    two.hosts.iter_mut().for_each(|host| host.boot_id = "same".into());
    assert!(judge(&two, &one, &two_of).passed.contains(&NETWORK.to_owned()));
    assert_eq!(found(&judge(&two, &one, &one), NETWORK).outcome, Outcome::Warn, "counted once");
    let both = far("net:[1]", requested * 2, 0);
    assert!(judge(&two, &both, &both).passed.contains(&NETWORK.to_owned()));
    // If one host's counters are unknown, the rule is not listed as passed. If all are unknown, the
    // rule does not apply.
    let mut lost = one.clone();
    lost.observed.links.as_mut().unwrap().interfaces[0].counters = None;
    assert!(found(&judge(&two, &one, &lost), NETWORK).says.contains("traffic of b is unknown"));
    let judged = judge(&two, &lost, &lost);
    assert!(!judged.passed.contains(&NETWORK.to_owned()));
    assert!(judged.findings.iter().all(|finding| finding.rule != NETWORK));
}

#[test]
fn what_all_hosts_did_is_held_against_what_the_system_counted() {
    use plimsoll_evidence::fleet::System;
    use plimsoll_evidence::observed::Sources;
    let (fleet, verdicts, merged) = fleet(&[1_000, 1_100], VerdictKind::Pass);
    let with = |counted: &[(&str, f64)], unknown: &[&str], gap_ns_max| {
        let reads_from = counted.iter().map(|(from, n)| ((*from).to_owned(), *n)).collect();
        let sources = Sources { reads_from, ..Sources::default() };
        let unknown = unknown.iter().map(|&why| why.to_owned()).collect();
        let fleet =
            Fleet { system: Some(System { sources, gap_ns_max, unknown }), ..fleet.clone() };
        let judged = judge_fleet(&fleet, &verdicts, Some(&merged));
        let found = judged.findings.into_iter().find(|finding| finding.rule == SYSTEM);
        assert_eq!(found.is_none(), judged.passed.iter().any(|rule| rule == SYSTEM));
        (judged.verdict, found.map(|finding| (finding.outcome, finding.says)))
    };
    let (kind, none) = with(&[("cache", 100.0), ("hdd", 2_050.0)], &[], SECOND / 10);
    assert_eq!((kind, none), (VerdictKind::Pass, None), "in I/Os");
    let (kind, none) = with(&[("cache", 2_100.0 * 4096.0)], &[], SECOND / 10);
    assert_eq!((kind, none), (VerdictKind::Pass, None), "in bytes");
    let (kind, found) = with(&[("cache", 1_000.0)], &[], SECOND / 10);
    let (outcome, says) = found.unwrap();
    assert_eq!((kind, outcome), (VerdictKind::Inconclusive, Outcome::Unknown));
    assert!(says.contains("counted only 48 % of 2100 I/Os that all hosts read"), "{says}");
    let (kind, found) = with(&[("cache", 0.0)], &[], SECOND / 10);
    assert_eq!((kind, found.unwrap().0), (VerdictKind::Inconclusive, Outcome::Unknown));
    let (kind, found) = with(&[("cache", 6_300.0)], &[], SECOND / 10);
    let (outcome, says) = found.unwrap();
    assert_eq!((kind, outcome), (VerdictKind::Pass, Outcome::Warn));
    assert!(says.contains("3.0 times 2100 I/Os"), "{says}");
    let (kind, found) = with(&[], &["the metrics of http://h: refused"], 0);
    assert_eq!(kind, VerdictKind::Pass);
    assert!(found.unwrap().1.contains("refused"));
    let (_, found) = with(&[], &[], 0);
    assert!(found.unwrap().1.contains("do not include"));
    // If the counters are read rarely, they are less precise.
    let (kind, none) = with(&[("cache", 1_300.0)], &[], 4 * SECOND);
    assert_eq!((kind, none), (VerdictKind::Pass, None));
}

#[test]
fn counters_that_the_plan_names_and_the_evidence_lacks_are_missed() {
    let (fleet, verdicts, merged) = fleet(&[1_000, 1_100], VerdictKind::Pass);
    let requested = plimsoll_plan::MetricsEndpoint {
        url: "http://h:1/m".into(),
        interval_ns: SECOND,
        names: BTreeMap::new(),
    };
    let judged = judge_with(&fleet, &verdicts, Some(&merged), &BTreeMap::new(), &[requested]);
    assert_eq!(judged.verdict, VerdictKind::Inconclusive, "{judged:#?}");
    assert_eq!(judged.findings[0].rule, SYSTEM);
}
