//! Latency histograms with the buckets of HdrHistogram, for one thread ([`HistogramTable`]) and for
//! all threads together ([`HistogramTotals`]).
//!
//! Each value below 2,048 ns has its own bucket. Above 2,048 ns, each octave has 1,024 buckets. The
//! error is less than one part in a thousand, as in an [HdrHistogram](http://hdrhistogram.org) with
//! `sigfig = 3` and lowest value 1, which has the same layout. Values are recorded without scaling,
//! and packing for the bundle loses no information.
//!
//! A thread may have hundreds of histograms. Each operation adds to one or two histograms, and
//! successive operations rarely use adjacent buckets. The histograms share one table, which is
//! emptied and reused. Its cache line is prefetched first, and the count is added a few operations
//! later. Counts are usually small, so each bucket has two bytes, and a second table counts
//! overflows. Memory of buckets without counts is not used.

use hdrhistogram::Histogram;
use plimsoll_evidence::latency::{self, LATENCY_NS_MAX, Packed};
use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

/// Largest value of the last octave of the bundle's histograms. Values above it are counted as the
/// largest latency.
const LAST: u64 = (LATENCY_NS_MAX + 1).next_power_of_two() - 1;
/// Number of buckets of a histogram.
pub const BUCKETS: usize = index_of(LAST) + 1;
/// Number of counts that can wait for their cache lines.
const WAITING: usize = 8;
/// Range of used buckets of an empty histogram.
const EMPTY: (usize, usize) = (BUCKETS, 0);

/// Number of significant bits of a value.
const KEPT_BITS: u32 = 11;

/// Returns the index of the bucket that counts a value, as if the histogram had no largest value.
#[inline(always)]
#[must_use]
const fn index_of(value_ns: u64) -> usize {
    let octave = (u64::BITS - KEPT_BITS).saturating_sub((value_ns | 1).leading_zeros());
    (octave << (KEPT_BITS - 1)) as usize + (value_ns >> octave) as usize
}

/// Returns the bucket of a value.
#[inline(always)]
fn bucket_of(value_ns: u64) -> usize {
    index_of(if value_ns <= LAST { value_ns } else { LATENCY_NS_MAX })
}

/// Returns the smallest value of a bucket.
fn value_of(index: usize) -> u64 {
    let (index, half) = (index as u64, 1u64 << (KEPT_BITS - 1));
    let octave = (index / half).saturating_sub(1);
    (index - octave * half) << octave
}

/// Returns the value that represents a bucket in the bundle. The bundle has no value 0.
fn packed_value(bucket: usize) -> u64 {
    (value_of(bucket + 1) - 1).max(1)
}

/// Returns the value that represents `value_ns` in the bundle.
pub(crate) fn packed_value_of(value_ns: u64) -> u64 {
    packed_value(bucket_of(value_ns))
}

/// Histograms of one class in the bundle's format.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Times from the intended start to the completion.
    pub latency: Packed,
    /// Times from the submission to the completion.
    pub service: Packed,
}

/// Kinds of waits of operations in a thread.
#[derive(Clone, Copy, Debug)]
pub enum WaitKind {
    /// Delay although a slot in the queue was free: the generator's own lateness. It is counted
    /// from the scheduled start, or from the time at which the previous completion was available.
    Own,
    /// Wait because the queue was full: the target's lateness.
    Held,
}

/// Histograms of a thread: latency and service time of each class, and waits.
///
/// There are three histograms per class. The first counts operations whose latency equals their
/// service time. This is the usual case if operations do not wait before submission. Any other
/// operation is counted twice: its latency in the second histogram, and its service time in the
/// third. Most operations are therefore counted only once.
#[derive(Debug)]
pub struct HistogramTable {
    counts: Large<u16>,
    /// Number of times that each count has overflowed.
    carries: Large<u16>,
    has_carries: bool,
    /// Range of used buckets of each histogram.
    ranges: Vec<(usize, usize)>,
    waiting: [usize; WAITING],
    turn: usize,
}

impl HistogramTable {
    /// Creates empty histograms for `classes` classes, in huge pages.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self::in_pages(classes, Large::zeros)
    }

    /// Creates empty histograms in small pages. Suitable for tables that are used in turn, or in
    /// which most buckets remain unused.
    #[must_use]
    pub fn sparse(classes: usize) -> Self {
        Self::in_pages(classes, Large::sparse_zeros)
    }

    fn in_pages(classes: usize, zeros: fn(usize) -> Large<u16>) -> Self {
        let histograms = 3 * classes + 2;
        // The last bucket belongs to no histogram. Unused entries of `waiting` refer to it.
        let unused = histograms * BUCKETS;
        Self {
            counts: zeros(unused + 1),
            carries: zeros(unused + 1),
            has_carries: false,
            ranges: vec![EMPTY; histograms],
            waiting: [unused; WAITING],
            turn: 0,
        }
    }

    /// Counts a wait.
    #[inline(always)]
    pub fn count_wait(&mut self, kind: WaitKind, wait_ns: u64) {
        self.count(self.waits(kind), wait_ns);
    }

    #[inline(always)]
    fn waits(&self, kind: WaitKind) -> usize {
        self.ranges.len() - 2 + kind as usize
    }

    #[inline(always)]
    fn count(&mut self, histogram: usize, value_ns: u64) {
        let bucket = bucket_of(value_ns);
        let (first, end) = &mut self.ranges[histogram];
        *first = (*first).min(bucket);
        *end = (*end).max(bucket + 1);
        let at = histogram * BUCKETS + bucket;
        hint::prefetch(&self.counts[at]);
        let ready = std::mem::replace(&mut self.waiting[self.turn % WAITING], at);
        self.turn = self.turn.wrapping_add(1);
        self.add(ready);
    }

    #[inline(always)]
    fn add(&mut self, at: usize) {
        let count = &mut self.counts[at];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(at);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, at: usize) {
        self.has_carries = true;
        self.carries[at] = self.carries[at].saturating_add(1);
    }

    /// Adds the counts that still wait for their cache lines.
    fn settle(&mut self) {
        let unused = self.ranges.len() * BUCKETS;
        for ready in std::mem::replace(&mut self.waiting, [unused; WAITING]) {
            self.add(ready);
        }
    }

    fn take_count(&mut self, histogram: usize, bucket: usize) -> u64 {
        let (first, end) = self.ranges[histogram];
        // Memory that was never written is not read.
        if !(first..end).contains(&bucket) {
            return 0;
        }
        let at = histogram * BUCKETS + bucket;
        let carries = if self.has_carries { std::mem::take(&mut self.carries[at]) } else { 0 };
        // Writes only if the count is not 0, so that unused pages stay unmapped.
        let count = self.counts[at];
        if count > 0 {
            self.counts[at] = 0;
        }
        (u64::from(carries) << u16::BITS) + u64::from(count)
    }

    /// Removes the counts of `N` histograms. Calls `each` for every used bucket in ascending order,
    /// with the bucket's counts.
    fn take_each<const N: usize>(&mut self, from: usize, each: &mut dyn FnMut(usize, [u64; N])) {
        self.settle();
        let ranges = &self.ranges[from..from + N];
        let first = ranges.iter().map(|(first, _)| *first).min().unwrap_or(0);
        let end = ranges.iter().map(|(_, end)| *end).max().unwrap_or(0);
        for bucket in first..end {
            let counts = std::array::from_fn(|at| self.take_count(from + at, bucket));
            if counts != [0; N] {
                each(bucket, counts);
            }
        }
        self.ranges[from..from + N].fill(EMPTY);
    }

    /// Removes the counts of a class. Calls `each` for every used bucket in ascending order, with
    /// its number of latencies and its number of service times.
    pub fn take(&mut self, class: usize, each: &mut dyn FnMut(usize, u64, u64)) {
        self.take_each(3 * class, &mut |bucket, [same, latency, service]| {
            each(bucket, same + latency, same + service);
        });
    }

    /// Removes the counts of one kind of wait. Calls `each` for every used bucket in ascending
    /// order, with the bucket's count.
    pub fn take_waits(&mut self, kind: WaitKind, each: &mut dyn FnMut(usize, u64)) {
        self.take_each(self.waits(kind), &mut |bucket, [count]| each(bucket, count));
    }

    /// Removes the counts of a class, and returns them in the bundle's format.
    pub fn pack(&mut self, class: usize) -> Latencies {
        let (mut latencies, mut services) = (Vec::new(), Vec::new());
        self.take(class, &mut |bucket, latency, service| {
            push(&mut latencies, bucket, latency);
            push(&mut services, bucket, service);
        });
        Latencies {
            latency: Packed::from_buckets(latencies),
            service: Packed::from_buckets(services),
        }
    }

    /// Removes the counts of one kind of wait, and returns them in the bundle's format.
    pub fn pack_waits(&mut self, kind: WaitKind) -> Packed {
        let mut packed = Vec::new();
        self.take_waits(kind, &mut |bucket, count| push(&mut packed, bucket, count));
        Packed::from_buckets(packed)
    }
}

fn push(packed: &mut Vec<(u64, u64)>, bucket: usize, count: u64) {
    let value = packed_value(bucket);
    match packed.last_mut().filter(|last| last.0 == value) {
        Some(last) => last.1 += count,
        None if count > 0 => packed.push((value, count)),
        None => {}
    }
}

/// Histograms of latency and service time for each class, as [`crate::snapshot::IntervalRecorder`]
/// uses them.
pub trait Histograms {
    /// Counts an operation. `service_ns` is `None` for an operation that was never started.
    fn count_times(&mut self, class: usize, latency_ns: u64, service_ns: Option<u64>);
}

impl Histograms for HistogramTable {
    #[inline(always)]
    fn count_times(&mut self, class: usize, latency_ns: u64, service_ns: Option<u64>) {
        if service_ns == Some(latency_ns) {
            return self.count(3 * class, latency_ns);
        }
        self.count(3 * class + 1, latency_ns);
        if let Some(service_ns) = service_ns {
            self.count(3 * class + 2, service_ns);
        }
    }
}

/// Histogram over a period of any length.
#[derive(Clone, Debug)]
pub struct HistogramTotals {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    /// Range of used buckets.
    range: (usize, usize),
    max_ns: u64,
}

impl Default for HistogramTotals {
    fn default() -> Self {
        let counts = match vec![0; BUCKETS].into_boxed_slice().try_into() {
            Ok(counts) => counts,
            Err(_) => unreachable!("the vector was made with the array's length"),
        };
        Self { counts, count: 0, range: EMPTY, max_ns: 0 }
    }
}

impl HistogramTotals {
    /// Adds a bucket of [`HistogramTable`].
    pub fn add(&mut self, bucket: usize, count: u64) {
        if count > 0 {
            self.counts[bucket] += count;
            self.count += count;
            self.range = (self.range.0.min(bucket), self.range.1.max(bucket + 1));
        }
    }

    /// Adds counts in the bundle's format.
    pub fn add_packed(&mut self, packed: &Packed) {
        packed.buckets().for_each(|(value, count)| self.add(bucket_of(value), count));
    }

    /// Records the exact largest value of the added buckets.
    pub fn note_max(&mut self, max_ns: u64) {
        self.max_ns = self.max_ns.max(max_ns);
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact largest value; `None` if there are no values.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Returns a quantile (0 to 1). As in HdrHistogram, it is the largest value of the bucket.
    /// `None` if there are no values.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let required = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = (self.range.0..self.range.1).find(|bucket| {
            seen += self.counts[*bucket];
            seen >= required
        });
        bucket.map(|bucket| (value_of(bucket + 1) - 1).min(self.max_ns))
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.range.0..other.range.1 {
            self.add(bucket, other.counts[bucket]);
        }
        self.note_max(other.max_ns);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        for bucket in self.range.0..self.range.1 {
            // Writes only if the count is not 0, so that unused pages stay unmapped.
            if self.counts[bucket] > 0 {
                self.counts[bucket] = 0;
            }
        }
        (self.count, self.range, self.max_ns) = (0, EMPTY, 0);
    }

    /// Converts to a histogram of the bundle.
    #[must_use]
    pub fn to_hdr(&self) -> Histogram<u64> {
        let mut out = latency::histogram();
        for bucket in (self.range.0..self.range.1).filter(|bucket| self.counts[*bucket] > 0) {
            out.saturating_record_n(value_of(bucket), self.counts[bucket]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates values of every magnitude, including values outside the histogram's range.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..50, any::<u64>()).prop_map(|(bits, noise)| noise >> (63 - bits));
        prop::collection::vec(value, 0..200)
    }

    fn packed(values: impl IntoIterator<Item = u64>) -> Packed {
        let mut whole = latency::histogram();
        values.into_iter().for_each(|value| whole.saturating_record(value.max(1)));
        (&whole).into()
    }

    fn totals(table: &mut HistogramTable, class: usize, max_ns: u64) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        table.take(class, &mut |bucket, latency, _| totals.add(bucket, latency));
        totals.note_max(max_ns);
        totals
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_hdrhistogram(bits in 0u32..42, low in any::<u64>()) {
            let value = (1u64 << bits | (low & ((1 << bits) - 1))).min(LATENCY_NS_MAX);
            let hdr = latency::histogram();
            prop_assert_eq!(value_of(bucket_of(value)), hdr.lowest_equivalent(value));
            prop_assert_eq!(value_of(bucket_of(value) + 1) - 1, hdr.highest_equivalent(value));
        }

        #[test]
        fn quantiles_are_those_of_hdrhistogram(
            values in prop::collection::vec(0u64..20_000_000, 1..300),
            quantile in 0.0f64..=1.0,
        ) {
            let (mut table, mut hdr) = (HistogramTable::sparse(1), latency::histogram());
            for value in &values {
                table.count_times(0, *value, Some(*value));
                hdr.record(*value).unwrap();
            }
            let exact = *values.iter().max().unwrap();
            let totals = totals(&mut table, 0, exact);
            prop_assert_eq!(&totals.to_hdr(), &hdr);
            let theirs = hdr.value_at_quantile(quantile);
            prop_assert_eq!(totals.quantile_ns(quantile).unwrap(), theirs.min(exact));
        }

        /// A table must have the same counts as the library's histogram in the bundle, even if
        /// latencies and service times differ.
        #[test]
        fn packed_counts_are_the_librarys(values in values(), others in values()) {
            let mut table = HistogramTable::new(2);
            for value in &values {
                table.count_times(1, *value, Some(*value));
            }
            for value in &others {
                table.count_times(1, *value, Some(value / 2));
                table.count_times(0, *value, None);
                table.count_wait(WaitKind::Held, *value);
            }
            let both = table.pack(1);
            prop_assert_eq!(both.latency, packed(values.iter().chain(&others).copied()));
            let halves = others.iter().map(|value| value / 2);
            prop_assert_eq!(both.service, packed(values.iter().copied().chain(halves)));
            let never_started = table.pack(0);
            prop_assert_eq!(never_started.latency, packed(others.iter().copied()));
            prop_assert_eq!(table.pack_waits(WaitKind::Held), packed(others.iter().copied()));
            prop_assert!(never_started.service.is_empty() && table.pack(1).latency.is_empty());
            prop_assert!(table.pack_waits(WaitKind::Own).is_empty());
        }
    }

    #[test]
    fn the_ends_of_the_range_have_buckets() {
        for value in [0, 1, 2047, 2048, LATENCY_NS_MAX, LAST] {
            let bucket = bucket_of(value);
            let low = value_of(bucket);
            assert!(bucket < BUCKETS && low <= value && value - low <= value / 1024, "{value}");
        }
        assert_eq!(bucket_of(u64::MAX), bucket_of(LATENCY_NS_MAX));
    }

    #[test]
    fn a_count_that_overflows_is_carried_on() {
        let mut table = HistogramTable::new(2);
        for times in [u64::from(u16::MAX), 1 << 16, 200_000] {
            (0..times).for_each(|_| table.count_times(1, 5, Some(5)));
            table.count_times(1, 6, Some(6));
            table.count_times(0, 5, Some(5));
            let expected = Packed::from_buckets(vec![(5, times), (6, 1)]);
            assert_eq!(table.pack(1).latency, expected);
            assert_eq!(table.pack(0).latency, Packed::from_buckets(vec![(5, 1)]));
            assert!(table.pack(1).latency.is_empty());
        }
    }

    #[test]
    fn totals_are_taken_merged_and_cleared() {
        let mut table = HistogramTable::sparse(1);
        let mut one = totals(&mut table, 0, 0);
        assert_eq!((one.count(), one.max_ns(), one.quantile_ns(0.5)), (0, None, None));
        for value in [5, 5, 1_000_000, 70] {
            table.count_times(0, value, None);
        }
        let mut two = totals(&mut table, 0, 1_000_000);
        table.count_times(0, 7, None);
        one.merge(&two);
        one.merge(&totals(&mut table, 0, 7));
        assert_eq!(
            (one.count(), one.quantile_ns(0.0), one.max_ns()),
            (5, Some(5), Some(1_000_000))
        );
        assert_eq!((two.count(), two.quantile_ns(0.5)), (4, Some(5)));
        assert_eq!(one.quantile_ns(0.5), Some(7));
        two.clear();
        assert_eq!((two.count(), two.quantile_ns(0.5), two.max_ns()), (0, None, None));
        two.merge(&one);
        assert_eq!(two.to_hdr(), one.to_hdr());
    }
}
