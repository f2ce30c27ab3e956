//! Bounded non-linear least squares: the Levenberg-Marquardt method with a robust loss.
//!
//! K. Levenberg (1944) and D. W. Marquardt (1963). A projection keeps the parameters within their
//! bounds, and parameters at a bound are frozen. Derivatives are forward differences. The loss is
//! "soft L1", `2 (sqrt(1 + r^2) - 1)`, which is implemented by reweighting. With this loss, a
//! single row that the model cannot explain does not distort the fit of the other rows.

/// A least-squares problem. It computes the residuals from the parameters. Residuals are scaled so
/// that a typical error has the residual 1.
pub(crate) trait Problem {
    type Error;
    fn residuals(&mut self, parameters: &[f64]) -> Result<Vec<f64>, Self::Error>;
}

/// Result of a search: the best point that the search found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Minimum {
    pub(crate) parameters: Vec<f64>,
    pub(crate) loss: f64,
    pub(crate) evaluations: usize,
}

pub(crate) fn loss(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| 2.0 * (libm::sqrt(1.0 + r * r) - 1.0)).sum()
}

/// Minimises the loss, starting from `start`. Parameters that are marked in `fixed` keep their
/// values. Every parameter is in [0, 1].
pub(crate) fn minimise<P: Problem>(
    problem: &mut P,
    start: &[f64],
    fixed: &[bool],
    rounds: usize,
) -> Result<Minimum, P::Error> {
    let mut at = start.to_vec();
    let mut residuals = problem.residuals(&at)?;
    let mut best = loss(&residuals);
    let mut evaluations = 1;
    let mut damping = 1e-2;
    for _ in 0..rounds {
        let jacobian = differences(problem, &at, &residuals, fixed)?;
        evaluations += fixed.iter().filter(|f| !**f).count();
        let mut improved = false;
        for _ in 0..6 {
            let step = step(&jacobian, &residuals, &at, fixed, damping);
            let trial: Vec<f64> =
                at.iter().zip(&step).map(|(a, s)| (a + s).clamp(0.0, 1.0)).collect();
            let trial_residuals = problem.residuals(&trial)?;
            evaluations += 1;
            let trial_loss = loss(&trial_residuals);
            if trial_loss < best {
                improved = trial_loss < best * (1.0 - 1e-5);
                (at, residuals, best) = (trial, trial_residuals, trial_loss);
                damping = (damping * 0.2).max(1e-9);
                break;
            }
            damping *= 5.0;
        }
        if !improved {
            break;
        }
    }
    Ok(Minimum { parameters: at, loss: best, evaluations })
}

/// Columns of the Jacobian. The column of a fixed parameter is empty.
pub(crate) fn differences<P: Problem>(
    problem: &mut P,
    at: &[f64],
    residuals: &[f64],
    fixed: &[bool],
) -> Result<Vec<Vec<f64>>, P::Error> {
    let mut columns = Vec::with_capacity(at.len());
    for k in 0..at.len() {
        if fixed[k] {
            columns.push(Vec::new());
            continue;
        }
        // The difference step normally increases a parameter; at the upper bound, it decreases the
        // parameter. A step of 0.5 % of the range is far above the noise of the analysis.
        let h = if at[k] > 0.99 { -0.005 } else { 0.005 };
        let mut moved = at.to_vec();
        moved[k] += h;
        let there = problem.residuals(&moved)?;
        columns.push(there.iter().zip(residuals).map(|(a, b)| (a - b) / h).collect());
    }
    Ok(columns)
}

fn step(
    jacobian: &[Vec<f64>],
    residuals: &[f64],
    at: &[f64],
    fixed: &[bool],
    damping: f64,
) -> Vec<f64> {
    let weights: Vec<f64> = residuals.iter().map(|r| 1.0 / libm::sqrt(1.0 + r * r)).collect();
    let dot = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).zip(&weights).map(|((x, y), w)| x * y * w).sum()
    };
    let mut free: Vec<usize> = (0..at.len()).filter(|&k| !fixed[k]).collect();
    loop {
        let n = free.len();
        let mut a = vec![vec![0.0; n]; n];
        let mut b = vec![0.0; n];
        for (i, &ki) in free.iter().enumerate() {
            for (j, &kj) in free.iter().enumerate() {
                a[i][j] = dot(&jacobian[ki], &jacobian[kj]);
            }
            b[i] = -dot(&jacobian[ki], residuals);
            a[i][i] += damping * a[i][i].max(1e-3);
        }
        let solved = solve(a, b);
        // A parameter that would cross its bound is frozen at the bound, and the other parameters
        // are solved again.
        let leaving = free
            .iter()
            .zip(&solved)
            .position(|(&k, s)| (at[k] <= 0.0 && *s < 0.0) || (at[k] >= 1.0 && *s > 0.0));
        match leaving {
            Some(i) => {
                free.remove(i);
            }
            None => {
                let mut step = vec![0.0; at.len()];
                for (&k, s) in free.iter().zip(&solved) {
                    // A step changes a parameter by at most 30 % of its range, because the model is
                    // not linear.
                    step[k] = s.clamp(-0.3, 0.3);
                }
                return step;
            }
        }
    }
}

/// Solves a symmetric positive definite system by Gaussian elimination with pivoting.
pub(crate) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()))
            .unwrap_or(column);
        a.swap(column, pivot);
        b.swap(column, pivot);
        let head = a[column][column];
        if head.abs() < 1e-300 {
            continue;
        }
        for row in column + 1..n {
            let factor = a[row][column] / head;
            let (above, below) = a.split_at_mut(row);
            for (left, pivot) in below[0][column..n].iter_mut().zip(&above[column][column..n]) {
                *left -= factor * pivot;
            }
            b[row] -= factor * b[column];
        }
    }
    let mut x = vec![0.0; n];
    for row in (0..n).rev() {
        let rest: f64 = (row + 1..n).map(|k| a[row][k] * x[k]).sum();
        x[row] = if a[row][row].abs() < 1e-300 { 0.0 } else { (b[row] - rest) / a[row][row] };
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fits y = a e^(-b t) + c to 20 points. One point is far off the curve.
    struct Decay;

    impl Problem for Decay {
        type Error = ();
        fn residuals(&mut self, p: &[f64]) -> Result<Vec<f64>, ()> {
            Ok((0..20)
                .map(|i| {
                    let t = f64::from(i) * 0.3;
                    let truth = 0.7 * (-0.4f64 * 3.0 * t).exp() + 0.2;
                    let odd = if i == 7 { 0.5 } else { 0.0 };
                    (p[0] * (-p[1] * 3.0 * t).exp() + p[2] - truth - odd) * 100.0
                })
                .collect())
        }
    }

    #[test]
    fn finds_the_parameters_in_spite_of_an_odd_row() {
        let found = minimise(&mut Decay, &[0.2, 0.9, 0.9], &[false; 3], 100).unwrap();
        for (got, truth) in found.parameters.iter().zip([0.7, 0.4, 0.2]) {
            assert!((got - truth).abs() < 0.02, "{:?}", found.parameters);
        }
    }

    #[test]
    fn stays_inside_the_bounds_and_keeps_fixed_parameters() {
        let found = minimise(&mut Decay, &[0.2, 0.3, 1.0], &[false, false, true], 50).unwrap();
        assert_eq!(found.parameters[2], 1.0);
        assert!(found.parameters.iter().all(|p| (0.0..=1.0).contains(p)));
    }
}
