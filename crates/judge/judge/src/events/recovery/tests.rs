//! Tests the detection of recovery on 1,400 seeded simulations with known outages, dips and
//! recoveries.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const INTERVAL_NS: u64 = 1_000_000_000;
const BEFORE: usize = 180;
const SINCE: usize = 400;
const RATE: f64 = 5_000.0;

/// Simulated course of the rate and of slow operations after the event, as fractions of their
/// normal values.
#[derive(Clone, Copy, Debug)]
enum Course {
    /// Nothing happens.
    Nothing,
    /// An outage, followed by the baseline.
    Outage(usize),
    /// An outage, followed by a reduced rate until the baseline returns.
    Rebuild(usize, f64, usize),
    /// A reduced rate with many slow operations, followed by the baseline.
    Slow(f64, usize),
    /// The rate rises linearly from zero to the baseline.
    Ramp(usize),
    /// The rate stays reduced until the end.
    Never(f64),
    /// The baseline rate, but a tenth of the operations are slow until the end.
    SlowForEver,
}

impl Course {
    /// Returns the rate (as a share of the baseline) and the share of slow operations in an
    /// interval.
    fn at(self, interval: usize) -> (f64, f64) {
        let normal = (1.0, 0.003);
        match self {
            Self::Nothing => normal,
            Self::Outage(length) if interval < length => (0.0, 1.0),
            Self::Rebuild(outage, _, _) if interval < outage => (0.0, 1.0),
            Self::Rebuild(_, share, until) if interval < until => (share, 0.02),
            Self::Slow(share, until) if interval < until => (share, 0.08),
            Self::Ramp(until) if interval < until => (interval as f64 / until as f64, 0.003),
            Self::Never(share) => (share, 0.003),
            Self::SlowForEver => (1.0, 0.1),
            _ => normal,
        }
    }

    /// Returns the true recovery time in intervals; `None` if the system does not recover.
    fn recovers(self) -> Option<f64> {
        match self {
            Self::Nothing => Some(0.0),
            Self::Outage(until) | Self::Rebuild(_, _, until) | Self::Slow(_, until) => {
                Some(until as f64)
            }
            Self::Ramp(until) => Some(until as f64 * RATE_SHARE),
            Self::Never(_) | Self::SlowForEver => None,
        }
    }
}

/// Returns samples of a course. The rate varies randomly by `scatter`. `memory` is the correlation
/// with the variation in the previous interval.
fn samples(
    course: Course,
    scatter: f64,
    memory: f64,
    random: &mut Xoshiro256PlusPlus,
) -> [Vec<Sample>; 2] {
    let mut past = 0.0;
    let mut sample = |(share, slow): (f64, f64)| {
        past = memory * past + normal(random) * (1.0 - memory * memory).sqrt();
        let rate_per_s = (RATE * share * (1.0 + scatter * past)).max(0.0);
        let operations = rate_per_s.max(1.0);
        // The number of slow operations is nearly Poisson.
        let noise = normal(random) * (slow / operations).sqrt();
        let slow_share = if share == 0.0 { 1.0 } else { (slow + noise).clamp(0.0, 1.0) };
        Sample { rate_per_s, slow_share }
    };
    let before = (0..BEFORE).map(|_| sample((1.0, 0.003))).collect();
    let since = (0..SINCE).map(|interval| sample(course.at(interval))).collect();
    [before, since]
}

fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a normal random number (Box and Muller).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(random).max(1e-300)));
    radius * libm::cos(2.0 * core::f64::consts::PI * uniform(random))
}

fn course(number: u64, random: &mut Xoshiro256PlusPlus) -> Course {
    let length = |random: &mut Xoshiro256PlusPlus, least: usize, most: usize| {
        least + (uniform(random) * (most - least) as f64) as usize
    };
    match number % 7 {
        0 => Course::Nothing,
        1 => Course::Outage(length(random, 2, 120)),
        2 => {
            let outage = length(random, 2, 30);
            Course::Rebuild(outage, 0.5 + 0.4 * uniform(random), outage + length(random, 20, 150))
        }
        3 => Course::Slow(0.7 + 0.3 * uniform(random), length(random, 5, 150)),
        4 => Course::Ramp(length(random, 10, 150)),
        5 => Course::Never(0.4 + 0.5 * uniform(random)),
        _ => Course::SlowForEver,
    }
}

#[test]
fn two_hundred_simulated_runs_keep_the_promised_error() {
    let (mut runs, mut undecided) = (0, Vec::new());
    let (mut nothing, mut false_alarms) = (0, Vec::new());
    let (mut recovering, mut not_found, mut far) = (0, Vec::new(), Vec::new());
    let (mut lasting, mut false_recoveries) = (0, Vec::new());
    for seed in 0..1_400u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let course = course(seed, &mut random);
        let (scatter, memory) = (0.01 + 0.04 * uniform(&mut random), 0.4 * uniform(&mut random));
        // A ramp crosses the recovery threshold slowly, and scatter blurs the time of the crossing.
        let scatter = if matches!(course, Course::Ramp(_)) { scatter.min(0.02) } else { scatter };
        let [before, since] = samples(course, scatter, memory, &mut random);
        let found = find(&before, &since, INTERVAL_NS);
        let text = format!("{seed} {course:?} {scatter:.3} {memory:.2}: {found:?}");
        runs += 1;
        match (course, course.recovers(), &found) {
            (_, _, Recovery::Unknown(_)) => undecided.push(text),
            (Course::Nothing, _, found) => {
                nothing += 1;
                if !matches!(found, Recovery::After(0 | 1)) {
                    false_alarms.push(text);
                }
            }
            (_, Some(_), Recovery::NotWithinRun) => {
                recovering += 1;
                not_found.push(text);
            }
            (_, Some(truth), Recovery::After(at)) => {
                recovering += 1;
                if (*at as f64 - truth).abs() > 1.0 + 0.05 * truth {
                    far.push(text);
                }
            }
            (_, None, found) => {
                lasting += 1;
                if matches!(found, Recovery::After(_)) {
                    false_recoveries.push(text);
                }
            }
        }
    }
    let says = format!(
        "{runs} runs; undecided {}; false alarms {} of {nothing}: {false_alarms:#?}; not found {} \
         of {recovering}: {not_found:#?}; far {}: {far:#?}; false recoveries {} of {lasting}: \
         {false_recoveries:#?}",
        undecided.len(),
        false_alarms.len(),
        not_found.len(),
        far.len(),
        false_recoveries.len(),
    );
    if std::env::var_os("PLIMSOLL_SHOW").is_some() {
        println!("{says}");
    }
    assert!(undecided.len() * 100 <= runs, "{says}");
    assert!(false_alarms.len() * 100 <= nothing, "{says}");
    assert!(not_found.len() * 20 <= recovering, "{says}");
    assert!(far.len() * 20 <= recovering, "{says}");
    assert!(false_recoveries.len() * 100 <= lasting, "{says}");
}

#[test]
fn a_short_or_noisy_run_decides_nothing() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let [before, since] = samples(Course::Nothing, 0.02, 0.0, &mut random);
    assert!(matches!(find(&before[..9], &since, INTERVAL_NS), Recovery::Unknown(_)));
    assert!(matches!(find(&before, &since[..39], INTERVAL_NS), Recovery::Unknown(_)));
    assert_eq!(find(&before, &since[..40], INTERVAL_NS), Recovery::After(0));
    let [before, since] = samples(Course::Nothing, 0.4, 0.0, &mut random);
    assert!(matches!(find(&before, &since, INTERVAL_NS), Recovery::Unknown(_)));
}
