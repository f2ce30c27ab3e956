//! `benches/run reference`: tests the drivers' reports of a target with known service times.
//!
//! The target is a thread of this process (`tests/support/reference.rs`). The drivers, the clocks,
//! the pacing and the recording are those of a run. See `docs/accuracy.md`.

mod case;
mod figures;
#[path = "../../../tests/support/law.rs"]
mod law;
mod outside;
#[path = "../../../tests/support/reads.rs"]
mod reads;
mod relay;
#[path = "../../../tests/support/step.rs"]
mod step;
#[path = "../../../tests/support/stream.rs"]
mod stream;
#[path = "../../../tests/support/reference.rs"]
mod target;

use self::case::{Case, Driver, Load};
use self::figures::{Figures, bound_share, error};
use self::law::{LAWS, Law};
use self::target::WaitMode;

/// Command-line options.
#[derive(Clone, Debug)]
struct Options {
    /// Length of a case.
    seconds: u64,
    /// Rate of the open loops. The depths of the closed loops follow from it.
    rate_per_s: f64,
    /// CPUs of the driver and of the device.
    cpu: usize,
    device_cpu: usize,
    /// Cases whose name contains this text.
    only: String,
}

const USAGE: &str = "benches/run reference [--seconds 3] [--rate 200000] [--cpu N] [--device-cpu N] \
                     [--only NAME]";

fn options(args: &[String]) -> Result<Options, String> {
    let allowed = plimsoll_sys::cpu::allowed().map_err(|error| error.to_string())?;
    let (Some(first), Some(last)) = (allowed.first(), allowed.last()) else {
        return Err("no CPU is allowed".to_owned());
    };
    let mut options = Options {
        seconds: 3,
        rate_per_s: 200_000.0,
        cpu: *last,
        device_cpu: *first,
        only: String::new(),
    };
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} is no number"));
        match name.as_str() {
            "--seconds" => options.seconds = number()?.max(1),
            "--rate" => options.rate_per_s = number()?.max(1) as f64,
            "--cpu" => options.cpu = number()? as usize,
            "--device-cpu" => options.device_cpu = number()? as usize,
            "--only" => options.only = value.clone(),
            _ => return Err(format!("unknown option {name}; {USAGE}")),
        }
    }
    if options.cpu == options.device_cpu {
        return Err("driver and device need a CPU each".to_owned());
    }
    Ok(options)
}

/// Returns every case of one distribution at a rate.
fn cases(law: Law, rate_per_s: f64) -> Vec<Case> {
    // Operations served at a time, at that rate (Little's law).
    let busy = (rate_per_s * law.mean_ns() / 1e9).round().max(1.0) as u32;
    let beyond = 1 << 16;
    let stream = Driver::Stream;
    let case = |driver, load, servers, waiting| Case { law, driver, load, servers, waiting };
    let (closed, watching) = (Load::Closed { depth: busy }, WaitMode::Watching);
    // Half the servers: each operation waits for as long as it is served.
    let half = busy.div_ceil(2);
    let open = Load::Open { rate_per_s };
    let mut cases = vec![
        case(stream, closed, beyond, watching),
        case(stream, closed, half, watching),
        case(stream, open, beyond, watching),
        // Eight tenths of the servers' capacity.
        case(stream, open, busy + busy / 4, watching),
        case(stream, closed, beyond, WaitMode::Sleeping),
        case(Driver::Step, Load::Closed { depth: busy / 2 }, beyond, watching),
        case(Driver::Step, Load::Closed { depth: busy / 2 }, half / 2, watching),
    ];
    if matches!(law, Law::Constant(_)) {
        cases.insert(0, case(stream, Load::Closed { depth: 1 }, beyond, watching));
        cases.insert(1, case(stream, Load::Closed { depth: 1 }, beyond, WaitMode::Sleeping));
    }
    cases
}

/// Returns cases with short service times at small depths, which show the cost of waiting itself.
fn shallow_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for service_us in [5, 10, 20, 50, 100] {
        for depth in [1, 4] {
            cases.extend([WaitMode::Sleeping, WaitMode::Polling].map(|waiting| Case {
                law: Law::Constant(service_us * 1_000),
                driver: Driver::Stream,
                load: Load::Closed { depth },
                servers: 1 << 16,
                waiting,
            }));
        }
    }
    cases
}

/// Runs the cases and prints the table.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = options(args)?;
    println!(
        "{} s a case; driver on CPU {}, device on CPU {}; reported (error to what was drawn, to \
         what was really done); the last column is the largest error of a latency over its bound of \
         1 % + 2 µs\n",
        options.seconds, options.cpu, options.device_cpu
    );
    println!(
        "| case | rate/s | mean µs | p50 µs | p99 µs | p99.9 µs | of the bound: drawn, done |\n|{}",
        "---|".repeat(7)
    );
    let all = LAWS.iter().flat_map(|law| cases(*law, options.rate_per_s));
    for case in all.chain(shallow_cases()) {
        if case.name().contains(&options.only) {
            let found = case::run(&case, &options)?;
            print(&case.name(), &found);
        }
    }
    outside::run(&options, &print)
}

fn print(name: &str, found: &case::CaseResult) {
    let case::CaseResult { reported, drawn, done } = found;
    let mut cells = vec![name.to_owned()];
    let fields: [(f64, fn(&Figures) -> f64); 5] = [
        (1.0, |f| f.rate_per_s),
        (1e3, |f| f.mean_ns),
        (1e3, |f| f.p50_ns),
        (1e3, |f| f.p99_ns),
        (1e3, |f| f.p999_ns),
    ];
    for (unit, field) in fields {
        // A bundle has no percentile of too few samples.
        cells.push(match field(reported) {
            0.0 => "-".to_owned(),
            value => {
                let [drawn, done] = [drawn, done].map(|truth| error(value, field(truth)));
                format!("{:.*} ({drawn}, {done})", usize::from(unit > 1.0), value / unit)
            }
        });
    }
    let [drawn, done] = [drawn, done].map(|truth| bound_share(reported, truth));
    cells.push(format!("{drawn:.2}, {done:.2}"));
    println!("| {} |", cells.join(" | "));
}
