//! Tests the search for the load line: on known curves with noise, it must find the load line in at
//! most 16 steps.

use crate::synthetic::Source;
use plimsoll_judge::stats::tune::{Goal, Loop, Outcome, Point, STEPS_MAX, Search, Step};

/// Simulated system with a known curve of throughput and latency.
#[derive(Clone, Copy, Debug)]
enum System {
    /// Throughput rises in proportion to the threads, then bends to a maximum. A higher sharpness
    /// is a sharper bend; 1 is the softest.
    Flattens { single: f64, most: f64, sharpness: f64 },
    /// Gunther's universal scalability law: contention and coherence reduce the throughput above
    /// its peak load.
    Falls { single: f64, contention: f64, coherence: f64 },
    /// Throughput rises in proportion to the threads up to `at` threads, and then drops to `share`
    /// of its peak.
    Cliff { single: f64, at: f64, share: f64 },
    /// Open queue with one server. Above the capacity, the throughput drops to `share` of the
    /// capacity.
    Queue { service_ns: f64, share: f64 },
}

impl System {
    /// Returns throughput per second and mean latency in ns at a load, without noise.
    fn at(self, load: f64) -> (f64, f64) {
        let closed = |throughput: f64| (throughput, load * 1e9 / throughput);
        match self {
            Self::Flattens { single, most, sharpness } => {
                let ratio = load * single / most;
                closed(most * ratio / (1.0 + ratio.powf(sharpness)).powf(1.0 / sharpness))
            }
            Self::Falls { single, contention, coherence } => {
                let more = load - 1.0;
                closed(single * load / (1.0 + contention * more + coherence * load * more))
            }
            Self::Cliff { single, at, share } => {
                closed(if load <= at { single * load } else { single * at * share })
            }
            Self::Queue { service_ns, share } => {
                let capacity = 1e9 / service_ns;
                if load < capacity {
                    (load, service_ns / (1.0 - load / capacity))
                } else {
                    (capacity * share, 1e10)
                }
            }
        }
    }

    fn issue(self) -> Loop {
        if matches!(self, Self::Queue { .. }) { Loop::Open } else { Loop::Closed }
    }

    /// Returns the highest throughput of all loads in the range that meet the latency ceiling.
    fn line(self, goal: &Goal) -> f64 {
        loads(goal)
            .map(|load| self.at(load))
            .filter(|&(_, latency)| goal.ceilings_ns.iter().all(|&ceiling| latency <= ceiling))
            .map(|(throughput, _)| throughput)
            .fold(0.0, f64::max)
    }

    /// Returns the fewest threads that achieve the required throughput and meet the latency
    /// ceiling.
    fn required_load(self, goal: &Goal, required: f64) -> Option<f64> {
        loads(goal).find(|&load| {
            let (throughput, latency) = self.at(load);
            throughput >= required && goal.ceilings_ns.iter().all(|&ceiling| latency <= ceiling)
        })
    }
}

/// Returns every load of a range with up to 4,096 loads. In a wider range, successive loads differ
/// by a thousandth.
fn loads(goal: &Goal) -> impl Iterator<Item = f64> + use<> {
    let (mut load, max) = (goal.load_min as f64, goal.load_max as f64);
    let step = if max > 4_096.0 { 1.001 } else { 1.0 };
    core::iter::from_fn(move || {
        let this = load;
        load = if step > 1.0 { load * step } else { load + 1.0 };
        (this <= max).then_some(this)
    })
}

/// Searches the load line of a system. The noise of its throughput and latency is a fraction of the
/// values.
fn search(system: System, goal: &Goal, noise: f64, seed: u64) -> Outcome {
    let mut source = Source::new(seed);
    let mut search = Search::new(goal.clone()).unwrap();
    // In an open loop, the throughput is the offered rate or less, so noise hardly affects it.
    let rate_noise = if system.issue() == Loop::Open { 0.2 * noise } else { noise };
    loop {
        match search.next_step() {
            Step::Done(outcome) => return outcome,
            Step::Measure { load, .. } => {
                assert!((goal.load_min..=goal.load_max).contains(&load), "{load}");
                let (throughput, latency) = system.at(load as f64);
                search.record(Point {
                    load,
                    throughput_per_s: throughput * (1.0 + rate_noise * source.normal()),
                    latencies_ns: vec![latency * (1.0 + noise * source.normal())],
                    steady: true,
                });
            }
        }
    }
}

fn goal(system: System, ceiling_ns: Option<f64>, required_per_s: Option<f64>) -> Goal {
    let (load_min, load_max) =
        if system.issue() == Loop::Open { (100, 1_000_000) } else { (1, 4_096) };
    Goal {
        hosts: 1,
        issue: system.issue(),
        load_min,
        load_max,
        ceilings_ns: ceiling_ns.into_iter().collect(),
        required_per_s,
        steps_max: STEPS_MAX,
    }
}

/// Creates a system with random parameters.
fn draw(kind: usize, source: &mut Source) -> System {
    let mut between = |low: f64, high: f64| low * (high / low).powf(source.uniform());
    let single = between(100.0, 5_000.0);
    match kind {
        0 => {
            let (threads, sharpness) = (between(3.0, 400.0), between(1.0, 6.0));
            System::Flattens { single, most: single * threads, sharpness }
        }
        1 => {
            let (peak, contention) = (between(3.0, 300.0), between(0.001, 0.1));
            System::Falls { single, contention, coherence: (1.0 - contention) / (peak * peak) }
        }
        2 => System::Cliff { single, at: between(3.0, 500.0).round(), share: between(0.3, 0.8) },
        _ => {
            System::Queue { service_ns: 1e9 / between(300.0, 500_000.0), share: between(0.5, 1.0) }
        }
    }
}

/// Number of systems of each kind.
const SEEDS: u64 = 1_000;

const KINDS: [&str; 4] = ["flattening", "falling", "cliff", "open queue"];

#[test]
fn the_load_line_is_found_within_five_percent() {
    for (kind, name) in KINDS.into_iter().enumerate() {
        // The measurement of the load line also has noise, so a noise of 3 % requires a wider
        // limit.
        for (noise, limit) in [(0.0, 0.05), (0.01, 0.05), (0.03, 0.12)] {
            for with_ceiling in [true, false] {
                let (mut steps, mut worst) = (0, 0.0_f64);
                for seed in 0..SEEDS {
                    let mut source = Source::new(seed);
                    let system = draw(kind, &mut source);
                    // The latency ceiling is two to twelve times the latency at the smallest load.
                    let (_, unloaded) = system.at(goal(system, None, None).load_min as f64);
                    let ceiling = unloaded * 2.0 * 6.0_f64.powf(source.uniform());
                    let goal = goal(system, with_ceiling.then_some(ceiling), None);
                    let outcome = search(system, &goal, noise, seed);
                    assert!(outcome.steps <= STEPS_MAX, "seed {seed} {system:?}");
                    steps += outcome.steps;
                    let found = outcome.load_line.map_or(0.0, |line| line.rate_per_s);
                    let error = (found / system.line(&goal) - 1.0).abs();
                    assert!(error <= limit, "seed {seed} {system:?} {goal:?}: {error} {outcome:?}");
                    worst = worst.max(error);
                }
                println!(
                    "{name} noise {noise} ceiling {with_ceiling}: worst of {SEEDS} {:.1} % off, \
                     {:.1} steps on average",
                    100.0 * worst,
                    steps as f64 / SEEDS as f64
                );
            }
        }
    }
}

#[test]
fn the_fewest_threads_are_found() {
    for (kind, name) in KINDS.into_iter().enumerate().take(3) {
        for (noise, missed_max) in [(0.0, 0), (0.01, SEEDS / 50)] {
            let (mut missed, mut unchecked, mut steps) = (0, 0, 0);
            for seed in 0..SEEDS {
                let mut source = Source::new(seed);
                let system = draw(kind, &mut source);
                let most = system.line(&goal(system, None, None));
                let required = most * (0.2 + 0.5 * source.uniform());
                let goal = goal(system, None, Some(required));
                let truth = system.required_load(&goal, required).unwrap();
                let outcome = search(system, &goal, noise, seed);
                assert!(outcome.steps <= STEPS_MAX, "seed {seed} {system:?}");
                steps += outcome.steps;
                unchecked += u64::from(!outcome.required_load_checked);
                let found = outcome.required_load.map_or(0.0, |required| required.load as f64);
                // Noise can change the result by one thread. Without noise, the result is accurate
                // to 10 %.
                let allowed = (0.1 * truth).max(if noise > 0.0 { 1.0 } else { 0.0 });
                missed += u64::from((found - truth).abs() > allowed);
            }
            println!(
                "{name} noise {noise}: fewest threads missed in {missed} of {SEEDS}, unchecked in \
                 {unchecked}, {:.1} steps on average",
                steps as f64 / SEEDS as f64
            );
            assert!(missed <= missed_max && unchecked <= SEEDS / 50, "{missed} {unchecked}");
        }
    }
}

#[test]
fn the_knee_is_where_a_sharp_curve_bends() {
    for seed in 0..SEEDS {
        let mut source = Source::new(seed);
        let threads = 4.0 * 60.0_f64.powf(source.uniform());
        let system = System::Flattens { single: 1_000.0, most: 1_000.0 * threads, sharpness: 16.0 };
        let outcome = search(system, &goal(system, None, None), 0.01, seed);
        let knee = outcome.knee.map_or(0.0, |knee| knee.load as f64);
        let off = (knee / threads).max(threads / knee);
        assert!(off <= 1.35, "seed {seed}: bend at {threads}, knee at {knee}: {outcome:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]

    /// With arbitrary measurements, the search ends after at most 16 steps, proposes only loads in
    /// its range, and returns a measured load.
    #[test]
    fn any_curve_ends_in_time(
        figures in proptest::collection::vec((0.0..1e7_f64, 0.0..1e9_f64, 0..8_u8), 16),
        load_max in 1..100_000_u64,
        open: bool,
        required in proptest::option::of(1.0..1e6_f64),
    ) {
        let goal = Goal {
            hosts: 1,
            issue: if open { Loop::Open } else { Loop::Closed },
            load_min: 1,
            load_max,
            ceilings_ns: vec![3e8],
            required_per_s: required,
            steps_max: STEPS_MAX,
        };
        let mut search = Search::new(goal).unwrap();
        let mut loads = Vec::new();
        for (throughput_per_s, latency_ns, steady) in figures {
            let Step::Measure { load, .. } = search.next_step() else { break };
            proptest::prop_assert!((1..=load_max).contains(&load));
            loads.push(load);
            let latencies_ns = vec![latency_ns];
            search.record(Point { load, throughput_per_s, latencies_ns, steady: steady > 0 });
        }
        let Step::Done(outcome) = search.next_step() else {
            panic!("more than {STEPS_MAX} steps")
        };
        for answer in [outcome.load_line, outcome.required_load, outcome.knee].into_iter().flatten() {
            proptest::prop_assert!(loads.contains(&answer.load));
        }
    }
}
