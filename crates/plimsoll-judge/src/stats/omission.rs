//! Correction of a latency histogram for coordinated omission.
//!
//! A client that waits for a stalled operation issues none of those that were due meanwhile, and
//! their waiting is left out of the record: 20 s at 1,000 per second with a stall of 2 s reported a
//! p99 of 0.28 ms where 1,800 ms was true. Gil Tene's correction, known from HdrHistogram, puts
//! them back: an operation of latency `L` where one was due every `d` stands for further ones of `L
//! - d`, `L - 2d`, and so on down to `d`.
//!
//! It is an estimate from the aggregate. It assumes one client that should have issued at equal
//! distances; with several, `d` is the interval of one of them.

use super::interval::Refusal;

/// A bin of a latency histogram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bin {
    /// The latency that stands for the bin, in ns.
    pub latency_ns: u64,
    /// Operations in it.
    pub count: u64,
}

/// The histogram with the operations that were due but never issued put back.
///
/// Bins keep their order and latencies; operations that are put back go to the bin with the nearest
/// latency at or above theirs. The work grows with the square of the number of bins, not with
/// operations. Bins must ascend in latency.
///
/// # Errors
/// [`Refusal::OutOfRange`] for an expected interval of 0, or bins that do not ascend.
pub fn corrected(bins: &[Bin], expected_interval_ns: u64) -> Result<Vec<Bin>, Refusal> {
    if expected_interval_ns == 0 {
        return Err(Refusal::OutOfRange { name: "expected interval", value: 0.0 });
    }
    if let Some(pair) = bins.windows(2).find(|pair| pair[0].latency_ns >= pair[1].latency_ns) {
        return Err(Refusal::OutOfRange {
            name: "latency of a bin out of order",
            value: pair[1].latency_ns as f64,
        });
    }
    let mut result = bins.to_vec();
    for bin in bins {
        if bin.count == 0 || bin.latency_ns <= expected_interval_ns {
            continue;
        }
        let missing = bin.latency_ns - expected_interval_ns;
        // Latencies `missing - k d` that are at least `d`, counted per bin `(below, at]`.
        let mut below = 0;
        for target in &mut result {
            let upper = target.latency_ns.min(missing);
            let lower = below.max(expected_interval_ns - 1);
            if upper > lower {
                let steps = |limit: u64| (missing - limit) / expected_interval_ns;
                // Values `v = missing - k d` with `lower < v <= upper`.
                let first = (missing - upper).div_ceil(expected_interval_ns);
                let last = steps(lower + 1);
                if last >= first {
                    let added = (last - first + 1).saturating_mul(bin.count);
                    target.count = target.count.saturating_add(added);
                }
            }
            below = target.latency_ns;
            if below >= missing {
                break;
            }
        }
    }
    Ok(result)
}

/// The latency at quantile `p` of a histogram: that of the bin that holds rank `ceil(p n)`.
///
/// `None` for an empty histogram or `p` outside 0..=1.
#[must_use]
pub fn quantile(bins: &[Bin], p: f64) -> Option<u64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    let rank = (libm::ceil(p * total as f64) as u64).max(1);
    let mut seen = 0;
    bins.iter()
        .find(|bin| {
            seen += bin.count;
            seen >= rank
        })
        .map(|bin| bin.latency_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(pairs: &[(u64, u64)]) -> Vec<Bin> {
        pairs.iter().map(|&(latency_ns, count)| Bin { latency_ns, count }).collect()
    }

    #[test]
    fn a_stall_is_filled_in_down_to_the_interval() {
        // 100 after one due every 30: 70 and 40 were missed; 10 is below the interval.
        let raw = bins(&[(10, 50), (20, 0), (40, 0), (70, 0), (100, 1)]);
        let result = corrected(&raw, 30).unwrap();
        assert_eq!(result, bins(&[(10, 50), (20, 0), (40, 1), (70, 1), (100, 1)]));
    }

    #[test]
    fn it_equals_putting_back_one_by_one() {
        let raw = bins(&[(7, 3), (13, 2), (50, 1), (77, 4), (200, 2), (1001, 1)]);
        for interval in [1, 3, 10, 49, 50, 51, 200, 999, 1000, 1001, 5000] {
            let mut slow = raw.clone();
            for bin in &raw {
                let mut due = bin.latency_ns.saturating_sub(interval);
                while due >= interval {
                    let home = slow.iter_mut().find(|b| b.latency_ns >= due).unwrap();
                    home.count += bin.count;
                    due -= interval;
                }
            }
            assert_eq!(corrected(&raw, interval).unwrap(), slow, "interval {interval}");
        }
    }

    #[test]
    fn the_stall_of_two_seconds_reappears_in_the_p99() {
        // 18,000 operations of 0.2 ms and one of 2 s, one due every ms.
        let fine: Vec<(u64, u64)> = (1..=2000).map(|ms| (ms * 1_000_000, 0)).collect();
        let mut raw = bins(&[(200_000, 18_000)]);
        raw.extend(bins(&fine));
        raw.last_mut().unwrap().count = 1;
        assert_eq!(quantile(&raw, 0.99), Some(200_000));
        let result = corrected(&raw, 1_000_000).unwrap();
        // 2,000 of 20,000 operations wait, evenly up to 2 s: the worst percent begins at 1.8 s.
        assert_eq!(quantile(&result, 0.99), Some(1_800_000_000));
    }

    #[test]
    fn nonsense_is_refused_and_nothing_has_no_quantile() {
        assert!(corrected(&bins(&[(1, 1)]), 0).is_err());
        assert!(corrected(&bins(&[(2, 1), (1, 1)]), 5).is_err());
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&bins(&[(1, 1)]), f64::NAN), None);
    }
}
