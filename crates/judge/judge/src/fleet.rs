//! Verdict on the joint run of several hosts.
//!
//! Each host is judged separately, from its own bundle and with the rules for single runs. A fleet
//! passes if each of its hosts passes. In addition, some rules apply only to a fleet: every
//! requested host took part, all hosts measured at the same time, and the total is the sum over the
//! hosts. If a host is missing, the run is INVALID, because the load was smaller than requested.

mod events;
mod host_verdicts;
mod link;
mod network;
mod simultaneous;
mod slow;
mod system;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::{Class, Fleet, Host, HostEnd, MergedEvidence, UntilLost};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::ResolvedPlan;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimStatus;
use crate::finding::{Finding, Outcome};
use crate::judge::{describe_failed, describe_undecided};
use crate::rules::generator_limit;
use crate::stats::percentile::percentile_gate;
use crate::verdict::{Check, RULES_VERSION, Verdict, VerdictKind};

/// Rule: every requested host delivered its evidence.
pub const COMPLETE: &str = "fleet-complete";
/// Rule: all hosts measured at the same time.
pub const TOGETHER: &str = "fleet-together";
/// Rule: the total equals the sum over the evidence of all hosts.
pub const SUMS: &str = "fleet-sums";
/// Rule: all agents have the same build.
pub const ALIKE: &str = "fleet-alike";
/// Rule: no host achieved a much lower rate than the other hosts.
pub const BALANCE: &str = "fleet-balance";
/// Rule: all I/O of the hosts' network mounts and of Plimsoll's own clients crossed the network.
pub const NETWORK: &str = "fleet-network";
/// Rule: the storage system's own counters include the I/O of all hosts.
pub const SYSTEM: &str = "fleet-system";

/// Rule: if an event should stop a host, this host was lost.
pub const LOSSES: &str = "fleet-losses";

/// A host is reported if its rate is below this share of the average rate.
const BALANCE_SHARE_MIN: f64 = 0.9;
/// A value is reported as a cause if it is at least this many times the largest value of the other
/// hosts. The ratio is our choice; it is larger than the differences between similar hosts.
const TIMES_MIN: f64 = 1.5;

/// Verdict on a fleet's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetVerdict {
    /// The judgement.
    pub verdict: VerdictKind,
    /// Reason in one sentence.
    pub reason: String,
    /// True if the run of at least one host was a short demonstration.
    #[serde(default)]
    pub demonstration: bool,
    /// Total of all hosts over the time in which all of them measured. `None` if there is no such
    /// time, or if a host is missing.
    pub total: Option<Total>,
    /// One check for each limit. Every host must meet the limit, so the check shows the host with
    /// the smallest margin.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Support of each claim about the sum. It equals the support on the host with the weakest
    /// evidence.
    #[serde(default)]
    pub claims: BTreeMap<String, ClaimStatus>,
    /// All hosts that the plan requested.
    pub hosts: Vec<HostLine>,
    /// Findings of the fleet rules, with the worst first. Results with `pass` are left out.
    pub findings: Vec<Finding>,
    /// Findings of the rules for single runs, with the worst first. Each finding contains the names
    /// of the hosts.
    #[serde(default)]
    pub host_findings: Vec<Finding>,
    /// Identifiers of the fleet rules that passed.
    pub passed: Vec<String>,
    /// Rules whose outcome is unknown on at least one host, but which the plan accepts as unknown.
    #[serde(default)]
    pub accepted: Vec<String>,
    /// Declarations that the verdict on a host relies on.
    #[serde(default)]
    pub declared: Vec<String>,
    /// Version of the rules that judged the hosts.
    pub rules_version: u32,
    /// Identifier of the fleet's run.
    pub run_id: String,
}

/// Figures of all hosts together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// I/Os per second that count for the achieved rate, summed over all hosts.
    pub ops_per_s: f64,
    /// Bytes per second, summed over all hosts.
    pub bytes_per_s: f64,
    /// Mean of the hosts' I/Os per second.
    pub host_ops_per_s_avg: f64,
    /// Relative spread of the hosts' rates: largest minus smallest rate, divided by the average.
    pub host_ops_spread: f64,
    /// Host with the lowest rate.
    pub slowest_host: String,
    /// Latencies by class.
    pub classes: Vec<ClassLine>,
}

/// Latencies of one class of operations over all hosts. Percentiles come from the summed
/// histograms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassLine {
    pub name: String,
    /// I/Os that completed within the window.
    pub count: u64,
    /// Bytes of those I/Os.
    pub size_bytes: u64,
    /// Number of I/Os that the latency figures include.
    pub latency_count: u64,
    /// Mean latency, from the intended start to the completion.
    pub latency_ns_avg: Option<u64>,
    /// Median latency.
    pub latency_ns_p50: Option<u64>,
    /// 99th percentile; `None` if there are too few samples.
    pub latency_ns_p99: Option<u64>,
    /// 99.9th percentile; `None` if there are too few samples.
    pub latency_ns_p999: Option<u64>,
    /// Largest latency.
    pub latency_ns_max: u64,
    /// I/Os that failed with an error.
    pub errors: u64,
}

/// Row of a host in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLine {
    /// Name of the agent.
    pub name: String,
    /// Verdict on the host's own bundle. `None` if the host sent no bundle.
    pub verdict: Option<VerdictKind>,
    /// Reason of the verdict. If the host sent no bundle, a description of what happened to the
    /// host.
    pub reason: String,
    /// I/Os per second within the window that count for the achieved rate. For mail stores, these
    /// are the I/Os of the databases, not of the logs.
    pub ops_per_s: Option<f64>,
    /// Bytes per second within the window.
    pub bytes_per_s: Option<f64>,
    /// Mean latency of the I/Os that count for the achieved rate.
    pub latency_ns_avg: Option<u64>,
    /// Largest latency of an I/O on this host.
    pub latency_ns_max: Option<u64>,
    /// Delay of the start of this host's measured phase, relative to the first host.
    pub start_late_ns: Option<u64>,
    /// Uncertainty of the offset of this host's clock.
    pub clock_error_ns: Option<u64>,
    /// Phases of the host with their durations.
    pub phases: Vec<(PhaseKind, u64)>,
    /// Figures of a host that an event stopped, up to that event. `None` for all other hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_lost: Option<UntilLost>,
}

/// Judges a fleet's evidence. `verdicts` contains the verdicts on the hosts' own bundles. `bundles`
/// contains the bundles that arrived. The key of each is the agent's name. `merged` is the sum of
/// the bundles, if they can be added. `sum` is this sum in the form of a single run.
#[must_use]
pub fn judge_fleet(
    fleet: &Fleet,
    plan: &ResolvedPlan,
    verdicts: &BTreeMap<String, Verdict>,
    merged: Option<&MergedEvidence>,
    bundles: &BTreeMap<String, &Bundle>,
    sum: &Bundle,
) -> FleetVerdict {
    let hosts: Vec<HostLine> =
        fleet.hosts.iter().map(|host| host_line(fleet, host, verdicts)).collect();
    let mut all = vec![
        check_complete(fleet, verdicts),
        simultaneous::check(fleet),
        check_sums(fleet, merged),
        check_alike(fleet),
        check_balance(fleet, &hosts, verdicts, bundles),
    ];
    all.extend(network::check(fleet, bundles));
    all.extend(system::check(fleet, &plan.observe.metrics, bundles));
    all.extend(events::findings(fleet, plan, sum));
    let passed = all.iter().filter(|finding| finding.outcome == Outcome::Pass);
    let passed = passed.map(|finding| finding.rule.clone()).collect();
    let mut findings: Vec<Finding> =
        all.into_iter().filter(|finding| finding.outcome != Outcome::Pass).collect();
    findings.sort_by_key(|finding| finding.outcome);
    let windows = events::checks(sum);
    let counted: Vec<&HostLine> = hosts.iter().filter(|host| host.until_lost.is_none()).collect();
    let at_limit = bundles.values().any(|bundle| generator_limit::at_limit(bundle));
    let deciding: Vec<&Finding> =
        findings.iter().filter(|finding| events::decides(finding, sum)).collect();
    let accepted = events::accepted(&findings, sum);
    let (verdict, mut reason) = worst_result(fleet, &deciding, &counted, &windows, at_limit);
    if matches!(verdict, VerdictKind::Pass | VerdictKind::Measured) && !accepted.is_empty() {
        let rules = accepted.join(", ");
        reason.push_str(&format!("; the plan accepts these rules as unknown: {rules}"));
    }
    let is_whole = fleet.counted().all(|host| host.end == HostEnd::Reported);
    let total = fleet.window.filter(|_| is_whole).and_then(|_| total(fleet, &counted, merged?));
    let judged = FleetVerdict {
        verdict,
        reason,
        demonstration: false,
        total,
        checks: windows.into_iter().map(events::of_all_hosts).collect(),
        claims: BTreeMap::new(),
        hosts,
        findings,
        host_findings: Vec::new(),
        passed,
        accepted,
        declared: Vec::new(),
        rules_version: RULES_VERSION,
        run_id: fleet.run_id.clone(),
    };
    host_verdicts::add(judged, fleet, verdicts)
}

/// Returns the worst result of the fleet's rules and the hosts' verdicts. INVALID is worst, then
/// FAIL, INCONCLUSIVE and PASS.
fn worst_result(
    fleet: &Fleet,
    findings: &[&Finding],
    hosts: &[&HostLine],
    windows: &[Check],
    at_limit: bool,
) -> (VerdictKind, String) {
    let first = |outcome| findings.iter().find(|finding| finding.outcome == outcome);
    if let Some(failed) = first(Outcome::Fail) {
        return (VerdictKind::Invalid, failed.says.clone());
    }
    let of = |kind| hosts.iter().find(|host| host.verdict == Some(kind));
    let said = |host: &HostLine| format!("{}: {}", host.name, host.reason);
    for kind in [VerdictKind::Invalid, VerdictKind::Fail] {
        if let Some(host) = of(kind) {
            return (kind, said(host));
        }
    }
    let all = |ok, describe: fn(&Check) -> String| {
        let some = windows.iter().filter(|check| check.ok == ok).map(describe);
        Some(some.collect::<Vec<_>>().join("; ")).filter(|says| !says.is_empty())
    };
    match all(Some(false), describe_failed) {
        Some(says) if at_limit => {
            let says = format!("{says}; but the load generator itself was at its limit");
            return (VerdictKind::Inconclusive, says);
        }
        Some(says) => return (VerdictKind::Fail, format!("all hosts together: {says}")),
        None => {}
    }
    if let Some(unknown) = first(Outcome::Unknown) {
        return (VerdictKind::Inconclusive, unknown.says.clone());
    }
    if !fleet.ended_early.is_empty() {
        return (VerdictKind::Inconclusive, fleet.ended_early.clone());
    }
    if let Some(host) = of(VerdictKind::Inconclusive) {
        return (VerdictKind::Inconclusive, said(host));
    }
    if let Some(says) = all(None, describe_undecided) {
        return (VerdictKind::Inconclusive, format!("all hosts together: {says}"));
    }
    let count = hosts.len();
    match of(VerdictKind::Measured) {
        Some(_) if !windows.is_empty() => (
            VerdictKind::Pass,
            format!("the sum of {count} hosts met the limits of the windows around the events"),
        ),
        Some(_) => (
            VerdictKind::Measured,
            format!("{count} hosts measured at the same time; no requirement was stated"),
        ),
        None => (
            VerdictKind::Pass,
            format!(
                "each of {count} hosts met the requirement while all hosts ran at the same time"
            ),
        ),
    }
}

fn host_line(fleet: &Fleet, host: &Host, verdicts: &BTreeMap<String, Verdict>) -> HostLine {
    let verdict = verdicts.get(&host.name);
    let run = host.run.as_ref();
    let in_window = fleet.window.is_some();
    let sum =
        |of: fn(&Class) -> u64| -> u64 { run.map_or(0, |run| run.rated().map(of).sum::<u64>()) };
    let counted = sum(|class| class.latency_count);
    let starts =
        fleet.hosts.iter().filter_map(|host| host.run.as_ref()?.phase_start_ns(PhaseKind::Measure));
    let first = starts.min();
    let began = run.and_then(|run| run.phase_start_ns(PhaseKind::Measure));
    HostLine {
        name: host.name.clone(),
        verdict: verdict.map(|verdict| verdict.verdict),
        reason: match verdict {
            Some(verdict) if host.says.is_empty() => verdict.reason.clone(),
            _ => host.says.clone(),
        },
        ops_per_s: run.filter(|_| in_window).and_then(|run| run.ops_per_s()),
        bytes_per_s: run.filter(|_| in_window).and_then(|run| run.bytes_per_s()),
        latency_ns_avg: sum(|class| class.latency_ns_sum).checked_div(counted),
        latency_ns_max: run.and_then(|run| run.rated().map(|class| class.latency_ns_max).max()),
        start_late_ns: first.zip(began).map(|(first, began)| began - first),
        clock_error_ns: host.clock.iter().map(|offset| offset.error_ns).max(),
        phases: run.map_or(Vec::new(), |run| {
            run.phases.iter().map(|phase| (phase.kind, phase.duration_ns)).collect()
        }),
        until_lost: host.until_lost,
    }
}

fn check_complete(fleet: &Fleet, verdicts: &BTreeMap<String, Verdict>) -> Finding {
    let what = |host: &Host| match host.end {
        HostEnd::Reported if verdicts.contains_key(&host.name) => None,
        HostEnd::Reported => Some(format!("{} has no verdict", host.name)),
        HostEnd::LostAsExpected => None,
        HostEnd::Lost => Some(format!("{} was lost ({})", host.name, host.says)),
        HostEnd::Failed => Some(format!("{} could not run ({})", host.name, host.says)),
        HostEnd::WithoutEvidence => {
            Some(format!("the evidence of {} did not arrive ({})", host.name, host.says))
        }
    };
    let missing: Vec<String> = fleet.hosts.iter().filter_map(what).collect();
    let (requested, count) = (fleet.counted().count(), missing.len());
    if requested == 0 {
        return Finding::new(COMPLETE, Outcome::Fail, "no host took part");
    }
    if missing.is_empty() {
        // The rule `fleet-losses` reports hosts that an event stopped.
        let says = format!("all {requested} hosts sent their evidence");
        return Finding::new(COMPLETE, Outcome::Pass, says).with("hosts", requested);
    }
    let says = format!(
        "{count} of {requested} hosts did not complete their part of the load: {}",
        missing.join("; ")
    );
    Finding::new(COMPLETE, Outcome::Fail, says)
        .with("hosts", requested)
        .with("hosts_missing", count)
        .advise(
            "repair the host and run again; if the host measured anything, its evidence is in the \
             catalogue of its agent",
        )
}

fn check_sums(fleet: &Fleet, merged: Option<&MergedEvidence>) -> Finding {
    let Some(merged) = merged else {
        return match fleet.classes.is_empty() {
            true => Finding::new(SUMS, Outcome::Unknown, "no bundle has figures to add up"),
            false => Finding::new(SUMS, Outcome::Fail, "there is no evidence for the stated sums"),
        };
    };
    let stated = fleet.hosts.iter().filter_map(|host| host.run.as_ref());
    let hosts_agree = stated.clone().count() == merged.hosts.len()
        && stated.zip(&merged.hosts).all(|(run, (classes, _))| &run.classes == classes);
    let added = |name: &str| {
        let of = |(classes, _): &(Vec<Class>, u64)| -> u64 {
            classes.iter().filter(|class| class.name == name).map(|class| class.count).sum()
        };
        merged.hosts.iter().map(of).sum::<u64>()
    };
    let adds_up = merged.classes.iter().all(|class| {
        let histogram = merged.latency.get(&class.name).map_or(0, Histogram::len);
        class.count == added(&class.name) && class.latency_count == histogram
    });
    if !hosts_agree || fleet.classes != merged.classes || !adds_up {
        let says = "the stated totals of all hosts differ from the sums over their bundles";
        return Finding::new(SUMS, Outcome::Fail, says).advise(
            "do not use these figures: the evidence was changed, or belongs to a different run",
        );
    }
    let count: u64 = merged.classes.iter().map(|class| class.count).sum();
    Finding::new(
        SUMS,
        Outcome::Pass,
        format!("the totals agree with the sums over the hosts' bundles: {count} I/Os"),
    )
}

fn check_alike(fleet: &Fleet) -> Finding {
    let mut builds: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for host in &fleet.hosts {
        builds.entry((&host.version, &host.build)).or_default().push(&host.name);
    }
    let mut boots: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in fleet.hosts.iter().filter(|host| !host.boot_id.is_empty()) {
        boots.entry(&host.boot_id).or_default().push(&host.name);
    }
    if builds.len() > 1 {
        let named: Vec<String> = builds
            .iter()
            .map(|((version, build), names)| format!("{version} ({build}) on {}", names.join(", ")))
            .collect();
        let says = format!("the agents have different builds: {}", named.join("; "));
        return Finding::new(ALIKE, Outcome::Warn, says).advise("install one build on all hosts");
    }
    if let Some(names) = boots.values().find(|names| names.len() > 1) {
        let says = format!(
            "agents {} run on one machine: they share its CPUs and links",
            names.join(", ")
        );
        return Finding::new(ALIKE, Outcome::Warn, says).advise(
            "use one machine for each agent: a fleet on one machine is only a demonstration, \
             because it generates no more load than a single run",
        );
    }
    Finding::new(
        ALIKE,
        Outcome::Pass,
        "all agents have the same build, and each runs on its own machine",
    )
}

fn check_balance(
    fleet: &Fleet,
    hosts: &[HostLine],
    verdicts: &BTreeMap<String, Verdict>,
    bundles: &BTreeMap<String, &Bundle>,
) -> Finding {
    let rates: Vec<(&HostLine, f64)> =
        hosts.iter().filter_map(|host| Some((host, host.ops_per_s?))).collect();
    let average = rates.iter().map(|(_, rate)| rate).sum::<f64>() / rates.len().max(1) as f64;
    let slowest = rates.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((host, rate)) =
        slowest.filter(|_| rates.len() == fleet.counted().count() && average > 0.0)
    else {
        return Finding::new(BALANCE, Outcome::Unknown, "the rate of at least one host is unknown");
    };
    let share = rate / average;
    if share >= BALANCE_SHARE_MIN {
        let says = format!(
            "the slowest host, {}, reaches {:.1} % of the average",
            host.name,
            share * 100.0
        );
        return Finding::new(BALANCE, Outcome::Pass, says);
    }
    let others: Vec<&Bundle> =
        bundles.iter().filter(|(name, _)| **name != host.name).map(|(_, bundle)| *bundle).collect();
    let boot = fleet.hosts.iter().find(|known| known.name == host.name).map(|host| &host.boot_id);
    let is_alone = fleet.hosts.iter().filter(|known| Some(&known.boot_id) == boot).count() <= 1;
    let shown = bundles.get(&host.name).map(|own| slow::causes(own, &others, is_alone));
    let shown = shown.unwrap_or_default();
    // If no value of the slow host is unusual, findings that exist only on this host may show the
    // cause.
    let findings_of = |name: &str| verdicts.get(name).map(|verdict| &verdict.findings);
    let elsewhere = |rule: &str| {
        let others = hosts.iter().filter(|other| other.name != host.name);
        others.filter_map(|o| findings_of(&o.name)).flatten().any(|finding| finding.rule == rule)
    };
    let own =
        findings_of(&host.name).into_iter().flatten().filter(|finding| !elsewhere(&finding.rule));
    let cause = match shown.is_empty() {
        true => own.map(|finding| finding.says.clone()).next(),
        false => Some(shown.join("; ")),
    };
    let says = format!(
        "host {} reaches {rate:.1}/s, {:.1} % of the average of {average:.1}/s: {}",
        host.name,
        share * 100.0,
        cause.as_deref().unwrap_or("the host's own evidence does not show the cause")
    );
    Finding::new(BALANCE, Outcome::Warn, says)
        .with("ops_per_s", *rate)
        .with("average_ops_per_s", average)
        .advise("compare this host's report with that of another host (CPU, link, steal, device)")
}

fn total(fleet: &Fleet, hosts: &[&HostLine], merged: &MergedEvidence) -> Option<Total> {
    let rates: Vec<(&str, f64)> = hosts
        .iter()
        .map(|host| Some((host.name.as_str(), host.ops_per_s?)))
        .collect::<Option<_>>()?;
    let bytes_per_s = hosts.iter().map(|host| host.bytes_per_s).sum::<Option<f64>>()?;
    let ops_per_s: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let average = ops_per_s / rates.len().max(1) as f64;
    let largest = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (slowest, least) = *rates.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let class = |class: &Class| {
        let histogram = merged.latency.get(&class.name);
        let at = |p: f64| {
            let histogram = histogram?;
            let n = histogram.len();
            percentile_gate(n as usize, n as f64, p).ok()?;
            Some(histogram.value_at_quantile(p))
        };
        ClassLine {
            name: class.name.clone(),
            count: class.count,
            size_bytes: class.size_bytes,
            latency_count: class.latency_count,
            latency_ns_avg: class.latency_ns_sum.checked_div(class.latency_count),
            latency_ns_p50: at(0.5),
            latency_ns_p99: at(0.99),
            latency_ns_p999: at(0.999),
            latency_ns_max: class.latency_ns_max,
            errors: class.errors,
        }
    };
    Some(Total {
        ops_per_s,
        bytes_per_s,
        host_ops_per_s_avg: average,
        host_ops_spread: if average > 0.0 { (largest - least) / average } else { 0.0 },
        slowest_host: slowest.to_owned(),
        classes: fleet.classes.iter().map(class).collect(),
    })
}

#[cfg(test)]
mod tests;
