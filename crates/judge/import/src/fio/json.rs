//! fio's JSON (`--output-format=json` and `json+`). It contains the results of one host, or of
//! several clients and their total.

use plimsoll_evidence::tool_result::{
    Aggregate, Bin, Complaint, CounterReset, DeviceCounts, Figure, Formula, Kind, Membership,
    Operation, Part, Source, ToolResult, Weight,
};

use self::figures::{device, direction, flushes, steady_state};
use super::messages;
use super::options::Options;
use super::printed::{self, FLUSHES_UNTIMED, drop_unstarted_flushes, drop_unstarted_latencies};
use super::shares;
use crate::json::{self, JsonNode};

mod figures;

/// Returns true if the object is a fio result.
#[must_use]
pub fn is(root: &JsonNode<'_, '_>) -> bool {
    root.key("fio version").exists()
        && (root.key("jobs").exists() || root.key("client_stats").exists())
}

/// Reads all results of a text, which follow one another as objects. Several reports of a running
/// job (`--status-interval`) are one result, of which only the last report is used.
///
/// # Errors
/// The text contains no fio result.
pub fn read_all(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let (mut all, mut reports, mut at) = (Vec::<ToolResult>::new(), 1, 0);
    let mut lost = Vec::new();
    loop {
        let (json, range) = match json::first_object(&text[at..]) {
            Ok(found) => found,
            Err(error) if all.is_empty() => return Err(error.to_string()),
            Err(error) if error.cut_off => return Err(error.to_string()),
            Err(_) => break,
        };
        let root = JsonNode::root(&json);
        let places = [root.clone(), root.key("raw").key("result")];
        let Some(found) = places.iter().find(|place| is(place)) else {
            if all.is_empty() {
                return Err("it contains a \"fio version\" but no jobs".into());
            }
            break;
        };
        let mut reported = read(found, file);
        shares::add_lost(&mut reported);
        if all.is_empty() && !text[..range.start].trim().is_empty() {
            let lines = text[..range.start].lines().count();
            reported.remarks.push(format!("{lines} lines of other text precede the JSON"));
        }
        let found = messages::of_lost_jobs(text, at..at + range.start);
        let earlier = all.pop_if(|last| continues(last, &reported));
        match &earlier {
            Some(_) => lost.extend(found),
            None => lost = found,
        }
        if let Some(mut earlier) = earlier {
            reported.remarks.append(&mut earlier.remarks);
            reports += 1;
        }
        messages::add(&mut reported.complaints, &mut reported.parts, lost.clone());
        all.push(reported);
        at += range.end;
    }
    if let Some(last) = all.last_mut() {
        let found = messages::of_lost_jobs(text, at..text.len());
        messages::add(&mut last.complaints, &mut last.parts, found);
    }
    if let [only] = &mut all[..] {
        only.remarks.extend((reports > 1).then(|| {
            format!(
                "the file contains {reports} reports of the same run (--status-interval); only the \
                 last report was used"
            )
        }));
    } else {
        for (index, reported) in all.iter_mut().enumerate() {
            reported.source.place = Some(format!("object {}", index + 1));
        }
    }
    Ok(all)
}

/// Returns true if a report is a later report of the same run. Its jobs and options are the same,
/// and no counter decreased.
fn continues(earlier: &ToolResult, later: &ToolResult) -> bool {
    let sum = |part: &Part, of: fn(&Operation) -> Option<&Figure>| -> f64 {
        part.operations.iter().filter_map(of).map(|figure| figure.value).sum()
    };
    let grew = |(a, b): (&Part, &Part)| {
        let time = |part: &Part| part.window_ns.as_ref().map_or(0.0, |window| window.value);
        let bytes = |part: &Part| sum(part, |o| o.bytes.first());
        a.name == b.name && a.host == b.host && time(a) <= time(b) && bytes(a) <= bytes(b)
    };
    let alike = earlier.options == later.options && earlier.parts.len() == later.parts.len();
    let time = |reported: &ToolResult| reported.source.taken_unix_s;
    let in_order = time(earlier).zip(time(later)).is_none_or(|(a, b)| {
        let longest = later.parts.iter().filter_map(|part| part.window_ns.as_ref());
        let longest_s = longest.map(|window| window.value / 1e9).fold(0.0, f64::max);
        // The run had ended before the later report.
        a <= b && b - a <= longest_s + 2.0
    });
    alike && in_order && earlier.parts.iter().zip(&later.parts).all(grew)
}

#[must_use]
pub fn read(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(Source {
        tool: "fio".into(),
        version: root.key("fio version").text().map(str::to_owned),
        format: "fio JSON".into(),
        file: file.to_owned(),
        place: None,
        taken_unix_s: root.key("timestamp").number(),
    });
    let clients = root.key("client_stats");
    let mut jobs: Vec<JsonNode<'_, '_>> =
        if clients.exists() { clients.items() } else { root.key("jobs").items() }.collect();
    if clients.exists() && keep_last_reports(&mut jobs) {
        reported.remarks.push(
            "the file contains several reports of the same run (--status-interval); only the last \
             report was used"
                .into(),
        );
    }
    for job in &jobs {
        let mut options = options_of(root, job);
        options.final_depth = job.key("latency_depth").exact();
        if reported.options.is_empty() {
            reported.options = options.all();
        }
        take_job(&mut reported, &jobs, job, &options);
    }
    let devices: Vec<DeviceCounts> = root.key("disk_util").items().map(|d| device(&d)).collect();
    let local = jobs.iter().all(|job| options_of(root, job).uses_host_devices());
    if let Some(first) = reported.parts.first_mut().filter(|_| local) {
        first.devices.extend(devices);
    }
    take_missing_clones(&mut reported, root, &jobs);
    take_totals(&mut reported);
    reported
}

/// Minimum run time in ms at which the number of threads of an entry can be determined.
const THREAD_MS_MIN: f64 = 100.0;

/// Compares the number of entries of each job with `numjobs`. Without `group_reporting`, each clone
/// has its own entry. fio does not list this option in the result. An entry for several clones is
/// therefore recognised by its run time, which is their total.
fn take_missing_clones(
    reported: &mut ToolResult,
    root: &JsonNode<'_, '_>,
    jobs: &[JsonNode<'_, '_>],
) {
    for (index, job) in jobs.iter().enumerate() {
        let options = options_of(root, job);
        let listed = entries(jobs, job);
        let stated = options.clones().filter(|s| s.value > 1.0 && listed <= s.value);
        let (Some(stated), None) = (stated, options.get("group_reporting")) else { continue };
        let times = DIRECTIONS.iter().filter_map(|(s, _)| job.key(s).key("runtime").number());
        let longest_ms = times.fold(0.0, f64::max);
        let (share, thread_ms) = RUNTIME_SLACK;
        let one_ms = longest_ms * (1.0 + share) + thread_ms;
        let total_ms = job.key("job_runtime").number();
        let is_one = longest_ms >= THREAD_MS_MIN && total_ms.is_some_and(|ms| ms <= one_ms);
        let failed = job.key("error").number() != Some(0.0);
        if listed == 1.0 && (failed || !is_one) || entries(&jobs[..index], job) > 0.0 {
            continue;
        }
        let name = job.key("jobname").text().unwrap_or_default();
        reported.memberships.push(Membership {
            of: format!("clones of job {name}"),
            stated,
            found: listed as u64,
            missing: Vec::new(),
            place: "listed".into(),
        });
    }
}

/// Minimum time in ms between two reports of a running job. Entries that are closer in time, or
/// state the same amount, are clones of a job.
const REPORT_MS_MIN: f64 = 90.0;

/// Keeps only the last report of each client's job, because fio lists several reports with
/// `--status-interval`. Returns true if there were several reports.
fn keep_last_reports(jobs: &mut Vec<JsonNode<'_, '_>>) -> bool {
    let same = |a: &JsonNode<'_, '_>, b: &JsonNode<'_, '_>| {
        ["jobname", "groupid", "hostname", "port"]
            .iter()
            .all(|n| a.key(n).shown() == b.key(n).shown())
    };
    let sum = |job: &JsonNode<'_, '_>, figure: &str| -> f64 {
        DIRECTIONS.iter().filter_map(|(side, _)| job.key(side).key(figure).number()).sum()
    };
    // A later report includes all latencies of the earlier reports.
    let includes = |earlier: &JsonNode<'_, '_>, later: &JsonNode<'_, '_>| {
        DIRECTIONS.iter().all(|(side, _)| {
            let of = |job: &JsonNode<'_, '_>, figure: &str| {
                job.key(side).key("clat_ns").key(figure).number()
            };
            // fio measures nothing during a ramp.
            let idle = of(earlier, "max").unwrap_or(0.0) == 0.0;
            idle || of(later, "min") <= of(earlier, "min") && of(later, "max") >= of(earlier, "max")
        })
    };
    let follows = |earlier: &JsonNode<'_, '_>, later: &JsonNode<'_, '_>, gap_ms: f64| {
        let grew = sum(later, "io_bytes") - sum(earlier, "io_bytes");
        let took = sum(later, "runtime") - sum(earlier, "runtime");
        let more = took >= gap_ms && (grew > 0.0 || gap_ms == 0.0 && grew == 0.0);
        same(earlier, later) && more && includes(earlier, later)
    };
    let before = jobs.len();
    let mut index = 0;
    while index < jobs.len() {
        // The last report may follow the previous report after any time.
        let gap_ms = if jobs.len() < before { 0.0 } else { REPORT_MS_MIN };
        let superseded = jobs[index + 1..].iter().any(|later| follows(&jobs[index], later, gap_ms));
        if superseded {
            jobs.remove(index);
        } else {
            index += 1;
        }
    }
    jobs.len() < before
}

fn options_of(root: &JsonNode<'_, '_>, job: &JsonNode<'_, '_>) -> Options {
    let mut options = Options::default();
    for list in [root.key("global options"), job.key("job options")] {
        for (name, value) in list.entries() {
            options.set(name, &value.shown().unwrap_or_default(), value.path());
        }
    }
    options
}

/// Returns the number of entries that belong to the same job.
fn entries(jobs: &[JsonNode<'_, '_>], job: &JsonNode<'_, '_>) -> f64 {
    let same = |other: &&JsonNode<'_, '_>| {
        ["jobname", "groupid", "hostname", "port"]
            .iter()
            .all(|name| other.key(name).shown() == job.key(name).shown())
    };
    jobs.iter().filter(same).count() as f64
}

/// Returns the number of clones in an entry. A group report has one entry for all clones.
fn clones(jobs: &[JsonNode<'_, '_>], job: &JsonNode<'_, '_>, options: &Options) -> Option<f64> {
    let listed = entries(jobs, job);
    let stated = options.clones().map(|clones| clones.value);
    if options.get("group_reporting").is_none_or(|value| value == "0") {
        return match stated {
            // Each clone has its own entry, except in a group report.
            Some(count) if listed < count && listed == 1.0 => running(job).map(|n| n.max(count)),
            _ => Some(1.0),
        };
    }
    // Several sections may be in one group. The entry of this group states the options of only one
    // section.
    match (running(job), stated) {
        (Some(running), stated) => Some(running.max(stated.unwrap_or(1.0))),
        (None, Some(stated)) => Some(stated),
        (None, None) => None,
    }
}

/// Remark on an entry of a group report that combines several sections.
pub(crate) const SECTIONS_MERGED: &str = "an entry combines several sections of a job file \
                                          (group_reporting); fio prints the options of only one \
                                          section, so sizes, depth, mix and limits are unknown";
/// Tolerance of the run time of threads. It may exceed the longest run time of their directions by
/// this share, and by this time in ms for each thread.
const RUNTIME_SLACK: (f64, f64) = (0.02, 2.0);

/// Returns true if an entry of a group report combines several sections. Such an entry has the name
/// of the first section and the options of the last section. The total run time of its threads is
/// longer than that of the clones of one section. fio does not list the option `group_reporting`,
/// because it has no value.
fn merges_sections(jobs: &[JsonNode<'_, '_>], job: &JsonNode<'_, '_>, options: &Options) -> bool {
    let name = job.key("jobname").text();
    if name.zip(options.get("name")).is_some_and(|(name, last)| name != last) {
        return true;
    }
    let times = DIRECTIONS.iter().filter_map(|(side, _)| job.key(side).key("runtime").number());
    // The writes and their verification run one after the other.
    let one_ms = match options.get("verify") {
        Some(_) => times.sum(),
        None => times.fold(0.0, f64::max),
    };
    let clones = options.clones().map_or(1.0, |clones| clones.value);
    let (share, thread_ms) = RUNTIME_SLACK;
    let most_ms = clones * (one_ms * (1.0 + share) + thread_ms);
    let total_ms = job.key("job_runtime").number();
    one_ms > 0.0 && entries(jobs, job) == 1.0 && total_ms.is_some_and(|ms| ms > most_ms)
}

/// Returns the number of threads, derived from their total run time.
fn running(job: &JsonNode<'_, '_>) -> Option<f64> {
    let sum = job.key("job_runtime").number().filter(|ms| *ms > 0.0)?;
    let longest = DIRECTIONS.iter().filter_map(|(name, _)| job.key(name).key("runtime").number());
    let longest = longest.fold(0.0, f64::max);
    (longest > 0.0).then(|| (sum / longest).round().max(1.0))
}

const DIRECTIONS: [(&str, Kind); 4] =
    [("read", Kind::Read), ("write", Kind::Write), ("trim", Kind::Trim), ("mixed", Kind::All)];

fn take_job(
    reported: &mut ToolResult,
    jobs: &[JsonNode<'_, '_>],
    job: &JsonNode<'_, '_>,
    options: &Options,
) {
    let name = job.key("jobname").text().unwrap_or_default();
    let is_total = name == "All clients";
    let merged = !is_total && merges_sections(jobs, job, options);
    if merged {
        printed::remark(&mut reported.remarks, SECTIONS_MERGED);
    }
    let mut part = Part {
        name: name.to_owned(),
        host: job.key("hostname").text().map(str::to_owned),
        group: match reported.parts.last() {
            _ if options.starts_late() => None,
            Some(last) if options.joins_previous_group() => last.group.clone(),
            _ => job.key("groupid").shown(),
        },
        setting: match merged {
            true => options.setting_of_group(running(job)),
            false => options.setting(clones(jobs, job, options)),
        },
        is_total,
        latency_shares: latency_shares(job),
        ..Part::default()
    };
    if options.is_empty() {
        part.setting.counter_reset = CounterReset::Unknown;
    }
    if part.is_total {
        part.setting.outstanding = None;
    }
    let first_job = reported.parts.is_empty();
    for (word, kind) in DIRECTIONS {
        let side = job.key(word);
        if !side.exists() {
            continue;
        }
        let mut operation = direction(&side, kind);
        if drop_unstarted_latencies(&mut operation) {
            printed::remark(&mut reported.remarks, printed::LATENCIES_UNSTARTED);
        }
        operation.size_bytes = options.size_of_kind(&operation.kind).filter(|_| !merged);
        options.correct(&mut operation);
        if !merged && options.verifies_meanwhile() && kind_of_check(&operation, &part) {
            forget_time(&mut operation);
            reported.remarks.extend(first_job.then(|| UNTIMED_CHECKS.to_owned()));
        }
        if !operation.is_idle() {
            let longest = part.window_ns.as_ref().map_or(0.0, |window: &Figure| window.value);
            if let Some(window) = operation.window_ns.clone().filter(|w| w.value > longest) {
                part.window_ns = Some(window);
            }
            part.operations.push(operation);
        }
    }
    part.operations.extend(flushes(&job.key("sync")));
    if drop_unstarted_flushes(&mut part) {
        printed::remark(&mut reported.remarks, FLUSHES_UNTIMED);
    }
    part.errors = job.key("total_err").exact();
    part.start_unix_s = job.key("job_start").number().map(|ms| ms / 1e3);
    let cpu = [job.key("usr_cpu").number(), job.key("sys_cpu").number()];
    if let [Some(user), Some(system)] = cpu {
        part.generator_cpu_share = Some(Figure::exact((user + system) / 100.0, job.path()));
    }
    part.series.extend(steady_state(job));
    let attained = job.key("steadystate").key("attained");
    if attained.number() == Some(0.0) {
        reported.complaints.push(Complaint {
            weight: Weight::Warning,
            says: format!("job {name:?} did not reach its steady state"),
            field: attained.path().to_owned(),
        });
    }
    if let Some(error) = job.key("error").number().filter(|error| *error != 0.0) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: format!("job {name:?} ended with error {error}"),
            field: job.key("error").path().to_owned(),
        });
        printed::include_failed(&mut part);
    }
    if part.operations.iter().any(messages::is_unreported) {
        reported.complaints.push(messages::unreported(name, job.path()));
        printed::include_failed(&mut part);
    }
    let depth = |part: &Part| Some(part.setting.outstanding.as_ref()?.most.value);
    let depth = match part.is_total {
        true => reported.parts.iter().map(depth).sum(),
        false => depth(&part),
    };
    printed::include_unfinished(&mut part, depth);
    reported.parts.push(part);
}

/// Reads the distribution of completion latencies over fixed ranges (`latency_ns`, `latency_us`,
/// `latency_ms`).
fn latency_shares(job: &JsonNode<'_, '_>) -> Vec<Bin> {
    let units = [("latency_ns", 1.0), ("latency_us", 1e3), ("latency_ms", 1e6)];
    let of = |(name, unit): (&str, f64)| {
        let ranges = job.key(name);
        let bins = ranges
            .entries()
            .filter_map(|(label, percent)| shares::share(label, unit, percent.number()?));
        bins.collect::<Vec<_>>()
    };
    let mut bins: Vec<Bin> = units.into_iter().flat_map(of).collect();
    bins.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    bins
}

/// Remark on reads that fio issues between writes for verification.
const UNTIMED_CHECKS: &str = "verify_backlog: fio counts the verification reads between writes, but \
                              not their time";

/// Returns true if the job only writes, so that its reads are verification reads.
fn kind_of_check(operation: &Operation, part: &Part) -> bool {
    let writes_only = part.setting.read_percent.as_ref().is_some_and(|share| share.value <= 0.0);
    operation.kind == Kind::Read && writes_only
}

/// Removes figures for which fio uses the run time of only the last phase.
fn forget_time(operation: &mut Operation) {
    operation.rate_per_s.clear();
    operation.bandwidth_per_s.clear();
    operation.window_ns = None;
    (operation.bandwidth_sampled, operation.rate_sampled) = (None, None);
}

/// The entry `All clients` contains the sums over the clients.
fn take_totals(reported: &mut ToolResult) {
    let Some(total) = reported.parts.iter().find(|part| part.is_total) else { return };
    type FigureOf = fn(&Operation) -> Option<&Figure>;
    // The bandwidth in this entry is not the sum of the clients' bandwidths. It is the total number
    // of bytes divided by the longest time.
    let quantities: [(&str, FigureOf); 2] =
        [("operations", |o| o.count.first()), ("bytes", |o| o.bytes.first())];
    let mut combined = Vec::new();
    for operation in &total.operations {
        let parts = || {
            let single = reported.parts.iter().filter(|part| !part.is_total);
            single.flat_map(|p| &p.operations).filter(|o| o.kind == operation.kind)
        };
        for (what, of) in quantities {
            let figures: Vec<Figure> = parts().filter_map(|o| of(o).cloned()).collect();
            if let Some(figure) = of(operation).filter(|_| !figures.is_empty()) {
                combined.push(Aggregate {
                    what: format!("{} {what} over all clients", operation.kind.word()),
                    formula: Formula::Sum,
                    total: figure.clone(),
                    of: figures,
                    slack: 0.0,
                });
            }
        }
    }
    reported.combined.extend(combined);
}

#[cfg(test)]
mod tests;
