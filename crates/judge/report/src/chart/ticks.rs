//! Positions of tick marks.
//!
//! Linear axes: P. Heckbert, "Nice Numbers for Graph Labels", Graphics Gems (1990), with steps of
//! 2.5 in addition to 1, 2 and 5. Time axes: the divisions of a clock. Logarithmic axes: decades,
//! with marks at 2 and 5 between them if there is space, or powers of two for sizes.

/// Returns the step that divides `span` into at most `count` parts. It is 1, 2, 2.5 or 5 times a
/// power of ten.
pub fn nice_step(span: f64, count: usize) -> f64 {
    if !(span.is_finite() && span > 0.0) {
        return 1.0;
    }
    let raw = span / count.max(1) as f64;
    let power = 10f64.powi(raw.log10().floor() as i32);
    let fits = |factor: &&f64| **factor * power >= raw * (1.0 - 1e-9);
    [1.0, 2.0, 2.5, 5.0, 10.0].iter().find(fits).copied().unwrap_or(10.0) * power
}

/// Returns the marks of a linear axis: multiples of the nice step in `[low, high]`.
pub fn linear(low: f64, high: f64, count: usize) -> Vec<f64> {
    multiples(low, high, nice_step(high - low, count))
}

/// Returns `low` and `high`, extended outwards to the next marks.
pub fn loose(low: f64, high: f64, count: usize) -> (f64, f64) {
    let step = nice_step(high - low, count);
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

/// Steps between the marks of a time axis, in nanoseconds.
const CLOCK_NS: [f64; 21] = [
    1e6, 1e7, 1e8, 5e8, 1e9, 2e9, 5e9, 1e10, 1.5e10, 3e10, 6e10, 1.2e11, 3e11, 6e11, 9e11, 1.8e12,
    3.6e12, 7.2e12, 2.16e13, 4.32e13, 8.64e13,
];

/// Axes shorter than this are labelled in fractions of seconds, such as `0.5 s`; longer axes are
/// labelled as on a clock.
pub const PARTS_BELOW_NS: f64 = 3e9;

/// Returns the marks of an axis of elapsed nanoseconds.
pub fn clock(low: f64, high: f64, count: usize) -> Vec<f64> {
    let raw = (high - low) / count.max(1) as f64;
    let day = CLOCK_NS[CLOCK_NS.len() - 1];
    let step = CLOCK_NS
        .into_iter()
        // If the range is longer than a few seconds, labels have no fractions.
        .find(|step| *step >= raw && (high < PARTS_BELOW_NS || *step >= 1e9))
        .unwrap_or_else(|| nice_step((high - low) / day, count) * day);
    multiples(low, high, step)
}

/// Returns the marks of a logarithmic axis of base ten, with `true` for each mark that has a label.
pub fn decades(low: f64, high: f64, count: usize) -> Vec<(f64, bool)> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let span = (high / low).log10();
    let digits: &[(f64, bool)] = if span * 3.0 <= count as f64 {
        &[(1.0, true), (2.0, true), (5.0, true)]
    } else {
        &[(1.0, true), (2.0, false), (5.0, false)]
    };
    // If there are more decades than labels, only every second or third decade is labelled.
    let every = ((span / count.max(1) as f64).ceil() as i32).max(1);
    let mut marks = Vec::new();
    for exponent in first..=last {
        for (digit, labelled) in digits {
            let mark = digit * 10f64.powi(exponent);
            if mark >= low * (1.0 - 1e-9) && mark <= high * (1.0 + 1e-9) {
                marks.push((mark, *labelled && (exponent - first) % every == 0));
            }
        }
    }
    marks
}

/// Extends `low` and `high` of a logarithmic axis outwards to 1, 2 or 5 times a power of ten.
pub fn loose_decades(low: f64, high: f64) -> (f64, f64) {
    let around = |x: f64| {
        let power = 10f64.powi(x.log10().floor() as i32);
        [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power)
    };
    let down = around(low).into_iter().rev().find(|mark| *mark <= low * (1.0 + 1e-9));
    let up = around(high).into_iter().find(|mark| *mark >= high * (1.0 - 1e-9));
    (down.unwrap_or(low), up.unwrap_or(high))
}

/// Returns the powers of two in `[low, high]`.
pub fn powers_of_two(low: f64, high: f64) -> Vec<f64> {
    let first = (low.log2() - 1e-9).ceil() as i32;
    let last = (high.log2() + 1e-9).floor() as i32;
    (first..=last).map(|exponent| 2f64.powi(exponent)).collect()
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    // At most 1,000 marks, even for a degenerate axis.
    (first..=last.min(first.saturating_add(1_000))).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_marks_are_round() {
        assert_eq!(linear(0.0, 35.0, 5), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(linear(0.0, 1.0, 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(loose(0.3, 33.0, 5), (0.0, 40.0));
        assert_eq!(loose(0.0, 40.0, 4), (0.0, 40.0));
        assert_eq!(nice_step(0.0, 5), 1.0);
    }

    #[test]
    fn clock_marks_are_of_a_clock() {
        assert_eq!(clock(0.0, 60e9, 6), [0.0, 1e10, 2e10, 3e10, 4e10, 5e10, 6e10]);
        assert_eq!(clock(0.0, 7_200e9, 8).len(), 9);
        assert_eq!(clock(0.0, 40.0 * 86_400e9, 8).len(), 9);
    }

    #[test]
    fn logarithmic_marks_label_what_fits() {
        let marks = decades(1e5, 1e7, 8);
        assert_eq!(marks.len(), 7);
        assert!(marks.iter().all(|(_, labelled)| *labelled));
        let wide = decades(1e3, 1e10, 8);
        assert_eq!(wide.iter().filter(|(_, labelled)| *labelled).count(), 8);
        assert_eq!(loose_decades(3.1e5, 7.2e7), (2e5, 1e8));
        assert_eq!(powers_of_two(4_096.0, 131_072.0).len(), 6);
    }

    proptest::proptest! {
        #[test]
        fn no_span_panics_or_runs_away(low in -1e15f64..1e15, span in 0f64..1e15, n in 0usize..20) {
            proptest::prop_assert!(linear(low, low + span, n).len() <= 1_001);
            proptest::prop_assert!(clock(low, low + span, n).len() <= 1_001);
        }
    }
}
