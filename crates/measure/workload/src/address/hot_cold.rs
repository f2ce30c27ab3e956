//! Pattern in which most operations access a hot part of the space.

use super::hash::{mix, share_below, uniform_below};

/// Slots in two parts, hot and cold. The hot part is at the start of the space. It gets a given
/// fraction of the operations. Within each part, all slots have the same probability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotCold {
    n: u64,
    hot: u64,
    threshold: u64,
}

impl HotCold {
    /// Creates the slots `0..n`. The hot part contains the fraction `hot_space` of the slots (0 to
    /// 1, rounded to whole slots, at least one slot). It gets the fraction `hot_access` of the
    /// operations. An `n` of 0 is treated as 1. If one part is the whole space, the other part gets
    /// no operations.
    #[must_use]
    pub fn new(n: u64, hot_space: f64, hot_access: f64) -> Self {
        let n = n.max(1);
        let hot = libm::round(hot_space.clamp(0.0, 1.0) * n as f64) as u64;
        let hot = hot.clamp(1, n);
        let access = if hot == n { 1.0 } else { hot_access.clamp(0.0, 1.0) };
        Self { n, hot, threshold: share_below(access) }
    }

    /// Returns the slot for an index.
    #[must_use]
    #[inline]
    pub fn at(&self, seed: u64, index: u64) -> u64 {
        let part = mix(seed, index);
        let bits = mix(part, index);
        if part < self.threshold || self.hot == self.n {
            uniform_below(bits, self.hot)
        } else {
            self.hot + uniform_below(bits, self.n - self.hot)
        }
    }
}
