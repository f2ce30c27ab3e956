//! Text output of warp and of `warp analyze` (MinIO).
//!
//! It contains the average rate of each operation, and the rate in the fastest, median and slowest
//! segment of the run. Since version 1.0, it also contains latencies. They are extremes of all
//! requests, but the mean, deviation and percentiles are means over the segments, regardless of the
//! number of requests in them (`StringByN` in warp's `pkg/aggregate/requests.go`).

use plimsoll_evidence::tool_result::{
    Complaint, Figure, Latency, Operation, Part, SampleStatistics, Stage, ToolResult, Weight,
};

use crate::parts::{Digits, figure, latency, percentile, source};
use crate::{number, runs, warp};

/// Maximum ratio of the mean to the median of all segments. If the ratio is larger, the mean is not
/// the rate of any part of the run.
const MEAN_OVER_MEDIAN_MAX: f64 = 2.0;

/// Returns true if the text is the output of warp.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| heading(line.trim()).is_some())
        && text.contains("* Average: ")
        && [" obj/s", " ops/s"].iter().any(|unit| text.contains(unit))
}

/// Returns the operation that a line announces: `Operation: PUT`, or, since version 1.0, `Report:
/// PUT. Concurrency: 20. Ran: 1m2s`.
fn heading(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("Operation: ").or_else(|| line.strip_prefix("Report: "))?;
    rest.split([',', ' ', '.']).next().filter(|name| !name.is_empty())
}

/// Parses `91.20 MiB/s, 93.39 obj/s` as bandwidth and rate. The number of errors and the time may
/// follow.
fn pair(text: &str, line: usize, name: &str) -> (Option<Figure>, Option<Figure>) {
    let place = |unit: &str| format!("line {line} ({name}, {unit})");
    let (mut bandwidth, mut rate) = (None, None);
    for cell in text.split([',', '(']).map(str::trim) {
        if let Some((digits, unit)) =
            ["obj/s", "ops/s"].iter().find_map(|unit| Some((cell.strip_suffix(unit)?, unit)))
        {
            rate = figure(digits.trim(), Digits::Either, 1.0, place(unit));
        } else if let Some(amount) = cell.strip_suffix("/s") {
            let (digits, unit) = number::split_unit(amount.trim());
            let unit = number::unit(unit.trim()).map(|unit| unit.factor);
            bandwidth = unit.and_then(|f| figure(digits.trim(), Digits::Either, f, place("MiB/s")));
        }
    }
    (bandwidth, rate)
}

/// Parses `Avg: 1147.0ms, 50%: 1100.7ms, 99%: 2.66s, Fastest: 48.6ms, Slowest: 5431.3ms, StdDev:
/// 528.4ms`.
fn requests(text: &str, line: usize) -> Option<Latency> {
    latency(Stage::Total, |latency| {
        latency.sampled = true;
        for (name, value) in text.split(',').filter_map(|cell| cell.trim().split_once(": ")) {
            let (digits, unit) = number::split_unit(value.trim());
            let unit = number::unit(unit).filter(|unit| unit.measure == number::Measure::Time);
            let place = format!("line {line} (Reqs, {name})");
            let time = unit.and_then(|unit| figure(digits, Digits::Either, unit.factor, place));
            match (name, name.strip_suffix('%').and_then(|digits| digits.parse().ok())) {
                ("Avg", _) => latency.mean_ns = time,
                ("Fastest", _) => latency.min_ns = time,
                ("Slowest", _) => latency.max_ns = time,
                ("StdDev", _) => latency.stddev_ns = time,
                (_, Some(percent)) => latency.percentiles.extend(percentile(percent, time)),
                _ => {}
            }
        }
    })
}

/// Reads the output of all runs in a text. An operation that occurs again belongs to another run.
///
/// # Errors
/// The text contains no average rate.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut seen: Vec<String> = Vec::new();
    let begins = |line: &str| {
        let Some(name) = heading(line.trim()).map(str::to_owned) else { return false };
        let begins = seen.is_empty() || seen.contains(&name);
        if begins {
            seen.clear();
        }
        seen.push(name);
        begins
    };
    runs::read_each(text, begins, |text| one(text, file))
}

/// Reads the output of a run. The result has a part for each kind of operation.
fn one(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("warp", "warp text", file));
    let mut median: Option<Figure> = None;
    // Lists of hosts, clients and sizes follow the figures of an operation.
    let mut whole = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = heading(line) {
            let operations = vec![Operation::of(warp::kind(name))];
            reported.parts.push(Part { name: name.to_owned(), operations, ..Part::default() });
            (median, whole) = (None, true);
            continue;
        }
        let Some(part) = reported.parts.last_mut() else { continue };
        let Some((word, rest)) = line.trim_start_matches('*').trim().split_once(':') else {
            whole &= !line.starts_with("Request size ");
            continue;
        };
        whole &= !line.starts_with("Throughput by ") && !line.starts_with("Request size ");
        let name = part.name.clone();
        let Some(operation) = part.operations.first_mut() else { continue };
        let (bandwidth, rate) = pair(rest.trim(), index + 1, word);
        // Operations without data have only rates.
        let (sampled, segment) = match bandwidth.is_some() {
            true => (&mut operation.bandwidth_sampled, bandwidth.clone()),
            false => (&mut operation.rate_sampled, rate.clone()),
        };
        match word {
            "Average" => {
                operation.bandwidth_per_s.extend(bandwidth);
                operation.rate_per_s.extend(rate);
            }
            "Fastest" => sampled.get_or_insert_default().max = segment,
            "Slowest" => sampled.get_or_insert_default().min = segment,
            "50% Median" => median = segment,
            "Reqs" if whole => operation.latencies.extend(requests(rest, index + 1)),
            _ => {}
        }
        let mean = operation.bandwidth_per_s.first().or(operation.rate_per_s.first());
        if let Some((mean, middle)) = mean.zip(median.take().as_ref())
            && mean.value > middle.value * MEAN_OVER_MEDIAN_MAX
        {
            reported.complaints.push(Complaint {
                weight: Weight::Invalid,
                says: format!(
                    "{name}: the mean of all segments is {:.1} times their median, so a few \
                     segments dominate the mean",
                    mean.value / middle.value
                ),
                field: middle.field.clone(),
            });
        }
    }
    for part in &mut reported.parts {
        for operation in &mut part.operations {
            let bare = |sampled: &SampleStatistics| sampled.max.is_none();
            operation.bandwidth_sampled = operation.bandwidth_sampled.take().filter(|s| !bare(s));
            operation.rate_sampled = operation.rate_sampled.take().filter(|s| !bare(s));
        }
    }
    let stated = |o: &Operation| !o.bandwidth_per_s.is_empty() || !o.rate_per_s.is_empty();
    reported.parts.retain(|part| part.operations.iter().any(stated));
    if reported.parts.is_empty() {
        Err("it contains no average rate of an operation".into())
    } else {
        Ok(reported)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::Kind;

    use super::*;

    // The layout of `LiveAggregate.Report` of warp 1.0, with invented figures.
    const REPORT: &str = "Report: PUT. Concurrency: 512. Ran: 1m2s\n * Average: 473.72 MiB/s, 496.73 obj/s, 3 errors (62s)\n * \
        Reqs: Avg: 1147.0ms, 50%: 1100.7ms, 90%: 1835.5ms, 99%: 2.661s, Fastest: 48.6ms, Slowest: 5431.3ms, StdDev: 528.4ms\n\n\
        Throughput by client:\nClient 1 throughput: 62.84 MiB/s, 65.89 obj/s\n * Reqs: Avg: 1.0ms, Slowest: 2.0ms\n\n\
        Throughput, split into 58 x 1s:\n * Fastest: 844.6MiB/s, 885.67 obj/s\n * 50% Median: 486.1MiB/s, 509.74 obj/s\n * \
        Slowest: 281.6MiB/s, 295.25 obj/s\n";

    #[test]
    fn a_report_of_warp_1_is_read() {
        assert!(is(REPORT));
        let put = &read(REPORT, "x").unwrap()[0].parts[0].operations[0];
        assert_eq!((put.kind.clone(), put.rate_per_s[0].value), (Kind::Write, 496.73));
        assert_eq!(
            put.bandwidth_sampled.as_ref().unwrap().max.as_ref().unwrap().value,
            844.6 * 1_048_576.0
        );
        let [latency] = &put.latencies[..] else { panic!("{:?}", put.latencies) };
        assert_eq!(latency.max_ns.as_ref().unwrap().value, 5431.3e6);
        assert_eq!(latency.percentiles.len(), 3);
        assert_eq!(latency.percentiles[2].ns.value, 2.661e9);
        // The mean is not weighted, so it does not determine the number in flight: 570, not 512.
        assert!(latency.sampled);
        let other = REPORT.replace("PUT", "GET");
        let runs = read(&format!("{REPORT}{other}{REPORT}"), "x").unwrap();
        assert_eq!(runs.iter().map(|run| run.parts.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn operations_without_data_have_a_rate() {
        let text = "Operation: RETENTION\n* Average: 169.50 obj/s\n\nThroughput, split into 59 x 1s:\n * Fastest: 203.45 \
            obj/s\n * 50% Median: 169.45 obj/s\n * Slowest: 161.73 obj/s\n";
        assert!(is(text));
        let operation = &read(text, "x").unwrap()[0].parts[0].operations[0];
        assert_eq!(operation.rate_per_s[0].value, 169.5);
        assert_eq!(operation.rate_sampled.as_ref().unwrap().min.as_ref().unwrap().value, 161.73);
        assert!(operation.bandwidth_sampled.is_none());
    }
}
