//! Checks whether the figure depends on the size of the working set.

use plimsoll_evidence::Bundle;

use super::super::{Weight, evidence};
use super::ExperimentRule;
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};

/// Two runs are compared only if their working sets differ by at least this ratio, in bytes or
/// relative to the declared caches.
const APART_MIN: f64 = 1.5;
/// If the smaller working set is faster by at least this factor, only a cache explains the gain. On
/// a rotating disk, a small working set avoids long seeks. Seeks take 8 ms of a total of about 12
/// ms, and avoiding them saves at most half of the total.
const GAIN_FAIL: f64 = 2.0;
/// If the smaller working set is faster by at least this factor, the gain exceeds noise. Repeats on
/// shared hosts agree within 10 %.
const GAIN_MAX: f64 = 1.25;

pub const RULE: ExperimentRule = ExperimentRule {
    id: "working-set-grows",
    asks: "does the rate or latency change with the working set, or with the declared cache?",
    explains: "Runs of the same workload on working sets of several sizes reveal caches that are \
     otherwise invisible, because media are about as fast on a large working set as on a small \
     one. The rule compares the runs with the smallest and the largest working set (relative to \
     `observe.array_cache`, if every plan declares it). If the run with the smaller set is at \
     least 25 % faster, a cache may have served its reads, and the outcome is unknown. If this run \
     is at least twice as fast, the rule fails for `media-read`. Put the bundles of the runs in \
     one directory and use `plimsoll runs show`, or compare them.",
    bears_on: &[(Claim::MediaRead, Weight::Mandatory), (Claim::Comparative, Weight::Mandatory)],
    check,
};

/// One run.
struct Point {
    working_set_bytes: u64,
    /// Ratio of the working set to the declared cache.
    times_cache: Option<f64>,
    rate_per_s: f64,
    latency_ns_avg: f64,
}

fn check(runs: &[&Bundle]) -> Option<Finding> {
    let (first, others) = runs.split_first().filter(|(_, others)| !others.is_empty())?;
    if !others.iter().all(|other| alike(first, other)) {
        return None;
    }
    let points: Vec<Point> = runs.iter().map(|run| point(run)).collect::<Option<_>>()?;
    let by_cache = points.iter().all(|point| point.times_cache.is_some());
    let size = |point: &Point| match point.times_cache {
        Some(times) if by_cache => times,
        _ => point.working_set_bytes as f64,
    };
    let near = points.iter().min_by(|a, b| size(a).total_cmp(&size(b)))?;
    let far = points.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    if size(far) < size(near) * APART_MIN {
        return None;
    }
    let gain = (near.rate_per_s / far.rate_per_s).max(far.latency_ns_avg / near.latency_ns_avg);
    let describe = |point: &Point| match point.times_cache {
        Some(times) if by_cache => format!("{times:.1} times the declared cache"),
        _ => evidence::size(point.working_set_bytes),
    };
    let numbers = format!(
        "with a working set of {}, the rate was {:.0}/s at a mean latency of {:.2} ms; with {}, \
         it was {:.0}/s at {:.2} ms",
        describe(near),
        near.rate_per_s,
        near.latency_ns_avg / 1e6,
        describe(far),
        far.rate_per_s,
        far.latency_ns_avg / 1e6
    );
    let advice = "report the figure of a working set that is larger than every cache";
    let finding = if gain >= GAIN_FAIL {
        let says = format!("{numbers}: the smaller working set is served from a cache");
        Finding::new(RULE.id, Outcome::Fail, says).advise(advice)
    } else if gain >= GAIN_MAX {
        Finding::new(
            RULE.id,
            Outcome::Unknown,
            format!("{numbers}: the smaller working set may be served from a cache"),
        )
        .advise(advice)
    } else {
        Finding::new(RULE.id, Outcome::Pass, numbers)
    };
    Some(finding.with("gain", gain))
}

/// Returns true if both runs issue the same operations, apart from their addresses.
fn alike(one: &Bundle, other: &Bundle) -> bool {
    let operations = |bundle: &Bundle| -> Vec<_> {
        let streams = evidence::streams(bundle).iter();
        streams
            .map(|s| (s.sizes.clone(), s.read_percent, s.pattern, s.queue_depth, s.clients))
            .collect()
    };
    let (one, other) = (operations(one), operations(other));
    !one.is_empty() && one == other
}

fn point(bundle: &Bundle) -> Option<Point> {
    let profile = &bundle.observed.workload;
    let sides = [profile.working_set_read_bytes, profile.working_set_written_bytes];
    let working_set_bytes = sides.into_iter().flatten().max().filter(|bytes| *bytes > 0)?;
    let cache = bundle.plan.observe.array_cache_bytes.filter(|bytes| *bytes > 0);
    let rate_per_s = figures::rate_per_s(bundle, Pick::Transactional)?;
    let latency_ns_avg = figures::totals(bundle, Pick::Transactional).mean_ns()? as f64;
    (rate_per_s > 0.0 && latency_ns_avg > 0.0).then_some(Point {
        working_set_bytes,
        times_cache: cache.map(|cache| working_set_bytes as f64 / cache as f64),
        rate_per_s,
        latency_ns_avg,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::super::fixtures;
    use super::*;

    /// Returns a run on this working set whose rate is `percent` of the unmodified run's rate.
    fn run(working_set_bytes: u64, percent: u64) -> Bundle {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.working_set_read_bytes = Some(working_set_bytes);
        let class = &mut bundle.run.classes[0];
        class.count = class.count * percent / 100;
        bundle
    }

    fn outcome(near: &Bundle, far: &Bundle) -> Option<Outcome> {
        let finding = check(&[near, far]);
        assert_eq!(finding, check(&[far, near]), "the order of runs is no matter");
        finding.map(|finding| finding.outcome)
    }

    #[test]
    fn what_is_faster_on_less_data_came_from_a_cache() {
        let far = run(64 << 30, 100);
        assert_eq!(outcome(&run(1 << 30, 124), &far), Some(Outcome::Pass));
        assert_eq!(outcome(&run(1 << 30, 126), &far), Some(Outcome::Unknown));
        assert_eq!(outcome(&run(1 << 30, 199), &far), Some(Outcome::Unknown));
        assert_eq!(outcome(&run(1 << 30, 201), &far), Some(Outcome::Fail));
        // If the run with less data is slower, the cause is not a cache.
        assert_eq!(outcome(&run(1 << 30, 50), &far), Some(Outcome::Pass));
    }

    #[test]
    fn a_declared_cache_that_grows_shows_it_too() {
        let with_cache = |bytes: u64, percent| {
            let mut bundle = run(8 << 30, percent);
            bundle.plan.observe.array_cache_bytes = Some(bytes);
            bundle
        };
        assert_eq!(
            outcome(&with_cache(16 << 30, 300), &with_cache(1 << 30, 100)),
            Some(Outcome::Fail)
        );
        assert_eq!(
            outcome(&with_cache(16 << 30, 101), &with_cache(1 << 30, 100)),
            Some(Outcome::Pass)
        );
    }

    #[test]
    fn working_sets_of_one_size_and_other_workloads_are_not_asked() {
        assert_eq!(outcome(&run(10 << 30, 300), &run(14 << 30, 100)), None);
        let mut deeper = fixtures::reads_with("queue_depth = 8", "queue_depth = 32");
        deeper.observed.workload.working_set_read_bytes = Some(64 << 30);
        assert_eq!(outcome(&run(1 << 30, 300), &deeper), None);
        let mut unseen = run(1 << 30, 300);
        unseen.observed.workload.working_set_read_bytes = None;
        assert_eq!(outcome(&unseen, &run(64 << 30, 100)), None);
    }
}
