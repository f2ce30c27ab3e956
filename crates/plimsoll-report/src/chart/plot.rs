//! A chart as data.

use super::axis::{Axis, AxisScale};
use crate::number::Unit;
use crate::table::{Cell, Column, Table};

/// A line's worth of data. X and y are in the base units of their axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend; none where it is empty.
    pub name: String,
    /// Which colour of the palette, from 0; eight, then over again.
    pub colour: u8,
    /// The points in the order of x. `None` is a gap: not observed.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A point that stands for a whole measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    /// Where it stands.
    pub x: f64,
    /// Where it stands.
    pub y: f64,
    /// 95 % interval of x.
    pub x_range: Option<(f64, f64)>,
    /// 95 % interval of y.
    pub y_range: Option<(f64, f64)>,
    /// Written beside it; may be empty.
    pub label: String,
}

/// A grid of coloured cells.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Edges of the columns, one more than there are columns. On an axis of names: −0.5, 0.5, 1.5…
    pub x_edges: Vec<f64>,
    /// Edges of the rows, from the bottom.
    pub y_edges: Vec<f64>,
    /// Values, row by row from the bottom; `None` is an empty cell.
    pub cells: Vec<Option<f64>>,
    /// What the values are.
    pub unit: Unit,
    /// What the values are, in words.
    pub title: String,
    /// Colour by the logarithm: counts that span powers of ten.
    pub log: bool,
    /// The scale reaches as far below this value as above it: of ratios 1.
    pub about: Option<f64>,
    /// Write each value into its cell.
    pub values: bool,
}

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A line through the points.
    Line(Series),
    /// A line that keeps its level until the next point.
    Steps(Series),
    /// As [`Mark::Line`], filled down to the axis.
    Area(Series),
    /// As [`Mark::Steps`], filled down to the axis: a histogram.
    StepArea(Series),
    /// Bars on an x axis of names, one group for each name.
    Bars(Series),
    /// Points with intervals and labels.
    Dots {
        /// Its name in the legend.
        name: String,
        /// Which colour of the palette.
        colour: u8,
        /// The points.
        dots: Vec<Dot>,
        /// Joined by a line in their order.
        joined: bool,
    },
    /// Coloured cells.
    Heat(HeatMap),
}

impl Mark {
    /// Name and colour for the legend.
    pub(super) fn legend(&self) -> Option<(&str, u8)> {
        let (name, colour) = match self {
            Self::Line(s) | Self::Steps(s) | Self::Area(s) | Self::StepArea(s) | Self::Bars(s) => {
                (&s.name, s.colour)
            }
            Self::Dots { name, colour, .. } => (name, *colour),
            Self::Heat(_) => return None,
        };
        (!name.is_empty()).then_some((name.as_str(), colour % 8))
    }

    /// Every x and y that has to lie within the frame.
    pub(super) fn extent(&self, mut each: impl FnMut(f64, f64)) {
        match self {
            Self::Line(s) | Self::Steps(s) | Self::Area(s) | Self::StepArea(s) | Self::Bars(s) => {
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

/// An interval of the x axis that is set off: a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Written at its top where there is room.
    pub label: String,
    /// True for the one that counts: the measurement. It stays clear and the others are shaded.
    pub clear: bool,
}

/// What a line across the chart stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// A limit that must not be crossed.
    Limit,
    /// What is required at least.
    Target,
    /// The load line.
    LoadLine,
    /// Something worth marking.
    Note,
}

/// A line across the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// True: at a y, drawn level. False: at an x, drawn upright.
    pub level: bool,
    /// Where.
    pub at: f64,
    /// Written at its end.
    pub label: String,
    /// What it stands for.
    pub kind: RuleKind,
}

impl Rule {
    /// A limit of y.
    pub fn limit(at: f64, label: impl Into<String>) -> Self {
        Self { level: true, at, label: label.into(), kind: RuleKind::Limit }
    }

    /// A target of y.
    pub fn target(at: f64, label: impl Into<String>) -> Self {
        Self { level: true, at, label: label.into(), kind: RuleKind::Target }
    }

    /// The load line at an x.
    pub fn load_line(at: f64, label: impl Into<String>) -> Self {
        Self { level: false, at, label: label.into(), kind: RuleKind::LoadLine }
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Unique on its page, of `a-z`, `0-9` and `-`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// A sentence below it; also read out in its place.
    pub says: String,
    /// Along.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, the first undermost.
    pub marks: Vec<Mark>,
    /// Shaded intervals of x.
    pub bands: Vec<Band>,
    /// Lines across.
    pub rules: Vec<Rule>,
    /// Width of the drawing.
    pub width_px: f64,
    /// Height of the drawing.
    pub height_px: f64,
}

impl Plot {
    /// A map over two axes of names as a table, from the top: for where nothing is drawn.
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

    /// An empty chart, 860 by 260 pixels.
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

    /// Adds what is drawn.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// Adds a line across.
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

    /// Says what there is to see.
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

    /// Least and largest x and y of what is drawn, level and upright lines included.
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
