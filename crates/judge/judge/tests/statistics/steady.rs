//! Tests "until steady": the measurement must stop when the system is steady, with an interval that
//! contains the mean.

use crate::synthetic::Source;
use plimsoll_judge::stats::quantile_ranks;
use plimsoll_judge::stats::steady_state::{
    Progress, Settings, SteadyPart, SteadyStateDetector, UnsteadyReason, WriteAmounts,
};

fn settings(values_max: usize, writes: Option<WriteAmounts>) -> Settings {
    Settings { values_min: 60, relative_half_width: 0.05, values_max, writes }
}

/// Adds values from `next` until the detector decides. Returns the steady part or the reason for
/// its absence, and the number of values.
fn until(
    settings: Settings,
    mut next: impl FnMut(usize) -> (f64, u64),
) -> (Result<SteadyPart, UnsteadyReason>, usize) {
    let mut state = SteadyStateDetector::new(settings).expect("settings that can be met");
    for i in 0.. {
        let (value, written_bytes) = next(i);
        match state.push(value, written_bytes) {
            Progress::NotYet(_) => {}
            Progress::Steady(steady) => return (Ok(*steady), i + 1),
            Progress::Never(why) => return (Err(why.clone()), i + 1),
        }
    }
    unreachable!("a cap ends every measurement")
}

#[test]
fn stopping_early_does_not_make_intervals_too_narrow() {
    for (phi, noise) in [(0.0, 0.1), (0.0, 0.2), (0.5, 0.2), (0.9, 0.1)] {
        let mut source = Source::new(21);
        let (mut steady, mut covered, mut taken) = (0, 0, 0);
        for _ in 0..500 {
            let values = source.ar1(10_000, phi);
            let (result, length) = until(settings(10_000, None), |i| (1.0 + noise * values[i], 0));
            taken += length;
            if let Ok(found) = result {
                steady += 1;
                covered += u32::from(found.interval.contains(1.0));
            }
        }
        let coverage = f64::from(covered) / f64::from(steady);
        println!(
            "phi {phi} noise {noise}: steady {steady} of 500 after {} values, covered {:.1} %",
            taken / 500,
            100.0 * coverage
        );
        assert!(steady >= 490, "phi {phi}: only {steady} were found steady");
        assert!(coverage >= 0.935, "phi {phi}: {coverage}");
    }
}

/// Returns the rate of a flash device that fills up. The rate falls from 2 to 1 with a time
/// constant of 20 minutes.
fn decaying(i: usize) -> f64 {
    1.0 + libm::exp(-(i as f64) / 1_200.0)
}

#[test]
fn a_decaying_device_is_not_steady_before_its_capacity_is_written() {
    // Without the rule about written bytes, the measurement stops far too early.
    let mut source = Source::new(22);
    let (result, _) =
        until(settings(14_400, None), |i| (decaying(i) * (1.0 + 0.02 * source.normal()), 0));
    let mean = result.expect("the short rule passes at once").window.mean;
    println!("without bytes: overstated by {:.0} %", 100.0 * (mean - 1.0));
    assert!(mean > 1.7, "{mean}");
    // With the rule about written bytes, the measurement continues. At its final rate, the device
    // takes 15 to 60 minutes to write its capacity.
    for capacity_s in [900, 1_800, 3_600_u64] {
        let unit = 1_000_000.0;
        let capacity_bytes = capacity_s * 1_000_000;
        let writes = Some(WriteAmounts { capacity_bytes, conditioned_bytes: 0 });
        for seed in 0..20 {
            let mut source = Source::new(seed);
            let (result, length) = until(settings(28_800, writes), |i| {
                let rate = decaying(i) * (1.0 + 0.05 * source.normal());
                (rate, (rate * unit) as u64)
            });
            let over = result.map(|steady| steady.window.mean - 1.0);
            if seed == 0 {
                println!("capacity {capacity_s} s: {over:.3?} over, after {length} s");
            }
            let over = over.expect("steady in the end");
            assert!(over.abs() <= 0.10, "{capacity_s} s seed {seed}: {over}");
        }
    }
}

#[test]
fn the_interval_of_a_percentile_contains_it() {
    // Exponential latencies: the true quantile is -ln(1 - p).
    for (n, p) in [(60, 0.5), (1_000, 0.95), (1_800, 0.99)] {
        let mut source = Source::new(23);
        let truth = -libm::log(1.0 - p);
        let covered = (0..2_000)
            .filter(|_| {
                let mut values: Vec<f64> = (0..n).map(|_| source.exponential()).collect();
                values.sort_unstable_by(f64::total_cmp);
                let ranks = quantile_ranks(n, n as f64, p, 0.95).expect("enough beyond");
                values[ranks.low as usize - 1] <= truth && truth <= values[ranks.high as usize - 1]
            })
            .count();
        println!("p{} of {n}: covered {covered} of 2000", 100.0 * p);
        // The coverage must be near 95 %. It may be higher with few samples, because ranks are
        // integers.
        assert!((0.94..=0.985).contains(&(covered as f64 / 2_000.0)), "p {p} n {n}: {covered}");
    }
}
