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
    /// Number of hosts, clients or virtual machines, or of jobs or threads.
    Threads,
    /// Number of drives or targets.
    Targets,
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
    for at in 0..columns.len() {
        let same = |other: &usize| {
            let both = columns[*other].as_ref().zip(columns[at].as_ref());
            let latency = |c: &Column| matches!(c.role, Role::Latency(_));
            both.is_some_and(|(a, b)| latency(a) && a.role == b.role && a.kind == b.kind)
        };
        let alike: Vec<usize> = (at..columns.len()).filter(same).collect();
        let of = |at: &usize, names: &[&str]| -> Vec<String> {
            let words = words_of(&header[*at]);
            words.into_iter().filter(|word| names.contains(&word.as_str())).collect()
        };
        // Latencies of random and of sequential operations belong to different runs. A total
        // latency and a completion latency belong to the same run.
        let apart = alike.iter().any(|other| of(other, &PATTERNS) != of(&at, &PATTERNS));
        let total = alike.iter().find(|at| of(at, &["clat", "completion"]).is_empty()).copied();
        for other in alike.iter().filter(|other| apart || Some(**other) != total.or(Some(at))) {
            columns[*other] = None;
        }
    }
    columns
}

/// Words for the pattern of operations.
const PATTERNS: [&str; 4] = ["random", "rand", "sequential", "seq"];

/// Returns the words of a heading.
fn words_of(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '%' || c == '.'));
    words
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
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
    let mut words = words_of(&split_heading(&with_slash(heading)).0);
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
/// Words of a comparison with another figure, of a share of it, or of a limit.
const RELATIVE: [&str; 35] = [
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
    "goal",
    "hit",
    "hits",
    "improvement",
    "increase",
    "limit",
    "miss",
    "misses",
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
    "success",
    "target",
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

/// Words that may name the number of issuers.
const MACHINES: [&str; 10] =
    ["clients", "client", "hosts", "vms", "nodes", "servers", "instances", "pods", "guests", "vm"];
const JOBS: [&str; 8] =
    ["threads", "jobs", "numjobs", "thread", "workers", "procs", "processes", "tasks"];
const TARGETS: [&str; 6] = ["disks", "drives", "targets", "luns", "devices", "volumes"];
/// Words that name the size of an operation.
const SIZES: [&str; 9] = [
    "bs",
    "blocksize",
    "block",
    "iosize",
    "xfersize",
    "recordsize",
    "reclen",
    "objectsize",
    "size",
];
/// Words that a heading of operation sizes may also contain. With any other word, such as in `Disk
/// size`, `Working set size` or `Stripe size`, it is the size of something else.
const OF_OPERATIONS: [&str; 20] = [
    "io",
    "ios",
    "i",
    "o",
    "op",
    "operation",
    "xfer",
    "transfer",
    "record",
    "object",
    "request",
    "req",
    "read",
    "write",
    "avg",
    "average",
    "mean",
    "in",
    "per",
    "length",
];

/// Replaces `ops_per_s` and `ops per second` by `ops/s` and `ops/second`, and `I/O` by `IO`.
fn with_slash(heading: &str) -> String {
    let heading = heading.trim().replace("I/O", "IO").replace("i/o", "io");
    heading.replace("_per_s", "/s").replace(" per s", "/s")
}

/// Removes a unit in brackets, after a comma or after an underscore, and identifies the column by
/// the remaining words.
fn column(heading: &str) -> Option<Column> {
    let lower = with_slash(heading).to_lowercase();
    let spelled = with_slash(heading);
    let (name, unit_name) = split_heading(&spelled);
    let unit = unit_name.and_then(unit_of);
    let words = words_of(&name);
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
    let shares = ["percent", "pct", "ratio", "percentage", "share"];
    let is_compared = |word: &&str| RELATIVE.contains(word) && !shares.contains(word);
    let compared = words.iter().map(String::as_str).any(|word| is_compared(&word));
    let other = has(&["hit", "hits", "cache", "cpu", "util", "utilization"]);
    let moves = has(&["bw", "bandwidth", "throughput", "speed"]);
    // `Ops` and `Records (M)` may be numbers of operations.
    let per_s = lower.contains("iops")
        || lower.contains("/s") && has(&["ops", "io", "ios"])
        || has(&["tps", "qps", "rps", "rate"]) && measure != Some(Measure::BytesPerS)
        || measure == Some(Measure::Count) && (moves || unit_name.is_some_and(is_of_rates));
    let latency = has(&["latency", "lat", "response", "resp", "rt", "clat"]);
    let only = |known: &[&str]| words.iter().all(|word| known.contains(&word.as_str()));
    let of_sizes = |word: &String| {
        let word = word.as_str();
        SIZES.contains(&word) || OF_OPERATIONS.contains(&word) || number::unit(word).is_some()
    };
    // `io_kib` is a size, but `IO (GiB)` is an amount.
    let of_io = only(&["io"]) && measure == Some(Measure::Bytes);
    let small = unit.is_some_and(|unit| unit.factor <= 1024.0);
    let role = if of_operations && measure == Some(Measure::Bytes) {
        Role::Size
    } else if share && !other && !compared && (lower.contains("read") || lower.contains("rw")) {
        Role::ReadPercent
    } else if per_s && !of_operations {
        Role::Rate
    } else if latency || parse_percentile(&words).is_some_and(|p| (50.0..100.0).contains(&p)) {
        Role::Latency(parse_statistic(&words)?)
    } else if moves || measure == Some(Measure::BytesPerS) {
        Role::Bandwidth
    } else if has(&SIZES) && words.iter().all(of_sizes) || of_io && small {
        Role::Size
    } else if has(&["qd", "iodepth", "depth", "outstanding", "queue"])
        && !has(&["avg", "average", "mean"])
    {
        Role::Depth
    } else if has(&MACHINES) || has(&JOBS) {
        Role::Threads
    } else if only(&TARGETS) {
        Role::Targets
    } else if has(&["pattern", "access"]) {
        Role::Pattern
    } else if has(&["time"]) && has(&["avg", "average", "mean"]) && brief(unit) {
        Role::Latency(parse_statistic(&words)?)
    } else if has(&["seconds", "duration", "runtime"])
        || has(&["time"]) && only(&["run", "test", "total", "elapsed", "wall", "time", "in"])
    {
        Role::Duration
    } else if has(&["rw", "operation", "op", "workload", "test", "mode"]) {
        Role::Kind
    } else if has(&["name", "system", "host", "device", "run", "config"]) {
        Role::Name
    } else {
        return None;
    };
    let wrong = match (role, measure) {
        (Role::Rate, Some(measure)) => measure != Measure::Count,
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
    (!wrong).then(|| Column { role, kind, unit, sampled, heading: heading.to_owned() })
}

/// Returns true if a unit of counts is a rate: `IOPS` and `kops`, but not `ops` or `k`.
fn is_of_rates(name: &str) -> bool {
    let lower = name.trim().to_lowercase();
    lower.contains('/') || lower.len() > 3 && lower.ends_with("ops") || lower.ends_with("tps")
}

/// Returns true for the units in which only the times of operations are given.
fn brief(unit: Option<Unit>) -> bool {
    unit.is_some_and(|unit| unit.measure == Measure::Time && unit.factor < 1e6)
}

/// Returns true if a number of issuers includes all hosts: `Hosts`, `VMs` or `Total threads`.
pub(super) fn counts_all(heading: &str) -> bool {
    let all = ["total", "all", "overall"];
    words_of(heading).iter().any(|w| MACHINES.contains(&w.as_str()) || all.contains(&w.as_str()))
}

/// Returns true if a heading names a latency, but not which one. `Submission latency` and `Latency
/// target` are other times than the mean latency.
pub(super) fn is_unknown_latency(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let time = ["latency", "lat", "response", "clat", "slat"];
    words_of(&lower).iter().any(|word| time.contains(&word.as_str())) && column(heading).is_none()
}

/// Splits a column heading into its name and its unit. Examples: `BW (MB/s)`, `BW [MB/s]`,
/// `Lat(ms) Min`, `lat_us`, `bandwidth MiB/s`, `MB/s`.
fn split_heading(heading: &str) -> (String, Option<&str>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, rest)) = heading.split_once(open) {
            let (unit, after) = rest.split_once(close).unwrap_or((rest, ""));
            if number::unit(unit).is_some() {
                return (format!("{name} {after}"), Some(unit.trim()));
            }
        }
    }
    if number::unit(heading).is_some() {
        return (heading.to_owned(), Some(heading));
    }
    match heading.rsplit_once([' ', '_', ',']) {
        // In `lat_min`, the word means the minimum.
        Some((name, unit)) if number::unit(unit).is_some() && !unit.eq_ignore_ascii_case("min") => {
            (name.to_owned(), Some(unit))
        }
        _ => (heading.to_owned(), None),
    }
}

/// Returns the percentage of `p99`, `TP99`, `99th`, `99%`, `99.9%ile`, `99 percentile` and
/// `p99_9`.
fn parse_percentile(words: &[String]) -> Option<f64> {
    let of = |(at, word): (usize, &String)| {
        let next = words.get(at + 1).map(String::as_str).unwrap_or_default();
        let named = ["percentile", "pctl", "ile"].contains(&next);
        let prefixed = word.strip_prefix("tp").or_else(|| word.strip_prefix('p'));
        let digits = prefixed
            .or_else(|| ["%ile", "ile", "th", "%"].iter().find_map(|end| word.strip_suffix(end)))
            .or_else(|| named.then_some(word.as_str()))?;
        if prefixed.is_some() && !next.is_empty() && next.bytes().all(|b| b.is_ascii_digit()) {
            return format!("{digits}.{next}").parse().ok();
        }
        let percent: f64 = digits.parse().ok()?;
        // `p999` means the percentile 99.9.
        Some(match percent > 100.0 {
            true => percent / 10f64.powi(i32::try_from(digits.len()).ok()? - 2),
            false => percent,
        })
    };
    let percent = words.iter().enumerate().find_map(of);
    percent.filter(|percent| (0.0..=100.0).contains(percent))
}

/// Returns the statistic of a latency. Returns `None` if a word of the heading is unknown: it may
/// name another statistic (`variance`) or another time (`submission`).
fn parse_statistic(words: &[String]) -> Option<LatencyStatistic> {
    const NEUTRAL: [&str; 38] = [
        "latency",
        "lat",
        "clat",
        "response",
        "resp",
        "rt",
        "time",
        "times",
        "avg",
        "average",
        "mean",
        "total",
        "end",
        "to",
        "e2e",
        "completion",
        "overall",
        "io",
        "ios",
        "op",
        "ops",
        "operation",
        "request",
        "req",
        "per",
        "of",
        "in",
        "read",
        "reads",
        "r",
        "rd",
        "write",
        "writes",
        "w",
        "wr",
        "percentile",
        "pctl",
        "ile",
    ];
    const OTHERS: [(&[&str], LatencyStatistic); 4] = [
        (&["median"], LatencyStatistic::At(0.5)),
        (&["max", "maximum", "worst"], LatencyStatistic::Max),
        (&["min", "minimum", "best"], LatencyStatistic::Min),
        (&["stddev", "std", "stdev", "deviation", "dev", "sd"], LatencyStatistic::Stddev),
    ];
    let percent = parse_percentile(words).filter(|percent| *percent > 0.0);
    let known = |word: &String| {
        let word = word.as_str();
        NEUTRAL.contains(&word)
            || PATTERNS.contains(&word)
            || number::unit(word).is_some()
            || OTHERS.iter().any(|(names, _)| names.contains(&word))
            || percent.is_some() && word.contains(|c: char| c.is_ascii_digit())
    };
    let named = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let other = || OTHERS.iter().find(|(names, _)| named(names)).map(|(_, statistic)| *statistic);
    let statistic = match percent {
        Some(100.0) => LatencyStatistic::Max,
        Some(percent) => LatencyStatistic::At((percent * 1e10).round() / 1e12),
        None => other().unwrap_or(LatencyStatistic::Mean),
    };
    words.iter().all(known).then_some(statistic)
}
