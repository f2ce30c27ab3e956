//! Checks: each limit of the requirement against what was measured, one row each.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{LatencyClass, LatencyLimit, LatencyStatistic, Pace, Requirement, Workload};

use crate::figures::{self, NS_PER_S, Pick, measured};
use crate::stats;
use crate::verdict::{Check, Quantity};

/// An open loop is asked for its target rate and can't exceed it; within this share of it counts as
/// reached. Also what the engine's pacing is held to: half a percent, and as much for the target.
const OPEN_LOOP_SLACK: f64 = 0.01;

/// At most this many stretches are made of a measurement for its statistics.
const STRETCHES_MAX: u64 = 1_000;

/// Name of the counter of page-fault stalls.
pub const STALLS: &str = "page_fault_stalls";

/// All checks of the requirement.
pub fn all(bundle: &Bundle, requirement: &Requirement) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(achieved_iops(bundle, requirement));
    for limit in &requirement.limits {
        checks.extend(latency(bundle, requirement, limit));
    }
    checks.extend(stalls(bundle, requirement));
    // A model carries no data that could be right or wrong.
    let has_data = bundle.run.driver != Driver::Model;
    if has_data && matches!(bundle.plan.workload, Workload::Mailbox(_)) {
        checks.push(checksum_errors(bundle));
    }
    checks
}

/// True where the load came at a set rate instead of as fast as the sessions go.
pub fn open_loop(bundle: &Bundle) -> bool {
    !bundle.run.engine.closed_loop
        || bundle.plan.workload.mailbox().is_some_and(|store| store.pace == Pace::Target)
}

fn stretch_ns(bundle: &Bundle) -> u64 {
    let measured_ns = measured(bundle).map_or(0, |phase| phase.duration_ns);
    bundle.plan.evidence.interval_ns.max(measured_ns / STRETCHES_MAX).max(1)
}

/// How sure a mean is to lie on its side of a limit.
struct Sure {
    interval: Option<[f64; 2]>,
    /// `None`: the samples do not tell.
    within: Option<bool>,
}

/// A mean keeps its limit when its interval is clear of it, or when all ten batch means keep it. It
/// breaks it when the interval lies wholly beyond, or where there is none. Otherwise the samples do
/// not tell.
fn sure(values: &[f64], mean: f64, keeps: impl Fn(f64) -> bool) -> Sure {
    let interval = stats::batch_means(values).ok();
    let ends = interval.map(|i| [i.low, i.high]);
    let within = if keeps(mean) {
        let clear = ends.is_some_and(|ends| ends.into_iter().all(&keeps));
        let all_ten = stats::ten_batch_means(values).is_some_and(|ten| ten.into_iter().all(&keeps));
        (clear || all_ten).then_some(true)
    } else {
        let straddles = ends.is_some_and(|ends| ends.into_iter().any(&keeps));
        (!straddles).then_some(false)
    };
    Sure { interval: ends, within }
}

fn note_of(sure: &Sure, mean_keeps: bool) -> String {
    match (sure.within, mean_keeps) {
        (Some(_), _) => String::new(),
        (None, true) => "too few or too unsteady samples to be sure".to_owned(),
        (None, false) => "the interval straddles the limit".to_owned(),
    }
}

fn achieved_iops(bundle: &Bundle, requirement: &Requirement) -> Option<Check> {
    let limit_per_s = requirement.iops_per_s?;
    let measured_per_s = figures::rate_per_s(bundle, Pick::Transactional);
    let open = open_loop(bundle);
    let mut check = Check {
        name: "achieved_iops".to_owned(),
        quantity: Quantity::Rate { limit_per_s, measured_per_s },
        at_least: true,
        ok: None,
        note: String::new(),
        interval: None,
    };
    let Some(rate) = measured_per_s else { return Some(check) };
    if open {
        check.ok = Some(rate >= limit_per_s * (1.0 - OPEN_LOOP_SLACK));
        check.note = "open loop: within 1 % of the target counts as reached".to_owned();
        return Some(check);
    }
    let rates = figures::rates_per_s(bundle, Pick::Transactional, stretch_ns(bundle));
    let keeps = |rate: f64| rate >= limit_per_s;
    let sure = sure(&rates, rate, keeps);
    check.note = note_of(&sure, keeps(rate));
    check.ok = sure.within;
    check.interval = sure.interval;
    Some(check)
}

/// Which I/O a limit is on, for one instance or for all; `None` where the workload has no such.
fn pick_of(class: LatencyClass, instance: Option<u32>) -> Option<Pick> {
    match class {
        LatencyClass::DbRead => Some(Pick::DatabaseReads(instance)),
        LatencyClass::DbWrite => Some(Pick::DatabaseWrites(instance)),
        LatencyClass::LogWrite => Some(Pick::LogWrites(instance)),
        LatencyClass::Read => Some(Pick::Reads(instance)),
        LatencyClass::Write => Some(Pick::Writes(instance)),
        LatencyClass::Metadata => Some(Pick::Metadata(instance)),
        LatencyClass::All => Some(Pick::All(instance)),
    }
}

/// Each database has to keep a limit, as in Jetstress: the row shows the worst.
fn latency(bundle: &Bundle, requirement: &Requirement, limit: &LatencyLimit) -> Option<Check> {
    pick_of(limit.class, None)?;
    let instances = figures::instances(bundle, |i| {
        pick_of(limit.class, Some(i)).unwrap_or(Pick::DatabaseReads(Some(i)))
    });
    let worst = instances
        .into_iter()
        .filter_map(|instance| {
            let pick = pick_of(limit.class, Some(instance))?;
            Some((measure(bundle, requirement, limit, pick)?, instance, pick))
        })
        .max_by_key(|(measured_ns, ..)| *measured_ns);
    let limit_ns = limit.limit_ns;
    let mut check = Check {
        name: limit.name.clone(),
        quantity: Quantity::Latency { limit_ns, measured_ns: worst.map(|(ns, ..)| ns) },
        at_least: false,
        ok: None,
        note: String::new(),
        interval: None,
    };
    let Some((measured_ns, instance, pick)) = worst else { return Some(check) };
    let name = bundle.run.instances.get(instance as usize).map_or("", |i| i.name.as_str());
    if limit.statistic == LatencyStatistic::Avg {
        let means = figures::latencies_ns(bundle, pick, stretch_ns(bundle));
        let keeps = |ns: f64| ns <= limit_ns as f64;
        let sure = sure(&means, measured_ns as f64, keeps);
        check.note = [format!("worst: {name}"), note_of(&sure, keeps(measured_ns as f64))]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; ");
        check.ok = sure.within;
        check.interval = sure.interval;
    } else {
        check.ok = Some(measured_ns <= limit_ns);
        check.note = format!("worst: {name}");
        if limit.statistic == LatencyStatistic::Max
            && let Some(single_ns) = figures::latency_ns_max(bundle, pick_of(limit.class, None)?)
        {
            let of = requirement.latency_max_of_ns as f64 / NS_PER_S;
            let single_ms = single_ns as f64 / 1e6;
            check.note.push_str(&format!(
                "; largest mean of {of} s intervals; largest single I/O {single_ms:.1} ms, not judged"
            ));
        }
    }
    Some(check)
}

fn measure(
    bundle: &Bundle,
    requirement: &Requirement,
    limit: &LatencyLimit,
    pick: Pick,
) -> Option<u64> {
    match limit.statistic {
        LatencyStatistic::Avg => figures::totals(bundle, pick).mean_ns(),
        LatencyStatistic::Max => {
            figures::latency_ns_max_of_means(bundle, pick, requirement.latency_max_of_ns)
        }
        statistic => figures::percentile_ns(bundle, pick, statistic.quantile()?),
    }
}

fn stalls(bundle: &Bundle, requirement: &Requirement) -> Option<Check> {
    let limit_per_s = requirement.page_fault_stalls_max_per_s?;
    let seconds = measured(bundle).map(|phase| phase.duration_ns as f64 / NS_PER_S);
    let counted = bundle.run.counters.get(STALLS).copied();
    let measured_per_s = counted.zip(seconds).map(|(count, seconds)| count as f64 / seconds);
    Some(Check {
        name: "page_fault_stalls".to_owned(),
        quantity: Quantity::Rate { limit_per_s, measured_per_s },
        at_least: false,
        ok: measured_per_s.map(|rate| rate <= limit_per_s),
        note: String::new(),
        interval: None,
    })
}

fn checksum_errors(bundle: &Bundle) -> Check {
    let checks = &bundle.run.checks;
    // Errors that were found count, whether or not the check of all pages came to its end.
    let measured_count =
        (checks.pages_checked.is_some() || checks.errors > 0).then_some(checks.errors);
    let note = match checks.pages_checked {
        Some(pages) => format!("{pages} pages checked"),
        None if bundle.plan.phases.verify => "the check did not come to its end".to_owned(),
        None => "turned off by the plan".to_owned(),
    };
    let off = !bundle.plan.phases.verify && checks.errors == 0;
    Check {
        name: "checksum_errors".to_owned(),
        quantity: Quantity::Count { limit_count: 0, measured_count },
        at_least: false,
        ok: if off { Some(true) } else { measured_count.map(|count| count == 0) },
        note,
        interval: None,
    }
}
