//! Detects changes of level in a series, and distinguishes them from the ordinary variation of the
//! series.
//!
//! A series is compared with three shapes of a single change: a step, where its level jumps; a
//! ramp, which rises or falls in a straight line to a constant level; and a decay, which approaches
//! its level exponentially. Each shape is fitted by least squares at every position. The change is
//! the fit with the largest reduction of the squared error (the supremum test of D. W. K. Andrews,
//! *Tests for Parameter Instability and Structural Change with Unknown Change Point*, Econometrica
//! 61 (1993)). Binary segmentation finds several changes (A. J. Scott and M. Knott, *A Cluster
//! Analysis Method for Grouping Means*, Biometrics 30 (1974)).
//!
//! The level of an autocorrelated series drifts, and a test for independent values would divide the
//! series into many pieces. The reduction of the squared error is therefore compared with the
//! long-run variance of the residuals after the change: their variance multiplied by their number
//! and divided by their effective sample size. This requires no permutations and therefore no seed.

use super::autocorrelation::Persistence;
use super::student::t_two_sided;

/// Minimum number of values in a series for the detection of a change.
pub const VALUES_MIN: usize = 20;

/// A change is significant if its two-sided p-value is at most this limit. The limit is small
/// because the p-value is that of the best among many positions.
const P_MAX: f64 = 1e-4;

/// If a change explains at least this share of the variance, it is significant regardless of its
/// p-value.
const SHARE_MIN: f64 = 0.9;

/// Ratio of two successive time constants in the search for the best decay.
const TIME_CONSTANT_STEP: f64 = 1.5;

/// Maximum bias that the rest of a decay may cause in the mean, in standard errors of the mean.
const BIAS_MAX: f64 = 0.25;

/// Shape of a change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// The level jumps at the value with this index.
    Step(usize),
    /// The series follows a straight line up to the value with this index; from there, the level is
    /// constant.
    Ramp(usize),
    /// The series approaches its level exponentially. The time constant is in values.
    Decay(f64),
}

/// Shapes of changes that a search considers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shapes {
    /// Only steps: used to divide a series into segments with different levels.
    Steps,
    /// Steps, ramps and decays: the shapes that a system's warm-up can have.
    WarmUps,
}

impl Shape {
    /// Returns the heights of the shape at `n` positions. A fit multiplies them by a factor and
    /// adds an offset.
    fn heights(self, n: usize) -> Vec<f64> {
        match self {
            Self::Step(at) => (0..n).map(|i| f64::from(u8::from(i < at))).collect(),
            Self::Ramp(at) => (0..n).map(|i| (i as f64 - at as f64).min(0.0)).collect(),
            Self::Decay(constant) => {
                let ratio = libm::exp(-1.0 / constant);
                let fall = |height: &f64| Some(height * ratio);
                core::iter::successors(Some(1.0), fall).take(n).collect()
            }
        }
    }

    /// Returns the index from which the variation of the values is used as the reference for the
    /// change. If at least half of all values follow the change, this is the position of the
    /// change, otherwise 0. The values before the change are left out: if the warm-up does not have
    /// the fitted shape, large residuals remain there.
    fn tail(self, n: usize) -> usize {
        let at = match self {
            Self::Step(at) | Self::Ramp(at) => at,
            Self::Decay(constant) => (5.0 * constant) as usize,
        };
        if 2 * at <= n { at } else { 0 }
    }
}

/// Most likely change of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first value of the new level, from 0. For a decay, the index from which the
    /// rest of the decay biases the mean by at most a quarter of its standard error.
    pub at: usize,
    pub shape: Shape,
    /// Two-sided p-value of the best position, computed as if no other position had been tested.
    pub p_value: f64,
    /// Share of the series' variance that the change explains.
    pub share: f64,
    /// Effective sample size of the residuals, at the lower end of its range.
    pub n_effective_low: f64,
}

impl Change {
    /// Returns true if the change exceeds the ordinary variation of the series.
    ///
    /// A change that explains nearly all of the variance also counts: if a smooth warm-up has a
    /// different shape, its residuals are so correlated that no test on them could be significant.
    #[must_use]
    pub fn significant(&self) -> bool {
        self.p_value <= P_MAX || self.share >= SHARE_MIN
    }
}

/// Returns the most likely change; `None` if there are fewer than 20 values, or if all values are
/// equal.
///
/// Positions within `n / 20` values (at least three) of an end are skipped, because a change there
/// would depend on one or two values.
#[must_use]
pub fn strongest_change(values: &[f64], shapes: Shapes) -> Option<Change> {
    strongest_change_within(values, shapes, 0.0)
}

/// Returns the same as [`strongest_change`], but with a tolerance. The rest of a decay may bias the
/// mean of the later values by `tolerance`, in the unit of the values, or by a quarter of the
/// standard error, whichever is larger.
#[must_use]
pub fn strongest_change_within(values: &[f64], shapes: Shapes, tolerance: f64) -> Option<Change> {
    let n = values.len();
    if n < VALUES_MIN {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let mut left_over: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let total: f64 = left_over.iter().map(|v| v * v).sum();
    if total <= 0.0 {
        return None;
    }
    let mut best = best_place(&left_over, shapes == Shapes::WarmUps);
    if shapes == Shapes::WarmUps {
        let decay = best_decay(&left_over);
        if decay.1 > best.1 {
            best = decay;
        }
    }
    let (shape, fall) = best;
    let size = subtract(&mut left_over, shape);
    let error: f64 = left_over.iter().map(|r| r * r).sum();
    let tail = &left_over[shape.tail(n)..];
    let tail_error: f64 = tail.iter().map(|r| r * r).sum();
    let persistence = Persistence::of(tail);
    let n_effective = persistence.n_effective;
    let tail_length = tail.len() as f64;
    // A series may have rare high values that are by chance missing at its end. This must not count
    // as a change.
    let long_run =
        (tail_error / (tail_length - 2.0) * tail_length / n_effective).max(error / (n - 2) as f64);
    // If the fit is exact, only rounding errors remain, so the change is certain.
    let exact = error <= total * 1e-20;
    let freedom = (n_effective - 2.0).max(1.0);
    let p_value = if exact { 0.0 } else { t_two_sided(libm::sqrt(fall / long_run), freedom) };
    let at = match shape {
        Shape::Step(at) | Shape::Ramp(at) => at,
        Shape::Decay(constant) => decay_end(n, constant, size, libm::sqrt(long_run), tolerance),
    };
    Some(Change {
        at,
        shape,
        p_value,
        share: 1.0 - error / total,
        n_effective_low: persistence.n_effective_low,
    })
}

/// Returns the step or ramp that reduces the squared error most, and the reduction.
fn best_place(centred: &[f64], ramps: bool) -> (Shape, f64) {
    let n = centred.len() as f64;
    let edge = (centred.len() / 20).max(3);
    let (mut sum, mut moment) = (0.0, 0.0);
    let mut best = (Shape::Step(edge), f64::NEG_INFINITY);
    for at in 1..=centred.len() - edge {
        sum += centred[at - 1];
        moment += (at - 1) as f64 * centred[at - 1];
        if at < edge {
            continue;
        }
        let a = at as f64;
        let step = sum * sum * n / (a * (n - a));
        if step > best.1 {
            best = (Shape::Step(at), step);
        }
        if ramps {
            // Projection on min(0, i - a), for which the sum and the sum of squares are known.
            let product = moment - a * sum;
            let total = 0.5 * a * (a + 1.0);
            let norm = a * (a + 1.0) * (2.0 * a + 1.0) / 6.0 - total * total / n;
            let ramp = product * product / norm;
            if ramp > best.1 {
                best = (Shape::Ramp(at), ramp);
            }
        }
    }
    best
}

/// Returns the decay that reduces the squared error most, and the reduction.
fn best_decay(centred: &[f64]) -> (Shape, f64) {
    /// Number of times that the distance between time constants is halved. The last distance is
    /// about 1 % of the constant.
    const REFINEMENTS: u32 = 5;
    let mut best = (1.0, f64::NEG_INFINITY);
    let mut constant = 2.0;
    while constant <= centred.len() as f64 / 2.0 {
        let fall = decay_fall(centred, constant);
        if fall > best.1 {
            best = (constant, fall);
        }
        constant *= TIME_CONSTANT_STEP;
    }
    let mut step = libm::sqrt(TIME_CONSTANT_STEP);
    for _ in 0..REFINEMENTS {
        for candidate in [best.0 / step, best.0 * step] {
            let fall = decay_fall(centred, candidate);
            if fall > best.1 {
                best = (candidate, fall);
                break;
            }
        }
        step = libm::sqrt(step);
    }
    (Shape::Decay(best.0), best.1)
}

/// Returns by how much a decay with this time constant reduces the squared error.
fn decay_fall(centred: &[f64], constant: f64) -> f64 {
    /// Height below which the rest of a decay is negligible.
    const NEGLIGIBLE: f64 = 1e-7;
    let n = centred.len() as f64;
    let ratio = libm::exp(-1.0 / constant);
    let (mut height, mut sum, mut squares, mut product) = (1.0, 0.0, 0.0, 0.0);
    for value in centred {
        sum += height;
        squares += height * height;
        product += height * value;
        height *= ratio;
        if height < NEGLIGIBLE {
            break;
        }
    }
    product * product / (squares - sum * sum / n)
}

/// Subtracts the best fit of a shape from centred values, and returns the factor of the fit.
fn subtract(centred: &mut [f64], shape: Shape) -> f64 {
    let n = centred.len();
    let heights = shape.heights(n);
    let centre = heights.iter().sum::<f64>() / n as f64;
    let (mut product, mut norm) = (0.0, 0.0);
    for (value, height) in centred.iter().zip(&heights) {
        product += value * (height - centre);
        norm += (height - centre) * (height - centre);
    }
    let factor = product / norm;
    for (value, height) in centred.iter_mut().zip(&heights) {
        *value -= factor * (height - centre);
    }
    factor
}

/// Returns the first index from which the mean is biased only slightly by the rest of the decay.
/// The limit for this bias is the tolerance or a quarter of the standard error, whichever is
/// larger. Returns `n` if there is no such index.
fn decay_end(n: usize, constant: f64, size: f64, deviation: f64, tolerance: f64) -> usize {
    (0..n)
        .find(|&i| {
            let rest = (n - i) as f64;
            let bias = size.abs() * constant * libm::exp(-(i as f64) / constant) / rest;
            bias <= (BIAS_MAX * deviation / libm::sqrt(rest)).max(tolerance)
        })
        .unwrap_or(n)
}

/// Segment of a series with a constant level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Index of the first value, from 0.
    pub start: usize,
    /// Index after the last value.
    pub end: usize,
    pub mean: f64,
}

/// Shortest window in which [`segments`] tests for a step.
const WINDOW_MIN: usize = 40;

/// Largest p-value of a step between segments. It is smaller than the limit for a single change,
/// because the number of windows grows with the length of the series.
const P_SEGMENT_MAX: f64 = 1e-8;

/// Minimum effective sample size of a window. It is computed from the values after the step between
/// them was subtracted.
const WINDOW_EFFECTIVE_MIN: f64 = 10.0;

/// Returns the segments into which steps divide a series. If there are no steps, a single segment
/// contains the whole series.
///
/// Returns no segments for an empty series. A dip in the middle of a segment consists of two steps.
/// The function therefore tests windows of many lengths, and neighbouring windows overlap by half
/// (S. Kovács, P. Bühlmann, H. Li, A. Munk, *Seeded Binary Segmentation*, Biometrika 110 (2023)).
/// The clearest step divides the segment. A window contains at least 40 values, and at least an
/// eighth of the segment.
#[must_use]
pub fn segments(values: &[f64]) -> Vec<Segment> {
    let mut found = Vec::new();
    if values.is_empty() {
        return found;
    }
    let mut open = vec![(0, values.len())];
    while let Some((start, end)) = open.pop() {
        let segment = &values[start..end];
        match clearest_step(segment) {
            Some(at) => {
                // The left half comes first, so that segments are in order.
                open.push((start + at, end));
                open.push((start, start + at));
            }
            None => {
                let mean = segment.iter().sum::<f64>() / segment.len() as f64;
                found.push(Segment { start, end, mean });
            }
        }
    }
    found
}

/// Returns the position of the step with the smallest p-value over all windows.
fn clearest_step(values: &[f64]) -> Option<usize> {
    let n = values.len();
    let shortest = (n / 8).max(WINDOW_MIN).min(n);
    let mut best: Option<(usize, f64)> = None;
    let mut length = n;
    while length >= shortest {
        let stride = (length / 2).max(1);
        let mut start = 0;
        loop {
            // The last window is moved back, so that it ends at the end of the segment.
            let from = start.min(n - length);
            if let Some(step) = strongest_change(&values[from..from + length], Shapes::Steps) {
                let sure = step.n_effective_low >= WINDOW_EFFECTIVE_MIN || step.p_value == 0.0;
                let clear = step.p_value <= P_SEGMENT_MAX && sure;
                if clear && best.is_none_or(|(_, p)| step.p_value < p) {
                    best = Some((from + step.at, step.p_value));
                }
            }
            if start + length >= n {
                break;
            }
            start += stride;
        }
        length = length * 2 / 3;
    }
    best.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a wave with a short period and a small height, so that every series has scatter.
    fn ripple(n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..n).map(|i| level(i) + 0.1 * libm::sin(i as f64 * 2.4)).collect()
    }

    #[test]
    fn each_shape_is_recognised_where_it_is() {
        let step = ripple(200, |i| if i < 60 { 2.0 } else { 1.0 });
        let change = strongest_change(&step, Shapes::WarmUps).unwrap();
        assert_eq!((change.shape, change.at), (Shape::Step(60), 60));

        let ramp = ripple(200, |i| (i as f64 / 80.0).min(1.0));
        let change = strongest_change(&ramp, Shapes::WarmUps).unwrap();
        assert!(matches!(change.shape, Shape::Ramp(at) if at.abs_diff(80) <= 1), "{change:?}");

        let decay = ripple(200, |i| 1.0 + libm::exp(-(i as f64) / 15.0));
        let change = strongest_change(&decay, Shapes::WarmUps).unwrap();
        let Shape::Decay(constant) = change.shape else { panic!("{change:?}") };
        assert!((12.0..18.5).contains(&constant), "{change:?}");
        assert!(change.at > 30 && change.significant(), "{change:?}");
    }

    #[test]
    fn an_exact_fit_is_certain_and_a_level_series_has_no_change() {
        let mut values = [1.0; 40];
        values[..10].fill(3.0);
        let change = strongest_change(&values, Shapes::Steps).unwrap();
        assert_eq!((change.at, change.p_value), (10, 0.0));
        assert_eq!(strongest_change(&[1.0; 40], Shapes::WarmUps), None);
        assert_eq!(strongest_change(&values[..19], Shapes::Steps), None);
    }

    #[test]
    fn a_dip_makes_three_segments_in_order() {
        let dip = ripple(300, |i| if (100..150).contains(&i) { 0.5 } else { 1.0 });
        let bounds: Vec<_> = segments(&dip).iter().map(|s| (s.start, s.end)).collect();
        assert_eq!(bounds, [(0, 100), (100, 150), (150, 300)]);
        assert!((segments(&dip)[1].mean - 0.5).abs() < 0.02);
        assert!(segments(&[]).is_empty());
    }
}
