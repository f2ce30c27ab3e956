//! An axis: quantity, range, tick marks and labels.

use super::ticks;
use crate::number::{Letters, Unit, significant};

#[derive(Clone, Debug, PartialEq)]
pub enum AxisScale {
    Linear,
    /// Logarithmic, with marks at powers of ten.
    Log,
    /// Logarithmic, with marks at powers of two.
    Log2,
    /// One position for each name. A value is the index of a name.
    Names(Vec<String>),
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the quantity, without its unit.
    pub title: String,
    /// Kind of the numbers, which determines how marks are labelled.
    pub unit: Unit,
    pub scale: AxisScale,
    /// Lower end. If `None`, the axis starts at zero or, on a logarithmic scale, at the smallest
    /// value.
    pub low: Option<f64>,
    /// Upper end. If `None`, the axis ends at the largest value.
    pub high: Option<f64>,
}

impl Axis {
    /// Creates a linear axis that begins at zero.
    pub fn linear(title: &str, unit: Unit) -> Self {
        Self { title: title.into(), unit, scale: AxisScale::Linear, low: None, high: None }
    }

    /// Creates a logarithmic axis.
    pub fn log(title: &str, unit: Unit) -> Self {
        Self { scale: AxisScale::Log, ..Self::linear(title, unit) }
    }

    pub fn names(title: &str, names: Vec<String>) -> Self {
        Self { scale: AxisScale::Names(names), ..Self::linear(title, Unit::Plain) }
    }

    /// Sets the range.
    #[must_use]
    pub fn from_to(mut self, low: f64, high: f64) -> Self {
        (self.low, self.high) = (Some(low), Some(high));
        self
    }

    /// Returns true if the axis is logarithmic and thus cannot show zero or negative values.
    pub fn is_log(&self) -> bool {
        matches!(self.scale, AxisScale::Log | AxisScale::Log2)
    }

    /// Fits the axis to its data and to a length of `length_px` pixels.
    pub(super) fn fit(&self, data: (f64, f64), length_px: f64, room_px: f64) -> FittedAxis {
        let count = (length_px / room_px).floor().max(1.0) as usize;
        let (low, high) = self.range(data, count);
        let (divisor, suffix) = match self.unit {
            // On a logarithmic axis the unit is chosen separately for each label.
            _ if self.is_log() => (1.0, ""),
            Unit::Elapsed => (1.0, ""),
            unit => unit.scale_for(high.abs().max(low.abs()), Letters::Unicode),
        };
        let mut fitted = FittedAxis {
            low,
            high,
            length_px,
            log: self.is_log(),
            names: match &self.scale {
                AxisScale::Names(names) => Some(names.len()),
                _ => None,
            },
            divisor,
            title: titled(&self.title, suffix),
            marks: Vec::new(),
        };
        fitted.marks = self.marks(&fitted, count);
        fitted
    }

    fn range(&self, data: (f64, f64), count: usize) -> (f64, f64) {
        if let AxisScale::Names(names) = &self.scale {
            return (-0.5, names.len().max(1) as f64 - 0.5);
        }
        let (least, largest) =
            if data.0.is_finite() && data.1.is_finite() { data } else { (0., 1.) };
        if self.is_log() {
            let least = if least > 0.0 { least } else { 1.0 };
            let largest = largest.max(least * 1.001);
            let (low, high) = match self.scale {
                AxisScale::Log => ticks::loose_decades(least, largest),
                // A margin of half a step at both ends keeps points off the frame.
                _ => (least / 1.3, largest * 1.3),
            };
            let high = if high <= low { low * 10.0 } else { high };
            return (self.low.unwrap_or(low), self.high.unwrap_or(high));
        }
        let low = self.low.unwrap_or(least.min(0.0));
        let high = self.high.unwrap_or(largest);
        let high = if high > low { high } else { low + 1.0 };
        let divisor = self.unit.scale_for(high.abs().max(low.abs()), Letters::Unicode).0;
        let (loose_low, loose_high) = ticks::loose(low / divisor, high / divisor, count);
        (self.low.unwrap_or(loose_low * divisor), self.high.map_or(loose_high * divisor, |_| high))
    }

    fn marks(&self, fitted: &FittedAxis, count: usize) -> Vec<TickMark> {
        let (low, high) = (fitted.low, fitted.high);
        let own_unit = |value: f64| self.unit.show_round(value, Letters::Unicode);
        match &self.scale {
            AxisScale::Names(names) => names
                .iter()
                .enumerate()
                .map(|(i, name)| TickMark::new(i as f64, name.clone()))
                .collect(),
            AxisScale::Log => ticks::decades(low, high, count)
                .into_iter()
                .map(|(value, labelled)| {
                    TickMark::new(value, if labelled { own_unit(value) } else { String::new() })
                })
                .collect(),
            AxisScale::Log2 => ticks::powers_of_two(low, high)
                .into_iter()
                .map(|value| TickMark::new(value, own_unit(value)))
                .collect(),
            AxisScale::Linear if self.unit == Unit::Elapsed => ticks::clock(low, high, count)
                .into_iter()
                .map(|value| TickMark::new(value, clock_label(value, high)))
                .collect(),
            AxisScale::Linear => {
                let divisor = fitted.divisor;
                let counted = self.unit == Unit::Count;
                let step = ticks::nice_step((high - low) / divisor, count);
                let step = if counted { step.max(1.0) } else { step };
                ticks::linear(low / divisor, high / divisor, count)
                    .into_iter()
                    // Marks of counts are whole numbers.
                    .filter(|value| {
                        !counted || divisor > 1.0 || (value - value.round()).abs() < 1e-9
                    })
                    .map(|value| TickMark::new(value * divisor, step_label(value, step)))
                    .collect()
            }
        }
    }
}

fn titled(title: &str, suffix: &str) -> String {
    match suffix {
        "" => title.to_owned(),
        "/s" => format!("{title}, per second"),
        _ => format!("{title}, {suffix}"),
    }
}

/// Formats a value with enough digits to distinguish neighbouring marks.
fn step_label(value: f64, step: f64) -> String {
    let places = (-step.log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
    // A step of 2.5 needs one more digit than its power of ten.
    let power = 10f64.powi(places as i32);
    let more = usize::from(((step * power).round() - step * power).abs() > 1e-6);
    crate::number::group_thousands(&format!("{value:.*}", places + more))
}

/// Formats elapsed time as on a clock (`0:30`, `1:00:00`). Short axes show fractions of a second
/// instead.
fn clock_label(ns: f64, high_ns: f64) -> String {
    if high_ns < ticks::PARTS_BELOW_NS {
        let shown = significant(ns / 1e9, 3);
        // Only zeroes after a decimal point are removed, because the label of the first mark is
        // `0`.
        return match shown.contains('.') {
            true => format!("{} s", shown.trim_end_matches('0').trim_end_matches('.')),
            false => format!("{shown} s"),
        };
    }
    let s = (ns / 1e9).round().max(0.0) as u64;
    if high_ns < 3.6e12 {
        format!("{}:{:02}", s / 60, s % 60)
    } else {
        format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TickMark {
    pub value: f64,
    /// Label; empty for a minor mark.
    pub label: String,
}

impl TickMark {
    fn new(value: f64, label: String) -> Self {
        Self { value, label }
    }
}

/// An axis fitted to data and pixels.
#[derive(Clone, Debug)]
pub(super) struct FittedAxis {
    pub low: f64,
    pub high: f64,
    pub length_px: f64,
    pub log: bool,
    pub names: Option<usize>,
    pub divisor: f64,
    pub title: String,
    pub marks: Vec<TickMark>,
}

impl FittedAxis {
    /// Returns the distance from the start of the axis in pixels. A value outside the range is
    /// placed at the nearer end.
    pub fn px(&self, value: f64) -> f64 {
        let share = if self.log {
            if value <= 0.0 { 0.0 } else { (value / self.low).ln() / (self.high / self.low).ln() }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Lines may extend one pixel outside the frame, where they are clipped.
        share.clamp(-0.01, 1.01) * self.length_px
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, data: (f64, f64)) -> Vec<String> {
        axis.fit(data, 400.0, 60.0).marks.into_iter().map(|mark| mark.label).collect()
    }

    #[test]
    fn a_latency_axis_shares_one_unit() {
        let axis = Axis::linear("latency", Unit::Latency);
        let fitted = axis.fit((1e6, 33e6), 400.0, 60.0);
        assert_eq!(fitted.title, "latency, ms");
        assert_eq!(labels(&axis, (1e6, 33e6)), ["0", "10", "20", "30", "40"]);
        assert_eq!(labels(&axis, (1e6, 2.2e6)), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
    }

    #[test]
    fn a_logarithmic_axis_names_each_unit() {
        let axis = Axis::log("latency", Unit::Latency);
        assert_eq!(
            labels(&axis, (4e5, 9e6)),
            ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms", "10 ms"]
        );
    }

    #[test]
    fn a_time_axis_reads_like_a_clock() {
        let axis = Axis::linear("time", Unit::Elapsed).from_to(0.0, 90e9);
        assert_eq!(
            labels(&axis, (0.0, 90e9)),
            ["0:00", "0:15", "0:30", "0:45", "1:00", "1:15", "1:30"]
        );
        let axis = Axis::linear("time", Unit::Elapsed).from_to(0.0, 7_200e9);
        assert_eq!(labels(&axis, (0.0, 1.0))[1], "0:30:00");
        let axis = Axis::linear("time", Unit::Elapsed).from_to(0.0, 4e9);
        assert_eq!(labels(&axis, (0.0, 1.0)), ["0:00", "0:01", "0:02", "0:03", "0:04"]);
        let axis = Axis::linear("time", Unit::Elapsed).from_to(0.0, 2e9);
        assert_eq!(labels(&axis, (0.0, 1.0)), ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]);
    }

    #[test]
    fn what_is_counted_has_no_halves() {
        let axis = Axis::linear("nodes", Unit::Count);
        assert_eq!(labels(&axis, (0.0, 3.0)), ["0", "1", "2", "3"]);
    }

    #[test]
    fn empty_and_single_valued_data_get_an_axis() {
        for axis in [Axis::linear("x", Unit::Rate), Axis::log("x", Unit::Latency)] {
            for data in [(f64::INFINITY, f64::NEG_INFINITY), (0.0, 0.0), (5.0, 5.0)] {
                let fitted = axis.fit(data, 400.0, 60.0);
                assert!(fitted.high > fitted.low);
                assert!(fitted.px(5.0).is_finite());
            }
        }
    }
}
