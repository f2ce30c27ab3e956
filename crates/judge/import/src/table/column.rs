//! Identifies the columns of a table by their headings.

use plimsoll_evidence::tool_result::Kind;

use super::unit_of;
use crate::number::{self, Measure, Unit};

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    Rate,
    Bandwidth,
    Latency(LatencyStatistic),
    Size,
    Depth,
    Threads,
    ReadPercent,
    Pattern,
    Duration,
    Kind,
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LatencyStatistic {
    Mean,
    Min,
    Max,
    Stddev,
    /// Quantile.
    At(f64),
}

/// Column whose heading is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub role: Role,
    /// Kind of operation, if the column applies only to reads or only to writes. `None` if the
    /// heading does not state a kind.
    pub kind: Option<Kind>,
    pub unit: Option<Unit>,
    /// True if the column contains means of samples. The product of two such means is not exactly
    /// the mean of the products.
    pub sampled: bool,
    pub heading: String,
}

/// Returns the column for each heading, or `None` for a heading that is unknown or ambiguous.
pub(super) fn columns(header: &[String]) -> Vec<Option<Column>> {
    let mut columns: Vec<Option<Column>> = header.iter().map(|heading| column(heading)).collect();
    // Two columns may contain the same figure in two units, or different figures, such as `Disk
    // read (MB/s)` and `Cache read (MB/s)`.
    for role in [Role::Rate, Role::Bandwidth] {
        for kind in [None, Some(Kind::Read), Some(Kind::Write)] {
            let alike: Vec<usize> = (0..columns.len())
                .filter(|at| {
                    columns[*at].as_ref().is_some_and(|c| c.role == role && c.kind == kind)
                })
                .collect();
            let qualified = |at: &usize| !qualifiers(&header[*at]).is_empty();
            let same = alike
                .windows(2)
                .all(|two| qualifiers(&header[two[0]]) == qualifiers(&header[two[1]]));
            if same {
                continue;
            }
            let bare = alike.iter().any(|at| !qualified(at));
            for at in alike.iter().filter(|at| !bare || qualified(at)) {
                columns[*at] = None;
            }
        }
    }
    columns
}

/// Returns the words of a heading.
fn words_of(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '%' || c == '.'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the words by which two columns can be distinguished. These are all words except units
/// and quantities.
fn qualifiers(heading: &str) -> Vec<String> {
    const MEASURES: [&str; 21] = [
        "iops",
        "ops",
        "io",
        "ios",
        "rate",
        "bw",
        "bandwidth",
        "throughput",
        "speed",
        "read",
        "reads",
        "r",
        "rd",
        "write",
        "writes",
        "w",
        "wr",
        "per",
        "s",
        "sec",
        "second",
    ];
    let spelled = heading.trim().replace("_per_s", "/s");
    let mut words = words_of(split_heading(&spelled).0);
    words.retain(|word| {
        !MEASURES.contains(&word.as_str()) && number::unit(&format!("{word}/s")).is_none()
    });
    words.sort_unstable();
    words
}

/// Operations that a heading may use as a divisor: `bytes/io`, `latency per op`.
const OPERATIONS: [&str; 8] = ["io", "ios", "op", "ops", "operation", "request", "req", "transfer"];
/// Divisors that may follow a slash. After another word, a slash separates alternatives, as in
/// `bandwidth/throughput`.
const DIVISORS: [&str; 35] = [
    "client",
    "cluster",
    "core",
    "cores",
    "cpu",
    "device",
    "disk",
    "dollar",
    "drive",
    "gb",
    "ghz",
    "gib",
    "host",
    "hour",
    "instance",
    "job",
    "lun",
    "min",
    "minute",
    "month",
    "monthcost",
    "node",
    "osd",
    "process",
    "rack",
    "rank",
    "server",
    "ssd",
    "tb",
    "thread",
    "tib",
    "vcpu",
    "vm",
    "volume",
    "watt",
];
/// Words of a comparison with another figure, or of a share of it.
const RELATIVE: [&str; 27] = [
    "change",
    "cost",
    "decrease",
    "delta",
    "diff",
    "difference",
    "dollar",
    "dollars",
    "efficiency",
    "eur",
    "gain",
    "improvement",
    "increase",
    "normalised",
    "normalized",
    "overhead",
    "pct",
    "percent",
    "percentage",
    "price",
    "ratio",
    "relative",
    "scaling",
    "share",
    "speedup",
    "usd",
    "vs",
];

/// Returns the divisor of a heading, such as `core` of `IOPS per core` or `io` of `bytes/io`.
/// Returns `None` for seconds, because every rate is per second.
fn divisor(lower: &str) -> Option<String> {
    let spelled = lower.replace("i/o", "io");
    let words = words_of(&spelled);
    let per = words.windows(2).filter(|two| two[0] == "per").map(|two| two[1].clone());
    let slash = spelled.split('/').skip(1).filter_map(|rest| words_of(rest).into_iter().next());
    let known =
        |word: &String| DIVISORS.contains(&word.as_str()) || OPERATIONS.contains(&word.as_str());
    per.chain(slash.filter(known))
        .find(|word| !["s", "sec", "second", "seconds"].contains(&word.as_str()))
}

/// Removes a unit in brackets, after a comma or after an underscore, and identifies the column by
/// the remaining words.
fn column(heading: &str) -> Option<Column> {
    let lower = heading.trim().to_lowercase();
    // `ops_per_s` means `ops/s`.
    let spelled = heading.trim().replace("_per_s", "/s");
    let (name, unit) = split_heading(&spelled);
    let unit = unit.and_then(unit_of);
    let words = words_of(name);
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    let kind = match (has(&["read", "reads", "r", "rd"]), has(&["write", "writes", "w", "wr"])) {
        (true, false) => Some(Kind::Read),
        (false, true) => Some(Kind::Write),
        _ => None,
    };
    let share = has(&["%", "percent", "pct", "ratio", "mix", "percentage"])
        || lower.contains("read%")
        || lower.contains("rwmixread")
        || unit.is_some_and(|unit| unit.measure == Measure::Percent);
    let divisor = divisor(&lower);
    let of_operations = divisor.as_deref().is_some_and(|word| OPERATIONS.contains(&word));
    // The size of an operation: `bytes/io`, `KiB per request`.
    let unit = unit.or_else(|| {
        let mut amount = words.iter().filter_map(|word| number::unit(word));
        amount.find(|unit| of_operations && unit.measure == Measure::Bytes)
    });
    let measure = unit.map(|unit| unit.measure);
    let other = has(&["hit", "hits", "cache", "cpu", "util", "utilization"]);
    let role = if of_operations && measure == Some(Measure::Bytes) {
        Role::Size
    } else if share && !other && (lower.contains("read") || lower.contains("rw")) {
        Role::ReadPercent
    } else if has(&["iops", "ops", "tps", "io"]) && !has(&["depth", "size"]) && !of_operations
        || lower.contains("iops")
        || has(&["rate"]) && measure != Some(Measure::BytesPerS)
        || measure == Some(Measure::Count)
    {
        Role::Rate
    } else if has(&["latency", "lat", "response", "resp", "rt", "clat"])
        || parse_lone_statistic(&words).is_some()
    {
        Role::Latency(parse_statistic(&words))
    } else if has(&["bw", "bandwidth", "throughput", "speed"])
        || measure == Some(Measure::BytesPerS)
    {
        Role::Bandwidth
    } else if has(&["bs", "blocksize", "block", "iosize", "xfersize"])
        || has(&["size"]) && !has(&["file", "dataset", "data"])
    {
        Role::Size
    } else if has(&["qd", "iodepth", "depth", "outstanding", "queue"]) {
        Role::Depth
    } else if has(&[
        "threads",
        "jobs",
        "numjobs",
        "thread",
        "clients",
        "hosts",
        "vms",
        "workers",
        "nodes",
        "procs",
        "processes",
    ]) {
        Role::Threads
    } else if has(&["pattern", "access"]) {
        Role::Pattern
    } else if has(&["seconds", "duration", "runtime", "time"]) {
        Role::Duration
    } else if has(&["rw", "operation", "op", "workload", "test", "mode"]) {
        Role::Kind
    } else if has(&["name", "system", "host", "device", "run", "config"]) {
        Role::Name
    } else {
        return None;
    };
    let wrong = match (role, measure) {
        (Role::Rate, Some(measure)) => !matches!(measure, Measure::Count | Measure::Bytes),
        (Role::Latency(_) | Role::Duration, Some(measure)) => measure != Measure::Time,
        (Role::Bandwidth, Some(measure)) => {
            measure != Measure::BytesPerS && measure != Measure::Bytes
        }
        _ => false,
    };
    // `TPS/$`, `IOPS per core` and `IOPS (normalised)` are other quantities than `TPS` and `IOPS`.
    let figure = matches!(role, Role::Rate | Role::Bandwidth | Role::Latency(_));
    let of_one = matches!(role, Role::Latency(_)) && of_operations;
    // `70 % reads` describes the load.
    let bare = |(at, _): (usize, &str)| !lower[..at].trim_end().ends_with(char::is_numeric);
    let other_quantity = divisor.is_some() && !of_one
        || has(&RELATIVE)
        || lower.contains(['$', '€', '£'])
        || lower.match_indices('%').any(bare);
    if figure && other_quantity {
        return None;
    }
    // Extremes and deviations of rate samples are not rates, so they are not used.
    let of_samples = [
        "stddev",
        "std",
        "stdev",
        "deviation",
        "variance",
        "cv",
        "error",
        "min",
        "minimum",
        "max",
        "maximum",
        "peak",
    ];
    if matches!(role, Role::Rate | Role::Bandwidth) && has(&of_samples) {
        return None;
    }
    let sampled = matches!(role, Role::Rate | Role::Bandwidth) && has(&["mean", "avg", "average"]);
    // `io_kib` is an operation size; `Throughput (ms)` is unknown.
    let sized = role == Role::Rate && measure == Some(Measure::Bytes);
    let role = if sized { Role::Size } else { role };
    (!wrong).then(|| Column { role, kind, unit, sampled, heading: heading.to_owned() })
}

/// Splits a column heading into its name and its unit. Examples: `BW (MB/s)`, `BW [MB/s]`,
/// `lat_us`, `bandwidth MiB/s`, `MB/s`.
fn split_heading(heading: &str) -> (&str, Option<&str>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, rest)) = heading.split_once(open) {
            let unit = rest.split(close).next().unwrap_or_default().trim();
            if number::unit(unit).is_some() {
                return (name, Some(unit));
            }
        }
    }
    if number::unit(heading).is_some() {
        return (heading, Some(heading));
    }
    match heading.rsplit_once([' ', '_', ',']) {
        Some((name, unit)) if number::unit(unit).is_some() => (name, Some(unit)),
        _ => (heading, None),
    }
}

/// Recognises `p99`, `99th`, `99%` and `median`. A heading with one of these does not need a word
/// for latency.
fn parse_lone_statistic(words: &[String]) -> Option<f64> {
    words.iter().find_map(|word| {
        let digits = word
            .strip_prefix('p')
            .or_else(|| word.strip_suffix("th"))
            .or_else(|| word.strip_suffix('%'))?;
        let percent: f64 = digits.parse().ok()?;
        // `p999` means the percentile 99.9.
        let percent =
            if percent > 100.0 { percent / 10f64.powi(digits.len() as i32 - 2) } else { percent };
        (50.0..100.0).contains(&percent).then_some((percent * 1e10).round() / 1e12)
    })
}

fn parse_statistic(words: &[String]) -> LatencyStatistic {
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    if let Some(quantile) = parse_lone_statistic(words) {
        return LatencyStatistic::At(quantile);
    }
    match () {
        () if has(&["median"]) => LatencyStatistic::At(0.5),
        () if has(&["max", "maximum", "worst"]) => LatencyStatistic::Max,
        () if has(&["min", "minimum", "best"]) => LatencyStatistic::Min,
        () if has(&["stddev", "std", "stdev", "deviation"]) => LatencyStatistic::Stddev,
        () => LatencyStatistic::Mean,
    }
}
