//! Chooses the blocks of a new model for a measured table, and fits them.
//!
//! Six structures are tried: a flash drive with a number of lanes; the same drive behind a network
//! link, behind a path with a constant delay, or behind a rate limit; an SSD with channels and a
//! write buffer; and a disk. Each structure is fitted quickly, and those with the lowest errors are
//! fitted again. A structure with more blocks is chosen only if its error is lower by [`GAIN_MIN`].
//! The chosen structure is fitted again with all checks of `model fit`.

mod blocks;
mod load;
mod text;

use std::collections::BTreeSet;

use plimsoll_model::fit::{
    Fit, FitOptions, FitProgress, Row, Scores, Table as Measured, fit, predict, score,
};
use plimsoll_model::run::Limits;
use plimsoll_model::spec::{Spec, shipped};
use plimsoll_report::document::Document;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::model_run::{fit_error, model_error};
use serde::Serialize;

use self::blocks::{Operations, Parameter, STRUCTURES, Structure};
use self::load::Load;
use crate::fit::{self, FitRequest, ScoresOut};

/// Numbers of channels that are tried, or numbers of lanes. Lanes are operations that a drive
/// serves at the same time.
const LANES: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Coefficients of variation of the service times that are tried if the table has 99th percentiles.
const VARIATIONS: [f64; 8] = [0.03, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.2];
/// Minimum factor by which a structure with more blocks must have a smaller error.
const GAIN_MIN: f64 = 1.25;
/// Minimum number of rows from which a structure is chosen.
const ROWS_MIN: usize = 4;
/// Before the choice, all structures are fitted again whose error is at most this multiple of the
/// lowest error.
const CLOSE: f64 = 2.0;
/// Length of the simulations with which structures are compared.
const QUICK: Limits = Limits { warm_up_ops: 3_000, measure_ops: 6_000 };
/// Size of each client's file. The distance that the arm of a disk moves depends on this size.
const FILE_BYTES: u64 = 16 << 30;

/// A structure and a number of lanes, which are tried together.
#[derive(Clone, Copy)]
struct Candidate {
    structure: &'static Structure,
    lanes: Option<u32>,
    /// Variation of the service times; `None` if it is fitted together with the other parameters.
    variation: Option<f64>,
}

impl Candidate {
    /// Name with the number of lanes, such as `drive, 8 lanes`.
    fn label(self) -> String {
        let Structure { name, lanes, .. } = self.structure;
        match self.lanes {
            None => (*name).to_owned(),
            Some(1) => format!("{name}, 1 {}", lanes.trim_end_matches('s')),
            Some(n) => format!("{name}, {n} {lanes}"),
        }
    }
}

/// A new model, in the form of the JSON output.
#[derive(Serialize)]
pub struct Outcome {
    /// The chosen structure, such as `drive, 8 lanes`.
    structure: String,
    #[serde(skip)]
    says: &'static str,
    structures: Vec<StructureOut>,
    /// Errors of the shipped models for the same rows of the table. The model with the smallest
    /// errors comes first.
    shipped: Vec<ShippedOut>,
    clients: u32,
    fit: fit::Outcome,
}

/// Errors of a structure after a quick fit.
#[derive(Serialize)]
struct StructureOut {
    structure: String,
    free_parameters: usize,
    scores: ScoresOut,
}

#[derive(Serialize)]
struct ShippedOut {
    model: String,
    title: String,
    scores: ScoresOut,
}

impl Outcome {
    /// Returns true if the model fits the table.
    pub fn fits(&self) -> bool {
        self.fit.fits()
    }

    /// Returns true if a shipped model has lower errors than the new model.
    fn shipped_is_closer(&self) -> bool {
        let own = self.fit.scores();
        self.shipped.first().is_some_and(|closest| {
            closest.scores.ops_error_median < own.ops_error_median
                && closest.scores.latency_error_median < own.latency_error_median
        })
    }

    /// Returns the report.
    pub fn document(&self) -> Document {
        text::document(self)
    }
}

/// Input of [`new_model`].
pub struct NewModelRequest<'a> {
    pub name: &'a str,
    /// Source of the table, which is recorded as the source of the parameters.
    pub source: &'a str,
    /// Tables, goals, and options of the last fit.
    pub fit: FitRequest<'a>,
}

/// Chooses the blocks of a model for a measured table, and fits them. Returns the model file and the
/// report.
///
/// # Errors
/// The table has too few rows, or no structure can be fitted to it.
pub fn new_model(
    request: &NewModelRequest<'_>,
    progress: &dyn Fn(FitProgress),
) -> Result<(String, Outcome), RunnerError> {
    let FitRequest { table, options, .. } = request.fit;
    let load = Load::of(table).ok_or_else(|| {
        RunnerError::usage("the table has no row with an I/O size and a read share")
    })?;
    // A repeated measurement of a setting does not determine a further parameter.
    let settings = table.matrix().map(|row| {
        let load = (row.io_bytes, row.pattern, row.read_share, row.durable);
        format!("{:?}", (load, row.clients, row.depth))
    });
    let rows = settings.collect::<BTreeSet<_>>().len();
    if rows < ROWS_MIN {
        return Err(RunnerError::usage(format!(
            "too few rows: with {rows} different rows, several structures fit equally well; at least \
             {ROWS_MIN} rows with an I/O size and a read share are required"
        )));
    }
    let quick = FitOptions { starts: 0, rounds: 1, limits: QUICK, diagnose: false, ..options };
    let candidates: Vec<Candidate> = candidates(table).collect();
    let mut tried = Vec::new();
    let mut last_error = None;
    for (done, candidate) in candidates.iter().enumerate() {
        progress(FitProgress { stage: "structures", done, total: candidates.len() });
        let spec = spec_of(request, *candidate, load, None)?;
        match fit(&spec, table, &quick, &|_| {}) {
            Ok(fitted) => tried.push((*candidate, fitted)),
            Err(error) => last_error = Some(error),
        }
    }
    // With many parameters, a short search may end far from the best values.
    let thorough = FitOptions { starts: 1, rounds: 2, ..quick };
    let close = best_of_each(&tried);
    let lowest = close.first().map_or(0.0, |(_, fit)| error_of(&fit.scores));
    let close: Vec<_> =
        close.into_iter().filter(|(_, fit)| error_of(&fit.scores) <= CLOSE * lowest).collect();
    let mut again = Vec::new();
    for (done, (candidate, first)) in close.iter().enumerate() {
        progress(FitProgress { stage: "close structures", done, total: close.len() });
        let spec = spec_of(request, *candidate, load, Some(first))?;
        again.extend(fit(&spec, table, &thorough, &|_| {}).map(|fitted| (*candidate, fitted)));
    }
    tried.extend(again);
    let best = best_of_each(&tried);
    let Some((candidate, first)) = chosen(&best) else {
        return Err(
            last_error.map_or_else(|| RunnerError::usage("no structure"), |e| fit_error(&e))
        );
    };
    let of_p99 = match_variation(request, candidate, load, first, &quick, progress)?;
    let (candidate, first) =
        of_p99.as_ref().map_or((candidate, first), |(candidate, fitted)| (*candidate, fitted));
    let start = spec_of(request, candidate, load, Some(first))?;
    let fitted = fit(&start, table, &options, progress).map_err(|error| fit_error(&error))?;
    let text = model_text(request, candidate, load, Some(&fitted));
    let shipped = shipped_scores(&start, table, options.seed, progress);
    let structures = best.iter().map(|(candidate, fitted)| StructureOut {
        structure: candidate.label(),
        free_parameters: fitted.parameters.len(),
        scores: fitted.scores.into(),
    });
    let outcome = Outcome {
        structure: candidate.label(),
        says: candidate.structure.says,
        structures: structures.collect(),
        shipped,
        clients: load.clients,
        fit: fit::outcome(&fitted, &request.fit)?,
    };
    Ok((text, outcome))
}

/// Returns the candidates for a table. A drive with more lanes than operations in flight behaves
/// like one with fewer lanes. An operation may use several channels, however.
fn candidates(table: &Measured) -> impl Iterator<Item = Candidate> {
    let in_flight = |row: &Row| row.ops_per_s * row.latency_ms * 1e-3;
    let most = table.matrix().map(in_flight).fold(1.0, f64::max);
    STRUCTURES.iter().flat_map(move |structure| {
        let has_lanes = !structure.lanes.is_empty();
        let has_channels = structure.lanes == "channels";
        let is_tried = move |lanes: &&u32| has_channels || f64::from(**lanes) < 2.0 * most;
        let lanes = LANES.iter().filter(is_tried);
        let with_lanes =
            lanes.map(move |lanes| Candidate { structure, lanes: Some(*lanes), variation: None });
        let without = (!has_lanes).then_some(Candidate { structure, lanes: None, variation: None });
        with_lanes.filter(move |_| has_lanes).chain(without)
    })
}

/// Returns the error that is used to compare structures.
fn error_of(scores: &Scores) -> f64 {
    scores.ops_median + scores.latency_median + 0.25 * (scores.ops_p90 + scores.latency_p90)
}

/// Chooses the best number of lanes for each structure. Returns the structures, sorted by error,
/// the lowest error first.
fn best_of_each(tried: &[(Candidate, Fit)]) -> Vec<(Candidate, &Fit)> {
    let of = |structure: &Structure| {
        let own = tried.iter().filter(|(c, _)| c.structure.name == structure.name);
        own.min_by(|a, b| error_of(&a.1.scores).total_cmp(&error_of(&b.1.scores)))
    };
    let mut best: Vec<(Candidate, &Fit)> =
        STRUCTURES.iter().filter_map(of).map(|(candidate, fitted)| (*candidate, fitted)).collect();
    best.sort_by(|a, b| error_of(&a.1.scores).total_cmp(&error_of(&b.1.scores)));
    best
}

/// Chooses the variation of the service times with the 99th percentiles of a table, because means
/// hardly depend on it. `None` if the table has no 99th percentiles, or if the fitted variation
/// matches them equally well.
fn match_variation(
    request: &NewModelRequest<'_>,
    candidate: Candidate,
    load: Load,
    first: &Fit,
    options: &FitOptions,
    progress: &dyn Fn(FitProgress),
) -> Result<Option<(Candidate, Fit)>, RunnerError> {
    let error_with_p99 = |scores: &Scores| {
        let p99 = scores.latency_p99_median.zip(scores.latency_p99_p90)?;
        Some(error_of(scores) + p99.0 + 0.25 * p99.1)
    };
    let Some(mut lowest) =
        error_with_p99(&first.scores).filter(|_| candidate.structure.has_variation())
    else {
        return Ok(None);
    };
    let mut best = None;
    for (done, variation) in VARIATIONS.iter().enumerate() {
        progress(FitProgress { stage: "variation", done, total: VARIATIONS.len() });
        let fixed = Candidate { variation: Some(*variation), ..candidate };
        let spec = spec_of(request, fixed, load, Some(first))?;
        let Ok(fitted) = fit(&spec, request.fit.table, options, &|_| {}) else { continue };
        if let Some(error) = error_with_p99(&fitted.scores).filter(|error| *error < lowest) {
            lowest = error;
            best = Some((fixed, fitted));
        }
    }
    Ok(best)
}

/// Returns the structure with the fewest blocks among those whose error is close to the lowest
/// error.
fn chosen<'a>(best: &[(Candidate, &'a Fit)]) -> Option<(Candidate, &'a Fit)> {
    let lowest = error_of(&best.first()?.1.scores);
    let close = best.iter().filter(|(_, fit)| error_of(&fit.scores) <= GAIN_MIN * lowest);
    close.min_by_key(|(candidate, _)| candidate.structure.blocks.len()).copied()
}

fn spec_of(
    request: &NewModelRequest<'_>,
    candidate: Candidate,
    load: Load,
    fitted: Option<&Fit>,
) -> Result<Spec, RunnerError> {
    let text = model_text(request, candidate, load, fitted);
    Spec::parse(request.name, &text).map_err(|error| model_error(&error))
}

/// Returns a model file. Without a fit, each free parameter has the start value of the search.
fn model_text(
    request: &NewModelRequest<'_>,
    candidate: Candidate,
    load: Load,
    fitted: Option<&Fit>,
) -> String {
    let Candidate { structure, lanes, variation } = candidate;
    // JSON strings are TOML strings.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let title = format!("{}, from {}", structure.says, request.source);
    let mut text = format!(
        "[model]\nname = {}\ntitle = {}\nmissing = \"\"\"\nCaches, queues and limits that the table \
         does not show: the model has only {}.{}\n\"\"\"\nentry = {:?}\nnodes = 1\nfrom = \
         \"chosen\"\n",
        quoted(request.name),
        quoted(&title),
        structure.says,
        if load.durable_writes {
            ""
        } else {
            " Durable writes: in the model, they take as long as other writes."
        },
        structure.entry,
    );
    let lanes = lanes.map(|lanes| lanes.to_string()).unwrap_or_default();
    let chosen = variation.map(|value| {
        let from = quoted(&format!("fitted: {}, 99th percentiles", request.source));
        format!("{{ value = {value}, from = {from} }}")
    });
    let assumed = "{ value = 0.2, from = \"assumed\" }";
    for (name, lines) in structure.blocks {
        let lines = lines
            .replace("LANES", &lanes)
            .replace("VARIATION", chosen.as_deref().unwrap_or(assumed));
        text.push_str(&format!("\n[block.{name}]\n{lines}"));
        for parameter in structure.parameters.iter().filter(|p| p.block == *name) {
            let line = match chosen.as_ref().filter(|_| parameter.is_variation()) {
                Some(chosen) => format!("{} = {chosen}\n", parameter.field),
                None => parameter_line(parameter, request.source, load, fitted),
            };
            text.push_str(&line);
        }
    }
    text.push_str(&format!(
        "\n[load]\nfrom = \"chosen\"\nclients = {}\ndepth = 1\nfiles = {}\nfile_bytes = {FILE_BYTES}\n",
        load.clients, load.clients
    ));
    text
}

fn parameter_line(parameter: &Parameter, source: &str, load: Load, fitted: Option<&Fit>) -> String {
    let Parameter { field, bounds: (low, high), .. } = parameter;
    if !load.has(parameter.of) && parameter.of == Operations::DurableWrites {
        return String::new();
    }
    if !load.has(parameter.of) {
        let value = libm::sqrt(low * high);
        let from = "assumed: the table has no such operations";
        return format!("{field} = {{ value = {value:.4e}, from = {from:?} }}\n");
    }
    if parameter.block == "drive" && field.ends_with("bytes_per_s") && !load.several_sizes {
        // If the table has only one size, the transfer time cannot be distinguished from the time
        // of each operation.
        let from = "assumed: the table has only one I/O size, so its transfer time is part of the \
                    time per operation";
        return format!("{field} = {{ value = 1e12, from = {from:?} }}\n");
    }
    let path = format!("{}.{field}", parameter.block);
    let profile = fitted.and_then(|fit| fit.parameters.iter().find(|p| p.path == path));
    let value = profile.map_or(load.start_of(parameter), |profile| profile.fitted);
    let vague = match profile {
        Some(profile) if profile.interval.is_none() => {
            "; whether the table determines this parameter was not checked"
        }
        Some(profile) if !profile.identified => ", which does not determine this parameter",
        _ => "",
    };
    let from = serde_json::Value::from(format!("fitted: {source}{vague}"));
    format!("{field} = {{ value = {value:.4e}, from = {from}, free = [{low:?}, {high:?}] }}\n")
}

/// Returns the scores of the shipped models under the load of the table. The model with the
/// smallest errors comes first. Models that cannot run this load are omitted.
fn shipped_scores(
    own: &Spec,
    table: &Measured,
    seed: u64,
    progress: &dyn Fn(FitProgress),
) -> Vec<ShippedOut> {
    let total = shipped().len();
    let mut scores: Vec<(Scores, Spec)> = Vec::new();
    for (done, model) in shipped().iter().enumerate() {
        progress(FitProgress { stage: "shipped models", done, total });
        let Ok(mut spec) = Spec::load(model.name) else { continue };
        spec.load.clone_from(&own.load);
        if let Ok(rows) = predict(&spec, table, QUICK, seed) {
            scores.push((score(&rows), spec));
        }
    }
    scores.sort_by(|a, b| error_of(&a.0).total_cmp(&error_of(&b.0)));
    let out = |(scores, spec): (Scores, Spec)| ShippedOut {
        model: spec.name.clone(),
        title: spec.title.clone(),
        scores: scores.into(),
    };
    scores.into_iter().map(out).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use plimsoll_model::fit::goals::Goal;
    use plimsoll_model::fit::simulate_rows;
    use plimsoll_report::text::Style;

    use super::*;

    const LIMITS: Limits = Limits { warm_up_ops: 2_000, measure_ops: 8_000 };

    /// Returns the rows of a model with known blocks, as a table. If durable writes take longer
    /// than other writes, the table also has durable writes.
    fn rows_of(blocks: &str, entry: &str, reads: &[u32]) -> Measured {
        let mut text = "io_kib,read_percent,sync,depth,ops_per_s,latency_ms\n".to_owned();
        for size in [4, 64] {
            for read in reads {
                for depth in [1, 16] {
                    text.push_str(&format!("{size},{read},none,{depth},1,1\n"));
                    if *read == 0 && blocks.contains("durable_us") {
                        text.push_str(&format!("{size},0,dsync,{depth},1,1\n"));
                    }
                }
            }
        }
        let empty = Measured::parse(&text).unwrap();
        let model = format!(
            "[model]\nname = \"truth\"\nentry = {entry:?}\nfrom = \
             \"chosen\"\n{blocks}\n[load]\nfrom = \"chosen\"\nclients = 4\ndepth = 1\nfiles = \
             4\nfile_bytes = 17179869184\n"
        );
        let spec = Spec::parse("truth", &model).unwrap();
        let rows: Vec<_> = empty.matrix().collect();
        let points = simulate_rows(&spec, &rows, LIMITS, 7).unwrap();
        let mut table = empty.clone();
        for (row, point) in table.rows.iter_mut().zip(points) {
            (row.ops_per_s, row.latency_ms) = (point.ops_per_s, point.latency_ms);
            row.latency_p99_ms = point.latency_p99_ms;
        }
        table
    }

    fn new_of(table: &Measured) -> (String, Outcome) {
        new_that_predicts(table, None)
    }

    fn new_that_predicts(table: &Measured, test_table: Option<&Measured>) -> (String, Outcome) {
        let options =
            FitOptions { starts: 1, limits: LIMITS, diagnose: false, ..Default::default() };
        let fit = FitRequest {
            table,
            test_table,
            overrides: &BTreeMap::new(),
            goals: &Goal::DEFAULTS,
            options,
        };
        new_model(&NewModelRequest { name: "mine", source: "rows.csv", fit }, &|_| {}).unwrap()
    }

    #[test]
    fn rows_that_the_fit_did_not_use_are_predicted_and_interpolated() {
        let table = rows_of(DRIVE, "drive", &[100, 50, 0]);
        let (model, found) = new_that_predicts(&table, Some(&rows_of(DRIVE, "drive", &[75, 25])));
        let report = plimsoll_report::text::document(&found.document(), &Style::default());
        assert!(report.starts_with("PREDICTED"), "{report}");
        assert!(report.contains("interpolated, the same 8 rows"), "{report}");
        assert!(report.contains("predicted rows, p99 latency: median error"), "{report}");
        assert!(!report.contains("MISSED"), "{report}");
        assert!(model.contains("variation_ratio = { value = 0.3, from = \"fitted"), "{model}");
    }

    const DRIVE: &str = "[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nlanes = 8\nmedia = \
                         \"ssd\"\nread_us = 90\nwrite_us = 40\nread_bytes_per_s = \
                         3e9\nwrite_bytes_per_s = 1e9\nvariation_ratio = 0.3\n";

    #[test]
    fn the_time_of_durable_writes_is_found() {
        let (text, found) =
            new_of(&rows_of(&format!("{DRIVE}durable_us = 70\n"), "drive", &[100, 0]));
        assert_eq!(found.structure, "drive, 8 lanes");
        let spec = Spec::parse("mine", &text).unwrap();
        let value = spec.value("drive.durable_us").unwrap();
        assert!((value / 70.0 - 1.0).abs() < 0.1, "{value}");
    }

    #[test]
    fn the_blocks_of_a_drive_are_found() {
        let (text, found) = new_of(&rows_of(DRIVE, "drive", &[100, 0]));
        assert_eq!((found.structure.as_str(), found.clients), ("drive, 8 lanes", 4));
        assert!(!text.contains("durable_us"), "{text}");
        assert!(
            text.contains("Durable writes: in the model, they take as long as other writes."),
            "{text}"
        );
        let report = plimsoll_report::text::document(&found.document(), &Style::default());
        assert!(found.fits(), "{report}");
        assert!(
            report.contains("a flash drive that serves several operations at once"),
            "{report}"
        );
        assert!(report.contains("Of the shipped models, "), "{report}");
        assert_eq!(found.shipped.len(), shipped().len());
        let spec = Spec::parse("mine", &text).unwrap();
        for (path, truth) in
            [("drive.read_us", 90.0), ("drive.write_us", 40.0), ("drive.write_bytes_per_s", 1e9)]
        {
            let value = spec.value(path).unwrap();
            assert!((value / truth - 1.0).abs() < 0.1, "{path} is {value}, and not {truth}");
        }
    }

    #[test]
    fn the_blocks_of_an_ssd_are_found() {
        let ssd = "[block.ssd]\nkind = \"ssd\"\nfrom = \"chosen\"\nchannels = 4\ndies_per_channel = \
                   4\nport_bytes_per_s = 3.5e9\ncontroller_us = 8\nsense_us = 55\nprogram_us = \
                   600\nvariation_ratio = 0.2\n";
        let (text, found) = new_of(&rows_of(ssd, "ssd", &[100, 0]));
        assert!(found.structure.starts_with("ssd"), "{}", found.structure);
        assert!(found.fits());
        let value = Spec::parse("mine", &text).unwrap().value("ssd.controller_us").unwrap();
        assert!((value / 8.0 - 1.0).abs() < 0.2, "{value}");
    }

    #[test]
    fn a_limit_is_found_and_writes_that_no_row_has_are_assumed() {
        let blocks = format!(
            "[block.limit]\nkind = \"limit\"\nfrom = \"chosen\"\nbelow = \
             \"drive\"\nbaseline_ops_per_s = 6000\nrate_bytes_per_s = 2.5e8\n{DRIVE}"
        );
        let (text, found) = new_of(&rows_of(&blocks, "limit", &[100]));
        assert!(found.structure.starts_with("limit and drive"), "{}", found.structure);
        assert!(found.fits());
        assert!(text.contains("from = \"assumed: the table has no such operations\""), "{text}");
        let value = Spec::parse("mine", &text).unwrap().value("limit.baseline_ops_per_s").unwrap();
        assert!((value / 6000.0 - 1.0).abs() < 0.05, "{value}");
    }

    #[test]
    fn stated_clients_are_used_and_few_rows_are_refused() {
        let text = "io_kib,read_percent,clients,ops_per_s,latency_ms\n8,100,8,333,23.756\n8,100,16,\
                    592,26.676\n8,100,16,592,26.676\n8,100,64,974,54.69\n";
        let table = Measured::parse(text).unwrap();
        assert_eq!(Load::of(&table).unwrap().clients, 16);
        let fit = FitRequest {
            table: &table,
            test_table: None,
            overrides: &BTreeMap::new(),
            goals: &Goal::DEFAULTS,
            options: FitOptions::default(),
        };
        let request = NewModelRequest { name: "mine", source: "rows.csv", fit };
        let says = new_model(&request, &|_| {}).map(|_| ()).unwrap_err().to_string();
        assert!(says.contains("too few rows: with 3 different rows"), "{says}");
    }
}
