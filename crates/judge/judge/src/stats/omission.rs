//! Correction of a latency histogram for coordinated omission.
//!
//! A client that waits for a stalled operation skips the operations that are due during the wait,
//! so their waiting times are not recorded. For example, a run of 20 s at 1,000 operations per
//! second stalled for 2 s. The run reported a p99 of 0.28 ms, but the true p99 was 1,800 ms. Gil
//! Tene's correction, known from HdrHistogram, restores the skipped operations. If an operation is
//! due every `d`, an operation with latency `L` adds operations with latencies `L - d`, `L - 2d`,
//! and so on down to `d`.
//!
//! The result is an estimate from the whole histogram. The method assumes one client that should
//! have issued operations at equal intervals. If there are several clients, `d` is the interval of
//! one client.

use super::interval::Refusal;

/// Bin of a latency histogram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bin {
    /// Representative latency of the bin, in ns.
    pub latency_ns: u64,
    /// Number of operations in the bin.
    pub count: u64,
}

/// Returns the histogram with the operations that were due but never issued.
///
/// The order and the latencies of the bins do not change. A restored operation is added to the
/// first bin whose latency is at least the latency of the operation. For `n` bins the function
/// takes `n log n` steps, regardless of the number of operations. The bins must be in ascending
/// order of their latencies.
///
/// # Errors
/// [`Refusal::OutOfRange`] for an expected interval of 0, or bins that are not in ascending order.
pub fn corrected(bins: &[Bin], expected_interval_ns: u64) -> Result<Vec<Bin>, Refusal> {
    if expected_interval_ns == 0 {
        return Err(Refusal::OutOfRange { name: "expected interval", value: 0.0 });
    }
    if let Some(pair) = bins.windows(2).find(|pair| pair[0].latency_ns >= pair[1].latency_ns) {
        return Err(Refusal::OutOfRange {
            name: "latency of a bin that is out of order",
            value: pair[1].latency_ns as f64,
        });
    }
    let put_back = put_back_up_to(bins, expected_interval_ns);
    let mut below = 0;
    let corrected = bins.iter().zip(put_back).map(|(bin, up_to)| {
        let added = u64::try_from(up_to.saturating_sub(below)).unwrap_or(u64::MAX);
        below = up_to;
        Bin { count: bin.count.saturating_add(added), ..*bin }
    });
    Ok(corrected.collect())
}

/// Returns, for each bin, the number of restored operations whose latency is at most that of the
/// bin.
///
/// An operation of latency `L = q d + r` adds `q - 1` operations. Their latencies are `r + m d`,
/// for `m` from 1 to `q - 1`. For the bin at `x = Q d + R`, the function counts the added
/// operations with a latency of at most `x`. If `L <= x + d`, all `q - 1` added operations count.
/// Otherwise, `Q` of them count, or `Q - 1` if `r > R`. The count for `x` therefore requires two
/// sums: one over the bins up to latency `x + d`, and one over the later bins. It also requires the
/// number of operations in the later bins whose `r` is above `R`.
fn put_back_up_to(bins: &[Bin], interval_ns: u64) -> Vec<u128> {
    let parts = |bin: &Bin| (bin.latency_ns / interval_ns, bin.latency_ns % interval_ns);
    let mut rests: Vec<u64> = bins.iter().map(|bin| parts(bin).1).collect();
    rests.sort_unstable();
    rests.dedup();
    // Number of distinct remainders that are at most the remainder of this bin.
    let rank = |bin: &Bin| rests.partition_point(|rest| *rest <= parts(bin).1);
    let mut after = Counts::of(rests.len());
    bins.iter().for_each(|bin| after.change(rank(bin), |sum| sum + u128::from(bin.count)));
    let (mut full, mut to_end) = (0_u128, bins.iter().peekable());
    let up_to = |bin: &Bin| {
        let reach_ns = bin.latency_ns.saturating_add(interval_ns);
        while let Some(one) = to_end.next_if(|one| one.latency_ns <= reach_ns) {
            let (steps, count) = (parts(one).0.saturating_sub(1), u128::from(one.count));
            full = full.saturating_add(u128::from(steps).saturating_mul(count));
            after.change(rank(one), |sum| sum - count);
        }
        let all = after.up_to(rests.len());
        let above = all - after.up_to(rank(bin));
        let steps = u128::from(parts(bin).0);
        let partly = if steps == 0 { 0 } else { all.saturating_mul(steps) - above };
        full.saturating_add(partly)
    };
    bins.iter().map(up_to).collect()
}

/// Counts by rank (from 1) with prefix sums; each operation takes `log n` steps (P. M. Fenwick, A
/// new data structure for cumulative frequency tables, Software: Practice and Experience 24(3),
/// 1994).
struct Counts(Vec<u128>);

impl Counts {
    fn of(ranks: usize) -> Self {
        Self(vec![0; ranks + 1])
    }

    fn change(&mut self, mut rank: usize, to: impl Fn(u128) -> u128) {
        while let Some(sum) = self.0.get_mut(rank) {
            *sum = to(*sum);
            rank += rank & rank.wrapping_neg();
        }
    }

    fn up_to(&self, mut rank: usize) -> u128 {
        let mut sum = 0;
        while rank > 0 {
            sum += self.0[rank];
            rank -= rank & rank.wrapping_neg();
        }
        sum
    }
}

/// Returns the latency at quantile `p` of a histogram: the latency of the bin that contains rank
/// `ceil(p n)`.
///
/// `None` if the histogram is empty or `p` is outside 0..=1.
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
        // One operation has a latency of 100, and an operation was due every 30. Operations with
        // latencies of 70 and 40 were skipped. A latency of 10 is below the interval and is not
        // restored.
        let raw = bins(&[(10, 50), (20, 0), (40, 0), (70, 0), (100, 1)]);
        let result = corrected(&raw, 30).unwrap();
        assert_eq!(result, bins(&[(10, 50), (20, 0), (40, 1), (70, 1), (100, 1)]));
    }

    fn one_by_one(raw: &[Bin], interval: u64) -> Vec<Bin> {
        let mut slow = raw.to_vec();
        for bin in raw {
            let mut due = bin.latency_ns.saturating_sub(interval);
            while due >= interval {
                let home = slow.iter_mut().find(|b| b.latency_ns >= due).unwrap();
                home.count += bin.count;
                due -= interval;
            }
        }
        slow
    }

    #[test]
    fn it_equals_putting_back_one_by_one() {
        let raw = bins(&[(7, 3), (13, 2), (50, 1), (77, 4), (200, 2), (1001, 1)]);
        for interval in [1, 3, 10, 49, 50, 51, 200, 999, 1000, 1001, 5000] {
            assert_eq!(
                corrected(&raw, interval).unwrap(),
                one_by_one(&raw, interval),
                "interval {interval}"
            );
        }
    }

    /// The result is also correct for random bins. Some of these have equal remainders, some are
    /// empty, and some are at a multiple of the interval.
    #[test]
    fn it_equals_putting_back_one_by_one_whatever_the_bins() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let (mut at, mut raw) = (0, Vec::new());
            for _ in 0..=draw(30) {
                at += 1 + draw(40);
                raw.push(Bin { latency_ns: at, count: draw(4) });
            }
            let interval = 1 + draw(60);
            assert_eq!(
                corrected(&raw, interval).unwrap(),
                one_by_one(&raw, interval),
                "{interval} {raw:?}"
            );
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let raw = bins(&[(1, u64::MAX), (2, 1), (u64::MAX, u64::MAX)]);
        let result = corrected(&raw, 1).unwrap();
        assert!(result.iter().all(|bin| bin.count == u64::MAX), "{result:?}");
        assert_eq!(corrected(&raw, u64::MAX).unwrap(), raw);
    }

    #[test]
    fn the_stall_of_two_seconds_reappears_in_the_p99() {
        // 18,000 operations of 0.2 ms and one operation of 2 s; an operation was due every
        // millisecond.
        let fine: Vec<(u64, u64)> = (1..=2000).map(|ms| (ms * 1_000_000, 0)).collect();
        let mut raw = bins(&[(200_000, 18_000)]);
        raw.extend(bins(&fine));
        raw.last_mut().unwrap().count = 1;
        assert_eq!(quantile(&raw, 0.99), Some(200_000));
        let result = corrected(&raw, 1_000_000).unwrap();
        // 2,000 of 20,000 operations wait, and their latencies are evenly distributed up to 2 s.
        // The slowest percent of all operations therefore starts at 1.8 s.
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
