//! Merges several streams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Arrivals;

/// Starts of several parts in order of time, each with its part. Of equal times, the time of the
/// lower part is first.
#[derive(Clone, Debug)]
pub struct MergedArrivals {
    parts: Vec<Arrivals>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl MergedArrivals {
    /// Merges the parts.
    #[must_use]
    pub fn new(mut parts: Vec<Arrivals>) -> Self {
        let each = parts.iter_mut().enumerate();
        let next = each.filter_map(|(part, a)| Some(Reverse((a.next()?, part)))).collect();
        Self { parts, next }
    }
}

impl Iterator for MergedArrivals {
    type Item = (u64, usize);

    fn next(&mut self) -> Option<(u64, usize)> {
        let Reverse((time_ns, part)) = self.next.pop()?;
        if let Some(next_ns) = self.parts.get_mut(part).and_then(Iterator::next) {
            self.next.push(Reverse((next_ns, part)));
        }
        Some((time_ns, part))
    }
}
