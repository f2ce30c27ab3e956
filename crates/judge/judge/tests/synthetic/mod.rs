//! Seeded series with known properties: noise, transients and modes that resemble those of storage.

#![allow(dead_code)] // each test binary uses its own part

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seeded source of uniform, normal and exponential numbers.
pub struct Source {
    rng: Xoshiro256PlusPlus,
    spare: Option<f64>,
}

impl Source {
    /// Creates a source whose numbers depend only on `seed`.
    pub fn new(seed: u64) -> Self {
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), spare: None }
    }

    /// Returns a uniform number in the open interval 0..1.
    pub fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let factor = libm::sqrt(-2.0 * libm::log(s) / s);
                self.spare = Some(v * factor);
                return u * factor;
            }
        }
    }

    /// Returns an exponential number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Returns `n` values of a stationary AR(1) process of mean 0 and variance 1; `phi` 0 is white
    /// noise.
    pub fn ar1(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let innovation = libm::sqrt(1.0 - phi * phi);
        let mut state = self.normal();
        (0..n)
            .map(|_| {
                state = phi * state + innovation * self.normal();
                state
            })
            .collect()
    }

    /// Returns white noise of variance `1 - share` plus an AR(1) process of variance `share`.
    pub fn drift_beneath_noise(&mut self, n: usize, phi: f64, share: f64) -> Vec<f64> {
        let slow = self.ar1(n, phi);
        slow.iter()
            .map(|s| libm::sqrt(share) * s + libm::sqrt(1.0 - share) * self.normal())
            .collect()
    }

    /// Returns independent values with two modes that are 10 standard deviations apart. The upper
    /// mode has the probability `upper`, and the mean is 0.
    pub fn bimodal(&mut self, n: usize, upper: f64) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let mode = f64::from(u8::from(self.uniform() < upper));
                10.0 * (mode - upper) + self.normal()
            })
            .collect()
    }

    /// Returns values with two modes and mean 0. At each step, the mode changes with the
    /// probability `up` or `down`. The modes form a two-state Markov chain. Without noise, its
    /// autocorrelation is `(1 - up - down)^lag`.
    pub fn switching(&mut self, n: usize, up: f64, down: f64) -> Vec<f64> {
        let upper = up / (up + down);
        let mut high = self.uniform() < upper;
        (0..n)
            .map(|_| {
                let value = 10.0 * (f64::from(u8::from(high)) - upper) + self.normal();
                let u = self.uniform();
                high = if high { u >= down } else { u < up };
                value
            })
            .collect()
    }
}

/// Returns the effective sample size of `n` values of an AR(1) process.
pub fn ar1_n_effective(n: usize, phi: f64) -> f64 {
    n as f64 * (1.0 - phi) / (1.0 + phi)
}
