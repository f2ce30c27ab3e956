//! diskspd (Microsoft): XML (`-Rxml`) and text output.
//!
//! The amounts for each thread and target are exact. Times have two decimals, and latencies (in ms)
//! have three decimals. The profile, which is a part of the text or the XML element `Profile`,
//! describes the workload.

use plimsoll_evidence::tool_result::{
    Aggregate, Durability, Figure, Formula, Kind, Operation, Outstanding, Part, Pattern, Point,
    Quantity, Series, Setting, Stage, ToolResult,
};
use roxmltree::{Document, Node};

use crate::parts::{Digits, figure, latency, percentile, source};

const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// Returns true if the text is diskspd's XML.
#[must_use]
pub fn is_xml(text: &str) -> bool {
    text.contains("<Results>")
        && (text.contains("<TestTimeSeconds>")
            || text.contains("<DiskSpd")
            || text.contains("<Tool>"))
}

/// Returns true if the text is diskspd's text.
#[must_use]
pub fn is_text(text: &str) -> bool {
    text.contains("actual test time:") && text.contains("Total IO")
        || text.contains("Command Line:") && text.contains("Results for timespan")
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn text_of<'a>(node: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    child(node, name)?.text().map(str::trim).filter(|text| !text.is_empty())
}

fn number(
    node: Node<'_, '_>,
    name: &str,
    digits: Digits,
    unit: f64,
    place: &str,
) -> Option<Figure> {
    let child = node.children().find(|child| child.has_tag_name(name))?;
    figure(child.text()?, digits, unit, format!("{place}/{name}"))
}

/// Reads the XML, and returns one result for each time span.
///
/// # Errors
/// The text is not XML, or contains no results.
pub fn read_xml(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let start = text.find("<Results").ok_or("it has no <Results>")?;
    let end =
        text.rfind("</Results>").ok_or("it ends before </Results>, so the file is cut off")?;
    let document = Document::parse(&text[start..end + "</Results>".len()])
        .map_err(|error| error.to_string())?;
    let root = document.root_element();
    let requested: Vec<Node<'_, '_>> = child(root, "Profile")
        .and_then(|profile| child(profile, "TimeSpans"))
        .map(|spans| spans.children().filter(|n| n.has_tag_name("TimeSpan")).collect())
        .unwrap_or_default();
    let spans: Vec<Node<'_, '_>> = root.children().filter(|n| n.has_tag_name("TimeSpan")).collect();
    if spans.is_empty() {
        return Err("it contains no time span".into());
    }
    let version = child(root, "System")
        .and_then(|system| child(system, "Tool"))
        .and_then(|tool| text_of(tool, "Version"));
    let several = spans.len() > 1;
    let read = |(index, span): (usize, &Node<'_, '_>)| {
        let mut reported = ToolResult::new(source("diskspd", "diskspd XML", file));
        reported.source.version = version.map(str::to_owned);
        reported.source.place = several.then(|| format!("time span {}", index + 1));
        if let Some(error) = text_of(*span, "Error") {
            reported.remarks.push(error.to_owned());
        }
        let place = format!("TimeSpan[{index}]");
        of_span(&mut reported, *span, requested.get(index).copied(), &place);
        reported
    };
    Ok(spans.iter().enumerate().map(read).collect())
}

fn of_span(
    reported: &mut ToolResult,
    span: Node<'_, '_>,
    requested: Option<Node<'_, '_>>,
    place: &str,
) {
    let window = number(span, "TestTimeSeconds", Digits::Rounded, NS_PER_S, place);
    let threads: Vec<Node<'_, '_>> = span.children().filter(|n| n.has_tag_name("Thread")).collect();
    for (thread_index, thread) in threads.iter().enumerate() {
        for target in thread.children().filter(|n| n.has_tag_name("Target")) {
            let place = format!("{place}/Thread[{thread_index}]/Target");
            let path = text_of(target, "Path").unwrap_or_default();
            let requested = requested.and_then(|requested| profile_target(requested, path));
            let mut part = Part {
                rank: Some(format!("thread {}", text_of(*thread, "Id").unwrap_or("?"))),
                name: path.to_owned(),
                window_ns: window.clone(),
                setting: requested.map(|requested| setting(requested, 1.0)).unwrap_or_default(),
                ..Part::default()
            };
            let size =
                requested.and_then(|a| number(a, "BlockSize", Digits::Exact, 1.0, "Profile"));
            for (word, bytes, count, kind) in [
                ("", "BytesCount", "IOCount", Kind::All),
                ("Read", "ReadBytes", "ReadCount", Kind::Read),
                ("Write", "WriteBytes", "WriteCount", Kind::Write),
            ] {
                let mut operation = Operation::of(kind);
                let exact = |name: &str| number(target, name, Digits::Exact, 1.0, &place);
                operation.bytes.extend(exact(bytes));
                operation.count.extend(exact(count));
                operation.size_bytes = size.clone();
                let ms = |name: String| number(target, &name, Digits::Rounded, NS_PER_MS, &place);
                operation.latencies.extend(latency(Stage::Total, |l| {
                    l.mean_ns = ms(format!("Average{word}LatencyMilliseconds"));
                    l.stddev_ns = ms(format!("{word}LatencyStdev"));
                }));
                if !operation.is_idle() {
                    part.operations.push(operation);
                }
            }
            reported.parts.push(part);
        }
    }
    total(reported, span, window, place);
    divide(reported);
}

/// Returns the target in the profile that has this path.
fn profile_target<'a>(span: Node<'a, 'a>, path: &str) -> Option<Node<'a, 'a>> {
    let targets = child(span, "Targets")?;
    targets
        .children()
        .filter(|n| n.has_tag_name("Target"))
        .find(|t| text_of(*t, "Path") == Some(path))
}

fn setting(target: Node<'_, '_>, threads: f64) -> Setting {
    let exact = |name: &str| number(target, name, Digits::Exact, 1.0, "Profile/Target");
    let has = |name: &str| text_of(target, name) == Some("true");
    let paced = exact("ThinkTime").is_some_and(|f| f.value > 0.0)
        || child(target, "Throughput").is_some_and(|t| t.text() != Some("0"));
    let random = exact("Random").is_some_and(|f| f.value > 0.0)
        || exact("RandomRatio").is_some_and(|f| f.value == 100.0);
    Setting {
        outstanding: exact("RequestCount")
            .map(|f| Outstanding { most: f.scaled(threads), kept: !paced }),
        read_percent: exact("WriteRatio").map(|f| Figure {
            value: 100.0 - f.value,
            least: 100.0 - f.most,
            most: 100.0 - f.least,
            ..f
        }),
        pattern: Some(if random { Pattern::Random } else { Pattern::Sequential }),
        direct: Some(has("DisableOSCache") || has("DisableAllCache")),
        durability: Some(if has("WriteThrough") || has("DisableAllCache") {
            Durability::EachWrite
        } else {
            Durability::Nothing
        }),
        target: text_of(target, "Path").map(str::to_owned),
        ..Setting::default()
    }
}

/// Reads the latencies and intervals of all threads together.
fn total(reported: &mut ToolResult, span: Node<'_, '_>, window: Option<Figure>, place: &str) {
    let mut part =
        Part { name: "total".into(), window_ns: window, is_total: true, ..Part::default() };
    if let Some(at) = child(span, "Latency") {
        let place = format!("{place}/Latency");
        for (word, kind) in [("Total", Kind::All), ("Read", Kind::Read), ("Write", Kind::Write)] {
            let ms = |node: Node<'_, '_>, name: &str, field: &str| {
                figure(text_of_any(node, name)?, Digits::Rounded, NS_PER_MS, field.to_owned())
            };
            let mut operation = Operation::of(kind.clone());
            operation.latencies.extend(latency(Stage::Total, |l| {
                l.mean_ns = ms(
                    at,
                    &format!("Average{word}Milliseconds"),
                    &format!("{place}/Average{word}Milliseconds"),
                );
                l.stddev_ns =
                    ms(at, &format!("{word}LatencyStdev"), &format!("{place}/{word}LatencyStdev"));
                for bucket in at.children().filter(|n| n.has_tag_name("Bucket")) {
                    let Some(percent) =
                        text_of(bucket, "Percentile").and_then(|t| t.parse::<f64>().ok())
                    else {
                        continue;
                    };
                    let value = ms(
                        bucket,
                        &format!("{word}Milliseconds"),
                        &format!("{place}/Bucket[{percent}]/{word}Milliseconds"),
                    );
                    match percent {
                        0.0 => l.min_ns = value,
                        100.0 => l.max_ns = value,
                        _ => l.percentiles.extend(percentile(percent, value)),
                    }
                }
            }));
            let counts: Vec<Figure> = counts(reported, &kind);
            if let Some(latency) = operation.latencies.first_mut() {
                let sum: f64 = counts.iter().map(|count| count.value).sum();
                latency.count = (sum > 0.0)
                    .then(|| Figure::exact(sum, format!("{place} ({word}Count of all)")));
                mean(reported, &kind, latency.mean_ns.clone());
            }
            if !operation.latencies.is_empty() {
                part.operations.push(operation);
            }
        }
    }
    part.series = intervals(span, place);
    if !part.operations.is_empty() || !part.series.is_empty() {
        reported.parts.push(part);
    }
}

fn text_of_any<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().find(|child| child.has_tag_name(name))?.text()
}

fn counts(reported: &ToolResult, kind: &Kind) -> Vec<Figure> {
    let alike = reported.operations().filter(|(_, operation)| operation.kind == *kind);
    alike.filter_map(|(_, operation)| operation.count.first().cloned()).collect()
}

/// The overall mean must be between the means of the threads.
fn mean(reported: &mut ToolResult, kind: &Kind, total: Option<Figure>) {
    let alike =
        reported.operations().filter(|(part, operation)| !part.is_total && operation.kind == *kind);
    let of: Vec<Figure> =
        alike.flat_map(|(_, o)| o.latencies.iter().filter_map(|l| l.mean_ns.clone())).collect();
    if let Some(total) = total.filter(|_| !of.is_empty()) {
        let what = format!("mean latency of {} over all threads", word(kind));
        reported.combined.push(Aggregate {
            what,
            formula: Formula::Between,
            total,
            of,
            slack: 0.0,
        });
    }
}

fn intervals(span: Node<'_, '_>, place: &str) -> Vec<Series> {
    let Some(iops) = child(span, "Iops") else { return Vec::new() };
    let buckets: Vec<Node<'_, '_>> = iops.children().filter(|n| n.has_tag_name("Bucket")).collect();
    let at = |bucket: &Node<'_, '_>, name: &str| bucket.attribute(name)?.parse::<f64>().ok();
    let of = |word: &str, kind: Kind| {
        let point = |bucket: &Node<'_, '_>| {
            Some(Point { at_s: at(bucket, "SampleMillisecond")? / 1e3, value: at(bucket, word)? })
        };
        let points: Vec<Point> = buckets.iter().filter_map(point).collect();
        let interval_s = points.first().map(|point| point.at_s);
        let busy = points.iter().any(|point| point.value > 0.0);
        busy.then(|| Series {
            quantity: Quantity::RatePerS,
            kind,
            stage: Stage::Total,
            field: format!("{place}/Iops/Bucket/{word}"),
            interval_s,
            points,
            partial: false,
            understates: false,
        })
    };
    of("Read", Kind::Read).into_iter().chain(of("Write", Kind::Write)).collect()
}

/// Reads the text, and returns one result for each time span.
///
/// # Errors
/// The text contains no results.
pub fn read_text(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let requested = profile_in_text(&lines);
    let mut all = Vec::new();
    let mut current: Option<(ToolResult, Option<Figure>, Section)> = None;
    let finish = |(mut reported, ..): (ToolResult, Option<Figure>, Section)| {
        divide(&mut reported);
        reported.parts.retain(|part| !part.operations.is_empty());
        reported
    };
    for (index, line) in lines.iter().enumerate() {
        if let Some(time) = line.strip_prefix("actual test time:") {
            all.extend(current.take().map(finish));
            let mut reported = ToolResult::new(source("diskspd", "diskspd text", file));
            reported.options = requested.clone();
            let time = time.trim().trim_end_matches('s');
            let window = figure(
                time,
                Digits::Rounded,
                NS_PER_S,
                format!("line {} (actual test time)", index + 1),
            );
            current = Some((reported, window, Section::None));
            continue;
        }
        let Some((reported, window, section)) = current.as_mut() else { continue };
        match *line {
            "Total IO" => *section = Section::Io(Kind::All, Vec::new()),
            "Read IO" => *section = Section::Io(Kind::Read, Vec::new()),
            "Write IO" => *section = Section::Io(Kind::Write, Vec::new()),
            _ if line.starts_with("%-ile") => *section = Section::Percentiles,
            "Total latency distribution:" | "Totals:" => *section = Section::None,
            _ => text_line(reported, window.as_ref(), section, line, index + 1),
        }
    }
    all.extend(current.map(finish));
    let several = all.len() > 1;
    for (index, reported) in all.iter_mut().enumerate() {
        reported.source.place = several.then(|| format!("time span {}", index + 1));
    }
    if all.is_empty() { Err("it contains no measured time span".into()) } else { Ok(all) }
}

enum Section {
    None,
    /// Rows of the threads, and the names of their columns.
    Io(Kind, Vec<String>),
    Percentiles,
}

fn text_line(
    reported: &mut ToolResult,
    window: Option<&Figure>,
    section: &mut Section,
    line: &str,
    number: usize,
) {
    match section {
        Section::None => {}
        Section::Percentiles => percentiles_line(reported, line, number),
        Section::Io(kind, columns) => {
            if line.starts_with("thread |") {
                *columns = line.split('|').map(|cell| cell.trim().to_owned()).collect();
                return;
            }
            let total = line.strip_prefix("total:");
            let cells: Vec<&str> = total.unwrap_or(line).split('|').map(str::trim).collect();
            // In some versions, the heading of the percentiles is `total:`.
            let is_row = cells.len() > 3 && (total.is_some() || cells[0].parse::<u32>().is_ok());
            if !is_row || columns.is_empty() {
                return;
            }
            let shift = usize::from(total.is_none());
            let at = |name: &str| {
                let column = columns.iter().position(|column| column == name)?;
                cells.get(column + shift - 1).copied()
            };
            let take = |name: &str, digits, unit| {
                figure(at(name)?, digits, unit, format!("line {number} ({name})"))
            };
            let mut operation = Operation::of(kind.clone());
            operation.bytes.extend(take("bytes", Digits::Exact, 1.0));
            operation.count.extend(take("I/Os", Digits::Exact, 1.0));
            operation.bandwidth_per_s.extend(take("MiB/s", Digits::Rounded, MIB));
            operation.rate_per_s.extend(take("I/O per s", Digits::Rounded, 1.0));
            let stddev = take("LatStdDev", Digits::Rounded, NS_PER_MS);
            operation.latencies.extend(latency(Stage::Total, |l| {
                l.mean_ns = take("AvgLat", Digits::Rounded, NS_PER_MS);
                l.stddev_ns = stddev;
            }));
            if operation.is_idle() {
                return;
            }
            operation.size_bytes = block_size(&reported.options);
            let options = reported.options.clone();
            let part = Part {
                rank: (total.is_none()).then(|| format!("thread {}", cells[0])),
                name: if total.is_some() {
                    "total".into()
                } else {
                    cells.last().copied().unwrap_or_default().to_owned()
                },
                window_ns: window.cloned(),
                setting: if total.is_none() {
                    setting_of_text(&options)
                } else {
                    Setting::default()
                },
                operations: vec![operation],
                is_total: total.is_some(),
                ..Part::default()
            };
            if part.is_total {
                sums(reported, &part);
            }
            merge(reported, part);
        }
    }
}

/// The reads and writes of a thread share its queue depth, so they must be in the same part.
fn merge(reported: &mut ToolResult, part: Part) {
    let same = |other: &&mut Part| {
        other.rank == part.rank
            && other.is_total == part.is_total
            && (other.is_total || other.name == part.name)
    };
    match reported.parts.iter_mut().find(same) {
        Some(other) => other.operations.extend(part.operations),
        None => reported.parts.push(part),
    }
}

fn sums(reported: &mut ToolResult, total: &Part) {
    for operation in &total.operations {
        let of = |pick: fn(&Operation) -> Option<&Figure>| -> Vec<Figure> {
            let alike =
                reported.operations().filter(|(p, o)| !p.is_total && o.kind == operation.kind);
            alike.filter_map(|(_, o)| pick(o).cloned()).collect()
        };
        type Pick = fn(&Operation) -> Option<&Figure>;
        let quantities: [(&str, Pick); 2] =
            [("bytes", |o| o.bytes.first()), ("operations", |o| o.count.first())];
        let mut combined = Vec::new();
        for (quantity, pick) in quantities {
            let parts = of(pick);
            if let Some(sum) = pick(operation).filter(|_| !parts.is_empty()) {
                let what = format!("{quantity} of {} over all threads", word(&operation.kind));
                combined.push(Aggregate {
                    what,
                    formula: Formula::Sum,
                    total: sum.clone(),
                    of: parts,
                    slack: 0.0,
                });
            }
        }
        reported.combined.extend(combined);
    }
}

fn word(kind: &Kind) -> &str {
    if *kind == Kind::All { "reads and writes" } else { kind.word() }
}

/// Replaces the figures of reads and writes together by checks of these figures. diskspd adds both
/// counters for each operation (`TargetResults::Add`), and merges both histograms. Each percentile of
/// the merged histogram is therefore between those of reads and writes.
fn divide(reported: &mut ToolResult) {
    for part in &mut reported.parts {
        let is_whole = |operation: &Operation| operation.kind == Kind::All;
        let (wholes, kinds): (Vec<_>, Vec<_>) = part.operations.drain(..).partition(is_whole);
        let repeated = kinds.len() > 2 || kinds.len() == 2 && kinds[0].kind == kinds[1].kind;
        part.operations = kinds;
        let ([whole], false) = (&wholes[..], repeated || part.operations.is_empty()) else {
            continue;
        };
        let whose = [part.rank.as_deref().unwrap_or_default(), &part.name].join(" ");
        let mut add = |word: &str, formula, pick: &dyn Fn(&Operation) -> Option<Figure>| {
            let of: Option<Vec<Figure>> = part.operations.iter().map(pick).collect();
            let what = format!("{word} of reads and writes of {}", whose.trim());
            reported.combined.extend(pick(whole).zip(of).map(|(total, of)| Aggregate {
                what,
                formula,
                total,
                of,
                slack: 0.0,
            }));
        };
        add("bytes", Formula::Sum, &|o| o.bytes.first().cloned());
        add("operations", Formula::Sum, &|o| o.count.first().cloned());
        add("bandwidth", Formula::Sum, &|o| o.bandwidth_per_s.first().cloned());
        add("rate", Formula::Sum, &|o| o.rate_per_s.first().cloned());
        add("mean latency", Formula::Between, &|o| o.latencies.first()?.mean_ns.clone());
        add("minimum latency", Formula::Between, &|o| o.latencies.first()?.min_ns.clone());
        add("maximum latency", Formula::Max, &|o| o.latencies.first()?.max_ns.clone());
        for one in whole.latencies.iter().flat_map(|latency| &latency.percentiles) {
            add(&format!("p{}", one.quantile * 100.0), Formula::Between, &|o| {
                let mut percentiles = o.latencies.first()?.percentiles.iter();
                Some(percentiles.find(|other| other.quantile == one.quantile)?.ns.clone())
            });
        }
    }
}

fn percentiles_line(reported: &mut ToolResult, line: &str, number: usize) {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, read, write, all] = cells[..] else { return };
    let quantile = match name {
        "min" => Some(0.0),
        "max" => Some(100.0),
        _ => match name.split_once("th").or_else(|| name.split_once("-nines")) {
            Some((digits, "")) if name.ends_with("th") => digits.parse::<f64>().ok(),
            Some((digits, "")) => {
                digits.parse::<i32>().ok().map(|nines| 100.0 - 10f64.powi(2 - nines))
            }
            _ => None,
        },
    };
    let Some(percent) = quantile else { return };
    for (text, kind) in [(all, Kind::All), (read, Kind::Read), (write, Kind::Write)] {
        let value = figure(
            text,
            Digits::Rounded,
            NS_PER_MS,
            format!("line {number} ({name} of {})", kind.word()),
        );
        let Some(value) = value else { continue };
        let total = reported.parts.iter_mut().find(|part| part.is_total);
        let operation = total.and_then(|part| part.operations.iter_mut().find(|o| o.kind == kind));
        let Some(latency) = operation.and_then(|o| o.latencies.first_mut()) else { continue };
        match name {
            "min" => latency.min_ns = Some(value),
            "max" => latency.max_ns = Some(value),
            _ => latency.percentiles.extend(percentile(percent, Some(value))),
        }
    }
}

/// Parses the profile of the workload, which DiskSpd prints as words and values.
fn profile_in_text(lines: &[&str]) -> std::collections::BTreeMap<String, String> {
    let mut options = std::collections::BTreeMap::new();
    for line in lines {
        for (start, name) in [
            ("block size: ", "block size"),
            ("number of outstanding I/O operations per thread: ", "outstanding per thread"),
            ("threads per file: ", "threads per file"),
            ("think time: ", "think time"),
            ("performing mix test (read/write ratio: ", "read/write ratio"),
            ("duration: ", "duration"),
            ("warm up time: ", "warm up time"),
            ("Command Line: ", "command line"),
        ] {
            if let Some(value) = line.strip_prefix(start) {
                options
                    .entry(name.to_owned())
                    .or_insert_with(|| value.trim_end_matches(')').to_owned());
            }
        }
        for (words, name, value) in [
            ("using random I/O", "pattern", "random"),
            ("using sequential I/O", "pattern", "sequential"),
            ("using interlocked sequential I/O", "pattern", "sequential"),
            ("software cache disabled", "direct", "yes"),
            ("using software cache", "direct", "no"),
            ("hardware and software write caches disabled", "direct", "yes"),
            ("writethrough on", "write through", "yes"),
            ("throughput rate-limited", "rate limit", "yes"),
        ] {
            if line.contains(words) {
                options.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    options
}

/// Parses `4KiB`, `64KiB`, `1MiB`, or bytes.
fn block_size(options: &std::collections::BTreeMap<String, String>) -> Option<Figure> {
    let text = options.get("block size")?;
    let (digits, unit) = crate::number::split_unit(text);
    let factor = crate::number::unit(unit).map_or(1.0, |unit| unit.other);
    figure(digits, Digits::Exact, factor, "block size")
}

fn setting_of_text(options: &std::collections::BTreeMap<String, String>) -> Setting {
    let get = |name: &str| options.get(name).map(String::as_str);
    let depth = get("outstanding per thread")
        .and_then(|t| figure(t, Digits::Exact, 1.0, "outstanding per thread"));
    let paused = get("think time").is_some_and(|t| t != "0ms") || get("rate limit").is_some();
    Setting {
        outstanding: depth.map(|most| Outstanding { most, kept: !paused }),
        pattern: get("pattern")
            .map(|p| if p == "random" { Pattern::Random } else { Pattern::Sequential }),
        direct: get("direct").map(|direct| direct == "yes"),
        durability: get("write through").map(|_| Durability::EachWrite),
        ..Setting::default()
    }
}

#[cfg(test)]
mod tests;
