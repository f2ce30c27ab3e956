//! Terminal output of tools: `dd`, pgbench, kubestr.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Aggregate, Figure, Formula, Kind, Operation, Outstanding, Part, Pattern, Point, Quantity,
    Series, Setting, Stage, ToolResult,
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

/// Returns the block size of a command line, if the shell does not substitute it and a single size
/// applies to input and output.
fn dd_size(line: &str, index: usize) -> Option<Figure> {
    let mut sizes = line.split_whitespace().filter(|word| word.contains("bs="));
    let (Some(word), None) = (sizes.next(), sizes.next()) else { return None };
    let size = word.strip_prefix("bs=")?;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    // With a `B`, the unit is a power of 1000.
    let unit = match size[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1.0,
        "K" | "KIB" => KIB,
        "M" | "MIB" => MIB,
        "G" | "GIB" => MIB * KIB,
        _ => return None,
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let field = format!("line {} (bs)", index + 1);
    is_number.then(|| figure(digits, Digits::Exact, unit, field)).flatten()
}

/// Reads the output of `dd`, and returns a result for each run.
///
/// # Errors
/// The text contains no line with an amount and a time.
pub fn read_dd(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut all = Vec::new();
    let mut records: Option<Figure> = None;
    let mut size: Option<Figure> = None;
    for (index, line) in text.lines().enumerate() {
        if line.contains("dd ") {
            size = dd_size(line, index);
        }
        if let Some((count, _)) = line.trim().split_once("+0 records out") {
            records = figure(count, Digits::Exact, 1.0, format!("line {} (records)", index + 1));
        }
        let Some((bytes, seconds, rate)) = dd_line(line) else { continue };
        let place = |name: &str| format!("line {} ({name})", index + 1);
        let mut operation = Operation::of(Kind::All);
        operation.bytes.extend(figure(bytes, Digits::Exact, 1.0, place("bytes")));
        operation.count.extend(records.take());
        operation.size_bytes = size.take();
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
    let duration = of(&all, "duration", Digits::Exact, NS_PER_S);
    let last =
        operation.latencies.iter().find_map(|l| l.mean_ns.as_ref()).map_or(0.0, |mean| mean.value);
    let window_ns = duration.clone().map(|w| Figure {
        least: w.value * 0.9 - 0.5e9,
        most: w.value * 1.1 + 0.5e9 + last * LAST_MEANS,
        ..w
    });
    let failed = all.get("number of failed transactions").and_then(|(value, line)| {
        let digits = value.split_whitespace().next()?;
        figure(digits, Digits::Exact, 1.0, format!("line {line} (number of failed transactions)"))
    });
    let failures = failed.as_ref().map_or(0.0, |failed| failed.value);
    let rate_line = text.lines().find(|line| line.trim().starts_with("tps")).unwrap_or_default();
    let computed = !text.contains("latency stddev") && !rate_line.contains("excluding");
    let all_clients = clients.as_ref().filter(|_| computed);
    if let Some(clients) = all_clients
        && let Some(mean) = operation.latencies.first().and_then(|l| l.mean_ns.clone())
        && let Some(total) = per_client(clients, &operation, duration.as_ref(), failures)
    {
        reported.combined.push(Aggregate {
            what: "the mean latency, which pgbench computes as clients × time / transactions"
                .into(),
            formula: Formula::Between,
            total: mean,
            of: total,
            slack: 0.0,
        });
    }
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

/// Returns the bounds of the latency that pgbench computes from the time of the run if it does not
/// measure latencies (`printResults` in pgbench.c): clients × time / transactions. The time is that
/// of the rate. In versions before 10, it is the requested duration.
fn per_client(
    clients: &Figure,
    operation: &Operation,
    duration: Option<&Figure>,
    failures: f64,
) -> Option<Vec<Figure>> {
    let (count, rate) = (operation.count.first()?, operation.rate_per_s.first()?);
    let run_ns = |rate: f64| count.value / rate * NS_PER_S;
    let is_known = count.value > 0.0 && rate.least > 0.0;
    let time = is_known.then(|| Figure {
        value: run_ns(rate.value),
        least: run_ns(rate.most),
        most: run_ns(rate.least),
        field: rate.field.clone(),
    })?;
    let each = clients.value / (count.value + failures);
    Some(
        [Some(&time), duration]
            .into_iter()
            .flatten()
            .map(|time| time.clone().scaled(each))
            .collect(),
    )
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

    fn findings(reported: &ToolResult) -> Vec<String> {
        use plimsoll_judge::conservation::{DeclaredFacts, audit};
        let findings = audit(reported, &DeclaredFacts::default()).findings;
        findings.into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn records_of_dd_have_the_size_of_its_command() {
        let text = |size: &str, records: &str| {
            format!(
                "$ dd if=/dev/zero of=x {size} count=1k conv=fdatasync\n{records}+0 records in\n{records}+0 records \
                 out\n1073741824 bytes (1.1 GB) copied, 1.52203 s, 705 MB/s\n"
            )
        };
        let audited =
            |size: &str, records: &str| findings(&read_dd(&text(size, records), "x").unwrap()[0]);
        assert_eq!(audited("bs=1M", "1024"), [""; 0]);
        assert_eq!(audited("bs=1M", "2048").len(), 1);
        for unknown in ["bs=$SIZE", "ibs=4k obs=1M", "bs=1M obs=4k", "bs=1MB", "obs=1M", ""] {
            assert_eq!(audited(unknown, "2048"), [""; 0], "{unknown}");
        }
    }

    #[test]
    fn pgbench_computes_a_latency_that_it_does_not_measure() {
        let text = "number of clients: 32\nduration: 600 s\nnumber of transactions actually processed: 2385331\n\
            number of failed transactions: 0 (0.000%)\nlatency average = 8.047 ms\ntps = 3976.442323 (without initial \
            connection time)\n";
        let audited = |text: &str| findings(&pgbench(text, "x").unwrap());
        assert_eq!(audited(text), [""; 0]);
        let lower = text.replace("8.047", "3.047");
        assert!(audited(&lower)[0].contains("the mean latency"), "{:?}", audited(&lower));
        assert_eq!(audited(&lower.replace("\ntps", " \nlatency stddev = 1.000 ms\ntps")), [""; 0]);
        let failed = text.replace(": 0 (0.000%)", ": 2385331 (50.000%)").replace("8.047", "4.024");
        assert_eq!(
            audited(&failed),
            ["2,385,331 operations failed (line 4 (number of failed transactions))"]
        );
        // Before PostgreSQL 10, pgbench multiplied by the requested duration.
        let old = "number of clients: 14\nduration: 5 s\nnumber of transactions actually processed: 77\nlatency average: \
            909.091 ms\ntps = 12.580114 (including connections establishing)\n";
        assert_eq!(audited(old), [""; 0]);
        assert_eq!(audited(&old.replace("909.091", "709.091")).len(), 1);
        assert_eq!(
            audited(&old.replace("909.091", "709.091").replace("including", "excluding")),
            [""; 0]
        );
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
