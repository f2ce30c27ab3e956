//! Draws the marks inside the frame.

use std::fmt::Write as _;

use super::decimate::{Point, m4};
use super::heat;
use super::layout::{Frame, px, text_px};
use super::plot::{Dot, Mark, Plot, Series};
use crate::escape::html;

/// Draws all marks, clipped at the frame.
pub(super) fn draw(plot: &Plot, frame: &Frame, out: &mut String) {
    let _ = write!(out, "<g class=\"marks\" clip-path=\"url(#{}-clip)\">", html(&plot.id));
    for mark in &plot.marks {
        match mark {
            Mark::Line(series) => line(series, frame, false, false, out),
            Mark::Steps(series) => line(series, frame, true, false, out),
            Mark::Area(series) => line(series, frame, false, true, out),
            Mark::StepArea(series) => line(series, frame, true, true, out),
            Mark::Heat(map) => heat::draw(map, frame, out),
            Mark::Dots { .. } => {}
        }
    }
    out.push_str("</g>");
    // Points and labels may extend outside the frame.
    for mark in &plot.marks {
        if let Mark::Dots { colour, dots, joined, .. } = mark {
            draw_dots(colour % 8, dots, *joined, frame, out);
        }
    }
}

fn line(series: &Series, frame: &Frame, steps: bool, filled: bool, out: &mut String) {
    let points = on_canvas(series, frame, steps);
    let class = series.colour % 8;
    if filled {
        let area = area_path(&points, frame.bottom());
        let _ = write!(out, "<path class=\"area c{class}\" d=\"{area}\"/>");
    }
    let _ = write!(out, "<path class=\"line c{class}\" d=\"{}\"/>", line_path(&points));
}

fn on_canvas(series: &Series, frame: &Frame, steps: bool) -> Vec<Point> {
    let place = |(x, y): &(f64, Option<f64>)| y.map(|y| (frame.x_px(*x), frame.y_px(y)));
    if !steps {
        return m4(series.points.iter().map(place));
    }
    let mut stepped = Vec::with_capacity(2 * series.points.len());
    let mut level = None;
    for point in &series.points {
        // A step extends to the next point or to the start of a gap.
        if let Some(level) = level {
            stepped.push(Some((frame.x_px(point.0), level)));
        }
        let here = place(point);
        stepped.push(here);
        level = here.map(|(_, y)| y);
    }
    m4(stepped)
}

/// `M` starts a segment, `L` continues it. A segment of a single point is drawn as a dot, by its
/// round caps.
fn line_path(points: &[Point]) -> String {
    let mut out = String::with_capacity(points.len() * 11);
    let mut pen_down = false;
    for (i, point) in points.iter().enumerate() {
        let Some((x, y)) = point else {
            pen_down = false;
            continue;
        };
        let alone = !pen_down && !matches!(points.get(i + 1), Some(Some(_)));
        let _ = write!(out, "{}{} {}", if pen_down { 'L' } else { 'M' }, px(*x), px(*y));
        if alone {
            out.push_str("h0");
        }
        pen_down = true;
    }
    out
}

fn area_path(points: &[Point], bottom: f64) -> String {
    let mut out = String::new();
    for segment in points.split(Option::is_none) {
        let segment: Vec<(f64, f64)> = segment.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (segment.first(), segment.last()) else { continue };
        let _ = write!(out, "M{} {}", px(first.0), px(bottom));
        for (x, y) in &segment {
            let _ = write!(out, "L{} {}", px(*x), px(*y));
        }
        let _ = write!(out, "L{} {}Z", px(last.0), px(bottom));
    }
    out
}

fn draw_dots(colour: u8, dots: &[Dot], joined: bool, frame: &Frame, out: &mut String) {
    let at = |dot: &Dot| (frame.x_px(dot.x), frame.y_px(dot.y));
    let drawn = |dot: &&Dot| dot.x.is_finite() && dot.y.is_finite();
    let finite = |ends: &(f64, f64)| ends.0.is_finite() && ends.1.is_finite();
    if joined {
        let points: Vec<Point> = dots.iter().filter(drawn).map(|dot| Some(at(dot))).collect();
        let _ = write!(out, "<path class=\"line c{colour}\" d=\"{}\"/>", line_path(&points));
    }
    let _ = write!(out, "<g class=\"dots c{colour}\">");
    for dot in dots.iter().filter(drawn) {
        let (x, y) = at(dot);
        if let Some((low, high)) = dot.x_range.filter(finite) {
            let (low, high) = (px(frame.x_px(low)), px(frame.x_px(high)));
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{low} {0}H{high}M{low} {1}v8M{high} {1}v8\"/>",
                px(y),
                px(y - 4.0)
            );
        }
        if let Some((low, high)) = dot.y_range.filter(finite) {
            let (low, high) = (px(frame.y_px(low)), px(frame.y_px(high)));
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{0} {low}V{high}M{1} {low}h8M{1} {high}h8\"/>",
                px(x),
                px(x - 4.0)
            );
        }
        shape(colour, x, y, out);
        if !dot.label.is_empty() {
            let end = x + 10.0 + text_px(&dot.label) > frame.right();
            let (class, x) = if end { (" class=\"end\"", x - 8.0) } else { ("", x + 8.0) };
            let _ = write!(
                out,
                "<text{class} x=\"{}\" y=\"{}\">{}</text>",
                px(x),
                px(y - 7.0),
                html(&dot.label)
            );
        }
    }
    out.push_str("</g>");
}

/// Each colour has its own shape, for colour-blind readers and for print.
fn shape(colour: u8, x: f64, y: f64, out: &mut String) {
    let (x0, y0) = (px(x), px(y));
    let _ = match colour % 4 {
        0 => write!(out, "<circle cx=\"{x0}\" cy=\"{y0}\" r=\"4\"/>"),
        1 => write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"7\" height=\"7\"/>",
            px(x - 3.5),
            px(y - 3.5)
        ),
        2 => write!(out, "<path d=\"M{x0} {}l4.6 8h-9.2z\"/>", px(y - 5.0)),
        _ => write!(out, "<path d=\"M{x0} {}l4.8 4.8-4.8 4.8-4.8-4.8z\"/>", px(y - 4.8)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_break_the_line_and_a_lone_point_is_a_dot() {
        let points = [Some((0.0, 1.0)), Some((1.0, 2.0)), None, Some((3.0, 4.0)), None];
        assert_eq!(line_path(&points), "M0 1L1 2M3 4h0");
        assert_eq!(area_path(&points[..2], 9.0), "M0 9L0 1L1 2L1 9Z");
    }
}
