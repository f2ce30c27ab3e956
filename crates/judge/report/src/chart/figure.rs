//! Assembles a chart: the drawing, and the data for the script.

use std::fmt::Write as _;

use super::axis::{AxisScale, FittedAxis};
use super::layout::{Frame, px};
use super::plot::{Mark, Plot, Series};
use super::{heat, marks};
use crate::escape::{html, json_in_script};
use crate::number::Unit;

/// Style sheet of charts: palettes for light pages, dark pages and print, and the classes that
/// drawings use.
pub const CSS: &str = include_str!("chart.css");

/// JavaScript of charts: shows the value at the pointer, and zooms along x. Charts are complete
/// without it.
pub const JS: &str = include_str!("chart.js");

/// Maximum number of points of one series in the script's data. Longer series are reduced to their
/// extremes, and the script shows that they were reduced.
const SCRIPT_POINTS_MAX: usize = 10_000;

/// Width of the narrow drawing for phones: 390 px minus the page's margins.
const NARROW_PX: f64 = 360.0;
/// Minimum height of the narrow drawing, so that marks do not overlap.
const NARROW_HIGH_PX: f64 = 240.0;
/// Height of the line of text above a row, which shows the row's name.
const NAME_ABOVE_PX: f64 = 16.0;

impl Plot {
    /// Returns the drawing as a stand-alone file with its style sheet.
    pub fn svg_document(&self) -> String {
        let style = format!("<style>{CSS}</style>");
        self.draw(&Frame::new(self), &style, "")
    }

    /// Returns a `<figure>` with title, caption, drawing, and the series for [`JS`].
    pub fn figure(&self) -> String {
        let frame = Frame::new(self);
        // The narrow version is drawn separately, not scaled, so that the text size does not
        // change.
        let narrow = self.narrow();
        let narrow_frame = Frame::new(&narrow);
        let mut out = String::new();
        let _ = write!(
            out,
            "<figure class=\"plot\" id=\"{}\"><figcaption>{}</figcaption>{}{}",
            html(&self.id),
            html(&self.title),
            self.draw(&frame, "", " wide"),
            narrow.draw(&narrow_frame, "", " narrow")
        );
        if !self.says.is_empty() {
            let _ = write!(out, "<p class=\"says\">{}</p>", html(&self.says));
        }
        if let Some(json) = self.script_data(&frame, &narrow_frame) {
            let _ =
                write!(out, "<script type=\"application/json\">{}</script>", json_in_script(&json));
        }
        out.push_str("</figure>\n");
        out
    }

    /// Returns the chart in the size for a narrow page.
    fn narrow(&self) -> Self {
        let names = match &self.y.scale {
            AxisScale::Names(names) => names.len() as f64,
            _ => 0.0,
        };
        let height_px = self.height_px.max(NARROW_HIGH_PX) + names * NAME_ABOVE_PX;
        Self { id: format!("{}-narrow", self.id), width_px: NARROW_PX, height_px, ..self.clone() }
    }

    fn draw(&self, frame: &Frame, style: &str, class: &str) -> String {
        let (width, height) = (px(self.width_px), px(self.height_px));
        let id = html(&self.id);
        let mut out = String::with_capacity(16_384);
        let _ = write!(
            out,
            "<svg class=\"chart{class}\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{}</title>\
             <desc id=\"{id}-desc\">{}</desc>{style}<defs><clipPath id=\"{id}-clip\">\
             <rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath></defs>",
            html(&self.title),
            html(&self.description(frame)),
            px(frame.left),
            px(frame.top - 1.0),
            px(frame.width),
            px(frame.height + 2.0),
        );
        let labels = frame.level_labels(&self.rules, &self.marks);
        frame.bands(&self.bands, &labels, &mut out);
        frame.axes(&mut out);
        marks::draw(self, frame, &mut out);
        frame.rules(&self.rules, &labels, &mut out);
        frame.names(&mut out);
        frame.legend(&mut out);
        for mark in &self.marks {
            if let Mark::Heat(map) = mark {
                heat::legend(map, frame, &mut out);
            }
        }
        out.push_str("</svg>");
        out
    }

    /// Describes axes, series and lines for screen readers.
    fn description(&self, frame: &Frame) -> String {
        let mut text = self.says.clone();
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = write!(text, "{} over {}.", frame.y.title, frame.x.title);
        for (name, _) in self.marks.iter().filter_map(Mark::legend) {
            let _ = write!(text, " Series: {name}.");
        }
        for rule in self.rules.iter().filter(|rule| !rule.label.is_empty()) {
            let _ = write!(text, " Line at {}.", rule.label);
        }
        text
    }

    /// Returns the series of a line chart as input of the script; `None` if the chart has no lines.
    fn script_data(&self, frame: &Frame, narrow: &Frame) -> Option<String> {
        let lines: Vec<(&Series, bool, bool)> = self
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Line(s) => Some((s, false, false)),
                Mark::Steps(s) => Some((s, true, false)),
                Mark::Area(s) => Some((s, false, true)),
                Mark::StepArea(s) => Some((s, true, true)),
                _ => None,
            })
            .collect();
        if lines.is_empty() || lines.len() < self.marks.len() {
            return None;
        }
        let mut out = String::from("{");
        for (name, frame) in [("frame", frame), ("narrow", narrow)] {
            let _ = write!(
                out,
                "\"{name}\":[{},{},{},{}],",
                px(frame.left),
                px(frame.top),
                px(frame.width),
                px(frame.height)
            );
        }
        axis_json("x", &frame.x, self.x.unit, &mut out);
        axis_json("y", &frame.y, self.y.unit, &mut out);
        out.push_str("\"series\":[");
        for (i, (series, steps, filled)) in lines.into_iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            series_json(series, steps, filled, &mut out);
        }
        out.push_str("]}");
        Some(out)
    }
}

fn axis_json(name: &str, axis: &FittedAxis, unit: Unit, out: &mut String) {
    let kind = match unit {
        Unit::Latency => "latency",
        Unit::Elapsed => "elapsed",
        Unit::Rate => "rate",
        Unit::Bandwidth => "bandwidth",
        Unit::Size => "size",
        Unit::Share => "share",
        Unit::Count | Unit::Plain => "plain",
    };
    let _ = write!(
        out,
        "\"{name}\":{{\"unit\":\"{kind}\",\"low\":{},\"high\":{},\"log\":{}}},",
        axis.low, axis.high, axis.log
    );
}

fn series_json(series: &Series, steps: bool, filled: bool, out: &mut String) {
    let name = serde_json::Value::String(series.name.clone());
    let every = match series.points.len() {
        few if few <= SCRIPT_POINTS_MAX => 1,
        many => 2 * many.div_ceil(SCRIPT_POINTS_MAX),
    };
    let _ = write!(
        out,
        "{{\"name\":{name},\"colour\":{},\"steps\":{steps},\"filled\":{filled},\"every\":{every},\"x\":[",
        series.colour % 8
    );
    let thinned = thin(&series.points, every);
    join(thinned.iter().map(|(x, _)| five_digits(*x)), out);
    out.push_str("],\"y\":[");
    join(thinned.iter().map(|(_, y)| y.map_or("null".to_owned(), five_digits)), out);
    out.push_str("]}");
}

/// Divides the points into groups of `every` neighbours, and keeps the smallest and the largest of
/// each group, in order. Slow seconds and stalls stay visible.
fn thin(points: &[(f64, Option<f64>)], every: usize) -> Vec<(f64, Option<f64>)> {
    if every <= 1 {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(2 * points.len() / every + 2);
    for chunk in points.chunks(every) {
        let by_y = |(_, a): &(usize, f64), (_, b): &(usize, f64)| a.total_cmp(b);
        let ys = || chunk.iter().enumerate().filter_map(|(i, (_, y))| Some((i, (*y)?)));
        match (ys().min_by(by_y), ys().max_by(by_y)) {
            (Some((least, _)), Some((largest, _))) => {
                kept.push(chunk[least.min(largest)]);
                if least != largest {
                    kept.push(chunk[least.max(largest)]);
                }
            }
            _ => kept.push(chunk[0]),
        }
    }
    kept
}

fn join(items: impl Iterator<Item = String>, out: &mut String) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&item);
    }
}

/// Formats a number with five digits, because the script shows four. JSON has no infinities.
fn five_digits(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let text = format!("{value:.4e}");
    let short = text.parse::<f64>().unwrap_or(value);
    // Large whole numbers are shorter with an exponent: 1.2e10.
    let (plain, exponent) = (format!("{short}"), format!("{short:e}"));
    if exponent.len() < plain.len() { exponent } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_the_script_are_short() {
        assert_eq!(five_digits(8_570_123.0), "8570100");
        assert_eq!(five_digits(12_000_000_000.0), "1.2e10");
        assert_eq!(five_digits(f64::NAN), "null");
    }

    #[test]
    fn thinning_keeps_peaks_and_standstills() {
        let y = |i: i32| {
            Some(f64::from(match i {
                4 => 9,
                7 => 0,
                _ => 5,
            }))
        };
        let points: Vec<_> = (0..40).map(|i| (f64::from(i), y(i))).collect();
        let kept = thin(&points, 10);
        assert!(kept.contains(&(4.0, Some(9.0))) && kept.contains(&(7.0, Some(0.0))));
        assert!(kept.len() <= 8);
    }
}
