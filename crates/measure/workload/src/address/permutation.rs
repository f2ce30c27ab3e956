//! Permutes the numbers `0..n` according to a key, without a table.
//!
//! Each of three operations is a bijection of the b-bit numbers: addition of a key, multiplication
//! by an odd constant, and exclusive-or with a right shift. Here, b is the smallest number of bits
//! that can represent `n - 1`. Four rounds of these three operations mix the bits well. A result
//! outside `0..n` is permuted again until it is inside ("cycle walking", Black and Rogaway,
//! "Ciphers with arbitrary finite domains", CT-RSA 2002). The result is a bijection of `0..n`. It
//! needs fewer than two attempts on average, because `2^b < 2n`.

use super::hash::mix;

const ROUNDS: usize = 4;

/// Odd multipliers whose bits are well mixed. They are the constants of SplitMix64 and of
/// MurmurHash3's finalizer.
const MULTIPLIERS: [u64; ROUNDS] =
    [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB, 0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53];

/// A permutation of the numbers below `n`. The key selects the permutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates the permutation of `0..n` that `key` selects. An `n` of 0 is treated as 1.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        let n = n.max(1);
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(1);
        Self {
            n,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            keys: core::array::from_fn(|round| mix(key, round as u64)),
        }
    }

    /// Returns `n`, which is the number of permuted values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the number to which the permutation maps `i`. For each number in `0..n`, there is
    /// exactly one `i` in `0..n` that is mapped to it.
    ///
    /// If `i` is not less than `n`, the remainder of `i / n` is used instead.
    #[must_use]
    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        let mut x = if i < self.n { i } else { i % self.n };
        loop {
            for (key, multiplier) in self.keys.iter().zip(MULTIPLIERS) {
                x = x.wrapping_add(*key).wrapping_mul(multiplier) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_is_hit_once(n in 1u64..5_000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut hit = vec![false; n as usize];
            for i in 0..n {
                let to = permutation.at(i) as usize;
                prop_assert!(!std::mem::replace(&mut hit[to], true));
            }
        }

        #[test]
        fn large_spaces_stay_inside_and_apart(n in 1u64 << 40.., key: u64, i: u64) {
            let permutation = Permutation::new(n, key);
            let (i, j) = (i % n, (i % n + 1) % n);
            prop_assert!(permutation.at(i) < n);
            prop_assert!(n == 1 || permutation.at(i) != permutation.at(j));
        }
    }

    /// If the key changes, the same number is mapped to a different number, and all numbers are
    /// equally probable. The test counts the results for 16,000 keys in 16 cells. With 15 degrees
    /// of freedom, the 99.9 % quantile of chi-square is 37.7. The keys are constants, so the result
    /// of the test is always the same.
    #[test]
    fn over_keys_a_number_goes_anywhere() {
        for n in [16u64, 1000] {
            for i in [0, 1, n / 2, n - 1] {
                let mut counts = [0u32; 16];
                for key in 0..16_000 {
                    counts[(Permutation::new(n, key).at(i) * 16 / n) as usize] += 1;
                }
                // If `n` is 1000, each cell contains 62 or 63 numbers.
                let chi: f64 = (0..16u64)
                    .map(|cell| {
                        let size = ((cell + 1) * n).div_ceil(16) - (cell * n).div_ceil(16);
                        let expected = 16_000.0 * size as f64 / n as f64;
                        (f64::from(counts[cell as usize]) - expected).powi(2) / expected
                    })
                    .sum();
                assert!(chi < 37.7, "n {n}, i {i}: chi-square {chi}");
            }
        }
    }

    /// The numbers to which two neighbouring numbers are mapped differ by n/3 on average. Two
    /// random numbers differ by the same amount.
    #[test]
    fn neighbours_are_scattered() {
        for n in [1_000_003u64, 1 << 20] {
            let permutation = Permutation::new(n, 42);
            let mut sum = 0u128;
            for i in 0..100_000 {
                sum += u128::from(permutation.at(i).abs_diff(permutation.at(i + 1)));
            }
            let mean = sum as f64 / 100_000.0 / n as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.005, "mean distance {mean}");
        }
    }
}
