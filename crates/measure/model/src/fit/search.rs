//! Fits a model, scores the fit, and finds parameters that the data cannot determine.

use super::FitError;
use super::evaluate::{Point, analyse_rows, simulate_rows};
use super::least_squares::{Minimum, Problem, minimise};
use super::table::{Row, Table};
use crate::core::rng::Stream;
use crate::run::Limits;
use crate::spec::Spec;
use crate::stats::quantile;
use crate::system::System;

/// Typical relative errors of rate and latency. Residuals are divided by these errors. Latencies
/// are printed with one decimal, so small latencies have an additional rounding error.
const OPS_SCALE: f64 = 0.04;
const LATENCY_SCALE: f64 = 0.08;
const LATENCY_ROUNDING_MS: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Seed of the starting points and of the simulations.
    pub seed: u64,
    /// Number of starting points in addition to the values of the model file.
    pub starts: usize,
    /// Number of rounds. Each round consists of a simulation and a search.
    pub rounds: usize,
    /// Length of each simulation.
    pub limits: Limits,
    /// True to profile each parameter, and to refit the model without each row in turn.
    pub diagnose: bool,
}

impl Default for FitOptions {
    fn default() -> Self {
        let limits = Limits { warm_up_ops: 30_000, measure_ops: 40_000 };
        Self { seed: 1, starts: 5, rounds: 3, limits, diagnose: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitProgress {
    /// Current stage of the fit.
    pub stage: &'static str,
    /// Number of steps of the stage that have finished.
    pub done: usize,
    /// Total number of steps of the stage.
    pub total: usize,
}

/// A row with its measured and modelled values.
#[derive(Clone, Debug, PartialEq)]
pub struct RowScore {
    pub row: Row,
    pub modelled: Point,
    /// Relative error of the modelled rate.
    pub ops_error: f64,
    /// Relative error of the modelled latency.
    pub latency_error: f64,
    /// Relative error of the modelled 99th percentile; `None` if the row has no measured 99th
    /// percentile.
    pub latency_p99_error: Option<f64>,
}

/// Error statistics over the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// Median of the absolute relative errors of the rate.
    pub ops_median: f64,
    /// 90th percentile of the absolute relative errors of the rate.
    pub ops_p90: f64,
    /// Median of the absolute relative errors of the latency.
    pub latency_median: f64,
    /// 90th percentile of the absolute relative errors of the latency.
    pub latency_p90: f64,
    /// Median of the absolute relative errors of the 99th percentile of the latency; `None` if no
    /// row has this percentile.
    pub latency_p99_median: Option<f64>,
    /// 90th percentile of the absolute relative errors of the modelled p99 latency.
    pub latency_p99_p90: Option<f64>,
}

impl Scores {
    /// Computes the scores from signed relative errors. If the list of errors is empty, the scores
    /// are NaN.
    pub fn of_errors(ops: &[f64], latency: &[f64], latency_p99: &[f64]) -> Self {
        let of = |errors: &[f64], q: f64| {
            let mut absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
            quantile(&mut absolute, q)
        };
        let known = |errors: &[f64], q: f64| of(errors, q).unwrap_or(f64::NAN);
        Self {
            ops_median: known(ops, 0.5),
            ops_p90: known(ops, 0.9),
            latency_median: known(latency, 0.5),
            latency_p90: known(latency, 0.9),
            latency_p99_median: of(latency_p99, 0.5),
            latency_p99_p90: of(latency_p99, 0.9),
        }
    }
}

/// How precisely the data determines one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Path of the parameter in the model, such as `cpu.read_us`.
    pub path: String,
    /// The fit searched for the parameter within these bounds.
    pub bounds: (f64, f64),
    /// The value in the model file.
    pub given: f64,
    pub fitted: f64,
    /// Interval of parameter values in which the loss exceeds its minimum by at most 3.84 mean
    /// squared residuals (the 95 % point of chi-squared with one degree of freedom). The other
    /// parameters are refitted for each tried value. `None` if the parameter was not profiled.
    pub interval: Option<(f64, f64)>,
    /// True if the data determines the parameter. This is assumed if no interval was computed.
    /// Otherwise, the interval must span less than a factor of two and must not reach a bound.
    pub identified: bool,
}

/// A fitted model, with its scores and with a profile of each parameter.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The model with the fitted values.
    pub spec: Spec,
    pub parameters: Vec<Profile>,
    /// The rows to which the model was fitted, with their simulated values.
    pub rows: Vec<RowScore>,
    /// Scores of the fitted model on the rows to which it was fitted.
    pub scores: Scores,
    /// Scores of the cross-validation. It predicts each row by a fit to all other rows.
    pub left_out: Option<Scores>,
    /// Number of fast analyses that the fit made.
    pub evaluations: usize,
}

/// A free parameter, mapped to the range 0 to 1 on a logarithmic scale.
#[derive(Clone, Debug)]
struct FreeParameter {
    path: String,
    low: f64,
    high: f64,
}

impl FreeParameter {
    fn value(&self, x: f64) -> f64 {
        self.low * libm::pow(self.high / self.low, x.clamp(0.0, 1.0))
    }

    fn place(&self, value: f64) -> f64 {
        (libm::log(value / self.low) / libm::log(self.high / self.low)).clamp(0.0, 1.0)
    }
}

fn free_of(spec: &Spec) -> Vec<FreeParameter> {
    spec.facts()
        .into_iter()
        .filter_map(|(path, fact)| {
            let (low, high) = fact.free?;
            // A lower bound of 0 has no logarithm, so a thousandth of the upper bound is used
            // instead.
            let low = if low > 0.0 { low } else { high * 1e-3 };
            Some(FreeParameter { path, low, high })
        })
        .collect()
}

fn with_values(spec: &Spec, free: &[FreeParameter], x: &[f64]) -> Result<Spec, FitError> {
    let mut spec = spec.clone();
    for (f, &x) in free.iter().zip(x) {
        spec.set(&f.path, f.value(x))?;
    }
    Ok(spec)
}

/// Checks that the model accepts both bounds of each free parameter. Otherwise the search would fail
/// as soon as it tries them, which may be after minutes.
fn check_bounds(spec: &Spec, free: &[FreeParameter], seed: u64) -> Result<(), FitError> {
    for f in free {
        for value in [f.low, f.high] {
            let mut changed = spec.clone();
            changed.set(&f.path, value)?;
            System::build(changed, seed).map_err(|error| FitError::Bound {
                path: f.path.clone(),
                value,
                error: error.to_string(),
            })?;
        }
    }
    Ok(())
}

struct Search<'a> {
    spec: &'a Spec,
    free: &'a [FreeParameter],
    rows: Vec<&'a Row>,
    /// Correction factors for the rate and latency of each row: the simulated value divided by the
    /// analysed value.
    ratios: Vec<(f64, f64)>,
    seed: u64,
    evaluations: usize,
    progress: &'a dyn Fn(FitProgress),
}

impl Search<'_> {
    fn report(&self, stage: &'static str, done: usize, total: usize) {
        (self.progress)(FitProgress { stage, done, total });
    }

    fn corrected(&mut self, x: &[f64]) -> Result<Vec<Point>, FitError> {
        self.evaluations += 1;
        let spec = with_values(self.spec, self.free, x)?;
        let points = analyse_rows(&spec, &self.rows, self.seed)?;
        let correct = |(p, (ops, latency)): (Point, &(f64, f64))| Point {
            ops_per_s: p.ops_per_s * ops,
            latency_ms: p.latency_ms * latency,
            latency_p99_ms: None,
        };
        Ok(points.into_iter().zip(&self.ratios).map(correct).collect())
    }

    /// Simulates the rows with the parameters `x`, and computes the correction factors for these
    /// parameters.
    fn map(&mut self, x: &[f64], limits: Limits) -> Result<Vec<Point>, FitError> {
        let spec = with_values(self.spec, self.free, x)?;
        let analysed = analyse_rows(&spec, &self.rows, self.seed)?;
        let simulated = simulate_rows(&spec, &self.rows, limits, self.seed)?;
        self.ratios = simulated
            .iter()
            .zip(&analysed)
            .map(|(s, a)| (s.ops_per_s / a.ops_per_s, s.latency_ms / a.latency_ms))
            .collect();
        Ok(simulated)
    }
}

fn residuals(rows: &[&Row], points: &[Point]) -> Vec<f64> {
    let of = |(row, p): (&&Row, &Point)| {
        let rounding = LATENCY_ROUNDING_MS / row.latency_ms;
        let scale = libm::sqrt(LATENCY_SCALE * LATENCY_SCALE + rounding * rounding);
        [
            libm::log(p.ops_per_s / row.ops_per_s) / OPS_SCALE,
            libm::log(p.latency_ms / row.latency_ms) / scale,
        ]
    };
    rows.iter().zip(points).flat_map(of).collect()
}

impl Problem for Search<'_> {
    type Error = FitError;
    fn residuals(&mut self, x: &[f64]) -> Result<Vec<f64>, FitError> {
        let points = self.corrected(x)?;
        Ok(residuals(&self.rows, &points))
    }
}

/// Fits the free parameters of a model to a table, and calls `progress` after each step.
///
/// # Errors
/// [`FitError`] if the model has no free parameter, the table has too few rows, or the model cannot
/// be built.
pub fn fit(
    spec: &Spec,
    table: &Table,
    options: &FitOptions,
    progress: &dyn Fn(FitProgress),
) -> Result<Fit, FitError> {
    let free = free_of(spec);
    let rows: Vec<&Row> = table.matrix().collect();
    if free.is_empty() {
        return Err(FitError::NothingFree { model: spec.name.clone() });
    }
    if rows.len() < free.len() {
        return Err(FitError::TooFewRows { rows: rows.len(), free: free.len() });
    }
    check_bounds(spec, &free, options.seed)?;
    let mut search = Search {
        spec,
        free: &free,
        ratios: vec![(1.0, 1.0); rows.len()],
        rows,
        seed: options.seed,
        evaluations: 0,
        progress,
    };
    let given: Vec<f64> =
        free.iter().map(|f| f.place(spec.value(&f.path).unwrap_or(f.low))).collect();
    let (best, simulated) = sought(&mut search, &given, options.starts, options)?;
    let parameters = profiles(&mut search, &best, &given, options)?;
    let left_out = if options.diagnose { Some(leave_out(&search, options)?) } else { None };
    let rows: Vec<RowScore> =
        search.rows.iter().zip(&simulated).map(|(row, p)| row_score(row, *p)).collect();
    Ok(Fit {
        spec: with_values(spec, &free, &best.parameters)?,
        parameters,
        scores: score(&rows),
        rows,
        left_out,
        evaluations: search.evaluations,
    })
}

/// Searches from the point `start`, and from `starts` further points. Returns the best point. The
/// search uses the fast analysis, whose correction factors apply near `start`. Its losses at other
/// points are therefore unreliable: a point that was found from another start is used only if its
/// simulation has a lower loss than the simulation of the point that was found from `start`.
fn sought(
    search: &mut Search<'_>,
    start: &[f64],
    starts: usize,
    options: &FitOptions,
) -> Result<(Minimum, Vec<Point>), FitError> {
    const QUICK: Limits = Limits { warm_up_ops: 8_000, measure_ops: 15_000 };
    let fixed = vec![false; start.len()];
    search.map(start, QUICK)?;
    let own = minimise(search, start, &fixed, 30)?;
    let mut other: Option<Minimum> = None;
    let mut stream = Stream::new(options.seed, "starts");
    for number in 0..starts {
        search.report("searching from other starting points", number, starts);
        let from: Vec<f64> = start.iter().map(|_| stream.unit()).collect();
        let found = minimise(search, &from, &fixed, 20)?;
        if found.loss < other.as_ref().map_or(own.loss, |other| other.loss) {
            other = Some(found);
        }
    }
    let confirmed = confirm(search, own, options)?;
    let Some(other) = other else { return Ok(confirmed) };
    let ratios = search.ratios.clone();
    let other = confirm(search, other, options)?;
    if other.0.loss < confirmed.0.loss {
        return Ok(other);
    }
    search.ratios = ratios;
    Ok(confirmed)
}

/// A simulated point of a search. The fields are its parameters and loss, the simulated rows, and
/// their correction factors.
type Confirmed = (f64, Minimum, Vec<Point>, Vec<(f64, f64)>);

/// Alternates between simulation and search until the simulated loss no longer improves. Returns
/// the best simulated point with its correction factors.
fn confirm(
    search: &mut Search<'_>,
    mut at: Minimum,
    options: &FitOptions,
) -> Result<(Minimum, Vec<Point>), FitError> {
    let fixed = vec![false; at.parameters.len()];
    let mut best: Option<Confirmed> = None;
    for round in 0..options.rounds.max(1) {
        search.report("simulating", round, options.rounds.max(1));
        let simulated = search.map(&at.parameters, options.limits)?;
        let loss = super::least_squares::loss(&residuals(&search.rows, &simulated));
        if best.as_ref().is_none_or(|(least, ..)| loss < *least) {
            best = Some((loss, at.clone(), simulated, search.ratios.clone()));
        }
        at = minimise(search, &at.parameters, &fixed, 20)?;
    }
    match best {
        Some((loss, minimum, simulated, ratios)) => {
            search.ratios = ratios;
            Ok((Minimum { loss, ..minimum }, simulated))
        }
        None => unreachable!("at least one round is run"),
    }
}

fn profiles(
    search: &mut Search<'_>,
    best: &Minimum,
    given: &[f64],
    options: &FitOptions,
) -> Result<Vec<Profile>, FitError> {
    let free = search.free;
    // If the assumed errors are correct, the loss divided by the number of residuals is one. A
    // larger quotient means that the structure of the model is incomplete. The intervals then
    // become wider.
    let freedom = (2 * search.rows.len()).saturating_sub(free.len()).max(1) as f64;
    let allowed = 3.84 * (best.loss / freedom).max(1.0);
    let mut profiles = Vec::new();
    for (k, f) in free.iter().enumerate() {
        let mut interval = None;
        if options.diagnose {
            search.report("computing parameter intervals", k, free.len());
            let low = profile_end(search, best, k, -1.0, allowed)?;
            let high = profile_end(search, best, k, 1.0, allowed)?;
            interval = Some((f.value(low), f.value(high)));
        }
        let identified = interval.is_none_or(|(low, high)| {
            high / low < 2.0 && low > f.low * 1.001 && high < f.high * 0.999
        });
        profiles.push(Profile {
            path: f.path.clone(),
            bounds: (f.low, f.high),
            given: f.value(given[k]),
            fitted: f.value(best.parameters[k]),
            interval,
            identified,
        });
    }
    Ok(profiles)
}

/// Moves one parameter away from the optimum until the loss has grown by `allowed` or a bound is
/// reached. The other parameters are refitted at each step.
fn profile_end(
    search: &mut Search<'_>,
    best: &Minimum,
    k: usize,
    direction: f64,
    allowed: f64,
) -> Result<f64, FitError> {
    let mut fixed = vec![false; best.parameters.len()];
    fixed[k] = true;
    let mut at = best.parameters.clone();
    let base = super::least_squares::loss(&search.residuals(&at)?);
    let (mut inside, mut step) = (best.parameters[k], 0.02);
    loop {
        let next = (inside + direction * step).clamp(0.0, 1.0);
        at[k] = next;
        let found = minimise(search, &at, &fixed, 4)?;
        if found.loss > base + allowed {
            return Ok(0.5 * (inside + next));
        }
        at = found.parameters;
        inside = next;
        if next <= 0.0 || next >= 1.0 {
            return Ok(next);
        }
        step *= 1.6;
    }
}

/// Refits all parameters once for each row, without that row, and scores the simulation of the
/// omitted row.
///
/// The prediction of a row must not depend on that row. The fit therefore does not start from the
/// fitted values. It does not start from the values of the model file either, because an earlier
/// fit to this row may have produced them. The fit also uses no correction factor that was computed
/// from this row.
fn leave_out(search: &Search<'_>, options: &FitOptions) -> Result<Scores, FitError> {
    let middle = vec![0.5; search.free.len()];
    let mut scores = Vec::new();
    for (out, row) in search.rows.iter().enumerate() {
        search.report("fitting with each row left out once", out, search.rows.len());
        let rows: Vec<&Row> =
            search.rows.iter().enumerate().filter(|(i, _)| *i != out).map(|(_, r)| *r).collect();
        let ratios = vec![(1.0, 1.0); rows.len()];
        let mut without = Search { rows, ratios, evaluations: 0, progress: &|_| (), ..*search };
        let (found, _) = sought(&mut without, &middle, options.starts.min(1), options)?;
        let spec = with_values(search.spec, search.free, &found.parameters)?;
        let simulated = simulate_rows(&spec, &[*row], options.limits, search.seed)?;
        scores.extend(simulated.first().map(|point| row_score(row, *point)));
    }
    Ok(score(&scores))
}

fn row_score(row: &Row, modelled: Point) -> RowScore {
    RowScore {
        row: row.clone(),
        modelled,
        ops_error: modelled.ops_per_s / row.ops_per_s - 1.0,
        latency_error: modelled.latency_ms / row.latency_ms - 1.0,
        latency_p99_error: (modelled.latency_p99_ms.zip(row.latency_p99_ms))
            .map(|(modelled, measured)| modelled / measured - 1.0),
    }
}

pub fn score(rows: &[RowScore]) -> Scores {
    let ops: Vec<f64> = rows.iter().map(|r| r.ops_error).collect();
    let latency: Vec<f64> = rows.iter().map(|r| r.latency_error).collect();
    let latency_p99: Vec<f64> = rows.iter().filter_map(|r| r.latency_p99_error).collect();
    Scores::of_errors(&ops, &latency, &latency_p99)
}

/// Predicts the rows of a table by simulation and scores them.
///
/// # Errors
/// [`FitError::Model`] if the model cannot be built.
pub fn predict(
    spec: &Spec,
    table: &Table,
    limits: Limits,
    seed: u64,
) -> Result<Vec<RowScore>, FitError> {
    let rows: Vec<&Row> = table.matrix().collect();
    let points = simulate_rows(spec, &rows, limits, seed)?;
    Ok(rows.iter().zip(points).map(|(row, p)| row_score(row, p)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive behind a limit of 40,000 operations per second.
    const MODEL: &str = "[model]\nname = \"limited\"\nentry = \"limit\"\nfrom = \
                         \"chosen\"\n[block.limit]\nkind = \"limit\"\nfrom = \"chosen\"\nbelow = \
                         \"drive\"\nbaseline_ops_per_s = { value = 40000, from = \"chosen\", free = [10, \
                         1e7] }\nrate_bytes_per_s = { value = 163840000, from = \"chosen\", free = [1e6, \
                         1e11] }\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nlanes = 16\nmedia \
                         = \"ssd\"\nread_bytes_per_s = 1e12\nwrite_bytes_per_s = 1e12\nread_us = { value \
                         = 99.7, from = \"chosen\", free = [1, 1e5] }\nwrite_us = { value = 99.7, from = \
                         \"chosen\", free = [1, 1e5] }\nvariation_ratio = { value = 0.2, from = \
                         \"chosen\", free = [0.03, 1.5] }\n[load]\nfrom = \"chosen\"\nclients = 1\ndepth \
                         = 1\nfiles = 1\nfile_bytes = 17179869184\n";

    fn table() -> Table {
        let mut text = "io_kib,read_percent,depth,ops_per_s,latency_ms\n".to_owned();
        for read in [0, 30, 70, 100] {
            for (depth, rate, ms) in
                [(1, 10e3, 0.1), (2, 20e3, 0.1), (4, 40e3, 0.1), (8, 40e3, 0.2), (16, 40e3, 0.4)]
            {
                text.push_str(&format!("4,{read},{depth},{rate},{ms}\n"));
            }
        }
        Table::parse(&text).unwrap()
    }

    #[test]
    fn more_starting_points_do_not_make_a_fit_worse() {
        let spec = Spec::parse("limited", MODEL).unwrap();
        let limits = Limits { warm_up_ops: 2_000, measure_ops: 8_000 };
        let loss = |seed: u64, starts: usize| {
            let options = FitOptions { seed, starts, rounds: 2, limits, diagnose: false };
            let fitted = fit(&spec, &table(), &options, &|_| {}).unwrap();
            let points: Vec<Point> = fitted.rows.iter().map(|row| row.modelled).collect();
            let rows: Vec<&Row> = fitted.rows.iter().map(|row| &row.row).collect();
            super::super::least_squares::loss(&residuals(&rows, &points))
        };
        for seed in [1, 2] {
            let (few, many) = (loss(seed, 0), loss(seed, 5));
            assert!(many <= few, "seed {seed}: {many} with more starts, {few} with one");
        }
    }

    #[test]
    fn bounds_that_the_model_does_not_accept_are_reported_before_the_search() {
        let spec =
            Spec::parse("limited", &MODEL.replace("free = [0.03, 1.5]", "free = [0.03, 20]"))
                .unwrap();
        let says = fit(&spec, &table(), &FitOptions::default(), &|_| {}).unwrap_err().to_string();
        assert!(
            says.contains("the bound 20 of the free parameter drive.variation_ratio"),
            "{says}"
        );
    }
}
