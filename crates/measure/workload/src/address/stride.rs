//! Pattern with a fixed stride `s`: it accesses every s-th slot first, and then the slots between
//! them.

/// Slots at a fixed distance from each other. At the end of the space, the sequence starts another
/// round. The first slot of the new round is one slot after the first slot of the previous round. A
/// pass of `n` operations therefore accesses each slot exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stride {
    n: u64,
    stride: u64,
    /// Number of slots in a short row. The slots of a row all have the same remainder when divided
    /// by the stride.
    short: u64,
    /// Number of long rows. A long row has one more slot than a short row. The long rows come
    /// first.
    long_rows: u64,
}

impl Stride {
    /// Creates the slots `0..n`, which are accessed at a distance of `stride` slots. If `n` or
    /// `stride` is 0, it is treated as 1.
    #[must_use]
    pub fn new(n: u64, stride: u64) -> Self {
        let (n, stride) = (n.max(1), stride.max(1));
        Self { n, stride, short: n / stride, long_rows: n % stride }
    }

    /// Returns the slot for an index.
    #[must_use]
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let at = index % self.n;
        let long = self.short + 1;
        // `in_long` and all products in the following lines are at most n, so they do not overflow.
        let in_long = self.long_rows * long;
        let (row, step) = if at < in_long {
            (at / long, at % long)
        } else {
            let rest = at - in_long;
            (self.long_rows + rest / self.short, rest % self.short)
        };
        row + step * self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_slots_by_three() {
        let stride = Stride::new(10, 3);
        let slots: Vec<u64> = (0..12).map(|i| stride.at(i)).collect();
        assert_eq!(slots, [0, 3, 6, 9, 1, 4, 7, 2, 5, 8, 0, 3]);
    }

    proptest! {
        #[test]
        fn a_pass_visits_each_slot_once(n in 1u64..2_000, stride in 0u64..3_000, pass in 0u64..5) {
            let s = Stride::new(n, stride);
            let mut hit = vec![false; n as usize];
            for i in 0..n {
                let slot = s.at(pass * n + i) as usize;
                prop_assert!(!std::mem::replace(&mut hit[slot], true));
            }
        }
    }
}
