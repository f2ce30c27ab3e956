//! Random numbers for one session. They form a stream that depends on the seed and on the number of
//! the session.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::geometry::mix;

/// Stream of random numbers, from which a session makes its choices.
#[derive(Clone, Debug)]
pub(crate) struct Choices(Xoshiro256PlusPlus);

impl Choices {
    /// Creates the stream number `stream` for the seed `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(stream))))
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a random time that is exponentially distributed with the mean `mean_ns`.
    pub fn exponential_ns(&mut self, mean_ns: f64) -> f64 {
        // The random number is in (0, 1], because its logarithm must be finite.
        let uniform = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -libm::log(uniform) * mean_ns
    }
}

/// Maps 64 random bits to a number in `0..n` (Lemire 2019, without the rejection step, because `n`
/// is much smaller than 2^64).
pub(crate) fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}
