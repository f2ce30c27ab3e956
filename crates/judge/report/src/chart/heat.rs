//! Heat maps: cells coloured on a scale of ten colours, with a legend.

use std::fmt::Write as _;

use super::layout::{Frame, px, text_px};
use super::plot::HeatMap;
use crate::escape::html;
use crate::number::{Letters, Unit};

/// Number of colours. The style sheet has a class for each colour.
const STEPS: usize = 10;

/// Mapping of values to colours.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    fn of(map: &HeatMap) -> Option<Self> {
        let values = || map.cells.iter().flatten().copied().filter(|v| v.is_finite());
        let counted = || values().filter(|v| !map.log || *v > 0.0);
        let low = counted().fold(f64::INFINITY, f64::min);
        let high = counted().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match map.about {
            Some(middle) if map.log => {
                let reach = (high / middle).max(middle / low);
                (middle / reach, middle * reach)
            }
            Some(middle) => {
                let reach = (high - middle).max(middle - low);
                (middle - reach, middle + reach)
            }
            None => (low, high),
        };
        (low <= high).then_some(Self { low, high, log: map.log })
    }

    fn step(&self, value: f64) -> usize {
        let share = if self.high <= self.low {
            1.0
        } else if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        ((share * STEPS as f64).floor().max(0.0) as usize).min(STEPS - 1)
    }
}

/// Draws the cells. Neighbouring cells of the same colour in a row are merged into one rectangle.
/// All rectangles of one colour are one path. A map of two hours with forty rows thus stays small.
pub(super) fn draw(map: &HeatMap, frame: &Frame, out: &mut String) {
    let Some(scale) = Scale::of(map) else { return };
    let columns = map.x_edges.len().saturating_sub(1);
    if columns == 0 {
        return;
    }
    let mut paths = vec![String::new(); STEPS];
    // If the cells show no values, they overlap a little, which hides the seams between them.
    let values = map.values && values_fit(map, columns, frame);
    let (gap, lap) = if values { (1.0, 0.0) } else { (0.0, 0.3) };
    for (row, cells) in map.cells.chunks(columns).enumerate() {
        let (Some(low), Some(high)) = (map.y_edges.get(row), map.y_edges.get(row + 1)) else {
            break;
        };
        let (top, bottom) = (frame.y_px(*high), frame.y_px(*low));
        let step_of = |i: usize| {
            let value = cells.get(i).copied().flatten()?;
            (value.is_finite() && !(map.log && value <= 0.0)).then(|| scale.step(value))
        };
        let mut i = 0;
        while i < cells.len() {
            let Some(step) = step_of(i) else {
                i += 1;
                continue;
            };
            let from = i;
            i += 1;
            while !values && i < cells.len() && step_of(i) == Some(step) {
                i += 1;
            }
            let (x0, x1) = (frame.x_px(map.x_edges[from]), frame.x_px(map.x_edges[i]));
            let _ = write!(
                paths[step],
                "M{} {}H{}V{}H{}Z",
                px(x0 + gap),
                px(top + gap - lap),
                px(x1 - gap + lap),
                px(bottom - gap),
                px(x0 + gap)
            );
        }
    }
    for (step, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path class=\"h{step}\" d=\"{path}\"/>");
    }
    if values {
        write_values(map, &scale, columns, frame, out);
    }
}

/// Returns true if every value fits into its cell. If not, a narrow drawing omits the values, and
/// the report has them in a table.
fn values_fit(map: &HeatMap, columns: usize, frame: &Frame) -> bool {
    let narrowest = map.x_edges.windows(2).map(|edges| frame.x_px(edges[1]) - frame.x_px(edges[0]));
    let room = narrowest.take(columns).fold(f64::INFINITY, f64::min) - 4.0;
    map.cells.iter().flatten().all(|value| text_px(&cell_text(map, *value)) <= room)
}

/// Formats a value for its cell. A rate is shown without unit (the legend has it), a bandwidth with
/// its full unit.
fn cell_text(map: &HeatMap, value: f64) -> String {
    let text = map.unit.show(value, Letters::Unicode);
    match map.unit {
        Unit::Rate => text.trim_end_matches("/s").to_owned(),
        _ => text,
    }
}

fn write_values(map: &HeatMap, scale: &Scale, columns: usize, frame: &Frame, out: &mut String) {
    for (index, value) in map.cells.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let edges = (
            map.x_edges.get(column),
            map.x_edges.get(column + 1),
            map.y_edges.get(row),
            map.y_edges.get(row + 1),
        );
        let (Some(x0), Some(x1), Some(y0), Some(y1)) = edges else { continue };
        let x = (frame.x_px(*x0) + frame.x_px(*x1)) / 2.0;
        let y = (frame.y_px(*y0) + frame.y_px(*y1)) / 2.0 + 4.0;
        let (class, text) = match value {
            Some(value) if value.is_finite() => {
                (format!("v{}", scale.step(*value)), cell_text(map, *value))
            }
            _ => ("none".to_owned(), "n/a".to_owned()),
        };
        let _ = write!(
            out,
            "<text class=\"mid {class}\" x=\"{}\" y=\"{}\">{}</text>",
            px(x),
            px(y),
            html(&text)
        );
    }
}

/// Draws the legend, right-aligned above the frame.
pub(super) fn legend(map: &HeatMap, frame: &Frame, out: &mut String) {
    let Some(scale) = Scale::of(map) else { return };
    let low = map.unit.show(scale.low, Letters::Unicode);
    let high = map.unit.show(scale.high, Letters::Unicode);
    let step_px = 14.0;
    let right = frame.right();
    let x_high = right - text_px(&high);
    let x0 = x_high - 6.0 - step_px * STEPS as f64;
    out.push_str("<g class=\"legend\">");
    for step in 0..STEPS {
        let _ = write!(
            out,
            "<path class=\"h{step}\" d=\"M{} 4h{step_px}v10h-{step_px}z\"/>",
            px(x0 + step_px * step as f64)
        );
    }
    // The title of the y axis is on the same line, at the left.
    let room = x0 - 6.0 - 4.0 - 1.1 * text_px(&frame.y.title) - 12.0;
    let title = match format!("{}: ", map.title) {
        title if !map.title.is_empty() && text_px(&title) + text_px(&low) <= room => title,
        _ => String::new(),
    };
    let _ = write!(
        out,
        "<text class=\"end\" x=\"{}\" y=\"13\">{}</text><text class=\"end\" x=\"{}\" y=\"13\">{}</text></g>",
        px(x0 - 6.0),
        html(&format!("{title}{low}")),
        px(right),
        html(&high)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_about_a_value_has_it_in_its_middle() {
        let map = |cells: &[f64]| HeatMap {
            x_edges: Vec::new(),
            y_edges: Vec::new(),
            cells: cells.iter().map(|value| Some(*value)).collect(),
            unit: crate::number::Unit::Plain,
            title: String::new(),
            log: true,
            about: Some(1.0),
            values: true,
        };
        let scale = Scale::of(&map(&[0.9, 4.0])).unwrap();
        assert_eq!((scale.low, scale.high), (0.25, 4.0));
        assert_eq!((scale.step(0.99), scale.step(1.01)), (STEPS / 2 - 1, STEPS / 2));
        // Even if all values are less than 1, the scale is symmetric around 1.
        let below = Scale::of(&map(&[0.5, 0.8])).unwrap();
        assert_eq!((below.low, below.high), (0.5, 2.0));
    }

    #[test]
    fn the_ends_of_the_scale_get_its_ends() {
        let scale = Scale { low: 1.0, high: 1e5, log: true };
        assert_eq!(scale.step(1.0), 0);
        assert_eq!(scale.step(1e5), STEPS - 1);
        assert_eq!(scale.step(400.0), 5);
        assert_eq!(Scale { low: 3.0, high: 3.0, log: false }.step(3.0), STEPS - 1);
    }
}
