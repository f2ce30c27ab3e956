//! Percentile of latency with its confidence interval.
//!
//! The interval is computed from order statistics ([`crate::stats::percentile`]), with the
//! effective number of independent samples. Slow operations occur in clusters: ten thousand slow
//! operations during one stall prove only that one stall occurred ([`crate::stats::exceedance`]).
//! The histograms of consecutive spans of time show these clusters.

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::latency::{Interval, Packed};
use plimsoll_evidence::run::ClassTotals;

use crate::figures::measured;
use crate::stats::{Span, effective_sample_beyond, percentile::quantile_ranks, percentile_gate};

/// Confidence level of an interval.
const CONFIDENCE: f64 = 0.95;
/// Number of parts into which the measurement is divided if there is no interval; all parts must
/// agree. Means use the same number ([`crate::stats::ten_batch_means`]).
const PARTS: usize = 10;

/// Latencies of selected classes over the measured phase.
#[derive(Debug)]
pub struct Tail<'a> {
    merged: Histogram<u64>,
    /// Histograms of consecutive spans of time of equal length.
    spans: Vec<Vec<&'a Packed>>,
    /// Length of a span.
    width_ns: u64,
}

/// Ratio of the share of slow operations to the share that the percentile allows. Above this ratio,
/// the limit counts as exceeded without an interval, because dependence between samples cannot
/// explain such a large ratio.
const FACTOR: f64 = 10.0;

/// Result of comparing a percentile with a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitCheck {
    /// True if the limit is met; `None` if the samples are not sufficient for a decision.
    pub within: Option<bool>,
    /// 95 % interval of the percentile in nanoseconds.
    pub interval_ns: Option<[f64; 2]>,
    /// Reason why the samples are not sufficient for a decision.
    pub note: String,
}

impl<'a> Tail<'a> {
    /// Collects the latencies of the classes for which `takes` returns true. `None` if these have
    /// no latencies.
    pub fn of(bundle: &'a Bundle, takes: impl Fn(&ClassTotals) -> bool) -> Option<Self> {
        let names: Vec<&str> =
            bundle.run.classes.iter().filter(|c| takes(c)).map(|c| c.name.as_str()).collect();
        let mut merged = plimsoll_evidence::latency::histogram();
        for name in &names {
            if let Some(histogram) = bundle.latency.get(*name) {
                merged.add(histogram).ok()?;
            }
        }
        if merged.is_empty() {
            return None;
        }
        let intervals =
            bundle.latency_spans.iter().filter(|i| names.contains(&i.tag.as_str())).collect();
        let (spans, width_ns) = spans(bundle, intervals);
        Some(Self { merged, spans, width_ns })
    }

    /// Returns all latencies in one histogram.
    pub(crate) fn merged(&self) -> &Histogram<u64> {
        &self.merged
    }

    /// Returns the share of operations slower than a limit, for each span. A span without a
    /// completion counts as entirely slow if the operation that completed next had been waiting
    /// since before the span. Otherwise no operation was issued in the span, and the span is
    /// skipped.
    pub fn slow_share_over_time(&self, limit_ns: u64) -> Vec<f64> {
        let limit_ns = self.merged.highest_equivalent(limit_ns);
        let share = |buckets: Vec<(u64, f64)>| {
            buckets.iter().filter(|(value, _)| *value > limit_ns).map(|(_, weight)| weight).sum()
        };
        self.weighted_spans().map(share).collect()
    }

    /// Returns the percentile with equal weights for all spans, regardless of their numbers of
    /// operations.
    pub fn quantile_over_time(&self, quantile: f64) -> Option<u64> {
        let mut buckets: Vec<(u64, f64)> = self.weighted_spans().flatten().collect();
        buckets.sort_unstable_by_key(|(value, _)| *value);
        let total: f64 = buckets.iter().map(|(_, weight)| weight).sum();
        let mut seen = 0.0;
        let reached = buckets.iter().find(|(_, weight)| {
            seen += weight;
            seen >= total * quantile
        });
        reached.or(buckets.last()).map(|(value, _)| *value)
    }

    /// Returns the latencies of each span with their weights. The weights in a span add up to 1.
    fn weighted_spans(&self) -> impl Iterator<Item = Vec<(u64, f64)>> + '_ {
        let weighted = |index: usize| {
            let span = &self.spans[index];
            let count: u64 = span.iter().map(|histogram| histogram.count()).sum();
            if count > 0 {
                let buckets = span.iter().flat_map(|histogram| histogram.buckets());
                return Some(buckets.map(|(ns, n)| (ns, n as f64 / count as f64)).collect());
            }
            self.waiting_ns(index).map(|ns| vec![(ns, 1.0)])
        };
        (0..self.spans.len()).filter_map(weighted)
    }

    /// Returns the latency of the operation that waited throughout a span without completions.
    fn waiting_ns(&self, index: usize) -> Option<u64> {
        let later = self.spans.iter().enumerate().skip(index + 1);
        let slowest = |span: &Vec<&Packed>| {
            span.iter().flat_map(|histogram| histogram.buckets()).map(|(ns, _)| ns).max()
        };
        let (at, slowest_ns) = later.filter_map(|(at, span)| Some((at, slowest(span)?))).next()?;
        (slowest_ns >= (at - index) as u64 * self.width_ns).then_some(slowest_ns)
    }

    pub fn samples(&self) -> u64 {
        self.merged.len()
    }

    /// Returns the effective number of independent samples for the percentile; `None` if the spans
    /// are not sufficient to determine it.
    pub fn effective_sample(&self, quantile: f64) -> Option<f64> {
        let value_ns = self.merged.value_at_quantile(quantile);
        let in_spans: u64 = self.spans.iter().flatten().map(|histogram| histogram.count()).sum();
        if in_spans != self.samples() {
            return None;
        }
        effective_sample_beyond(&self.spans_of_slow_samples(value_ns, 1.0 - quantile)).ok()
    }

    /// Counts the samples above a percentile in each span. If many samples are equal to the
    /// percentile, they are included if this brings the total closer to the percentile's share.
    fn spans_of_slow_samples(&self, value_ns: u64, share: f64) -> Vec<Span> {
        let beyond = self.spans_beyond(value_ns);
        let from = self.spans_beyond(self.merged.lowest_equivalent(value_ns).saturating_sub(1));
        let off = |spans: &[Span]| {
            let slow: u64 = spans.iter().map(|span| span.beyond).sum();
            (slow as f64 / self.samples() as f64 - share).abs()
        };
        if off(&from) < off(&beyond) { from } else { beyond }
    }

    /// Returns the percentile's 95 % interval in nanoseconds; `None` if there are too few samples.
    pub fn interval_ns(&self, quantile: f64) -> Option<[u64; 2]> {
        let effective = self.effective_sample(quantile)?;
        let ranks = quantile_ranks(self.samples(), effective, quantile, CONFIDENCE).ok()?;
        let at = |rank| value_at_rank(&self.merged, rank);
        Some([self.merged.lowest_equivalent(at(ranks.low)), at(ranks.high)])
    }

    /// Compares the percentile with a limit. The comparison is decided if the interval excludes the
    /// limit, or if all tenths of the measurement agree.
    pub fn check_limit(&self, quantile: f64, limit_ns: u64) -> LimitCheck {
        let interval = self.interval_ns(quantile);
        let within = match interval {
            Some([_, high]) if high <= limit_ns => Some(true),
            Some([low, _]) if low > limit_ns => Some(false),
            _ if self.breaks_by_a_factor(quantile, limit_ns) => Some(false),
            _ => self.common_result(quantile, limit_ns),
        };
        let note = match (within, interval) {
            (Some(_), _) => String::new(),
            (None, Some(_)) => "the confidence interval includes the limit".to_owned(),
            (None, None) => self.undecided_reason(quantile),
        };
        let interval_ns = interval.map(|ends| ends.map(|ns| ns as f64));
        LimitCheck { within, interval_ns, note }
    }

    /// Returns the share of all operations that is slower than a limit.
    pub(crate) fn slow_share(&self, limit_ns: u64) -> f64 {
        let slow = self.merged.iter_recorded().map(|bucket| {
            let is_slow = bucket.value_iterated_to() > self.merged.highest_equivalent(limit_ns);
            if is_slow { bucket.count_at_value() } else { 0 }
        });
        slow.sum::<u64>() as f64 / self.samples().max(1) as f64
    }

    /// Returns true if at least ten times more operations exceed the limit than the percentile
    /// allows (for a p99, more than 10 %), or at least ten times fewer meet it than the percentile
    /// requires (for a p50, less than 5 %). In addition, the percentile must be exceeded in most
    /// parts of the measurement.
    pub(crate) fn breaks_by_a_factor(&self, quantile: f64, limit_ns: u64) -> bool {
        let allowed = ((1.0 - quantile) * FACTOR).min(1.0 - quantile / FACTOR);
        if self.slow_share(limit_ns) <= allowed {
            return false;
        }
        let spans = self.spans_beyond(limit_ns);
        let counted = spans.iter().filter(|span| span.count > 0);
        let broken = |span: &&Span| span.beyond as f64 > span.count as f64 * (1.0 - quantile);
        let (all, slow) = (counted.clone().count(), counted.filter(broken).count());
        all >= 3 && slow * 2 > all
    }

    fn undecided_reason(&self, quantile: f64) -> String {
        match self.effective_sample(quantile) {
            Some(effective) => format!(
                "{} I/Os are equivalent to {effective:.0} independent I/Os, because slow I/Os occur \
                 in clusters: these are too few for p{}",
                self.samples(),
                quantile * 100.0
            ),
            None => "the measurement is too short or too unsteady to estimate how much latencies \
                     depend on earlier latencies"
                .into(),
        }
    }

    /// Returns the common result of the tenths of the measurement; `None` if they disagree or are
    /// undecided. With fewer than ten spans, the function can show that the limit is exceeded, but
    /// not that it is met.
    fn common_result(&self, quantile: f64, limit_ns: u64) -> Option<bool> {
        let beyond = self.spans_beyond(limit_ns);
        let parts = beyond.len().min(PARTS);
        let keeps = (0..parts).map(|part| {
            let spans = &beyond[part * beyond.len() / parts..(part + 1) * beyond.len() / parts];
            let count: u64 = spans.iter().map(|span| span.count).sum();
            let slow: u64 = spans.iter().map(|span| span.beyond).sum();
            (count > 0).then_some(slow as f64 <= count as f64 * (1.0 - quantile))
        });
        let said: Vec<bool> = keeps.collect::<Option<_>>()?;
        let first = *said.first()?;
        (said.iter().all(|keeps| *keeps == first) && (!first || parts == PARTS)).then_some(first)
    }

    fn spans_beyond(&self, value_ns: u64) -> Vec<Span> {
        let value_ns = self.merged.highest_equivalent(value_ns);
        let sum = |span: &Vec<&Packed>, of: &dyn Fn(&Packed) -> u64| -> u64 {
            span.iter().map(|histogram| of(histogram)).sum()
        };
        let span = |span: &Vec<&Packed>| Span {
            count: sum(span, &Packed::count),
            beyond: sum(span, &|histogram| histogram.count_beyond(value_ns)),
        };
        self.spans.iter().map(span).collect()
    }
}

/// Returns true if the samples are enough for the percentile. `effective` is their equivalent
/// number of independent samples.
pub fn supports_percentile(samples: u64, effective: f64, quantile: f64) -> bool {
    percentile_gate(samples as usize, effective, quantile).is_ok()
}

/// Groups histograms into spans of the histograms' median length. Operations that completed after
/// the end of the measurement are included in the last span.
fn spans<'a>(bundle: &Bundle, intervals: Vec<&'a Interval>) -> (Vec<Vec<&'a Packed>>, u64) {
    let Some(measure) = measured(bundle) else { return (Vec::new(), 0) };
    let mut lengths_ns: Vec<u64> = intervals.iter().map(|i| i.duration_ns).collect();
    lengths_ns.sort_unstable();
    let Some(&typical_ns) = lengths_ns.get(lengths_ns.len() / 2) else {
        return (Vec::new(), 0);
    };
    let width_ns = typical_ns.clamp(1, measure.duration_ns);
    let count = ((measure.duration_ns + width_ns / 2) / width_ns).max(1) as usize;
    let mut spans = vec![Vec::new(); count];
    for interval in intervals {
        let from_ns = interval.start_ns.saturating_sub(measure.start_ns);
        let at = ((from_ns + width_ns / 2) / width_ns) as usize;
        spans[at.min(count - 1)].push(&interval.histogram);
    }
    (spans, width_ns)
}

/// Returns the value at a rank, counted from 1.
fn value_at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for bucket in histogram.iter_recorded() {
        seen += bucket.count_at_value();
        if seen >= rank {
            return bucket.value_iterated_to();
        }
    }
    histogram.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixtures::{self, SECOND_NS};

    const MS: u64 = 1_000_000;

    /// Returns a run of one minute with 1,000 reads/s. For each second, `slow` returns the number
    /// of reads that take 100 ms; the other reads take about 1 ms.
    fn run(slow: impl Fn(u64) -> u64) -> Bundle {
        let mut bundle = fixtures::reads();
        let mut merged = plimsoll_evidence::latency::histogram();
        bundle.latency_spans = (0..fixtures::SECONDS)
            .map(|second| {
                let mut span = plimsoll_evidence::latency::histogram();
                // Varies the values, so that they are not all equal.
                span.record_n(MS + second * 7 % 5 * 10_000, 1000 - slow(second)).unwrap();
                if slow(second) > 0 {
                    span.record_n(100 * MS, slow(second)).unwrap();
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

    fn check_p99(bundle: &Bundle, limit_ns: u64) -> LimitCheck {
        Tail::of(bundle, |_| true).unwrap().check_limit(0.99, limit_ns)
    }

    #[test]
    fn a_percentile_that_is_clear_of_its_limit_is_decided() {
        // In the first run, 0.5 % of the reads are slow, spread evenly over time. In the second
        // run, 2 % are slow.
        let few = check_p99(&run(|_| 5), 50 * MS);
        assert_eq!(few.within, Some(true), "{few:?}");
        let [low, high] = few.interval_ns.unwrap();
        assert!(low >= 0.99e6 && high < 2e6, "{few:?}");
        let many = check_p99(&run(|_| 20), 50 * MS);
        assert_eq!(many.within, Some(false), "{many:?}");
    }

    #[test]
    fn one_percent_that_is_now_here_and_now_there_straddles_the_limit() {
        let even = check_p99(&run(|second| [6, 9, 14, 8, 12][second as usize % 5]), 50 * MS);
        assert_eq!(even.within, None, "{even:?}");
        assert_eq!(even.note, "the confidence interval includes the limit");
    }

    #[test]
    fn a_stall_is_one_event_however_many_it_holds_up() {
        // 800 of 60,000 reads are slow, all in one second of sixty. The same number of independent
        // slow reads would be conclusive.
        let stall = run(|second| if second == 30 { 800 } else { 0 });
        let tail = Tail::of(&stall, |_| true).unwrap();
        assert!(tail.effective_sample(0.99).unwrap() < 200.0);
        let broken = tail.check_limit(0.99, 50 * MS);
        assert_eq!((broken.within, broken.interval_ns), (None, None), "{broken:?}");
        assert!(broken.note.contains("these are too few for p99"), "{broken:?}");
        // The limit is so high that even the stall does not exceed it, so all tenths meet the
        // limit.
        assert_eq!(tail.check_limit(0.99, 200 * MS).within, Some(true));
        // This limit is so low that all reads exceed it.
        assert_eq!(tail.check_limit(0.99, MS / 2).within, Some(false));
    }

    #[test]
    fn a_short_run_can_show_that_a_limit_is_broken_and_not_that_it_is_kept() {
        let mut bundle = run(|_| 20);
        bundle.run.phases[1].duration_ns = 5 * SECOND_NS;
        bundle.latency_spans.truncate(5);
        assert_eq!(check_p99(&bundle, 50 * MS).within, Some(false));
        assert_eq!(check_p99(&bundle, 200 * MS).within, None);
    }

    #[test]
    fn a_median_near_its_limit_is_not_exceeded_by_a_factor() {
        let bundle = run(|_| 0);
        let tail = Tail::of(&bundle, |_| true).unwrap();
        // 60 % of the reads are slower than this limit.
        assert!((0.5..0.7).contains(&tail.slow_share(MS + 15_000)));
        assert!(!tail.breaks_by_a_factor(0.5, MS + 15_000));
        assert!(tail.breaks_by_a_factor(0.5, MS / 2));
    }

    #[test]
    fn without_spans_nothing_is_sure() {
        let mut bundle = run(|_| 5);
        bundle.latency_spans.clear();
        let unsure = check_p99(&bundle, 50 * MS);
        assert_eq!((unsure.within, unsure.interval_ns), (None, None));
        assert!(unsure.note.contains("too short or too unsteady"), "{unsure:?}");
    }
}
