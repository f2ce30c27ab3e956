//! Latency that a closed loop hides, because it issues few operations while the storage stalls.
//!
//! While a client waits for a slow operation, it issues no other operations. A stall of several
//! seconds therefore adds only a few samples to a percentile (coordinated omission). Two
//! corrections estimate the latency for an application with an even load:
//!
//! - In the percentile over time, each interval of the evidence has the same weight, regardless of
//!   its number of operations. If the mean share of slow operations is clearly larger than the
//!   percentile allows, the limit is exceeded.
//! - Gil Tene's correction ([`crate::stats::omission`]), an estimate that also includes stalls
//!   shorter than an interval. It cannot distinguish a stall from a slow path of the storage (a
//!   cache miss). It can therefore make a limit undecided, but never make it fail.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Arrival, Pace, Workload};

use crate::figures::measured;
use crate::stats;
use crate::stats::omission::{Bin, corrected, quantile};
use crate::tail::Tail;

/// Hidden latency of an instance whose recorded percentile meets its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HiddenLatency {
    /// The limit was exceeded for a larger share of the time than the percentile allows.
    BreaksLimit {
        /// Percentile over time, in which each interval has the same weight.
        percentile_ns: u64,
        /// Share of operations that exceed the limit, averaged over the intervals.
        interval_share: f64,
    },
    /// The limit may be exceeded: the percentile with Tene's correction exceeds it.
    Unclear {
        /// Percentile with Tene's correction.
        corrected_ns: u64,
    },
}

/// Returns the hidden latency of an instance whose recorded percentile meets its limit. `None` if
/// no latency is hidden. Also `None` for an open loop, because its latencies are measured from the
/// intended start.
pub(crate) fn find(
    bundle: &Bundle,
    instance: u32,
    limit_ns: u64,
    tail: &Tail<'_>,
    percentile: f64,
) -> Option<HiddenLatency> {
    let clients = closed_clients(bundle, instance)?;
    let allowed = 1.0 - percentile;
    let shares = tail.slow_share_over_time(limit_ns);
    let interval_share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    if interval_share > allowed {
        let clear = stats::batch_means(&shares).is_ok_and(|interval| interval.low > allowed);
        let percentile_ns = tail.quantile_over_time(percentile)?;
        if clear && percentile_ns > limit_ns {
            return Some(HiddenLatency::BreaksLimit { percentile_ns, interval_share });
        }
        return Some(HiddenLatency::Unclear { corrected_ns: percentile_ns });
    }
    let bins: Vec<Bin> = tail
        .merged()
        .iter_recorded()
        .map(|step| Bin { latency_ns: step.value_iterated_to(), count: step.count_at_value() })
        .collect();
    let interval_ns =
        measured(bundle)?.duration_ns.saturating_mul(clients).checked_div(tail.samples())?;
    let corrected_ns = quantile(&corrected(&bins, interval_ns.max(1)).ok()?, percentile)?;
    (corrected_ns > tail.merged().highest_equivalent(limit_ns))
        .then_some(HiddenLatency::Unclear { corrected_ns })
}

/// Returns the number of operations that a closed loop has in flight; `None` for an open loop.
fn closed_clients(bundle: &Bundle, instance: u32) -> Option<u64> {
    match &bundle.plan.workload {
        Workload::Matrix(matrix) => {
            let stream = matrix.streams.get(instance as usize)?;
            matches!(stream.arrival, Arrival::Closed { .. }).then(|| stream.outstanding().max(1))
        }
        Workload::Mailbox(store) => (store.pace != Pace::Target).then(|| {
            let databases = u64::from(store.databases).max(1);
            (u64::from(bundle.run.engine.sessions) / databases).max(1)
        }),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::latency::Interval;

    use super::*;
    use crate::rules::fixtures::{self, SECOND_NS};

    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;

    /// Creates a run with reads of 0.2 ms at depth 1. In the seconds listed in `slow`, it completes
    /// `count` reads with `latency` instead.
    fn run(slow: impl Fn(u64) -> Option<(u64, u64)>) -> Bundle {
        let mut bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 1");
        let mut merged = plimsoll_evidence::latency::histogram();
        bundle.latency_spans = (0..fixtures::SECONDS)
            .map(|second| {
                let mut span = plimsoll_evidence::latency::histogram();
                match slow(second) {
                    Some((latency_ns, count)) => span.record_n(latency_ns, count).unwrap(),
                    None => span.record_n(200 * US + second * 7 % 5 * US, 5_000).unwrap(),
                }
                merged.add(&span).unwrap();
                Interval {
                    tag: "matrix.read".into(),
                    start_ns: (5 + second) * SECOND_NS,
                    duration_ns: SECOND_NS,
                    histogram: (&span).into(),
                }
            })
            .collect();
        bundle.latency.insert("matrix.read".into(), merged);
        bundle
    }

    fn p99(bundle: &Bundle, limit_ns: u64) -> Option<HiddenLatency> {
        let tail = Tail::of(bundle, |_| true).unwrap();
        find(bundle, 0, limit_ns, &tail, 0.99)
    }

    /// The disk is throttled to 4 reads/s for 1 s of every 5: 48 of 240,048 reads are slow.
    #[test]
    fn a_stall_in_every_fifth_second_breaks_the_limit() {
        let stalls = run(|second| (second % 5 == 4).then_some((250 * MS, 4)));
        let Some(HiddenLatency::BreaksLimit { percentile_ns, interval_share }) =
            p99(&stalls, 10 * MS)
        else {
            panic!("{:?}", p99(&stalls, 10 * MS));
        };
        assert!(percentile_ns >= 250 * MS, "{percentile_ns}");
        assert!((interval_share - 0.2).abs() < 1e-9, "{interval_share}");
        assert_eq!(p99(&stalls, 300 * MS), None);
    }

    #[test]
    fn an_outage_counts_in_the_seconds_that_it_lasted() {
        // In two of every ten seconds, no operation completes. The waiting operation completes in
        // the third second.
        let outages = run(|second| match second % 10 {
            7 | 8 => Some((0, 0)),
            9 => Some((2_900 * MS, 1)),
            _ => None,
        });
        let Some(HiddenLatency::BreaksLimit { interval_share, .. }) = p99(&outages, 10 * MS) else {
            panic!("{:?}", p99(&outages, 10 * MS));
        };
        assert!((interval_share - 0.3).abs() < 1e-9, "{interval_share}");
    }

    #[test]
    fn one_stall_leaves_the_limit_open() {
        let once = run(|second| (second == 30).then_some((900 * MS, 1)));
        assert!(matches!(p99(&once, 10 * MS), Some(HiddenLatency::Unclear { .. })), "{once:?}");
    }

    #[test]
    fn an_even_run_and_an_open_loop_hide_nothing() {
        assert_eq!(p99(&run(|_| None), 10 * MS), None);
        let mut open = run(|second| (second % 5 == 4).then_some((250 * MS, 4)));
        let to = "arrival = \"poisson\"\nrate = 1000";
        open.plan.workload = fixtures::reads_with("queue_depth = 8", to).plan.workload;
        assert_eq!(p99(&open, 10 * MS), None);
    }
}
