//! Parses lines and numbers in fio's text output.

use plimsoll_evidence::tool_result::{
    Figure, Kind, Latency, Operation, Part, Percentile, SampleStatistics, Stage,
};

use super::options::Options;
use crate::number;

/// Number of histogram bins in an octave. The width of a bin is 1/64 of the next lower power of
/// two.
const BINS_PER_OCTAVE: f64 = 64.0;
/// All latencies of this value or more are in the last bin.
const LAST_BIN_NS: f64 = 16_700_000_000.0;
const UNBOUNDED_NS: f64 = 1e18;
pub(super) const NS_PER_MS: f64 = 1e6;
/// Kinds of operation, each with the first word of its lines.
pub(super) const DIRECTIONS: [(&str, Kind); 4] =
    [("read", Kind::Read), ("write", Kind::Write), ("trim", Kind::Trim), ("mixed", Kind::All)];

pub(super) fn field(number: usize, name: &str) -> String {
    format!("line {number} ({name})")
}

/// Returns the value after `name=` in a list. Brackets after the value are removed.
pub(super) fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find(name)?;
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let whole = before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
        if let Some(rest) = after.strip_prefix('=').filter(|_| whole) {
            let rest = rest.trim_start();
            let end = rest.find([',', ' ', '(', ')', ';']).unwrap_or(rest.len());
            return Some(&rest[..end]);
        }
        from = at + name.len();
    }
}

/// Meaning of the digits after the point in a number that fio shortened (`num2str`). It depends on
/// fio's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Before version 2.20, the digits are not a decimal fraction, but the shortened remainder of a
    /// division by 1024.
    Nothing,
    /// Before version 3.26, fio prints zero for a fraction that should be rounded up to one.
    LostCarry,
    /// Since version 3.26, the digits are a correct decimal fraction.
    Sound,
}

impl Tail {
    /// Returns the meaning of the digits in a version. If the version is unknown, the form of the
    /// text determines it: only versions just before 2.20 and later versions print `BW=`.
    pub(super) fn of(version: Option<&str>, text: &str) -> Self {
        let Some(version) = version else {
            return if text.contains(", BW=") { Self::LostCarry } else { Self::Nothing };
        };
        let mut parts = version.trim_start_matches("fio-").split('.');
        let mut next = || {
            let digits = parts.next()?.chars().take_while(char::is_ascii_digit).collect::<String>();
            digits.parse::<u32>().ok()
        };
        match (next().unwrap_or(0), next().unwrap_or(0)) {
            (major, minor) if (major, minor) < (2, 20) => Self::Nothing,
            (major, minor) if (major, minor) < (3, 26) => Self::LostCarry,
            _ => Self::Sound,
        }
    }

    pub(super) fn figure(self, number: number::Number, field: &str) -> Figure {
        let figure = Figure::within(number.value, number.step, field);
        let (whole, fraction) = (number.value.trunc(), number.value.fract());
        match self {
            Self::Nothing if number.step < 1.0 => {
                Figure { least: whole, most: whole + 1.0, ..figure }
            }
            Self::LostCarry if number.step < 1.0 && fraction == 0.0 => {
                Figure { most: whole + 1.0 + number.step, ..figure }
            }
            _ => figure,
        }
    }
}

/// Parses a number that fio shortened. For example, `4935.4K` is 4,935,400, and the last digit was
/// truncated or rounded.
pub(super) fn figure(text: &str, unit: f64, field: &str, tail: Tail) -> Option<Figure> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => return None,
    };
    let number = number::plain(digits.trim())?;
    if factor == 1.0 {
        // The number was not shortened. It is a whole number, or was printed with `%f`.
        let step = if number.step == 1.0 { 0.0 } else { number.step };
        return Some(Figure::within(number.value, step, field).scaled(unit));
    }
    Some(tail.figure(number, field).scaled(factor * unit))
}

/// Parses an amount with its unit. In version 2, `2393.0MB` and `40810KB/s` are in powers of 1024,
/// as is `43.9MiB/s` in version 3. In version 3, `46.0MB/s` is in powers of 1000. This amount is in
/// brackets, or precedes the other amount with `kb_base=1000`.
pub(super) fn amount(text: &str, field: &str, tail: Tail) -> Option<Figure> {
    let text = text.trim_end_matches("/s");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let bits = unit.ends_with("bit");
    let marked = unit.trim_end_matches("bit").trim_end_matches('b');
    let prefix = marked.trim_end_matches('i');
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|p| *p == prefix)? as i32;
    let decimal = tail != Tail::Nothing && !marked.ends_with('i');
    let base: f64 = if decimal { 1000.0 } else { 1024.0 };
    let factor = base.powi(power) / if bits { 8.0 } else { 1.0 };
    let number = number::plain(digits)?;
    Some(tail.figure(number, field).scaled(factor))
}

pub(super) fn parse_announced_options(text: &str, number: usize) -> Options {
    let mut options = Options::default();
    let place = |name: &str| format!("line {number} ({name})");
    for name in ["rw", "ioengine", "iodepth"] {
        if let Some(value) = value(text, name) {
            options.set(name, value, &place(name));
        }
    }
    if let Some((_, sizes)) = text.split_once("bs=") {
        // The text is `4K-4K/4K-4K/4K-4K`, or `(R) 4096B-4096B, (W) 4096B-4096B, (T) …`. If the two
        // sizes of a direction differ, the direction has no single size.
        let sizes = sizes.split(", ioengine").next().unwrap_or(sizes);
        let ranges: Vec<&str> = sizes
            .split(['/', ','])
            .map(|range| range.trim().trim_start_matches(|c| "(RWT) ".contains(c)).trim())
            .filter(|range| !range.is_empty())
            .collect();
        // In the output, `KiB` is 1024 bytes. In options, the unit of 1024 bytes is `k`.
        let option = |size: &str| size.trim_end_matches('B').trim_end_matches('i').to_owned();
        let one = |range: &&str| match range.split_once('-') {
            Some((from, to)) if from == to => Some(option(from)),
            Some(_) => None,
            None => Some(option(range)),
        };
        let sizes: Option<Vec<String>> = ranges.iter().map(one).collect();
        if let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty()) {
            options.set("bs", &sizes.join(","), &place("bs"));
        }
    }
    options
}

/// Parses `io=2393.0MB, bw=40810KB/s, iops=39, runt= 60045msec`, or `IOPS=11.2k, BW=43.9MiB/s
/// (46.0MB/s)(2634MiB/60001msec)`.
pub(super) fn direction(kind: Kind, text: &str, number: usize, tail: Tail) -> Operation {
    let mut operation = Operation::of(kind);
    let at = |name: &str| field(number, name);
    let rate = value(text, "IOPS").or_else(|| value(text, "iops"));
    operation.rate_per_s.extend(rate.and_then(|text| {
        // fio truncates a rate to a whole number before it shortens it.
        let figure = figure(text, 1.0, &at("iops"), tail)?;
        Some(Figure { most: figure.most + 1.0, ..figure })
    }));
    let bandwidth = value(text, "BW").or_else(|| value(text, "bw"));
    operation.bandwidth_per_s.extend(bandwidth.and_then(|text| amount(text, &at("bw"), tail)));
    operation.bandwidth_per_s.extend(second_bandwidth(text, "BW", number, tail));
    let (io, time) = match text.rsplit_once("msec") {
        Some((before, _)) => match (before.rsplit_once('('), before.rsplit_once("runt=")) {
            (_, Some((_, time))) => (value(text, "io"), Some(time)),
            (Some((_, pair)), None) => match pair.split_once('/') {
                Some((io, time)) => (Some(io), Some(time)),
                None => (None, None),
            },
            (None, None) => (None, None),
        },
        None => (value(text, "io"), None),
    };
    operation.bytes.extend(io.and_then(|text| amount(text, &at("io"), tail)));
    operation.window_ns =
        time.and_then(|text| figure(text.trim(), NS_PER_MS, &at("runtime"), Tail::Sound));
    operation
}

/// Parses the bandwidth in brackets of `BW=43.9MiB/s (46.0MB/s)`. It is the same figure in powers of
/// the other base.
pub(super) fn second_bandwidth(
    text: &str,
    name: &str,
    number: usize,
    tail: Tail,
) -> Option<Figure> {
    let (_, rest) = text.split_once(&format!("{name}="))?;
    let (first, rest) = rest.split_once(" (")?;
    let (second, _) = rest.split_once(')').filter(|_| !first.contains([',', '(']))?;
    amount(second, &field(number, &format!("{} in brackets", name.to_lowercase())), tail)
}

/// Parses `issued rwts: total=1,0,0,0 short=0,0,0,0 dropped=0,0,0,0`, or `issued    :
/// total=r=2393/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0`.
pub(super) fn issued(part: &mut Part, text: &str, number: usize) {
    let of = |name: &str| -> Vec<f64> {
        let Some((_, rest)) = text.split_once(&format!("{name}=")) else { return Vec::new() };
        let end = rest.find([' ']).unwrap_or(rest.len());
        let parts = rest[..end].split([',', '/']);
        let digits =
            |part: &str| part.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().ok();
        parts.map_while(digits).collect()
    };
    let dropped = if text.contains("dropped=") { of("dropped") } else { of("drop") };
    let (total, short) = (of("total"), of("short"));
    // With `unified_rw_reporting`, the number of reads is the number of all operations.
    let unified = part
        .operations
        .iter()
        .all(|operation| !operation.kind.moves_data())
        .then_some((0, &Kind::All));
    let divided = DIRECTIONS.iter().map(|(_, kind)| kind).enumerate().take(3);
    for (index, kind) in divided.chain(unified) {
        let Some(operation) = part.operations.iter_mut().find(|o| o.kind == *kind) else {
            continue;
        };
        let of = |counts: &[f64]| {
            counts.get(index).map(|count| Figure::exact(*count, field(number, "issued")))
        };
        operation.count.extend(of(&total));
        (operation.short, operation.errors) = (of(&short), of(&dropped));
    }
}

pub(super) fn stage_of(word: &str) -> Option<Stage> {
    match word {
        "slat" => Some(Stage::Submission),
        "clat" => Some(Stage::Completion),
        "lat" | "sync" | "fsync" => Some(Stage::Total),
        _ => None,
    }
}

pub(super) fn unit_of(text: &str) -> Option<f64> {
    match text.trim() {
        "nsec" => Some(1.0),
        "usec" => Some(1e3),
        "msec" => Some(1e6),
        "sec" => Some(1e9),
        _ => None,
    }
}

/// Parses `clat (usec): min=14, max=…`. Returns the stage, the unit in ns, and the text after the
/// colon.
pub(super) fn latency_line(line: &str) -> Option<(Stage, f64, &str)> {
    let (word, rest) = line.split_once(" (")?;
    let (unit, rest) = rest.split_once(')')?;
    let rest = rest.trim_start().strip_prefix(':')?;
    rest.contains("avg=").then_some(())?;
    Some((stage_of(word.trim())?, unit_of(unit)?, rest))
}

pub(super) fn latency(stage: Stage, unit: f64, rest: &str, number: usize, tail: Tail) -> Latency {
    let word = match stage {
        Stage::Submission => "slat",
        Stage::Completion => "clat",
        _ => "lat",
    };
    let of = |name: &str| {
        value(rest, name)
            .and_then(|t| figure(t, unit, &field(number, &format!("{word} {name}")), tail))
    };
    // fio truncates the minimum and the maximum to whole units.
    let cut = |figure: Option<Figure>| {
        figure.map(|f| if unit > 1.0 { Figure { most: f.most + unit, ..f } } else { f })
    };
    Latency {
        stage,
        min_ns: cut(of("min")),
        mean_ns: of("avg"),
        max_ns: cut(of("max")),
        stddev_ns: of("stdev"),
        ..Latency::default()
    }
}

/// Limits above which the latency of a flush is treated as an error of fio: a length, and a ratio
/// of the length to the run time.
const FLUSH_NS_MAX: f64 = 60e9;
const FLUSH_RATIO_MAX: f64 = 10.0;
/// Remark on flushes with an implausible latency.
pub(super) const FLUSHES_UNTIMED: &str = "the flush latencies are longer than the run, because fio \
                                          measured some of them from the boot of the host";

/// Removes the latencies of flushes that fio measured from the start of the host, because it lost
/// the submission time. This occurred in fio 3.33 with libaio. Returns true if latencies were
/// removed.
pub(super) fn drop_unstarted_flushes(part: &mut Part) -> bool {
    let Some(window_ns) = part.window_ns.as_ref().map(|window| window.value) else { return false };
    let mut dropped = false;
    for operation in part.operations.iter_mut().filter(|o| o.kind == Kind::Sync) {
        let before = operation.latencies.len();
        operation.latencies.retain(|latency| {
            let longest = latency.max_ns.as_ref().map_or(0.0, |max| max.value);
            longest < FLUSH_NS_MAX || longest < window_ns * FLUSH_RATIO_MAX
        });
        dropped |= operation.latencies.len() < before;
    }
    dropped
}

/// Remark on latencies that fio did not measure from the start of the operation.
pub(super) const LATENCIES_UNSTARTED: &str = "a latency cannot be used, because fio measured it \
                                              from the start of the job and not from the start of \
                                              the operation (disable_lat or sqthread_poll)";
/// Minimum ratio of the longest of such latencies to the run time.
const UNSTARTED_SHARE_MIN: f64 = 0.9;

/// Removes latencies that fio measured from the start of the job. With `disable_lat`, fio does not
/// record when an operation started, so submission latencies are wrong. With `sqthread_poll`, it
/// does not record when an operation was submitted, so completion latencies are wrong. Returns true
/// if latencies were removed.
pub(super) fn drop_unstarted_latencies(operation: &mut Operation) -> bool {
    let of = |stage: Stage| operation.latencies.iter().find(|latency| latency.stage == stage);
    let window_ns = operation.window_ns.as_ref().map_or(f64::INFINITY, |window| window.value);
    let unstarted = match (of(Stage::Total), of(Stage::Completion)) {
        (None, _) => Stage::Submission,
        // The total latency of an operation includes its completion latency.
        (Some(Latency { max_ns: Some(total), .. }), Some(Latency { min_ns, max_ns, .. }))
            if min_ns.as_ref().is_some_and(|min| min.least > total.most)
                && max_ns
                    .as_ref()
                    .is_some_and(|max| max.most > window_ns * UNSTARTED_SHARE_MIN) =>
        {
            Stage::Completion
        }
        _ => return false,
    };
    let before = operation.latencies.len();
    operation.latencies.retain(|latency| latency.stage != unstarted);
    operation.latencies.len() < before
}

/// Widens the counts of a job that ended with an error, because fio also counts failed operations.
/// These have a submission latency, but no completion latency.
pub(super) fn include_failed(part: &mut Part) {
    for operation in &mut part.operations {
        operation.latencies.retain(|latency| latency.stage != Stage::Submission);
        operation.count.iter_mut().chain(&mut operation.rate_per_s).for_each(|f| f.least = 0.0);
    }
}

/// Widens the counts by the operations in flight. fio counts an operation when it issues it. At the
/// end of a latency search and of a replayed log, it does not wait for the operations in flight
/// (`td_io_getevents` returns at once if `td->done`). A report during a run includes them too.
/// `depth` is their maximum number, or `None` if it is unknown. The `N` of the completion latency
/// counts only completed operations.
pub(super) fn include_unfinished(part: &mut Part, depth: Option<f64>) {
    let run_ns = part.window_ns.as_ref().map(|window| window.value);
    for operation in part.operations.iter_mut().filter(|o| o.kind != Kind::Sync) {
        let Some(issued) = operation.count.first().map(|count| count.value) else { continue };
        // Without a size, the bytes are not compared with the count.
        let Some(depth) = depth.or(operation.size_bytes.as_ref().map(|_| f64::INFINITY)) else {
            continue;
        };
        let mut latencies = operation.latencies.iter();
        let completed = latencies
            .find(|latency| latency.stage == Stage::Completion)
            .and_then(|latency| latency.count.as_ref())
            .map_or(0.0, |count| count.value);
        let unfinished = (issued - completed).min(depth).max(0.0);
        let window_ns = operation.window_ns.as_ref().map(|window| window.value).or(run_ns);
        let per_s = match window_ns.filter(|ns| *ns > 0.0) {
            Some(ns) => unfinished / (ns / 1e9),
            None if unfinished > 0.0 => f64::INFINITY,
            None => 0.0,
        };
        let widen = |figure: &mut Figure, by: f64| figure.least = (figure.least - by).max(0.0);
        operation.count.iter_mut().for_each(|count| widen(count, unfinished));
        operation.rate_per_s.iter_mut().for_each(|rate| widen(rate, per_s));
    }
}

/// Adds a remark if it is not yet in the list.
pub(super) fn remark(remarks: &mut Vec<String>, says: &str) {
    if !remarks.iter().any(|remark| remark == says) {
        remarks.push(says.to_owned());
    }
}

pub(super) fn percentiles_header(line: &str) -> Option<(Stage, f64)> {
    let (word, rest) = line.split_once(" percentiles (")?;
    let unit = unit_of(rest.split(')').next()?)?;
    Some((stage_of(word.trim())?, unit))
}

pub(super) fn percentiles(
    operation: &mut Operation,
    stage: Stage,
    unit: f64,
    line: &str,
    number: usize,
) {
    if !operation.latencies.iter().any(|latency| latency.stage == stage) {
        operation.latencies.push(Latency { stage, ..Latency::default() });
    }
    let Some(latency) = operation.latencies.iter_mut().find(|latency| latency.stage == stage)
    else {
        return;
    };
    for cell in line.trim_start_matches('|').split("],") {
        let Some((percent, value)) = cell.split_once("th=[") else { continue };
        let value = value.trim_end_matches(']').trim();
        let (Ok(percent), Some(parsed)) = (percent.trim().parse::<f64>(), number::plain(value))
        else {
            continue;
        };
        let ns = parsed.value * unit;
        let octave = if ns >= 1.0 { ns.log2().floor().exp2() } else { 1.0 };
        // The uncertainty is the width of the bin plus the rounding to the printed unit.
        let width = octave / BINS_PER_OCTAVE + if unit > 1.0 { unit } else { 1.0 };
        let most = if ns >= LAST_BIN_NS { UNBOUNDED_NS } else { ns + width };
        let field = field(number, &format!("{percent}th percentile"));
        let ns = Figure { value: ns, least: (ns - width).max(0.0), most, field };
        if (0.0..=100.0).contains(&percent) {
            latency.percentiles.push(Percentile { quantile: percent / 100.0, ns });
        }
    }
}

/// Parses `bw (KB  /s): min= 2659, max=21787, per=18.38%, avg=7501.19, stdev=3806.99`.
pub(super) fn bandwidth_samples(line: &str) -> Option<(f64, &str)> {
    let (unit, rest) = line.strip_prefix("bw")?.trim_start().strip_prefix('(')?.split_once(')')?;
    let unit: String = unit.chars().filter(|c| !c.is_whitespace()).collect();
    // The units are always powers of 1024.
    let one = amount(&format!("1{}", unit.trim_end_matches("/s")), "", Tail::Nothing)?.value;
    Some((one, rest.trim_start().strip_prefix(':')?))
}

pub(super) fn sampled(rest: &str, unit: f64, number: usize, word: &str) -> SampleStatistics {
    let of = |name: &str| {
        let figure = figure(
            value(rest, name)?,
            unit,
            &field(number, &format!("{word} {name}")),
            Tail::Sound,
        )?;
        // fio truncates the whole numbers.
        Some(if figure.least == figure.most {
            Figure { most: figure.most + unit, ..figure }
        } else {
            figure
        })
    };
    SampleStatistics {
        min: of("min"),
        mean: of("avg"),
        max: of("max"),
        stddev: of("stdev"),
        samples: value(rest, "samples")
            .and_then(|t| figure(t, 1.0, &field(number, "samples"), Tail::Sound)),
    }
}
