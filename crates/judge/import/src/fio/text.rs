//! fio's text output of versions 2 and 3, from one host or from several clients.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_evidence::tool_result::{
    Aggregate, Complaint, CounterReset, DeviceCounts, Figure, Formula, Kind, Membership, Operation,
    Outstanding, Part, Setting, Source, Stage, ToolResult, Weight,
};

use super::messages;
use super::options::Options;
use super::printed::{
    self, DIRECTIONS, NS_PER_MS, Tail, amount, bandwidth_samples, direction, field, figure, issued,
    latency, latency_line, parse_announced_options, percentiles, percentiles_header, sampled,
    second_bandwidth, value,
};
use super::shares;
use crate::runs;

/// Returns true if the text contains the first line of a job's figures.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| job_line(bare(line)).is_some())
        || text.lines().any(|line| parse_announcement(bare(line)).is_some())
}

/// Removes the name of the client, which is in angle brackets, from a line.
fn bare(line: &str) -> &str {
    let trimmed = line.trim_start();
    match trimmed.strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
        Some((_, rest)) => rest,
        None => line.trim_end(),
    }
}

fn client(line: &str) -> Option<&str> {
    let (name, _) = line.trim_start().strip_prefix('<')?.split_once("> ")?;
    Some(name)
}

/// Parses `name: (groupid=0, jobs=4): err= 0: pid=8290: Wed Feb 28 13:36:48 2018`.
fn job_line(line: &str) -> Option<(&str, &str, f64, f64)> {
    let (name, rest) = line.split_once(": (groupid=")?;
    // A client prints its progress (`Jobs: 1 (f=1)`) before the name, without a line break.
    let progress = name.strip_prefix("Jobs: ").and_then(|rest| rest.rsplit([')', ']']).next());
    let name = progress.unwrap_or(name);
    let (group, rest) = rest.split_once(", jobs=")?;
    let (jobs, rest) = rest.split_once("):")?;
    let error = rest.split_once("err=")?.1;
    let error = error.trim_start().split([':', ' ', '(']).next()?.trim();
    Some((name.trim(), group, jobs.trim().parse().ok()?, error.parse().ok()?))
}

/// Parses the line with which fio announces a job before the run: `name: (g=0): rw=randread, bs=(R)
/// 4096B-4096B, …, ioengine=libaio, iodepth=32`.
fn parse_announcement(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, rest) = rest.split_once("): ")?;
    rest.starts_with("rw=").then_some((name.trim(), group, rest))
}

/// Reads all runs in a text. If an announcement of a job follows figures, another run starts there.
///
/// # Errors
/// The text contains no figures of a job.
pub fn read_all(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    // Several clients announce their jobs one after another.
    let clients = text.lines().any(|line| client(line).is_some());
    let (mut any, mut figures) = (false, false);
    let begins = |line: &str| {
        figures |= job_line(line).is_some();
        let new = parse_announcement(line).is_some() && !clients && (figures || !any);
        any |= new;
        figures &= !new;
        new
    };
    runs::read_each(text, begins, |text| read(text, file))
}

/// Returns the lines at which a report starts. These are the first line, and each line in which a
/// job appears again with the same process id.
fn report_lines(text: &str) -> Vec<usize> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut starts = Vec::new();
    for (index, whole) in text.lines().enumerate() {
        let Some((name, group, _, _)) = job_line(bare(whole)) else { continue };
        let pid = value_after(whole, " pid=").unwrap_or_default();
        let job = format!("{} {name} {group} {pid}", client(whole).unwrap_or_default());
        // Without a process id, two jobs with the same name cannot be distinguished.
        let again = !pid.is_empty() && seen.contains(&job);
        if starts.is_empty() || again {
            starts.push(index);
            seen.clear();
        }
        seen.insert(job);
    }
    starts
}

fn value_after<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let rest = line.split_once(name)?.1;
    rest.split([':', ' ']).next()
}

/// Reads all jobs of one run.
///
/// # Errors
/// The text contains no figures of a job.
fn read(text: &str, file: &str) -> Result<ToolResult, String> {
    let version = text.lines().map(bare).find_map(|line| {
        // A client prints the version of each server: `hostname=a, be=0, …, fio=fio-3.33, flags=1`.
        let version = line.split_once(" fio=").map_or(line.trim(), |(_, rest)| rest);
        let end = version.find([' ', ',']).unwrap_or(version.len());
        version.starts_with("fio-").then(|| &version[..end])
    });
    let mut reader = Reader {
        reported: ToolResult::new(Source {
            tool: "fio".into(),
            version: version.map(str::to_owned),
            format: "fio text".into(),
            file: file.to_owned(),
            ..Source::default()
        }),
        announced: Vec::new(),
        options: Options::default(),
        sections_depth: None,
        part: None,
        group: String::new(),
        job_line: 0,
        direction: None,
        percentiles: None,
        summed: false,
        totals: BTreeMap::new(),
        tail: Tail::of(version, text),
    };
    let reports = report_lines(text);
    // Reports of a running job repeat the same counters. Only the last report is complete.
    let interim = match &reports[..] {
        [first, .., last] => *first..*last,
        _ => 0..0,
    };
    for (index, line) in text.lines().enumerate().filter(|(index, _)| !interim.contains(index)) {
        reader.line(line, index + 1);
    }
    reader.end_job();
    if !reader.announced.iter().all(|section| section.options.uses_host_devices()) {
        reader.reported.parts.iter_mut().for_each(|part| part.devices.clear());
    }
    if reports.len() > 1 {
        reader.reported.remarks.push(format!(
            "the file contains {} reports of the same run (--status-interval); only the last report \
             was used",
            reports.len()
        ));
    }
    if reader.reported.parts.is_empty() {
        return Err("it announces fio jobs but contains no figures".into());
    }
    reader.sum();
    shares::add_lost(&mut reader.reported);
    let ToolResult { complaints, parts, .. } = &mut reader.reported;
    messages::add(complaints, parts, messages::of_lost_jobs(text, 0..text.len()));
    let threads = reader.reported.parts.iter().filter(|part| !part.is_total);
    let threads = threads.filter_map(|part| part.setting.threads.as_ref());
    let found: f64 = threads.map(|threads| threads.value).sum();
    // If the text contains no figures, the number of jobs is not evidence.
    let stated = started(text).filter(|_| reader.reported.operations().next().is_some());
    reader.reported.memberships.extend(stated.filter(|s| found <= s.value).map(|stated| {
        let of = "processes or threads".to_owned();
        let place = "reported".to_owned();
        Membership { of, stated, found: found as u64, missing: Vec::new(), place }
    }));
    Ok(reader.reported)
}

/// Returns the number of started jobs: `Starting 2 threads and 1 process`.
fn started(text: &str) -> Option<Figure> {
    let count = |line: &str| -> Option<f64> {
        let words: Vec<&str> = bare(line).trim().strip_prefix("Starting ")?.split(' ').collect();
        let is_unit = |word: &str| word.starts_with("process") || word.starts_with("thread");
        let counts = words.windows(2).filter(|pair| is_unit(pair[1]));
        Some(counts.filter_map(|pair| pair[0].parse::<f64>().ok()).sum())
    };
    let lines = text.lines().enumerate();
    lines.filter_map(|(at, line)| Some((at, count(line)?))).fold(None, |sum, (at, count)| {
        let before = sum.map_or(0.0, |sum: Figure| sum.value);
        Some(Figure::exact(before + count, format!("line {} (Starting)", at + 1)))
    })
}

/// Removes the totals that fio prints in addition to reads and writes with
/// `unified_rw_reporting=both`. These totals have latencies, but no number of operations.
fn drop_copies(part: &mut Part) {
    let divided = part.operations.iter().any(|operation| operation.kind.moves_data());
    part.operations.retain(|operation| {
        !(divided && operation.kind == Kind::All && operation.bytes.iter().all(|b| b.value <= 0.0))
    });
}

/// A section of the job file, according to the line that announces it before the run.
struct Section {
    group: String,
    name: String,
    options: Options,
}

/// Returns the sum of the depths of all sections.
fn sum_of_depths(sections: &[&Options]) -> Option<Figure> {
    let depths: Option<Vec<Figure>> = sections.iter().map(|options| options.depth()).collect();
    let depths = depths?;
    let field = depths.first()?.field.clone();
    Some(Figure::exact(depths.iter().map(|depth| depth.value).sum(), field))
}

/// Minimum ratio of the total latency to the completion latency at which this code assumes that
/// another thread submitted the operations.
const WAITED_RATIO_MIN: f64 = 1.05;

/// Returns true if operations waited until another thread submitted them
/// (`io_submit_mode=offload`). The text does not contain this option, and fio then measures no
/// submission latency.
fn waited_for_thread(part: &Part) -> bool {
    part.operations.iter().any(|operation| {
        let mean = |stage: Stage| {
            let latency = operation.latencies.iter().find(|latency| latency.stage == stage);
            latency.and_then(|latency| latency.mean_ns.as_ref()).map(|mean| mean.value)
        };
        mean(Stage::Submission).is_none()
            && mean(Stage::Completion)
                .zip(mean(Stage::Total))
                .is_some_and(|(completion, total)| total > completion * WAITED_RATIO_MIN)
    })
}

/// Maximum distance in lines between the first line of a job and the totals of its group. Examples in
/// a text such as fio's manual are further apart.
const GROUP_LINES_MAX: usize = 120;

struct Reader {
    reported: ToolResult,
    announced: Vec<Section>,
    /// Options of the current part.
    options: Options,
    /// Depth of the current part, if it combines several sections that have one job each.
    sections_depth: Option<Figure>,
    part: Option<Part>,
    group: String,
    /// Number of the line with which the last job started.
    job_line: usize,
    /// Index of the operation to which the current lines belong.
    direction: Option<usize>,
    /// Stage and unit of the percentiles in the next lines.
    percentiles: Option<(Stage, f64)>,
    /// True after the totals of a client's groups. The jobs of the next client follow.
    summed: bool,
    /// Bytes and bandwidth of the jobs in each group, by direction.
    totals: BTreeMap<(String, Kind), (Vec<Figure>, Vec<Figure>)>,
    tail: Tail,
}

impl Reader {
    fn line(&mut self, whole: &str, number: usize) {
        let line = bare(whole);
        if let Some((name, group, options)) = parse_announcement(line) {
            let options = parse_announced_options(options, number);
            // Several clients may run the same section.
            let repeats = |s: &Section| {
                s.group == group && s.name == name && s.options.all() == options.all()
            };
            if !self.announced.iter().any(repeats) {
                let (group, name) = (group.to_owned(), name.to_owned());
                self.announced.push(Section { group, name, options });
            }
            return;
        }
        if let Some((name, group, jobs, error)) = job_line(line) {
            self.end_job();
            if std::mem::take(&mut self.summed) {
                self.totals.clear();
            }
            self.job_line = number;
            self.begin_job(name, group, jobs, client(whole), error, number);
            return;
        }
        let trimmed = line.trim();
        if let Some(group) = trimmed.strip_prefix("Run status group ") {
            self.end_job();
            self.summed = true;
            self.group = group.chars().take_while(char::is_ascii_digit).collect();
            return;
        }
        if trimmed.starts_with("Disk stats") {
            self.end_job();
            return;
        }
        if self.part.is_none() {
            self.group_line(trimmed, number);
            self.device_line(trimmed, number);
            return;
        }
        self.job_figures(trimmed, number);
    }

    fn begin_job(
        &mut self,
        name: &str,
        group: &str,
        jobs: f64,
        host: Option<&str>,
        error: f64,
        number: usize,
    ) {
        let of_group = self.announced.iter().filter(|section| section.group == group);
        let names: BTreeSet<&str> = of_group.clone().map(|section| section.name.as_str()).collect();
        // With `group_reporting`, one line contains the figures of all sections in a group.
        let merges = jobs > 1.0 && names.len() > 1 && names.contains(name);
        let sections: Vec<&Options> =
            of_group.filter(|s| merges || s.name == name).map(|s| &s.options).collect();
        self.options = Options::shared(&sections);
        let one_job_each = merges && sections.len() as f64 == jobs;
        self.sections_depth = one_job_each.then(|| sum_of_depths(&sections)).flatten();
        if self.reported.options.is_empty() {
            self.reported.options = self.options.all();
        }
        let threads = Some(Figure::exact(jobs, format!("line {number} (jobs)")));
        self.group = group.to_owned();
        let err = format!("line {number} (err)");
        self.part = Some(Part {
            name: name.to_owned(),
            host: host.map(str::to_owned),
            group: Some(group.to_owned()),
            setting: Setting { threads, ..Setting::default() },
            is_total: name == "All clients",
            errors: (error == 0.0).then(|| Figure::exact(0.0, &err)),
            ..Part::default()
        });
        if error != 0.0 {
            self.reported.complaints.push(Complaint {
                weight: Weight::Invalid,
                says: format!("job {name:?} ended with error {error}"),
                field: err,
            });
        }
    }

    fn end_job(&mut self) {
        (self.direction, self.percentiles) = (None, None);
        let Some(mut part) = self.part.take() else { return };
        drop_copies(&mut part);
        let mut unstarted = false;
        for operation in &mut part.operations {
            unstarted |=
                operation.kind != Kind::Sync && printed::drop_unstarted_latencies(operation);
        }
        if unstarted {
            printed::remark(&mut self.reported.remarks, printed::LATENCIES_UNSTARTED);
        }
        part.setting = self.setting(&part);
        if part.errors.is_none() {
            printed::include_failed(&mut part);
        }
        let options = &self.options;
        for operation in &mut part.operations {
            operation.size_bytes = options.size_of_kind(&operation.kind);
            options.correct(operation);
            // The run time of a job is the longest run time of its directions.
            let longest = part.window_ns.as_ref().map_or(0.0, |window| window.value);
            part.window_ns =
                operation.window_ns.clone().filter(|w| w.value > longest).or(part.window_ns.take());
            if !part.is_total {
                let sums =
                    self.totals.entry((self.group.clone(), operation.kind.clone())).or_default();
                sums.0.extend(operation.bytes.first().cloned());
                sums.1.extend(operation.window_ns.clone());
            }
        }
        if printed::drop_unstarted_flushes(&mut part) {
            printed::remark(&mut self.reported.remarks, printed::FLUSHES_UNTIMED);
        }
        let depth = part.setting.outstanding.as_ref().map(|outstanding| outstanding.most.value);
        printed::include_unfinished(&mut part, depth);
        self.reported.parts.push(part);
    }

    /// Returns the setting of a part, from its options and figures.
    fn setting(&mut self, part: &Part) -> Setting {
        if self.options.is_synchronous() && waited_for_thread(part) {
            self.options.set("io_submit_mode", "offload", "io_submit_mode");
        }
        let threads = part.setting.threads.clone();
        let mut setting = self.options.setting(threads.as_ref().map(|threads| threads.value));
        if let Some(most) = self.sections_depth.take() {
            setting.outstanding = Some(Outstanding { most, kept: false });
        }
        // The text does not contain options that reduce the number of operations in flight
        // (`rate_iops`, `thinktime`).
        if let Some(outstanding) = &mut setting.outstanding {
            outstanding.kept = false;
        }
        // The text does not contain `ramp_time`.
        Setting { threads, counter_reset: CounterReset::Unknown, ..setting }
    }

    fn job_figures(&mut self, line: &str, number: usize) {
        let Some(part) = self.part.as_mut() else { return };
        for (word, kind) in DIRECTIONS {
            let Some(rest) =
                line.strip_prefix(word).and_then(|rest| rest.trim_start().strip_prefix(':'))
            else {
                continue;
            };
            part.operations.push(direction(kind, rest, number, self.tail));
            self.direction = Some(part.operations.len() - 1);
            self.percentiles = None;
            return;
        }
        if let Some(shares) = shares::of_line(line) {
            part.latency_shares.extend(shares);
            return;
        }
        if let Some(rest) = line.strip_prefix("latency") {
            let depth = value(rest, "depth");
            self.options.final_depth =
                depth.and_then(|text| figure(text, 1.0, &field(number, "depth"), Tail::Sound));
            return;
        }
        if line.starts_with("fsync/fdatasync") {
            part.operations.push(Operation::of(Kind::Sync));
            self.direction = Some(part.operations.len() - 1);
            return;
        }
        if let Some(rest) = line.strip_prefix("issued") {
            issued(part, rest, number);
            self.direction = None;
            return;
        }
        if let Some(rest) = line.strip_prefix("errors") {
            part.errors = value(rest, "total")
                .and_then(|text| figure(text, 1.0, &field(number, "errors"), Tail::Sound));
            return;
        }
        if let Some(rest) = line.strip_prefix("cpu") {
            let share = |name| value(rest, name)?.trim_end_matches('%').parse::<f64>().ok();
            if let (Some(user), Some(system)) = (share("usr"), share("sys")) {
                part.generator_cpu_share =
                    Some(Figure::exact((user + system) / 100.0, field(number, "cpu")));
            }
            self.direction = None;
            return;
        }
        let Some(operation) = self.direction.and_then(|index| part.operations.get_mut(index))
        else {
            return;
        };
        // Another table ends the current one, such as those of each priority (`clat prio 1/0`).
        if line.contains(" percentiles (") {
            self.percentiles = percentiles_header(line);
        } else if let Some((stage, unit)) = self.percentiles.filter(|_| line.starts_with('|')) {
            percentiles(operation, stage, unit, line, number);
        } else if let Some((stage, unit, rest)) = latency_line(line) {
            self.percentiles = None;
            operation.latencies.push(latency(stage, unit, rest, number, self.tail));
        } else if let Some((unit, rest)) = bandwidth_samples(line) {
            operation.bandwidth_sampled = Some(sampled(rest, unit, number, "bw"));
        } else if let Some(rest) =
            line.strip_prefix("iops").and_then(|rest| rest.trim_start().strip_prefix(':'))
        {
            operation.rate_sampled = Some(sampled(rest, 1.0, number, "iops"));
        }
    }

    /// Reads a line of `Run status group`.
    fn group_line(&mut self, line: &str, number: usize) {
        let (word, rest) = line.split_once(": ").unwrap_or((line, ""));
        let Some((_, kind)) = DIRECTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))
        else {
            return;
        };
        let mut total = Operation::of(kind.clone());
        // Version 3 prints `bw=` and `run=60001-60002msec`, version 2 prints `aggrb=` and
        // `maxt=60045msec`.
        let bandwidth = value(rest, "bw").or_else(|| value(rest, "aggrb"));
        total
            .bandwidth_per_s
            .extend(bandwidth.and_then(|text| amount(text, &field(number, "bw"), self.tail)));
        total.bandwidth_per_s.extend(second_bandwidth(rest, "bw", number, self.tail));
        total.bytes.extend(
            value(rest, "io").and_then(|text| amount(text, &field(number, "io"), self.tail)),
        );
        let longest = value(rest, "maxt")
            .or_else(|| value(rest, "run").map(|t| t.rsplit('-').next().unwrap_or(t)));
        total.window_ns = longest.and_then(|text| {
            let text = text.trim_end_matches("msec");
            figure(text, NS_PER_MS, &field(number, "run"), Tail::Sound)
        });
        let key = (self.group.clone(), kind.clone());
        let follows = number - self.job_line <= GROUP_LINES_MAX;
        let parts = self.totals.get(&key).filter(|_| follows);
        if let Some((sum, (bytes, _))) = total.bytes.first().zip(parts) {
            self.reported.combined.push(Aggregate {
                what: format!("bytes of {} in group {}", kind.word(), self.group),
                formula: Formula::Sum,
                total: sum.clone(),
                of: bytes.clone(),
                slack: 0.0,
            });
        }
        if total.bytes.is_empty() && total.bandwidth_per_s.is_empty() {
            return;
        }
        self.reported.parts.push(Part {
            name: format!("group {}", self.group),
            window_ns: total.window_ns.clone(),
            operations: vec![total],
            is_total: true,
            ..Part::default()
        });
    }

    /// Reads a line of `Disk stats`: `nvme0n1: ios=0/12, merge=0/0, ticks=0/5, in_queue=5,
    /// util=99.10%`.
    fn device_line(&mut self, line: &str, number: usize) {
        let Some((name, rest)) = line.split_once(": ios=") else { return };
        let rest = format!("ios={rest}");
        let pair = |key: &str| -> [Option<Figure>; 2] {
            let text = value(&rest, key).unwrap_or_default();
            let mut both = text.split('/');
            let mut next =
                || both.next().and_then(|t| figure(t, 1.0, &field(number, key), Tail::Sound));
            [next(), next()]
        };
        let [reads, writes] = pair("ios");
        let sectors = pair("sectors").map(|f| f.map(|f| f.scaled(512.0)));
        let [read_bytes, written_bytes] = sectors;
        let [read_merges, write_merges] = pair("merge");
        let busy = value(&rest, "util").and_then(|t| t.trim_end_matches('%').parse::<f64>().ok());
        let device = DeviceCounts {
            name: name.trim().to_owned(),
            reads,
            writes,
            read_merges,
            write_merges,
            read_bytes,
            written_bytes,
            busy_share: busy
                .map(|percent| Figure::rounded(percent / 100.0, 1e-4, field(number, "util"))),
        };
        if let Some(part) = self.reported.parts.first_mut() {
            part.devices.push(device);
        }
    }

    fn sum(&mut self) {
        // The entry for all clients contains the sums over the clients.
        let Some(total) = self.reported.parts.iter().find(|part| part.name == "All clients") else {
            return;
        };
        let mut combined = Vec::new();
        for operation in &total.operations {
            let clients = self.reported.parts.iter().filter(|part| !part.is_total);
            let same =
                clients.flat_map(|part| &part.operations).filter(|o| o.kind == operation.kind);
            let bytes: Vec<Figure> = same.filter_map(|o| o.bytes.first().cloned()).collect();
            if let Some(sum) = operation.bytes.first().filter(|_| !bytes.is_empty()) {
                combined.push(Aggregate {
                    what: format!("bytes of {} over all clients", operation.kind.word()),
                    formula: Formula::Sum,
                    total: sum.clone(),
                    of: bytes,
                    slack: 0.0,
                });
            }
        }
        self.reported.combined.extend(combined);
    }
}

#[cfg(test)]
mod tests;
