//! Effective number of independent samples for a percentile.
//!
//! Slow operations occur in clusters: a stall delays every operation in flight, and a cache that
//! writes back is slow for seconds. If the slowest hundred of ten thousand operations belong to one
//! stall, they contain no more information about the p99 than a single operation.
//!
//! A quantile depends on `q`, the share of samples above it. For independent samples, the variance
//! of that share is `q (1 - q) / n`. For dependent samples, the numbers of samples above the
//! quantile in consecutive spans of time form a series. The variance of the share is computed from
//! this series in the same way as the variance of a mean ([`super::batch::ratio_of_totals`]). The effective sample
//! size is the `n` whose binomial distribution has the observed width, `n_effective = q (1 - q) (z
//! / h)²`, where `h` is the half width of the interval of the share. The order statistics then use
//! the effective sample size (compare P. Heidelberger and P. A. W. Lewis, *Quantile Estimation in
//! Dependent Sequences*, Operations Research 32 (1984)).

use super::batch::{Parts, ratio_of_totals};
use super::interval::{Interval, Refusal};
use super::special::normal_quantile;

/// Samples in one span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Number of samples.
    pub count: u64,
    /// Number of samples above the quantile.
    pub beyond: u64,
}

/// Returns the effective sample size of an estimate: the share of samples that exceed a value. The
/// samples are grouped into consecutive spans of time of equal length. It is at most the number of
/// samples.
///
/// # Errors
/// The errors of [`ratio_of_totals`]: fewer than ten spans, or an effective sample size below ten.
pub fn effective_sample_beyond(spans: &[Span]) -> Result<f64, Refusal> {
    let count: u64 = spans.iter().map(|span| span.count).sum();
    let n = count as f64;
    let parts: Vec<Parts> = spans
        .iter()
        .map(|span| Parts { numerator: span.beyond as f64, denominator: span.count as f64 })
        .collect();
    let Interval { mean: share, half_width, .. } = ratio_of_totals(&parts)?;
    if half_width <= 0.0 {
        return Ok(n);
    }
    let z = normal_quantile(0.975);
    Ok((share * (1.0 - share) * (z / half_width) * (z / half_width)).min(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(beyond: impl Iterator<Item = u64>) -> Vec<Span> {
        beyond.map(|beyond| Span { count: 100, beyond }).collect()
    }

    #[test]
    fn samples_that_are_spread_evenly_count_in_full() {
        let even = spans((0..60).map(|at| [1, 0, 2, 1, 1][at % 5]));
        assert_eq!(effective_sample_beyond(&even), Ok(6000.0));
        assert_eq!(effective_sample_beyond(&spans((0..60).map(|_| 0))), Ok(6000.0));
    }

    #[test]
    fn a_stall_is_one_sample_however_many_it_hits() {
        // 60 of 6,000 samples are above the value, all of them in one span.
        let stall = spans((0..60).map(|at| if at == 30 { 60 } else { 0 }));
        let effective = effective_sample_beyond(&stall).unwrap();
        assert!(effective < 150.0, "{effective}");
        let spread = spans((0..60).map(|at| u64::from(at % 3 == 0) * 3));
        assert!(effective_sample_beyond(&spread).unwrap() > 2000.0);
    }

    #[test]
    fn few_spans_and_a_trend_are_refused() {
        let few = effective_sample_beyond(&spans((0..9).map(|at| at % 2)));
        assert!(matches!(few, Err(Refusal::TooFewValues { n: 9, .. })), "{few:?}");
        let trend = effective_sample_beyond(&spans(0..60));
        assert!(matches!(trend, Err(Refusal::EffectiveSampleTooSmall { .. })), "{trend:?}");
    }
}
