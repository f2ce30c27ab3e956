//! Terminal output of tools: `dd`, pgbench, kubestr.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Figure, Kind, Operation, Outstanding, Part, Pattern, Point, Quantity, Series, Setting, Stage,
    ToolResult,
};

use crate::parts::{Digits, figure, latency, source};
use crate::{number, runs};

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Maximum relative amount by which the bandwidth may exceed rate × size in kubestr's default jobs.
/// At the end of the warm-up, fio counts the bytes in flight, but not their operations.
const RAMP_SLACK: f64 = 0.05;

/// Maximum ratio of the last transactions' latency to the mean latency. After the end of a run,
/// each pgbench client waits for its last transaction.
const LAST_MEANS: f64 = 5.0;

/// Values in lines of the form `name: value`, each with its line number. If a name occurs several
/// times, the first line applies.
pub(crate) type Lines<'t> = BTreeMap<&'t str, (&'t str, usize)>;

pub(crate) fn lines(text: &str) -> Lines<'_> {
    let mut lines = Lines::new();
    for (index, line) in text.lines().enumerate() {
        if let Some((name, value)) = line.split_once(':') {
            lines.entry(name.trim()).or_insert((value.trim(), index + 1));
        }
    }
    lines
}

pub(crate) fn of(lines: &Lines<'_>, name: &str, digits: Digits, unit: f64) -> Option<Figure> {
    let (value, line) = lines.get(name)?;
    let value = value.split_whitespace().next()?.trim_end_matches('s');
    figure(value, digits, unit, format!("line {line} ({name})"))
}

/// Returns true if the text is the output of `dd`, which contains a line with an amount and a time.
#[must_use]
pub fn is_dd(text: &str) -> bool {
    text.lines().any(|line| dd_line(line).is_some())
}

/// Returns the amount, the time in seconds, and the rate with its unit. The line is `67108864 bytes
/// (67 MB, 64 MiB) copied, 0.21 s, 316 MB/s`, or `67108864 bytes transferred in 0.21 secs
/// (316000000 bytes/sec)`.
fn dd_line(line: &str) -> Option<(&str, &str, &str)> {
    let (bytes, rest) = line.trim().split_once(" bytes ")?;
    bytes.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    if let Some((_, rest)) = rest.split_once("copied, ") {
        let (seconds, rate) = rest.split_once(" s, ").or_else(|| rest.split_once(" seconds, "))?;
        return Some((bytes, seconds, rate.trim()));
    }
    let (seconds, rate) = rest.strip_prefix("transferred in ")?.split_once(" secs (")?;
    Some((bytes, seconds, rate.trim_end_matches(')')))
}

/// Reads the output of `dd`, and returns a result for each run.
///
/// # Errors
/// The text contains no line with an amount and a time.
pub fn read_dd(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut all = Vec::new();
    let mut records: Option<Figure> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some((count, _)) = line.trim().split_once("+0 records out") {
            records = figure(count, Digits::Exact, 1.0, format!("line {} (records)", index + 1));
        }
        let Some((bytes, seconds, rate)) = dd_line(line) else { continue };
        let place = |name: &str| format!("line {} ({name})", index + 1);
        let mut operation = Operation::of(Kind::All);
        operation.bytes.extend(figure(bytes, Digits::Exact, 1.0, place("bytes")));
        operation.count.extend(records.take());
        let (digits, unit) = number::split_unit(rate);
        let factor =
            if unit == "bytes/sec" { Some(1.0) } else { number::unit(unit).map(|u| u.factor) };
        operation.bandwidth_per_s.extend(
            factor.and_then(|factor| figure(digits, Digits::Either, factor, place("rate"))),
        );
        let mut reported = ToolResult::new(source("dd", "dd", file));
        reported.source.place = Some(format!("line {}", index + 1));
        reported.remarks.push(
            "dd does not report its files or options; without oflag=direct or conv=fsync, its \
             rate is the speed of memory"
                .into(),
        );
        let window_ns = figure(seconds, Digits::Either, NS_PER_S, place("seconds"));
        reported.parts.push(Part { window_ns, operations: vec![operation], ..Part::default() });
        all.push(reported);
    }
    if let [only] = &mut all[..] {
        only.source.place = None;
    }
    if all.is_empty() {
        Err("it contains no line with an amount and a time".into())
    } else {
        Ok(all)
    }
}

/// Returns true if the text is pgbench's report.
#[must_use]
pub fn is_pgbench(text: &str) -> bool {
    text.contains("number of transactions actually processed:") && text.contains("tps = ")
}

/// Reads all pgbench reports in a text.
///
/// # Errors
/// The report contains no rate.
pub fn read_pgbench(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    runs::read_each(text, |line| line.starts_with("transaction type: "), |text| pgbench(text, file))
}

fn pgbench(text: &str, file: &str) -> Result<ToolResult, String> {
    let all = lines(text);
    let mut reported = ToolResult::new(source("pgbench", "pgbench", file));
    let equals = |name: &str, unit: f64| {
        text.lines().enumerate().find_map(|(index, line)| {
            // Before PostgreSQL 10, a colon followed some names.
            let value = line.trim().strip_prefix(name)?.trim_start().strip_prefix(['=', ':'])?;
            let digits = value.split_whitespace().next()?;
            figure(digits, Digits::Rounded, unit, format!("line {} ({name})", index + 1))
        })
    };
    let mut operation = Operation::of(Kind::Other("transactions".into()));
    let name = "number of transactions actually processed";
    let count = all.get(name).and_then(|(value, line)| {
        let digits = value.split('/').next()?.trim();
        figure(digits, Digits::Exact, 1.0, format!("line {line} ({name})"))
    });
    // If there were no transactions, the rate is printed as `-nan`.
    let none = count.as_ref().filter(|count| count.value == 0.0).cloned();
    let rate = equals("tps", 1.0).or(none).ok_or("it contains no rate of transactions")?;
    operation.count.extend(count);
    operation.rate_per_s.push(rate);
    operation.latencies.extend(latency(Stage::Total, |l| {
        l.mean_ns = equals("latency average", NS_PER_MS);
        l.stddev_ns = equals("latency stddev", NS_PER_MS);
    }));
    // With a rate limit, pgbench measures latencies from the scheduled start of a transaction.
    let paced = text.contains("rate limit schedule lag");
    let clients = of(&all, "number of clients", Digits::Exact, 1.0).filter(|_| !paced);
    // The time over which the rate is computed excludes the time to connect, but includes the end
    // of the last transactions.
    let window = of(&all, "duration", Digits::Exact, NS_PER_S);
    let last =
        operation.latencies.iter().find_map(|l| l.mean_ns.as_ref()).map_or(0.0, |mean| mean.value);
    let window_ns = window.map(|w| Figure {
        least: w.value * 0.9 - 0.5e9,
        most: w.value * 1.1 + 0.5e9 + last * LAST_MEANS,
        ..w
    });
    let failed = all.get("number of failed transactions").and_then(|(value, line)| {
        let digits = value.split_whitespace().next()?;
        figure(digits, Digits::Exact, 1.0, format!("line {line} (number of failed transactions)"))
    });
    reported.parts.push(Part {
        window_ns: window_ns.filter(|window| window.least > 0.0),
        setting: Setting {
            outstanding: clients.map(|most| Outstanding { most: most.widened(0.01), kept: false }),
            ..Setting::default()
        },
        errors: failed,
        operations: vec![operation],
        series: progress(text).into_iter().collect(),
        ..Part::default()
    });
    Ok(reported)
}

/// Reads pgbench's lines of progress: `progress: 5.0 s, 997.1 tps, lat 3.990 ms stddev 1.000`.
fn progress(text: &str) -> Option<Series> {
    let point = |line: &str| {
        let (time, rest) = line.trim().strip_prefix("progress: ")?.split_once(" s, ")?;
        let (rate, _) = rest.split_once(" tps")?;
        Some(Point { at_s: time.trim().parse().ok()?, value: rate.trim().parse().ok()? })
    };
    let points: Vec<Point> = text.lines().filter_map(point).collect();
    let lengths = points.windows(2).map(|pair| pair[1].at_s - pair[0].at_s);
    let interval_s = lengths.filter(|length| *length > 0.0).reduce(f64::min)?;
    Some(Series {
        quantity: Quantity::RatePerS,
        kind: Kind::Other("transactions".into()),
        stage: Stage::Total,
        field: "tps of the progress".into(),
        interval_s: Some(interval_s),
        points,
        // pgbench does not print the last interval. It counts transactions that are in flight at
        // the end of an interval in the next interval.
        partial: true,
        understates: true,
    })
}

/// Returns true if the text is kubestr's text output of fio.
#[must_use]
pub fn is_kubestr(text: &str) -> bool {
    text.contains("FIO version - fio-") && text.contains("JobName: ")
}

/// Reads kubestr's text output of fio.
///
/// # Errors
/// The text contains no figures.
pub fn read_kubestr(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("fio", "kubestr text", file));
    let version = text.lines().find_map(|line| line.trim().strip_prefix("FIO version - "));
    reported.source.version = version.map(str::to_owned);
    let mut kind = Kind::All;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        let place = |name: &str| format!("line {} ({name})", index + 1);
        let value = |name: &str| {
            let words = line.split_whitespace();
            words.filter_map(|word| word.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
        };
        match line {
            "read:" => kind = Kind::Read,
            "write:" => kind = Kind::Write,
            _ => {}
        }
        if let Some(name) = line.strip_prefix("JobName: ") {
            reported.parts.push(Part { name: name.to_owned(), ..Part::default() });
        }
        let Some(part) = reported.parts.last_mut() else { continue };
        if let Some(size) = value("blocksize") {
            reported.options.insert(format!("{} blocksize", part.name), size.to_owned());
            part.setting.pattern = value("rw").map(|rw| match rw.contains("rand") {
                true => Pattern::Random,
                false => Pattern::Sequential,
            });
        }
        let Some(rate) = value("IOPS") else { continue };
        let mut operation = Operation::of(kind.clone());
        operation.rate_per_s.extend(figure(rate, Digits::Rounded, 1.0, place("IOPS")));
        let moved = value("BW(KiB/s)").and_then(|v| figure(v, Digits::Cut, KIB, place("BW")));
        operation.bandwidth_per_s.extend(moved.map(|bandwidth| bandwidth.widened(RAMP_SLACK)));
        let size = reported.options.get(&format!("{} blocksize", part.name));
        operation.size_bytes = size.and_then(|size| {
            let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let unit = match size[digits.len()..].to_ascii_lowercase().as_str() {
                "" => 1.0,
                "k" | "kb" | "kib" => KIB,
                "m" | "mb" | "mib" => MIB,
                _ => return None,
            };
            figure(digits, Digits::Exact, unit, format!("{} blocksize", part.name))
        });
        part.operations.push(operation);
    }
    reported.parts.retain(|part| !part.operations.is_empty());
    if reported.parts.is_empty() {
        return Err("it lists jobs but contains no figures".into());
    }
    Ok(reported)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dd_is_read_in_both_of_its_forms() {
        let gnu = "64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.212157 s, 316 MB/s\n";
        let bsd =
            "64+0 records out\n67108864 bytes transferred in 0.212157 secs (316317368 bytes/sec)\n";
        for text in [gnu, bsd] {
            assert!(is_dd(text));
            let reported = read_dd(text, "x").unwrap().remove(0);
            let operation = &reported.parts[0].operations[0];
            assert_eq!((operation.bytes[0].value, operation.count[0].value), (67_108_864.0, 64.0));
            assert!((operation.bandwidth_per_s[0].value / 316e6 - 1.0).abs() < 0.01);
        }
        assert!(!is_dd("12 bytes of something"));
    }

    #[test]
    fn pgbench_is_read_and_a_limit_on_the_rate_known() {
        let text = "scaling factor: 1\nnumber of clients: 2\nduration: 4 s\nnumber of transactions actually processed: \
            406\nnumber of failed transactions: 0 (0.000%)\nlatency average = 7.374 ms\nlatency stddev = 5.263 ms\n\
            initial connection time = 13.327 ms\ntps = 101.875436 (without initial connection time)\n";
        assert!(is_pgbench(text));
        let reported = pgbench(text, "x").unwrap();
        let part = &reported.parts[0];
        assert_eq!(part.operations[0].rate_per_s[0].value, 101.875436);
        assert_eq!(part.operations[0].latencies[0].mean_ns.as_ref().unwrap().value, 7.374e6);
        assert!(part.setting.outstanding.is_some());
        let old = "duration: 5 s\nnumber of transactions actually processed: 77\nlatency average: 1108.418 ms\n\
            tps = 12.580114 (including connections establishing)\n";
        let slow = &pgbench(old, "x").unwrap().parts[0];
        assert_eq!(slow.operations[0].latencies[0].mean_ns.as_ref().unwrap().value, 1_108.418e6);
        assert!(slow.window_ns.as_ref().unwrap().most > 77.0 / 12.580114 * 1e9);
        let paced = format!("{text}rate limit schedule lag: avg 1.109 (max 18.869) ms\n");
        assert!(pgbench(&paced, "x").unwrap().parts[0].setting.outstanding.is_none());
    }

    #[test]
    fn kubestr_is_read() {
        let text = "FIO version - fio-3.20\nGlobal options - ioengine=libaio verify=0 direct=1\n\nJobName: read_iops\n  \
            blocksize=4K filesize=2G iodepth=64 rw=randread\nread:\n  IOPS=982.050780 BW(KiB/s)=3944\n  iops: min=872 \
            max=1042 avg=981.9\n";
        assert!(is_kubestr(text));
        let reported = read_kubestr(text, "x").unwrap();
        let read = &reported.parts[0].operations[0];
        assert_eq!((read.kind.clone(), read.rate_per_s[0].value), (Kind::Read, 982.050780));
        assert_eq!(read.size_bytes.as_ref().unwrap().value, 4096.0);
        assert!(read_kubestr("FIO version - fio-3\nJobName: x\n", "x").is_err());
    }
}
