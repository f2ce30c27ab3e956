//! Latency histograms for the hot path, with the buckets of HdrHistogram.
//!
//! Values below 2,048 ns have a bucket each; above, each octave has 1,024. The error is below one
//! part in a thousand, as in an [HdrHistogram](http://hdrhistogram.org) with `sigfig = 3` and
//! lowest value 1, which has the same layout. The table has all 16-bit indices, which is enough for
//! every time below 292 years. Recording therefore needs no check, scaling or branch, and only
//! pages that are hit use memory.

use hdrhistogram::Histogram;

/// Buckets of a table: the highest index of a 63-bit value is 56,319.
pub const BUCKETS: usize = 1 << 16;

/// Significant bits of a value.
const KEPT_BITS: u32 = 11;

/// Largest value in reports: one hour. Larger values are counted as this value.
pub const VALUE_NS_MAX: u64 = 3_600_000_000_000;

/// Returns the bucket of a value below 2⁶³.
#[inline(always)]
#[must_use]
pub const fn index_of(value_ns: u64) -> usize {
    let octave = (u64::BITS - KEPT_BITS).saturating_sub((value_ns | 1).leading_zeros());
    (octave << (KEPT_BITS - 1)) as usize + (value_ns >> octave) as usize
}

/// Returns the smallest value of a bucket.
#[must_use]
pub fn value_of(index: usize) -> u64 {
    let (index, half) = (index as u64, 1u64 << (KEPT_BITS - 1));
    let octave = (index / half).saturating_sub(1);
    (index - octave * half) << octave
}

/// Counts of one interval: small counters, emptied after each interval.
#[derive(Clone, Debug)]
pub struct Tally {
    counts: Box<[u32; BUCKETS]>,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

fn table<T: Clone + Default>() -> Box<[T; BUCKETS]> {
    match vec![T::default(); BUCKETS].into_boxed_slice().try_into() {
        Ok(table) => table,
        Err(_) => unreachable!("the vector was made with the array's length"),
    }
}

impl Tally {
    /// Creates an empty tally. Its memory is mapped, and becomes resident with use.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: table(), min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts a value below 2⁶³.
    #[inline(always)]
    pub fn record(&mut self, value_ns: u64) {
        let count = &mut self.counts[index_of(value_ns) & (BUCKETS - 1)];
        *count = count.wrapping_add(1);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Returns true if nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.min_ns > self.max_ns
    }

    /// Returns the largest value; `None` without values.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Adds all counts to each of `totals`, and empties the tally.
    pub fn drain_into(&mut self, totals: &mut [&mut Totals]) {
        if self.is_empty() {
            return;
        }
        let first = index_of(self.min_ns) & (BUCKETS - 1);
        let last = index_of(self.max_ns) & (BUCKETS - 1);
        for index in first..=last {
            // Write only if there is a count, so that unused pages stay unmapped.
            let count = u64::from(self.counts[index]);
            if count > 0 {
                self.counts[index] = 0;
                for total in totals.iter_mut() {
                    total.counts[index] += count;
                    total.count += count;
                }
            }
        }
        for total in totals {
            total.min_ns = total.min_ns.min(self.min_ns);
            total.max_ns = total.max_ns.max(self.max_ns);
        }
        (self.min_ns, self.max_ns) = (u64::MAX, 0);
    }
}

/// Counts over any time.
#[derive(Clone, Debug)]
pub struct Totals {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Self::new()
    }
}

impl Totals {
    /// Creates empty totals.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: table(), count: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact smallest value; `None` without values.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// Returns the exact largest value; `None` without values.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Returns a quantile (0 to 1) as HdrHistogram defines it: the largest value of the bucket;
    /// `None` without values.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let wanted = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let (first, last) = (self.first(), self.last());
        let mut seen = 0;
        for index in first..=last {
            seen += self.counts[index];
            if seen >= wanted {
                let greatest = value_of(index + 1) - 1;
                return Some(greatest.min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    fn first(&self) -> usize {
        index_of(self.min_ns) & (BUCKETS - 1)
    }

    fn last(&self) -> usize {
        index_of(self.max_ns) & (BUCKETS - 1)
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for index in other.first()..=other.last() {
            if other.counts[index] > 0 {
                self.counts[index] += other.counts[index];
            }
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the non-empty buckets in order: smallest value and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let range = (self.count > 0).then(|| self.first()..=self.last());
        range.into_iter().flatten().filter_map(|index| {
            let count = self.counts[index];
            (count > 0).then(|| (value_of(index), count))
        })
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        if self.count > 0 {
            for index in self.first()..=self.last() {
                if self.counts[index] > 0 {
                    self.counts[index] = 0;
                }
            }
        }
        (self.count, self.min_ns, self.max_ns) = (0, u64::MAX, 0);
    }

    /// Converts to an HdrHistogram of three digits up to one hour.
    #[must_use]
    pub fn to_hdr(&self) -> Histogram<u64> {
        let mut out = match Histogram::new_with_bounds(1, VALUE_NS_MAX, 3) {
            Ok(histogram) => histogram,
            Err(error) => unreachable!("constant bounds are valid: {error}"),
        };
        for (value, count) in self.buckets() {
            out.saturating_record_n(value, count);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_are_those_of_hdrhistogram(bits in 0u32..42, low in any::<u64>()) {
            let value = (1u64 << bits | (low & ((1 << bits) - 1))).min(VALUE_NS_MAX);
            let hdr = Histogram::<u64>::new_with_bounds(1, VALUE_NS_MAX, 3).unwrap();
            prop_assert_eq!(value_of(index_of(value)), hdr.lowest_equivalent(value));
            prop_assert_eq!(value_of(index_of(value) + 1) - 1, hdr.highest_equivalent(value));
        }

        #[test]
        fn quantiles_are_those_of_hdrhistogram(
            values in prop::collection::vec(0u64..20_000_000, 1..300),
            quantile in 0.0f64..=1.0,
        ) {
            let mut tally = Tally::new();
            let mut hdr = Histogram::<u64>::new_with_bounds(1, VALUE_NS_MAX, 3).unwrap();
            for value in &values {
                tally.record(*value);
                hdr.record(*value).unwrap();
            }
            let mut totals = Totals::new();
            tally.drain_into(&mut [&mut totals]);
            prop_assert_eq!(&totals.to_hdr(), &hdr);
            let theirs = hdr.value_at_quantile(quantile);
            let exact = *values.iter().max().unwrap();
            prop_assert_eq!(totals.quantile_ns(quantile).unwrap(), theirs.min(exact));
        }
    }

    #[test]
    fn the_ends_of_the_range_have_buckets() {
        for value in [0, 1, 2047, 2048, VALUE_NS_MAX, (1 << 63) - 1] {
            let index = index_of(value);
            assert!(index < BUCKETS, "{value}");
            let low = value_of(index);
            assert!(low <= value && value - low <= value / 1024, "{value} {low}");
        }
    }

    #[test]
    fn draining_empties_and_feeds_several() {
        let (mut tally, mut one, mut two) = (Tally::new(), Totals::new(), Totals::new());
        tally.drain_into(&mut [&mut one]);
        assert_eq!((one.count(), one.max_ns(), one.quantile_ns(0.5)), (0, None, None));
        for value in [5, 5, 1_000_000, 70] {
            tally.record(value);
        }
        tally.drain_into(&mut [&mut one, &mut two]);
        assert!(tally.is_empty());
        tally.record(7);
        tally.drain_into(&mut [&mut one]);
        assert_eq!((one.count(), one.min_ns(), one.max_ns()), (5, Some(5), Some(1_000_000)));
        assert_eq!((two.count(), two.quantile_ns(0.5)), (4, Some(5)));
        assert_eq!(one.quantile_ns(0.5), Some(7));
        two.merge(&one);
        assert_eq!(two.count(), 9);
        assert_eq!(two.buckets().next(), Some((5, 4)));
        two.clear();
        assert_eq!((two.count(), two.buckets().count()), (0, 0));
    }
}
