//! Text output of `warp analyze` (warp, MinIO).
//!
//! It contains the average rate of each operation, and the rate in the fastest, median and slowest
//! segment of the run.

use plimsoll_evidence::tool_result::{
    Complaint, Figure, Kind, Operation, Part, SampleStatistics, ToolResult, Weight,
};

use crate::number;
use crate::parts::{Digits, figure, source};

/// Maximum ratio of the mean to the median of all segments. If the ratio is larger, the mean is not
/// the rate of any part of the run.
const MEAN_OVER_MEDIAN_MAX: f64 = 2.0;

/// Returns true if the text is the output of `warp analyze`.
#[must_use]
pub fn is(text: &str) -> bool {
    text.contains("Operation: ") && text.contains("* Average: ") && text.contains(" obj/s")
}

/// Parses `91.20 MiB/s, 93.39 obj/s` as bandwidth and rate.
fn pair(text: &str, line: usize, name: &str) -> (Option<Figure>, Option<Figure>) {
    let place = |unit: &str| format!("line {line} ({name}, {unit})");
    let (mut bandwidth, mut rate) = (None, None);
    for cell in text.split(',').map(str::trim) {
        if let Some(digits) = cell.strip_suffix("obj/s") {
            rate = figure(digits.trim(), Digits::Either, 1.0, place("obj/s"));
        } else if let Some(amount) = cell.strip_suffix("/s") {
            let (digits, unit) = number::split_unit(amount.trim());
            let unit = number::unit(unit.trim()).map(|unit| unit.factor);
            bandwidth = unit.and_then(|f| figure(digits.trim(), Digits::Either, f, place("MiB/s")));
        }
    }
    (bandwidth, rate)
}

/// Reads the output. The result has a part for each kind of operation.
///
/// # Errors
/// The text contains no average rate.
pub fn read(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("warp", "warp text", file));
    let mut median: Option<Figure> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Operation: ") {
            let name = name.split([',', ' ']).next().unwrap_or(name);
            let kind = match name {
                "GET" => Kind::Read,
                "PUT" => Kind::Write,
                other => Kind::Name(other.to_ascii_lowercase()),
            };
            let operations = vec![Operation::of(kind)];
            reported.parts.push(Part { name: name.to_owned(), operations, ..Part::default() });
            median = None;
            continue;
        }
        let Some(part) = reported.parts.last_mut() else { continue };
        let Some((word, rest)) = line.trim_start_matches('*').trim().split_once(':') else {
            continue;
        };
        let name = part.name.clone();
        let Some(operation) = part.operations.first_mut() else { continue };
        let (bandwidth, rate) = pair(rest.trim(), index + 1, word);
        match word {
            "Average" => {
                operation.bandwidth_per_s.extend(bandwidth);
                operation.rate_per_s.extend(rate);
            }
            "Fastest" => operation.bandwidth_sampled.get_or_insert_default().max = bandwidth,
            "Slowest" => operation.bandwidth_sampled.get_or_insert_default().min = bandwidth,
            "50% Median" => median = bandwidth,
            _ => {}
        }
        let mean = operation.bandwidth_per_s.first();
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
        }
    }
    reported.parts.retain(|part| part.operations.iter().any(|o| !o.bandwidth_per_s.is_empty()));
    if reported.parts.is_empty() {
        Err("it contains no average rate of an operation".into())
    } else {
        Ok(reported)
    }
}
