//! Comparison of fleet runs. The figure of a side is the total of all its hosts, and the conditions
//! of every host are compared.
//!
//! Rates are the sums of the hosts' rates. Latencies come from the sum of the histograms, as in a
//! fleet's verdict. Any difference between hosts of the two sides is an unlike condition, and so is
//! a different number of hosts.

use std::collections::BTreeSet;

use plimsoll_evidence::Bundle;

use super::{
    ComparedRun, Comparison, ConditionDifference, Metric, Outcome, RequirementResult, Side,
    conditions, decide, differing_conditions, invalid, metric, metric_as, not_shown,
    unmatched_acceptances,
};
use crate::fleet::{ClassLine, FleetVerdict};
use crate::metrics::{self, FigureUnit};
use crate::verdict::{Verdict, VerdictKind};

/// Name of the condition for the number of hosts.
const HOSTS: &str = "hosts";

#[derive(Clone, Debug)]
pub struct FleetRun<'a> {
    pub run_id: &'a str,
    /// Verdict on all hosts.
    pub verdict: &'a FleetVerdict,
    /// Bundles of the hosts that delivered a bundle, with their verdicts.
    pub hosts: Vec<(&'a Bundle, &'a Verdict)>,
}

#[derive(Clone, Debug)]
pub struct FleetSide<'a> {
    /// Display name.
    pub name: String,
    pub runs: Vec<FleetRun<'a>>,
}

/// Name of the condition for the seeds of the random choices.
const SEED: &str = "plan.seed";

/// Accessor for a latency of a class.
type LatencyOf = fn(&ClassLine) -> Option<u64>;

/// Compared latencies, by class.
const LATENCIES: [(&str, &str, LatencyOf); 3] = [
    ("latency_ns_avg", "average latency", |class| class.latency_ns_avg),
    ("latency_ns_p50", "p50 latency", |class| class.latency_ns_p50),
    ("latency_ns_p99", "p99 latency", |class| class.latency_ns_p99),
];

/// Compares two or more sides. `accepted` and `factors` have the same meaning as in
/// [`super::compare`].
pub fn compare_fleets(
    sides: &[FleetSide<'_>],
    accepted: &[String],
    factors: &[String],
) -> Comparison {
    let of_hosts: Vec<Side<'_>> = sides.iter().map(of_hosts).collect();
    let factors = [factors, &conditions::factors_of_plans(&of_hosts)].concat();
    let taken = [accepted, &factors].concat();
    let mut differences = differing_conditions(&of_hosts, &taken, &factors);
    // Each host has its own seed, derived from its name. The values of the seeds are not a
    // condition, but whether the hosts have separate seeds is one.
    differences.retain(|one| one.name != SEED);
    let seeds = |run: &FleetRun<'_>| run.hosts.iter().map(|(bundle, _)| bundle.plan.seed).collect();
    let drawn = sides.iter().map(|side| draws(side.runs.iter().map(seeds))).collect();
    differences.extend(differing(SEED, drawn, &taken, &factors));
    differences.extend(numbers(sides, &taken, &factors));
    let metrics = metrics_of(sides);
    let requirements: Vec<RequirementResult> =
        sides.iter().zip(&of_hosts).map(|(side, hosts)| requirement_result(side, hosts)).collect();
    let (outcome, winner, reason) = match incomplete(sides) {
        Some(reason) => (Outcome::NotBelieved, None, reason),
        None => {
            let decision = decide::decide(&of_hosts, &requirements, &metrics, &differences, &taken);
            (decision.outcome, decision.winner, decision.reason)
        }
    };
    let mut remarks = vec![
        "Rates are sums over all hosts; latencies come from their merged histograms. A verdict \
         applies to all hosts together; the remarks below count the runs of single hosts."
            .to_owned(),
    ];
    remarks.extend(of_hosts.iter().flat_map(invalid));
    remarks.extend(of_hosts.iter().flat_map(|side| not_shown(side, &taken)));
    remarks.extend(unmatched_acceptances(&differences, accepted));
    Comparison {
        names: sides.iter().map(|side| side.name.clone()).collect(),
        outcome,
        winner,
        reason,
        doubt: incomplete(sides).or_else(|| decide::doubt(&of_hosts, &differences, &taken)),
        judged: decide::judged(&of_hosts, &metrics).map(|metric| metric.key.clone()),
        requirement_results: requirements,
        metrics,
        differences,
        explanation: None,
        remarks,
        runs: ComparedRun::all(&of_hosts),
    }
}

/// Builds a side of the comparison in which the run of each host is a separate run.
fn of_hosts<'a>(side: &FleetSide<'a>) -> Side<'a> {
    let runs = side.runs.iter().flat_map(|run| run.hosts.iter().copied()).collect();
    Side { name: side.name.clone(), runs }
}

/// Counts the verdicts on the fleet runs of a side. The headroom is that of the host with the
/// lowest.
fn requirement_result(side: &FleetSide<'_>, hosts: &Side<'_>) -> RequirementResult {
    let verdicts: Vec<VerdictKind> = side.runs.iter().map(|run| run.verdict.verdict).collect();
    let headroom_min = decide::requirement_result(hosts).headroom_min;
    RequirementResult { headroom_min, ..decide::count_verdicts(&verdicts) }
}

/// Returns the first run whose total over all hosts is missing or invalid.
fn incomplete(sides: &[FleetSide<'_>]) -> Option<String> {
    sides.iter().find_map(|side| {
        let wrong = |run: &&FleetRun<'_>| {
            run.verdict.total.is_none()
                // Other code judges the findings on the single hosts.
                || run.verdict.verdict == VerdictKind::Invalid
                    && run.hosts.iter().all(|(_, host)| host.verdict != VerdictKind::Invalid)
        };
        let run = side.runs.iter().find(wrong)?;
        Some(format!(
            "No winner: run {} of {} is not a valid measurement: {}.",
            run.run_id, side.name, run.verdict.reason
        ))
    })
}

fn numbers(
    sides: &[FleetSide<'_>],
    taken: &[String],
    factors: &[String],
) -> Option<ConditionDifference> {
    let number = |side: &FleetSide<'_>| {
        let numbers: BTreeSet<usize> =
            side.runs.iter().map(|run| run.verdict.hosts.len()).collect();
        numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    };
    differing(HOSTS, sides.iter().map(number).collect(), taken, factors)
}

/// Describes whether the hosts make separate random choices, according to the seeds of each run. In
/// earlier builds all hosts made the same choices, so they issued the same I/Os at the same time.
fn draws(mut runs: impl Iterator<Item = Vec<u64>>) -> String {
    let is_one = |seeds: Vec<u64>| seeds.len() > 1 && seeds.windows(2).all(|two| two[0] == two[1]);
    match runs.any(is_one) {
        true => "the same for all hosts".to_owned(),
        false => "separate for each host".to_owned(),
    }
}

/// Returns a condition with its values, if the values differ between the sides of the comparison.
fn differing(
    name: &str,
    values: Vec<String>,
    taken: &[String],
    factors: &[String],
) -> Option<ConditionDifference> {
    let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
    let names = |words: &[String]| words.iter().any(|word| conditions::covers(word, name));
    differs.then(|| ConditionDifference {
        name: name.to_owned(),
        values,
        accepted: names(taken),
        factor: names(factors),
    })
}

fn metrics_of(sides: &[FleetSide<'_>]) -> Vec<Metric> {
    let runs = || sides.iter().flat_map(|side| &side.runs);
    let Some((first, _)) = runs().find_map(|run| run.hosts.first()) else { return Vec::new() };
    let mut all = Vec::new();
    for figure in metrics::of(&first.plan.workload) {
        if !matches!(figure.unit, FigureUnit::PerSecond | FigureUnit::BytesPerSecond) {
            continue;
        }
        let of_run = |run: &FleetRun<'_>| {
            run.verdict.total.as_ref()?;
            run.hosts.iter().map(|(bundle, _)| (figure.of)(bundle)).sum::<Option<f64>>()
        };
        let values: Vec<Vec<f64>> =
            sides.iter().map(|side| side.runs.iter().filter_map(of_run).collect()).collect();
        if values.iter().all(Vec::is_empty) {
            continue;
        }
        let metric = metric(figure, &values, false);
        all.push(Metric { name: format!("{}, all hosts", metric.name), ..metric });
    }
    let totals = || runs().filter_map(|run| run.verdict.total.as_ref());
    let mut classes: Vec<&str> = Vec::new();
    for class in totals().flat_map(|total| &total.classes) {
        if !classes.contains(&class.name.as_str()) {
            classes.push(&class.name);
        }
    }
    for class in classes {
        for (key, name, of) in LATENCIES {
            let of_run = |run: &FleetRun<'_>| {
                let classes = &run.verdict.total.as_ref()?.classes;
                of(classes.iter().find(|line| line.name == class)?).map(|ns| ns as f64)
            };
            let values: Vec<Vec<f64>> =
                sides.iter().map(|side| side.runs.iter().filter_map(of_run).collect()).collect();
            if values.iter().all(|values| !values.is_empty()) {
                let (key, name) = (format!("{class}_{key}"), format!("{class}: {name}"));
                let unit = FigureUnit::Nanoseconds;
                all.push(metric_as((key, name), false, unit, &values, false));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_fleet_run_counts_once_with_the_fleets_own_verdict() {
        let verdict = FleetVerdict {
            verdict: VerdictKind::Measured,
            reason: String::new(),
            demonstration: false,
            total: None,
            checks: Vec::new(),
            claims: BTreeMap::new(),
            hosts: Vec::new(),
            findings: Vec::new(),
            host_findings: Vec::new(),
            passed: Vec::new(),
            accepted: Vec::new(),
            declared: Vec::new(),
            rules_version: 1,
            run_id: String::new(),
        };
        let worse = FleetVerdict { verdict: VerdictKind::Invalid, ..verdict.clone() };
        let run = |verdict| FleetRun { run_id: "r", verdict, hosts: Vec::new() };
        let side = FleetSide { name: "a".into(), runs: vec![run(&verdict), run(&worse)] };
        let result = requirement_result(&side, &of_hosts(&side));
        assert_eq!((result.runs, result.measured), (2, 1));
        assert_eq!(result.verdicts, "MEASURED 1, INVALID 1");
    }

    #[test]
    fn hosts_that_draw_alike_are_another_condition_than_hosts_that_do_not() {
        let side = |runs: &[&[u64]]| draws(runs.iter().map(|seeds| seeds.to_vec()));
        let own = side(&[&[1, 2, 3], &[1, 2]]);
        assert_eq!(
            (&own, side(&[&[42]])),
            (&side(&[]), own.clone()),
            "one host falls together with none"
        );
        let values = vec![own, side(&[&[1, 2], &[42, 42]])];
        let said = differing(SEED, values.clone(), &["plan".to_owned()], &[]);
        assert!(said.is_some_and(|one| one.values == values && one.accepted && !one.factor));
        assert!(differing(SEED, vec![side(&[&[7, 7]]), side(&[&[42, 42]])], &[], &[]).is_none());
    }
}
