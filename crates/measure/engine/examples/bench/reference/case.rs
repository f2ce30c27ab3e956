//! One case: a distribution, a driver, a load.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_engine::backend::SPIN_NS_MAX;
use plimsoll_engine::stream::pacing::{ClosedLoop, OpenLoop};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::cpu::{pin_thread, set_timer_slack_ns};
use plimsoll_workload::arrival::{Arrivals, Rate, Schedule, Warp};

use super::Options;
use super::figures::Figures;
use super::law::Law;
use super::target::{DeviceTimes, ReferenceDevice, WaitMode};
use super::{step, stream};

/// Driver under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Streams of operations.
    Stream,
    /// Stateful workloads, such as the mail store.
    Step,
}

/// Pacing of the operations.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    Closed {
        depth: u32,
    },
    /// Poisson arrivals.
    Open {
        rate_per_s: f64,
    },
}

/// Case of the reference bench.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub law: Law,
    pub driver: Driver,
    pub load: Load,
    /// Operations that the device serves at a time.
    pub servers: u32,
    pub waiting: WaitMode,
}

#[derive(Clone, Copy, Debug)]
pub struct CaseResult {
    pub reported: Figures,
    pub drawn: Figures,
    pub done: Figures,
}

/// Places of the device, for open loops.
const PLACES: u32 = 1 << 16;
/// Seed of the arrivals.
const SEED: u64 = 42;
/// Time between the device's readiness and the start.
const LEAD_NS: u64 = 20_000_000;
/// Time before a start in which a driver watches the clock: the default of plans.
const SPIN_NS: u64 = 50_000;

impl Case {
    pub fn name(&self) -> String {
        let law = self.law.name();
        let load = match self.load {
            Load::Closed { depth } => format!("closed loop, depth {depth}"),
            Load::Open { rate_per_s } => format!("open loop, {rate_per_s:.0}/s"),
        };
        let driver = if self.driver == Driver::Step { "mail store's driver, " } else { "" };
        let servers = match self.servers {
            PLACES.. => String::new(),
            servers => format!(", {servers} servers"),
        };
        let sleeps = match self.waiting {
            WaitMode::Watching => "",
            WaitMode::Sleeping => ", sleeping driver",
            WaitMode::Polling => ", polling driver",
        };
        format!("{law}; {driver}{load}{servers}{sleeps}")
    }

    fn arrivals(&self, rate_per_s: f64) -> Result<Arrivals, String> {
        let rate = Rate::per_s(rate_per_s).map_err(|error| error.to_string())?;
        Ok(Schedule::Poisson { rate, warp: Warp::None }.part(0, 1, SEED))
    }
}

/// Runs a case.
pub fn run(case: &Case, options: &Options) -> Result<CaseResult, String> {
    let (case, options) = (*case, options.clone());
    let thread = std::thread::spawn(move || {
        pin_thread(options.cpu).map_err(|error| error.to_string())?;
        set_timer_slack_ns(1);
        match case.driver {
            Driver::Stream => streamed(&case, &options),
            Driver::Step => stepped(&case, &options),
        }
    });
    thread.join().map_err(|_| "the driver panicked".to_owned())?
}

fn target(case: &Case, options: &Options) -> ReferenceDevice {
    let capacity = match case.load {
        Load::Closed { depth } => depth,
        Load::Open { .. } => PLACES,
    };
    let device_cpu = Some(options.device_cpu);
    ReferenceDevice::start(case.law, capacity, case.servers, case.waiting, device_cpu)
}

fn streamed(case: &Case, options: &Options) -> Result<CaseResult, String> {
    let mut queue = target(case, options);
    let start_ns = monotonic_ns() + LEAD_NS;
    let stop_ns = start_ns + options.seconds * 1_000_000_000;
    let span = (start_ns, stop_ns);
    let polls = case.waiting == WaitMode::Polling;
    let spins = (SPIN_NS, if polls { SPIN_NS_MAX } else { 0 });
    let collector = match case.load {
        Load::Closed { depth } => {
            stream::report(&mut queue, ClosedLoop::new(&[depth], start_ns), span, spins)?
        }
        Load::Open { rate_per_s } => {
            let open = OpenLoop::new(vec![case.arrivals(rate_per_s)?], PLACES, start_ns);
            stream::report(&mut queue, open, span, spins)?
        }
    };
    let (known, _) = queue.end();
    let total = &collector.totals[0];
    let count = known.len() as u64;
    if total.totals.operations != count {
        return Err(format!("{} operations were reported of {count}", total.totals.operations));
    }
    let at = |quantile| total.latency.quantile_ns(quantile).unwrap_or(0) as f64;
    let reported = Figures {
        rate_per_s: collector.window[0].operations as f64 / options.seconds as f64,
        mean_ns: total.totals.latency_ns_sum as f64 / count.max(1) as f64,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
    };
    truth(case, &known, reported, (start_ns, stop_ns))
}

fn stepped(case: &Case, options: &Options) -> Result<CaseResult, String> {
    let Load::Closed { depth } = case.load else {
        return Err("the stepped workload is a closed loop".to_owned());
    };
    let queue = target(case, options);
    let start_ns = monotonic_ns() + LEAD_NS;
    let stop_ns = start_ns + options.seconds * 1_000_000_000;
    let (stepped, queue) = step::report(queue, depth, (start_ns, stop_ns))?;
    let (known, _) = queue.end();
    if stepped.operations != known.len() as u64 {
        return Err(format!("{} operations were reported of {}", stepped.operations, known.len()));
    }
    let at = |quantile| (stepped.latency_ns_at)(quantile) as f64;
    let reported = Figures {
        rate_per_s: stepped.inside as f64 / options.seconds as f64,
        mean_ns: stepped.latency_ns_sum as f64 / known.len().max(1) as f64,
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
    };
    truth(case, &known, reported, (start_ns, stop_ns))
}

/// Computes both reference latencies. A closed loop's operations start when the device receives
/// them, an open loop's at their scheduled start.
fn truth(
    case: &Case,
    known: &[DeviceTimes],
    reported: Figures,
    (start_ns, stop_ns): (u64, u64),
) -> Result<CaseResult, String> {
    let seconds = (stop_ns - start_ns) as f64 / 1e9;
    let inside = |at_ns: u64| (start_ns..stop_ns).contains(&at_ns);
    let done_rate = known.iter().filter(|one| inside(one.done_ns)).count() as f64 / seconds;
    let found = |(drawn_rate, mut drawn): (f64, Vec<u64>), mut done: Vec<u64>| CaseResult {
        reported,
        drawn: Figures::of(drawn_rate, &mut drawn),
        done: Figures::of(done_rate, &mut done),
    };
    match case.load {
        Load::Closed { depth } => {
            let of = |ns: fn(&DeviceTimes) -> u64| known.iter().map(ns).collect::<Vec<u64>>();
            let drawn = of(|one| one.due_ns - one.received_ns);
            // A slot that is reused at once is always in the device (Little's law).
            let mean_ns = drawn.iter().sum::<u64>() as f64 / drawn.len().max(1) as f64;
            let drawn_rate = f64::from(depth) / mean_ns * 1e9;
            Ok(found((drawn_rate, drawn), of(|one| one.done_ns - one.received_ns)))
        }
        Load::Open { rate_per_s } => {
            let due: Vec<u64> = case.arrivals(rate_per_s)?.take(known.len()).collect();
            let (mut drawn, mut inside_drawn) = (Vec::with_capacity(due.len()), 0);
            let servers = if case.servers < PLACES { case.servers } else { 0 };
            let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(0)).collect();
            for (one, due_ns) in known.iter().zip(&due) {
                let from_ns = start_ns + due_ns;
                let free_ns = free.pop().map_or(0, |Reverse(ns)| ns);
                let end_ns = free_ns.max(from_ns) + one.drawn_ns;
                if servers > 0 {
                    free.push(Reverse(end_ns));
                }
                inside_drawn += u64::from(inside(end_ns));
                drawn.push(end_ns - from_ns);
            }
            let latency = |(one, due_ns): (&DeviceTimes, &u64)| one.done_ns - (start_ns + due_ns);
            let done = known.iter().zip(&due).map(latency).collect();
            Ok(found((inside_drawn as f64 / seconds, drawn), done))
        }
    }
}
