//! Interpolation between measured rows: a Gaussian process on the logarithm of a positive figure.
//!
//! The covariance of two points is a linear trend, a squared exponential of their distance with one
//! length per axis, and noise. The lengths and the noise are those that maximise the probability
//! density of rows that were left out. Formulas: Rasmussen and Williams, *Gaussian Processes for
//! Machine Learning*, 2006, equations 2.25, 2.26 and 5.10 to 5.13.
//!
//! Rows are left out in two ways and predicted from the remaining rows. Either a single row is left
//! out, or a whole level: all rows with the same value of an axis. The lowest and the highest level
//! of an axis are never left out. Single rows of a full grid are too easy to predict: their level
//! is known from other rows, while a new cell is usually between two levels.
//!
//! The width of an interval does not depend on the assumptions of the process: the interval is
//! scaled so that it contains the measured figure for nine out of ten rows that were left out
//! (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005, chapter 4).

/// Variance of the trend, relative to that of the squared exponential.
const TREND: f64 = 4.0;
/// Lengths that the search tries, as multiples of an axis's range.
const LENGTHS: [f64; 6] = [0.12, 0.25, 0.5, 1.0, 2.0, 4.0];
/// Noise levels that the search tries, relative to the variance of the squared exponential.
const NOISES: [f64; 6] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Number of rounds of the search over lengths and noise.
const ROUNDS: usize = 3;
/// Maximum number of rows that the search uses. The prediction uses all rows.
const SEARCH_ROWS: usize = 200;
/// Share of rows whose measured figure an interval contains.
pub const COVERAGE: f64 = 0.9;

/// Hyperparameters of the covariance.
#[derive(Clone, Debug, PartialEq)]
struct Kernel {
    lengths: Vec<f64>,
    noise: f64,
}

impl Kernel {
    /// Covariance of two points, without noise.
    fn covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        let (mut squares, mut product) = (0.0, 0.0);
        for ((a, b), length) in a.iter().zip(b).zip(&self.lengths) {
            let distance = (a - b) / length;
            squares += distance * distance;
            product += a * b;
        }
        TREND * (1.0 + product) + libm::exp(-0.5 * squares)
    }
}

/// Inverse covariance of the rows, and values that are derived from this matrix.
#[derive(Debug)]
struct Process {
    kernel: Kernel,
    inverse: Vec<f64>,
    /// Product of the inverse covariance and the figures.
    weights: Vec<f64>,
    /// Variance of the squared exponential, estimated from the figures.
    scale: f64,
}

/// Natural logarithm of a row's figure, as predicted from all other rows.
#[derive(Clone, Copy, Debug)]
struct LeftOut {
    error: f64,
    deviation: f64,
}

impl Process {
    /// `figures` are logarithms with the mean 0. `None` if the covariance is singular.
    fn new(kernel: Kernel, points: &[&[f64]], figures: &[f64]) -> Option<Self> {
        let n = points.len();
        let mut covariance = vec![0.0; n * n];
        for (i, a) in points.iter().enumerate() {
            for (j, b) in points[..=i].iter().enumerate() {
                covariance[i * n + j] = kernel.covariance(a, b);
            }
            covariance[i * n + i] += kernel.noise;
        }
        let inverse = inverse(covariance, n)?;
        let weights: Vec<f64> = inverse.chunks(n).map(|row| dot(row, figures)).collect();
        let scale = dot(&weights, figures) / n as f64;
        Some(Self { kernel, inverse, weights, scale: scale.max(f64::MIN_POSITIVE) })
    }

    /// Predicts some rows from all other rows. `None` if the covariance of the rows is singular.
    fn left_out(&self, rows: &[usize]) -> Option<Vec<LeftOut>> {
        let n = self.weights.len();
        let part = rows.iter().flat_map(|i| rows.iter().map(|j| self.inverse[*i * n + *j]));
        let covariance = inverse(part.collect(), rows.len())?;
        let weights: Vec<f64> = rows.iter().map(|row| self.weights[*row]).collect();
        let one = |(at, row): (usize, &[f64])| LeftOut {
            error: dot(row, &weights),
            deviation: libm::sqrt(self.scale * row[at]),
        };
        Some(covariance.chunks(rows.len()).enumerate().map(one).collect())
    }

    /// Returns the logarithm of the probability density of the rows that were left out.
    fn density(&self, groups: &[Group]) -> f64 {
        let of_row = |row: LeftOut| {
            let z = row.error / row.deviation;
            -libm::log(row.deviation) - 0.5 * z * z
        };
        let of_group = |group: &Group| {
            self.left_out(&group.rows)
                .map_or(f64::NEG_INFINITY, |rows| rows.into_iter().map(of_row).sum())
        };
        groups.iter().map(of_group).sum()
    }
}

/// Rows that are left out together.
#[derive(Debug)]
struct Group {
    /// The axis on which these rows have the same level; `None` for a single row.
    axis: Option<usize>,
    rows: Vec<usize>,
}

/// Returns the values of an axis, in ascending order.
fn levels(points: &[&[f64]], axis: usize) -> Vec<f64> {
    let mut levels: Vec<f64> = points.iter().map(|point| point[axis]).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

/// Returns all single rows, and all levels except for the lowest and the highest of each axis.
fn groups(points: &[&[f64]]) -> Vec<Group> {
    let mut groups: Vec<Group> =
        (0..points.len()).map(|row| Group { axis: None, rows: vec![row] }).collect();
    for axis in 0..points.first().map_or(0, |point| point.len()) {
        let levels = levels(points, axis);
        for level in levels.iter().take(levels.len().saturating_sub(1)).skip(1) {
            let is_of = |row: &usize| points[*row][axis] == *level;
            groups
                .push(Group { axis: Some(axis), rows: (0..points.len()).filter(is_of).collect() });
        }
    }
    groups
}

/// Half widths of intervals, in standard deviations of the process.
#[derive(Debug)]
struct Widths {
    /// Half width for a cell whose axis values were all measured.
    row: f64,
    /// Half width for a cell between two levels of an axis; `None` if no level of the axis can be
    /// left out.
    levels: Vec<Option<f64>>,
}

/// Prediction of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The figure.
    pub value: f64,
    /// Interval that contains the measured figure with the probability [`COVERAGE`].
    pub interval: [f64; 2],
}

/// Interpolation of one figure.
#[derive(Debug)]
pub struct Interpolation {
    points: Vec<Vec<f64>>,
    mean: f64,
    process: Process,
    widths: Widths,
    /// Relative errors of rows that were left out. Whole levels were left out, or single rows if no
    /// axis has a level that can be left out.
    pub left_out_errors: Vec<f64>,
    /// Relative errors of the same rows if each is copied from the nearest row that was not left
    /// out.
    pub copying_errors: Vec<f64>,
    /// Relative errors of single rows, each predicted from all other rows.
    pub row_errors: Vec<f64>,
}

impl Interpolation {
    /// Minimum number of rows from which an interval with a probability of [`COVERAGE`] can be
    /// computed.
    pub const ROWS_MIN: usize = 9;
    /// Maximum number of rows. The time grows with the cube of this number, and the memory with its
    /// square.
    pub const ROWS_MAX: usize = 1000;

    /// Prepares the interpolation of positive figures at points whose axes range from 0 to 1.
    /// `None` if the number of rows is outside the limits.
    #[must_use]
    pub fn new(points: Vec<Vec<f64>>, figures: &[f64]) -> Option<Self> {
        let n = points.len();
        if !(Self::ROWS_MIN..=Self::ROWS_MAX).contains(&n) || figures.len() != n {
            return None;
        }
        let logarithms: Vec<f64> = figures.iter().map(|figure| libm::log(*figure)).collect();
        let mean = logarithms.iter().sum::<f64>() / n as f64;
        let centred: Vec<f64> = logarithms.iter().map(|figure| figure - mean).collect();
        let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let process = Process::new(best_kernel(&all, &centred), &all, &centred)?;
        let groups = groups(&all);
        let has_levels = groups.iter().any(|group| group.axis.is_some());
        let axes = all.first().map_or(0, |point| point.len());
        let mut distances: Vec<Vec<f64>> = vec![Vec::new(); axes + 1];
        let (mut left_out_errors, mut copying_errors) = (Vec::new(), Vec::new());
        let mut row_errors = Vec::new();
        for group in &groups {
            let rows = process.left_out(&group.rows)?;
            let of_axis = &mut distances[group.axis.unwrap_or(axes)];
            of_axis.extend(rows.iter().map(|row| (row.error / row.deviation).abs()));
            let errors = rows.iter().map(|row| libm::expm1(-row.error));
            if group.axis.is_none() {
                row_errors.extend(errors.clone());
            }
            if group.axis.is_some() == has_levels {
                left_out_errors.extend(errors);
                copying_errors.extend(group.rows.iter().map(|row| {
                    let others = (0..n).filter(|other| !group.rows.contains(other));
                    let distance = |other: &usize| squared_distance(all[*row], all[*other]);
                    let nearest = others.min_by(|a, b| distance(a).total_cmp(&distance(b)));
                    nearest.map_or(f64::NAN, |other| figures[other] / figures[*row] - 1.0)
                }));
            }
        }
        let row = width(distances.pop()?)?;
        let levels = distances.into_iter().map(width).collect();
        let widths = Widths { row, levels };
        Some(Self { mean, process, widths, left_out_errors, copying_errors, row_errors, points })
    }

    /// Predicts the figure at a point. `None` if the point is outside the range of the rows. Also
    /// `None` if it is between the only two levels of an axis, because the prediction between these
    /// levels cannot be checked.
    #[must_use]
    pub fn at(&self, point: &[f64]) -> Option<Prediction> {
        let kernel = &self.process.kernel;
        let near: Vec<f64> =
            self.points.iter().map(|other| kernel.covariance(point, other)).collect();
        let n = near.len();
        let known: f64 = self
            .process
            .inverse
            .chunks(n)
            .zip(&near)
            .map(|(row, covariance)| covariance * dot(row, &near))
            .sum();
        let own = kernel.covariance(point, point) + kernel.noise;
        let deviation = libm::sqrt(self.process.scale * (own - known).max(kernel.noise));
        let logarithm = self.mean + dot(&near, &self.process.weights);
        let mut width = self.widths.row;
        for (axis, of_levels) in self.widths.levels.iter().enumerate() {
            let is_at_least = |other: &Vec<f64>| other[axis] >= point[axis] - 1e-9;
            let is_at_most = |other: &Vec<f64>| other[axis] <= point[axis] + 1e-9;
            if !self.points.iter().any(is_at_least) || !self.points.iter().any(is_at_most) {
                return None;
            }
            if self.points.iter().all(|other| (other[axis] - point[axis]).abs() > 1e-9) {
                width = width.max((*of_levels)?);
            }
        }
        let half = width * deviation;
        Some(Prediction {
            value: libm::exp(logarithm),
            interval: [libm::exp(logarithm - half), libm::exp(logarithm + half)],
        })
    }
}

/// Returns the distance that a further distance does not exceed with the probability [`COVERAGE`].
/// `None` if there are no distances.
fn width(mut distances: Vec<f64>) -> Option<f64> {
    distances.sort_by(f64::total_cmp);
    let rank = libm::ceil(COVERAGE * (distances.len() + 1) as f64) as usize;
    distances.get(rank.min(distances.len()).checked_sub(1)?).copied()
}

/// Searches the lengths and the noise, one parameter at a time.
fn best_kernel(points: &[&[f64]], figures: &[f64]) -> Kernel {
    let mut order: Vec<usize> = (0..points.len()).collect();
    // The rows are taken from scattered positions, because a fixed stride could omit a whole row or
    // column of a table.
    order.sort_by_key(|at| (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    order.truncate(SEARCH_ROWS);
    let points: Vec<&[f64]> = order.iter().map(|at| points[*at]).collect();
    let figures: Vec<f64> = order.iter().map(|at| figures[*at]).collect();
    let groups = groups(&points);
    let density = |kernel: &Kernel| {
        Process::new(kernel.clone(), &points, &figures)
            .map_or(f64::NEG_INFINITY, |process| process.density(&groups))
    };
    let axes = points.first().map_or(0, |point| point.len());
    let mut best = Kernel { lengths: vec![1.0; axes], noise: 1e-2 };
    let mut highest = density(&best);
    for _ in 0..ROUNDS {
        for axis in 0..=axes {
            let tried = if axis < axes { LENGTHS } else { NOISES };
            for value in tried {
                let mut kernel = best.clone();
                match kernel.lengths.get_mut(axis) {
                    Some(length) => *length = value,
                    None => kernel.noise = value,
                }
                let found = density(&kernel);
                if found > highest {
                    (best, highest) = (kernel, found);
                }
            }
        }
    }
    best
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Inverts a symmetric, positive definite matrix by its Cholesky factor. Reads the lower triangle.
/// `None` if the matrix is not positive definite.
fn inverse(mut matrix: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    for i in 0..n {
        let (above, rest) = matrix.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let other = &above[j * n..j * n + n];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        let square = row[i] - dot(&row[..i], &row[..i]);
        if square.is_nan() || square <= 0.0 {
            return None;
        }
        row[i] = libm::sqrt(square);
    }
    // Row `i` of `columns` contains column `i` of the factor's inverse. The elements before index
    // `i` are zero.
    let mut columns = vec![0.0; n * n];
    for i in 0..n {
        for k in i..n {
            let unit = if k == i { 1.0 } else { 0.0 };
            let column = &columns[i * n + i..i * n + k];
            let value = (unit - dot(&matrix[k * n + i..k * n + k], column)) / matrix[k * n + k];
            columns[i * n + k] = value;
        }
    }
    let mut inverse = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let value = dot(&columns[i * n + i..i * n + n], &columns[j * n + i..j * n + n]);
            inverse[i * n + j] = value;
            inverse[j * n + i] = value;
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns numbers from 0 to 1, from a linear congruential generator.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Returns the sum of twelve uniform random numbers, whose distribution is approximately
        /// normal.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// Returns the rate of a device whose transfers are limited by operations or bytes and whose
    /// queue saturates.
    fn rate(point: &[f64]) -> f64 {
        let (size, reads, depth) =
            (libm::exp2(2.0 + 6.0 * point[0]), point[1], libm::exp2(6.0 * point[2]));
        let serial = 1.0 / (0.1 + 0.002 * size + 0.3 * (1.0 - reads));
        let most = 100.0 / (1.0 + size / 32.0);
        1000.0 / (1.0 / (serial * depth) + 1.0 / most)
    }

    fn grid(steps: usize) -> Vec<Vec<f64>> {
        let at = |step: usize| step as f64 / (steps - 1) as f64;
        let mut points = Vec::new();
        for i in 0..steps {
            for j in 0..steps {
                points.extend((0..steps).map(|k| vec![at(i), at(j), at(k)]));
            }
        }
        points
    }

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let mut numbers = Numbers(1);
        let n = 30;
        let factor: Vec<f64> = (0..n * n).map(|_| numbers.next()).collect();
        let product = |i: usize, j: usize| {
            let own = if i == j { 1.0 } else { 0.0 };
            own + dot(&factor[i * n..i * n + n], &factor[j * n..j * n + n])
        };
        let matrix: Vec<f64> = (0..n * n).map(|at| product(at / n, at % n)).collect();
        let inverse = inverse(matrix.clone(), n).unwrap();
        for i in 0..n {
            for j in 0..n {
                let value = dot(&matrix[i * n..i * n + n], &inverse[j * n..j * n + n]);
                let one = if i == j { 1.0 } else { 0.0 };
                assert!((value - one).abs() < 1e-9, "{i} {j}: {value}");
            }
        }
        assert_eq!(super::inverse(vec![1.0, 0.0, 2.0, 1.0], 2), None);
    }

    /// Golden values of scikit-learn 1.9, `GaussianProcessRegressor` with `ConstantKernel(4) + 4 *
    /// DotProduct(0) + RBF([0.4, 0.9])`, `alpha=0.05` and no optimiser.
    #[test]
    fn predictions_are_those_of_scikit_learn() {
        let points = [[0.0, 0.0], [0.2, 0.9], [0.5, 0.4], [0.7, 0.1], [1.0, 1.0], [0.9, 0.6]];
        let all: Vec<&[f64]> = points.iter().map(<[f64; 2]>::as_slice).collect();
        let figures = [0.3, -1.1, 0.2, 0.8, -0.4, 0.2];
        let kernel = Kernel { lengths: vec![0.4, 0.9], noise: 0.05 };
        let process = Process::new(kernel.clone(), &all, &figures).unwrap();
        let point = [0.35, 0.55];
        let near: Vec<f64> = all.iter().map(|at| kernel.covariance(&point, at)).collect();
        let mean = dot(&near, &process.weights);
        let known: f64 = process
            .inverse
            .chunks(6)
            .zip(&near)
            .map(|(row, near_row)| near_row * dot(row, &near))
            .sum();
        let variance = kernel.covariance(&point, &point) - known;
        assert!((mean + 0.275_315_607_301_345_7).abs() < 1e-10, "{mean}");
        assert!((variance - 0.050_751_599_768_546_82).abs() < 1e-10, "{variance}");
        assert!((process.scale - 0.140_164_337_693_699_15).abs() < 1e-10, "{}", process.scale);
    }

    #[test]
    fn rows_left_out_are_those_of_a_process_without_them() {
        let mut numbers = Numbers(3);
        let points: Vec<Vec<f64>> = (0..20).map(|_| vec![numbers.next(), numbers.next()]).collect();
        let figures: Vec<f64> = (0..20).map(|_| numbers.normal()).collect();
        let kernel = Kernel { lengths: vec![0.4, 0.9], noise: 0.05 };
        let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let process = Process::new(kernel.clone(), &all, &figures).unwrap();
        let others: Vec<&[f64]> = all[2..].to_vec();
        let without = Process::new(kernel.clone(), &others, &figures[2..]).unwrap();
        let left_out = process.left_out(&[0, 1]).unwrap();
        for (row, found) in left_out.iter().enumerate() {
            let near: Vec<f64> = others.iter().map(|at| kernel.covariance(all[row], at)).collect();
            let error = figures[row] - dot(&near, &without.weights);
            assert!((found.error - error).abs() < 1e-9, "{row}: {found:?} and {error}");
        }
    }

    #[test]
    fn a_device_is_predicted_between_its_measured_points() {
        let points = grid(5);
        let mut numbers = Numbers(7);
        let figures: Vec<f64> =
            points.iter().map(|point| rate(point) * libm::exp(0.01 * numbers.normal())).collect();
        let found = Interpolation::new(points, &figures).unwrap();
        let (mut errors, mut inside) = (Vec::new(), 0);
        for _ in 0..400 {
            let point = vec![numbers.next(), numbers.next(), numbers.next()];
            let (truth, predicted) = (rate(&point), found.at(&point).unwrap());
            errors.push((predicted.value / truth - 1.0).abs());
            inside += u32::from((predicted.interval[0]..=predicted.interval[1]).contains(&truth));
        }
        errors.sort_by(f64::total_cmp);
        assert!(errors[200] < 0.02 && errors[360] < 0.06, "{} {}", errors[200], errors[360]);
        assert!(inside >= 360, "{inside} of 400 are inside their interval");
        let median = |errors: &[f64]| {
            let mut sorted: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        assert!(median(&found.left_out_errors) < 0.3 * median(&found.copying_errors));
    }

    #[test]
    fn intervals_contain_nine_of_ten_noisy_figures() {
        let mut numbers = Numbers(11);
        let (mut inside, mut all) = (0, 0);
        for _ in 0..20 {
            let points: Vec<Vec<f64>> =
                (0..60).map(|_| vec![numbers.next(), numbers.next(), numbers.next()]).collect();
            let noisy = |numbers: &mut Numbers, point: &[f64]| {
                rate(point) * libm::exp(0.1 * numbers.normal())
            };
            let figures: Vec<f64> = points.iter().map(|p| noisy(&mut numbers, p)).collect();
            let found = Interpolation::new(points, &figures).unwrap();
            for _ in 0..50 {
                let point = vec![numbers.next(), numbers.next(), numbers.next()];
                // Outside the range of the random points.
                let Some(predicted) = found.at(&point) else { continue };
                let [low, high] = predicted.interval;
                all += 1;
                inside += u32::from((low..=high).contains(&noisy(&mut numbers, &point)));
            }
        }
        let share = f64::from(inside) / f64::from(all);
        assert!((0.86..0.97).contains(&share), "{share}");
    }

    #[test]
    fn between_two_levels_nothing_is_known() {
        let points: Vec<Vec<f64>> =
            (0..20).map(|at| vec![f64::from(at / 2) / 9.0, f64::from(at % 2)]).collect();
        let figures: Vec<f64> = (0..20).map(|at| 100.0 + f64::from(at)).collect();
        let found = Interpolation::new(points, &figures).unwrap();
        assert!(found.at(&[0.4, 1.0]).is_some());
        assert_eq!(found.at(&[0.4, 0.5]), None);
        assert_eq!(found.at(&[1.2, 1.0]), None);
    }

    #[test]
    fn few_rows_have_no_interval() {
        let points = |n: usize| (0..n).map(|at| vec![at as f64 / 10.0]).collect::<Vec<_>>();
        assert!(Interpolation::new(points(8), &[1.0; 8]).is_none());
        // If all figures are equal, the prediction is the same value.
        let equal = Interpolation::new(points(9), &[5.0; 9]).unwrap();
        let predicted = equal.at(&[0.33]).unwrap();
        assert!((predicted.value - 5.0).abs() < 1e-9, "{predicted:?}");
    }
}
