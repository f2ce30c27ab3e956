//! MLPerf Storage and DLIO, on which it is based. This module reads `summary.json` and
//! `per_epoch_stats.json` of a run, the output of each rank, and the report on several runs.
//!
//! A summary contains a list for each metric, and the list's mean and population standard deviation
//! (from numpy), with `mean` and `stdev` in their names. Bandwidth is samples per second times
//! record length. It is in MiB, although its name contains MB.

mod run_files;

use plimsoll_evidence::tool_result::{
    Aggregate, Complaint, Figure, Formula, Kind, Membership, Operation, Part, Pass, ToolResult,
    Weight,
};

use crate::json::JsonNode;
use crate::parts::{source, unix_s};

pub use run_files::{Epochs, Rank, attach, is_epochs, is_rank, read_epochs, read_rank};

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;
const NS_PER_S: f64 = 1e9;
/// Maximum relative deviation of an epoch's rate × time from its number of samples. They differ
/// because rates exclude the first and last steps. In 3,300 epochs of version 1.0, the ratio is
/// 0.94 to 1.12.
const EPOCH_SLACK: f64 = 0.25;
/// Maximum relative deviation of a mean rate from the size divided by the mean duration. The spread
/// of the durations is added to this limit.
const CHECKPOINT_SLACK: f64 = 0.02;
/// Returns true if the object is a `summary.json`.
#[must_use]
pub fn is_summary(root: &JsonNode<'_, '_>) -> bool {
    root.key("metric").entries().next().is_some() && root.key("num_accelerators").exists()
}

/// Returns true if the object is the report on several runs.
#[must_use]
pub fn is_report(root: &JsonNode<'_, '_>) -> bool {
    root.key("overall").key("num_benchmark_runs").exists() && root.key("runs").exists()
}

/// Adds lists such as `train_au_percentage`, and their means and standard deviations, such as
/// `train_au_mean_percentage`.
fn statistics(reported: &mut ToolResult, metric: &JsonNode<'_, '_>) {
    for (name, list) in metric.entries() {
        let of: Vec<Figure> = list.items().filter_map(|item| item.float()).collect();
        if of.is_empty() || of.len() != list.items().count() {
            continue;
        }
        for (word, formula) in [("mean", Formula::Mean), ("stdev", Formula::Stddev)] {
            let same = metric.entries().find(|(other, _)| {
                let parts: Vec<&str> = other.split('_').filter(|part| *part != word).collect();
                *other != name && parts.join("_") == name
            });
            let Some(total) = same.and_then(|(_, value)| value.float()) else { continue };
            let what = format!("{word} of {name}");
            reported.combined.push(Aggregate { what, formula, total, of: of.clone(), slack: 1e-6 });
        }
    }
}

/// Reads a `summary.json`.
#[must_use]
pub fn read_summary(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("MLPerf Storage", "MLPerf Storage summary", file));
    let metric = root.key("metric");
    reported.source.taken_unix_s = root.key("start").text().and_then(unix_s);
    statistics(&mut reported, &metric);
    for name in [
        "num_accelerators",
        "num_hosts",
        "epochs",
        "hostname",
        "num_files_train",
        "num_samples_per_file",
    ] {
        let value = root.key(name).shown().map(|value| (name.to_owned(), value));
        reported.options.extend(value);
    }
    if metric.key("train_au_meet_expectation").text() == Some("fail") {
        reported.complaints.push(Complaint {
            weight: Weight::Warning,
            says: "the accelerators were busy for a smaller share of the time than the benchmark \
                   requires"
                .into(),
            field: metric.key("train_au_meet_expectation").path().to_owned(),
        });
    }
    let busy = metric.key("train_au_mean_percentage");
    if busy.number() == Some(0.0) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: "the accelerators were never busy: their utilisation is 0 %".into(),
            field: busy.path().to_owned(),
        });
    }
    checkpoints(&mut reported, &metric);
    checkpoint_times(&mut reported, root, &metric);
    hosts(&mut reported, root);
    passes(&mut reported, root, &metric);
    let mut part = Part { name: "training".into(), ..Part::default() };
    part.setting.working_set_bytes = data_of_all_hosts(root);
    part.setting.memory_bytes = total(&root.key("host_memory_GB"));
    part.start_unix_s = reported.source.taken_unix_s;
    let samples = metric.key("train_throughput_mean_samples_per_second");
    let moved = metric.key("train_io_mean_MB_per_second");
    if samples.exists() || moved.exists() {
        let mut operation = Operation::of(Kind::Other("samples".into()));
        operation.rate_per_s.extend(samples.float());
        operation.bandwidth_per_s.extend(moved.float().map(|rate| rate.scaled(MIB)));
        operation.size_bytes = record(&metric);
        part.operations.push(operation);
    }
    reported.parts.push(part);
    reported
}

/// Adds the checkpoints. If their durations are similar, the mean rate is the size divided by the
/// mean duration.
fn checkpoints(reported: &mut ToolResult, metric: &JsonNode<'_, '_>) {
    let of = |name: String| metric.key(&name).float().filter(|figure| figure.value > 0.0);
    for word in ["save", "load"] {
        let zero = ["io_mean_GB_per_second", "duration_mean_seconds"]
            .map(|figure| metric.key(&format!("{word}_checkpoint_{figure}")))
            .into_iter()
            .find(|at| at.number() == Some(0.0));
        if let Some(at) = zero {
            reported.complaints.push(Complaint {
                weight: Weight::Invalid,
                says: format!("no checkpoint {word} was measured: {} is 0", at.path()),
                field: at.path().to_owned(),
            });
        }
        let size = of("checkpoint_size_GB".into());
        let time = of(format!("{word}_checkpoint_duration_mean_seconds"));
        let rate = of(format!("{word}_checkpoint_io_mean_GB_per_second"));
        let (Some(size), Some(time), Some(total)) = (size, time, rate) else { continue };
        let spread = of(format!("{word}_checkpoint_duration_stdev_seconds"));
        let spread = spread.map_or(0.0, |deviation| deviation.value / time.value);
        let field = format!("{} / {}", size.field, time.field);
        let of = vec![Figure { field, ..size.scaled(1.0 / time.value) }];
        reported.combined.push(Aggregate {
            what: format!(
                "the rate of {word} checkpoints, compared with their size divided by their duration"
            ),
            formula: Formula::Sum,
            total,
            of,
            slack: CHECKPOINT_SLACK + spread,
        });
    }
}

/// Checks that the total time of the checkpoints does not exceed the time of the run.
fn checkpoint_times(reported: &mut ToolResult, root: &JsonNode<'_, '_>, metric: &JsonNode<'_, '_>) {
    let clock = |name: &str| root.key(name).text().and_then(unix_s);
    let Some((start, end)) = clock("start").zip(clock("end")) else { return };
    let mut of = Vec::new();
    for word in ["save", "load"] {
        let each = metric.key(&format!("{word}_checkpoint_duration_seconds"));
        let before = of.len();
        of.extend(each.items().filter_map(|item| item.float()));
        if of.len() == before {
            let mean = metric.key(&format!("{word}_checkpoint_duration_mean_seconds"));
            of.extend(mean.float());
        }
    }
    of.retain(|time: &Figure| time.value > 0.0);
    if !of.is_empty() {
        // The clock has a resolution of 0.1 s. In the remaining time, the benchmark prepares and
        // waits.
        let total = Figure::exact(end - start, "end - start");
        let total = Figure { least: 0.0, most: total.most + 1.0, ..total };
        let what = "the time of the checkpoints, compared with the time of the run".to_owned();
        reported.combined.push(Aggregate { what, formula: Formula::Sum, total, of, slack: 0.0 });
    }
}

/// Returns the record length, which is the ratio of bandwidth and rate. The ratio of their standard
/// deviations is the same as that of their means.
fn record(metric: &JsonNode<'_, '_>) -> Option<Figure> {
    let of = |name: &str| metric.key(name).number();
    let rate = of("train_throughput_stdev_samples_per_second").filter(|rate| *rate > 1e-9)?;
    let moved = of("train_io_stdev_MB_per_second")?;
    let field = format!("{}.train_io_stdev_MB_per_second / train_throughput_stdev", metric.path());
    Some(Figure::exact(moved / rate * MIB, field).widened(1e-9))
}

/// Returns a total over all hosts. If the summary states a value that applies to each host, the
/// total is this value times the number of hosts.
fn data_of_all_hosts(root: &JsonNode<'_, '_>) -> Option<Figure> {
    let each = root.key("data_size_per_host_GB");
    let listed = each.items().next().is_some();
    let hosts = if listed { 1.0 } else { root.key("num_hosts").number().unwrap_or(1.0) };
    (hosts > 0.0).then_some(total(&each)?.scaled(hosts))
}

/// Returns a single value, or the sum of a list that contains one value for each host. A GB is
/// 1024³ bytes.
fn total(at: &JsonNode<'_, '_>) -> Option<Figure> {
    let all: Vec<f64> = at.items().filter_map(|item| item.number()).collect();
    let one = at.number();
    let sum = if all.is_empty() { one? } else { all.iter().sum() };
    (sum > 0.0).then(|| Figure::exact(sum * GIB, at.path()).widened(0.05))
}

/// Checks that every stated host reported a result.
fn hosts(reported: &mut ToolResult, root: &JsonNode<'_, '_>) {
    let Some(stated) = root.key("num_hosts").exact() else { return };
    let listed = root.key("host_cpu_count").items().count();
    if listed > 0 {
        reported.memberships.push(Membership {
            of: "hosts".into(),
            stated,
            found: listed as u64,
            missing: Vec::new(),
            place: "listed in host_cpu_count".into(),
        });
    }
}

/// Adds the epochs, and checks that their total time does not exceed the time of the run.
fn passes(reported: &mut ToolResult, root: &JsonNode<'_, '_>, metric: &JsonNode<'_, '_>) {
    let rates = metric.key("train_throughput_samples_per_second");
    let busy: Vec<Option<Figure>> =
        metric.key("train_au_percentage").items().map(|item| item.float()).collect();
    for (index, rate) in rates.items().enumerate() {
        reported.passes.push(Pass {
            name: format!("epoch {}", index + 1),
            rate_per_s: rate.float(),
            busy_percent: busy.get(index).cloned().flatten(),
            ..Pass::default()
        });
    }
    if let Some(stated) = root.key("epochs").exact().filter(|_| !reported.passes.is_empty()) {
        reported.memberships.push(Membership {
            of: "epochs".into(),
            stated,
            found: reported.passes.len() as u64,
            missing: Vec::new(),
            place: "in train_throughput_samples_per_second".into(),
        });
    }
    let clock = |name: &str| root.key(name).text().and_then(unix_s);
    let (Some(samples), Some(start), Some(end)) = (samples(root), clock("start"), clock("end"))
    else {
        return;
    };
    let times = reported.passes.iter().filter_map(|pass| pass.rate_per_s.as_ref());
    let of: Vec<Figure> = times
        .filter(|rate| rate.value > 0.0)
        .map(|rate| {
            let time = samples / rate.value * NS_PER_S;
            Figure::exact(time, rate.field.clone()).widened(EPOCH_SLACK)
        })
        .collect();
    if !of.is_empty() {
        let elapsed = Figure::exact((end - start) * NS_PER_S, "end - start");
        // The total time of all epochs is at most the elapsed time. In the remaining time, the run
        // starts or writes checkpoints.
        let total = Figure { least: 0.0, ..elapsed };
        let what =
            "the time of all epochs at their rates, compared with the time of the run".to_owned();
        reported.combined.push(Aggregate { what, formula: Formula::Sum, total, of, slack: 0.0 });
    }
}

/// Returns the number of samples in an epoch.
fn samples(root: &JsonNode<'_, '_>) -> Option<f64> {
    let files = root.key("num_files_train").number()?;
    let each = root.key("num_samples_per_file").number()?;
    (files * each > 0.0).then_some(files * each)
}

/// Reads the report on several runs. The mean and the standard deviation in the report are over the
/// listed runs.
#[must_use]
pub fn read_report(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("MLPerf Storage", "MLPerf Storage report", file));
    let overall = root.key("overall");
    let runs = root.key("runs");
    let count = runs.entries().count();
    if let Some(stated) = overall.key("num_benchmark_runs").exact() {
        reported.memberships.push(Membership {
            of: "runs".into(),
            stated,
            found: count as u64,
            missing: Vec::new(),
            place: "below it".into(),
        });
    }
    let mut part = Part { name: "all runs".into(), ..Part::default() };
    let mut operation = Operation::of(Kind::Other("samples".into()));
    for (name, unit) in [("samples_per_second", 1.0), ("MB_per_second", MIB)] {
        let each = |run: JsonNode<'_, '_>| run.key(&format!("train_throughput_{name}")).float();
        let of: Vec<Figure> = runs.entries().filter_map(|(_, run)| each(run)).collect();
        for (word, formula) in [("mean", Formula::Mean), ("stdev", Formula::Stddev)] {
            let total = overall.key(&format!("train_throughput_{word}_{name}")).float();
            if let Some(total) = total.clone().filter(|_| of.len() == count && count > 0) {
                let what = format!("{word} of {name} over all runs");
                reported.combined.push(Aggregate {
                    what,
                    formula,
                    total,
                    of: of.clone(),
                    slack: 1e-6,
                });
            }
            if word == "mean" {
                let list = if unit == 1.0 {
                    &mut operation.rate_per_s
                } else {
                    &mut operation.bandwidth_per_s
                };
                list.extend(total.map(|total| total.scaled(unit)));
            }
        }
    }
    let entry = |name: &str| overall.key(name).shown().map(|value| (name.to_owned(), value));
    reported
        .options
        .extend(["model", "accelerator", "train_num_accelerators"].into_iter().filter_map(entry));
    part.operations.push(operation);
    reported.parts.push(part);
    reported
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::json;

    const SUMMARY: &str = r#"{"num_accelerators": 2, "num_hosts": 1, "host_cpu_count": [8], "num_files_train": 1000,
        "num_samples_per_file": 1, "metric": {"train_au_percentage": [90.0, 94.0], "train_au_mean_percentage": 92.0,
        "train_au_stdev_percentage": 2.0, "train_throughput_samples_per_second": [100.0, 110.0],
        "train_throughput_mean_samples_per_second": 105.0, "train_throughput_stdev_samples_per_second": 5.0,
        "train_io_mean_MB_per_second": 210.0, "train_io_stdev_MB_per_second": 10.0},
        "start": "2024-09-09T12:00:00", "end": "2024-09-09T12:00:30", "epochs": 2}"#;

    fn summary(text: &str) -> ToolResult {
        let (json, _) = json::parse(text).unwrap();
        let root = JsonNode::root(&json);
        assert!(is_summary(&root) && !is_report(&root) && !is_epochs(&root) && !is_rank(&root));
        read_summary(&root, "run/summary.json")
    }

    #[test]
    fn a_summary_has_epochs_and_the_inputs_of_its_means() {
        let reported = summary(SUMMARY);
        assert_eq!(reported.passes.len(), 2);
        assert_eq!(reported.passes[1].busy_percent.as_ref().unwrap().value, 94.0);
        let what: Vec<&str> = reported.combined.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(what.len(), 5, "{what:?}");
        let operation = &reported.parts[0].operations[0];
        assert_eq!(operation.size_bytes.as_ref().unwrap().value, 2.0 * MIB);
        assert_eq!(operation.bandwidth_per_s[0].value, 210.0 * MIB);
    }

    #[test]
    fn epochs_and_ranks_go_to_their_summary() {
        let text = r#"{"1": {"start": "2024-09-09T12:00:00", "block1": {"start": "2024-09-09T12:00:00.00",
            "end": "2024-09-09T12:00:10.00", "duration": "10.00"}, "duration": "10.1"}}"#;
        let (json, _) = json::parse(text).unwrap();
        assert!(is_epochs(&JsonNode::root(&json)));
        let epochs = read_epochs(&JsonNode::root(&json), "run/per_epoch_stats.json");
        let mut results = vec![summary(SUMMARY)];
        let rank = |file: &str| Rank { file: file.into(), ..Rank::default() };
        let ranks = [rank("run/0_output.json"), rank("other/1_output.json")];
        assert_eq!(attach(&mut results, vec![epochs], &ranks), 0);
        let lost: Vec<(&str, f64, u64)> = results[0]
            .memberships
            .iter()
            .map(|m| (m.of.as_str(), m.stated.value, m.found))
            .collect();
        assert_eq!(lost[2..], [("epochs", 2.0, 1), ("ranks", 2.0, 1)]);
        assert_eq!(results[0].passes[0].duration_ns.as_ref().unwrap().value, 10e9);
    }

    #[test]
    fn a_report_aggregates_its_runs() {
        let text = r#"{"overall": {"num_benchmark_runs": 2, "train_throughput_mean_samples_per_second": 15.0,
            "train_throughput_stdev_samples_per_second": 5.0}, "runs": {"a": {"train_throughput_samples_per_second":
            10.0}, "b": {"train_throughput_samples_per_second": 20.0}}}"#;
        let (json, _) = json::parse(text).unwrap();
        assert!(is_report(&JsonNode::root(&json)));
        let reported = read_report(&JsonNode::root(&json), "x");
        assert_eq!(reported.combined.len(), 2);
        assert_eq!(reported.memberships[0].found, 2);
    }

    #[test]
    fn rates_of_epochs_are_the_sums_of_their_ranks() {
        let of = |number: usize, first: f64| {
            let text = format!(
                r#"{{"1": {{"throughput": {{"block1": {first}}}}}, "2": {{"throughput": {{"block1": 55.0}}}}, "hostname": "a"}}"#
            );
            let (json, _) = json::parse(&text).unwrap();
            read_rank(&JsonNode::root(&json), &format!("run/{number}_output.json"))
        };
        let sums = |first: f64| {
            let mut results = vec![summary(SUMMARY)];
            attach(&mut results, Vec::new(), &[of(0, 50.0), of(1, first)]);
            let sums = results.remove(0).combined.into_iter();
            sums.filter(|c| c.what.contains("over all ranks")).collect::<Vec<_>>()
        };
        let found = sums(50.0);
        assert_eq!((found.len(), found[0].total.value, found[1].of.len()), (2, 100.0, 2));
        let of_first: f64 = found[0].of.iter().map(|figure| figure.value).sum();
        assert_eq!(of_first, 100.0);
        assert!(found[0].of[1].field.starts_with("1_output.json 1.throughput"), "{found:?}");
    }

    #[test]
    fn checks_a_report_against_the_summaries_of_its_runs() {
        let text = r#"{"overall": {"num_benchmark_runs": 1, "train_throughput_mean_samples_per_second": 232.0},
            "runs": {"run1": {"train_throughput_samples_per_second": 232.0}}}"#;
        let (json, _) = json::parse(text).unwrap();
        let mut results =
            vec![read_report(&JsonNode::root(&json), "acc/report.json"), summary(SUMMARY)];
        results[1].source.file = "acc/run1/2024/summary.json".into();
        attach(&mut results, Vec::new(), &[]);
        let own = results[0].combined.iter().find(|c| c.what.contains("own summary")).unwrap();
        assert_eq!((own.total.value, own.of[0].value), (232.0, 105.0));
    }
}
