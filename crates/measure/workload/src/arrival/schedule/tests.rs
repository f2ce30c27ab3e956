use super::*;

/// Merges the start times of all parts and returns the first `n` in ascending order.
fn merged(schedule: &Schedule, parts: u64, seed: u64, n: usize) -> Vec<u64> {
    let each = (0..parts).flat_map(|part| schedule.part(part, parts, seed).take(n));
    let mut starts: Vec<u64> = each.collect();
    starts.sort_unstable();
    starts.truncate(n);
    starts
}

fn rate(per_s: f64) -> Rate {
    Rate::per_s(per_s).unwrap()
}

const DAY_NS: u128 = 86_400_000_000_000;

/// After 24 h, the n-th start time equals the exact value, even if the gap is not a whole number of
/// nanoseconds.
#[test]
fn a_day_of_even_spacing_does_not_drift() {
    for per_s in [3.0, 997.0, 1_000.1, 7_777.777_777] {
        let n = (per_s * 86_400.0) as u64;
        let mut steady = SteadyArrivals::new(rate(per_s), 0, 1);
        let last = steady.nth(n as usize).unwrap();
        let micro = (per_s * 1e6).round() as u128;
        assert_eq!(u128::from(last), u128::from(n) * 1_000_000_000_000_000 / micro, "{per_s}");
        assert!(DAY_NS.abs_diff(u128::from(last)) < 2_000_000_000);
    }
}

#[test]
fn parts_of_an_even_stream_are_the_stream() {
    let schedule = Schedule::Constant { rate: rate(333_333.333), warp: Warp::None };
    let whole: Vec<u64> = schedule.whole(1).take(1_000).collect();
    for parts in [2, 3, 7] {
        assert_eq!(merged(&schedule, parts, 1, 1_000), whole, "{parts}");
    }
}

/// Returns the Kolmogorov-Smirnov distance between samples and a distribution function, multiplied
/// by the square root of the number of samples. For samples of this distribution, it exceeds 1.95
/// with a probability of 0.1 % (Smirnov 1948, asymptotic).
fn ks(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut distance: f64 = 0.0;
    for (i, x) in samples.iter().enumerate() {
        let f = cdf(*x);
        distance = distance.max((f - i as f64 / n).abs()).max(((i + 1) as f64 / n - f).abs());
    }
    distance * n.sqrt()
}

fn gaps(times: impl Iterator<Item = u64>, n: usize) -> Vec<f64> {
    let times: Vec<u64> = times.take(n + 1).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
}

/// At 200,000 starts per second, the mean gap is 5,000 ns. Rounding to nanoseconds changes the
/// distribution function by at most 1/5000. The test accepts a much larger distance for 100,000
/// gaps.
#[test]
fn poisson_gaps_are_exponential_whole_and_merged() {
    let schedule = Schedule::Poisson { rate: rate(200_000.0), warp: Warp::None };
    let exponential = |mean: f64| move |x: f64| 1.0 - (-(x + 0.5) / mean).exp();
    let whole = ks(gaps(schedule.whole(5), 100_000), exponential(5_000.0));
    assert!(whole < 1.95, "{whole}");
    let part = ks(gaps(schedule.part(2, 4, 5), 100_000), exponential(20_000.0));
    assert!(part < 1.95, "{part}");
    let starts = merged(&schedule, 4, 5, 100_001);
    let merged = ks(gaps(starts.into_iter(), 100_000), exponential(5_000.0));
    assert!(merged < 1.95, "{merged}");
}

/// Gaps are independent: the correlation of a gap with the next gap is within four standard errors
/// of 0.
#[test]
fn poisson_gaps_are_independent() {
    let schedule = Schedule::Poisson { rate: rate(1_000.0), warp: Warp::None };
    let gaps = gaps(schedule.whole(8), 100_000);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance: f64 = gaps.iter().map(|g| (g - mean).powi(2)).sum();
    let covariance: f64 = gaps.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let correlation = covariance / variance;
    assert!(correlation.abs() < 4.0 / (100_000f64).sqrt(), "{correlation}");
}

/// 30 s at 200,000/s are 6 million starts, with a standard error of 0.04 %. The rate must be
/// correct to 0.2 %.
#[test]
fn poisson_keeps_its_rate() {
    for seed in 0..3 {
        let schedule = Schedule::Poisson { rate: rate(200_000.0), warp: Warp::None };
        let count = schedule.whole(seed).take_while(|t| *t < 30_000_000_000).count();
        assert!((count as f64 / 6e6 - 1.0).abs() < 0.002, "{count}");
    }
}

/// The fraction that rounding drops is added to the next gap. So the mean is preserved even if gaps
/// are only a few nanoseconds long.
#[test]
fn fast_poisson_is_not_rounded_down() {
    let schedule = Schedule::Poisson { rate: rate(3e8), warp: Warp::None };
    let last = schedule.whole(1).nth(1_000_000).unwrap() as f64;
    assert!((last / (1e6 / 3e8 * 1e9) - 1.0).abs() < 0.004, "{last}");
}

#[test]
fn bursts_start_nothing_in_their_pauses_and_keep_their_rate() {
    let warp = Warp::Bursts { on_ns: 10_000_000, off_ns: 40_000_000 };
    let schedule = Schedule::Poisson { rate: rate(100_000.0), warp };
    let times: Vec<u64> = schedule.whole(3).take_while(|t| *t < 20_000_000_000).collect();
    assert!(times.iter().all(|t| t % 50_000_000 < 10_000_000));
    // The 400 bursts have 1,000 starts each on average. The total of 400,000 starts has a standard
    // error of 632.
    assert!((times.len() as f64 - 400_000.0).abs() < 2_500.0, "{}", times.len());
}

#[test]
fn a_ramp_brings_half_of_its_time_in_work() {
    let warp = Warp::Ramp { ramp_ns: 10_000_000_000 };
    let even = Schedule::Constant { rate: rate(1_000.0), warp };
    let within = |schedule: &Schedule, ns| schedule.whole(1).take_while(|t| *t < ns).count();
    assert_eq!(within(&even, 10_000_000_000), 5_000);
    assert_eq!(within(&even, 5_000_000_000), 1_250);
    assert_eq!(within(&even, 20_000_000_000), 15_000);
    let random = Schedule::Poisson { rate: rate(1_000.0), warp };
    // The expected number of starts is 15,000, with a standard error of 122.
    assert!(within(&random, 20_000_000_000).abs_diff(15_000) < 490);
}

#[test]
fn recorded_starts_are_dealt_out_in_turn() {
    let recording = Recording::parse("# made elsewhere\n0\n\n 5\n5\n9\n100\n").unwrap();
    let schedule = Schedule::Recorded(recording);
    assert_eq!(schedule.whole(1).collect::<Vec<_>>(), [0, 5, 5, 9, 100]);
    assert_eq!(schedule.part(1, 2, 1).collect::<Vec<_>>(), [5, 9]);
    assert_eq!(merged(&schedule, 3, 1, 9), [0, 5, 5, 9, 100]);
}

#[test]
fn bad_recordings_and_rates_say_what_is_wrong() {
    use crate::arrival::RecordedError;
    let not = Recording::parse("1\ntwo\n");
    assert_eq!(not, Err(RecordedError::NotANumber { line: 2, text: "two".into() }));
    assert_eq!(Recording::new(vec![3, 2]), Err(RecordedError::OutOfOrder { line: 2 }));
    assert_eq!(Recording::parse("\n# nothing\n"), Err(RecordedError::Empty));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-7, 2e9] {
        assert!(Rate::per_s(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_same_seed_gives_the_same_starts_and_another_other_ones() {
    let schedule = Schedule::Poisson { rate: rate(1_000.0), warp: Warp::None };
    let take = |part, seed| schedule.part(part, 4, seed).take(100).collect::<Vec<_>>();
    assert_eq!(take(1, 7), take(1, 7));
    assert_ne!(take(1, 7), take(1, 8));
    assert_ne!(take(1, 7), take(2, 7));
}
