//! `plimsoll model fit MODEL DATA.csv`: the free parameters of a model from a measured table, and how
//! well the fitted model predicts another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::fit::{
    Checks, Fit, FitOptions, Row, RowScore, Scores, Table as Measured, check, fit, predict, score,
};
use plimsoll_model::run::{MatrixLoad, Modelled};
use plimsoll_model::spec::Spec;
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Unit, significant};
use plimsoll_report::table::{Cell, Column, Table, Tone};
use serde::Serialize;

use super::{fit_error, model_error, settings, show};
use crate::arguments::Common;
use crate::commands::bundle;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `model fit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model fit zfs-flash mirrors.csv\n  plimsoll model fit \
    zfs-flash mirrors.csv --predict raidz2.csv \\\n      --with pool.layout=raidz --with pool.groups=4 --with \
    pool.width=6 --with pool.parity=2 \\\n      --with records.record_bytes=131072 --with \
    arc.unit_bytes=131072 --with pool.chunk_bytes=131072\n\nA table is CSV with the \
    columns io_kib, pattern, read_percent, ops_per_s, latency_ms, and where\nthere are any \
    bandwidth_mb_per_s, read_ops_per_s, write_ops_per_s; lines with # are comments."
)]
pub struct Options {
    /// Name of a shipped model, or path of a model file.
    model: String,
    /// The measured table.
    data: PathBuf,
    /// Predict this table, which the fit does not see.
    #[arg(long, value_name = "CSV")]
    predict: Option<PathBuf>,
    /// A parameter that differs from the model file.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// A parameter that differs in the system of the predicted table.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE", requires = "predict")]
    with: Vec<String>,
    /// Seed of the starts and simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Starts besides the model file's own values.
    #[arg(long, default_value_t = 5)]
    starts: usize,
    /// Neither profile the parameters nor leave out rows one by one.
    #[arg(long)]
    quick: bool,
    /// Write the fitted values, as `--set` takes them, to this file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Outcome {
    model: String,
    fitted: ScoresOut,
    left_out: Option<ScoresOut>,
    free_parameters: usize,
    rows: Vec<RowOut>,
    parameters: Vec<ParameterOut>,
    checks: ChecksOut,
    predicted: Option<Predicted>,
}

#[derive(Serialize)]
struct Predicted {
    scores: ScoresOut,
    /// Errors of copying the row of the fitted table with the same I/O size and read share.
    copied: Option<ScoresOut>,
    rows: Vec<RowOut>,
    checks: ChecksOut,
}

#[derive(Clone, Copy, Serialize)]
struct ScoresOut {
    ops_error_median: f64,
    ops_error_p90: f64,
    latency_error_median: f64,
    latency_error_p90: f64,
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

#[derive(Serialize)]
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
}

/// Fits, and predicts where asked.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let model = Modelled::load(&options.model, &settings(&options.set)?)
        .map_err(|error| model_error(&error))?;
    let table = read(&options.data)?;
    let other = options.predict.as_deref().map(read).transpose()?;
    let with = settings(&options.with)?;
    // What is wrong with the other system is said before minutes of fitting.
    changed(model.spec(), &with)?;
    let fit_options = FitOptions {
        seed: options.seed,
        starts: options.starts,
        diagnose: !options.quick,
        ..FitOptions::default()
    };
    if !common.quiet {
        let free = model.spec().facts().iter().filter(|(_, fact)| fact.free.is_some()).count();
        let rows = table.matrix().count();
        eprintln!("fitting {free} parameters to {rows} rows");
    }
    let fitted = fit(model.spec(), &table, &fit_options).map_err(|error| fit_error(&error))?;
    let predicted = match &other {
        None => None,
        Some(other) => {
            let spec = changed(&fitted.spec, &with)?;
            let rows = predict(&spec, other, fit_options.limits, options.seed)
                .map_err(|error| fit_error(&error))?;
            Some((rows, checks_of(&spec, other)))
        }
    };
    if let Some(path) = &options.save {
        save(path, &fitted)?;
    }
    let result = Outcome {
        model: model.spec().name.clone(),
        fitted: fitted.scores.into(),
        left_out: fitted.left_out.map(Into::into),
        free_parameters: fitted.parameters.len(),
        rows: fitted.rows.iter().map(Into::into).collect(),
        parameters: parameters(&fitted),
        checks: checks_of(&fitted.spec, &table),
        predicted: predicted.map(|(rows, checks)| Predicted {
            scores: score(&rows).into(),
            copied: copied(&table, &rows).map(Into::into),
            rows: rows.iter().map(Into::into).collect(),
            checks,
        }),
    };
    if common.json {
        bundle::print(&bundle::json(&result)?)?;
    } else {
        show(&document(&result), common)?;
    }
    Ok(Exit::Ok)
}

fn read(path: &Path) -> Result<Measured, CliError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
    Measured::parse(&text).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}

fn changed(spec: &Spec, with: &BTreeMap<String, String>) -> Result<Spec, CliError> {
    let mut spec = spec.clone();
    for (path, value) in with {
        spec.assign(path, value).map_err(|error| model_error(&error))?;
    }
    plimsoll_model::system::System::build(spec.clone(), 0).map_err(|error| model_error(&error))?;
    Ok(spec)
}

fn save(path: &Path, fitted: &Fit) -> Result<(), CliError> {
    let lines = fitted.parameters.iter().map(|p| format!("{}={}\n", p.path, p.fitted));
    std::fs::write(path, lines.collect::<String>())
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
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

/// The table's arithmetic, with the limits that the model states.
fn checks_of(spec: &Spec, table: &Measured) -> ChecksOut {
    let load = MatrixLoad::of(spec).ok();
    let outstanding = load.map(|load| f64::from(load.clients) * f64::from(load.depth));
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
    ChecksOut {
        bandwidth_unit_bytes: unit_bytes,
        protocol_bytes_per_op: protocol_bytes,
        identity_residual_median: identity_median,
        identity_odd_rows: identity_odd,
        concurrency_least: concurrency.0,
        concurrency_most: concurrency.1,
        concurrency_possible: outstanding,
        concurrency_impossible_rows: concurrency_impossible,
        network_bytes_per_s_max,
        network_limit_bytes_per_s: limits.reduce(f64::min),
    }
}

/// What copying the fitted table's rows would be off by.
fn copied(table: &Measured, rows: &[RowScore]) -> Option<Scores> {
    let like = |a: &Row, b: &Row| {
        a.io_bytes == b.io_bytes && a.pattern == b.pattern && a.read_share == b.read_share
    };
    let copy = |score: &RowScore| {
        let from = table.matrix().find(|row| like(row, &score.row))?;
        Some(RowScore {
            ops_error: from.ops_per_s / score.row.ops_per_s - 1.0,
            latency_error: from.latency_ms / score.row.latency_ms - 1.0,
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
        }
    }
}

fn document(result: &Outcome) -> Document {
    let mut sections = vec![
        Section::brief("scores", "Errors").with(Block::Table(scores_table(result))),
        Section::brief("parameters", "Parameters").with(Block::Table(parameter_table(result))),
    ];
    let vague: Vec<&str> =
        result.parameters.iter().filter(|p| !p.identified).map(|p| p.path.as_str()).collect();
    if !vague.is_empty() {
        let says = format!(
            "The data do not determine {}: the interval reaches a bound or spans a factor of two.",
            vague.join(", ")
        );
        sections[1].blocks.push(Block::Words(says));
    }
    sections.push(checks_section("checks", "The table against itself", &result.checks));
    sections
        .push(Section::brief("rows", "Fitted rows").with(Block::Table(rows_table(&result.rows))));
    if let Some(predicted) = &result.predicted {
        sections.push(checks_section(
            "other-checks",
            "The predicted table against itself",
            &predicted.checks,
        ));
        sections.push(
            Section::brief("predicted", "Predicted rows, which the fit did not see")
                .with(Block::Table(rows_table(&predicted.rows))),
        );
    }
    let of = predicted_or_fitted(result);
    let reason = format!(
        "{}: median error {:.1} % of the rate and {:.1} % of the latency{}",
        result.model,
        100.0 * of.0.ops_error_median,
        100.0 * of.0.latency_error_median,
        of.1
    );
    let word = if result.predicted.is_some() { "PREDICTED" } else { "FITTED" };
    Document {
        title: result.model.clone(),
        headline: Headline { word: word.to_owned(), reason, ..Headline::default() },
        sections,
        ..Document::default()
    }
}

fn predicted_or_fitted(result: &Outcome) -> (ScoresOut, &'static str) {
    match &result.predicted {
        Some(predicted) => (predicted.scores, " on rows that the fit never saw."),
        None => (result.fitted, " on the rows that it was fitted to."),
    }
}

fn scores_table(result: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("rows", "rows"),
            Column::of(Unit::Share, "median", "ops_error_median").under("rate"),
            Column::of(Unit::Share, "p90", "ops_error_p90").under("rate"),
            Column::of(Unit::Share, "median", "latency_error_median").under("latency"),
            Column::of(Unit::Share, "p90", "latency_error_p90").under("latency"),
        ],
    );
    let mut add = |name: String, scores: ScoresOut| {
        let errors = [
            scores.ops_error_median,
            scores.ops_error_p90,
            scores.latency_error_median,
            scores.latency_error_p90,
        ];
        let mut cells = vec![Cell::text(name)];
        cells.extend(errors.into_iter().map(|error| Cell::number(Unit::Share, error)));
        table.rows.push(cells);
    };
    add(format!("fitted, {} free parameters", result.free_parameters), result.fitted);
    if let Some(left_out) = result.left_out {
        add("each left out in turn".to_owned(), left_out);
    }
    if let Some(predicted) = &result.predicted {
        add("predicted".to_owned(), predicted.scores);
        if let Some(copied) = predicted.copied {
            add("copied from the fitted table".to_owned(), copied);
        }
    }
    table
}

fn parameter_table(result: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("parameter", "parameter"),
            Column::numbers("in the file", "given"),
            Column::numbers("fitted", "fitted"),
            Column::numbers("from", "interval_low"),
            Column::numbers("to", "interval_high"),
            Column::words("determined", "identified"),
        ],
    );
    for p in &result.parameters {
        let digits = |value: f64| Cell::text(significant(value, 4));
        let end = |pick: fn((f64, f64)) -> f64| {
            p.interval.map_or(Cell::not_applicable(), |interval| digits(pick(interval)))
        };
        let identified = match (p.interval, p.identified) {
            (None, _) => Cell::not_applicable(),
            (Some(_), true) => Cell::text("yes").tone(Tone::Good),
            (Some(_), false) => Cell::text("no").tone(Tone::Warn),
        };
        table.rows.push(vec![
            Cell::text(p.path.clone()),
            digits(p.given),
            digits(p.fitted),
            end(|i| i.0),
            end(|i| i.1),
            identified,
        ]);
    }
    table
}

fn rows_table(rows: &[RowOut]) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("row", "row"),
            Column::of(Unit::Rate, "measured", "measured_ops_per_s").under("rate"),
            Column::of(Unit::Rate, "model", "modelled_ops_per_s").under("rate"),
            Column::numbers("error", "ops_error").under("rate"),
            Column::of(Unit::Latency, "measured", "measured_latency_ns").under("latency"),
            Column::of(Unit::Latency, "model", "modelled_latency_ns").under("latency"),
            Column::numbers("error", "latency_error").under("latency"),
        ],
    );
    let error = |share: f64| Cell::text(format!("{:+.1} %", 100.0 * share));
    for row in rows {
        table.rows.push(vec![
            Cell::text(row.row.clone()),
            Cell::number(Unit::Rate, row.measured_ops_per_s),
            Cell::number(Unit::Rate, row.modelled_ops_per_s),
            error(row.ops_error),
            Cell::number(Unit::Latency, row.measured_latency_ms * 1e6),
            Cell::number(Unit::Latency, row.modelled_latency_ms * 1e6),
            error(row.latency_error),
        ]);
    }
    table
}

/// The three identities in sentences.
fn checks_section(id: &str, title: &str, checks: &ChecksOut) -> Section {
    let mut says = Vec::new();
    if checks.identity_residual_median.is_finite() {
        let unit = if checks.bandwidth_unit_bytes == 1e6 { "10^6" } else { "2^20" };
        says.push(format!(
            "Bandwidth is data operations x I/O size + operations x {:.0} bytes of protocol, in units \
             of {unit} bytes: median residual {:.3} %.",
            checks.protocol_bytes_per_op,
            100.0 * checks.identity_residual_median
        ));
        for (row, residual) in &checks.identity_odd_rows {
            says.push(format!("The bandwidth of {row} is {:+.1} % off that.", 100.0 * residual));
        }
    } else {
        says.push("The table has no bandwidth column that could be checked.".to_owned());
    }
    let most =
        checks.concurrency_possible.map(|most| format!(", of {most:.0} that the load allows"));
    says.push(format!(
        "Rate x latency is {:.0} to {:.0} operations in flight{}.",
        checks.concurrency_least,
        checks.concurrency_most,
        most.unwrap_or_default()
    ));
    for (row, n) in &checks.concurrency_impossible_rows {
        says.push(format!("{row} has {n:.0} in flight, which is impossible."));
    }
    let gigabytes = |bytes: f64| bytes / 1e9;
    let limit = checks.network_limit_bytes_per_s.map_or(String::new(), |limit| {
        let over = checks.network_bytes_per_s_max > limit;
        let word = if over { "MORE than" } else { "within" };
        format!(", {word} the {:.2} GB/s of the model's ports", gigabytes(limit))
    });
    says.push(format!(
        "The busiest row moves {:.2} GB/s one way{limit}.",
        gigabytes(checks.network_bytes_per_s_max)
    ));
    Section::brief(id, title).with(Block::List(says))
}
