//! Random variants of tricks that an earlier version passed, and an honest twin for each.

use crate::case::{Case, CaseResult};
use crate::program::Going;
use crate::stack::{Kind, Stack};
use crate::support::Sandbox;
use crate::support::draw::Draw;
use crate::support::throttle::SpeedControl;
use crate::support::tricks::{Corner, Library, Role, Trick};
use crate::truth::Truth;
use crate::wrong::{self, Wrong};

/// Durations of the measurement in milliseconds. Each of them is long enough for two stalls.
const MEASURE_MS: [u64; 3] = [4000, 5000, 6000];

/// Shortest measurement for which a PASS is possible.
const LONG_MS: u64 = 30_500;

/// Returns true if the case measures for half a minute. A case makes this random choice first.
pub fn is_long(draw: &mut Draw) -> bool {
    draw.once_in(8)
}

/// Generates a random trick or twin, with its storage.
pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let long = is_long(draw);
    let role = draw.one_of(&[Role::Trick, Role::Trick, Role::TwinWithout, Role::TwinMet]);
    let trick = drawn(draw);
    let stack = Kind::drawn_for_tricks(draw, trick.limits_device(), trick.needs_names());
    let trick = fit(trick, stack);
    let measure_ms = if long { LONG_MS } else { draw.one_of(&MEASURE_MS) };
    let class = if role == Role::Trick { "real: tricks" } else { "real: honest twins of tricks" };
    Case { seed, class, carry_out: Box::new(move |_| tried(trick, role, stack, measure_ms)) }
}

fn drawn(draw: &mut Draw) -> Trick {
    match draw.below(6) {
        0 => slow_flush(draw),
        1 => stalls(draw),
        2 => Trick::SmallBuffered {
            reads: draw.one_of(&[100, 100, 0, 0, 50]),
            small_kib: draw.one_of(&[4, 4, 8, 16]),
            large_kib: draw.one_of(&[256, 512, 1024]),
            streams: draw.one_of(&[1, 1, 2, 3]),
            pattern: draw.one_of(&["random", "random", "sequential"]),
        },
        3 => names(draw),
        4 => {
            let kib = [&[4, 16, 64, 1024][..], &[4, 64, 1024], &[64, 1024], &[4, 64, 1024]];
            let [read, written, mixed, offset] = kib.map(|sizes| draw.one_of(sizes));
            Trick::Corner(draw.one_of(&[
                Corner::WorkingSet { kib: read, reads: 100 },
                Corner::WorkingSet { kib: written, reads: 0 },
                Corner::WorkingSet { kib: mixed, reads: 50 },
                Corner::Offset { kib: offset },
                Corner::Aligned,
                Corner::Hot,
                Corner::IdleStream,
            ]))
        }
        _ => {
            let index = draw.below(8);
            Trick::Library(draw.one_of(&[
                Library::Path(index),
                Library::Link(index),
                Library::Preload(index),
                Library::Audit(index),
                Library::Answers,
            ]))
        }
    }
}

fn slow_flush(draw: &mut Draw) -> Trick {
    let sync = draw.one_of(&["fdatasync", "fsync", "dsync"]);
    let direct = draw.one_of(&["off", "off", "required"]);
    // A write with `dsync` has no separate flush. A direct write already waits for the device: on a
    // device limited to 10 writes per second, the flush after a direct write took only 0.7 ms.
    let limits: &[&str] = if sync == "dsync" || direct == "required" {
        &["write_latency_p99", "write_latency_p50", "write_latency_avg", "latency_p99"]
    } else {
        &["sync_latency_p99", "sync_latency_avg", "write_latency_p99", "latency_p50"]
    };
    let sizes: &[u64] =
        if direct == "off" { &[2300, 4096, 16384, 65536] } else { &[4096, 16384, 65536] };
    Trick::SlowFlush {
        sync,
        sync_every: if sync == "dsync" { 1 } else { draw.one_of(&[1, 1, 4]) },
        size_bytes: draw.one_of(sizes),
        direct,
        clients: draw.one_of(&[1, 1, 2, 4]),
        // Buffered reads of data that was just written are served by the page cache.
        reads: if direct == "off" { 0 } else { draw.one_of(&[0, 0, 30]) },
        limit: draw.one_of(limits),
    }
}

fn stalls(draw: &mut Draw) -> Trick {
    let reads = draw.one_of(&[100, 100, 0, 50]);
    let limits: &[&str] = match reads {
        100 => &["read_latency_p99", "read_latency_p90", "latency_p99"],
        0 => &["write_latency_p99", "write_latency_p95", "latency_p99"],
        _ => &["latency_p99", "latency_p95", "read_latency_p99", "write_latency_p99"],
    };
    let (fast_ms, slow_ms) = draw.one_of(&[(1200, 600), (1000, 500), (2000, 1000), (800, 800)]);
    Trick::Stalls {
        fast_ms,
        slow_ms,
        depth: draw.one_of(&[1, 1, 2, 8]),
        size_kib: draw.one_of(&[4, 4, 16, 64]),
        reads,
        limit: draw.one_of(limits),
    }
}

fn names(draw: &mut Draw) -> Trick {
    let reads = draw.one_of(&[100, 100, 70, 0]);
    let limits: &[&str] = match reads {
        0 => &["latency_p99", "write_latency_p99", "write_latency_p50"],
        _ => &["latency_p99", "latency_p95", "read_latency_p99", "read_latency_p50"],
    };
    Trick::Names {
        metadata: draw.one_of(&["90", "95", "99", "99.5"]),
        operation: draw.one_of(&["getattr", "getattr", "lookup", "access"]),
        size_kib: draw.one_of(&[4, 4, 16]),
        reads,
        depth: draw.one_of(&[1, 4, 8]),
        limit: draw.one_of(limits),
    }
}

/// Changes a trick that would have no effect on this stack.
fn fit(trick: Trick, stack: Kind) -> Trick {
    match trick {
        // Btrfs itself writes each of these small writes to the disk, so there is nothing to
        // detect.
        Trick::SmallBuffered { small_kib, large_kib, streams, pattern, .. }
            if matches!(stack, Kind::Loop("btrfs", _)) =>
        {
            Trick::SmallBuffered { reads: 100, small_kib, large_kib, streams, pattern }
        }
        other => other,
    }
}

fn tried(trick: Trick, role: Role, kind: Kind, measure_ms: u64) -> CaseResult {
    let sandbox = Sandbox::new();
    let Some(stack) = Stack::new(kind, &sandbox) else {
        return CaseResult::not_made(format!("no {} on this machine", kind.label()));
    };
    let set_up = trick.set_up(role);
    let plan = set_up.plan(&stack.target, measure_ms);
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, &plan).unwrap();
    let mut arguments = vec!["run", path.to_str().unwrap(), "--json", "-q"];
    if let Some(device) = &stack.device {
        arguments.extend(["--destroy", device]);
    }
    let text = format!("# {}, {role:?}: {trick:?}, on {}\n{plan}", trick.label(), kind.label());
    let mut command = sandbox.command(&arguments);
    command.envs(set_up.environment(&sandbox));
    let control = stack.limited_device().and_then(|on| SpeedControl::start(set_up.speed, on));
    let going = Going::start(&sandbox, &mut command);
    if control.as_ref().is_some_and(|control| !control.take_in(going.id())) {
        return CaseResult::not_made(format!("it ended before it could be slowed down\n{text}"));
    }
    let ran = going.end();
    let truth = match &set_up.expected.no_pass {
        Some(why) => Truth::no_pass(why.clone()),
        None => Truth::honest().exits(&[0, 3]),
    };
    let bundles = sandbox.bundles();
    let bundle = bundles.last().map(std::path::PathBuf::as_path);
    if let (Trick::SmallBuffered { streams, reads: 1.., .. }, Role::Trick, Some(bundle)) =
        (trick, role, bundle)
    {
        let is_small = |class: &str| class.starts_with("small-") && class.ends_with(".read");
        if !wrong::repeats_reads(bundle, is_small, u64::from(streams) * (12 << 20)) {
            return CaseResult::not_made(format!("the host was too busy\n{text}"));
        }
    }
    let mut found = wrong::of_run(&truth, ran.as_ref(), bundle);
    let verdict = ran.as_ref().and_then(|ran| wrong::of_command(ran, &[0, 1, 3, 4, 5]));
    match verdict.filter(|verdict| verdict["checks"].is_array()) {
        Some(verdict) => found.extend(
            set_up
                .expected
                .differences(&verdict)
                .into_iter()
                .map(|d| (if d.accepts { Wrong::FalsePass } else { Wrong::Accused }, d.says)),
        ),
        // The case requires a run: a trick whose plan was rejected has not been tested.
        None => found.push((Wrong::Missed, "there is no verdict".to_owned())),
    }
    CaseResult::of(&truth, ran.as_ref(), found, &text)
}
