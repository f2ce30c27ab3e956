//! Compares every statistic with SciPy's result, to 1e-9. `golden/generate.py` generated these
//! results.

use plimsoll_judge::stats::special::{beta_of_parts, binomial_cdf, normal_quantile};
use plimsoll_judge::stats::student::{t_cdf, t_quantile};
use plimsoll_judge::stats::welch::welch_t;
use plimsoll_judge::stats::{
    Moments, autocorrelation, batch_means, compare_at, quantile_ranks, repeats, snia,
    ten_batch_means,
};
use serde_json::Value;

fn golden(section: &str) -> Value {
    let text = include_str!("../golden/scipy.json");
    let mut whole: Value = serde_json::from_str(text).unwrap();
    whole[section].take()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Asserts that two values are equal. The tolerance is 1e-9, multiplied by the value if the value
/// is above 1.
fn assert_close(ours: f64, theirs: f64, what: &str) {
    let error = (ours - theirs).abs() / theirs.abs().max(1.0);
    assert!(error <= 1e-9, "{what}: {ours} is not SciPy's {theirs}");
}

fn each<'a>(section: &'a Value, part: &str) -> impl Iterator<Item = Vec<f64>> + 'a {
    let rows = if part.is_empty() { section } else { &section[part] };
    rows.as_array().unwrap().iter().map(numbers)
}

#[test]
fn students_t() {
    let golden = golden("t");
    for row in each(&golden, "cdf") {
        assert_close(t_cdf(row[0], row[1]), row[2], &format!("t cdf {row:?}"));
    }
    for row in each(&golden, "quantile") {
        assert_close(t_quantile(row[0], row[1]), row[2], &format!("t quantile {row:?}"));
    }
}

#[test]
fn special_functions() {
    let golden = golden("special");
    for row in each(&golden, "beta") {
        assert_close(
            beta_of_parts(row[0], row[1], row[2], 1.0 - row[2]),
            row[3],
            &format!("beta {row:?}"),
        );
    }
    for row in each(&golden, "binomial") {
        let ours = binomial_cdf(row[0] as u64, row[1] as u64, row[2]);
        assert_close(ours, row[3], &format!("binomial {row:?}"));
    }
    for row in each(&golden, "normal_quantile") {
        assert_close(normal_quantile(row[0]), row[1], &format!("normal {row:?}"));
    }
}

#[test]
fn moments() {
    for case in golden("moments").as_array().unwrap() {
        let moments = Moments::of(&numbers(&case["values"]));
        assert_close(moments.mean().unwrap(), number(&case["mean"]), "mean");
        assert_close(moments.variance().unwrap(), number(&case["variance"]), "variance");
    }
}

#[test]
fn autocorrelations() {
    let golden = golden("autocorrelation");
    let values = numbers(&golden["values"]);
    for (lag, theirs) in numbers(&golden["by_lag"]).into_iter().enumerate() {
        assert_close(autocorrelation(&values, lag).unwrap(), theirs, &format!("lag {lag}"));
    }
}

#[test]
fn repeated_runs() {
    for case in golden("repeats").as_array().unwrap() {
        let summary = repeats(&numbers(&case["values"])).unwrap();
        let interval = summary.interval.unwrap();
        assert_close(interval.low, number(&case["low"]), "low");
        assert_close(interval.high, number(&case["high"]), "high");
        assert_close(summary.spread.unwrap(), number(&case["spread"]), "spread");
    }
}

#[test]
fn comparisons() {
    for case in golden("welch").as_array().unwrap() {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let log = |values: &[f64]| values.iter().map(|&v| libm::log(v)).collect::<Vec<_>>();
        let welch = welch_t(&log(&a), &log(&b)).unwrap();
        assert_close(welch.t, number(&case["t"]), "t");
        let comparison = compare_at(&a, &b, 0.95).unwrap();
        assert_close(comparison.freedom, number(&case["freedom"]), "freedom");
        assert_close(comparison.p_value, number(&case["p_value"]), "p");
        assert_close(comparison.ratio.mean, number(&case["ratio"]), "ratio");
        assert_close(comparison.ratio.low, number(&case["low"]), "low");
        assert_close(comparison.ratio.high, number(&case["high"]), "high");
    }
}

#[test]
fn percentile_ranks() {
    for row in each(&golden("quantile_ranks"), "") {
        let ranks = quantile_ranks(row[0] as u64, row[0], row[1], 0.95).unwrap();
        assert_eq!((ranks.low, ranks.high), (row[2] as u64, row[3] as u64), "{row:?}");
    }
}

#[test]
fn steady_state_windows() {
    for case in golden("slopes").as_array().unwrap() {
        let rounds: [f64; 5] = numbers(&case["rounds"]).try_into().unwrap();
        let window = snia::Window::of(&rounds);
        assert_close(window.excursion, number(&case["excursion"]), "excursion");
        let rise = number(&case["slope_excursion"]);
        assert_close(window.slope_excursion, rise, "slope excursion");
        assert_eq!(window.slope_ok, rise <= 0.1);
        assert_eq!(window.excursion_ok, number(&case["excursion"]) <= 0.2);
    }
}

#[test]
fn plain_batch_means() {
    for case in golden("batches").as_array().unwrap() {
        let values = numbers(&case["values"]);
        let ours = ten_batch_means(&values).unwrap();
        for (ours, theirs) in ours.into_iter().zip(numbers(&case["means"])) {
            assert_close(ours, theirs, "batch mean");
        }
        let interval = batch_means(&values).unwrap();
        assert_close(interval.low, number(&case["low"]), "low");
        assert_close(interval.high, number(&case["high"]), "high");
    }
}
