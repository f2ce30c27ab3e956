//! What tools leave on a terminal: sysbench's fileio, `dd`, pgbench, kubestr.

use std::collections::BTreeMap;

use plimsoll_evidence::reported::{
    Combined, Durability, Figure, How, Kind, Operation, Outstanding, Part, Pattern, Reported,
    Setting, Stage,
};

use crate::number;
use crate::parts::{Digits, figure, latency, percentile, source};

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Share by which sysbench's sum of rates may lie off its events over its time: the rates leave out the
/// flush at the end.
const EVENTS_SLACK: f64 = 0.02;
/// Share by which the bandwidth of kubestr's default jobs lies above rate times size: fio counts bytes
/// that were in flight when the warm-up ended, and not their operations.
const RAMP_SLACK: f64 = 0.05;

/// Lines of `name: value`, by their names, with the number of the line; the first of each name.
type Lines<'t> = BTreeMap<&'t str, (&'t str, usize)>;

fn lines(text: &str) -> Lines<'_> {
    let mut lines = Lines::new();
    for (index, line) in text.lines().enumerate() {
        if let Some((name, value)) = line.split_once(':') {
            lines.entry(name.trim()).or_insert((value.trim(), index + 1));
        }
    }
    lines
}

fn of(lines: &Lines<'_>, name: &str, digits: Digits, unit: f64) -> Option<Figure> {
    let (value, line) = lines.get(name)?;
    let value = value.split_whitespace().next()?.trim_end_matches('s');
    figure(value, digits, unit, format!("line {line} ({name})"))
}

/// True for the report of sysbench's fileio.
#[must_use]
pub fn is_sysbench(text: &str) -> bool {
    text.contains("sysbench ") && (text.contains("reads/s:") || text.contains("total file size"))
}

/// Reads the report of sysbench's fileio (version 1.0 and later).
///
/// # Errors
/// A report without figures.
pub fn read_sysbench(text: &str, file: &str) -> Result<Reported, String> {
    let all = lines(text);
    let mut reported = Reported::of(source("sysbench", "sysbench fileio", file));
    let version = text.lines().find_map(|line| line.strip_prefix("sysbench "));
    reported.source.version =
        version.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
    let rounded = |name: &str, unit| of(&all, name, Digits::Rounded, unit);
    let size = text.lines().enumerate().find_map(|(index, line)| {
        let size = line.strip_prefix("Block size ")?;
        let (digits, unit) = number::split_unit(size);
        let field = format!("line {} (Block size)", index + 1);
        figure(digits, Digits::Exact, number::unit(unit)?.other, field)
    });
    let mut part = Part { window_ns: rounded("total time", NS_PER_S), ..Part::default() };
    let threads = of(&all, "Number of threads", Digits::Exact, 1.0);
    let sync = text.contains("Using synchronous I/O mode");
    let paced = text.contains("Target transaction rate");
    part.setting = Setting {
        outstanding: threads
            .clone()
            .filter(|_| sync)
            .map(|most| Outstanding { most, kept: !paced }),
        threads,
        pattern: pattern(text),
        durability: text.contains("Periodic FSYNC enabled").then_some(Durability::Flushed),
        ..Setting::default()
    };
    for (kind, rate, moved) in [
        (Kind::Read, "reads/s", "read, MiB/s"),
        (Kind::Write, "writes/s", "written, MiB/s"),
        (Kind::Sync, "fsyncs/s", ""),
    ] {
        let mut operation = Operation::of(kind);
        operation.rate_per_s.extend(rounded(rate, 1.0));
        operation.bandwidth_per_s.extend(rounded(moved, MIB));
        operation.size_bytes = size.clone().filter(|_| operation.kind.moves_data());
        if !operation.is_idle() && !operation.rate_per_s.is_empty() {
            part.operations.push(operation);
        }
    }
    if part.operations.is_empty() {
        return Err("it has no rates: the run did not end, or its version is older than 1.0".into());
    }
    let rates = part.operations.iter().filter_map(|o| o.rate_per_s.first().cloned()).collect();
    // Latencies are of all events together, flushes among them.
    let mut events = Operation::of(Kind::Other("events".into()));
    events.count.extend(of(&all, "total number of events", Digits::Exact, 1.0));
    if let (Some(count), Some(window)) = (events.count.first(), &part.window_ns) {
        let rate = Figure {
            value: count.value / window.value * NS_PER_S,
            least: count.least / window.most * NS_PER_S,
            most: count.most / window.least * NS_PER_S,
            field: format!("{} over total time", count.field),
        };
        let what = "the rates of reads, writes and flushes".to_owned();
        let (how, total) = (How::Sum, rate);
        reported.combined.push(Combined { what, how, total, of: rates, slack: EVENTS_SLACK });
    }
    events.latencies.extend(latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) =
            (rounded("min", NS_PER_MS), rounded("avg", NS_PER_MS), rounded("max", NS_PER_MS));
        l.sum_ns = rounded("sum", NS_PER_MS);
        l.count = events.count.first().cloned();
        l.percentiles.extend(percentile(95.0, rounded("95th percentile", NS_PER_MS)));
        l.percentiles.extend(percentile(99.0, rounded("99th percentile", NS_PER_MS)));
    }));
    part.operations.push(events);
    reported.parts.push(part);
    Ok(reported)
}

fn pattern(text: &str) -> Option<Pattern> {
    let doing = text.lines().find(|line| line.starts_with("Doing "))?;
    if doing.contains("random") { Some(Pattern::Random) } else { Some(Pattern::Sequential) }
}

/// True for what `dd` leaves: the line of its amount and time.
#[must_use]
pub fn is_dd(text: &str) -> bool {
    text.lines().any(|line| dd_line(line).is_some())
}

/// Amount, seconds, and the rate with its unit: `67108864 bytes (67 MB, 64 MiB) copied, 0.21 s, 316 MB/s`, or
/// `67108864 bytes transferred in 0.21 secs (316000000 bytes/sec)`.
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

/// Reads what `dd` leaves: a result for each of its runs.
///
/// # Errors
/// A text without such a line.
pub fn read_dd(text: &str, file: &str) -> Result<Vec<Reported>, String> {
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
        let mut reported = Reported::of(source("dd", "dd", file));
        reported.source.place = Some(format!("line {}", index + 1));
        reported.remarks.push(
            "dd says neither what it read and wrote nor how: without oflag=direct or conv=fsync it \
             shows how fast memory took the data"
                .into(),
        );
        let window_ns = figure(seconds, Digits::Either, NS_PER_S, place("seconds"));
        reported.parts.push(Part { window_ns, operations: vec![operation], ..Part::default() });
        all.push(reported);
    }
    if let [only] = &mut all[..] {
        only.source.place = None;
    }
    if all.is_empty() { Err("it has no line of an amount and a time".into()) } else { Ok(all) }
}

/// True for pgbench's report.
#[must_use]
pub fn is_pgbench(text: &str) -> bool {
    text.contains("number of transactions actually processed:") && text.contains("tps = ")
}

/// Reads pgbench's report.
///
/// # Errors
/// A report without a rate.
pub fn read_pgbench(text: &str, file: &str) -> Result<Reported, String> {
    let all = lines(text);
    let mut reported = Reported::of(source("pgbench", "pgbench", file));
    let equals = |name: &str, unit: f64| {
        text.lines().enumerate().find_map(|(index, line)| {
            let value = line.trim().strip_prefix(name)?.trim_start().strip_prefix('=')?;
            let digits = value.split_whitespace().next()?;
            figure(digits, Digits::Rounded, unit, format!("line {} ({name})", index + 1))
        })
    };
    let rate = equals("tps", 1.0).ok_or("it has no rate of transactions")?;
    let mut operation = Operation::of(Kind::Other("transactions".into()));
    let name = "number of transactions actually processed";
    let count = all.get(name).and_then(|(value, line)| {
        let digits = value.split('/').next()?.trim();
        figure(digits, Digits::Exact, 1.0, format!("line {line} ({name})"))
    });
    operation.count.extend(count);
    operation.rate_per_s.push(rate);
    operation.latencies.extend(latency(Stage::Total, |l| {
        l.mean_ns = equals("latency average", NS_PER_MS);
        l.stddev_ns = equals("latency stddev", NS_PER_MS);
    }));
    // With a limit on the rate, latencies count from when a transaction should have begun.
    let paced = text.contains("rate limit schedule lag");
    let clients = of(&all, "number of clients", Digits::Exact, 1.0).filter(|_| !paced);
    // The time of the rate leaves connecting out, and holds the last transactions' ends.
    let window = of(&all, "duration", Digits::Exact, NS_PER_S);
    let window_ns =
        window.map(|w| Figure { least: w.value * 0.9 - 0.5e9, most: w.value * 1.1 + 0.5e9, ..w });
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
        ..Part::default()
    });
    Ok(reported)
}

/// True for the text that kubestr prints of fio.
#[must_use]
pub fn is_kubestr(text: &str) -> bool {
    text.contains("FIO version - fio-") && text.contains("JobName: ")
}

/// Reads the text that kubestr prints of fio.
///
/// # Errors
/// A text without figures.
pub fn read_kubestr(text: &str, file: &str) -> Result<Reported, String> {
    let mut reported = Reported::of(source("fio", "kubestr text", file));
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
        return Err("it names jobs and has no figures of any".into());
    }
    Ok(reported)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // Made by running version 1.0.20.
    const SYSBENCH: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nNumber of threads: 1\n4 files, 16MiB \
        each\n64MiB total file size\nBlock size 16KiB\nPeriodic FSYNC enabled, calling fsync() each 100 requests.\nUsing \
        synchronous I/O mode\nDoing sequential write (creation) test\n\nFile operations:\n    reads/s:  0.00\n    \
        writes/s:                     6121.06\n    fsyncs/s:                     246.17\n\nThroughput:\n    read, MiB/s:  \
        0.00\n    written, MiB/s:               95.64\n\nGeneral statistics:\n    total time:   3.0200s\n    total number \
        of events:              19240\n\nLatency (ms):\n         min:  0.00\n         avg:  0.16\n         max:  \
        13.17\n         95th percentile:  0.04\n         sum:  2993.18\n";

    #[test]
    fn sysbench_is_read() {
        assert!(is_sysbench(SYSBENCH));
        let reported = read_sysbench(SYSBENCH, "s.txt").unwrap();
        let part = &reported.parts[0];
        assert_eq!(part.operations.len(), 3, "writes, flushes, and all of them");
        assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 16384.0);
        assert_eq!(part.operations[2].latencies[0].max_ns.as_ref().unwrap().value, 13.17e6);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 3.02e9);
        assert_eq!(part.setting.pattern, Some(Pattern::Sequential));
        assert!(read_sysbench("sysbench 1.0\n64MiB total file size\n", "x").is_err());
    }

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
        let reported = read_pgbench(text, "x").unwrap();
        let part = &reported.parts[0];
        assert_eq!(part.operations[0].rate_per_s[0].value, 101.875436);
        assert_eq!(part.operations[0].latencies[0].mean_ns.as_ref().unwrap().value, 7.374e6);
        assert!(part.setting.outstanding.is_some());
        let paced = format!("{text}rate limit schedule lag: avg 1.109 (max 18.869) ms\n");
        assert!(read_pgbench(&paced, "x").unwrap().parts[0].setting.outstanding.is_none());
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
