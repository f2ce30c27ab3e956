//! Addresses with a hot part that gets most of the operations.

use super::hash::{mix, share_below, uniform_below};

/// Slots in two parts. The hot part, at the start of the space, gets a given share of the
/// operations. Addresses are uniform within each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotCold {
    n: u64,
    hot: u64,
    threshold: u64,
}

impl HotCold {
    /// Creates slots `0..n`. The hot part has the share `hot_space` of the slots (0 to 1, rounded
    /// to whole slots, at least one), and gets the share `hot_access` of the operations. An `n` of
    /// 0 counts as 1. If one part is the whole space, the other part gets no operations.
    #[must_use]
    pub fn new(n: u64, hot_space: f64, hot_access: f64) -> Self {
        let n = n.max(1);
        let hot = libm::round(hot_space.clamp(0.0, 1.0) * n as f64) as u64;
        let hot = hot.clamp(1, n);
        let access = if hot == n { 1.0 } else { hot_access.clamp(0.0, 1.0) };
        Self { n, hot, threshold: share_below(access) }
    }

    /// Returns the slot of an index.
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
