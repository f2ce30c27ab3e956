//! Combines all hosts of a fleet into one run, for repeats, sweeps, searches and comparisons.
//!
//! Counts, bytes and latency sums are added; histograms are added bucket by bucket. The requirement
//! per host is multiplied by the number of hosts. Properties of single hosts are only in the hosts'
//! bundles. If all hosts agree on a value, the combined run has this value; otherwise it has the
//! value of the first host.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Environment, ObservationGap};
use plimsoll_evidence::fleet::{BY_OPERATOR, Fleet, MergedEvidence};
use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::run::{
    Checks, ClassTotals, Driver, End, EndKind, Engine, Membership, Phase, PhaseKind, Run,
    SCHEMA_VERSION, Tier,
};
use plimsoll_judge::Verdict;
use plimsoll_judge::fleet::FleetVerdict;
use plimsoll_plan::{Bound, Carries, Requirement, ResolvedPlan, WindowLimits};

/// Multiplies the plan's requirement, including that of its windows, by the number of hosts. If
/// each host generates a share of the load, the requirement does not change.
#[must_use]
pub fn scale_requirement(mut plan: ResolvedPlan, hosts: u32) -> ResolvedPlan {
    if carry_shares(&plan) {
        return plan;
    }
    if let Some(required) = &mut plan.requirement {
        let times = f64::from(hosts.max(1));
        scale_windows(required, times);
        required.iops_per_s = required.iops_per_s.map(|rate| rate * times);
        required.metadata_ops_per_s = required.metadata_ops_per_s.map(|rate| rate * times);
        required.bandwidth_bytes_per_s =
            required.bandwidth_bytes_per_s.map(|rate| rate.saturating_mul(u64::from(hosts.max(1))));
        required.page_fault_stalls_max_per_s =
            required.page_fault_stalls_max_per_s.map(|rate| rate * times);
    }
    plan
}

/// Multiplies the rates that are required in windows. A limit that is a percentage of the earlier
/// rate does not change.
fn scale_windows(required: &mut Requirement, times: f64) {
    for WindowLimits { limits, .. } in &mut required.windows {
        for bound in [&mut limits.iops, &mut limits.bandwidth].into_iter().flatten() {
            if let Bound::PerS(rate) = bound {
                *rate *= times;
            }
        }
    }
}

/// Returns true if each host generates a share of the plan's load.
pub fn carry_shares(plan: &ResolvedPlan) -> bool {
    plan.fleet.as_ref().is_some_and(|fleet| fleet.carries == Carries::Share)
}

/// Adds up the requirements of the individual hosts if these differ.
fn sum_requirements(plan: ResolvedPlan, count: u32, hosts: &[&ResolvedPlan]) -> ResolvedPlan {
    let required = || hosts.iter().map(|own| own.requirement.as_ref());
    let as_planned = required().all(|own| own == plan.requirement.as_ref());
    if as_planned || carry_shares(&plan) || u32::try_from(hosts.len()) != Ok(count) {
        return scale_requirement(plan, count);
    }
    let mut plan = plan;
    if let Some(all) = &mut plan.requirement {
        scale_windows(all, f64::from(count));
        let rates = |of: fn(&Requirement) -> Option<f64>| -> Option<f64> {
            required().map(|own| own.and_then(of)).sum()
        };
        all.iops_per_s = rates(|own| own.iops_per_s);
        all.metadata_ops_per_s = rates(|own| own.metadata_ops_per_s);
        all.page_fault_stalls_max_per_s = rates(|own| own.page_fault_stalls_max_per_s);
        let bytes = required().map(|own| own?.bandwidth_bytes_per_s);
        all.bandwidth_bytes_per_s = bytes.sum();
    }
    plan
}

/// Returns the combined run. The way it ended is known only after the fleet is judged ([`end`]).
pub(super) fn combine(
    fleet: &Fleet,
    plan: (String, ResolvedPlan),
    hosts: &[Bundle],
    merged: Option<&MergedEvidence>,
    seal_sha256: &str,
) -> Bundle {
    let (plan_text, resolved) = plan;
    let plan_sha256 = resolved.sha256_hex().unwrap_or_default();
    let count = u32::try_from(fleet.counted().count()).unwrap_or(u32::MAX);
    // Hosts that ran at different times have no common measurement window, so they have no merged
    // series. Their totals are added nevertheless.
    let merged = merged.filter(|_| fleet.window.is_some_and(|window| !window.cut));
    let run = combine_runs(fleet, plan_sha256, hosts, merged.is_some());
    let merged = merged.cloned().unwrap_or_default();
    let plans: Vec<&ResolvedPlan> = hosts.iter().map(|bundle| &bundle.plan).collect();
    let is_class = |tag: &str| run.classes.iter().any(|class| class.name == tag);
    Bundle {
        plan_text,
        job_text: None,
        plan: sum_requirements(resolved, count, &plans),
        environment: environment(fleet, hosts),
        series: merged.series,
        observed: observed(hosts),
        latency: merged.latency.into_iter().filter(|(tag, _)| is_class(tag)).collect(),
        latency_spans: merged.intervals.into_iter().filter(|span| is_class(&span.tag)).collect(),
        run,
        seal_sha256: Some(seal_sha256.to_owned()),
    }
}

fn combine_runs(fleet: &Fleet, plan_sha256: String, hosts: &[Bundle], is_summed: bool) -> Run {
    let runs = || hosts.iter().map(|bundle| &bundle.run);
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in runs().flat_map(|run| &run.counters) {
        *counters.entry(name.clone()).or_default() += count;
    }
    let window = fleet.window.filter(|_| is_summed);
    Run {
        schema_version: SCHEMA_VERSION,
        tool_version: fleet.tool_version.clone(),
        build: Some(fleet.build.clone()),
        run_id: fleet.run_id.clone(),
        name: fleet.name.clone(),
        plan_sha256,
        driver: Driver::Real,
        tier: Tier::T1,
        started_unix_ns: fleet.started_unix_ns,
        duration_ns: runs().map(|run| run.duration_ns).max().unwrap_or(0),
        end: End { kind: EndKind::Completed, says: String::new() },
        ledger: fleet.ledger.clone(),
        signed_by: Some(fleet.signed_by.clone()),
        experiment: fleet
            .experiment
            .clone()
            .map(|place| Membership { data_of_run: data_origin(hosts), ..place }),
        engine: engine(hosts),
        phases: window.map(|window| measured(window.start_ns, hosts)).into_iter().collect(),
        classes: if is_summed { classes(hosts) } else { Vec::new() },
        instances: runs().flat_map(|run| run.instances.clone()).collect(),
        counters,
        checks: checks(hosts),
        events: fleet.events.clone(),
        durability: None,
    }
}

/// Returns the run whose data the hosts reused; `None` unless all hosts reused data.
fn data_origin(hosts: &[Bundle]) -> Option<String> {
    let of = |bundle: &Bundle| bundle.run.experiment.as_ref()?.data_of_run.clone();
    let found = hosts.iter().map(of).collect::<Option<Vec<String>>>()?;
    found.into_iter().next()
}

/// Returns the measured phase of the combined run. Its duration is the mean of the hosts'
/// durations, which differ by less than half an interval.
fn measured(start_ns: u64, hosts: &[Bundle]) -> Phase {
    let phases = || hosts.iter().filter_map(|bundle| bundle.run.measure());
    let count = phases().count().max(1) as u64;
    let notes = phases().map(|phase| phase.note.as_str()).find(|note| !note.is_empty());
    Phase {
        kind: PhaseKind::Measure,
        start_ns,
        duration_ns: phases().map(|phase| phase.duration_ns).sum::<u64>() / count,
        read_bytes: phases().map(|phase| phase.read_bytes).sum(),
        written_bytes: phases().map(|phase| phase.written_bytes).sum(),
        reached: phases().all(|phase| phase.reached),
        note: notes.unwrap_or_default().to_owned(),
        boundary_error_ns: phases()
            .map(|phase| phase.boundary_error_ns)
            .reduce(|a, b| Some(a?.max(b?)))
            .flatten(),
    }
}

/// Returns how the combined run ended.
pub(super) fn end(fleet: &Fleet, verdict: &FleetVerdict, hosts: &[Bundle]) -> End {
    let ends = || hosts.iter().map(|bundle| &bundle.run.end);
    // If one host failed, the other hosts were interrupted because of that.
    let failed = |end: &&End| !matches!(end.kind, EndKind::Completed | EndKind::Interrupted);
    let interrupted =
        |end: &&End| end.kind == EndKind::Interrupted && fleet.ended_early == BY_OPERATOR;
    if let Some(end) = ends().find(failed).or_else(|| ends().find(interrupted)) {
        return end.clone();
    }
    let all_completed = || ends().all(|end| end.kind == EndKind::Completed);
    let says = match fleet.ended_early.is_empty() {
        true if hosts.len() == fleet.counted().count() && all_completed() => {
            return End { kind: EndKind::Completed, says: String::new() };
        }
        true => verdict.reason.clone(),
        false => fleet.ended_early.clone(),
    };
    End { kind: EndKind::Environment, says }
}

fn engine(hosts: &[Bundle]) -> Engine {
    let engines = || hosts.iter().map(|bundle| &bundle.run.engine);
    let Some(first) = engines().next() else { return Engine::default() };
    Engine {
        threads: engines().map(|engine| engine.threads).sum(),
        sessions: engines().map(|engine| engine.sessions).sum(),
        paths: engines().flat_map(|engine| engine.paths.clone()).collect(),
        ..first.clone()
    }
}

/// Returns the sum over all hosts for each class name.
fn classes(hosts: &[Bundle]) -> Vec<ClassTotals> {
    let mut all: Vec<ClassTotals> = Vec::new();
    for class in hosts.iter().flat_map(|bundle| &bundle.run.classes) {
        match all.iter_mut().find(|known| known.name == class.name) {
            Some(known) => add(known, class),
            None => all.push(class.clone()),
        }
    }
    all
}

fn add(to: &mut ClassTotals, other: &ClassTotals) {
    to.count += other.count;
    to.size_bytes += other.size_bytes;
    to.latency_ns_sum = to.latency_ns_sum.saturating_add(other.latency_ns_sum);
    to.latency_ns_max = to.latency_ns_max.max(other.latency_ns_max);
    to.service_ns_sum = to.service_ns_sum.saturating_add(other.service_ns_sum);
    to.service_ns_max = to.service_ns_max.max(other.service_ns_max);
    to.errors += other.errors;
    to.drained += other.drained;
    to.drained_bytes += other.drained_bytes;
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    to.abandoned = both(to.abandoned, other.abandoned);
    to.never_started = both(to.never_started, other.never_started);
}

fn checks(hosts: &[Bundle]) -> Checks {
    let checks = || hosts.iter().map(|bundle| &bundle.run.checks);
    let sum = |of: fn(&Checks) -> Option<u64>| checks().map(of).sum::<Option<u64>>();
    Checks {
        pages_checked: sum(|checks| checks.pages_checked).filter(|_| !hosts.is_empty()),
        log_blocks_checked: sum(|checks| checks.log_blocks_checked).filter(|_| !hosts.is_empty()),
        errors: checks().map(|checks| checks.errors).sum(),
        damage: checks().flat_map(|checks| checks.damage.clone()).take(100).collect(),
        sampled: None,
    }
}

fn environment(fleet: &Fleet, hosts: &[Bundle]) -> Environment {
    let Some(first) = hosts.first() else { return Environment::default() };
    let names: Vec<&str> = fleet.hosts.iter().map(|host| host.name.as_str()).collect();
    Environment { host: Some(names.join(", ")), ..first.environment.clone() }
}

fn observed(hosts: &[Bundle]) -> Observed {
    let busy = hosts.iter().map(|bundle| bundle.observed.cpu.busy_avg);
    let mut observed = Observed::default();
    observed.cpu.busy_avg = busy.sum::<Option<f64>>().map(|sum| sum / hosts.len().max(1) as f64);
    observed.unknown.push(ObservationGap {
        what: "underlying devices of the targets, and the hosts".to_owned(),
        why: "each host observed only its own devices".to_owned(),
        remedy: "the bundle of each host".to_owned(),
    });
    observed
}

/// Returns the verdict on the combined run.
pub(super) fn combine_verdicts(
    fleet: &FleetVerdict,
    bundle: &Bundle,
    hosts: &[(Bundle, Verdict)],
) -> Verdict {
    let named = || {
        let names = fleet.hosts.iter().filter(|host| host.verdict.is_some());
        names.map(|host| host.name.clone()).zip(hosts)
    };
    let verdicts = || hosts.iter().map(|(_, verdict)| verdict);
    let mut findings = fleet.findings.clone();
    findings.extend(fleet.host_findings.iter().cloned());
    findings.sort_by_key(|finding| finding.outcome);
    let checks = named().flat_map(|(name, (_, verdict))| {
        verdict.checks.iter().cloned().map(move |mut check| {
            check.note = match check.note.is_empty() {
                true => name.clone(),
                false => format!("{name}: {}", check.note),
            };
            check
        })
    });
    Verdict {
        verdict: fleet.verdict,
        reason: fleet.reason.clone(),
        demonstration: fleet.demonstration,
        required_iops_per_s: bundle.plan.requirement.as_ref().and_then(|r| r.iops_per_s),
        achieved_iops_per_s: match fleet.total {
            Some(_) => verdicts().map(|verdict| verdict.achieved_iops_per_s).sum(),
            None => None,
        },
        headroom: None,
        checks: checks.collect(),
        claims: fleet.claims.clone(),
        tier: Tier::T1,
        findings,
        passed: fleet.passed.clone(),
        accepted: fleet.accepted.clone(),
        declared: fleet.declared.clone(),
        rules_version: fleet.rules_version,
        run_id: fleet.run_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn of_all_hosts_so_many_times_as_much_is_required_and_latencies_stay() {
        let text = "version = 1\nname = \"p\"\n[requirement]\niops = 1000\nread_latency_avg = \
                    \"20ms\"\n[target]\npath = \"/x\"\n[workload.matrix]\nfile_size = \"1GiB\"\n";
        let plan = plimsoll_plan::Plan::parse(text, "p.toml").unwrap().resolve();
        let of_four = scale_requirement(plan.clone(), 4).requirement.unwrap();
        let of_one = plan.requirement.unwrap();
        assert_eq!((of_one.iops_per_s, of_four.iops_per_s), (Some(1000.0), Some(4000.0)));
        assert_eq!(of_four.limits, of_one.limits);
    }

    #[test]
    fn rates_of_windows_are_of_all_hosts_and_shares_and_times_stay() {
        let text = "version = 1\nname = \"p\"\n[requirement.before]\niops = \
                    1000\n[requirement.during]\niops = \"70% of before\"\noutage_max = \
                    \"9s\"\n[target]\npath = \"/x\"\n[workload.matrix]\nfile_size = \
                    \"1GiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \
                    \"10s\"\n[[event]]\nname = \"e\"\nat = \"30s\"\nrun = [\"true\"]\n";
        let plan = plimsoll_plan::Plan::parse(text, "p.toml").unwrap().resolve();
        let of_four = scale_requirement(plan.clone(), 4).requirement.unwrap().windows;
        let of_one = plan.requirement.unwrap().windows;
        assert_eq!(of_four[0].limits.iops, Some(Bound::PerS(4000.0)));
        assert_eq!(of_four[1], of_one[1]);
    }

    #[test]
    fn of_hosts_that_differ_the_sum_of_what_each_requires_is_required() {
        let plan = |iops: &str| {
            let text = format!(
                "version = 1\nname = \"p\"\n[requirement]\n{iops}\n[target]\npath = \
                 \"/x\"\n[workload.matrix]\nfile_size = \"1GiB\"\n"
            );
            plimsoll_plan::Plan::parse(&text, "p.toml").unwrap().resolve()
        };
        let (all, less) = (plan("iops = 1000"), plan("iops = 300"));
        let latency = plan("read_latency_avg = \"20ms\"");
        let of = |hosts: &[&ResolvedPlan]| {
            let one = sum_requirements(all.clone(), 2, hosts).requirement.unwrap();
            (one.iops_per_s, one.limits == all.requirement.as_ref().unwrap().limits)
        };
        assert_eq!(of(&[&all, &all]), (Some(2000.0), true));
        assert_eq!(of(&[&all, &less]), (Some(1300.0), true));
        assert_eq!(of(&[&all, &latency]), (None, true), "of one no rate is required");
        assert_eq!(of(&[&less]), (Some(2000.0), true), "a host is missing");
    }

    #[test]
    fn of_hosts_that_carry_shares_the_plans_own_is_required() {
        let text = "version = 1\nname = \"p\"\n[requirement]\niops = 1000\n[target]\nnfs = \
                    [\"nfs://f/a\", \"nfs://f/b\"]\n[workload.matrix]\nfile_size = \
                    \"1GiB\"\n[fleet]\nnames = [\"a\", \"b\"]\ncarries = \"share\"\n";
        let plan = plimsoll_plan::Plan::parse(text, "p.toml").unwrap();
        let own = ["a", "b"].map(|host| plan.on_host(host, &[]).unwrap().resolve());
        let hosts: Vec<&ResolvedPlan> = own.iter().collect();
        // This also applies if the evidence of one host is missing, or before any evidence exists.
        for all in [
            sum_requirements(plan.resolve(), 2, &hosts),
            sum_requirements(plan.resolve(), 2, &hosts[..1]),
            scale_requirement(plan.resolve(), 2),
        ] {
            assert_eq!(all.requirement.unwrap().iops_per_s, Some(1000.0));
        }
        assert_eq!(own[0].requirement.as_ref().unwrap().iops_per_s, Some(500.0));
    }

    #[test]
    fn what_is_not_known_of_one_host_is_not_known_of_all() {
        let mut one = ClassTotals::empty("load.read".into(), "transactional".into(), 0, true);
        (one.count, one.abandoned, one.never_started) = (5, Some(1), None);
        let mut two = ClassTotals { abandoned: Some(2), never_started: Some(0), ..one.clone() };
        two.latency_ns_max = 7;
        add(&mut one, &two);
        assert_eq!((one.count, one.latency_ns_max), (10, 7));
        assert_eq!((one.abandoned, one.never_started), (Some(3), None));
    }
}
