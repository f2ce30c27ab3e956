//! Computes random bits as a pure function of a seed and an index.
//!
//! The finalizer (last mixing step) is variant 13 of Stafford's mixers. SplitMix64 uses the same
//! finalizer (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA '14).

/// Increment of SplitMix64. It is 2^64 divided by the golden ratio, rounded to an odd number.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns output number `index` of SplitMix64 with the seed `seed`.
#[inline]
pub fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Maps 64 random bits to a number in `0..n` by multiplication. The relative error of each number's
/// probability is at most `n / 2^64` (Lemire, "Fast random integer generation in an interval",
/// 2019, section 3).
#[inline]
pub(crate) fn uniform_below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// Converts 64 random bits to a number in the open interval (0, 1). The number is an odd multiple
/// of 2^-53.
#[inline]
pub(crate) fn unit_open(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// Returns a threshold. A random 64-bit number is below this threshold with the probability `share`
/// (0 to 1).
#[inline]
pub(crate) fn share_below(share: f64) -> u64 {
    // The factor is 2^64. For a share of 1, the conversion to an integer saturates.
    (share * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the first outputs of SplitMix64 with seed 1234567. They were
    /// published with the reference code (`splitmix64.c`, Vigna 2015) and in Rosetta Code's
    /// "Pseudo-random numbers/Splitmix64".
    #[test]
    fn the_outputs_are_those_of_splitmix64() {
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (i, value) in expected.into_iter().enumerate() {
            assert_eq!(mix(1_234_567, i as u64), value);
        }
    }

    #[test]
    fn the_ends_of_the_ranges() {
        assert_eq!(uniform_below(0, 10), 0);
        assert_eq!(uniform_below(u64::MAX, 10), 9);
        assert_eq!(uniform_below(u64::MAX, u64::MAX), u64::MAX - 1);
        assert!(unit_open(0) > 0.0 && unit_open(u64::MAX) < 1.0);
        assert_eq!(share_below(1.0), u64::MAX);
        assert_eq!(share_below(0.0), 0);
    }
}
