//! fio's terse output (`--minimal`), versions 2 to 5. It has a line for each job, with fields
//! between semicolons.

use plimsoll_evidence::tool_result::{
    Bin, Complaint, CounterReset, DeviceCounts, Figure, Kind, Latency, Operation, Part, Percentile,
    SampleStatistics, Source, Stage, ToolResult, Weight,
};

use super::messages;
use super::printed::{self, drop_unstarted_latencies};
use super::shares::{self, RANGES};
use crate::number;

const KIB: f64 = 1024.0;
const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;
const PERCENTILES: usize = 20;
const BINS_PER_OCTAVE: f64 = 64.0;
/// Number of fields for each direction. They contain amounts, three latencies, percentiles and
/// samples. Version 5 has six additional fields.
const FIELDS: usize = 4 + 4 + 4 + PERCENTILES + 4 + 5;

/// Number of fields between the directions and the distribution of latencies. They contain CPU
/// times and queue depths.
const BEFORE_SHARES: usize = 5 + 7;
/// Numbers of latency ranges that fio prints in us and in ms. It does not print the ranges in ns.
const SHARES: [usize; 2] = [10, 12];
/// Number of fields between the directions and the disks.
const AFTER_DIRECTIONS: usize = BEFORE_SHARES + SHARES[0] + SHARES[1];
/// Number of fields for each disk. They are the name, the requests, merges and times of reads and
/// writes, the time in the queue, and the utilisation.
const DISK_FIELDS: usize = 9;

/// Returns true if a line is terse output.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| of_line(bare(line)).is_some())
}

/// Removes the text that precedes terse output in a line, such as the progress or the name of a
/// client.
fn bare(line: &str) -> &str {
    let Some(at) = line.find(";fio-") else { return line };
    let version = line[..at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    &line[version..]
}

/// Returns the version, and the index of the first field of the first direction.
fn of_line(line: &str) -> Option<(u32, usize)> {
    let mut cells = line.split(';');
    let version: u32 = cells.next()?.trim().parse().ok()?;
    let first = match version {
        2 => 4,
        3..=5 if cells.next()?.starts_with("fio-") => 5,
        _ => return None,
    };
    (line.split(';').count() >= first + FIELDS + AFTER_DIRECTIONS).then_some((version, first))
}

/// Number of fields of a direction before the percentiles.
const BEFORE_PERCENTILES: usize = 4 + 4 + 4;

/// Returns the name of a job, and the index of the first field of the first direction. If the name
/// contains semicolons, this index is greater than `first`. The first percentile determines it.
fn name_of(cells: &[&str], first: usize) -> (String, usize) {
    let is_percentile = |cell: &&str| {
        let percent = cell.split_once("%=").map(|(percent, _)| percent.parse::<f64>());
        percent.is_some_and(|percent| percent.is_ok())
    };
    let at = cells.iter().position(is_percentile).and_then(|at| at.checked_sub(BEFORE_PERCENTILES));
    let from = at.map_or(first, |at| at.max(first));
    let name = cells.get(first - 3..from - 2).unwrap_or_default();
    (name.join(";"), from)
}

/// Reads all lines of a file.
///
/// # Errors
/// The file contains no line of terse output.
pub fn read(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(Source {
        tool: "fio".into(),
        format: "fio terse".into(),
        file: file.to_owned(),
        ..Source::default()
    });
    for (index, line) in text.lines().map(bare).enumerate() {
        let Some((version, first)) = of_line(line) else { continue };
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        if version > 2 {
            reported.source.version = Some(cells[1].to_owned());
        }
        let (name, first) = name_of(&cells, first);
        // The group is unknown: lines of several runs may be in one file, and all begin with group 0.
        let mut part = Part { name: name.clone(), ..Part::default() };
        // Terse lines contain no options.
        part.setting.counter_reset = CounterReset::Unknown;
        let error = format!("line {}, field {first} (error)", index + 1);
        if cells[first - 1] == "0" {
            part.errors = Some(Figure::exact(0.0, error));
        } else {
            reported.complaints.push(Complaint {
                weight: Weight::Invalid,
                says: format!("job {name:?} ended with error {}", cells[first - 1]),
                field: error,
            });
        }
        let failed = part.errors.is_none();
        let length = if version == 5 { FIELDS + 6 } else { FIELDS };
        let (kinds, directions) = kinds(&cells, first, length, version);
        for (direction, kind) in kinds.iter().enumerate() {
            let from = first + direction * length;
            let Some(fields) = cells.get(from..from + length) else { break };
            let direction = Direction { fields, from, line: index + 1 };
            let mut operation = direction.operation(kind.clone(), version);
            if drop_unstarted_latencies(&mut operation) {
                printed::remark(&mut reported.remarks, printed::LATENCIES_UNSTARTED);
            }
            if messages::is_unreported(&operation) {
                let field = format!("line {}", index + 1);
                reported.complaints.push(messages::unreported(&name, &field));
            }
            if !operation.is_idle() {
                part.window_ns = part.window_ns.or(operation.window_ns.clone());
                part.operations.push(operation);
            }
        }
        if failed {
            printed::include_failed(&mut part);
        }
        let after = first + directions * length;
        part.latency_shares = latency_shares(cells.get(after + BEFORE_SHARES..), &part);
        let disks = after + AFTER_DIRECTIONS;
        part.devices = devices(cells.get(disks..).unwrap_or_default(), disks, index + 1);
        reported.parts.push(part);
    }
    if reported.parts.is_empty() {
        return Err("it contains no line of fio's terse output".into());
    }
    keep_last_report(&mut reported);
    shares::add_lost(&mut reported);
    let ToolResult { complaints, parts, .. } = &mut reported;
    messages::add(complaints, parts, messages::of_lost_jobs(text, 0..text.len()));
    Ok(reported)
}

/// Returns the kinds of operation in a line, and the number of directions. The field after the last
/// direction is a share of CPU time. With `unified_rw_reporting`, there is one direction. With its
/// value `both`, the last direction is the sum of the preceding directions.
fn kinds(cells: &[&str], first: usize, length: usize, version: u32) -> (Vec<Kind>, usize) {
    let mut kinds = vec![Kind::Read, Kind::Write, Kind::Trim];
    kinds.truncate(if version == 3 { 2 } else { 3 });
    let ends =
        |count: &usize| cells.get(first + count * length).is_some_and(|cell| cell.ends_with('%'));
    match (1..=4).find(ends) {
        Some(1) => (vec![Kind::All], 1),
        Some(directions) => (kinds, directions),
        None => (kinds.clone(), kinds.len()),
    }
}

/// Parses the distribution of completion latencies. The result is empty if some latencies may be
/// below 1 us, because fio does not print these.
fn latency_shares(cells: Option<&[&str]>, part: &Part) -> Vec<Bin> {
    let latencies = || part.operations.iter().flat_map(|operation| &operation.latencies);
    let min = latencies().filter_map(|latency| latency.min_ns.as_ref());
    if min.map(|min| min.least).fold(f64::INFINITY, f64::min) < NS_PER_US {
        return Vec::new();
    }
    let ranges = [NS_PER_US, NS_PER_MS]
        .into_iter()
        .zip(SHARES)
        .flat_map(|(unit, count)| RANGES.iter().take(count).map(move |(label, _)| (*label, unit)));
    let cells = cells.unwrap_or_default().iter();
    let share = |((label, unit), cell): ((&str, f64), &&str)| {
        shares::share(label, unit, cell.strip_suffix('%')?.parse().ok()?)
    };
    ranges.zip(cells).filter_map(share).collect()
}

/// Minimum time in ms between two reports of a running job. The times at which the clones of a job
/// end differ by less than this.
const REPORT_MS_MIN: f64 = 90.0;
/// Minimum time in ms between two reports, if the job transferred data between them. Clones that
/// transferred different amounts have the same run time.
const GROWN_MS_MIN: f64 = 20.0;

/// Returns true if the latencies of a later report may include those of an earlier report. No
/// minimum may rise, and no maximum may fall. The minima and maxima of two clones of a job, in
/// contrast, differ in both directions.
fn extremes_widen(earlier: &Part, later: &Part) -> bool {
    let value = |figure: &Option<Figure>| figure.as_ref().map(|figure| figure.value);
    earlier.operations.iter().all(|before| {
        let after = later.operations.iter().find(|operation| operation.kind == before.kind);
        after.is_some_and(|after| {
            before.latencies.iter().all(|latency| {
                let same = after.latencies.iter().find(|other| other.stage == latency.stage);
                same.is_some_and(|same| {
                    value(&same.min_ns) <= value(&latency.min_ns)
                        && value(&same.max_ns) >= value(&latency.max_ns)
                })
            })
        })
    })
}

fn ran_ns(part: &Part) -> f64 {
    part.window_ns.as_ref().map_or(0.0, |window| window.value)
}

fn moved(part: &Part) -> f64 {
    part.operations.iter().filter_map(|o| o.bytes.first()).map(|bytes| bytes.value).sum()
}

/// Returns true if a report may be the next report of the same job. The time between the `last`
/// report and the previous report may be short.
fn may_follow(earlier: &Part, later: &Part, last: bool) -> bool {
    let gap_ms = (ran_ns(later) - ran_ns(earlier)) / NS_PER_MS;
    let grown = moved(later) - moved(earlier);
    let spaced = gap_ms >= REPORT_MS_MIN || gap_ms >= GROWN_MS_MIN && grown > 0.0;
    let same_job = earlier.name == later.name && grown >= 0.0 && extremes_widen(earlier, later);
    same_job && (spaced || last && gap_ms >= 0.0 || is_copy(earlier, later))
}

/// Returns true if the latencies of all these reports have the same mean. This is never the case
/// for clones.
fn is_copy(earlier: &Part, later: &Part) -> bool {
    let means = |part: &Part| {
        let latencies = part.operations.iter().flat_map(|operation| &operation.latencies);
        latencies.filter_map(|l| Some(l.mean_ns.as_ref()?.value)).collect::<Vec<_>>()
    };
    !means(earlier).is_empty() && means(earlier) == means(later) && moved(earlier) == moved(later)
}

/// Keeps only the last of several reports on the same jobs (`--status-interval`). Each report lists
/// the same job names. From report to report, the time and bytes of each job increase, and the
/// range of its latencies widens.
fn keep_last_report(reported: &mut ToolResult) {
    let parts = &reported.parts;
    // Each repetition of the sequence of job names is a report.
    let cycle = (1..=parts.len() / 2).find(|length| {
        let pairs = parts.iter().zip(&parts[*length..]).enumerate();
        let last_from = parts.len() - 2 * length;
        parts.len().is_multiple_of(*length)
            && pairs.into_iter().all(|(index, (earlier, later))| {
                may_follow(earlier, later, last_from > 0 && index >= last_from)
            })
    });
    if let Some(length) = cycle {
        let reports = parts.len() / length;
        reported.parts.drain(..reported.parts.len() - length);
        reported.remarks.push(format!(
            "the file contains {reports} reports of the same run (--status-interval); only the last \
             report was used"
        ));
    }
}

/// Parses disk statistics at the end of a line.
fn devices(cells: &[&str], from: usize, line: usize) -> Vec<DeviceCounts> {
    let of = |(number, disk): (usize, &[&str])| {
        let place = |index: usize, name: &str| {
            let field = from + number * DISK_FIELDS + index + 1;
            format!("line {line}, field {field} ({name})")
        };
        let count = |index: usize, name: &str| {
            let number = number::plain(disk.get(index)?)?;
            Some(Figure::exact(number.value, place(index, name)))
        };
        let busy = disk.get(8)?.strip_suffix('%')?.parse::<f64>().ok()?;
        Some(DeviceCounts {
            name: (*disk.first()?).to_owned(),
            reads: count(1, "disk reads"),
            writes: count(2, "disk writes"),
            read_merges: count(3, "disk read merges"),
            write_merges: count(4, "disk write merges"),
            busy_share: Some(Figure::rounded(busy / 100.0, 1e-4, place(8, "disk util"))),
            ..DeviceCounts::default()
        })
    };
    // An error or a description may follow the disks. Neither of these ends with a utilisation.
    cells.chunks_exact(DISK_FIELDS).enumerate().map_while(of).collect()
}

struct Direction<'l> {
    fields: &'l [&'l str],
    from: usize,
    line: usize,
}

impl Direction<'_> {
    fn field(&self, index: usize, name: &str) -> String {
        format!("line {}, field {} ({name})", self.line, self.from + index + 1)
    }

    fn cut(&self, index: usize, unit: f64, name: &str) -> Option<Figure> {
        let number = number::plain(self.fields.get(index)?)?;
        Some(Figure::truncated(number.value, number.step, self.field(index, name)).scaled(unit))
    }

    fn rounded(&self, index: usize, unit: f64, name: &str) -> Option<Figure> {
        let number = number::plain(self.fields.get(index)?)?;
        Some(Figure::rounded(number.value, number.step, self.field(index, name)).scaled(unit))
    }

    fn latency(&self, from: usize, stage: Stage, word: &str) -> Option<Latency> {
        let name = |end: &str| format!("{word} {end}");
        let latency = Latency {
            stage,
            min_ns: self.cut(from, NS_PER_US, &name("min")),
            max_ns: self.cut(from + 1, NS_PER_US, &name("max")),
            mean_ns: self.rounded(from + 2, NS_PER_US, &name("mean")),
            stddev_ns: self.rounded(from + 3, NS_PER_US, &name("deviation")),
            ..Latency::default()
        };
        // fio prints zeroes for a latency that it did not measure.
        latency.mean_ns.as_ref().is_some_and(|mean| mean.value > 0.0).then_some(latency)
    }

    fn operation(&self, kind: Kind, version: u32) -> Operation {
        let mut operation = Operation::of(kind);
        operation.bytes.extend(self.cut(0, KIB, "KiB"));
        operation.bandwidth_per_s.extend(self.cut(1, KIB, "KiB/s"));
        operation.rate_per_s.extend(self.cut(2, 1.0, "IOPS"));
        operation.window_ns = self
            .cut(3, NS_PER_MS, "runtime")
            .map(|f| Figure { most: f.value, ..f })
            .filter(|window| window.value > 0.0);
        let submission = self.latency(4, Stage::Submission, "slat");
        let completion = self.latency(8, Stage::Completion, "clat");
        let total = self.latency(12 + PERCENTILES, Stage::Total, "lat");
        let of_percentiles = either(completion.as_ref(), total.as_ref())
            .map(|latency| Latency { percentiles: self.percentiles(12), ..latency });
        operation.latencies =
            [submission, completion, total, of_percentiles].into_iter().flatten().collect();
        let samples = 16 + PERCENTILES;
        let max = self.cut(samples + 1, KIB, "bw max").filter(|max| max.value > 0.0);
        operation.bandwidth_sampled = max.map(|max| SampleStatistics {
            min: self.cut(samples, KIB, "bw min"),
            mean: self.rounded(samples + 3, KIB, "bw mean"),
            max: Some(max),
            stddev: self.rounded(samples + 4, KIB, "bw deviation"),
            samples: if version == 5 { self.cut(samples + 5, 1.0, "bw samples") } else { None },
        });
        operation
    }

    /// Parses a percentile such as `99.000000%=1234`. It is in us, and was computed from histogram
    /// bins.
    fn percentiles(&self, from: usize) -> Vec<Percentile> {
        let cells = self.fields.get(from..from + PERCENTILES).unwrap_or_default();
        let read = |(index, cell): (usize, &&str)| {
            let (percent, value) = cell.split_once("%=")?;
            let percent = percent.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0)?;
            let us = number::plain(value)?.value;
            let octave = if us >= 1.0 { us.log2().floor().exp2() } else { 1.0 };
            let width = octave / BINS_PER_OCTAVE + 1.0;
            let field = self.field(from + index, &format!("{percent}th percentile"));
            let ns = Figure { value: us, least: (us - width).max(0.0), most: us + width, field }
                .scaled(NS_PER_US);
            Some(Percentile { quantile: percent / 100.0, ns })
        };
        cells.iter().enumerate().filter_map(read).collect()
    }
}

/// Returns a latency whose range includes both of these latencies. The report does not state which
/// of them the percentiles describe: with `lat_percentiles`, fio prints those of the whole
/// operation, otherwise those of the completion.
fn either(completion: Option<&Latency>, total: Option<&Latency>) -> Option<Latency> {
    let (completion, total) = match (completion, total) {
        (Some(completion), Some(total)) => (completion, total),
        (one, other) => return one.or(other).cloned().map(unstated),
    };
    let span = |of: fn(&Latency) -> &Option<Figure>| {
        let (one, other) = (of(completion).as_ref()?, of(total).as_ref()?);
        let (least, most) = (one.least.min(other.least), one.most.max(other.most));
        Some(Figure { least, most, ..other.clone() })
    };
    Some(unstated(Latency {
        min_ns: span(|latency| &latency.min_ns),
        mean_ns: span(|latency| &latency.mean_ns),
        max_ns: span(|latency| &latency.max_ns),
        stddev_ns: span(|latency| &latency.stddev_ns),
        ..Latency::default()
    }))
}

fn unstated(latency: Latency) -> Latency {
    Latency { stage: Stage::Unstated, ..latency }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(version: u32) -> String {
        let direction = |ios: u64| {
            let percentiles: Vec<String> = (0..PERCENTILES)
                .map(|i| {
                    if i < 2 && ios > 0 {
                        format!("{}.000000%={}", 50 + i * 49, 80 + i * 20)
                    } else {
                        "0%=0".into()
                    }
                })
                .collect();
            let samples = if version == 5 { ";10;1;2;1.0;0.5;10" } else { "" };
            format!(
                ";{};{};{};{};1;9;2.5;0.1;70;900;77.500000;3.0;{};72;905;80.000000;3.1;3000;5000;100.000000%;4000.0;9.0{samples}",
                ios * 4,
                ios * 4 / 10,
                ios / 10,
                if ios > 0 { 10_000 } else { 0 },
                percentiles.join(";")
            )
        };
        let head =
            if version == 2 { "2;job;0;0".into() } else { format!("{version};fio-3.33;job;0;0") };
        let trim = if version == 3 { String::new() } else { direction(0) };
        format!("{head}{}{}{trim}{}", direction(0), direction(10_000), rest())
    }

    /// Returns the last fields of a line, after those of the directions. All latencies are in the
    /// range from 50 to 100 us.
    fn rest() -> String {
        let shares = (0..22).map(|range| if range == 5 { ";100.00%" } else { ";0.00%" });
        format!(";1.0%;2.0%;3;4;5{}{}", ";0.1%".repeat(7), shares.collect::<String>())
    }

    #[test]
    fn a_line_with_one_direction_is_of_all_operations() {
        let whole = line(3);
        let cells: Vec<&str> = whole.split(';').collect();
        let text = [&cells[..5], &cells[5 + FIELDS..]].concat().join(";");
        let part = read(&text, "x").unwrap().parts.remove(0);
        assert_eq!(part.operations.len(), 1);
        assert_eq!(
            (&part.operations[0].kind, part.operations[0].rate_per_s[0].value),
            (&Kind::All, 1000.0)
        );
        let ranges: Vec<_> =
            part.latency_shares.iter().map(|bin| (bin.from_ns, bin.to_ns)).collect();
        assert_eq!(ranges, [(50e3, 100e3)]);
    }

    #[test]
    fn percentiles_are_of_the_completion_or_of_the_whole_operation() {
        let latencies = &read(&line(3), "x").unwrap().parts[0].operations[0].latencies;
        let [_, completion, total, either] = &latencies[..] else { panic!("{latencies:?}") };
        assert!(completion.percentiles.is_empty() && total.percentiles.is_empty());
        let (min, max) = (either.min_ns.as_ref().unwrap(), either.max_ns.as_ref().unwrap());
        assert_eq!((min.least, max.most), (70_000.0, 906_000.0));
    }

    #[test]
    fn all_versions_are_read() {
        for version in 2..=5 {
            let text = format!("warning\n{}\n", line(version));
            assert!(is(&text), "{version}");
            let reported = read(&text, "x").unwrap();
            let operations = &reported.parts[0].operations;
            assert_eq!(operations.len(), 1, "{version}");
            assert_eq!(
                (operations[0].kind.word(), operations[0].rate_per_s[0].value),
                ("write", 1000.0)
            );
            assert_eq!(operations[0].latencies[3].percentiles[1].ns.value, 100_000.0);
            assert_eq!(operations[0].latencies[2].mean_ns.as_ref().unwrap().value, 80_000.0);
            assert!(operations[0].rate_per_s[0].field.contains("line 2"));
        }
    }

    #[test]
    fn a_name_may_contain_semicolons() {
        let part = read(&line(3).replace(";job;", ";a;b ; c;"), "x").unwrap().parts.remove(0);
        assert_eq!((part.name.as_str(), part.operations[0].rate_per_s[0].value), ("a;b;c", 1000.0));
    }

    #[test]
    fn a_killed_process_did_not_report_its_bytes() {
        let reported = read(&format!("fio: pid=7, got signal=9\n{}\n", line(3)), "x").unwrap();
        assert!(reported.complaints[0].says.contains("killed by signal 9"));
        let zero = line(3)
            .replace(";40000;4000;1000;10000;1;9;2.5;0.1;70;900;", ";0;0;0;0;0;0;0;0;70;9000;");
        let reported = read(&zero, "x").unwrap();
        assert!(reported.complaints[0].says.contains("without reporting"));
    }

    #[test]
    fn other_semicolons_are_not_terse_output() {
        assert!(!is("2;a;b;c\n3;fio-3;x"));
        assert!(!is(&line(3).replace("fio-", "")));
    }
}
