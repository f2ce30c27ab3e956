//! Random numbers. Each component has its own seeded stream, so that a new component does not
//! change the numbers of other components.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", ACM TOMS 47(4), 2021). The seed of a stream is the XXH3 hash of the stream's name,
//! keyed with the seed of the run. Logarithms are computed by `libm`, so that debug, release, glibc
//! and musl builds produce the same values.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A component's stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    generator: Xoshiro256PlusPlus,
}

impl Stream {
    /// Creates the stream that has this name, for a run with the seed `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        let seed = xxh3_64_with_seed(name.as_bytes(), seed);
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Returns 64 uniformly distributed random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Returns a uniformly distributed random number in `0..bound` (D. Lemire, "Fast random integer
    /// generation in an interval", ACM TOMACS 29(1), 2019, without its rejection step, so the bias
    /// is below `bound` / 2^64). Returns 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniformly distributed random number in [0, 1). It is a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns an exponentially distributed random number with mean 1.
    #[inline(always)]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Returns an exponentially distributed random time whose mean is given. The time is rounded to
    /// whole nanoseconds.
    #[inline]
    pub fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        (self.exponential() * mean_ns + 0.5) as u64
    }

    /// Returns a random duration. The parameters are its mean and its coefficient of variation
    /// (standard deviation divided by mean).
    ///
    /// If the coefficient is 0, the duration is constant. If it is at most 1, the duration is the
    /// sum of a constant and an exponential part. If it is above 1, the duration has a balanced
    /// two-phase hyperexponential distribution (W. Whitt, "The queueing network analyzer", BSTJ
    /// 62(9), 1983, eq. 3.9-3.11).
    #[inline(always)]
    pub fn duration_ns(&mut self, mean_ns: f64, variation: f64) -> u64 {
        if variation <= 0.0 {
            return (mean_ns + 0.5) as u64;
        }
        if variation <= 1.0 {
            let part = variation * self.exponential();
            return (mean_ns * (1.0 - variation + part) + 0.5) as u64;
        }
        let square = variation * variation;
        let p = 0.5 * (1.0 + libm::sqrt((square - 1.0) / (square + 1.0)));
        let mean = if self.chance(p) { mean_ns / (2.0 * p) } else { mean_ns / (2.0 * (1.0 - p)) };
        self.exponential_ns(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_repeat_by_seed() {
        let mut a = Stream::new(1, "disk0");
        let mut b = Stream::new(1, "disk1");
        let mut again = Stream::new(1, "disk0");
        let first: Vec<u64> = (0..8).map(|_| a.bits()).collect();
        assert_eq!(first, (0..8).map(|_| again.bits()).collect::<Vec<_>>());
        assert_ne!(first, (0..8).map(|_| b.bits()).collect::<Vec<_>>());
    }

    #[test]
    fn durations_have_the_asked_mean_and_variation() {
        let mut stream = Stream::new(7, "test");
        for variation in [0.0, 0.3, 1.0, 2.5] {
            let n = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = stream.duration_ns(1e6, variation) as f64;
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let cv = (squares / f64::from(n) - mean * mean).max(0.0).sqrt() / mean;
            // For 400,000 values with the coefficient of variation 2.5, four standard errors of the
            // mean are 1.6 % of the mean.
            assert!((mean / 1e6 - 1.0).abs() < 0.016, "mean {mean} at variation {variation}");
            assert!((cv - variation).abs() < 0.05 * variation + 1e-3, "cv {cv} for {variation}");
        }
    }
}
