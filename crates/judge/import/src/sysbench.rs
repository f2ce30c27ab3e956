//! sysbench (A. Kopytov): reports of its fileio test and its database tests (OLTP).

use plimsoll_evidence::tool_result::{
    Aggregate, Durability, Figure, Formula, Kind, Operation, Outstanding, Part, Pattern, Point,
    Quantity, Series, Setting, Stage, ToolResult,
};

use crate::parts::{Digits, figure, latency, percentile, source};
use crate::terminal::{Lines, lines, of};
use crate::{number, runs};

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Maximum relative deviation of the sum of rates from events over time. The rates exclude the
/// final flush.
const EVENTS_SLACK: f64 = 0.02;

/// Ratio of a histogram bin's bounds. Percentiles are from 1,024 bins from 1 us to 100 s; versions
/// before 1.0 had 1,000.
const BIN: f64 = 1.019;
/// The last bin contains all longer latencies (`OPER_LOG_MAX_VALUE`).
const LAST_BIN_NS: f64 = 100e9;
/// Represents "no upper bound" in a figure, which must be finite.
const UNBOUNDED_NS: f64 = 1e18;

/// Widens a percentile to its bin. In the last bin, the value is only a lower bound.
fn binned(figure: Figure) -> Figure {
    let last = figure.value >= LAST_BIN_NS * (1.0 - 1e-6);
    let most = if last { UNBOUNDED_NS } else { figure.most * BIN };
    Figure { least: figure.least / BIN, most, ..figure }
}

/// First line of a database test's statistics, before 1.0 and since.
const OLTP: [&str; 2] = ["OLTP test statistics:", "SQL statistics:"];

/// True for a report of sysbench's fileio or OLTP test.
#[must_use]
pub fn is(text: &str) -> bool {
    let words = ["reads/s:", "total file size", OLTP[0], OLTP[1]];
    text.contains("sysbench ") && words.iter().any(|word| text.contains(word))
}

/// Reads all sysbench reports in a text.
///
/// # Errors
/// The report has no figures.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let begins = |line: &str| {
        let version = line.strip_prefix("sysbench ");
        version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    runs::read_each(text, begins, |text| one(text, file))
}

/// Reads a report of transactions: number, rate and latency, with the number of threads.
fn oltp(text: &str, file: &str) -> Result<ToolResult, String> {
    let all = lines(text);
    let mut reported = ToolResult::new(source("sysbench", "sysbench OLTP", file));
    reported.source.version = version(text);
    // `3.62ms` before 1.0, and `3.62` below a heading since.
    let time = |name: &str| {
        let (value, line) = all.get(name)?;
        let digits = value.trim_end_matches("ms");
        figure(digits, Digits::Rounded, NS_PER_MS, format!("line {line} ({name})"))
    };
    let mut operation = Operation::of(Kind::Other("transactions".into()));
    let (value, line) =
        all.get("transactions").ok_or("it has no transactions: the run did not finish")?;
    let (count, rate) = value.split_once('(').ok_or("its transactions have no rate")?;
    let place = |word: &str| format!("line {line} (transactions, {word})");
    operation.count.extend(figure(count.trim(), Digits::Exact, 1.0, place("count")));
    let rate = rate.split_whitespace().next().unwrap_or_default();
    operation.rate_per_s.extend(figure(rate, Digits::Rounded, 1.0, place("per sec.")));
    operation.latencies.extend(latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) = (time("min"), time("avg"), time("max"));
        for percent in [95, 99] {
            let names =
                [format!("approx.  {percent} percentile"), format!("{percent}th percentile")];
            let at = names.iter().find_map(|name| time(name));
            l.percentiles.extend(percentile(f64::from(percent), at.map(binned)));
        }
    }));
    let most = of(&all, "Number of threads", Digits::Exact, 1.0);
    let paced = text.contains("Target transaction rate");
    let setting = Setting {
        threads: most.clone(),
        outstanding: most.map(|most| Outstanding { most, kept: !paced }),
        ..Setting::default()
    };
    let window_ns = of(&all, "total time", Digits::Rounded, NS_PER_S);
    let query = |name: &str| of(&all, name, Digits::Exact, 1.0);
    if let (Some(read), Some(write), Some(other), Some(total)) =
        (query("read"), query("write"), query("other"), query("total"))
    {
        let (what, formula) = ("the queries".to_owned(), Formula::Sum);
        let of = vec![read, write, other];
        reported.combined.push(Aggregate { what, formula, total, of, slack: 0.0 });
    }
    let operations = vec![operation];
    let series = intervals(text).into_iter().collect();
    reported.parts.push(Part { window_ns, setting, operations, series, ..Part::default() });
    Ok(reported)
}

/// Reads the transactions per second of `--report-interval`: `[   1s] threads: 16, tps: 1371.22,
/// …`, or `[ 10s ] thds: 8 tps: 12.5 …` since 1.0.
fn intervals(text: &str) -> Option<Series> {
    let point = |line: &str| {
        let (time, rest) = line
            .trim_start()
            .strip_prefix('[')?
            .split_once("s]")
            .or_else(|| line.trim_start().strip_prefix('[')?.split_once("s ]"))?;
        let value = rest.split_once("tps: ")?.1.split([',', ' ']).next()?;
        Some(Point { at_s: time.trim().parse().ok()?, value: value.parse().ok()? })
    };
    let points: Vec<Point> = text.lines().filter_map(point).collect();
    let lengths = points.windows(2).map(|pair| pair[1].at_s - pair[0].at_s);
    let interval_s = lengths.filter(|length| *length > 0.0).reduce(f64::min)?;
    Some(Series {
        quantity: Quantity::RatePerS,
        kind: Kind::Other("transactions".into()),
        stage: Stage::Total,
        field: "tps of the intervals".into(),
        interval_s: Some(interval_s),
        points,
        // The tool does not print the last interval, and counts transactions in flight in the next
        // one.
        partial: true,
        understates: true,
    })
}

fn version(text: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix("sysbench "))?;
    rest.split_whitespace().next().map(|word| word.trim_end_matches(':').to_owned())
}

fn one(text: &str, file: &str) -> Result<ToolResult, String> {
    if OLTP.iter().any(|heading| text.contains(heading)) {
        return oltp(text, file);
    }
    // A database test that did not finish has only intervals.
    if !text.contains("total file size")
        && !text.contains("File operations:")
        && text.contains("tps: ")
    {
        return Err("it has no statistics of transactions: the run did not finish".into());
    }
    let all = lines(text);
    let mut reported = ToolResult::new(source("sysbench", "sysbench fileio", file));
    let version = text.lines().find_map(|line| line.strip_prefix("sysbench "));
    reported.source.version =
        version.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
    let rounded = |name: &str, unit| of(&all, name, Digits::Rounded, unit);
    let size = text.lines().enumerate().find_map(|(index, line)| {
        let size = line.strip_prefix("Block size ")?;
        let (digits, unit) = number::split_unit(size);
        let field = format!("line {} (Block size)", index + 1);
        // Before 1.0 `Kb` was KiB.
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
    if part.operations.is_empty() && !all.contains_key("reads/s") {
        return before_1_0(text, &all, part, size, reported);
    }
    let rates: Vec<Figure> =
        part.operations.iter().filter_map(|o| o.rate_per_s.first().cloned()).collect();
    // Latencies are of all events, including flushes.
    let mut events = Operation::of(Kind::Other("events".into()));
    events.count.extend(of(&all, "total number of events", Digits::Exact, 1.0));
    let measured = (!rates.is_empty()).then_some(&events).and_then(|events| events.count.first());
    if let (Some(count), Some(window)) = (measured, &part.window_ns) {
        let rate = Figure {
            value: count.value / window.value * NS_PER_S,
            least: count.least / window.most * NS_PER_S,
            most: count.most / window.least * NS_PER_S,
            field: format!("{} over total time", count.field),
        };
        let what = "the rates of reads, writes and flushes".to_owned();
        let (formula, total) = (Formula::Sum, rate);
        reported.combined.push(Aggregate { what, formula, total, of: rates, slack: EVENTS_SLACK });
    }
    events.latencies.extend(latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) =
            (rounded("min", NS_PER_MS), rounded("avg", NS_PER_MS), rounded("max", NS_PER_MS));
        l.sum_ns = rounded("sum", NS_PER_MS);
        l.count = events.count.first().cloned();
        l.percentiles.extend(percentile(95.0, rounded("95th percentile", NS_PER_MS).map(binned)));
        l.percentiles.extend(percentile(99.0, rounded("99th percentile", NS_PER_MS).map(binned)));
    }));
    part.operations.push(events);
    reported.parts.push(part);
    Ok(reported)
}

/// Reads the output of versions 0.4 and 0.5: operations by kind, their amounts (`Gb` is GiB), and
/// one rate of all data operations.
fn before_1_0(
    text: &str,
    all: &Lines<'_>,
    mut part: Part,
    size: Option<Figure>,
    mut reported: ToolResult,
) -> Result<ToolResult, String> {
    let none = "it has no rates: the run did not finish";
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
        l.percentiles.extend(percentile(95.0, ms("approx.  95 percentile").map(binned)));
        l.percentiles.extend(percentile(99.0, ms("approx.  99 percentile").map(binned)));
    }));
    part.operations.push(whole);
    // Events of these versions exclude flushes.
    if let Some(outstanding) = &mut part.setting.outstanding {
        outstanding.kept = false;
    }
    reported.parts.push(part);
    Ok(reported)
}

/// Parses `31.12ms`.
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

    // Output of version 1.0.20.
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
        // Layout of version 0.4.12 with invented figures.
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

    #[test]
    fn transactions_of_both_generations_are_read() {
        let report = |version: &str, heading: &str, latency: &str| {
            format!(
                "sysbench {version}:  multi-threaded system evaluation benchmark\n\nNumber of threads: 64\n\n[  10s] threads: 64, tps: \
                 7470.16, reads/s: 104636.43, writes/s: 29881.84 response time: 16.69ms (99%)\n{heading}\n    queries performed:\n        \
                 read:                            1061577\n    transactions:                        1061577 (17691.92 per sec.)\n    total \
                 time:                          60.0035s\n    total number of events:              1061577\n{latency}"
            )
        };
        let old = "         min:                                  2.26ms\n         avg:                                  3.62ms\n         \
                   max:                                  9.72ms\n         approx.  95 percentile:               3.91ms\n";
        let new = "Latency (ms):\n         min:                                    2.26\n         avg:                                    \
                   3.62\n         max:                                    9.72\n         95th percentile:                        3.91\n";
        for (version, heading, latency) in
            [("0.4.12", OLTP[0], old), ("1.0.20 (using LuaJIT)", OLTP[1], new)]
        {
            let text = report(version, heading, latency);
            assert!(is(&text));
            let reported = &read(&text, "x").unwrap()[0];
            let (part, operation) = (&reported.parts[0], &reported.parts[0].operations[0]);
            assert_eq!(operation.count[0].value, 1_061_577.0);
            assert_eq!(operation.rate_per_s[0].value, 17_691.92);
            let latency = &operation.latencies[0];
            assert_eq!(latency.mean_ns.as_ref().unwrap().value, 3.62e6);
            assert_eq!(latency.percentiles[0].ns.value, 3.91e6);
            assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 64.0);
            assert_eq!(part.window_ns.as_ref().unwrap().value, 60.0035e9);
        }
        let cut = report("0.5", "", "").replace("    transactions:", "    other:");
        assert!(read(&cut, "x").unwrap_err().contains("did not finish"));
    }
}
