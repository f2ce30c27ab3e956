//! A chart as data.

use super::axis::{Axis, AxisScale};
use crate::number::Unit;
use crate::table::{Cell, Column, Table};

/// Data of a line, with x and y in the base units of the axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend; empty if the line is not in the legend.
    pub name: String,
    /// Index of the colour, from 0. The palette has eight colours and repeats.
    pub colour: u8,
    /// Points in order of x. `None` is a gap without observations.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A point that represents a whole measurement, with its confidence intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    pub x: f64,
    pub y: f64,
    /// 95 % confidence interval of x.
    pub x_range: Option<(f64, f64)>,
    /// 95 % confidence interval of y.
    pub y_range: Option<(f64, f64)>,
    /// Label of the point; may be empty.
    pub label: String,
}

/// A grid of coloured cells.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Edges of the columns, including both outer edges. On an axis of names: −0.5, 0.5, 1.5…
    pub x_edges: Vec<f64>,
    /// Edges of the rows, from the bottom.
    pub y_edges: Vec<f64>,
    /// Values, row by row from the bottom; `None` is an empty cell.
    pub cells: Vec<Option<f64>>,
    /// Kind of values.
    pub unit: Unit,
    /// Description of the values.
    pub title: String,
    /// True for a logarithmic colour scale, for counts over several orders of magnitude.
    pub log: bool,
    /// Value that has the middle colour of the scale; 1 for ratios.
    pub about: Option<f64>,
    /// True to show each value in its cell.
    pub values: bool,
}

/// A mark in a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line through the points.
    Line(Series),
    /// A line with steps: each value is drawn until the next point.
    Steps(Series),
    /// Like [`Mark::Line`], filled down to the axis.
    Area(Series),
    /// Like [`Mark::Steps`], filled down to the axis: a histogram.
    StepArea(Series),
    /// Points with intervals and labels.
    Dots {
        /// Name in the legend.
        name: String,
        /// Index of the colour.
        colour: u8,
        /// The points.
        dots: Vec<Dot>,
        /// True to connect the points by a line.
        joined: bool,
    },
    /// Coloured cells.
    Heat(HeatMap),
}

impl Mark {
    /// Name and colour for the legend.
    pub(super) fn legend(&self) -> Option<(&str, u8)> {
        let (name, colour) = match self {
            Self::Line(s) | Self::Steps(s) | Self::Area(s) | Self::StepArea(s) => {
                (&s.name, s.colour)
            }
            Self::Dots { name, colour, .. } => (name, *colour),
            Self::Heat(_) => return None,
        };
        (!name.is_empty()).then_some((name.as_str(), colour % 8))
    }

    /// Calls `each` for every x and y that must be inside the frame.
    pub(super) fn extent(&self, mut each: impl FnMut(f64, f64)) {
        match self {
            Self::Line(s) | Self::Steps(s) | Self::Area(s) | Self::StepArea(s) => {
                s.points.iter().for_each(|(x, y)| each(*x, y.unwrap_or(f64::NAN)));
            }
            Self::Dots { dots, .. } => {
                for dot in dots {
                    let (x, y) = (dot.x_range, dot.y_range);
                    each(dot.x, dot.y);
                    each(x.map_or(dot.x, |x| x.0), y.map_or(dot.y, |y| y.0));
                    each(x.map_or(dot.x, |x| x.1), y.map_or(dot.y, |y| y.1));
                }
            }
            Self::Heat(heat) => {
                heat.x_edges.iter().for_each(|x| each(*x, f64::NAN));
                heat.y_edges.iter().for_each(|y| each(f64::NAN, *y));
            }
        }
    }
}

/// A highlighted interval of the x axis: a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Label, shown at the top if there is space.
    pub label: String,
    /// True if this is the measured phase, which is not shaded.
    pub clear: bool,
}

/// Meaning of a straight line across the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// A limit that must not be crossed.
    Limit,
    /// A required minimum.
    Target,
    LoadLine,
    Note,
}

/// A horizontal or vertical line.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// True if the line is horizontal, at a y value. False if it is vertical, at an x value.
    pub level: bool,
    /// Position.
    pub at: f64,
    pub label: String,
    /// Meaning.
    pub kind: RuleKind,
}

impl Rule {
    /// Creates a horizontal limit.
    pub fn limit(at: f64, label: impl Into<String>) -> Self {
        Self { level: true, at, label: label.into(), kind: RuleKind::Limit }
    }

    /// Creates a horizontal target.
    pub fn target(at: f64, label: impl Into<String>) -> Self {
        Self { level: true, at, label: label.into(), kind: RuleKind::Target }
    }

    /// Creates a vertical line at the load line.
    pub fn load_line(at: f64, label: impl Into<String>) -> Self {
        Self { level: false, at, label: label.into(), kind: RuleKind::LoadLine }
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Unique id on the page, of `a-z`, `0-9` and `-`.
    pub id: String,
    pub title: String,
    /// Caption, also read by screen readers.
    pub says: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Marks, drawn in order.
    pub marks: Vec<Mark>,
    /// Shaded intervals of x.
    pub bands: Vec<Band>,
    /// Horizontal and vertical lines.
    pub rules: Vec<Rule>,
    /// Width of the drawing.
    pub width_px: f64,
    /// Height of the drawing.
    pub height_px: f64,
}

impl Plot {
    /// Converts a heat map with names on both axes to a table, for output without charts.
    #[must_use]
    pub fn grid(&self) -> Option<Table> {
        let (AxisScale::Names(columns), AxisScale::Names(rows)) = (&self.x.scale, &self.y.scale)
        else {
            return None;
        };
        let map = self.marks.iter().find_map(|mark| match mark {
            Mark::Heat(map) => Some(map),
            _ => None,
        })?;
        let mut heads = vec![Column::words(&self.y.title, "row")];
        heads.extend(columns.iter().map(|name| Column::numbers(name, name)));
        let mut table = Table::new(&self.title, heads);
        for (row, name) in rows.iter().enumerate().rev() {
            let mut cells = vec![Cell::text(name.clone())];
            let value = |column| map.cells.get(row * columns.len() + column).copied().flatten();
            cells.extend((0..columns.len()).map(|at| Cell::maybe(map.unit, value(at))));
            table.rows.push(cells);
        }
        Some(table)
    }

    /// Creates an empty chart of 860 by 260 pixels.
    pub fn new(id: &str, title: &str, x: Axis, y: Axis) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            says: String::new(),
            x,
            y,
            marks: Vec::new(),
            bands: Vec::new(),
            rules: Vec::new(),
            width_px: 860.0,
            height_px: 260.0,
        }
    }

    /// Adds a mark.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds shaded intervals.
    #[must_use]
    pub fn bands(mut self, bands: Vec<Band>) -> Self {
        self.bands = bands;
        self
    }

    /// Sets the caption.
    #[must_use]
    pub fn says(mut self, says: impl Into<String>) -> Self {
        self.says = says.into();
        self
    }

    /// Sets the size of the drawing.
    #[must_use]
    pub fn size(mut self, width_px: f64, height_px: f64) -> Self {
        (self.width_px, self.height_px) = (width_px, height_px);
        self
    }

    /// Returns the range of x and y over all marks and lines.
    pub(super) fn extent(&self) -> ((f64, f64), (f64, f64)) {
        let empty = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut xs, mut ys) = (empty, empty);
        let widen = |range: &mut (f64, f64), value: f64, log: bool| {
            if value.is_finite() && (!log || value > 0.0) {
                *range = (range.0.min(value), range.1.max(value));
            }
        };
        for mark in &self.marks {
            mark.extent(|x, y| {
                widen(&mut xs, x, self.x.is_log());
                widen(&mut ys, y, self.y.is_log());
            });
        }
        for rule in &self.rules {
            let (range, axis) = if rule.level { (&mut ys, &self.y) } else { (&mut xs, &self.x) };
            widen(range, rule.at, axis.is_log());
        }
        for band in &self.bands {
            widen(&mut xs, band.from, self.x.is_log());
            widen(&mut xs, band.to, self.x.is_log());
        }
        (xs, ys)
    }
}
