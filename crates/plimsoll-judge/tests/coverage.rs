//! Do 95 % intervals contain the truth in 95 of 100 cases? Over 2,000 series of each kind with a
//! known mean, at 60, 300 and 1,800 values; and is the end of a warm-up where it really is?

mod synthetic;

use plimsoll_judge::stats::{Refusal, batch_means, settled_from, steady_mean};
use synthetic::{Source, ar1_n_effective};

const SERIES: u32 = 2_000;
const LENGTHS: [usize; 3] = [60, 300, 1_800];

/// What became of 2,000 series.
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

    /// The demand: what is accepted covers 92.5-97.5 %, and at most 5 % are refused where there
    /// are 30 effective values. Where there are fewer than ten nearly all are refused; of a few
    /// that slip through nothing can be said but that they must be few.
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

/// Judges 2,000 series from `make`, as they are or with their warm-up cut off.
fn tally(seed: u64, truth: f64, cut: bool, mut make: impl FnMut(&mut Source) -> Vec<f64>) -> Tally {
    let mut source = Source::new(seed);
    let mut tally = Tally::default();
    for _ in 0..SERIES {
        let values = make(&mut source);
        let result =
            if cut { steady_mean(&values).map(|s| s.interval) } else { batch_means(&values) };
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
fn two_modes() {
    for n in LENGTHS {
        for upper in [0.1, 0.3, 0.5] {
            let result = tally(2, 0.0, true, |source| source.bimodal(n, upper));
            result.check(&format!("bimodal {upper}"), n, n as f64);
        }
        // Ten deviations apart, so the noise adds 1 to a variance of 25; lambda is 1 - 0.3 - 0.3.
        let n_effective = n as f64 * 26.0 / (26.0 + 2.0 * 25.0 * 0.4 / 0.6);
        let result = tally(3, 0.0, true, |source| source.switching(n, 0.3, 0.3));
        result.check("switching 0.3", n, n_effective);
    }
}

#[test]
fn a_slow_drift_beneath_noise() {
    // Lag-1 autocorrelation of 0.27, and 6.4 times fewer effective values than values.
    for n in [300, 1_800] {
        let n_effective = n as f64 / (1.0 + 2.0 * 0.3 * 0.9 / 0.1);
        let result = tally(4, 0.0, false, |source| source.drift_beneath_noise(n, 0.9, 0.3));
        let slack = if n == 300 { 29.0 } else { n_effective };
        result.check("drift beneath noise", n, slack.min(n_effective));
    }
}
