//! sysbench (A. Kopytov): the report of its fileio test.

use plimsoll_evidence::reported::{
    Combined, Durability, Figure, How, Kind, Operation, Outstanding, Part, Pattern, Reported,
    Setting, Stage,
};

use crate::parts::{Digits, figure, latency, percentile, source};
use crate::terminal::{Lines, lines, of};
use crate::{number, runs};

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Share by which sysbench's sum of rates may lie off its events over its time: the rates leave out the
/// flush at the end.
const EVENTS_SLACK: f64 = 0.02;

/// True for the report of sysbench's fileio.
#[must_use]
pub fn is(text: &str) -> bool {
    text.contains("sysbench ") && (text.contains("reads/s:") || text.contains("total file size"))
}

/// Reads the reports of sysbench's fileio, one after the other.
///
/// # Errors
/// A report without figures.
pub fn read(text: &str, file: &str) -> Result<Vec<Reported>, String> {
    let begins = |line: &str| {
        let version = line.strip_prefix("sysbench ");
        version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    runs::read_each(text, begins, |text| one(text, file))
}

fn one(text: &str, file: &str) -> Result<Reported, String> {
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
        // Before 1.0 `Kb` stood for KiB.
        let unit = if unit.ends_with('b') { unit.replace('b', "B") } else { unit.to_owned() };
        figure(digits, Digits::Exact, number::unit(&unit)?.other, field)
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
        return before_1_0(text, &all, part, size, reported);
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

/// What versions 0.4 and 0.5 print: operations by kind, their amounts (`Gb` is GiB), one rate of all that moved
/// data.
fn before_1_0(
    text: &str,
    all: &Lines<'_>,
    mut part: Part,
    size: Option<Figure>,
    mut reported: Reported,
) -> Result<Reported, String> {
    let none = "it has no rates: the run did not end";
    let (done, at) = all.get("Operations performed").ok_or(none)?;
    let place = |name: &str| format!("line {at} ({name})");
    let counted = |name: &str| {
        let (before, _) = done.split_once(&format!(" {name}"))?;
        let digits = before.rsplit([' ', ',']).next()?;
        figure(digits, Digits::Exact, 1.0, place(name)).filter(|count| count.value > 0.0)
    };
    let amounts = text.lines().enumerate().find(|(_, line)| line.contains("Total transferred"));
    let (index, amounts) = amounts.ok_or(none)?;
    let amount_of = |text: &str, name: &str| {
        let (digits, unit) = number::split_unit(text.trim());
        let unit = match unit.to_ascii_lowercase().trim_end_matches("/sec") {
            "b" => 1.0,
            "kb" => KIB,
            "mb" => MIB,
            "gb" => MIB * KIB,
            "tb" => MIB * MIB,
            _ => return None,
        };
        figure(digits, Digits::Rounded, unit, format!("line {} ({name})", index + 1))
    };
    let amount =
        |name: &str| amount_of(amounts.split_once(name)?.1.split_whitespace().next()?, name);
    for (kind, name, moved) in [(Kind::Read, "Read", "Read "), (Kind::Write, "Write", "Written ")] {
        let mut operation = Operation::of(kind);
        operation.count.extend(counted(name));
        operation.bytes.extend(amount(moved).filter(|bytes| bytes.value > 0.0));
        operation.size_bytes = size.clone();
        if !operation.count.is_empty() {
            part.operations.push(operation);
        }
    }
    let mut whole = Operation::of(Kind::All);
    whole.size_bytes = size;
    let brackets = amounts.split_once('(').and_then(|(_, rest)| rest.split(')').next());
    whole
        .bandwidth_per_s
        .extend(brackets.and_then(|text| amount_of(text, "Total transferred, per second")));
    whole.rate_per_s.extend(text.lines().enumerate().find_map(|(index, line)| {
        let digits = line.trim().strip_suffix(" Requests/sec executed")?;
        figure(digits, Digits::Rounded, 1.0, format!("line {} (Requests/sec)", index + 1))
    }));
    whole.count.extend(of(all, "total number of events", Digits::Exact, 1.0));
    whole.latencies.extend(latency(Stage::Total, |l| {
        let ms = |name: &str| of_ms(all, name);
        (l.min_ns, l.mean_ns, l.max_ns) = (ms("min"), ms("avg"), ms("max"));
        l.percentiles.extend(percentile(95.0, ms("approx.  95 percentile")));
        l.percentiles.extend(percentile(99.0, ms("approx.  99 percentile")));
    }));
    part.operations.push(whole);
    // An event of these versions leaves its flushes out.
    if let Some(outstanding) = &mut part.setting.outstanding {
        outstanding.kept = false;
    }
    reported.parts.push(part);
    Ok(reported)
}

/// `31.12ms`.
fn of_ms(all: &Lines<'_>, name: &str) -> Option<Figure> {
    let (value, line) = all.get(name)?;
    figure(
        value.trim_end_matches("ms"),
        Digits::Rounded,
        NS_PER_MS,
        format!("line {line} ({name})"),
    )
}

fn pattern(text: &str) -> Option<Pattern> {
    let doing = text.lines().find(|line| line.starts_with("Doing "))?;
    if doing.contains("random") { Some(Pattern::Random) } else { Some(Pattern::Sequential) }
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
        assert!(is(SYSBENCH));
        let reported = read(SYSBENCH, "s.txt").unwrap().remove(0);
        let part = &reported.parts[0];
        assert_eq!(part.operations.len(), 3, "writes, flushes, and all of them");
        assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 16384.0);
        assert_eq!(part.operations[2].latencies[0].max_ns.as_ref().unwrap().value, 13.17e6);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 3.02e9);
        assert_eq!(part.setting.pattern, Some(Pattern::Sequential));
        assert!(read("sysbench 1.0\n64MiB total file size\n", "x").is_err());
    }

    #[test]
    fn reports_before_version_1_are_read_run_after_run() {
        // The layout of version 0.4.12, with figures of our own.
        let text = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 1\n8Gb total file \
            size\nBlock size 4Kb\nUsing synchronous I/O mode\nDoing random r/w test\n\nOperations performed:  60000 Read, \
            40000 Write, 128000 Other = 228000 Total\nRead 234.38Mb  Written 156.25Mb  Total transferred 390.62Mb  \
            (3.9062Mb/sec)\n 1000.00 Requests/sec executed\n\n    total time:                          100.0009s\n    total \
            number of events:              100000\n         min:      0.00ms\n         avg:      0.10ms\n         max:  \
            31.12ms\n         approx.  95 percentile:               0.27ms\n\n";
        let both = read(&text.repeat(2), "old.log").unwrap();
        assert_eq!(both.len(), 2);
        let part = &both[1].parts[0];
        let counts: Vec<f64> = part.operations.iter().map(|o| o.count[0].value).collect();
        assert_eq!(counts, [60_000.0, 40_000.0, 100_000.0]);
        assert!((part.operations[2].bandwidth_per_s[0].value / MIB - 3.9062).abs() < 1e-9);
        assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 4096.0);
        assert_eq!(part.operations[2].latencies[0].max_ns.as_ref().unwrap().value, 31.12e6);
        assert!(
            part.operations[2].rate_per_s[0].field.starts_with("line 30 "),
            "of the second run"
        );
    }
}
