//! Results of vdbench (Oracle). They are in the flat file, in `summary.html` and `totals.html`, and
//! in the terminal output.
//!
//! Each form has a line for each measured interval, and a line with averages (`avg_2-5`). Times are
//! in ms. Bandwidth is in MiB/s, or in MB/s (1000²) if the heading states this. All numbers are
//! rounded. In summaries of file system runs, numbers that are too wide for their column are then
//! truncated (`fitIt` in vdbench's `Format.java`).

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Aggregate, Figure, Formula, Kind, Operation, Part, Point, Quantity, Series, Stage, ToolResult,
};

use crate::parts::{Digits, figure, latency, source};

const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_MS: f64 = 1e6;
const DAY_S: f64 = 86_400.0;
/// Maximum relative deviation of averages from the mean over the intervals. They differ because the
/// lengths of the intervals vary.
const AVERAGE_SLACK: f64 = 0.02;
/// Maximum relative deviation of the mean response time from the mean over the intervals. A slow
/// interval is often also a long one, so the lengths matter more than for rates.
const RESPONSE_SLACK: f64 = 0.1;
/// Maximum relative deviation of the queue depth from rate × response time, apart from the
/// operations at both ends of the run.
const QUEUE_SLACK: f64 = 0.05;

/// Returns true if the text contains the heading of the flat file.
#[must_use]
pub fn is_flat(text: &str) -> bool {
    text.lines().any(|line| flat_header(line).is_some())
}

/// Returns true if the text contains the headings of a summary.
#[must_use]
pub fn is_summary(text: &str) -> bool {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if lines.peek().is_some_and(|below| summary_header(line, below).is_some()) {
            return true;
        }
    }
    false
}

/// Returns the column names in lower case. Since version 5.04.07, the names for file system runs
/// are in capitals.
fn flat_header(line: &str) -> Option<Vec<String>> {
    let names: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let has = |name: &str| names.iter().any(|other| other == name);
    let fits = names.first().is_some_and(|name| name == "tod")
        && has("interval")
        && has("rate")
        && has("resp");
    fits.then_some(names)
}

/// First columns of a file system run, in their order. The columns for single operations follow.
const FILE_SYSTEM: [&str; 13] = [
    "i/o rate",
    "resp time",
    "cpu total",
    "cpu sys",
    "read pct",
    "read rate",
    "read resp",
    "write rate",
    "write resp",
    "mb read",
    "mb write",
    "MB/sec 1024**2",
    "bytes i/o",
];

/// Returns the column names from two heading lines. Each line contains a word for each column
/// except the interval.
fn summary_header(line: &str, below: &str) -> Option<Vec<String>> {
    let lower: Vec<&str> = below.split_whitespace().collect();
    if line.contains(".Interval.") && line.contains(".ReqstdOps.") {
        let known = FILE_SYSTEM.iter().map(|name| (*name).to_owned());
        let fits = lower.starts_with(&["rate", "resp"]) && lower.len() >= FILE_SYSTEM.len();
        let rest = lower.len().saturating_sub(FILE_SYSTEM.len());
        return fits.then(|| known.chain((0..rest).map(|_| String::new())).collect());
    }
    let upper = line.split_once("interval")?.1;
    let upper: Vec<&str> = upper.split_whitespace().collect();
    let fits = upper.first() == Some(&"i/o") && lower.first() == Some(&"rate");
    (fits && upper.len() == lower.len())
        .then(|| upper.iter().zip(&lower).map(|(a, b)| format!("{a} {b}")).collect())
}

/// Names of columns, each in the flat file and in a summary.
const NAMES: &[(&str, &str)] = &[
    ("rate", "i/o rate"),
    ("mb/sec", "MB/sec 1024**2"),
    ("bytes/io", "bytes i/o"),
    ("read_rate", "read rate"),
    ("write_rate", "write rate"),
    ("mb_read", "mb read"),
    ("mb_write", "mb write"),
    ("read%", "read pct"),
    ("resp", "resp time"),
    ("read_resp", "read resp"),
    ("write_resp", "write resp"),
    ("resp_max", "resp max"),
    ("read_max", "read max"),
    ("write_max", "write max"),
    ("resp_std", "resp stddev"),
    ("queue_depth", "queue depth"),
];

/// Line of figures.
struct Row<'t> {
    /// Time of day, in s.
    at_s: f64,
    /// Number of the interval, such as `3`, or the range of an average, such as `avg_2-5`.
    interval: &'t str,
    cells: BTreeMap<String, &'t str>,
    line: usize,
    /// Number of bytes in a unit of bandwidth.
    mega: f64,
    /// Method by which vdbench reduced the numbers.
    digits: Digits,
}

impl Row<'_> {
    /// Parses a number. Returns `None` for `n/a` and `NaN`.
    fn figure(&self, name: &str, unit: f64) -> Option<Figure> {
        let text = self.cells.get(name)?;
        figure(text, self.digits, unit, format!("line {} ({name})", self.line))
    }

    /// Returns the first and last interval of an average.
    fn average(&self) -> Option<(u64, u64)> {
        let (from, to) = self.interval.strip_prefix("avg_")?.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    }
}

fn time_of_day_s(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let mut next = || parts.next()?.parse::<f64>().ok();
    Some(next()? * 3600.0 + next()? * 60.0 + next()?)
}

/// Reads the flat file, and returns a result for each run.
///
/// # Errors
/// The file contains no run.
pub fn read_flat(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut runs: Vec<(String, Vec<Row<'_>>)> = Vec::new();
    let mut header: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(names) = flat_header(line) {
            header = names;
            continue;
        }
        let values: Vec<&str> = line.split_whitespace().collect();
        if header.is_empty() || values.len() != header.len() {
            continue;
        }
        let cells: BTreeMap<String, &str> = header.iter().cloned().zip(values).collect();
        let Some(at_s) = cells.get("tod").and_then(|text| time_of_day_s(text)) else { continue };
        let run = cells.get("run").copied().unwrap_or_default();
        let interval = cells.get("interval").copied().unwrap_or_default();
        let row =
            Row { at_s, interval, cells, line: index + 1, mega: MIB, digits: Digits::Rounded };
        match runs.last_mut().filter(|(name, _)| name == run) {
            Some((_, rows)) => rows.push(row),
            None => runs.push((run.to_owned(), vec![row])),
        }
    }
    results(runs, "vdbench flat file", file)
}

/// Reads a summary, and returns a result for each run.
///
/// # Errors
/// The text contains no run.
pub fn read_summary(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut runs: Vec<(String, Vec<Row<'_>>)> = Vec::new();
    let mut header: Vec<String> = Vec::new();
    let mut name = String::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some((_, rest)) = line.split_once("Starting RD=") {
            let plain = rest.split('<').next().unwrap_or(rest);
            name = plain.split(';').next().unwrap_or(plain).trim().to_owned();
            let loops = plain.split_once("For loops: ").map_or("", |(_, loops)| loops.trim());
            if !matches!(loops, "" | "None") {
                name.push_str(&format!(" ({loops})"));
            }
            runs.push((name.clone(), Vec::new()));
        }
        if let Some(names) = lines.get(index + 1).and_then(|below| summary_header(line, below)) {
            header = names;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if header.is_empty() || words.len() != header.len() + 2 {
            continue;
        }
        let Some(at_s) = time_of_day_s(words[0]) else { continue };
        let mut cells = BTreeMap::new();
        for (column, value) in header.iter().zip(&words[2..]) {
            let same = |summary: &str| {
                summary == column || summary.starts_with("MB/sec") && column.starts_with("MB/sec")
            };
            if let Some((name, _)) = NAMES.iter().find(|(_, summary)| same(summary)) {
                cells.entry((*name).to_owned()).or_insert(*value);
            }
        }
        let mega = if header.iter().any(|name| name == "MB/sec 1000**2") { 1e6 } else { MIB };
        let of_files = header.iter().zip(FILE_SYSTEM).all(|(name, known)| name == known);
        let digits = if of_files { Digits::Either } else { Digits::Rounded };
        let row = Row { at_s, interval: words[1], cells, line: index + 1, mega, digits };
        match runs.last_mut() {
            Some((_, rows)) => rows.push(row),
            None => runs.push((name.clone(), vec![row])),
        }
    }
    results(runs, "vdbench summary", file)
}

fn results(
    runs: Vec<(String, Vec<Row<'_>>)>,
    format: &str,
    file: &str,
) -> Result<Vec<ToolResult>, String> {
    let several = runs.iter().filter(|(_, rows)| !rows.is_empty()).count() > 1;
    let mut all = Vec::new();
    for (index, (name, rows)) in runs.iter().enumerate() {
        let Some(reported) = result(name, rows, format, file) else { continue };
        // Runs with the same name, which a loop creates, are distinguished by a number.
        let twice = runs.iter().filter(|(other, _)| other == name).count() > 1;
        let place = if twice { format!("{name} #{}", index + 1) } else { name.clone() };
        let place = (several && !place.is_empty()).then_some(place);
        all.push(ToolResult {
            source: plimsoll_evidence::tool_result::Source { place, ..reported.source },
            ..reported
        });
    }
    if all.is_empty() { Err("it contains no interval of a vdbench run".into()) } else { Ok(all) }
}

fn result(name: &str, rows: &[Row<'_>], format: &str, file: &str) -> Option<ToolResult> {
    let intervals: Vec<&Row<'_>> =
        rows.iter().filter(|row| row.interval.parse::<u64>().is_ok()).collect();
    let average = rows.iter().rev().find(|row| row.average().is_some());
    let stated = average.or(if let [only] = intervals[..] { Some(only) } else { None });
    if stated.is_none() && intervals.is_empty() {
        return None;
    }
    let mut reported = ToolResult::new(source("vdbench", format, file));
    let mut part = Part { name: name.to_owned(), ..Part::default() };
    let starts = times(&intervals);
    let length_s = starts.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::max);
    if let Some(row) = stated {
        part.operations = operations(row);
        if let (Some((from, to)), Some(length_s)) = (row.average(), length_s) {
            let seconds = to.saturating_sub(from).saturating_add(1) as f64 * length_s;
            let field = format!("line {} (Interval)", row.line);
            part.window_ns = Some(Figure::exact(seconds * 1e9, field).widened(0.1));
        }
        reported.combined = combined(row, &intervals);
        if let Some((longest, window)) = longest(row).zip(part.window_ns.as_ref()) {
            // Operations that are still in flight at the end have no response time. They may last
            // as long as the intervals in which no operation completed.
            let idle = |row: &&&Row<'_>| row.figure("rate", 1.0).is_none_or(|r| r.value <= 0.0);
            let idle = intervals.iter().filter(idle).count() as f64 / intervals.len() as f64;
            reported.combined.extend(queue_depth(row, longest.most / window.least + idle));
        }
    } else {
        reported
            .remarks
            .push("the output contains no line with averages, so the run did not finish".into());
    }
    part.series = series(&intervals, &starts, length_s);
    reported.parts.push(part);
    Some(reported)
}

/// Returns the seconds since the end of the first interval. The run may extend past midnight.
fn times(intervals: &[&Row<'_>]) -> Vec<f64> {
    let mut days = 0.0;
    let mut last = f64::NEG_INFINITY;
    let first = intervals.first().map_or(0.0, |row| row.at_s);
    let one = |row: &&Row<'_>| {
        if row.at_s < last {
            days += DAY_S;
        }
        last = row.at_s;
        row.at_s + days - first
    };
    intervals.iter().map(one).collect()
}

fn positive(figure: Option<Figure>) -> Option<Figure> {
    figure.filter(|figure| figure.value > 0.0)
}

/// Returns the mean size of all operations. vdbench truncates or rounds it to a whole number.
fn mean_size(size: Figure) -> Figure {
    Figure { least: size.value - 1.0, most: size.value + 1.0, ..size }
}

/// Returns the maximum response time of all operations.
fn longest(row: &Row<'_>) -> Option<Figure> {
    let ms = |name: &str| positive(row.figure(name, NS_PER_MS));
    ms("resp_max").or_else(|| {
        let both = [ms("read_max"), ms("write_max")];
        both.into_iter().flatten().reduce(|a, b| if b.value > a.value { b } else { a })
    })
}

/// Returns the rate × the response time, which is the mean number of operations in flight.
fn in_flight(row: &Row<'_>) -> Option<Figure> {
    let (rate, resp) = row.figure("rate", 1.0).zip(row.figure("resp", 1e-3))?;
    Some(Figure {
        value: rate.value * resp.value,
        least: rate.least * resp.least,
        most: rate.most * resp.most,
        field: format!("{} × response time", rate.field),
    })
}

/// Compares the queue depth with rate × response time. The queue depth includes the time of
/// operations that are still in flight at the end. The response time includes the time of
/// operations before the start (`qdepth` and `respTime` in vdbench's `SdStats.java`). `ends`: the
/// longest time of such an operation, divided by the length of the run.
fn queue_depth(row: &Row<'_>, ends: f64) -> Option<Aggregate> {
    Some(Aggregate {
        what: "the queue depth, compared with rate × response time".to_owned(),
        formula: Formula::Sum,
        total: positive(row.figure("queue_depth", 1.0))?.widened(ends),
        of: vec![in_flight(row)?],
        slack: QUEUE_SLACK,
    })
}

fn operations(row: &Row<'_>) -> Vec<Operation> {
    let ms = |name: &str| positive(row.figure(name, NS_PER_MS));
    let mut all = Operation::of(Kind::All);
    all.rate_per_s.extend(row.figure("rate", 1.0));
    all.bandwidth_per_s.extend(row.figure("mb/sec", row.mega));
    all.size_bytes = positive(row.figure("bytes/io", 1.0)).map(mean_size);
    all.latencies.extend(latency(Stage::Total, |l| {
        l.mean_ns = ms("resp");
        l.max_ns = longest(row);
        l.stddev_ns = row.figure("resp_std", NS_PER_MS);
    }));
    let mut operations = vec![all];
    for (kind, word) in [(Kind::Read, "read"), (Kind::Write, "write")] {
        let mut operation = Operation::of(kind);
        operation.rate_per_s.extend(positive(row.figure(&format!("{word}_rate"), 1.0)));
        let moved = row.figure(&format!("mb_{word}"), row.mega);
        operation.bandwidth_per_s.extend(positive(moved));
        let mean = ms(&format!("{word}_resp"));
        operation.latencies.extend(latency(Stage::Total, |l| l.mean_ns = mean));
        if !operation.rate_per_s.is_empty() {
            operations.push(operation);
        }
    }
    let transfer = row.figure("xfersize", 1.0).or_else(|| row.figure("bytes/io", 1.0));
    if let [_, only] = &mut operations[..] {
        only.size_bytes = positive(transfer).map(mean_size);
    }
    // In a file system run, the first operation is the total, which includes the reads and writes.
    if operations.len() > 1 {
        operations.remove(0);
    }
    operations
}

fn combined(row: &Row<'_>, intervals: &[&Row<'_>]) -> Vec<Aggregate> {
    let mut combined = Vec::new();
    let ms = |name: &str| positive(row.figure(name, NS_PER_MS));
    // A file system run may contain operations other than reads and writes.
    let divided = row.figure("read_rate", 1.0).is_none();
    if let (Some(total), Some(read), Some(write), true) =
        (ms("resp"), ms("read_resp"), ms("write_resp"), divided)
    {
        let what = "the response time of reads and writes".to_owned();
        combined.push(Aggregate {
            what,
            formula: Formula::Between,
            total,
            of: vec![read, write],
            slack: 0.0,
        });
    }
    let Some((from, to)) = row.average() else { return combined };
    let counts = |other: &&&Row<'_>| {
        other.interval.parse::<u64>().is_ok_and(|number| (from..=to).contains(&number))
    };
    let within: Vec<&&Row<'_>> = intervals.iter().filter(counts).collect();
    if within.len() as u64 == to.saturating_add(1).saturating_sub(from) {
        let mut compare = |name: &str, formula, slack, of: &dyn Fn(&Row<'_>) -> Option<Figure>| {
            let each: Vec<Figure> = within.iter().filter_map(|row| of(row)).collect();
            if let Some(total) = of(row).filter(|_| each.len() == within.len()) {
                let what = format!("{name} over {}", row.interval);
                combined.push(Aggregate { what, formula, total, of: each, slack });
            }
        };
        compare("rate", Formula::Mean, AVERAGE_SLACK, &|row| row.figure("rate", 1.0));
        compare("mb/sec", Formula::Mean, AVERAGE_SLACK, &|row| row.figure("mb/sec", row.mega));
        compare("rate × response time", Formula::Mean, RESPONSE_SLACK, &in_flight);
        compare("resp_max", Formula::Max, 0.0, &|row| row.figure("resp_max", NS_PER_MS));
    }
    combined
}

fn series(intervals: &[&Row<'_>], starts: &[f64], length_s: Option<f64>) -> Vec<Series> {
    let mut all = Vec::new();
    let Some(length_s) = length_s.filter(|length| *length > 0.0) else { return all };
    for (quantity, name, unit) in
        [(Quantity::RatePerS, "rate", 1.0), (Quantity::LatencyNs, "resp", NS_PER_MS)]
    {
        let point = |(row, at_s): (&&Row<'_>, &f64)| {
            let value = row.figure(name, unit)?.value;
            // Without operations, vdbench prints a response time of zero.
            let idle = row.figure("rate", 1.0).is_some_and(|rate| rate.value <= 0.0);
            if idle && quantity == Quantity::LatencyNs {
                return None;
            }
            Some(Point { at_s: at_s + length_s, value })
        };
        let points: Vec<Point> = intervals.iter().zip(starts).filter_map(point).collect();
        if points.len() > 1 {
            all.push(Series {
                quantity,
                kind: Kind::All,
                stage: Stage::Total,
                field: format!("column {name}"),
                interval_s: Some(length_s),
                points,
                // The averages exclude the first intervals, because these are the warm-up.
                partial: true,
                understates: false,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // This text has the layout of vdbench 5.04.07, with invented figures.
    const SUMMARY: &str = "10:00:00.000 Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=3; For loops: threads=8\n\n\
        Jan 24, 2019    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     \
        resp  queue  cpu%  cpu%\n                               rate  1024**2     i/o    pct     time     resp     \
        resp      max      max   stddev  depth sys+u   sys\n10:00:01.000           1    10000.0    39.06    4096  50.00    \
        0.700    0.600    0.800     5.00     9.00    0.100    7.0  10.0   5.0\n10:00:02.000           2    20000.0    \
        78.13    4096  50.00    0.400    0.300    0.500     5.00     8.00    0.100    8.0  10.0   5.0\n10:00:03.000     \
        avg_2-2    20000.0    78.13    4096  50.00    0.400    0.300    0.500     5.00     8.00    0.100    8.0   NaN   NaN\n";

    #[test]
    fn a_summary_is_read_by_its_two_headings() {
        assert!(is_summary(SUMMARY) && !is_flat(SUMMARY));
        let reported = read_summary(SUMMARY, "summary.html").unwrap();
        assert_eq!(reported.len(), 1);
        let part = &reported[0].parts[0];
        assert_eq!(part.name, "rd1 (threads=8)");
        let all = &part.operations[0];
        assert_eq!(
            (all.rate_per_s[0].value, all.bandwidth_per_s[0].value),
            (20_000.0, 78.13 * MIB)
        );
        assert_eq!(all.latencies[0].max_ns.as_ref().unwrap().value, 8e6);
        assert_eq!(part.series[0].points.len(), 2);
        let what: Vec<&str> = reported[0].combined.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(what.len(), 5, "{what:?}");
        assert!(read_summary("10:00 Starting RD=x; \n", "x").is_err());
    }

    #[test]
    fn numbers_wider_than_their_column_are_truncated() {
        // The bandwidth was 1201.8 MiB/s.
        let text = "11:46:00.000 Starting RD=rd1; elapsed=30; For loops: None\nApr 05, 2019 ..Interval.. .ReqstdOps... \
            ...cpu%...  read ....read..... ....write.... ..mb/sec... mb/sec .xfer..\n  rate   resp total  sys   pct   \
            rate   resp   rate   resp  read write  total    size\n10:45:38.024  avg_2-60 153919  1.598  76.2 75.2 100.0 \
            153919  1.598    0.0  0.000  1201  0.00 1201.8    8187\n";
        let read = &read_summary(text, "x").unwrap()[0].parts[0].operations[0];
        assert!(read.bandwidth_per_s[0].most >= 1201.8 * MIB);
        assert!(read.rate_per_s[0].most >= 153_919.9);
    }

    #[test]
    fn response_times_and_queue_depths_are_compared() {
        let of = |text: &str, what: &str| {
            let all = read_summary(text, "x").unwrap().remove(0).combined;
            all.into_iter().find(|aggregate| aggregate.what.starts_with(what)).unwrap()
        };
        let resp = of(SUMMARY, "rate × response time");
        assert_eq!((resp.total.value, resp.of[0].value), (8.0, 8.0));
        // Operations of 5 ms may be in flight at both ends of a run of 1 s.
        let depth = of(SUMMARY, "the queue depth");
        assert!((8.05 + 8.0 * 5e-3..8.05 + 8.0 * 10e-3).contains(&depth.total.most), "{depth:?}");
        let idle = SUMMARY
            .replace("20000.0    78.13    4096  50.00    0.400", "0.0    0.00    0  0.00    0.000");
        let series = &read_summary(&idle, "x").unwrap()[0].parts[0].series;
        assert_eq!(series.iter().map(|s| s.points.len()).collect::<Vec<_>>(), [2]);
    }

    const FLAT: &str = "<pre>\n*\n         tod               timestamp        Run   Interval    reqrate       rate     \
        MB/sec   bytes/io      read%       resp   resp_max   resp_std    threads queue_depth\n10:00:01.000 \
        01/24/2019-10:00:01-MST        rd1          1    9999988 10000.0000    39.0625       4096   100.0000     0.8000     \
        9.0000     0.1000          8     8.0000\n10:00:02.000 01/24/2019-10:00:02-MST        rd1    avg_1-1    9999988 \
        10000.0000    39.0625       4096   100.0000     0.8000     9.0000     0.1000        n/a     8.0000\n";

    #[test]
    fn runs_on_file_systems_have_reads_and_writes_of_their_own() {
        let text = "11:46:00.000 Starting RD=rd1; elapsed=30; For loops: None\nApr 11, 2019 ..Interval.. .ReqstdOps... \
            ...cpu%...  read ....read..... ....write.... ..mb/sec... mb/sec .xfer.. ....open....\n  rate   resp total  \
            sys   pct   rate   resp   rate   resp  read write  total    size  rate   resp\n11:46:30.017            1  \
            34897  1.627  58.5 57.3 100.0  34897  1.627    0.0  0.000 136.2  0.00 136.23    4093  45.0  0.116\n";
        assert!(is_summary(text));
        let part = &read_summary(text, "x").unwrap()[0].parts[0];
        assert_eq!(part.operations.len(), 1, "{:?}", part.operations);
        let read = &part.operations[0];
        assert_eq!((read.kind.clone(), read.rate_per_s[0].value), (Kind::Read, 34_897.0));
        assert_eq!(read.bandwidth_per_s[0].value, 136.2 * MIB);
        assert_eq!(read.size_bytes.as_ref().unwrap().value, 4093.0);
        let flat = "tod timestamp Run Interval Xfersize Rate Resp MB/sec MB_read Read_rate \
                    Read_resp Write_rate\n23:04:18.076 x rd1 1 4096 1000 0.5 3.9063 3.9063 1000 0.5 \
                    0\n";
        let part = &read_flat(flat, "x").unwrap()[0].parts[0];
        assert_eq!(part.operations[0].bandwidth_per_s[0].value, 3.9063 * MIB);
    }

    #[test]
    fn a_flat_file_is_read_by_its_columns() {
        assert!(is_flat(FLAT) && !is_summary(FLAT));
        let reported = read_flat(FLAT, "flatfile.html").unwrap();
        let all = &reported[0].parts[0].operations[0];
        assert_eq!(all.rate_per_s[0].field, "line 5 (rate)");
        assert_eq!(all.latencies[0].mean_ns.as_ref().unwrap().value, 800_000.0);
        assert!(read_flat("tod timestamp Run Interval rate resp\n", "x").is_err());
    }
}
