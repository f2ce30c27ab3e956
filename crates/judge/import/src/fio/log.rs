//! Log files that fio writes in addition to a result: `NAME_bw.1.log`, `_iops`, `_lat`, `_clat`,
//! `_slat`, `_clat_hist`.
//!
//! Each line is `time in ms, value, direction, block size or offset …`. Bandwidth is in KiB/s, and
//! latency in ns (before version 3 in us). With `log_avg_msec`, a line contains the mean of the
//! interval that ends at the line's time. Without this option, each line represents one operation.

use plimsoll_evidence::tool_result::{
    Bin, Kind, Latency, Point, Quantity, Series, Stage, ToolResult,
};

use crate::number;

const KIB: f64 = 1024.0;
/// Number of lines that are examined to distinguish a log from a table of numbers.
const LINES_SNIFFED: usize = 20;
/// Maximum number of points that are kept for a log. A longer log is averaged over each second.
const POINTS_MAX: usize = 20_000;
/// Number of bits that select a bin within a histogram octave (`FIO_IO_U_PLAT_BITS`).
const PLAT_BITS: u32 = 6;

/// Quantity of a log, from its file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogQuantity {
    /// `_bw`.
    Bandwidth,
    /// `_iops`.
    Rate,
    /// Latency of a stage: `_lat`, `_clat` or `_slat`.
    Latency(Stage),
    /// `_clat_hist`.
    Histogram,
}

/// A log, and the job to which it belongs according to its file name.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Path of the file.
    pub file: String,
    /// File name without the suffix that fio appends.
    pub stem: String,
    /// Quantity in the log, or `None` if the file name does not state it.
    pub what: Option<LogQuantity>,
    /// Number of the job, from 1, or `None` if all jobs write to the same log.
    pub job: Option<usize>,
    /// Time, value and direction of each line. The list is empty for histograms.
    lines: Vec<Line>,
    /// Histogram of each direction, which is the sum over all intervals.
    bins: [Vec<f64>; 3],
    /// True if a time in the file is earlier than the time before it. Several runs then wrote to
    /// this file.
    pub several_runs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    ms: f64,
    value: f64,
    direction: u8,
}

/// Returns true if the first lines are lines of a log.
#[must_use]
pub fn is(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    let mut seen = 0;
    while let Some(line) = lines.next() {
        // The last line may be truncated.
        if lines.peek().is_none() && seen > 0 || seen >= LINES_SNIFFED {
            break;
        }
        if split(line).is_none() {
            return false;
        }
        seen += 1;
    }
    seen > 0
}

fn split(line: &str) -> Option<(Line, std::str::Split<'_, char>)> {
    let mut cells = line.split(',');
    let mut next = || number::plain(cells.next()?.trim()).map(|number| number.value);
    let (ms, value, direction) = (next()?, next()?, next()?);
    let fourth = next().is_some();
    let is_direction = direction == 0.0 || direction == 1.0 || direction == 2.0;
    let sane = ms >= 0.0 && value >= 0.0 && ms.fract() == 0.0 && value.fract() == 0.0;
    (fourth && is_direction && sane)
        .then(|| (Line { ms, value, direction: direction as u8 }, line.split(',')))
}

/// Reads a log. Invalid lines are skipped, because the last line may be truncated. The caller
/// detects missing points.
#[must_use]
pub fn read(text: &str, file: &str) -> Log {
    let name = file.rsplit('/').next().unwrap_or(file);
    let (stem, what, job) = named(name);
    let mut log = Log {
        file: file.to_owned(),
        stem,
        what,
        job,
        lines: Vec::new(),
        bins: [Vec::new(), Vec::new(), Vec::new()],
        several_runs: false,
    };
    for line in text.lines() {
        // The second column of a histogram is the direction.
        if what == Some(LogQuantity::Histogram) {
            log.take_bins(line);
            continue;
        }
        let Some((line, _)) = split(line) else { continue };
        let goes_back = log.lines.last().is_some_and(|last| line.ms + 1000.0 < last.ms);
        log.several_runs |= goes_back;
        log.lines.push(line);
    }
    log
}

/// Parses the file name of a log. For example, `randread-1-16_bw.3.log` contains the bandwidth of
/// job 3 of `randread-1-16`.
fn named(name: &str) -> (String, Option<LogQuantity>, Option<usize>) {
    let name = name.strip_suffix(".log").unwrap_or(name);
    let (name, job) = match name.rsplit_once('.') {
        Some((rest, number)) if number.parse::<usize>().is_ok() => (rest, number.parse().ok()),
        _ => (name, None),
    };
    let ends = [
        ("_clat_hist", LogQuantity::Histogram),
        ("_bw", LogQuantity::Bandwidth),
        ("_iops", LogQuantity::Rate),
        ("_slat", LogQuantity::Latency(Stage::Submission)),
        ("_clat", LogQuantity::Latency(Stage::Completion)),
        ("_lat", LogQuantity::Latency(Stage::Total)),
    ];
    for (end, what) in ends {
        if let Some(stem) = name.strip_suffix(end) {
            return (stem.to_owned(), Some(what), job);
        }
    }
    (name.to_owned(), None, job)
}

impl Log {
    fn take_bins(&mut self, line: &str) {
        let cells: Option<Vec<f64>> = line
            .split(',')
            .map(|cell| number::plain(cell.trim()).map(|number| number.value))
            .collect();
        let Some(cells) = cells.filter(|cells| cells.len() > 4) else { return };
        let Some(bins) = self.bins.get_mut(cells[1] as usize) else { return };
        bins.resize(bins.len().max(cells.len() - 3), 0.0);
        for (sum, count) in bins.iter_mut().zip(&cells[3..]) {
            *sum += count;
        }
    }

    /// Returns a series for each direction in the log. `interval_ms` is the interval in the job's
    /// options. `version` determines the unit of latencies.
    #[must_use]
    pub fn series(&self, interval_ms: Option<f64>, version: Option<&str>) -> Vec<Series> {
        let (quantity, stage, unit) = match self.what {
            Some(LogQuantity::Bandwidth) => (Quantity::BandwidthPerS, Stage::Total, KIB),
            Some(LogQuantity::Rate) => (Quantity::RatePerS, Stage::Total, 1.0),
            Some(LogQuantity::Latency(stage)) => {
                let old = version
                    .is_some_and(|version| version.contains("fio-2") || version.contains("fio-1"));
                (Quantity::LatencyNs, stage, if old { 1e3 } else { 1.0 })
            }
            Some(LogQuantity::Histogram) | None => return Vec::new(),
        };
        let directions = [Kind::Read, Kind::Write, Kind::Trim];
        let mut all = Vec::new();
        for (direction, kind) in directions.into_iter().enumerate() {
            let of = self.lines.iter().filter(|line| usize::from(line.direction) == direction);
            let points: Vec<Point> =
                of.map(|line| Point { at_s: line.ms / 1e3, value: line.value * unit }).collect();
            if points.is_empty() {
                continue;
            }
            let interval_s = interval_ms
                .map(|ms| ms / 1e3)
                .filter(|s| *s > 0.0)
                .or_else(|| regular_interval(&points));
            all.push(Series {
                quantity,
                kind,
                stage,
                field: self.file.clone(),
                interval_s,
                points: average_by_second(points),
                partial: false,
                // fio divides the amount of an interval by the time since a mark. The mark is
                // earlier than the previous sample: `__add_samples` advances it by the length of an
                // interval, and not to the time of the sample.
                understates: self.what != Some(LogQuantity::Latency(stage)),
            });
        }
        all
    }

    fn histogram(&self, direction: usize, version: Option<&str>) -> Vec<Bin> {
        let counts = &self.bins[direction];
        let old = version.is_some_and(|version| version.contains("fio-2"));
        let unit = if old { 1e3 } else { 1.0 };
        // A histogram has 29 groups of 64 bins, or 19 groups before version 3. If a histogram has
        // fewer bins, fio merged pairs of bins.
        let full = if old { 19 } else { 29 } << PLAT_BITS;
        let merged =
            (full as f64 / counts.len().max(1) as f64).log2().round().exp2().max(1.0) as usize;
        let bin = |(index, count): (usize, &f64)| {
            let from = value_of(index * merged) * unit;
            let to = value_of((index + 1) * merged) * unit;
            (*count > 0.0).then_some(Bin { from_ns: from, to_ns: to, count: *count })
        };
        counts.iter().enumerate().filter_map(bin).collect()
    }
}

/// Returns the lower bound of a bin. fio's `plat_idx_to_val` returns the middle, which is half a
/// bin higher.
fn value_of(index: usize) -> f64 {
    let per_octave = 1usize << PLAT_BITS;
    if index < per_octave * 2 {
        return index as f64;
    }
    let error_bits = (index >> PLAT_BITS) - 1;
    let base = 1u64 << (error_bits as u32 + PLAT_BITS).min(62);
    let step = (index % per_octave) as u64;
    base as f64 + step as f64 * (error_bits as f64).exp2()
}

/// Returns the interval between the times in a log if these are regular.
fn regular_interval(points: &[Point]) -> Option<f64> {
    let mut gaps: Vec<f64> = points.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
    gaps.sort_by(f64::total_cmp);
    let median = *gaps.get(gaps.len() / 2)?;
    let near = gaps.iter().filter(|gap| (**gap - median).abs() <= median * 0.2).count();
    (median > 0.0 && near * 10 >= gaps.len() * 9).then_some(median)
}

/// Replaces the points of a long log with the means over each second.
fn average_by_second(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let mut seconds: std::collections::BTreeMap<u64, (f64, f64)> =
        std::collections::BTreeMap::new();
    for point in points {
        let (sum, count) = seconds.entry(point.at_s as u64).or_default();
        *sum += point.value;
        *count += 1.0;
    }
    let point = |(second, (sum, count)): (u64, (f64, f64))| Point {
        at_s: second as f64 + 1.0,
        value: sum / count,
    };
    seconds.into_iter().map(point).collect()
}

/// Attaches each log to the result in the same directory whose options contain the name of the log.
/// Returns the logs that belong to no result.
#[must_use]
pub fn attach(results: &mut [ToolResult], logs: Vec<Log>) -> Vec<Log> {
    let mut by_directory: std::collections::BTreeMap<String, Vec<usize>> =
        std::collections::BTreeMap::new();
    let of_fio = |result: &&ToolResult| result.source.tool == "fio";
    for (index, result) in results.iter().enumerate().filter(|(_, result)| of_fio(result)) {
        // The logs of `randread.out` are usually in the same directory, or in `randread`.
        let file = &result.source.file;
        let own = file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem);
        for place in [directory(file), own] {
            by_directory.entry(place.to_owned()).or_default().push(index);
        }
    }
    let mut left = Vec::new();
    for log in logs {
        let near = by_directory.get(directory(&log.file)).map_or(&[][..], Vec::as_slice);
        let owner = near.iter().find(|index| names(&results[**index], &log));
        let of_text =
            || near.iter().find_map(|index| Some((index, named_part(&results[*index], &log)?)));
        match owner {
            Some(index) if !log.several_runs => put(&mut results[*index], &log, None),
            None if !log.several_runs => match of_text() {
                Some((index, part)) => put(&mut results[*index], &log, Some(part)),
                None => left.push(log),
            },
            _ => left.push(log),
        }
    }
    left
}

/// Derives the job of a log from its file name. This is used for fio's text output, which does not
/// list the logs. For example, `randread-SDA_bw.log` in the directory of `randread.out` belongs to
/// the job `SDA`.
fn named_part(result: &ToolResult, log: &Log) -> Option<usize> {
    const OPTIONS: [&str; 4] =
        ["write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log"];
    if result.source.format != "fio text"
        || OPTIONS.iter().any(|option| result.options.contains_key(*option))
    {
        return None;
    }
    let file = result.source.file.rsplit('/').next().unwrap_or_default();
    let own = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let stem = log.stem.as_str();
    let rest = stem.strip_prefix(own).map(|rest| rest.trim_start_matches(['-', '_', '.']));
    let mut of_name = result
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.name == stem || rest == Some(part.name.as_str()));
    let (index, part) = of_name.next()?;
    // If a part combines several jobs, each job has a log, or one log contains the lines of all
    // jobs.
    let alone = part.setting.threads.as_ref().is_some_and(|jobs| jobs.value == 1.0);
    let first = log.job.is_none_or(|job| job == index + 1 || result.parts.len() == 1);
    (alone && first && of_name.next().is_none()).then_some(index)
}

fn directory(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn names(result: &ToolResult, log: &Log) -> bool {
    let option = match log.what {
        Some(LogQuantity::Bandwidth) => "write_bw_log",
        Some(LogQuantity::Rate) => "write_iops_log",
        Some(LogQuantity::Latency(_)) => "write_lat_log",
        Some(LogQuantity::Histogram) => "write_hist_log",
        None => return false,
    };
    let Some(value) = result.options.get(option) else { return false };
    let stem = value.rsplit('/').next().unwrap_or(value);
    if stem.is_empty() {
        return result.parts.iter().any(|part| part.name == log.stem);
    }
    stem == log.stem
}

fn put(result: &mut ToolResult, log: &Log, named: Option<usize>) {
    let interval = result.options.get("log_avg_msec").and_then(|text| text.parse::<f64>().ok());
    let version = result.source.version.clone();
    let parts = result.parts.len();
    // A log with the lines of all jobs is attached only if the result has a single part.
    let index = match (named, log.job) {
        (Some(index), _) => index,
        (None, Some(job)) if parts > 1 => job - 1.min(job),
        (None, None) if parts > 1 => return,
        _ => 0,
    };
    let Some(part) = result.parts.get_mut(index) else { return };
    part.series.extend(log.series(interval, version.as_deref()));
    if log.what == Some(LogQuantity::Histogram) {
        for (direction, kind) in [Kind::Read, Kind::Write, Kind::Trim].iter().enumerate() {
            let bins = log.histogram(direction, version.as_deref());
            let operation = part.operations.iter_mut().find(|operation| operation.kind == *kind);
            let latency: Option<&mut Latency> = operation.and_then(|operation| {
                operation.latencies.iter_mut().find(|l| l.stage == Stage::Completion)
            });
            if let Some(latency) = latency.filter(|latency| latency.bins.is_empty()) {
                latency.bins = bins;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::{Figure, Part, Source};

    use super::*;

    #[test]
    fn distinguishes_a_log_from_other_numbers() {
        assert!(is("999, 104972, 1, 0, 0\n2000, 92887, 1, 0"));
        assert!(is("1,2,0,4096\n"));
        for text in ["", "a,b,c,d", "1,2,3,4", "1.5,2,0,4096", "1,2,0", "# x\n1,2,0,4096"] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn derives_the_quantity_of_a_log_from_its_name() {
        assert_eq!(named("r-1_bw.3.log"), ("r-1".into(), Some(LogQuantity::Bandwidth), Some(3)));
        assert_eq!(named("d_clat_hist.log"), ("d".into(), Some(LogQuantity::Histogram), None));
        assert_eq!(named("x_lat"), ("x".into(), Some(LogQuantity::Latency(Stage::Total)), None));
        assert_eq!(named("other.log"), ("other".into(), None, None));
    }

    #[test]
    fn bins_have_the_values_that_fio_gives_them() {
        // Middle values of fio's bins, from `plat_idx_to_val` of version 3.33.
        for (index, middle) in
            [(0, 0.0), (63, 63.0), (128, 129.0), (200, 290.0), (1000, 1_712_128.0)]
        {
            let (from, to) = (value_of(index), value_of(index + 1));
            assert!(from <= middle && middle <= to, "{index}: {from} {middle} {to}");
        }
    }

    #[test]
    fn attaches_a_log_to_the_result_that_names_it() {
        let mut result = ToolResult::new(Source {
            tool: "fio".into(),
            version: Some("fio-3.33".into()),
            file: "dir/r.json".into(),
            ..Source::default()
        });
        result.parts = vec![Part::default(), Part::default()];
        result.options.insert("write_bw_log".into(), "/tmp/x/r-1".into());
        result.options.insert("log_avg_msec".into(), "1000".into());
        let text = "1000, 100, 0, 0\n2000, 120, 0, 0\n2000, 7, 1, 0\n";
        let logs =
            ["dir/r-1_bw.2.log", "dir/r-2_bw.1.log", "other/r-1_bw.1.log"].map(|f| read(text, f));
        let mut results = [result];
        let left = attach(&mut results, logs.to_vec());
        assert_eq!(left.len(), 2);
        assert!(results[0].parts[0].series.is_empty());
        let series = &results[0].parts[1].series;
        assert_eq!(series.len(), 2);
        assert_eq!((series[0].interval_s, series[0].points[1].value), (Some(1.0), 120.0 * 1024.0));
    }

    #[test]
    fn attaches_a_log_to_the_job_in_its_name() {
        let part = |name: &str, jobs: f64| {
            let mut part = Part { name: name.into(), ..Part::default() };
            part.setting.threads = Some(Figure::exact(jobs, "jobs"));
            part
        };
        let mut result = ToolResult::new(Source {
            tool: "fio".into(),
            format: "fio text".into(),
            version: Some("fio-3.33".into()),
            file: "hdd/read-1M.out".into(),
            ..Source::default()
        });
        result.parts = vec![part("SDA", 1.0), part("SDB", 1.0), part("four", 4.0)];
        let text = "510, 100, 0, 0\n1017, 120, 0, 0\n1520, 110, 0, 0\n";
        let files = [
            "hdd/read-1M/read-1M-SDB_bw.log",
            "hdd/SDA_iops.log",
            "hdd/read-1M-four_bw.1.log",
            "hdd/x_bw.log",
        ];
        let mut results = [result];
        let left = attach(&mut results, files.map(|file| read(text, file)).to_vec());
        let left: Vec<&str> = left.iter().map(|log| log.file.as_str()).collect();
        assert_eq!(left, files[2..]);
        let counts: Vec<usize> = results[0].parts.iter().map(|part| part.series.len()).collect();
        assert_eq!(counts, [1, 1, 0]);
    }
}
