//! Reads the other files of a run: `per_epoch_stats.json` and the output of each rank. Attaches
//! them to the summary in the same directory, and compares summaries with the reports on several
//! runs.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Aggregate, Figure, Formula, Membership, ToolResult};

use super::{EPOCH_SLACK, NS_PER_S};
use crate::json::JsonNode;
use crate::parts::unix_s;

/// Maximum relative deviation between two rounded values that should be equal. These are a value
/// and its repetition, or a total and the sum over ranks.
const RANKS_SLACK: f64 = 1e-3;

/// Returns true if the object is `per_epoch_stats.json`.
#[must_use]
pub fn is_epochs(root: &JsonNode<'_, '_>) -> bool {
    let block = root.key("1");
    block.key("start").text().is_some()
        && block
            .entries()
            .any(|(name, value)| name.starts_with("block") && value.key("start").exists())
}

/// Returns true if the object is the output of a rank (`3_output.json`).
#[must_use]
pub fn is_rank(root: &JsonNode<'_, '_>) -> bool {
    root.key("host_memory_GB").exists()
        && root.key("potential_caching").exists()
        && !root.key("metric").exists()
}

/// Epoch times of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Epochs {
    /// Path of the file.
    pub file: String,
    /// Time of the steps in each epoch, in ns.
    times: Vec<Option<Figure>>,
    /// Checks that compare each duration with its start and end.
    combined: Vec<Aggregate>,
}

/// Reads `per_epoch_stats.json`.
#[must_use]
pub fn read_epochs(root: &JsonNode<'_, '_>, file: &str) -> Epochs {
    let mut epochs = Epochs { file: file.to_owned(), times: Vec::new(), combined: Vec::new() };
    for (name, epoch) in root.entries() {
        if name.parse::<u32>().is_err() {
            continue;
        }
        for (block, at) in epoch.entries().filter(|(name, _)| name.starts_with("block")) {
            let time = at.key("duration").rounded().map(|seconds| seconds.scaled(NS_PER_S));
            let clock = |name: &str| at.key(name).text().and_then(unix_s);
            if let (Some(total), Some(start), Some(end)) = (&time, clock("start"), clock("end")) {
                let between = Figure::exact((end - start) * NS_PER_S, at.key("end").path());
                epochs.combined.push(Aggregate {
                    what: format!(
                        "the duration of {block} in epoch {name}, compared with its \
                        start and end"
                    ),
                    formula: Formula::Sum,
                    total: total.clone(),
                    of: vec![between.widened(1e-6)],
                    slack: 0.0,
                });
            }
            if block == "block1" {
                epochs.times.push(time);
            }
        }
    }
    epochs
}

/// Output of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rank {
    /// Path of the file.
    pub file: String,
    /// Samples per second in each epoch. The key is the number of the epoch.
    pub(super) rates: BTreeMap<usize, Figure>,
}

/// Reads the output of a rank (`3_output.json`).
#[must_use]
pub fn read_rank(root: &JsonNode<'_, '_>, file: &str) -> Rank {
    let epochs = root.entries().filter_map(|(name, epoch)| Some((name.parse().ok()?, epoch)));
    let rate = |at: JsonNode<'_, '_>| at.key("throughput").key("block1").float();
    let rates = epochs.filter_map(|(epoch, at)| Some((epoch, rate(at)?))).collect();
    Rank { file: file.to_owned(), rates }
}

/// Returns the rank number from the file name.
fn number_of(file: &str) -> Option<u64> {
    file.rsplit('/').next()?.split_once('_')?.0.parse().ok()
}

/// The rate of an epoch is the sum over all ranks (DLIO's `StatsCounter`).
fn sum_over_ranks(result: &mut ToolResult, ranks: &[&Rank]) {
    let mut combined = Vec::new();
    for (index, pass) in result.passes.iter().enumerate() {
        let Some(total) = pass.rate_per_s.clone() else { continue };
        let named = |rank: &&Rank| {
            let figure = rank.rates.get(&(index + 1))?;
            let name = rank.file.rsplit('/').next().unwrap_or(&rank.file);
            Some(Figure { field: format!("{name} {}", figure.field), ..figure.clone() })
        };
        let of: Vec<Figure> = ranks.iter().filter_map(named).collect();
        if of.len() == ranks.len() && !of.is_empty() {
            let what = format!("samples per second of {} over all ranks", pass.name);
            combined.push(Aggregate { what, formula: Formula::Sum, total, of, slack: RANKS_SLACK });
        }
    }
    result.combined.extend(combined);
}

/// Checks the rates in a report on several runs. Each rate must equal the rate in the summary of
/// the same run.
fn of_reports(results: &mut [ToolResult]) {
    let is_summary = |r: &&ToolResult| r.source.format == "MLPerf Storage summary";
    let stated = |r: &ToolResult| r.parts.first()?.operations.first()?.rate_per_s.first().cloned();
    let summaries: Vec<(String, Figure)> = results
        .iter()
        .filter(is_summary)
        .filter_map(|r| Some((r.source.file.clone(), stated(r)?)))
        .collect();
    for report in results.iter_mut().filter(|r| r.source.format == "MLPerf Storage report") {
        let home = directory(&report.source.file).to_owned();
        let mut combined = Vec::new();
        let means = report.combined.iter().filter(|c| c.formula == Formula::Mean);
        for (run, total) in means.flat_map(|c| &c.of).filter_map(|rate| Some((run_of(rate)?, rate)))
        {
            let below = if home.is_empty() { format!("{run}/") } else { format!("{home}/{run}/") };
            let mut of = summaries.iter().filter(|(file, _)| file.starts_with(&below));
            let (Some((file, rate)), None) = (of.next(), of.next()) else { continue };
            combined.push(Aggregate {
                what: format!("samples per second of {run}, compared with the run's own summary"),
                formula: Formula::Sum,
                total: total.clone(),
                of: vec![Figure { field: format!("{file} {}", rate.field), ..rate.clone() }],
                slack: RANKS_SLACK,
            });
        }
        report.combined.extend(combined);
    }
}

fn directory(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Attaches the files with epochs and ranks to the summary in the same directory. Returns the
/// number of files that have no summary.
pub fn attach(results: &mut [ToolResult], epochs: Vec<Epochs>, ranks: &[Rank]) -> usize {
    let is_summary = |r: &ToolResult| r.source.format == "MLPerf Storage summary";
    of_reports(results);
    let mut alone = 0;
    for epochs in epochs {
        let home = directory(&epochs.file);
        let same = |r: &&mut ToolResult| is_summary(r) && directory(&r.source.file) == home;
        match results.iter_mut().find(same) {
            Some(result) => of_epochs(result, epochs),
            None => alone += 1,
        }
    }
    for result in results.iter_mut().filter(|r| is_summary(r)) {
        let home = directory(&result.source.file);
        let here: Vec<&Rank> = ranks.iter().filter(|rank| directory(&rank.file) == home).collect();
        let found: Vec<u64> = here.iter().filter_map(|rank| number_of(&rank.file)).collect();
        let stated =
            result.options.get("num_accelerators").and_then(|text| text.parse::<f64>().ok());
        if stated == Some(found.len() as f64) {
            sum_over_ranks(result, &here);
        }
        if let Some(stated) = stated.filter(|_| !found.is_empty()) {
            let missing = (0..stated as u64).filter(|rank| !found.contains(rank));
            result.memberships.push(Membership {
                of: "ranks".into(),
                stated: Figure::exact(stated, "num_accelerators"),
                found: found.len() as u64,
                missing: missing.take(64).map(|rank| format!("{rank}_output.json")).collect(),
                place: "present with their output".into(),
            });
        }
    }
    alone
}

fn of_epochs(result: &mut ToolResult, epochs: Epochs) {
    let of = |name: &str| result.options.get(name).and_then(|text| text.parse::<f64>().ok());
    let samples =
        of("num_files_train").zip(of("num_samples_per_file")).map(|(files, each)| files * each);
    if !result.passes.is_empty() {
        result.memberships.push(Membership {
            of: "epochs".into(),
            stated: Figure::exact(
                result.passes.len() as f64,
                "train_throughput_samples_per_second",
            ),
            found: epochs.times.len() as u64,
            missing: Vec::new(),
            place: "in per_epoch_stats.json".into(),
        });
    }
    let mut combined = Vec::new();
    for (pass, time) in result.passes.iter_mut().zip(epochs.times) {
        let Some(time) = time else { continue };
        if let (Some(rate), Some(samples)) = (&pass.rate_per_s, samples) {
            let read = rate.value * time.value / NS_PER_S;
            combined.push(Aggregate {
                what: format!("the samples of {}, compared with its rate × time", pass.name),
                formula: Formula::Sum,
                total: Figure::exact(samples, "num_files_train × num_samples_per_file"),
                of: vec![Figure::exact(read, rate.field.clone()).widened(EPOCH_SLACK)],
                slack: 0.0,
            });
        }
        pass.duration_ns = Some(time);
    }
    result.combined.extend(combined);
    result.combined.extend(epochs.combined);
}

/// Returns the run to which a rate in a report belongs. The name of the rate's field contains it.
fn run_of(rate: &Figure) -> Option<&str> {
    rate.field.strip_prefix("runs.")?.strip_suffix(".train_throughput_samples_per_second")
}
