//! Computes confidence intervals for the mean of a correlated sequence, by the method of batch
//! means.
//!
//! A. M. Law and W. D. Kelton, "Simulation Modeling and Analysis", 3rd ed., section 9.5.3: the
//! sequence is divided into batches that are so long that their means are nearly independent, and
//! Student's t is applied to the means. The number of batches is between 32 and 64. When there are
//! 64 batches, pairs of batches are merged, and the batch length doubles.

const BATCHES_MAX: usize = 64;

/// A mean, and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Half the width of the confidence interval; infinite if there are fewer than 8 batches.
    pub half_width: f64,
}

impl Estimate {
    /// Returns the half-width of the interval divided by the mean.
    pub fn relative(&self) -> f64 {
        self.half_width / self.mean.abs()
    }

    /// Returns true if `value` is inside the interval.
    pub fn holds(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// Collects the values of a sequence in batches.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    length: u64,
    in_batch: u64,
    sum: f64,
    means: Vec<f64>,
}

impl Default for BatchMeans {
    fn default() -> Self {
        Self { length: 16, in_batch: 0, sum: 0.0, means: Vec::with_capacity(BATCHES_MAX) }
    }
}

impl BatchMeans {
    /// Adds the next value of the sequence.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.in_batch += 1;
        if self.in_batch == self.length {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.means.push(self.sum / self.length as f64);
        self.sum = 0.0;
        self.in_batch = 0;
        if self.means.len() == BATCHES_MAX {
            let merged = self.means.chunks_exact(2).map(|p| 0.5 * (p[0] + p[1])).collect();
            self.means = merged;
            self.length *= 2;
        }
    }

    /// Returns the mean of the full batches and its 95 % confidence interval.
    pub fn estimate(&self) -> Estimate {
        let n = self.means.len() as f64;
        if self.means.is_empty() {
            let mean = if self.in_batch > 0 { self.sum / self.in_batch as f64 } else { f64::NAN };
            return Estimate { mean, half_width: f64::INFINITY };
        }
        let mean = self.means.iter().sum::<f64>() / n;
        if self.means.len() < 8 {
            return Estimate { mean, half_width: f64::INFINITY };
        }
        let square: f64 = self.means.iter().map(|m| (m - mean) * (m - mean)).sum();
        let error = libm::sqrt(square / (n - 1.0) / n);
        Estimate { mean, half_width: student_95(n - 1.0) * error }
    }
}

/// Returns the 97.5 % point of Student's t distribution. It is computed by an expansion around the
/// 97.5 % point of the normal distribution (M. Abramowitz and I. A. Stegun, "Handbook of
/// Mathematical Functions", 26.7.5). The error is below 1e-4 for 7 or more degrees of freedom.
fn student_95(freedom: f64) -> f64 {
    let x = 1.959_963_985f64;
    let (x3, x5, x7) = (x.powi(3), x.powi(5), x.powi(7));
    x + (x3 + x) / (4.0 * freedom)
        + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * freedom * freedom)
        + (3.0 * x7 + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Stream;

    #[test]
    fn student_points_are_those_of_the_tables() {
        for (freedom, point) in [(7.0, 2.364_624), (29.0, 2.045_230), (63.0, 1.998_341)] {
            assert!((student_95(freedom) - point).abs() < 2e-3, "{freedom}");
        }
    }

    #[test]
    fn intervals_cover_the_mean_as_often_as_they_say() {
        // Generates 400 sequences of a correlated process (AR(1), 0.9) with mean 10. About 380 of
        // the 95 % intervals should contain this mean. With batch means, the number is slightly
        // smaller.
        let mut covered = 0;
        for seed in 0..400 {
            let mut stream = Stream::new(seed, "ar");
            let mut means = BatchMeans::default();
            let mut x = 0.0;
            for _ in 0..20_000 {
                x = 0.9 * x + stream.exponential() - 1.0;
                means.add(10.0 + x);
            }
            covered += usize::from(means.estimate().holds(10.0));
        }
        assert!((365..=395).contains(&covered), "{covered} of 400");
    }
}
