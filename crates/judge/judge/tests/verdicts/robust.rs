//! No input causes a panic, and every accepted result is a finite number.

use plimsoll_judge::stats::omission::{Bin, corrected};
use plimsoll_judge::stats::steady_state::{Settings, SteadyStateDetector, WriteAmounts};
use plimsoll_judge::stats::{
    Interval, Refusal, batch_means, block_bootstrap, compare_at, effective_sample, little,
    quantile_ranks, repeats, segments, settled_from, snia,
};
use proptest::prelude::*;

/// Generates values that a damaged record may contain.
fn any_series() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(any::<f64>(), 0..150)
}

/// Generates values that a measurement may contain, including sequences of equal values.
fn series() -> impl Strategy<Value = Vec<f64>> {
    let piece = (prop_oneof![Just(0.0), -1e12..1e12_f64, 1e-9..1e9_f64], 0.0..1.0_f64, 1..60_usize);
    prop::collection::vec((piece, prop::collection::vec(-1.0..1.0_f64, 60)), 0..6).prop_map(
        |pieces| {
            pieces
                .into_iter()
                .flat_map(|((level, noise, length), shape)| {
                    shape.into_iter().take(length).map(move |s| level * (1.0 + noise * s))
                })
                .collect()
        },
    )
}

/// Returns the index at which the warm-up ends, and the mean of the later values.
fn steady_mean(values: &[f64]) -> Result<(usize, Interval), Refusal> {
    let start = settled_from(values)?;
    Ok((start, batch_means(&values[start..])?))
}

proptest! {
    #[test]
    fn damaged_series_never_panic(
        values in any_series(),
        other in any_series(),
        p in any::<f64>(),
    ) {
        let _ = batch_means(&values);
        let _ = steady_mean(&values);
        let _ = settled_from(&values);
        let _ = segments(&values);
        let _ = effective_sample(&values);
        let _ = repeats(&values);
        let _ = compare_at(&values, &other, 0.95);
        let _ = quantile_ranks(values.len() as u64, p, p, 0.95);
        let _ = block_bootstrap(&values, |v| v[0], p, 100, 1);
        let _ = little(p, *values.first().unwrap_or(&1.0), 1.0);
        let settings = Settings {
            values_min: 20,
            relative_half_width: 0.1,
            values_max: 100,
            writes: Some(WriteAmounts { capacity_bytes: 50, conditioned_bytes: u64::MAX - 10 }),
        };
        let mut state = SteadyStateDetector::new(settings).unwrap();
        for value in &values {
            state.push(*value, 1);
        }
    }

    #[test]
    fn what_is_not_refused_is_a_number(values in series()) {
        for result in [batch_means(&values), steady_mean(&values).map(|(_, interval)| interval)] {
            match result {
                Ok(interval) => {
                    prop_assert!(interval.mean.is_finite() && interval.half_width >= 0.0);
                    prop_assert!(interval.low <= interval.mean && interval.mean <= interval.high);
                    prop_assert!(interval.n_effective >= 10.0);
                    prop_assert!(interval.n_effective <= interval.n as f64);
                }
                Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
            }
        }
        if let Ok(start) = settled_from(&values) {
            prop_assert!(2 * start < values.len() || values.is_empty());
        }
        let parts = segments(&values);
        let total: usize = parts.iter().map(|part| part.end - part.start).sum();
        prop_assert_eq!(total, values.len());
        prop_assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_series_in_other_units_is_judged_alike(values in series(), power in -20..20_i32) {
        // Multiplication by a power of two is exact, so the results must match in every digit.
        let factor = f64::from(power).exp2();
        let scaled: Vec<f64> = values.iter().map(|v| v * factor).collect();
        match (steady_mean(&values), steady_mean(&scaled)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(one.0, other.0);
                prop_assert_eq!(one.1.mean * factor, other.1.mean);
                prop_assert_eq!(one.1.half_width * factor, other.1.half_width);
            }
            (Err(Refusal::NotFinite { .. }), _) | (_, Err(Refusal::NotFinite { .. })) => {}
            (one, other) => prop_assert_eq!(one.err(), other.err()),
        }
    }

    #[test]
    fn the_steady_state_rule_is_exact_on_whole_numbers(
        rounds in prop::array::uniform5(1..5_000_u32),
    ) {
        let window = snia::Window::of(&rounds.map(f64::from));
        let ys = rounds.map(i64::from);
        let sum: i64 = ys.iter().sum();
        let range = ys.iter().max().unwrap() - ys.iter().min().unwrap();
        // The range must be at most 20 % of the mean, which is sum / 5.
        prop_assert_eq!(window.excursion_ok, 100 * 5 * range <= 20 * sum);
        // For x = 1..5, the slope is (5 sum(xy) - sum(x) sum(y)) / 50. Four slopes must be at most
        // 10 % of the mean, which is sum / 5.
        let products: i64 = (1..).zip(ys).map(|(x, y)| x * y).sum();
        let slope_times_50 = (5 * products - 15 * sum).abs();
        prop_assert_eq!(window.slope_ok, 4 * slope_times_50 * 100 * 5 <= 10 * sum * 50);
    }

    #[test]
    fn correction_only_adds(
        counts in prop::collection::vec(0..1000_u64, 1..60),
        interval in 1..500_u64,
    ) {
        let bins: Vec<Bin> = (1..)
            .zip(&counts)
            .map(|(i, &count)| Bin { latency_ns: i * i, count })
            .collect();
        let result = corrected(&bins, interval).unwrap();
        prop_assert!(result.iter().zip(&bins).all(|(new, old)| new.count >= old.count));
        // Each measured operation represents floor(latency / interval) intended operations, but at
        // least one operation.
        let expected: u64 = bins.iter().map(|b| b.count * (b.latency_ns / interval).max(1)).sum();
        prop_assert_eq!(result.iter().map(|b| b.count).sum::<u64>(), expected);
    }
}
