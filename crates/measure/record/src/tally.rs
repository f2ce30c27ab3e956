//! Counts of latencies by bucket, for many classes in one table.
//!
//! Buckets are those of [`crate::histogram`], up to the bundle's longest latency, so packing loses
//! nothing. Only the memory differs. A store of sixteen databases has two hundred histograms, and
//! each I/O adds to one or two of them, rarely near each other. They share one table in large
//! pages. A count is added a few I/Os after its cache line was prefetched, and the table is emptied
//! and reused. Buckets are narrow and counts small, so each bucket has two bytes, and overflows are
//! stored separately.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::{self, Packed};
use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

use crate::histogram::{index_of, value_of};

/// Largest value of the last octave of the bundle's histograms. Longer values are counted as the
/// largest latency.
const LAST: u64 = (latency::LATENCY_NS_MAX + 1).next_power_of_two() - 1;
/// Buckets per tally.
const BUCKETS: usize = index_of(LAST) + 1;
/// Counts waiting for prefetched cache lines.
const WAITING: usize = 8;

/// Returns the bucket of a value.
#[inline]
fn bucket(value: u64) -> usize {
    index_of(if value <= LAST { value.max(1) } else { latency::LATENCY_NS_MAX })
}

/// Returns the largest value of a bucket.
fn highest(bucket: usize) -> u64 {
    value_of(bucket + 1) - 1
}

/// Returns the largest value in the same bucket.
pub(crate) fn highest_in_bucket(value: u64) -> u64 {
    highest(bucket(value))
}

/// A table of tallies.
#[derive(Debug)]
pub struct Tallies {
    counts: Large<u16>,
    /// By tally: the range of used buckets.
    ranges: Vec<(usize, usize)>,
    /// Counts of buckets that overflowed.
    overflows: BTreeMap<usize, u64>,
    waiting: [usize; WAITING],
    waits: usize,
}

impl Tallies {
    /// Creates empty tallies.
    pub fn new(tallies: usize) -> Self {
        Self {
            counts: Large::zeros(tallies * BUCKETS),
            ranges: vec![(BUCKETS, 0); tallies],
            overflows: BTreeMap::new(),
            waiting: [0; WAITING],
            waits: 0,
        }
    }

    /// Counts a value in a tally. A value outside the range counts in the last bucket.
    #[inline(always)]
    pub fn count(&mut self, tally: usize, value_ns: u64) {
        let bucket = bucket(value_ns);
        let (first, end) = &mut self.ranges[tally];
        *first = (*first).min(bucket);
        *end = (*end).max(bucket + 1);
        let at = tally * BUCKETS + bucket;
        hint::prefetch(&self.counts[at]);
        let place = self.waits % WAITING;
        let ready = std::mem::replace(&mut self.waiting[place], at);
        if self.waits >= WAITING {
            self.add(ready);
        }
        self.waits += 1;
    }

    #[inline]
    fn add(&mut self, at: usize) {
        if self.counts[at] == u16::MAX {
            self.overflow(at);
        }
        self.counts[at] += 1;
    }

    /// Saves the count of a full bucket and resets it.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, at: usize) {
        *self.overflows.entry(at).or_default() += u64::from(self.counts[at]);
        self.counts[at] = 0;
    }

    /// Takes the counts of a tally and empties it: buckets in ascending order, each with its count.
    pub fn take(&mut self, tally: usize) -> Counts {
        for place in 0..self.waits.min(WAITING) {
            self.add(self.waiting[place]);
        }
        self.waits = 0;
        let (first, end) = std::mem::replace(&mut self.ranges[tally], (BUCKETS, 0));
        let base = tally * BUCKETS;
        let mut counts = Vec::new();
        for bucket in first..end {
            let at = base + bucket;
            let count = std::mem::take(&mut self.counts[at]);
            // A bucket that overflowed has also counted at least once since then.
            if count > 0 {
                let before =
                    if self.overflows.is_empty() { None } else { self.overflows.remove(&at) };
                counts.push((bucket, u64::from(count) + before.unwrap_or(0)));
            }
        }
        Counts(counts)
    }
}

/// Counts of a tally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<(usize, u64)>);

impl Counts {
    /// Returns the sum of two tallies in the bundle's format.
    pub fn with(&self, other: &Self) -> Packed {
        let mut packed = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let bucket = match (ours.peek(), theirs.peek()) {
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((a, _)), None) | (None, Some((a, _))) => *a,
                (None, None) => return Packed::from_buckets(packed),
            };
            let here = |next: &&(usize, u64)| next.0 == bucket;
            let count = ours.next_if(here).map_or(0, |(_, count)| *count);
            let more = theirs.next_if(here).map_or(0, |(_, count)| *count);
            packed.push((highest(bucket), count + more));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of every magnitude, also outside the range.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..50, any::<u64>()).prop_map(|(bits, noise)| noise >> (63 - bits));
        prop::collection::vec(value, 0..200)
    }

    proptest! {
        /// A tally has the same counts as the library's histogram of the bundle.
        #[test]
        fn a_tally_is_the_librarys_histogram(values in values(), others in values()) {
            let mut tallies = Tallies::new(2);
            let mut whole = latency::histogram();
            for (at, value) in values.iter().enumerate() {
                tallies.count(1, *value);
                whole.saturating_record((*value).max(1));
                if let Some(other) = others.get(at) {
                    tallies.count(0, *other);
                }
            }
            let none = Counts::default();
            let (one, zero) = (tallies.take(1), tallies.take(0));
            prop_assert_eq!(one.with(&none), Packed::from(&whole));
            prop_assert_eq!(tallies.take(1), none.clone());
            prop_assert_eq!(zero.with(&none).count(), values.len().min(others.len()) as u64);
            // The sum of two tallies equals one tally that counted everything.
            others.iter().take(values.len()).for_each(|other| whole.saturating_record((*other).max(1)));
            prop_assert_eq!(one.with(&zero), Packed::from(&whole));
            prop_assert_eq!(zero.with(&one), Packed::from(&whole));
        }
    }

    #[test]
    fn a_bucket_that_is_full_is_carried_on() {
        let mut tallies = Tallies::new(2);
        let none = Counts::default();
        for times in [u64::from(u16::MAX), 200_000] {
            (0..times).for_each(|_| tallies.count(1, 5));
            tallies.count(1, 6);
            tallies.count(0, 5);
            assert_eq!(tallies.take(1).with(&none), Packed::from_buckets(vec![(5, times), (6, 1)]));
            assert_eq!(tallies.take(0).with(&none), Packed::from_buckets(vec![(5, 1)]));
            assert!(tallies.overflows.is_empty());
            assert_eq!(tallies.take(1), none);
        }
    }
}
