//! Layout of a chart: the frame, and everything around it (axes, grid, legend, bands and rules).

use std::fmt::Write as _;

use super::axis::FittedAxis;
use super::plot::{Band, Mark, Plot, Rule, RuleKind};
use crate::escape::html;

/// Height of a line of text.
const LINE_PX: f64 = 15.0;

/// Estimates the width of a text at the style sheet's size (11.5 px) in a common sans serif font.
/// Digits and lower-case letters are a little wider than half of their height.
pub(super) fn text_px(text: &str) -> f64 {
    text.chars()
        .map(|c| if matches!(c, 'i' | 'l' | '.' | ',' | ':' | ' ') { 3.9 } else { 6.9 })
        .sum()
}

/// Formats a coordinate with at most one decimal.
pub(super) fn px(value: f64) -> String {
    let text = format!("{:.1}", value);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The frame with its fitted axes.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: FittedAxis,
    pub y: FittedAxis,
    /// To save width, the name of each row is inside the frame, above the row.
    names_above: bool,
    legend_rows: Vec<Vec<(String, u8)>>,
}

impl Frame {
    pub fn new(plot: &Plot) -> Self {
        let (xs, mut ys) = plot.extent();
        if plot.y.high.is_none() && plot.rules.iter().any(|r| !r.level && r.kind == RuleKind::Note)
        {
            // Space for the labels at the top of vertical lines.
            ys.1 = if plot.y.is_log() { ys.1 * 1.6 } else { ys.1 * 1.14 };
        }
        let legend_rows = legend_rows(plot);
        let top = 10.0 + LINE_PX * legend_rows.len().max(1) as f64;
        let bottom = 40.0;
        let height = (plot.height_px - top - bottom).max(20.0);
        let y = plot.y.fit(ys, height, if plot.y.is_log() { 26.0 } else { 38.0 });
        let widest = y.marks.iter().map(|mark| text_px(&mark.label)).fold(0.0, f64::max);
        let names_above = y.names.is_some() && widest > plot.width_px * 0.4;
        let left = if names_above { 8.0 } else { (widest + 12.0).max(34.0) };
        let width = (plot.width_px - left - 16.0).max(20.0);
        let x = plot.x.fit(xs, width, 72.0);
        Self { left, top, width, height, x, y, names_above, legend_rows }
    }

    pub fn x_px(&self, x: f64) -> f64 {
        self.left + self.x.px(x)
    }

    pub fn y_px(&self, y: f64) -> f64 {
        self.top + self.height - self.y.px(y)
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Draws grid, tick marks, labels and titles.
    pub fn axes(&self, out: &mut String) {
        let (left, right, top, bottom) = (self.left, self.right(), self.top, self.bottom());
        out.push_str("<g class=\"grid\">");
        if self.y.names.is_none() {
            for mark in &self.y.marks {
                let class = if mark.label.is_empty() { " class=\"minor\"" } else { "" };
                let y = px(self.y_px(mark.value));
                let _ = write!(out, "<path{class} d=\"M{} {y}H{}\"/>", px(left), px(right));
            }
        }
        out.push_str("</g><g class=\"ticks\">");
        let beside = self.y.marks.iter().filter(|mark| !mark.label.is_empty() && !self.names_above);
        for mark in beside {
            let (x, y) = (px(left - 6.0), px(self.y_px(mark.value) + 4.0));
            let label = html(&mark.label);
            let _ = write!(out, "<text class=\"end\" x=\"{x}\" y=\"{y}\">{label}</text>");
        }
        out.push_str("</g><g class=\"ticks xticks\">");
        let mut free_from = f64::NEG_INFINITY;
        for mark in &self.x.marks {
            let x = self.x_px(mark.value);
            if self.x.names.is_none() {
                let _ = write!(out, "<path d=\"M{} {}v4\"/>", px(x), px(bottom));
            }
            let half = text_px(&mark.label) / 2.0;
            if mark.label.is_empty() || x - half < free_from {
                continue;
            }
            free_from = x + half + 6.0;
            let y = px(bottom + 16.0);
            let _ = write!(
                out,
                "<text class=\"mid\" x=\"{}\" y=\"{y}\">{}</text>",
                px(x),
                html(&mark.label)
            );
        }
        let _ = write!(
            out,
            "</g><path class=\"axis\" d=\"M{} {}H{}\"/>",
            px(left),
            px(bottom),
            px(right)
        );
        let _ = write!(
            out,
            "<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>",
            px(4.0),
            px(top - 10.0),
            html(&self.y.title)
        );
        let _ = write!(
            out,
            "<text class=\"title end\" x=\"{}\" y=\"{}\">{}</text>",
            px(right),
            px(bottom + 33.0),
            html(&self.x.title)
        );
    }

    /// Draws the names above the rows, on top of lines that cross them.
    pub fn names(&self, out: &mut String) {
        if !self.names_above {
            return;
        }
        out.push_str("<g class=\"ticks\">");
        for mark in &self.y.marks {
            let (x, y) = (px(self.left), px(self.y_px(mark.value) - 9.0));
            // The rectangle hides a vertical line that would cross the name.
            let _ = write!(
                out,
                "<rect class=\"plate\" x=\"{x}\" y=\"{}\" width=\"{}\" height=\"14\"/>\
                 <text x=\"{x}\" y=\"{y}\">{}</text>",
                px(self.y_px(mark.value) - 20.0),
                px(text_px(&mark.label)),
                html(&mark.label)
            );
        }
        out.push_str("</g>");
    }

    /// Draws the names of the series, right-aligned above the frame.
    pub fn legend(&self, out: &mut String) {
        out.push_str("<g class=\"legend\">");
        for (row, entries) in self.legend_rows.iter().enumerate() {
            let width: f64 = entries.iter().map(|(name, _)| entry_px(name)).sum();
            let mut x = self.right() - width + 14.0;
            let y = 13.0 + LINE_PX * row as f64;
            for (name, colour) in entries {
                let _ = write!(
                    out,
                    "<path class=\"key c{colour}\" d=\"M{} {}h14\"/><text x=\"{}\" y=\"{}\">{}</text>",
                    px(x),
                    px(y - 4.0),
                    px(x + 18.0),
                    px(y),
                    html(name)
                );
                x += entry_px(name);
            }
        }
        out.push_str("</g>");
    }

    /// Draws shaded intervals. The name of an interval is hidden if the label of a horizontal line
    /// needs the space.
    pub fn bands(&self, bands: &[Band], labels: &[LevelLabel], out: &mut String) {
        out.push_str("<g class=\"bands\">");
        for band in bands.iter().filter(|band| band.from.is_finite() && band.to.is_finite()) {
            let from = self.x_px(band.from).max(self.left);
            let to = self.x_px(band.to).min(self.right());
            let class = if band.clear { "band clear" } else { "band" };
            let _ = write!(
                out,
                "<rect class=\"{class}\" data-from=\"{}\" data-to=\"{}\" x=\"{}\" y=\"{}\" \
                 width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                band.from,
                band.to,
                px(from),
                px(self.top),
                px((to - from).max(0.0)),
                px(self.height),
                html(&band.label)
            );
            let name_px = text_px(&band.label) + 8.0;
            let covered = labels.iter().any(|label| {
                label.first_px < self.top + 26.0
                    && label.left_px < from + name_px
                    && label.left_px + label.wide_px > from
            });
            // The script shows the name if there is enough space after zooming.
            let room_px = if covered { f64::from(u16::MAX) } else { name_px };
            let hidden = if room_px > to - from { " hidden=\"\"" } else { "" };
            let _ = write!(
                out,
                "<text{hidden} data-from=\"{}\" data-to=\"{}\" data-px=\"{}\" x=\"{}\" y=\"{}\">{}\
                 </text>",
                band.from,
                band.to,
                px(room_px),
                px(from + 4.0),
                px(self.top + 12.0),
                html(&band.label)
            );
        }
        out.push_str("</g>");
    }

    /// Returns true if labels of horizontal lines are placed at the left: the chart has a load
    /// line, or data is only at the right.
    fn labels_at_left(&self, rules: &[Rule], marks: &[Mark], wide_px: f64) -> bool {
        if rules.iter().any(|rule| rule.kind == RuleKind::LoadLine) {
            return true;
        }
        let (mut at_left, mut at_right) = (false, false);
        for mark in marks {
            mark.extent(|x, y| {
                let x = self.x_px(x);
                at_left |= y.is_finite() && x < self.left + wide_px;
                at_right |= y.is_finite() && x > self.right() - wide_px;
            });
        }
        at_right && !at_left
    }

    /// Places the labels of horizontal lines inside the frame so that they do not overlap.
    pub fn level_labels(&self, rules: &[Rule], marks: &[Mark]) -> Vec<LevelLabel> {
        let level = || rules.iter().filter(|rule| rule.level && rule.at.is_finite());
        let widest = level().map(|rule| text_px(&rule.label)).fold(0.0, f64::max);
        let at_left = self.labels_at_left(rules, marks, widest + 8.0);
        let mut labels: Vec<LevelLabel> = Vec::new();
        for rule in level() {
            let y = self.y_px(rule.at);
            let lines = wrap_label(&rule.label, self.width - 12.0);
            let more_px = LABEL_PX * (lines.len() as f64 - 1.0);
            let meets = |first_px: f64| {
                labels.iter().any(|other| {
                    other.last_px() > first_px - LABEL_PX
                        && other.first_px < first_px + more_px + LABEL_PX
                })
            };
            let above = y - 4.0 - more_px;
            let first_px =
                if above < self.top + 10.0 || meets(above) { y + LABEL_PX } else { above };
            let wide_px = lines.iter().map(|line| text_px(line)).fold(0.0, f64::max) + 8.0;
            let left_px = if at_left { self.left + 2.0 } else { self.right() - wide_px };
            labels.push(LevelLabel { lines, first_px, left_px, wide_px, at_left });
        }
        labels
    }

    /// Draws lines with their labels. Labels of horizontal lines are placed by
    /// [`Self::level_labels`].
    pub fn rules(&self, rules: &[Rule], labels: &[LevelLabel], out: &mut String) {
        out.push_str("<g class=\"rules\">");
        let mut labels = labels.iter();
        for rule in rules.iter().filter(|rule| rule.at.is_finite()) {
            let class = match rule.kind {
                RuleKind::Limit => "limit",
                RuleKind::Target => "target",
                RuleKind::LoadLine => "load",
                RuleKind::Note => "note",
            };
            if rule.level {
                let y = self.y_px(rule.at);
                let _ = write!(
                    out,
                    "<path class=\"{class}\" d=\"M{} {}H{}\"/>",
                    px(self.left),
                    px(y),
                    px(self.right())
                );
                if let Some(label) = labels.next() {
                    label.draw(class, out);
                }
            } else {
                let x = self.x_px(rule.at);
                let room = self.right() - x - 8.0;
                let (anchor, at) =
                    if text_px(&rule.label) < room { ("", x + 5.0) } else { (" end", x - 5.0) };
                let _ = write!(
                    out,
                    "<path class=\"{class}\" data-at=\"{}\" d=\"M{} {}V{}\"/>\
                     <text class=\"{class}{anchor}\" data-at=\"{}\" x=\"{}\" y=\"{}\">{}</text>",
                    rule.at,
                    px(x),
                    px(self.top),
                    px(self.bottom()),
                    rule.at,
                    px(at),
                    px(if rule.kind == RuleKind::LoadLine {
                        self.bottom() - 8.0
                    } else if self.names_above {
                        // The label is above the frame, because the name of the first row is at the
                        // top of the frame.
                        self.top - 2.0
                    } else {
                        self.top + 12.0
                    }),
                    html(&rule.label)
                );
            }
        }
        out.push_str("</g>");
    }
}

/// Line height of labels.
const LABEL_PX: f64 = 12.0;

/// Label of a horizontal line.
#[derive(Clone, Debug)]
pub(super) struct LevelLabel {
    lines: Vec<String>,
    /// Baseline of the first line.
    first_px: f64,
    left_px: f64,
    wide_px: f64,
    /// True if the label is at the left of the frame.
    at_left: bool,
}

impl LevelLabel {
    fn last_px(&self) -> f64 {
        self.first_px + LABEL_PX * (self.lines.len() as f64 - 1.0)
    }

    fn draw(&self, class: &str, out: &mut String) {
        let (side, at) = match self.at_left {
            true => ("", self.left_px + 4.0),
            false => (" end", self.left_px + self.wide_px - 4.0),
        };
        let mut y = self.first_px;
        for line in &self.lines {
            let wide = text_px(line) + 8.0;
            let plate = if self.at_left { self.left_px } else { at + 4.0 - wide };
            let _ = write!(
                out,
                "<rect class=\"plate\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\" rx=\"2\"/>\
                 <text class=\"{class}{side}\" x=\"{}\" y=\"{}\">{}</text>",
                px(plate),
                px(y - 10.5),
                px(wide),
                px(at),
                px(y),
                html(line)
            );
            y += LABEL_PX;
        }
    }
}

/// Breaks a label into lines between words.
fn wrap_label(label: &str, room_px: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in label.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if text_px(line) + 4.0 + text_px(word) <= room_px => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn entry_px(name: &str) -> f64 {
    18.0 + text_px(name) + 14.0
}

fn legend_rows(plot: &Plot) -> Vec<Vec<(String, u8)>> {
    let mut rows: Vec<Vec<(String, u8)>> = Vec::new();
    let mut used = f64::INFINITY;
    // The first row of the legend is on the same line as the title of the y axis.
    let room = plot.width_px - 60.0 - text_px(&plot.y.title) * 1.6;
    for (name, colour) in plot.marks.iter().filter_map(Mark::legend) {
        if used + entry_px(name) > room {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += entry_px(name);
        if let Some(row) = rows.last_mut() {
            row.push((name.to_owned(), colour));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_without_room_goes_on_in_a_second_line() {
        let label = "limit 100 ms: maximum of database reads and log writes";
        assert_eq!(wrap_label(label, 800.0), [label]);
        let lines = wrap_label(label, 250.0);
        assert!(lines.len() == 2 && lines.iter().all(|line| text_px(line) <= 250.0), "{lines:?}");
        assert_eq!(lines.join(" "), label);
        assert_eq!(wrap_label("", 10.0), [""]);
    }
}
