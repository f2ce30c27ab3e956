//! Tests how often the comparison is wrong, for equal systems and for different systems.

use crate::synthetic::Source;
use plimsoll_judge::stats::compare_at;

const COMPARISONS: u32 = 2_000;

/// Compares `a` runs with `b` runs 2,000 times. Returns the share of comparisons that report a
/// difference.
fn declared(
    seed: u64,
    (a, b): (usize, usize),
    mut run: impl FnMut(&mut Source, bool) -> f64,
) -> f64 {
    let mut source = Source::new(seed);
    let declared = (0..COMPARISONS)
        .filter(|_| {
            let a: Vec<f64> = (0..a).map(|_| run(&mut source, false)).collect();
            let b: Vec<f64> = (0..b).map(|_| run(&mut source, true)).collect();
            compare_at(&a, &b, 0.95).is_ok_and(|comparison| comparison.significant)
        })
        .count();
    declared as f64 / f64::from(COMPARISONS)
}

/// Returns the mean of a run with 60 values. The run has a random level and autocorrelated noise.
fn run_mean(source: &mut Source, between: f64, within: f64, phi: f64) -> f64 {
    let level = 1_000.0 * libm::exp(between * source.normal());
    let noise = source.ar1(60, phi);
    level * (1.0 + within * noise.iter().sum::<f64>() / 60.0)
}

#[test]
fn a_system_compared_with_itself() {
    for (what, runs, between, within, phi) in [
        ("5 + 5 runs, 1 % between", (5, 5), 0.01, 0.0, 0.0),
        ("5 + 5 runs, 20 % between", (5, 5), 0.2, 0.0, 0.0),
        ("5 + 5 runs, noise within", (5, 5), 0.01, 0.2, 0.9),
        ("10 + 10 runs", (10, 10), 0.03, 0.1, 0.5),
        ("6 + 9 runs", (6, 9), 0.03, 0.1, 0.5),
    ] {
        let share = declared(11, runs, |source, _| run_mean(source, between, within, phi));
        println!("A/A {what}: {:.2} % declared different", 100.0 * share);
        assert!((0.035..=0.065).contains(&share), "{what}: {share}");
    }
}

#[test]
fn a_true_difference_of_five_percent() {
    let share = declared(12, (5, 5), |source, second| {
        run_mean(source, 0.01, 0.0, 0.0) * if second { 1.05 } else { 1.0 }
    });
    println!("5 % difference, 1 % noise, 5 + 5 runs: found in {:.2} %", 100.0 * share);
    assert!(share >= 0.999, "{share}");
}

#[test]
fn an_interval_of_a_ratio_contains_the_ratio() {
    let mut source = Source::new(13);
    let covered = (0..COMPARISONS)
        .filter(|_| {
            let a: Vec<f64> = (0..5).map(|_| run_mean(&mut source, 0.05, 0.0, 0.0)).collect();
            let b: Vec<f64> = (0..5).map(|_| 1.3 * run_mean(&mut source, 0.02, 0.0, 0.0)).collect();
            compare_at(&a, &b, 0.95).is_ok_and(|comparison| comparison.ratio.contains(1.3))
        })
        .count();
    println!("ratio covered in {covered} of {COMPARISONS}");
    assert!((0.935..=0.965).contains(&(covered as f64 / f64::from(COMPARISONS))), "{covered}");
}

#[test]
fn three_runs_never_show_a_difference() {
    let share = declared(14, (3, 3), |source, second| {
        run_mean(source, 0.01, 0.0, 0.0) * if second { 3.0 } else { 1.0 }
    });
    assert_eq!(share, 0.0);
}
