//! Fits a model's free parameters to a measured table, and scores its prediction of another table.

mod text;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_model::fit::goals::{self, Goal, Side};
use plimsoll_model::fit::{
    Checks, Fit, FitOptions, FitProgress, Row, RowScore, Scores, Table as Measured, check, fit,
    predict, score,
};
use plimsoll_model::run::{ConfiguredModel, MatrixLoad, Pattern};
use plimsoll_model::spec::Spec;
use plimsoll_model::stats::quantile;
use plimsoll_report::document::Document;
use plimsoll_report::number::Unit;
use plimsoll_report::table;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::model_run::{fit_error, model_error};
use serde::Serialize;

use crate::interpolation::Interpolation;

/// Minimum time between two progress messages.
const NOTE_INTERVAL: Duration = Duration::from_secs(2);

/// Input of a fit.
#[derive(Clone, Copy)]
pub struct FitRequest<'a> {
    pub table: &'a Measured,
    /// Table that the fitted model predicts. The fit does not use this table.
    pub test_table: Option<&'a Measured>,
    /// Parameters whose values differ in the system of the test table.
    pub overrides: &'a BTreeMap<String, String>,
    /// Required accuracy.
    pub goals: &'a [Goal],
    /// Options of the search for parameter values.
    pub options: FitOptions,
}

/// Scores and predictions of a fitted model, in the form of the JSON output.
#[derive(Serialize)]
pub struct Outcome {
    model: String,
    /// True if the model reaches all goals for the fitted rows.
    fits: bool,
    fitted: ScoresOut,
    left_out: Option<ScoresOut>,
    /// Errors of an interpolation that predicts each row from all other rows, without a model.
    interpolated: Option<ScoresOut>,
    free_parameters: usize,
    rows: Vec<RowOut>,
    parameters: Vec<ParameterOut>,
    checks: ChecksOut,
    predicted: Option<Prediction>,
    goals: Vec<GoalOut>,
    /// Effects that the model does not include, according to its file.
    missing: Option<String>,
}

/// A goal and the value that was reached. Errors and limits are fractions.
#[derive(Serialize)]
struct GoalOut {
    goal: String,
    #[serde(skip)]
    says: String,
    limit: f64,
    reached: f64,
    met: bool,
    /// Median error of copying rows of the fitted table, if the goal is relative to this error.
    copying_error_median: Option<f64>,
    gap: Option<GapOut>,
}

#[derive(Serialize)]
struct GapOut {
    over: f64,
    row_limit: f64,
    rows: Vec<OddRow>,
    groups: Vec<GroupOut>,
}

#[derive(Serialize)]
struct OddRow {
    row: String,
    error: f64,
}

#[derive(Serialize)]
struct GroupOut {
    group: String,
    rows: usize,
    one_side: usize,
    error_median: f64,
}

#[derive(Serialize)]
struct Prediction {
    scores: ScoresOut,
    /// Errors if each row is copied from the fitted table's row with the same I/O size and read
    /// share.
    copied: Option<ScoresOut>,
    /// Errors of interpolation between the rows of the fitted table; `None` if no predicted row is
    /// inside the range of these rows.
    interpolated: Option<Interpolated>,
    rows: Vec<RowOut>,
    checks: ChecksOut,
}

/// Errors of predicted rows inside the range of the fitted table.
#[derive(Serialize)]
struct Interpolated {
    rows: usize,
    scores: ScoresOut,
    /// Errors of the model for the same rows of the table.
    model: ScoresOut,
}

/// Summary of the errors over the rows of a table, as fractions.
#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct ScoresOut {
    pub(crate) ops_error_median: f64,
    pub(crate) ops_error_p90: f64,
    pub(crate) latency_error_median: f64,
    pub(crate) latency_error_p90: f64,
    /// Errors of the 99th percentile of the latency; `None` if the table has no such column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_p99_error_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_p99_error_p90: Option<f64>,
}

impl ScoresOut {
    /// Returns a table of errors with a row for each name. Columns without values are omitted.
    pub(crate) fn table(title: &str, rows: &[(String, Self)]) -> table::Table {
        let mut columns = vec![
            table::Column::words(title, "name"),
            table::Column::of(Unit::Share, "median", "ops_error_median").under("rate"),
            table::Column::of(Unit::Share, "p90", "ops_error_p90").under("rate"),
            table::Column::of(Unit::Share, "median", "latency_error_median").under("latency"),
            table::Column::of(Unit::Share, "p90", "latency_error_p90").under("latency"),
        ];
        let has_p99 = rows.iter().any(|(_, scores)| scores.latency_p99_error_median.is_some());
        if has_p99 {
            let column =
                |word, name| table::Column::of(Unit::Share, word, name).under("p99 latency");
            columns.push(column("median", "latency_p99_error_median"));
            columns.push(column("p90", "latency_p99_error_p90"));
        }
        let mut table = table::Table::new("", columns);
        for (name, scores) in rows {
            let mut figures = vec![
                Some(scores.ops_error_median),
                Some(scores.ops_error_p90),
                Some(scores.latency_error_median),
                Some(scores.latency_error_p90),
            ];
            if has_p99 {
                figures.extend([scores.latency_p99_error_median, scores.latency_p99_error_p90]);
            }
            let cell = |figure: Option<f64>| {
                figure.map_or_else(table::Cell::not_applicable, |error| {
                    table::Cell::number(Unit::Share, error)
                })
            };
            let cells = std::iter::once(table::Cell::text(name.clone()));
            table.rows.push(cells.chain(figures.into_iter().map(cell)).collect());
        }
        table
    }
}

#[derive(Serialize)]
struct RowOut {
    line: usize,
    row: String,
    measured_ops_per_s: f64,
    modelled_ops_per_s: f64,
    ops_error: f64,
    measured_latency_ms: f64,
    modelled_latency_ms: f64,
    latency_error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_latency_p99_ms: Option<f64>,
    modelled_latency_p99_ms: Option<f64>,
}

#[derive(Serialize)]
struct ParameterOut {
    path: String,
    given: f64,
    fitted: f64,
    bounds: (f64, f64),
    interval: Option<(f64, f64)>,
    identified: bool,
}

#[derive(Default, Serialize)]
struct ChecksOut {
    bandwidth_unit_bytes: f64,
    protocol_bytes_per_op: f64,
    identity_residual_median: f64,
    identity_odd_rows: Vec<(String, f64)>,
    concurrency_least: f64,
    concurrency_most: f64,
    concurrency_possible: Option<f64>,
    concurrency_impossible_rows: Vec<(String, f64)>,
    network_bytes_per_s_max: f64,
    network_limit_bytes_per_s: Option<f64>,
    columns_passed_over: Vec<String>,
    rows_left_out: usize,
    /// Number of rows that have the same settings as another row.
    rows_repeated: usize,
    /// Median deviation of the rates of these rows from the mean rate of the rows with the same
    /// settings.
    repeat_deviation_median: Option<f64>,
}

impl Outcome {
    /// Returns true if the model fits the table, which means that it reaches all goals for the
    /// fitted rows.
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Returns the errors of the fitted rows.
    pub(crate) fn scores(&self) -> ScoresOut {
        self.fitted
    }

    /// Returns the report.
    pub fn document(&self) -> Document {
        text::document(self)
    }
}

/// Passes the progress of a fit to `note`, at most one line in two seconds.
pub fn progress_lines(note: &dyn Fn(&str)) -> impl Fn(FitProgress) {
    let shown = Cell::new(Instant::now());
    move |at| {
        if shown.get().elapsed() >= NOTE_INTERVAL {
            shown.set(Instant::now());
            note(&format!("{}: {} of {}", at.stage, at.done, at.total));
        }
    }
}

/// Fits the model, and predicts the test table if one is given. Calls `on_start` after the input
/// was checked, before the fit, and `progress` after each step of the fit.
///
/// # Errors
/// The model cannot be fitted to the table, or one of the overridden parameters does not exist.
pub fn carry_out(
    model: &ConfiguredModel,
    request: &FitRequest<'_>,
    on_start: impl FnOnce(),
    progress: &dyn Fn(FitProgress),
) -> Result<(Fit, Outcome), RunnerError> {
    let FitRequest { table, options, .. } = request;
    // Overrides are checked before the fit, which may take minutes.
    with_overrides(model.spec(), request.overrides)?;
    on_start();
    let fitted = fit(model.spec(), table, options, progress).map_err(|error| fit_error(&error))?;
    let outcome = outcome(&fitted, request)?;
    Ok((fitted, outcome))
}

/// If there is a test table, predicts it. Returns the outcome of the fit.
///
/// # Errors
/// One of the overridden parameters does not exist, or the model cannot predict the test table.
pub(crate) fn outcome(fitted: &Fit, request: &FitRequest<'_>) -> Result<Outcome, RunnerError> {
    let options = request.options;
    let predicted = match request.test_table {
        None => None,
        Some(other) => {
            let spec = with_overrides(&fitted.spec, request.overrides)?;
            let rows = predict(&spec, other, options.limits, options.seed)
                .map_err(|error| fit_error(&error))?;
            Some((rows, checks_of(&spec, other)))
        }
    };
    Ok(outcome_of(fitted, request, predicted))
}

fn outcome_of(
    fitted: &Fit,
    request: &FitRequest<'_>,
    predicted: Option<(Vec<RowScore>, ChecksOut)>,
) -> Outcome {
    let FitRequest { table, overrides, goals, .. } = *request;
    let scored = predicted.map(|(rows, checks)| {
        let (scores, copied) = (score(&rows), copy_scores(table, &rows));
        (rows, checks, scores, copied)
    });
    let own = Side { rows: &fitted.rows, scores: &fitted.scores, copied: None };
    let other = scored.as_ref().map(|(rows, _, scores, copied)| Side {
        rows,
        scores,
        copied: copied.as_ref(),
    });
    let checked = goals::hold(goals, own, other);
    let is_missed =
        |one: &goals::Outcome| one.goal.of == goals::RowSet::Fitted && one.gap.is_some();
    let fits = !checked.iter().any(is_missed);
    let goals = checked.iter().map(|one| {
        let side = if one.goal.of == goals::RowSet::Fitted { own } else { other.unwrap_or(own) };
        goal_out(one, side)
    });
    let missing = fitted.spec.missing.split_whitespace().collect::<Vec<_>>().join(" ");
    Outcome {
        model: fitted.spec.name.clone(),
        fits,
        fitted: fitted.scores.into(),
        left_out: fitted.left_out.map(Into::into),
        interpolated: interpolated_scores(&fitted.rows),
        free_parameters: fitted.parameters.len(),
        rows: fitted.rows.iter().map(Into::into).collect(),
        parameters: parameters(fitted),
        checks: checks_of(&fitted.spec, table),
        goals: goals.collect(),
        missing: (!missing.is_empty()).then_some(missing),
        predicted: scored.map(|(rows, checks, scores, copied)| Prediction {
            scores: scores.into(),
            copied: copied.map(Into::into),
            // If parameters are overridden, the prediction describes a different system from the
            // one whose rows are in the table.
            interpolated: overrides
                .is_empty()
                .then(|| interpolated_between(table, &rows))
                .flatten(),
            rows: rows.iter().map(Into::into).collect(),
            checks,
        }),
    }
}

fn goal_out(checked: &goals::Outcome, side: Side<'_>) -> GoalOut {
    let gap = |gap: &goals::Gap| GapOut {
        over: gap.over,
        row_limit: gap.row_limit,
        rows: gap
            .rows
            .iter()
            .filter_map(|(at, error)| {
                Some(OddRow { row: side.rows.get(*at)?.row.label(), error: *error })
            })
            .collect(),
        groups: gap
            .groups
            .iter()
            .map(|group| GroupOut {
                group: group.name.clone(),
                rows: group.rows,
                one_side: group.one_side,
                error_median: group.error_median,
            })
            .collect(),
    };
    GoalOut {
        goal: checked.goal.name(),
        says: text::goal_text(&checked.goal, checked.copying),
        limit: checked.goal.limit,
        reached: checked.reached,
        met: checked.gap.is_none(),
        copying_error_median: checked.copying,
        gap: checked.gap.as_ref().map(gap),
    }
}

/// Returns the default goals. A `NAME=PERCENT` argument replaces the limit of a goal.
///
/// # Errors
/// An argument is not a valid goal.
pub fn goals_of(arguments: &[String]) -> Result<Vec<Goal>, RunnerError> {
    let mut goals = Goal::DEFAULTS.to_vec();
    for text in arguments {
        let wrong = |why: &str| RunnerError::usage(format!("--goal {text}: {why}"));
        let (name, percent) =
            text.split_once('=').ok_or_else(|| wrong("not in the form NAME=PERCENT"))?;
        let percent: f64 = percent
            .trim_end_matches([' ', '%'])
            .parse()
            .ok()
            .filter(|p: &f64| p.is_finite() && *p >= 0.0)
            .ok_or_else(|| wrong("not a percentage"))?;
        let known: Vec<String> = Goal::DEFAULTS.iter().map(Goal::name).collect();
        let Some(goal) = goals.iter_mut().find(|goal| goal.name() == name.trim()) else {
            return Err(wrong(&format!("not one of {}", known.join(", "))));
        };
        goal.limit = percent / 100.0;
    }
    Ok(goals)
}

fn with_overrides(spec: &Spec, overrides: &BTreeMap<String, String>) -> Result<Spec, RunnerError> {
    let mut spec = spec.clone();
    for (path, value) in overrides {
        spec.assign(path, value).map_err(|error| model_error(&error))?;
    }
    plimsoll_model::system::System::build(spec.clone(), 0).map_err(|error| model_error(&error))?;
    Ok(spec)
}

fn parameters(fitted: &Fit) -> Vec<ParameterOut> {
    let one = |p: &plimsoll_model::fit::Profile| ParameterOut {
        path: p.path.clone(),
        given: p.given,
        fitted: p.fitted,
        bounds: p.bounds,
        interval: p.interval,
        identified: p.identified,
    };
    fitted.parameters.iter().map(one).collect()
}

/// Checks the arithmetic of the table. The limits of the hardware are those of the model.
fn checks_of(spec: &Spec, table: &Measured) -> ChecksOut {
    let load = MatrixLoad::of(spec).ok();
    let outstanding = |row: &Row| {
        let (clients, depth) = load.as_ref().map(|l| row.load_or(l.clients, l.depth))?;
        Some(f64::from(clients) * f64::from(depth))
    };
    let Checks {
        unit_bytes,
        protocol_bytes,
        identity_median,
        identity_odd,
        concurrency,
        concurrency_impossible,
        network_bytes_per_s_max,
        ..
    } = check(table, outstanding);
    let kind_link = |name: &&String| {
        spec.table(name).and_then(|t| t.fields.get("kind"))
            == Some(&plimsoll_model::spec::Field::Text("link".to_owned()))
    };
    let rate = |name: &String| {
        let ports = spec.value(&format!("{name}.ports")).unwrap_or(1.0);
        spec.value(&format!("{name}.rate_bytes_per_s")).map(|rate| rate * ports)
    };
    let limits = spec.blocks.keys().filter(kind_link).filter_map(rate);
    let mut repeats = repeat_deviations(table);
    ChecksOut {
        bandwidth_unit_bytes: unit_bytes,
        protocol_bytes_per_op: protocol_bytes,
        columns_passed_over: table.passed_over.clone(),
        rows_left_out: table.rows_left_out,
        rows_repeated: repeats.len(),
        repeat_deviation_median: quantile(&mut repeats, 0.5),
        identity_residual_median: identity_median,
        identity_odd_rows: identity_odd,
        concurrency_least: concurrency.0,
        concurrency_most: concurrency.1,
        concurrency_possible: table.matrix().filter_map(outstanding).reduce(f64::max),
        concurrency_impossible_rows: concurrency_impossible,
        network_bytes_per_s_max,
        network_limit_bytes_per_s: limits.reduce(f64::min),
    }
}

/// For rows with the same settings, returns the deviations of their rates from the mean rate, as
/// fractions.
fn repeat_deviations(table: &Measured) -> Vec<f64> {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in table.matrix() {
        groups.entry(row.label()).or_default().push(row.ops_per_s);
    }
    let deviations = |rates: Vec<f64>| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        rates.into_iter().map(move |rate| (rate / mean - 1.0).abs())
    };
    groups.into_values().filter(|rates| rates.len() > 1).flat_map(deviations).collect()
}

/// Figures that are interpolated: rate, mean latency, and 99th percentile of the latency.
const FIGURES: [fn(&Row) -> Option<f64>; 3] =
    [|row| Some(row.ops_per_s), |row| Some(row.latency_ms), |row| row.latency_p99_ms];

/// Scores an interpolation that predicts each row from all other rows. `None` if there are too few
/// rows.
fn interpolated_scores(rows: &[RowScore]) -> Option<ScoresOut> {
    let rows: Vec<&Row> = rows.iter().map(|score| &score.row).collect();
    let errors = |figure: fn(&Row) -> Option<f64>| {
        let figures: Option<Vec<f64>> = rows.iter().map(|row| figure(row)).collect();
        Some(Interpolation::new(points(&rows, &rows), &figures?)?.row_errors)
    };
    let [ops, latency, latency_p99] = FIGURES.map(errors);
    Some(Scores::of_errors(&ops?, &latency?, &latency_p99.unwrap_or_default()).into())
}

/// Scores the interpolation and the model on those rows that are inside the range of the fitted
/// table. `None` if there are no such rows.
fn interpolated_between(table: &Measured, rows: &[RowScore]) -> Option<Interpolated> {
    let known: Vec<&Row> = table.matrix().collect();
    let places = points(&known, &rows.iter().map(|score| &score.row).collect::<Vec<_>>());
    let [ops, latency, latency_p99] = FIGURES.map(|figure| {
        let figures: Option<Vec<f64>> = known.iter().map(|row| figure(row)).collect();
        Interpolation::new(points(&known, &known), &figures?)
    });
    let (ops, latency) = (ops?, latency?);
    let error = |between: &Interpolation, place: &[f64], measured: f64| {
        Some(between.at(place)?.value / measured - 1.0)
    };
    let mut interpolated = Vec::new();
    let mut model = Vec::new();
    for (score, place) in rows.iter().zip(&places) {
        let row = &score.row;
        let Some(ops_error) = error(&ops, place, row.ops_per_s) else { continue };
        let Some(latency_error) = error(&latency, place, row.latency_ms) else { continue };
        let p99 = latency_p99.as_ref().zip(row.latency_p99_ms);
        let latency_p99_error = p99.and_then(|(between, p99)| error(between, place, p99));
        model.push(score.clone());
        interpolated.push(RowScore {
            ops_error,
            latency_error,
            latency_p99_error,
            ..score.clone()
        });
    }
    (!model.is_empty()).then(|| Interpolated {
        rows: model.len(),
        scores: score(&interpolated).into(),
        model: score(&model).into(),
    })
}

/// Returns the positions of rows on each property in which the other rows differ. The lowest value
/// of the other rows has position 0, and the highest has position 1.
fn points(known: &[&Row], rows: &[&Row]) -> Vec<Vec<f64>> {
    let axes: [fn(&Row) -> f64; 4] = [
        |row| libm::log(row.io_bytes.unwrap_or(1) as f64),
        |row| row.read_share.unwrap_or(0.0),
        |row| if row.pattern == Pattern::Sequential { 1.0 } else { 0.0 },
        |row| libm::log(f64::from(row.outstanding().unwrap_or(1))),
    ];
    let mut points = vec![Vec::new(); rows.len()];
    for axis in axes {
        let values = known.iter().map(|row| axis(row));
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
        if high > low {
            for (point, row) in points.iter_mut().zip(rows) {
                point.push((axis(row) - low) / (high - low));
            }
        }
    }
    points
}

/// Scores a prediction that copies rows of the fitted table.
fn copy_scores(table: &Measured, rows: &[RowScore]) -> Option<Scores> {
    let like = |a: &Row, b: &Row| {
        a.io_bytes == b.io_bytes
            && a.pattern == b.pattern
            && a.read_share == b.read_share
            && a.outstanding() == b.outstanding()
    };
    let copy = |score: &RowScore| {
        let source = table.matrix().find(|row| like(row, &score.row))?;
        Some(RowScore {
            ops_error: source.ops_per_s / score.row.ops_per_s - 1.0,
            latency_error: source.latency_ms / score.row.latency_ms - 1.0,
            latency_p99_error: (source.latency_p99_ms.zip(score.row.latency_p99_ms))
                .map(|(copied, measured)| copied / measured - 1.0),
            ..score.clone()
        })
    };
    let copies: Vec<RowScore> = rows.iter().filter_map(copy).collect();
    (!copies.is_empty()).then(|| score(&copies))
}

impl From<Scores> for ScoresOut {
    fn from(scores: Scores) -> Self {
        Self {
            ops_error_median: scores.ops_median,
            ops_error_p90: scores.ops_p90,
            latency_error_median: scores.latency_median,
            latency_error_p90: scores.latency_p90,
            latency_p99_error_median: scores.latency_p99_median,
            latency_p99_error_p90: scores.latency_p99_p90,
        }
    }
}

impl From<&RowScore> for RowOut {
    fn from(score: &RowScore) -> Self {
        Self {
            line: score.row.line,
            row: score.row.label(),
            measured_ops_per_s: score.row.ops_per_s,
            modelled_ops_per_s: score.modelled.ops_per_s,
            ops_error: score.ops_error,
            measured_latency_ms: score.row.latency_ms,
            modelled_latency_ms: score.modelled.latency_ms,
            latency_error: score.latency_error,
            measured_latency_p99_ms: score.row.latency_p99_ms,
            modelled_latency_p99_ms: score.modelled.latency_p99_ms,
        }
    }
}
