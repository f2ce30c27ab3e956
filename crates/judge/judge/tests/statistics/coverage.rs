//! Tests the coverage of 95 % intervals: 95 of 100 intervals should contain the true mean. There
//! are 2,000 series of each kind, with 60, 300 and 1,800 values and a known mean. The tests also
//! check the detected end of the warm-up.

use crate::synthetic::{Source, ar1_n_effective};
use plimsoll_judge::stats::{Interval, Parts, Refusal, batch_means, ratio_of_totals, settled_from};

const SERIES: u32 = 2_000;
const LENGTHS: [usize; 3] = [60, 300, 1_800];

/// Results for 2,000 series.
#[derive(Debug, Default)]
struct Tally {
    accepted: u32,
    covered: u32,
    too_small: u32,
    unsettled: u32,
}

impl Tally {
    fn coverage(&self) -> f64 {
        f64::from(self.covered) / f64::from(self.accepted)
    }

    fn refused(&self) -> f64 {
        1.0 - f64::from(self.accepted) / f64::from(SERIES)
    }

    /// Checks the coverage. The intervals of 92.5-97.5 % of accepted series must contain the true
    /// mean. With 30 effective values or more, at most 5 % of the series may be refused. With fewer
    /// than ten effective values, nearly all series are refused.
    fn check(&self, what: &str, n: usize, n_effective: f64) {
        let coverage = self.coverage();
        println!(
            "{what:<24} n {n:>4}  effective {n_effective:>7.1}  refused {:>5.1} %  covered {:.1} %",
            100.0 * self.refused(),
            100.0 * coverage
        );
        if n_effective >= 30.0 {
            assert!(self.refused() <= 0.05, "{what} n {n}: {self:?}");
        }
        let slipped_through = n_effective < 10.0 && self.refused() >= 0.90;
        if !slipped_through {
            assert!((0.925..=0.975).contains(&coverage), "{what} n {n}: {coverage} {self:?}");
        }
        let wrong = f64::from(self.accepted - self.covered) / f64::from(SERIES);
        assert!(wrong <= 0.075, "{what} n {n}: {wrong} are wrong and not refused");
    }
}

/// Returns the mean of the values after the warm-up.
fn steady_mean(values: &[f64]) -> Result<Interval, Refusal> {
    batch_means(&values[settled_from(values)?..])
}

/// Judges 2,000 series from `make`. If `cut` is set, their warm-up is removed.
fn tally(seed: u64, truth: f64, cut: bool, mut make: impl FnMut(&mut Source) -> Vec<f64>) -> Tally {
    let mut source = Source::new(seed);
    let mut tally = Tally::default();
    for _ in 0..SERIES {
        let values = make(&mut source);
        let result = if cut { steady_mean(&values) } else { batch_means(&values) };
        match result {
            Ok(interval) => {
                tally.accepted += 1;
                tally.covered += u32::from(interval.contains(truth));
            }
            Err(Refusal::EffectiveSampleTooSmall { .. }) => tally.too_small += 1,
            Err(Refusal::WarmUpTooLong { .. }) => tally.unsettled += 1,
            Err(other) => panic!("{other}"),
        }
    }
    tally
}

#[test]
fn white_and_autoregressive_noise() {
    for phi in [0.0, 0.5, 0.9, 0.99] {
        for n in LENGTHS {
            let n_effective = ar1_n_effective(n, phi);
            for cut in [false, true] {
                let what = format!("AR(1) {phi}{}", if cut { ", settled" } else { "" });
                let result = tally(1, 0.0, cut, |source| source.ar1(n, phi));
                result.check(&what, n, n_effective);
            }
        }
    }
}

#[test]
fn a_latency_that_depends_on_the_load() {
    // An interval has 100 or 400 operations, and they take 5 or 50 ms on average. The mean of all
    // operations is 41 ms; the mean of the intervals' means is 27.5 ms.
    let truth = (100.0 * 5.0 + 400.0 * 50.0) / 500.0;
    for phi in [0.0, 0.5] {
        for n in LENGTHS {
            let (mut source, mut tally) = (Source::new(8), Tally::default());
            for _ in 0..SERIES {
                let load = source.ar1(n, phi);
                let parts: Vec<Parts> = load
                    .iter()
                    .map(|load| {
                        let (count, mean) = if *load > 0.0 { (400.0, 50.0) } else { (100.0, 5.0) };
                        let mean = mean * (1.0 + 0.1 * source.normal());
                        Parts { numerator: count * mean, denominator: count }
                    })
                    .collect();
                if let Ok(interval) = ratio_of_totals(&parts) {
                    tally.accepted += 1;
                    tally.covered += u32::from(interval.contains(truth));
                }
            }
            tally.check(&format!("latency of a load, phi {phi}"), n, ar1_n_effective(n, phi));
        }
    }
}

#[test]
fn two_modes() {
    for n in LENGTHS {
        for upper in [0.1, 0.3, 0.5] {
            let result = tally(2, 0.0, true, |source| source.bimodal(n, upper));
            result.check(&format!("bimodal {upper}"), n, n as f64);
        }
        // The modes are ten standard deviations apart, so the noise adds 1 to a variance of 25. The
        // second eigenvalue is 1 - 0.3 - 0.3.
        let n_effective = n as f64 * 26.0 / (26.0 + 2.0 * 25.0 * 0.4 / 0.6);
        let result = tally(3, 0.0, true, |source| source.switching(n, 0.3, 0.3));
        result.check("switching 0.3", n, n_effective);
    }
}

/// Course of a warm-up: the level rises to 1.
#[derive(Clone, Copy, Debug)]
enum WarmUp {
    /// The level rises linearly from 30 % and reaches 100 % after this share of the series.
    Ramp(f64),
    /// The level is 50 % up to this share of the series.
    Step(f64),
    /// The level rises from 30 % exponentially, with this share of the series as the time constant.
    Decay(f64),
}

impl WarmUp {
    fn level(self, i: usize, n: usize) -> f64 {
        let at = i as f64 / n as f64;
        match self {
            Self::Ramp(end) => (0.3 + 0.7 * at / end).min(1.0),
            Self::Step(end) => {
                if at < end {
                    0.5
                } else {
                    1.0
                }
            }
            Self::Decay(constant) => 1.0 - 0.7 * libm::exp(-at / constant),
        }
    }

    /// Creates `n` values that warm up to a level of 1 and have 5 % noise.
    fn series(self, source: &mut Source, n: usize, phi: f64) -> Vec<f64> {
        let noise = source.ar1(n, phi);
        (0..n).map(|i| self.level(i, n) + 0.05 * noise[i]).collect()
    }
}

#[test]
fn the_mean_after_a_warm_up() {
    use WarmUp::{Decay, Ramp, Step};
    for warm_up in [Ramp(0.2), Step(0.4), Decay(0.05)] {
        for (n, phi) in [(60, 0.0), (300, 0.0), (300, 0.5), (1_800, 0.0), (1_800, 0.9)] {
            let settled = match warm_up {
                Ramp(end) | Step(end) => 1.0 - end,
                // Approximate share after a decay is removed. With less noise, the cut is later.
                Decay(_) => 0.6,
            };
            let result = tally(5, 1.0, true, |source| warm_up.series(source, n, phi));
            let n_effective = settled * ar1_n_effective(n, phi);
            result.check(&format!("{warm_up:?}, phi {phi}"), n, n_effective);
        }
    }
}

#[test]
fn the_end_of_a_warm_up() {
    use WarmUp::{Ramp, Step};
    for warm_up in [Ramp(0.1), Ramp(0.4), Step(0.2)] {
        let (Ramp(share) | Step(share) | WarmUp::Decay(share)) = warm_up;
        for (n, phi) in [(60, 0.0), (300, 0.0), (300, 0.5), (1_800, 0.0), (1_800, 0.9)] {
            let mut source = Source::new(6);
            let found = (0..SERIES)
                .filter(|_| {
                    let values = warm_up.series(&mut source, n, phi);
                    let end = share * n as f64;
                    settled_from(&values).is_ok_and(|at| (at as f64 - end).abs() <= 0.05 * n as f64)
                })
                .count();
            println!("{warm_up:?} phi {phi} n {n}: end within 5 % in {found} of {SERIES}");
            assert!(found as f64 >= 0.95 * f64::from(SERIES), "{warm_up:?} n {n}: {found}");
        }
    }
}

#[test]
fn a_late_change_of_level_has_no_one_mean() {
    for n in LENGTHS {
        let mut source = Source::new(7);
        let accepted = (0..SERIES)
            .filter(|_| {
                let noise = source.ar1(n, 0.5);
                let level = |i: usize| if 10 * i < 7 * n { 1.0 } else { 0.7 };
                let values: Vec<f64> = (0..n).map(|i| level(i) + 0.05 * noise[i]).collect();
                steady_mean(&values).is_ok()
            })
            .count();
        println!("step at 70 %, n {n}: {accepted} of {SERIES} accepted");
        assert!(accepted as f64 <= 0.01 * f64::from(SERIES), "n {n}: {accepted}");
    }
}

#[test]
fn a_slow_drift_beneath_noise() {
    // The series is not AR(1): its lag-1 autocorrelation is 0.27, but 6.4 values are worth only one
    // independent value.
    let result = tally(4, 0.0, false, |source| source.drift_beneath_noise(1_800, 0.9, 0.3));
    result.check("drift beneath noise", 1_800, 1_800.0 / 6.4);
    // With 300 values, the drift is detected in most but not all series, so the limits are wider.
    let result = tally(4, 0.0, false, |source| source.drift_beneath_noise(300, 0.9, 0.3));
    assert!(result.coverage() >= 0.91 && result.refused() <= 0.15, "{result:?}");
}
