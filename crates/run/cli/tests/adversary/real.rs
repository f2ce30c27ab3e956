//! Small and short runs on real storage.

use std::time::Duration;

use serde_json::Value;

use crate::case::{Case, CaseResult};
use crate::disturbance::{self, Kind as Disturbance};
use crate::program::Going;
use crate::s3::{KEY, SECRET};
use crate::second_stream::SecondStream;
use crate::stack::{Kind, Stack};
use crate::support::draw::Draw;
use crate::support::metrics::metrics;
use crate::support::{Sandbox, json};
use crate::truth::Truth;
use crate::wrong::{self, Mistake, Wrong};

/// The random parameters of a case.
struct StackCase {
    stack: Kind,
    disturbance: Disturbance,
    /// True if the measurement takes 30 s, so that a PASS is possible.
    long: bool,
    measure_ms: u64,
    reads: u64,
    direct: &'static str,
    warm: bool,
    io_kib: u64,
    depth: u64,
    /// Lines of the plan that set the order of operations.
    order: &'static str,
    sync: &'static str,
    compressibility: &'static str,
    verify: bool,
    requirement: Required,
    claims: &'static [&'static str],
    declared: Declaration,
    accepted: bool,
    second: Option<SecondStream>,
    /// True if the parameters were chosen for an honest case.
    honest: bool,
}

/// Kind of requirement. Any storage on this host meets `Little`, `LittleLatency` and `Held`; no
/// storage meets the other three.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    Little,
    LittleLatency,
    Much,
    MuchLatency,
    Held,
    TooMuchHeld,
}

/// Declaration in the plan about the storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declaration {
    Nothing,
    SmallCache,
    /// Declares a cache that is larger than the data that the load reads, as a user does for an
    /// array with a known cache.
    LargeCache,
    Media(&'static str),
    Reduction,
    /// Declares that the storage does not reduce data.
    NoReduction,
    Metrics,
}

const CLAIMS: [&[&str]; 10] = [
    &[],
    &[],
    &[],
    &["media-read"],
    &["durable-write"],
    &["burst-write"],
    &["sustained-write"],
    &["tail-latency"],
    &["in-memory"],
    &["media-read", "sustained-write", "cached-read"],
];

/// Claims that are true for any disk. The verdict must not refute them, even if it cannot prove
/// them.
const HONEST_CLAIMS: [&[&str]; 8] = [
    &[],
    &[],
    &[],
    &["requirement", "tail-latency"],
    &["media-read"],
    &["burst-write"],
    &["sustained-write"],
    &["media-read", "sustained-write"],
];

/// Lines of a plan that set the order of operations. Some of them contradict other lines of the
/// plan.
const ORDERS: [&str; 9] = [
    "",
    "",
    "",
    "patterns = \"permutation\"\n",
    "patterns = \"sequential\"\n",
    "patterns = \"sequential\"\nalign = \"1MiB\"\n",
    "patterns = \"sequential\"\nclients = 3\n",
    "patterns = \"sequential-shared\"\nclients = 4\n",
    "patterns = \"sequential-shared\"\nclients = 32\n",
];

/// Returns a random case on real storage.
pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let drawn = drawn(draw);
    let class: &'static str = if is_honest(&drawn) { "real: honest" } else { "real: dishonest" };
    Case { seed, class, carry_out: Box::new(move |seed| tried(&drawn, seed)) }
}

fn drawn(draw: &mut Draw) -> StackCase {
    let honest = draw.once_in(2);
    let stack = if honest { Kind::drawn_honest(draw) } else { Kind::drawn(draw) };
    let disturbance = Disturbance::drawn(draw, stack);
    let mut drawn = StackCase {
        stack,
        disturbance,
        long: draw.once_in(16),
        measure_ms: draw.one_of(&[1000, 1500, 2000]),
        reads: draw.one_of(&[0, 30, 50, 70, 100]),
        direct: draw.one_of(&["required", "required", "required", "auto", "off"]),
        warm: draw.once_in(3),
        io_kib: draw.one_of(&[4, 4, 16, 64]),
        depth: draw.one_of(&[1, 4, 8, 32]),
        order: "",
        sync: draw.one_of(&["none", "none", "none", "fdatasync", "dsync"]),
        compressibility: draw.one_of(&["1", "1", "1", "4", "40"]),
        verify: draw.once_in(4),
        requirement: draw.one_of(&[
            Required::Little,
            Required::Little,
            Required::Little,
            Required::LittleLatency,
            Required::Much,
            Required::MuchLatency,
            Required::Held,
            Required::TooMuchHeld,
        ]),
        claims: draw.one_of(&CLAIMS),
        declared: draw.one_of(&[
            Declaration::Nothing,
            Declaration::Nothing,
            Declaration::SmallCache,
            Declaration::Media("hdd"),
            Declaration::Media("memory"),
            Declaration::Reduction,
            Declaration::Metrics,
        ]),
        accepted: draw.once_in(4),
        second: None,
        honest,
    };
    if honest {
        be_honest(&mut drawn, draw);
    }
    fit(&mut drawn);
    // True if the truth about the first stream also applies to every possible second stream.
    let is_alike = honest && stack != Kind::NfsOnDisk || stack.is_memory() && !stack.is_remote();
    let is_beside = !matches!(
        drawn.disturbance,
        Disturbance::Stall
            | Disturbance::HangAtTheEnd
            | Disturbance::Overwritten
            | Disturbance::Throttled
    );
    if is_alike && is_beside && draw.once_in(3) {
        drawn.second = Some(SecondStream::drawn(draw, stack.is_device()));
    }
    drawn
}

/// Chooses new values for each parameter that could make the case misleading.
fn be_honest(drawn: &mut StackCase, draw: &mut Draw) {
    use Disturbance::{Neighbour, Nothing};
    drawn.disturbance = draw.one_of(&[Nothing, Nothing, Neighbour]);
    drawn.direct = draw.one_of(&["required", "auto"]);
    drawn.order = draw.one_of(&ORDERS);
    drawn.compressibility = "1";
    drawn.claims = draw.one_of(&HONEST_CLAIMS);
    drawn.declared = draw.one_of(&[
        Declaration::Nothing,
        Declaration::Nothing,
        Declaration::NoReduction,
        Declaration::Media("ssd"),
        Declaration::LargeCache,
    ]);
    if drawn.declared == Declaration::LargeCache {
        // A declared cache that is larger than the data refutes claims about media.
        drawn.claims = &[];
    }
}

/// Changes parameters that cannot be combined.
fn fit(drawn: &mut StackCase) {
    if drawn.stack == Kind::NfsOnDisk {
        // The server reads through this host's page cache. It writes durable data to the disk.
        (drawn.direct, drawn.warm, drawn.sync) = ("auto", false, "dsync");
        (drawn.reads, drawn.depth, drawn.io_kib, drawn.order) = (0, 8, 64, "");
    } else if drawn.stack.is_remote() {
        // The clients of these servers have neither direct I/O nor a cache on this host.
        (drawn.direct, drawn.warm, drawn.sync, drawn.io_kib) = ("auto", false, "none", 64);
        drawn.order = "";
        drawn.reads = drawn.reads.max(50);
    }
    match drawn.disturbance {
        Disturbance::Stall | Disturbance::HangAtTheEnd => {
            // On a frozen file system, only writes hang.
            (drawn.reads, drawn.direct, drawn.measure_ms) = (0, "required", 2500);
        }
        Disturbance::Overwritten => {
            (drawn.reads, drawn.io_kib, drawn.depth) = (100, 4, 8);
            (drawn.measure_ms, drawn.direct, drawn.warm) = (4000, "required", false);
        }
        Disturbance::Throttled => {
            drawn.requirement = Required::Little;
            (drawn.direct, drawn.sync, drawn.io_kib) = ("required", "none", 4);
            drawn.measure_ms = 2000;
        }
        _ => {}
    }
    if drawn.long {
        drawn.measure_ms = 30_500;
    }
    if matches!(drawn.requirement, Required::Held | Required::TooMuchHeld) {
        drawn.verify = true;
        if drawn.order.contains("align") {
            // A load with this alignment does not use most of the required capacity, so it must
            // fail.
            drawn.order = "";
        }
    }
    if drawn.stack == Kind::Compressed {
        // If the data hardly compresses, the outcome is mostly unknown in advance.
        (drawn.compressibility, drawn.declared) = ("40", Declaration::Reduction);
    }
    // If the load has no reads or no writes, claims about them are refuted.
    let of_reads = drawn.claims.contains(&"media-read");
    let of_writes = drawn.claims.iter().any(|claim| claim.ends_with("-write"));
    if drawn.honest && (of_reads && drawn.reads == 0 || of_writes && drawn.reads == 100) {
        drawn.claims = &[];
    }
    if drawn.direct == "off" {
        // The load reads the same blocks repeatedly, so that nearly all reads come from the page
        // cache.
        (drawn.warm, drawn.reads) = (true, 100);
    }
}

/// Returns true if the case is honest.
fn is_honest(drawn: &StackCase) -> bool {
    use Disturbance::{Neighbour, Nothing};
    drawn.honest
        || drawn.stack.is_honest()
            && drawn.direct != "off"
            && drawn.claims.is_empty()
            && drawn.declared == Declaration::Nothing
            && drawn.compressibility == "1"
            && matches!(drawn.disturbance, Nothing | Neighbour)
}

/// Returns true if the page cache, and not the disk, certainly served the run.
fn is_cached(drawn: &StackCase, repeats: bool) -> bool {
    // Flushed data is written to the disk, and dropped pages are read from it.
    let absorbed = drawn.sync == "none";
    drawn.disturbance != Disturbance::CacheDropped
        && match drawn.stack {
            // The image has just been written and is completely in memory.
            Kind::LoopBuffered(_) => absorbed || drawn.reads >= 50,
            // The disk serves the first read of each block of the created data; written data waits
            // for a commit.
            Kind::Journal => absorbed && drawn.reads <= 50 || drawn.direct == "off" && repeats,
            _ => drawn.direct == "off" && repeats,
        }
}

/// Returns the truth about a case. `repeats` is true if the run read each block several times.
fn truth(drawn: &StackCase, repeats: bool) -> Truth {
    let mut truth = if is_honest(drawn) { Truth::honest() } else { Truth::default() };
    // It cannot be determined here whether this guest's disk preserves data after a power loss.
    truth = truth.not("durable-write", "this machine's disk is a hypervisor's");
    if drawn.stack.is_memory() {
        let why = format!("{} is memory", drawn.stack.label());
        if !drawn.claims.contains(&"in-memory") || drawn.stack.is_remote() {
            truth = truth.and_no_pass(&why);
        }
        for claim in ["media-read", "burst-write", "sustained-write"] {
            truth = truth.not(claim, "it is memory");
        }
    } else {
        truth = truth.not("in-memory", "it is no memory");
    }
    if is_cached(drawn, repeats) {
        let why = "the page cache answers, and the disk does not";
        truth = truth.and_no_pass(why);
        for claim in ["media-read", "sustained-write", "burst-write"] {
            truth = truth.not(claim, why);
        }
    }
    if drawn.stack == Kind::Compressed {
        truth = truth
            .and_no_pass("the data shrink by 40 as nobody's do")
            .not("media-read", "most of it was never read");
    }
    match drawn.requirement {
        Required::Much | Required::MuchLatency => {
            truth = truth.and_no_pass("no storage carries that")
        }
        // If the free space is known, the plan is rejected; otherwise the verdict is based on the
        // data that was written.
        Required::TooMuchHeld => {
            truth = truth.exits(&[1, 2, 3]).and_no_pass("no storage holds that");
        }
        // Every storage reaches this rate and this latency.
        Required::Little | Required::LittleLatency | Required::Held if truth.honest => {
            truth = truth.exits(&[0, 3]);
        }
        _ => {}
    }
    if drawn.disturbance == Disturbance::Interrupted {
        truth = truth.and_no_pass("it was interrupted");
        truth.interrupted = true;
    }
    truth
}

fn plan(drawn: &StackCase, stack: &Stack) -> String {
    let requirement = match drawn.requirement {
        Required::Little => "iops = 1\n".to_owned(),
        Required::LittleLatency => "iops = 1\nlatency_p50 = \"10s\"\n".to_owned(),
        Required::Much => "bandwidth = \"900GB/s\"\n".to_owned(),
        Required::MuchLatency => "iops = 1\nlatency_p50 = \"1ns\"\n".to_owned(),
        Required::Held => "iops = 1\ncapacity = \"16MiB\"\n".to_owned(),
        Required::TooMuchHeld => "capacity = \"900TiB\"\n".to_owned(),
    };
    // The throttled device cannot meet this requirement, which is ten times its limit.
    let requirement = match drawn.disturbance {
        Disturbance::Throttled => format!("iops = {}\n", disturbance::THROTTLE * 10),
        _ => requirement,
    };
    let claims = match drawn.claims {
        [] => String::new(),
        claims => format!("claims = {claims:?}\n"),
    };
    let observe = match drawn.declared {
        Declaration::Nothing => String::new(),
        Declaration::SmallCache => "[observe]\narray_cache = \"1MiB\"\n".to_owned(),
        Declaration::LargeCache => "[observe]\narray_cache = \"1GiB\"\n".to_owned(),
        Declaration::NoReduction => "[observe]\ndata_reduction = 1.0\n".to_owned(),
        Declaration::Media(media) => format!("[observe]\nmedia = {media:?}\n"),
        Declaration::Reduction => "[observe]\ndata_reduction = 40.0\n".to_owned(),
        Declaration::Metrics => {
            let url = metrics(|requested| format!("uptime {}\nnothing 0\n", 1000 + requested * 60));
            let names = "\"read_source.ssd\" = \"uptime\"\n\"read_source.cache\" = \"nothing\"";
            format!(
                "[[observe.metrics]]\nurl = \"{url}\"\ninterval = \"200ms\"\n[observe.metrics.names]\n{names}\n"
            )
        }
    };
    let local = if drawn.stack == Kind::NfsOnDisk {
        format!("files = 2\nfile_size = \"8MiB\"\nsync = {:?}\n", drawn.sync)
    } else if drawn.stack.is_remote() {
        format!("files = 2\nfile_size = {:?}\n", "8MiB")
    } else {
        let size = if stack.device.is_some() { "" } else { "file_size = \"24MiB\"\n" };
        format!("{size}direct = {:?}\nsync = {:?}\n", drawn.direct, drawn.sync)
    };
    let accepted = match drawn.accepted {
        true => "accept_unknown = [\"bytes-balance\", \"memory-target\", \"check-failed\"]\n",
        false => "",
    };
    let (reads, depth, io_kib) = (drawn.reads, drawn.depth, drawn.io_kib);
    let stream = format!(
        "sizes = \"{io_kib}KiB\"\nreads = {reads}\nqueue_depth = {depth}\ncompressibility = {}\n{}{local}",
        drawn.compressibility, drawn.order,
    );
    let workload = match &drawn.second {
        Some(second) => second.beside(&stream, drawn.stack.is_device()),
        None => format!("[workload.matrix]\n{stream}"),
    };
    format!(
        "version = 1\nname = \
         \"adversary\"\n[requirement]\n{requirement}{claims}[target]\n{}\n{workload}[phases]\ncache \
         = {:?}\nwarm_up = \"200ms\"\nmeasure = \"{}ms\"\nverify = {}\n[evidence]\nmin_measure = \
         \"500ms\"\ninterval = \"20ms\"\n{accepted}{observe}",
        stack.target,
        if drawn.warm { "warm" } else { "cold" },
        drawn.measure_ms,
        drawn.verify,
    )
}

fn tried(drawn: &StackCase, _seed: u64) -> CaseResult {
    let sandbox = Sandbox::new();
    let Some(stack) = Stack::new(drawn.stack, &sandbox) else {
        return CaseResult::not_made(format!("no {} on this machine", drawn.stack.label()));
    };
    let text = plan(drawn, &stack);
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, &text).unwrap();
    let mut arguments = vec!["run", path.to_str().unwrap(), "--json", "-q"];
    if let Some(device) = &stack.device {
        arguments.extend(["--destroy", device]);
    }
    let mut done = disturbance::before(drawn.disturbance, &sandbox, &stack);
    let mut command = sandbox.command(&arguments);
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    let mut going = Going::start(&sandbox, &mut command);
    let measure = Duration::from_millis(drawn.measure_ms);
    disturbance::during(drawn.disturbance, &mut going, &stack, measure, &mut done);
    let ran = going.end();
    let bundles = sandbox.bundles();
    let bundle = bundles.last().map(std::path::PathBuf::as_path);
    let what = format!("{}{}", drawn.stack.label(), drawn.disturbance.label());
    let text = format!("# {what}\n{text}");
    if drawn.disturbance == Disturbance::Killed && done.in_time {
        // The process was killed. The files that it left must not state PASS.
        let verdict = bundle.map(|bundle| bundle.join("verdict.json")).filter(|path| path.exists());
        let passed = verdict.is_some_and(|path| json(&path)["verdict"] == "PASS");
        let found = passed.then(|| (Wrong::FalsePass, "a killed run passed".to_owned()));
        let truth = Truth::default();
        return CaseResult::of(&truth, ran.as_ref(), found.into_iter().collect(), &text)
            .named("killed");
    }
    let is_read = |class: &str| class.ends_with(".read");
    let size_bytes: u64 = if stack.device.is_some() { 64 << 20 } else { 24 << 20 };
    let repeats = bundle.is_none_or(|bundle| wrong::repeats_reads(bundle, is_read, size_bytes));
    let mut truth = truth(drawn, repeats);
    if drawn.disturbance == Disturbance::Throttled && done.in_time {
        truth = truth.and_no_pass("the kernel let a tenth of that through");
    }
    let mut found = wrong::of_run(&truth, ran.as_ref(), bundle);
    if let Some(bundle) = bundle.filter(|_| ran.is_some()) {
        found.extend(of_the_disturbance(drawn, &done, bundle, ran.as_ref().map_or(-1, |r| r.code)));
    }
    CaseResult::of(&truth, ran.as_ref(), found, &text)
}

/// Checks that the evidence contains traces of the disturbance. Returns a mistake if they are
/// missing.
fn of_the_disturbance(
    drawn: &StackCase,
    done: &disturbance::DisturbanceEffect,
    bundle: &std::path::Path,
    code: i32,
) -> Vec<Mistake> {
    let run: Value = json(&bundle.join("run.json"));
    let classes = run["classes"].as_array().cloned().unwrap_or_default();
    let largest = classes.iter().filter_map(|class| class["latency_ns_max"].as_u64()).max();
    let hung = matches!(drawn.disturbance, Disturbance::Stall | Disturbance::HangAtTheEnd);
    let least = disturbance::FROZEN.as_nanos() as u64 / 2;
    if hung
        && done.frozen_at_unix_ns.is_some_and(|at_ns| measured_at(&run, at_ns))
        && largest.is_some_and(|ns| ns < least)
    {
        let says =
            format!("writes hung for {:?}, the largest took {largest:?} ns", disturbance::FROZEN);
        return vec![(Wrong::Missed, says)];
    }
    // After more than 4,000 operations, the run has checked enough blocks to detect the overwritten
    // data.
    let count: u64 = classes.iter().filter_map(|class| class["count"].as_u64()).sum();
    let spoiled = drawn.disturbance == Disturbance::Overwritten && done.in_time;
    if spoiled && code != 4 && count > 4000 {
        let says =
            format!("all data were overwritten, and it ended with {code}: {}", run["checks"]);
        return vec![(Wrong::Missed, says)];
    }
    Vec::new()
}

/// Returns true if the measurement contains this time, with a margin of 50 ms at both ends.
/// Operations that began before or after the measurement do not count.
fn measured_at(run: &Value, at_unix_ns: u64) -> bool {
    let began = run["started_unix_ns"].as_u64().unwrap_or(u64::MAX);
    let phases = run["phases"].as_array().into_iter().flatten();
    let mut measured = phases.filter(|phase| phase["kind"] == "measure");
    measured.any(|phase| {
        let from = began.saturating_add(phase["start_ns"].as_u64().unwrap_or(0));
        let until = from.saturating_add(phase["duration_ns"].as_u64().unwrap_or(0));
        let margin = 50_000_000;
        (from.saturating_add(margin)..until.saturating_sub(margin)).contains(&at_unix_ns)
    })
}

/// Returns true if the case of this seed measures for 30 s.
pub fn is_long(draw: &mut Draw) -> bool {
    drawn(draw).long
}
