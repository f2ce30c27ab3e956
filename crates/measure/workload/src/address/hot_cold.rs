//! A hot part that takes most operations.

use super::hash::{mix, share_below, uniform_below};

/// Slots of which a hot part at the start of the space takes a given share of the operations; uniform
/// within the two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotCold {
    n: u64,
    hot: u64,
    threshold: u64,
}

impl HotCold {
    /// Slots `0..n` whose first `hot_space` (a share, 0 to 1, rounded to whole slots, at least one) take
    /// `hot_access` of the operations. `n` of 0 is taken as 1. Where one part is all, the other gets
    /// nothing.
    #[must_use]
    pub fn new(n: u64, hot_space: f64, hot_access: f64) -> Self {
        let n = n.max(1);
        let hot = libm::round(hot_space.clamp(0.0, 1.0) * n as f64) as u64;
        let hot = hot.clamp(1, n);
        let access = if hot == n { 1.0 } else { hot_access.clamp(0.0, 1.0) };
        Self { n, hot, threshold: share_below(access) }
    }

    /// How many slots are hot.
    #[must_use]
    pub fn hot(&self) -> u64 {
        self.hot
    }

    /// The slot for an index.
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
