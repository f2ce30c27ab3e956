//! CSV files of warp (MinIO). One kind contains segments of the run (`warp analyze
//! --analyze.out=FILE`). The other kind contains every operation, and comes from the `.csv.zst`
//! files.
//!
//! The bytes of a segment include parts of operations that started before the segment or ended
//! after it. The rate counts the operations that ended within the segment.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::tool_result::{
    Aggregate, Figure, Formula, Kind, Operation, Outstanding, Part, Point, Quantity, Series,
    Setting, Stage, ToolResult,
};

use crate::parts::{Columns, Digits, latency, percentile, source, unix_s};

const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_S: f64 = 1e9;
/// Maximum relative deviation of a rate from the quotient from which it was computed. It is small,
/// because warp prints all digits of a double.
const DOUBLES: f64 = 1e-9;
/// Maximum relative deviation of a duration from end − start. They differ because the times are
/// doubles in seconds.
const TIMES: f64 = 1e-3;

/// Returns true if the text is the CSV of segments.
#[must_use]
pub fn is_segments(text: &str) -> bool {
    header(text).is_some_and(|names| {
        ["op", "duration_s", "mb_per_sec", "ops_ended_per_sec"].iter().all(|n| names.contains(n))
    })
}

/// Returns true if the text is the CSV of operations.
#[must_use]
pub fn is_operations(text: &str) -> bool {
    header(text).is_some_and(|names| {
        ["thread", "op", "n_objects", "start", "end", "duration_ns"]
            .iter()
            .all(|n| names.contains(n))
    })
}

fn separator(line: &str) -> char {
    if line.contains('\t') { '\t' } else { ',' }
}

fn header(text: &str) -> Option<Vec<&str>> {
    let first = text.lines().next()?;
    let names: Vec<&str> = first.split(separator(first)).map(str::trim).collect();
    (names.len() > 8).then_some(names)
}

/// Returns the rows after the header, each with its line number. Comments begin with `#`.
fn rows<'t>(text: &'t str, names: &[&'t str]) -> Result<Vec<Columns<'t>>, String> {
    let mut rows = Vec::new();
    let by = separator(text.lines().next().unwrap_or_default());
    for (index, line) in text.lines().enumerate().skip(1) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let cells: Vec<&str> = line.split(by).map(|cell| cell.trim_matches('"')).collect();
        if cells.len() < names.len() {
            return Err(format!(
                "line {} has {} columns instead of {}, so the file is truncated",
                index + 1,
                cells.len(),
                names.len()
            ));
        }
        rows.push(Columns::of(names, cells, index + 1));
    }
    if rows.is_empty() { Err("it contains a heading but no row".into()) } else { Ok(rows) }
}

fn kind(name: &str) -> Kind {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Kind::Read,
        "PUT" => Kind::Write,
        other => Kind::Name(other.to_ascii_lowercase()),
    }
}

/// Sums over all segments of a kind of operation, and the intervals of these segments.
#[derive(Default)]
struct Segments {
    seconds: f64,
    interval_s: f64,
    bytes: f64,
    ended: f64,
    errors: f64,
    bandwidth: Vec<Point>,
    rate: Vec<Point>,
    start_unix_s: Option<f64>,
}

/// Reads the CSV of segments. The result has a part for each kind of operation.
///
/// # Errors
/// The file is truncated, or contains no row with figures.
pub fn read_segments(text: &str, file: &str) -> Result<ToolResult, String> {
    let names = header(text).ok_or("it contains no heading")?;
    let mut reported = ToolResult::new(source("warp", "warp CSV", file));
    let mut all: BTreeMap<(String, String), Segments> = BTreeMap::new();
    for row in rows(text, &names)? {
        let exact = |name: &str| row.figure(name, Digits::Exact, 1.0);
        let (Some(op), Some(seconds)) = (row.text("op"), exact("duration_s")) else { continue };
        if seconds.value <= 0.0 {
            continue;
        }
        let key = (op.to_owned(), row.text("host").unwrap_or_default().to_owned());
        let sums = all.entry(key).or_default();
        if sums.start_unix_s.is_none() {
            sums.start_unix_s = row.text("start_time").and_then(unix_s);
        }
        sums.seconds += seconds.value;
        sums.interval_s = sums.interval_s.max(seconds.value);
        sums.errors += exact("errors").map_or(0.0, |figure| figure.value);
        for (amount, stated, unit) in
            [("bytes", "mb_per_sec", MIB), ("ops_ended", "ops_ended_per_sec", 1.0)]
        {
            let (Some(amount), Some(stated)) =
                (exact(amount), row.figure(stated, Digits::Exact, unit))
            else {
                continue;
            };
            let point = Point { at_s: sums.seconds, value: stated.value };
            if unit > 1.0 {
                sums.bytes += amount.value;
                sums.bandwidth.push(point);
            } else {
                sums.ended += amount.value;
                sums.rate.push(point);
            }
            let what = format!("{} of {op} / duration_s", amount.field);
            let of = vec![amount.scaled(1.0 / seconds.value)];
            let formula = Formula::Sum;
            reported.combined.push(Aggregate { what, formula, total: stated, of, slack: DOUBLES });
        }
    }
    for ((op, host), sums) in all {
        let window = Figure::exact(sums.seconds * NS_PER_S, "the sum of duration_s");
        let mut operation = Operation::of(kind(&op));
        let some = |value: f64, field: &str| (value > 0.0).then(|| Figure::exact(value, field));
        operation.count.extend(some(sums.ended, "the sum of ops_ended"));
        operation.bytes.extend(some(sums.bytes, "the sum of bytes"));
        operation.errors = Some(Figure::exact(sums.errors, "the sum of errors"));
        let series = |quantity, points: Vec<Point>, field: &str| Series {
            quantity,
            kind: operation.kind.clone(),
            stage: Stage::Total,
            field: field.to_owned(),
            interval_s: Some(sums.interval_s),
            points,
            partial: false,
            understates: false,
        };
        let both = [
            series(Quantity::BandwidthPerS, sums.bandwidth, "mb_per_sec"),
            series(Quantity::RatePerS, sums.rate, "ops_ended_per_sec"),
        ];
        reported.parts.push(Part {
            name: op,
            host: Some(host).filter(|host| !host.is_empty()),
            window_ns: Some(window),
            start_unix_s: sums.start_unix_s,
            series: both.into_iter().filter(|series| !series.points.is_empty()).collect(),
            operations: vec![operation],
            ..Part::default()
        });
    }
    if reported.parts.is_empty() { Err("no row contains figures".into()) } else { Ok(reported) }
}

/// Sums over all operations of the same kind.
#[derive(Default)]
struct Operations {
    bytes: f64,
    errors: f64,
    ns: Vec<f64>,
    by_times_ns: f64,
    begin_s: Option<f64>,
    end_s: Option<f64>,
    threads: BTreeSet<(String, String)>,
    /// Times in s at which an operation starts (+1) or ends (-1).
    edges: Vec<(f64, i32)>,
}

/// Returns the maximum number of concurrent operations.
fn most_at_once(edges: &mut [(f64, i32)]) -> f64 {
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0, 0);
    for (_, step) in edges.iter() {
        now += step;
        most = most.max(now);
    }
    f64::from(most)
}

/// Reads the CSV of operations. The result has a part for each kind of operation.
///
/// # Errors
/// The file is truncated, or contains no operation.
pub fn read_operations(text: &str, file: &str) -> Result<ToolResult, String> {
    let names = header(text).ok_or("it contains no heading")?;
    let mut reported = ToolResult::new(source("warp", "warp operations", file));
    let mut all: BTreeMap<String, Operations> = BTreeMap::new();
    for row in rows(text, &names)? {
        let exact = |name: &str| row.figure(name, Digits::Exact, 1.0);
        let time = |name: &str| row.text(name).and_then(unix_s);
        let (Some(op), Some(ns), Some(begin), Some(end)) =
            (row.text("op"), exact("duration_ns"), time("start"), time("end"))
        else {
            continue;
        };
        let sums = all.entry(op.to_owned()).or_default();
        let text = |name: &str| row.text(name).unwrap_or_default().to_owned();
        sums.threads.insert((text("client_id"), text("thread")));
        sums.edges.extend([(begin, 1), (end, -1)]);
        sums.begin_s = Some(sums.begin_s.map_or(begin, |least: f64| least.min(begin)));
        sums.end_s = Some(sums.end_s.map_or(end, |most: f64| most.max(end)));
        if row.text("error").is_some() {
            sums.errors += 1.0;
            continue;
        }
        sums.bytes += exact("bytes").map_or(0.0, |figure| figure.value);
        sums.by_times_ns += (end - begin) * NS_PER_S;
        sums.ns.push(ns.value);
    }
    for (op, mut sums) in all {
        let (Some(begin), Some(end), false) = (sums.begin_s, sums.end_s, sums.ns.is_empty()) else {
            continue;
        };
        sums.ns.sort_by(f64::total_cmp);
        let count = sums.ns.len();
        let total: f64 = sums.ns.iter().sum();
        let mut operation = Operation::of(kind(&op));
        operation.count.push(Figure::exact(count as f64, format!("rows of {op}")));
        operation.bytes.extend((sums.bytes > 0.0).then(|| Figure::exact(sums.bytes, "bytes")));
        operation.errors = Some(Figure::exact(sums.errors, "error"));
        let at = |quantile: f64| {
            let index = ((count as f64 * quantile).ceil() as usize).clamp(1, count) - 1;
            sums.ns.get(index).map(|ns| Figure::exact(*ns, "duration_ns"))
        };
        operation.latencies.extend(latency(Stage::Total, |latency| {
            latency.count = Some(Figure::exact(count as f64, format!("rows of {op}")));
            latency.mean_ns = Some(Figure::rounded(total / count as f64, 1.0, "duration_ns"));
            (latency.min_ns, latency.max_ns) = (at(0.0), at(1.0));
            for percent in [50.0, 90.0, 99.0] {
                latency.percentiles.extend(percentile(percent, at(percent / 100.0)));
            }
        }));
        reported.combined.push(Aggregate {
            what: format!("the durations of {op}"),
            formula: Formula::Sum,
            total: Figure::exact(total, "duration_ns"),
            of: vec![Figure::exact(sums.by_times_ns, "end - start")],
            slack: TIMES,
        });
        // The thread numbers are not reliable, because older versions use the same number for all
        // uploads.
        let threads = sums.threads.len() as f64;
        let overlap = most_at_once(&mut sums.edges);
        let most = match overlap > threads {
            true => Figure::exact(overlap, "operations that overlap by start and end"),
            false => Figure::exact(threads, "thread"),
        };
        let outstanding = Some(Outstanding { most, kept: false });
        reported.parts.push(Part {
            name: op,
            window_ns: (end > begin).then(|| {
                let field = "from the first start to the last end";
                Figure::within((end - begin) * NS_PER_S, 2e3, field)
            }),
            start_unix_s: Some(begin),
            setting: Setting { outstanding, ..Setting::default() },
            operations: vec![operation],
            ..Part::default()
        });
    }
    if reported.parts.is_empty() { Err("no row is an operation".into()) } else { Ok(reported) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NAMES: &str = "index\top\thost\tduration_s\tobjects_per_op\tbytes\tfull_ops\tpartial_ops\tops_started\tops_ended\t\
        errors\tmb_per_sec\tops_ended_per_sec\tobjs_per_sec\tstart_time\tend_time\n";

    fn segments() -> String {
        let row = |i: u32| {
            format!(
                "{i}\tGET\t\t2\t1\t41943040\t18\t4\t20\t20\t0\t20\t10\t10\t2024-05-01 10:00:{:02} +0000 UTC\t\
                 2024-05-01 10:00:{:02} +0000 UTC\n",
                i * 2,
                i * 2 + 2
            )
        };
        NAMES.to_owned() + &(0..20).map(row).collect::<String>()
    }

    #[test]
    fn segments_add_up_to_the_run() {
        assert!(is_segments(&segments()) && !is_operations(&segments()));
        let reported = read_segments(&segments(), "x").unwrap();
        let [part] = &reported.parts[..] else { panic!("{}", reported.parts.len()) };
        let get = &part.operations[0];
        assert_eq!((get.kind.clone(), get.count[0].value), (Kind::Read, 400.0));
        assert_eq!(get.bytes[0].value, 20.0 * 40.0 * MIB);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 40e9);
        assert_eq!(part.series[0].points.len(), 20);
        assert_eq!(reported.combined.len(), 40);
        let cut = segments();
        assert!(read_segments(&cut[..cut.len() - 60], "x").is_err());
        assert!(read_segments(NAMES, "x").is_err());
    }

    #[test]
    fn operations_are_counted_by_their_kind() {
        let names = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\t\
            duration_ns\n";
        let row = |i: u32| {
            format!(
                "{i}\t{}\tPUT\tc\t1\t1048576\thttp://h\tf\t\t2024-05-01T10:00:0{}.0Z\t\t2024-05-01T10:00:0{}.5Z\t\
                 500000000\n",
                i % 2,
                i / 2,
                i / 2
            )
        };
        let text = names.to_owned() + &(0..8).map(row).collect::<String>() + "# warp put\n";
        assert!(is_operations(&text) && !is_segments(&text));
        let reported = read_operations(&text, "x").unwrap();
        let part = &reported.parts[0];
        assert_eq!(part.operations[0].count[0].value, 8.0);
        assert_eq!(part.operations[0].latencies[0].mean_ns.as_ref().unwrap().value, 5e8);
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 2.0);
        assert!((part.window_ns.as_ref().unwrap().value - 3.5e9).abs() < 1e4);
    }
}
