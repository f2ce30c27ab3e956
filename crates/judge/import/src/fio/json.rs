//! fio's JSON (`--output-format=json` and `json+`). It contains the results of one host, or of
//! several clients and their total.

use plimsoll_evidence::tool_result::{
    Aggregate, Bin, Complaint, CounterReset, DeviceCounts, Figure, Formula, Kind, Latency,
    Membership, Operation, Part, Percentile, Point, Quantity, SampleStatistics, Series, Source,
    Stage, ToolResult, Weight,
};

use super::messages;
use super::options::Options;
use super::printed::{self, FLUSHES_UNTIMED, drop_unstarted_flushes, drop_unstarted_latencies};
use super::shares;
use crate::json::{self, JsonNode};

/// Number of bytes in a KiB. fio's `bw` is in KiB/s (`bw_bytes >> 10`).
const KIB: f64 = 1024.0;
const NS_PER_MS: f64 = 1e6;
const SECTOR_BYTES: f64 = 512.0;
/// Number of histogram bins in an octave. fio prints the middle of a bin as the percentile. The
/// width of a bin is 1/64 of the next lower power of two (`FIO_IO_U_PLAT_BITS`).
const BINS_PER_OCTAVE: f64 = 64.0;
/// Approximate start of the last histogram bin. It contains all longer latencies, so percentiles in
/// this bin are lower bounds. `FIO_IO_U_PLAT_GROUP_NR` is 29 octaves of ns in version 3, and 19
/// octaves of us in earlier versions.
const LAST_BIN_NS: f64 = 16_700_000_000.0;
/// Represents "no upper bound" in a figure, which must be finite.
const UNBOUNDED_NS: f64 = 1e18;

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

/// Reads the flushes. Some versions print a `total_ios` of 0 together with a histogram of flushes.
/// The count is then the `N` of the histogram.
fn flushes(sync: &JsonNode<'_, '_>) -> Option<Operation> {
    let mut operation = Operation::of(Kind::Sync);
    operation.latencies.extend(latency(sync, "lat", Stage::Total));
    let counted = |figure: &Figure| figure.value > 0.0;
    let timed = operation.latencies.first().and_then(|latency| latency.count.clone());
    let count = sync.key("total_ios").exact().filter(counted).or(timed.filter(counted))?;
    operation.count.push(count);
    Some(operation)
}

fn direction(side: &JsonNode<'_, '_>, kind: Kind) -> Operation {
    let mut operation = Operation::of(kind);
    let mut take = |to: fn(&mut Operation) -> &mut Vec<Figure>, figure: Option<Figure>| {
        to(&mut operation).extend(figure);
    };
    take(|o| &mut o.count, side.key("total_ios").exact());
    // Before version 3.0 `io_bytes` was in KiB.
    match side.key("io_kbytes").truncated() {
        Some(kib) => {
            take(|o| &mut o.bytes, side.key("io_bytes").exact());
            take(|o| &mut o.bytes, Some(kib.scaled(KIB)));
        }
        None => {
            // Some results lack fields. If the remaining fields do not identify the version, it is
            // unknown.
            let any = |names: &[&str]| names.iter().any(|name| side.key(name).exists());
            let bytes = if any(&["bw_bytes", "slat_ns", "clat_ns", "lat_ns"]) {
                side.key("io_bytes").exact()
            } else if any(&["slat", "clat", "lat"]) {
                side.key("io_bytes").truncated().map(|kib| kib.scaled(KIB))
            } else {
                None
            };
            take(|o| &mut o.bytes, bytes);
        }
    }
    take(|o| &mut o.bandwidth_per_s, side.key("bw_bytes").truncated());
    take(|o| &mut o.bandwidth_per_s, side.key("bw").truncated().map(|kib| kib.scaled(KIB)));
    take(|o| &mut o.rate_per_s, side.key("iops").rounded());
    operation.window_ns = side.key("runtime").exact().map(|ms| ms.scaled(NS_PER_MS));
    operation.short = side.key("short_ios").exact();
    operation.errors = side.key("drop_ios").exact();
    for (name, stage) in
        [("slat", Stage::Submission), ("clat", Stage::Completion), ("lat", Stage::Total)]
    {
        operation.latencies.extend(latency(side, name, stage));
    }
    operation.bandwidth_sampled = sampled(side, "bw", "bw_dev", KIB);
    operation.rate_sampled = sampled(side, "iops", "iops_stddev", 1.0);
    operation
}

/// Reads the latencies of a direction. They are in ns since version 3.0 (`clat_ns`), and in us in
/// earlier versions (`clat`).
fn latency(side: &JsonNode<'_, '_>, name: &str, stage: Stage) -> Option<Latency> {
    let now = side.key(&format!("{name}_ns"));
    let (at, unit) = if now.exists() { (now, 1.0) } else { (side.key(name), 1e3) };
    if !at.exists() {
        return None;
    }
    let scaled = |figure: Option<Figure>| figure.map(|figure| figure.scaled(unit));
    let whole = |name: &str| {
        let figure = at.key(name);
        scaled(if unit == 1.0 { figure.exact() } else { figure.truncated() })
    };
    let mut latency = Latency {
        stage,
        count: at.key("N").exact(),
        min_ns: whole("min"),
        mean_ns: scaled(at.key("mean").rounded()),
        max_ns: whole("max"),
        stddev_ns: scaled(at.key("stddev").rounded()),
        ..Latency::default()
    };
    for (name, value) in at.key("percentile").entries() {
        let quantile = name.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        if let Some((percent, ns)) = quantile.zip(value.exact()) {
            latency
                .percentiles
                .push(Percentile { quantile: percent / 100.0, ns: binned(ns, unit) });
        }
    }
    latency.bins = bins(&at.key("bins"), unit);
    // fio prints zero for latencies that it did not measure (`gtod_reduce`, `disable_clat`).
    let nothing =
        |figure: &Option<Figure>| figure.as_ref().is_none_or(|figure| figure.value == 0.0);
    let measured =
        !nothing(&latency.mean_ns) || !nothing(&latency.max_ns) || !latency.bins.is_empty();
    measured.then_some(latency)
}

/// Widens the range of a percentile to its bin, because the printed value is the middle of the bin.
fn binned(figure: Figure, unit: f64) -> Figure {
    let octave = if figure.value >= 1.0 { figure.value.log2().floor().exp2() } else { 1.0 };
    let width = (octave / BINS_PER_OCTAVE).max(1.0);
    let mut figure =
        Figure { least: (figure.value - width).max(0.0), most: figure.value + width, ..figure }
            .scaled(unit);
    if figure.value >= LAST_BIN_NS {
        figure.most = UNBOUNDED_NS;
    }
    figure
}

fn bins(at: &JsonNode<'_, '_>, unit: f64) -> Vec<Bin> {
    let mut bins: Vec<Bin> = at
        .entries()
        .filter_map(|(name, count)| {
            let value = Figure::exact(name.parse::<f64>().ok()?, "");
            let span = binned(value, unit);
            let count = count.number().filter(|count| *count > 0.0)?;
            Some(Bin { from_ns: span.least, to_ns: span.most, count })
        })
        .collect();
    bins.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    bins
}

fn sampled(
    side: &JsonNode<'_, '_>,
    name: &str,
    stddev: &str,
    unit: f64,
) -> Option<SampleStatistics> {
    let at = |end: &str| side.key(&format!("{name}_{end}"));
    let scaled = |figure: Option<Figure>| figure.map(|figure| figure.scaled(unit));
    // fio prints zeroes if there are no samples.
    let samples = at("samples").exact();
    let max = scaled(at("max").truncated()).filter(|max| max.value > 0.0)?;
    Some(SampleStatistics {
        min: scaled(at("min").truncated()),
        mean: scaled(at("mean").rounded()),
        max: Some(max),
        stddev: scaled(side.key(stddev).rounded()),
        samples: samples.filter(|samples| samples.value > 0.0),
    })
}

fn device(at: &JsonNode<'_, '_>) -> DeviceCounts {
    let bytes = |name: &str| at.key(name).exact().map(|sectors| sectors.scaled(SECTOR_BYTES));
    DeviceCounts {
        name: at.key("name").text().unwrap_or_default().to_owned(),
        reads: at.key("read_ios").exact(),
        writes: at.key("write_ios").exact(),
        read_merges: at.key("read_merges").exact(),
        write_merges: at.key("write_merges").exact(),
        read_bytes: bytes("read_sectors"),
        written_bytes: bytes("write_sectors"),
        busy_share: at.key("util").rounded().map(|percent| percent.scaled(0.01)),
    }
}

/// Reads the values that fio lists for each second of a job that ran until its rate was steady.
fn steady_state(job: &JsonNode<'_, '_>) -> Vec<Series> {
    let data = job.key("steadystate").key("data");
    let of = |name: &str, quantity: Quantity, unit: f64| {
        let at = data.key(name);
        let value = |(index, item): (usize, JsonNode<'_, '_>)| {
            item.number().map(|value| Point { at_s: (index + 1) as f64, value: value * unit })
        };
        let points: Vec<Point> = at.items().enumerate().filter_map(value).collect();
        let field = at.path().to_owned();
        let (kind, stage) = (Kind::All, Stage::Total);
        (points.len() > 1).then_some(Series {
            quantity,
            kind,
            stage,
            field,
            interval_s: Some(1.0),
            points,
            // These values are from only the steady window, not from the whole run.
            partial: true,
            understates: true,
        })
    };
    let rate = of("iops", Quantity::RatePerS, 1.0);
    // The values are in bytes, unlike other `bw` values (`steadystate_alloc` and
    // `steadystate_check` in fio's steadystate.c).
    let bandwidth = of("bw", Quantity::BandwidthPerS, 1.0);
    rate.into_iter().chain(bandwidth).collect()
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn derives_the_unit_of_amounts_from_other_fields() {
        for (fields, bytes) in [
            (r#""io_kbytes": 4000, "io_bytes": 4096000"#, Some(4_096_000.0)),
            (r#""lat_ns": {"mean": 5.0}, "io_bytes": 4096000"#, Some(4_096_000.0)),
            (r#""lat": {"mean": 5.0}, "io_bytes": 4000"#, Some(4_096_000.0)),
            (r#""total_ios": 7, "io_bytes": 4000"#, None),
        ] {
            let text = format!("{{{fields}}}");
            let (json, _) = json::parse(&text).unwrap();
            let operation = direction(&JsonNode::root(&json), Kind::Read);
            assert_eq!(operation.bytes.first().map(|bytes| bytes.value), bytes, "{fields}");
        }
    }

    fn result(job: &str) -> ToolResult {
        let text = format!(r#"{{"fio version": "fio-3.33", "jobs": [{job}]}}"#);
        read_all(&text, "f").unwrap().remove(0)
    }

    #[test]
    fn an_entry_of_several_sections_has_no_known_options() {
        let sides = r#""read": {"runtime": 2001, "total_ios": 9, "io_bytes": 36864},
            "write": {"runtime": 1990, "total_ios": 9, "io_bytes": 36864}"#;
        let entry = |options: &str, total_ms: u32| {
            let job = format!(
                r#"{{"jobname": "a", "job_runtime": {total_ms}, {sides}, "job options": {{{options}
                "rw": "rw", "ioengine": "libaio", "iodepth": "8", "bs": "4k"}}}}"#
            );
            let part = result(&job).parts.remove(0);
            (part.setting.outstanding.is_some(), part.operations[0].size_bytes.is_some())
        };
        for (options, total_ms, known) in [
            ("", 2001, true),
            ("", 4000, false),
            (r#""numjobs": "2","#, 4000, true),
            (r#""numjobs": "2","#, 6000, false),
            (r#""verify": "crc32c","#, 3990, true),
            (r#""name": "a","#, 2001, true),
            (r#""name": "b","#, 2001, false),
        ] {
            assert_eq!(entry(options, total_ms), (known, known), "{options} {total_ms}");
        }
    }

    #[test]
    fn a_failed_job_may_have_completed_none_of_its_operations() {
        let job = r#"{"jobname": "a", "error": 22, "read": {"total_ios": 4, "io_bytes": 0,
            "iops": 4000.0, "bw_bytes": 0}}"#;
        let reported = result(job);
        let read = &reported.parts[0].operations[0];
        assert_eq!(
            (read.count[0].least, read.count[0].value, read.rate_per_s[0].least),
            (0.0, 4.0, 0.0)
        );
    }

    #[test]
    fn a_killed_process_did_not_report_its_bytes() {
        let object = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read":
            {"total_ios": 9, "runtime": 2001, "io_bytes": 24576}}]}"#;
        let killed = "fio: pid=7, got signal=9";
        for text in [format!("{killed}\n{object}"), format!("{object}\n{killed}")] {
            let reported = read_all(&text, "f").unwrap().remove(0);
            assert_eq!(reported.complaints.len(), 1, "{text}");
            assert_eq!(reported.parts[0].operations[0].count[0].least, 0.0, "{text}");
        }
        // A later report of the same run has the same message.
        let interim = format!("{object}\n{killed}\n{object}\n{object}");
        let reported = read_all(&interim, "f").unwrap();
        assert_eq!((reported.len(), reported[0].complaints.len()), (1, 1));
        let unreported = r#"{"jobname": "a", "read": {"total_ios": 9, "runtime": 0,
            "io_bytes": 0, "bw_bytes": 0}}"#;
        assert!(result(unreported).complaints[0].says.contains("without reporting"));
    }

    #[test]
    fn operations_in_flight_at_the_end_may_not_have_completed() {
        let least = |options: &str, clat: &str| {
            let job = format!(
                r#"{{"jobname": "a", "read": {{"total_ios": 7460, "iops": 73861.39, "runtime": 101,
                "io_bytes": 30494720, "clat_ns": {{"max": 9, {clat}}}}},
                "job options": {{"bs": "4k", "ioengine": "libaio"{options}}}}}"#
            );
            let read = result(&job).parts.remove(0).operations.remove(0);
            let lost_per_s = read.rate_per_s[0].value - read.rate_per_s[0].least;
            (read.count[0].value - read.count[0].least, (lost_per_s * 0.101).round())
        };
        assert_eq!(least(r#", "iodepth": "16""#, r#""N": 7445"#), (15.0, 15.0));
        assert_eq!(least(r#", "iodepth": "8""#, r#""N": 7445"#), (8.0, 8.0));
        assert_eq!(least(r#", "iodepth": "-8""#, r#""N": 7445"#), (0.0, 0.0));
        assert_eq!(least(r#", "iodepth": "16""#, r#""N": 7460"#), (0.0, 0.0));
        assert_eq!(least(r#", "iodepth": "16""#, r#""mean": 5"#), (16.0, 16.0));
    }

    #[test]
    fn latencies_since_the_start_of_the_job_are_left_out() {
        let stages = |latencies: &str| {
            let job = format!(
                r#"{{"jobname": "a", "read": {{"total_ios": 9, "runtime": 2001, {latencies}}}}}"#
            );
            let reported = result(&job);
            let latencies = &reported.parts[0].operations[0].latencies;
            (latencies.iter().map(|l| l.stage).collect::<Vec<_>>(), reported.remarks.len())
        };
        let disabled = r#""slat_ns": {"min": 107694031, "max": 2105901426, "mean": 1106982024.4},
            "clat_ns": {"min": 37275, "max": 5531147, "mean": 124682.7}, "lat_ns": {"max": 0}"#;
        assert_eq!(stages(disabled), (vec![Stage::Completion], 1));
        let polled = |longest: u64| {
            format!(
                r#""clat_ns": {{"min": 141289287, "max": {longest}, "mean": 1319117138.4}},
                "lat_ns": {{"min": 50926, "max": 51425715, "mean": 3664831.1}}"#
            )
        };
        assert_eq!(stages(&polled(2_150_373_742)), (vec![Stage::Total], 1));
        // The completion latency is too small to be a time since the start of the run, so the
        // figures contradict each other.
        assert_eq!(stages(&polled(150_373_742)), (vec![Stage::Completion, Stage::Total], 0));
    }

    #[test]
    fn jobs_of_a_new_group_ran_beside_those_before_unless_they_waited() {
        let job = |id: u32, options: &str| {
            format!(r#"{{"jobname": "j", "groupid": {id}, "job options": {{{options}}}}}"#)
        };
        let jobs = [
            job(0, ""),
            job(1, r#""new_group": """#),
            job(2, r#""new_group": "", "stonewall": """#),
            job(2, ""),
            job(2, r#""startdelay": "5""#),
            job(2, r#""wait_for": "i""#),
        ];
        let text = format!(r#"{{"fio version": "fio-3.36", "jobs": [{}]}}"#, jobs.join(", "));
        let groups: Vec<Option<String>> =
            read_all(&text, "f").unwrap()[0].parts.iter().map(|part| part.group.clone()).collect();
        let [first, third] = ["0", "2"].map(|group| Some(group.to_owned()));
        assert_eq!(groups, [first.clone(), first, third.clone(), third, None, None]);
    }
}
