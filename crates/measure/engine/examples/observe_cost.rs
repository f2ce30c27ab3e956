//! Cost of counting the operations: the same streams with and without counting, alternately.
//!
//! ```console
//! $ cargo run --release -p plimsoll-engine --example observe_cost -- [FILE] [PAIRS] [SECONDS]
//! ```
//!
//! Without a file, the program uses the null target and prints nanoseconds per operation. With a
//! file of 256 MiB or more, it uses buffered random reads from the page cache and prints a share of
//! the rate. It prints both by the clock and by the CPU time of the process, which other programs
//! on the same core do not lengthen.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::backend::{BackendConfig, Direct, FileSource};
use plimsoll_engine::stream::matrix::{MatrixSource, WriteContent};
use plimsoll_engine::stream::run::{Group, RunConfig, Target, run};
use plimsoll_observe::AccessProfiler;
use plimsoll_plan::Plan;
use plimsoll_sys::cpu::process_time;
use plimsoll_workload::planned::pace::Pace;
use plimsoll_workload::planned::streams;

const DEPTH: u32 = 32;

/// Runs once. Returns operations per second, and CPU time per operation in nanoseconds.
fn once(file: Option<&PathBuf>, observed: bool, seconds: u64) -> (f64, f64) {
    let size = if file.is_some() { "256MiB" } else { "1GiB" };
    let text = format!(
        "version = 1\n[target]\nnull = true\n[workload.matrix]\nfile_size = \"{size}\"\nqueue_depth = {DEPTH}\n"
    );
    let plan = Plan::parse(&text, "cost").unwrap().resolve();
    let configs = streams::streams(plan.workload.matrix().unwrap(), 7, None).unwrap();
    let config = configs.into_iter().next().unwrap();
    let bytes = config.files.file_size_bytes;
    let classes: Vec<String> = config.classes().into_iter().map(|class| class.name).collect();
    let mut source = MatrixSource::new(config, [0].into(), WriteContent::Buffers, DEPTH).unwrap();
    if observed {
        source = source.with_profiler(AccessProfiler::new(&[bytes], 1, 1));
    }
    let target = file.map_or(Target::Null, |path| {
        let path = path.clone();
        let file = FileSource::Path { path, write: false, create: false, size_bytes: 0 };
        let backend =
            BackendConfig { files: vec![file], direct: Direct::Off, ..Default::default() };
        Target::Files(backend)
    });
    let group = Group {
        name: "cost".into(),
        place: plimsoll_engine::placement::Placement::pinned(0, "it was asked for"),
        target,
        source,
        clients: 1,
        pace: Pace::Closed { depth: DEPTH },
        cap: None,
        size_bytes_max: 4096,
        operations_max: u64::MAX,
        spin_ns: 0,
    };
    let names: Vec<&str> = classes.iter().map(String::as_str).collect();
    let mut config = RunConfig::new(&names, seconds * 1_000_000_000);
    config.warm_up_ns = 200_000_000;
    let before = process_time();
    let report = run(&config, vec![group], &AtomicBool::new(false), &mut |_| {}).unwrap();
    let after = process_time();
    let used_ns = after.user_ns + after.system_ns - before.user_ns - before.system_ns;
    let ended = report.groups[0].end.ended as f64;
    let time_ns = (report.measured_ns() + config.warm_up_ns) as f64;
    (ended / time_ns * 1e9, used_ns as f64 / ended)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().filter(|text| text != "-").map(PathBuf::from);
    let mut number =
        |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (pairs, seconds): (u64, u64) = (number(7), number(2));
    let (mut by_clock, mut by_cpu) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The two sides alternate; each is the first equally often.
        let first = pair % 2 == 0;
        let (a, b) = (once(file.as_ref(), first, seconds), once(file.as_ref(), !first, seconds));
        let ((on, on_ns), (off, off_ns)) = if first { (a, b) } else { (b, a) };
        println!(
            "{off:.0} operations/s of {off_ns:.1} ns CPU without, {on:.0} of {on_ns:.1} ns with"
        );
        let shares = [(1.0 - on / off) * 100.0, (on_ns / off_ns - 1.0) * 100.0];
        let costs = [1e9 / on - 1e9 / off, on_ns - off_ns];
        let [clock, cpu] = if file.is_some() { shares } else { costs };
        by_clock.push(clock);
        by_cpu.push(cpu);
    }
    let (clock, cpu) = (median(by_clock), median(by_cpu));
    match file {
        Some(_) => println!(
            "counting the operations costs {clock:.2} % of the rate, {cpu:.2} % more CPU time (medians of \
             {pairs} pairs)"
        ),
        None => println!(
            "counting the operations costs {clock:.1} ns each by the clock, {cpu:.1} ns of CPU time \
             (medians of {pairs} pairs)"
        ),
    }
}
