//! Absolute tests, independent of a peer: the rate and the shape of arrivals, a stall in the
//! latencies, and memory.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_engine::backend::{BackendConfig, Direct, FileSource, Prefer};
use plimsoll_engine::stream::matrix::{MatrixSource, WriteContent};
use plimsoll_engine::stream::run::{Group, RunConfig, RunReport, Target, run as run_groups};
use plimsoll_engine::stream::source::{Op, Source};
use plimsoll_sys::clock::{Clock, monotonic_ns};
use plimsoll_workload::arrival::{Rate, Schedule, Warp};
use plimsoll_workload::matrix::StreamConfig;
use plimsoll_workload::planned::pace::{Pace, StartTimes};
use serde_json::{Value, json};

/// Number of recorded gaps, and the stride of the Kolmogorov-Smirnov test that decides. 5,000 gaps
/// show a distortion of 2 %, 20,000 gaps one of 1 %. On a virtual machine, interrupts and the
/// hypervisor use about 1 % of a core, and delay 1 % of the starts. The bench prints both tests;
/// the first decides.
const SAMPLES: usize = 20_000;
const DECIDING: usize = 4;

#[derive(Debug)]
struct Options {
    what: String,
    rate_per_s: f64,
    seconds: u64,
    stall_s: f64,
    dir: PathBuf,
    cpu: usize,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let allowed = plimsoll_sys::cpu::allowed().map_err(|error| error.to_string())?;
    let mut options = Options {
        what: args.first().cloned().unwrap_or_default(),
        rate_per_s: 0.0,
        seconds: 0,
        stall_s: 2.0,
        dir: PathBuf::new(),
        cpu: allowed.last().copied().unwrap_or(0),
    };
    let (rate, seconds) = match options.what.as_str() {
        "poisson" => (200_000.0, 30),
        "memory" => (1_000_000.0, 600),
        "stall" => (1000.0, 20),
        "content" => (0.0, 0),
        other => {
            return Err(format!("unknown truth {other:?}: poisson, memory, stall or content"));
        }
    };
    (options.rate_per_s, options.seconds) = (rate, seconds);
    let mut rest = args[1..].iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse::<f64>().map_err(|_| format!("{name}: {value} isn't a number"));
        match name.as_str() {
            "--rate" => options.rate_per_s = number()?,
            "--seconds" => options.seconds = number()? as u64,
            "--stall" => options.stall_s = number()?,
            "--dir" => options.dir = PathBuf::from(value),
            "--cpu" => options.cpu = number()? as usize,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

/// Runs the test that `args` name and prints its result as JSON.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let found = match options.what.as_str() {
        "poisson" => poisson(&options)?,
        "memory" => memory(&options)?,
        "content" if options.dir.as_os_str().is_empty() => {
            crate::content::content(options.cpu, &std::env::temp_dir())?
        }
        "content" => crate::content::content(options.cpu, &options.dir)?,
        _ => stall(&options)?,
    };
    println!("{found:#}");
    Ok(())
}

fn arrivals(options: &Options, poisson: bool, clients: u64) -> Result<Vec<StartTimes>, String> {
    let rate = Rate::per_s(options.rate_per_s).map_err(|error| error.to_string())?;
    let warp = Warp::None;
    let schedule =
        if poisson { Schedule::Poisson { rate, warp } } else { Schedule::Constant { rate, warp } };
    Ok((0..clients).map(|part| Box::new(schedule.part(part, clients, 42)) as StartTimes).collect())
}

/// Source that records the real starts of operations.
struct Noted {
    inner: MatrixSource,
    clock: Clock,
    every: u64,
    given: u64,
    last_ns: u64,
    gaps_ns: Vec<f64>,
    into: Arc<Mutex<Vec<f64>>>,
}

impl Source for Noted {
    fn next(&mut self, client: u32) -> Option<Op> {
        // Reads the clock each time, so that this code takes the same time at the start and the end
        // of a gap.
        let now_ns = self.clock.now_ns();
        self.given += 1;
        if self.given % self.every == 1 && self.given > 1 && self.gaps_ns.len() < SAMPLES {
            self.gaps_ns.push((now_ns - self.last_ns) as f64);
        }
        self.last_ns = now_ns;
        self.inner.next(client)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Ok(mut into) = self.into.lock() {
            *into = std::mem::take(&mut self.gaps_ns);
        }
    }
}

/// Returns the distance between the sample and the exponential distribution of `mean`, and its 5 %
/// point (Kolmogorov's limit: 1.358 / √n).
fn kolmogorov_smirnov(gaps_ns: &mut [f64], mean_ns: f64) -> (f64, f64) {
    gaps_ns.sort_by(f64::total_cmp);
    let n = gaps_ns.len().max(1) as f64;
    let mut distance = 0.0f64;
    for (at, gap) in gaps_ns.iter().enumerate() {
        let expected = 1.0 - (-gap / mean_ns).exp();
        let (below, above) = (at as f64 / n, (at + 1) as f64 / n);
        distance = distance.max((expected - below).abs()).max((above - expected).abs());
    }
    (distance, 1.358 / n.sqrt())
}

fn tested(gaps_ns: &[f64], mean_ns: f64) -> Value {
    let mut deciding: Vec<f64> = gaps_ns.iter().copied().step_by(DECIDING).collect();
    let (distance, limit) = kolmogorov_smirnov(&mut deciding, mean_ns);
    let (of_all, limit_of_all) = kolmogorov_smirnov(&mut gaps_ns.to_vec(), mean_ns);
    json!({"n": deciding.len(), "distance": distance, "limit_5_percent": limit,
        "passes": distance <= limit,
        "of_all": {"n": gaps_ns.len(), "distance": of_all, "limit_5_percent": limit_of_all}})
}

/// Watches the clock for a second and reports pauses above a microsecond, in which other programs
/// used the core.
fn away(options: &Options) -> Value {
    let cpu = options.cpu;
    let watch = move || {
        plimsoll_sys::cpu::pin_thread(cpu)?;
        let mut clock = Clock::new();
        let start_ns = clock.now_ns();
        let (mut last_ns, mut pauses, mut away_ns, mut longest_ns) = (start_ns, 0u64, 0, 0);
        while last_ns < start_ns + 1_000_000_000 {
            let now_ns = clock.now_ns();
            let pause_ns = now_ns - last_ns;
            if pause_ns > 1000 {
                (pauses, away_ns) = (pauses + 1, away_ns + pause_ns);
                longest_ns = longest_ns.max(pause_ns);
            }
            last_ns = now_ns;
        }
        Ok::<_, plimsoll_sys::SysError>(json!({"pauses_per_s": pauses, "longest_ns": longest_ns,
            "share_percent": away_ns as f64 / 1e7}))
    };
    match std::thread::spawn(watch).join() {
        Ok(Ok(found)) => found,
        _ => Value::Null,
    }
}

fn source(size_bytes: u64, read_percent: f64, clients: u32) -> Result<MatrixSource, String> {
    let stream = StreamConfig { read_percent, clients, ..crate::case::stream(size_bytes) };
    MatrixSource::new(stream, (0..clients).collect(), WriteContent::Buffers, 4096)
        .map_err(|error| error.to_string())
}

fn group<S>(options: &Options, source: S, target: Target, clients: u32, pace: Pace) -> Group<S> {
    Group {
        name: "truth".to_owned(),
        place: plimsoll_engine::placement::Placement::pinned(options.cpu, "it was asked for"),
        target,
        source,
        clients,
        pace,
        cap: None,
        size_bytes_max: 4096,
        operations_max: u64::MAX,
        spin_ns: 100_000,
    }
}

fn go<S: Source + Send + 'static>(
    options: &Options,
    group: Group<S>,
    each: &mut dyn FnMut(i64),
) -> Result<RunReport, String> {
    let config = RunConfig {
        per_client: true,
        ..RunConfig::new(&["read", "write", "flush"], options.seconds * 1_000_000_000)
    };
    let report =
        run_groups(&config, vec![group], &AtomicBool::new(false), &mut |row| each(row.number))
            .map_err(|error| error.to_string())?;
    match report.groups.iter().find_map(|group| group.failure()) {
        Some(error) => Err(error.to_string()),
        None => Ok(report),
    }
}

fn achieved_per_s(report: &RunReport) -> f64 {
    let operations: u64 = report.collected.window.iter().map(|sums| sums.operations).sum();
    operations as f64 / (report.measured_ns().max(1) as f64 / 1e9)
}

fn poisson(options: &Options) -> Result<Value, String> {
    let mean_ns = 1e9 / options.rate_per_s;
    let planned = options.rate_per_s * options.seconds as f64;
    let every = ((planned / SAMPLES as f64) as u64).max(3);
    let intended: Vec<f64> = {
        let turns = arrivals(options, true, 1)?.remove(0);
        let times: Vec<u64> = turns.take(planned as usize).collect();
        let gaps = times.windows(2).step_by(every as usize).take(SAMPLES);
        gaps.map(|pair| (pair[1] - pair[0]) as f64).collect()
    };
    let actual = Arc::new(Mutex::new(Vec::new()));
    let gaps_ns = Vec::with_capacity(SAMPLES);
    let (given, last_ns) = (0, 0);
    let inner = source(1 << 40, 100.0, 1)?;
    let clock = Clock::new();
    let source = Noted { inner, clock, every, given, last_ns, gaps_ns, into: Arc::clone(&actual) };
    let pace = Pace::Open { arrivals: arrivals(options, true, 1)?, places: 1024 };
    let report = go(options, group(options, source, Target::Null, 1, pace), &mut |_| ())?;
    let actual = actual.lock().map(|gaps| gaps.clone()).unwrap_or_default();
    let lag = &report.collected.groups[0].own.times;
    let achieved = achieved_per_s(&report);
    Ok(json!({
        "rate_asked_per_s": options.rate_per_s,
        "rate_achieved_per_s": achieved,
        "rate_error_percent": (achieved / options.rate_per_s - 1.0) * 100.0,
        "rate_within_0_2_percent": (achieved / options.rate_per_s - 1.0).abs() <= 0.002,
        "standard_deviation_of_a_poisson_count_percent": 100.0 / planned.sqrt(),
        "intended_gaps": tested(&intended, mean_ns),
        "actual_gaps": tested(&actual, mean_ns),
        "core_away": away(options),
        "lag_ns": {"p50": lag.quantile_ns(0.5), "p99": lag.quantile_ns(0.99),
            "p99_9": lag.quantile_ns(0.999), "max": lag.max_ns()},
    }))
}

/// Returns the resident memory of this process in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn memory(options: &Options) -> Result<Value, String> {
    let pace = Pace::Open { arrivals: arrivals(options, true, 16)?, places: 512 };
    let group = group(options, source(1 << 40, 70.0, 16)?, Target::Null, 16, pace);
    let mut resident = Vec::new();
    let report = go(options, group, &mut |number| {
        if number % 10 == 0 {
            resident.push(resident_bytes());
        }
    })?;
    let largest = resident.iter().copied().max().unwrap_or(0);
    Ok(json!({
        "clients": 16,
        "rate_achieved_per_s": achieved_per_s(&report),
        "seconds": options.seconds,
        "resident_bytes_after_10_s": resident.get(1),
        "resident_bytes_at_the_end": resident.last(),
        "resident_bytes_max": largest,
        "within_64_mib": largest <= 64 << 20,
    }))
}

fn stall(options: &Options) -> Result<Value, String> {
    let dir = &options.dir;
    if !dir.is_dir() {
        return Err("stall needs --dir MOUNT: a file system that fsfreeze may stop".into());
    }
    let bytes = 256u64 << 20;
    let path = dir.join("plimsoll-stall");
    std::fs::write(&path, vec![1u8; bytes as usize]).map_err(|error| error.to_string())?;
    let files = vec![FileSource::existing(&path)];
    let (prefer, direct) = (Prefer::Auto, Direct::Auto);
    let target = Target::Files(BackendConfig { files, prefer, direct, ..Default::default() });
    let pace = Pace::Open { arrivals: arrivals(options, false, 1)?, places: 4096 };
    let group = group(options, source(bytes, 0.0, 1)?, target, 1, pace);
    let (seconds, stall_s) = (options.seconds as f64, options.stall_s);
    let over = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let freezer = scope.spawn(|| freeze(dir, seconds * 0.4, stall_s));
        let probe = scope.spawn(|| longest_write_ns(&dir.join("plimsoll-probe"), &over));
        let report = go(options, group, &mut |_| ());
        let frozen = freezer.join().unwrap_or(Err("the freezer panicked".into()));
        over.store(true, Ordering::Relaxed);
        let longest = probe.join().unwrap_or(Err("the probe panicked".into()));
        (report, frozen, longest)
    });
    let (report, frozen_ns, stalled_ns) = (found.0?, found.1?, found.2?);
    let latency = &report.collected.totals[1].latency;
    let stalled_s = stalled_ns as f64 / 1e9;
    let expected_s = stalled_s - 0.01 * seconds;
    let p99_s = latency.quantile_ns(0.99).unwrap_or(0) as f64 / 1e9;
    Ok(json!({
        "frozen_s": frozen_ns as f64 / 1e9,
        "stalled_s": stalled_s,
        "operations": latency.count(),
        "rate_achieved_per_s": achieved_per_s(&report),
        "p99_s": p99_s,
        "p99_expected_s": expected_s,
        "error_percent": (p99_s / expected_s - 1.0) * 100.0,
        "within_2_percent": (p99_s / expected_s - 1.0).abs() <= 0.02,
        "service_p99_s": report.collected.totals[1].service.quantile_ns(0.99).map(|ns| ns as f64 / 1e9),
        "backend": report.groups[0].backend,
    }))
}

/// Returns the longest write of another writer until `over`: the real duration of the stall.
/// `fsfreeze` delays writes before it returns, because it writes back first.
fn longest_write_ns(path: &std::path::Path, over: &AtomicBool) -> Result<u64, String> {
    let text = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::create(path).map_err(text)?;
    let mut longest_ns = 0;
    while !over.load(Ordering::Relaxed) {
        let start_ns = monotonic_ns();
        file.write_all_at(&[7; 4096], 0).map_err(text)?;
        longest_ns = longest_ns.max(monotonic_ns() - start_ns);
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(longest_ns)
}

/// Stops writes to the file system for `stall_s`, and returns the real duration.
fn freeze(dir: &std::path::Path, after_s: f64, stall_s: f64) -> Result<u64, String> {
    let call = |how: &str| -> Result<(), String> {
        let status = Command::new("fsfreeze").arg(how).arg(dir).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("fsfreeze {how} {}: {other:?}", dir.display())),
        }
    };
    std::thread::sleep(Duration::from_secs_f64(after_s));
    call("--freeze")?;
    let start_ns = monotonic_ns();
    std::thread::sleep(Duration::from_secs_f64(stall_s));
    let result = call("--unfreeze");
    result.map(|()| monotonic_ns() - start_ns)
}
