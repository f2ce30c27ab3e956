//! Detects two modes in a latency distribution: fast answers of a cache, and slow answers of the
//! media.

use hdrhistogram::Histogram;

/// Number of histogram bins for each power of two.
const BINS_PER_OCTAVE: f64 = 4.0;
/// Minimum share of the samples on each side of the valley.
const SHARE_MIN: f64 = 0.05;
/// Minimum ratio of the latency of the slow mode to the latency of the fast mode.
const APART_MIN: f64 = 4.0;
/// Maximum height of the valley between the modes, as a fraction of the height of the lower peak.
const VALLEY_MAX: f64 = 0.2;
/// Minimum number of samples for the detection of two modes.
const SAMPLES_MIN: u64 = 1000;

/// Two modes of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modes {
    /// Share of the samples on the fast side of the valley.
    pub fast_share: f64,
    /// Latency of the fast mode's peak.
    pub fast_ns: u64,
    /// Latency of the slow mode's peak.
    pub slow_ns: u64,
}

/// Returns the two modes of a distribution; `None` if it does not have two modes.
pub(super) fn two_modes(histogram: &Histogram<u64>) -> Option<Modes> {
    let total = histogram.len();
    if total < SAMPLES_MIN {
        return None;
    }
    let bins = smoothed(&binned(histogram));
    let mut best: Option<(f64, Modes)> = None;
    let sum = |range: &[f64]| range.iter().sum::<f64>();
    for valley in 1..bins.len().saturating_sub(1) {
        let (fast, slow) = (peak(&bins[..valley])?, valley + peak(&bins[valley..])?);
        let (fast_share, slow_share) =
            (sum(&bins[..valley]) / total as f64, sum(&bins[valley..]) / total as f64);
        let apart = libm::exp2((slow - fast) as f64 / BINS_PER_OCTAVE);
        let depth = bins[valley] / bins[fast].min(bins[slow]).max(f64::MIN_POSITIVE);
        let counts = fast_share >= SHARE_MIN
            && slow_share >= SHARE_MIN
            && apart >= APART_MIN
            && depth <= VALLEY_MAX;
        if counts && best.as_ref().is_none_or(|(deepest, _)| depth < *deepest) {
            let at = |bin: usize| libm::exp2(bin as f64 / BINS_PER_OCTAVE) as u64;
            best = Some((depth, Modes { fast_share, fast_ns: at(fast), slow_ns: at(slow) }));
        }
    }
    best.map(|(_, modes)| modes)
}

fn binned(histogram: &Histogram<u64>) -> Vec<f64> {
    let bin = |ns: u64| (libm::log2(ns.max(1) as f64) * BINS_PER_OCTAVE) as usize;
    let mut bins = vec![0.0; bin(histogram.max()) + 3];
    for step in histogram.iter_recorded() {
        bins[bin(step.value_iterated_to()) + 1] += step.count_at_value() as f64;
    }
    bins
}

fn smoothed(bins: &[f64]) -> Vec<f64> {
    let at = |index: usize| bins.get(index).copied().unwrap_or(0.0);
    (0..bins.len()).map(|i| 0.25 * at(i.wrapping_sub(1)) + 0.5 * at(i) + 0.25 * at(i + 1)).collect()
}

fn peak(bins: &[f64]) -> Option<usize> {
    (0..bins.len()).max_by(|a, b| bins[*a].total_cmp(&bins[*b]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn distribution(modes: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = plimsoll_evidence::latency::histogram();
        for (middle_ns, count) in modes {
            // Latencies vary by up to a third in both directions, as with a queue.
            for step in 0..100 {
                let ns = middle_ns * (67 + step * 66 / 100) / 100;
                histogram.record_n(ns, count / 100).unwrap();
            }
        }
        histogram
    }

    #[test]
    fn a_cache_and_a_disk_are_two_and_their_shares_come_out() {
        let modes = two_modes(&distribution(&[(100_000, 30_000), (5_000_000, 70_000)])).unwrap();
        assert!((modes.fast_share - 0.3).abs() < 0.01, "{modes:?}");
        assert!(modes.slow_ns > 20 * modes.fast_ns, "{modes:?}");
    }

    #[test]
    fn one_device_is_one() {
        assert_eq!(two_modes(&distribution(&[(100_000, 100_000)])), None);
        // Two per cent of slow operations are a tail, not a mode.
        assert_eq!(two_modes(&distribution(&[(100_000, 98_000), (5_000_000, 2_000)])), None);
        // Waiting in a queue can double the latency, so a ratio of two does not prove two modes.
        assert_eq!(two_modes(&distribution(&[(100_000, 50_000), (200_000, 50_000)])), None);
    }
}
