//! Reports of sysbench's fileio test and its database tests (OLTP). The author of sysbench is A.
//! Kopytov.

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
/// Maximum relative deviation of the sum of rates from events / time. They differ because the rates
/// exclude the final flush.
const EVENTS_SLACK: f64 = 0.02;
/// Maximum difference between the printed time and the time by which sysbench divides. It reads the
/// clock once for each of the two. In between it merges the histogram and the timers of all threads
/// (`report_cumulative` in sysbench.c; before 1.0, `cumulative_timer1` and `cumulative_timer2`). The
/// largest difference in published results is 3 ms.
const CLOCKS_NS: f64 = 20e6;

/// Ratio of the two bounds of a histogram bin. sysbench computes percentiles from 1,024 bins
/// between 1 us and 100 s. Versions before 1.0 have 1,000 bins.
const BIN: f64 = 1.019;
/// Start of the last bin, which contains all longer latencies (`OPER_LOG_MAX_VALUE`).
const LAST_BIN_NS: f64 = 100e9;
/// Represents "no upper bound" in a figure, which must be finite.
const UNBOUNDED_NS: f64 = 1e18;

/// Widens the range of a percentile to its bin. In the last bin, the value is only a lower bound.
fn binned(figure: Figure) -> Figure {
    let last = figure.value >= LAST_BIN_NS * (1.0 - 1e-6);
    let most = if last { UNBOUNDED_NS } else { figure.most * BIN };
    Figure { least: figure.least / BIN, most, ..figure }
}

/// First line of the statistics of a database test, in versions before 1.0 and in later versions.
const OLTP: [&str; 2] = ["OLTP test statistics:", "SQL statistics:"];

/// Returns true if the text is a report of sysbench's fileio or OLTP test. The text may be only the
/// start of a long file, which contains intervals, but not the report yet.
#[must_use]
pub fn is(text: &str) -> bool {
    let words = ["reads/s:", "total file size", OLTP[0], OLTP[1]];
    text.contains("sysbench ") && words.iter().any(|word| text.contains(word))
        || text.lines().any(is_version) && intervals(text).is_some()
}

fn is_version(line: &str) -> bool {
    let version = line.strip_prefix("sysbench ");
    version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reads all sysbench reports in a text.
///
/// # Errors
/// The report contains no figures.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    runs::read_each(text, is_version, |text| {
        let reports = text.lines().any(|line| line.ends_with("] Checkpoint report:"));
        if reports { read_checkpoints(text, file) } else { one(text, file, None) }
    })
}

/// Reads a run with `--report-checkpoints`. Each report becomes a part of the result. sysbench
/// resets its counters after each report, so the last report also counts only from the report
/// before it. However, each report states the time since the start.
fn read_checkpoints(text: &str, file: &str) -> Result<ToolResult, String> {
    let begins = |line: &str| line == "File operations:" || OLTP.contains(&line.trim());
    let lines = || text.lines().enumerate();
    let starts: Vec<usize> = lines().filter(|(_, line)| begins(line)).map(|(at, _)| at).collect();
    let first = *starts.first().ok_or("it contains no report: the run did not finish")?;
    let mut all: Option<ToolResult> = None;
    // Before version 1.0, the time was counted from the previous report, like the events.
    let from_start = version(text).is_some_and(|version| !version.starts_with("0."));
    let (mut total, mut time) = (Operation::default(), None::<Figure>);
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(usize::MAX);
        let is_part = |at: usize| at < first || (*start..end).contains(&at);
        let report = lines().map(|(at, line)| if is_part(at) { line } else { "" });
        let report = report.collect::<Vec<_>>().join("\n");
        let mut read = one(&report, file, time.as_ref().filter(|_| from_start))?;
        time = of(&self::lines(&report), "total time", Digits::Rounded, NS_PER_S);
        for part in &mut read.parts {
            part.name = format!("report {}", index + 1);
            let events = part.operations.last().into_iter();
            for (kind, count) in events.flat_map(|o| Some((&o.kind, o.count.first()?))) {
                let sum = total.count.first().map_or(0.0, |sum| sum.value) + count.value;
                total.kind = kind.clone();
                total.count = vec![Figure::exact(sum, format!("{} and before", count.field))];
            }
        }
        match &mut all {
            None => all = Some(read),
            Some(all) => {
                all.parts.append(&mut read.parts);
                all.combined.append(&mut read.combined);
            }
        }
    }
    let mut all = all.ok_or("it contains no report")?;
    let (operations, time) = (vec![total], time.filter(|_| from_start));
    all.parts.push(Part { window_ns: time, operations, is_total: true, ..Part::default() });
    Ok(all)
}

/// Returns the time that a report covers, since the start or since the previous report.
fn window(all: &Lines<'_>, before: Option<&Figure>) -> Option<Figure> {
    let total = of(all, "total time", Digits::Rounded, NS_PER_S)?;
    let (from, least, most) = before.map_or((0.0, 0.0, 0.0), |b| (b.value, b.least, b.most));
    Some(Figure {
        value: total.value - from,
        least: total.least - most - CLOCKS_NS,
        most: total.most - least + CLOCKS_NS,
        ..total
    })
}

/// Returns true if sysbench limits the rate (`--rate`). A transaction then waits in a queue until a
/// thread is free, and its latency includes this time (`queue_time` in sb_timer.h). The number of
/// threads does not limit the number of waiting transactions.
fn is_paced(text: &str) -> bool {
    text.contains("Target transaction rate")
}

/// Number of threads, each of which runs one operation at a time.
fn outstanding(text: &str, threads: Option<Figure>) -> Option<Outstanding> {
    threads.filter(|_| !is_paced(text)).map(|most| Outstanding { most, kept: true })
}

/// Reads the sum of the latencies and their number. A report while the load is running, such as that
/// of a checkpoint, reads the number slightly earlier than the sum.
fn sum_and_count(all: &Lines<'_>, window: Option<&Figure>) -> (Option<Figure>, Option<Figure>) {
    let before_1_0 = "total time taken by event execution";
    let sum = of(all, "sum", Digits::Rounded, NS_PER_MS)
        .or_else(|| of(all, before_1_0, Digits::Rounded, NS_PER_S));
    let window_ns = window.map(|window| window.value).filter(|window| *window > CLOCKS_NS);
    let count = of(all, "total number of events", Digits::Exact, 1.0)
        .zip(window_ns)
        .map(|(count, window_ns)| count.widened(CLOCKS_NS / window_ns));
    (sum, count)
}

/// Reads a report on transactions, which states their number, rate and latency, and the number of
/// threads. `before` is the time of the previous report.
fn oltp(text: &str, file: &str, before: Option<&Figure>) -> Result<ToolResult, String> {
    let all = lines(text);
    let mut reported = ToolResult::new(source("sysbench", "sysbench OLTP", file));
    reported.source.version = version(text);
    // The latency is printed as `3.62ms` before version 1.0. Since 1.0, it is printed as `3.62`
    // below a heading with the unit.
    let time = |name: &str| {
        let (value, line) = all.get(name)?;
        let digits = value.trim_end_matches("ms");
        figure(digits, Digits::Rounded, NS_PER_MS, format!("line {line} ({name})"))
    };
    let mut operation = Operation::of(Kind::Other("transactions".into()));
    let (value, line) =
        all.get("transactions").ok_or("it contains no transactions: the run did not finish")?;
    let (count, rate) = value.split_once('(').ok_or("it states no rate for its transactions")?;
    let place = |word: &str| format!("line {line} (transactions, {word})");
    operation.count.extend(figure(count.trim(), Digits::Exact, 1.0, place("count")));
    let rate = rate.split_whitespace().next().unwrap_or_default();
    operation.rate_per_s.extend(figure(rate, Digits::Rounded, 1.0, place("per sec.")));
    // Since version 1.0, an event is a transaction. Before, a test could run other events as well.
    if text.contains(OLTP[1]) {
        operation.count.extend(of(&all, "total number of events", Digits::Exact, 1.0));
    }
    let window_ns = window(&all, before);
    operation.latencies.extend(latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) = (time("min"), time("avg"), time("max"));
        (l.sum_ns, l.count) = sum_and_count(&all, window_ns.as_ref());
        for percent in [95, 99] {
            let names =
                [format!("approx.  {percent} percentile"), format!("{percent}th percentile")];
            let at = names.iter().find_map(|name| time(name));
            l.percentiles.extend(percentile(f64::from(percent), at.map(binned)));
        }
    }));
    let threads = of(&all, "Number of threads", Digits::Exact, 1.0);
    let setting =
        Setting { outstanding: outstanding(text, threads.clone()), threads, ..Setting::default() };
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

/// Reads the transactions per second that `--report-interval` prints: `[ 1s] threads: 16, tps:
/// 1371.22, …`, or since version 1.0 `[ 10s ] thds: 8 tps: 12.5 …`.
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
        // sysbench does not print the last interval. It counts transactions that are in flight at
        // the end of an interval in the next interval.
        partial: true,
        understates: true,
    })
}

fn version(text: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix("sysbench "))?;
    rest.split_whitespace().next().map(|word| word.trim_end_matches(':').to_owned())
}

fn one(text: &str, file: &str, before: Option<&Figure>) -> Result<ToolResult, String> {
    if OLTP.iter().any(|heading| text.contains(heading)) {
        return oltp(text, file, before);
    }
    // The output of a database test that did not finish contains only intervals.
    if !text.contains("total file size")
        && !text.contains("File operations:")
        && text.contains("tps: ")
    {
        return Err("it contains no transaction statistics: the run did not finish".into());
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
        // Before version 1.0, `Kb` means KiB.
        let unit = if unit.ends_with('b') { unit.replace('b', "B") } else { unit.to_owned() };
        figure(digits, Digits::Exact, number::unit(&unit)?.other, field)
    });
    let size = size.map(|size| merged(text, size));
    let mut part = Part { window_ns: window(&all, before), ..Part::default() };
    let threads = of(&all, "Number of threads", Digits::Exact, 1.0);
    let sync = text.contains("Using synchronous I/O mode");
    // With `--file-fsync-all`, a write and its flush count as one event.
    let flushes_each = text.contains("Calling fsync() after each write operation");
    part.setting = Setting {
        outstanding: outstanding(text, threads.clone().filter(|_| sync)),
        threads,
        pattern: pattern(text),
        durability: (text.contains("Periodic FSYNC enabled") || flushes_each)
            .then_some(Durability::Flushed),
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
    let rates_of = |counts: fn(&Kind) -> bool| -> Vec<Figure> {
        let operations = part.operations.iter().filter(|o| counts(&o.kind));
        operations.filter_map(|o| o.rate_per_s.first().cloned()).collect()
    };
    let (what, rates) = match flushes_each {
        true => ("the rates of reads and writes", rates_of(|kind| *kind != Kind::Sync)),
        false => ("the rates of reads, writes and flushes", rates_of(|_| true)),
    };
    if let ([flushes], true) = (&rates_of(|kind| *kind == Kind::Sync)[..], flushes_each) {
        let (what, formula) = ("the rate of flushes, one for each write".into(), Formula::Sum);
        let (total, of) = (flushes.clone(), rates_of(|kind| *kind == Kind::Write));
        reported.combined.push(Aggregate { what, formula, total, of, slack: EVENTS_SLACK });
    }
    // The latencies are those of all events, including flushes.
    let mut events = Operation::of(Kind::Other("events".into()));
    events.count.extend(of(&all, "total number of events", Digits::Exact, 1.0));
    let measured = (!rates.is_empty()).then_some(&events).and_then(|events| events.count.first());
    if let (Some(count), Some(window)) = (measured, &part.window_ns) {
        let rate = Figure {
            value: count.value / window.value * NS_PER_S,
            least: count.least / window.most * NS_PER_S,
            most: count.most / window.least * NS_PER_S,
            field: format!("{} / total time", count.field),
        };
        let (what, formula, total) = (what.to_owned(), Formula::Sum, rate);
        reported.combined.push(Aggregate { what, formula, total, of: rates, slack: EVENTS_SLACK });
    }
    events.latencies.extend(latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) =
            (rounded("min", NS_PER_MS), rounded("avg", NS_PER_MS), rounded("max", NS_PER_MS));
        (l.sum_ns, l.count) = sum_and_count(&all, part.window_ns.as_ref());
        l.percentiles.extend(percentile(95.0, rounded("95th percentile", NS_PER_MS).map(binned)));
        l.percentiles.extend(percentile(99.0, rounded("99th percentile", NS_PER_MS).map(binned)));
    }));
    part.operations.push(events);
    reported.parts.push(part);
    Ok(reported)
}

/// Widens the range of the block size to the size of merged requests: `Merging requests up to 64KiB
/// for sequential IO`. The last request of a file may be smaller than this size.
fn merged(text: &str, block: Figure) -> Figure {
    let most = || {
        let line = text.lines().find_map(|line| line.strip_prefix("Merging requests up to "))?;
        let (digits, unit) = number::split_unit(line.split(" for ").next()?);
        Some(number::plain(digits)?.value * number::unit(unit)?.other)
    };
    let sequential = pattern(text) == Some(Pattern::Sequential);
    match most().filter(|most| sequential && *most > block.value) {
        Some(most) => Figure { value: most, most, ..block },
        None => block,
    }
}

/// Reads the output of versions 0.4 and 0.5. It contains the number and the amount (`Gb` is GiB) of
/// each kind of operation, and a single rate for all data operations.
fn before_1_0(
    text: &str,
    all: &Lines<'_>,
    mut part: Part,
    size: Option<Figure>,
    mut reported: ToolResult,
) -> Result<ToolResult, String> {
    let none = "it contains no rates: the run did not finish";
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
        (l.sum_ns, l.count) = sum_and_count(all, part.window_ns.as_ref());
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
mod tests;
