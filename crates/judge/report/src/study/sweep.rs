//! Report of a sweep over I/O size, read share and pattern: table, maps and lines.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{KeyFigure, Sweep, SweepPoint};

use crate::chart::plot::Dot;
use crate::chart::{Axis, AxisScale, Mark, Plot};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

use super::shape_group::{ShapeGroup, reads, size, sorted};

/// Charts and tables of a sweep's points.
pub struct SweepDrawing<'a>(pub &'a Sweep);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFigure {
    /// Operations per second.
    Rate,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency.
    Latency,
}

impl PointFigure {
    fn value(self, point: &SweepPoint) -> Option<f64> {
        match self {
            Self::Rate => point.rate_per_s,
            Self::Bandwidth => point.bandwidth_bytes_per_s,
            Self::Latency => point.latency_ns_avg.map(|ns| ns as f64),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Rate => Unit::Rate,
            Self::Bandwidth => Unit::Bandwidth,
            Self::Latency => Unit::Latency,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Rate => "operations per second",
            Self::Bandwidth => "bandwidth",
            Self::Latency => "average latency",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Bandwidth => "bandwidth",
            Self::Latency => "latency",
        }
    }

    /// Returns a heat map of the figure over I/O size and read share.
    fn map(self, group: &ShapeGroup<'_, SweepPoint>) -> Plot {
        let part = format!("map-{}", self.key());
        let scale = (self.unit(), self.title(), None);
        group.map(&part, self.title(), scale, |point| self.value(point))
    }
}

impl SweepDrawing<'_> {
    /// Returns a chart of the figure over I/O size, with one line for each read share.
    fn lines(group: &ShapeGroup<'_, SweepPoint>, of: PointFigure) -> Plot {
        let x = Axis { scale: AxisScale::Log2, ..Axis::linear("I/O size", Unit::Size) };
        let y = match of {
            PointFigure::Bandwidth => Axis::linear(of.title(), of.unit()),
            PointFigure::Rate => Axis::log("operations", Unit::Rate),
            PointFigure::Latency => Axis::log(of.title(), of.unit()),
        };
        let plot = Plot::new(
            &group.id(&format!("lines-{}", of.key())),
            &format!("{}: {} by I/O size", group.name(), of.title()),
            x,
            y,
        );
        plot_lines(plot, &group.points, of, |point| point.shape.size_bytes as f64)
    }

    /// Returns charts of rate and latency over the queue depth for each pattern and size, with a
    /// line for each read share. Returns no charts if all points have the same queue depth.
    pub fn depth_plots(&self) -> Vec<Plot> {
        let depths = sorted(self.0.points.iter().map(|point| point.shape.queue_depth).collect());
        if depths.len() < 2 {
            return Vec::new();
        }
        let mut loads: Vec<(&str, u64)> = Vec::new();
        for point in &self.0.points {
            let load = (point.shape.pattern.as_str(), point.shape.size_bytes);
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        let figures = [PointFigure::Rate, PointFigure::Latency];
        loads.iter().flat_map(|load| figures.map(|of| self.depth_plot(*load, of))).collect()
    }

    fn depth_plot(&self, (pattern, size_bytes): (&str, u64), of: PointFigure) -> Plot {
        let x = Axis { scale: AxisScale::Log2, ..Axis::linear("queue depth", Unit::Plain) };
        let plot = Plot::new(
            &format!("depth-{}-{pattern}-{size_bytes}", of.key()),
            &format!("{pattern} {}: {} by queue depth", size(size_bytes), of.title()),
            x,
            match of {
                PointFigure::Latency => Axis::log(of.title(), of.unit()),
                _ => Axis::linear("operations", of.unit()),
            },
        )
        .size(860.0, 260.0);
        let alike =
            |p: &&SweepPoint| p.shape.pattern == pattern && p.shape.size_bytes == size_bytes;
        let points: Vec<&SweepPoint> = self.0.points.iter().filter(alike).collect();
        plot_lines(plot, &points, of, |point| f64::from(point.shape.queue_depth))
    }

    /// Returns a scatter plot of bandwidth and latency, with one colour for each group of points.
    pub fn scatter(&self) -> Plot {
        let mut plot = Plot::new(
            "sweep-scatter",
            "Bandwidth and latency of every point",
            Axis::log("bandwidth", Unit::Bandwidth),
            Axis::log("average latency", Unit::Latency),
        )
        .size(860.0, 300.0);
        for (colour, group) in (0u8..).zip(ShapeGroup::all(&self.0.points)) {
            let dots: Vec<Dot> = group
                .points
                .iter()
                .filter_map(|point| {
                    let (x, y) = (point.bandwidth_bytes_per_s?, PointFigure::Latency.value(point)?);
                    Some(Dot { x, y, ..Dot::default() })
                })
                .collect();
            let name = group.name();
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: false });
        }
        plot
    }

    /// Returns the table of points with percentiles, intervals and CPU.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "",
            vec![
                Column::words("pattern", "pattern").rank(1),
                Column::numbers("depth", "queue_depth").rank(1),
                Column::numbers("I/O size", "size_bytes"),
                Column::numbers("reads", "read_share"),
                Column::words("sync", "sync").rank(3),
                Column::numbers("bandwidth", "bandwidth_bytes_per_s"),
                Column::of(Unit::Rate, "operations per second", "rate_per_s"),
                Column::numbers("95 % interval", "rate_per_s_interval").rank(5),
                Column::numbers("average latency", "latency_ns_avg"),
                Column::of(Unit::Rate, "reads per second", "read_rate_per_s").rank(3),
                Column::of(Unit::Rate, "writes per second", "write_rate_per_s").rank(3),
                Column::of(Unit::Rate, "metadata operations per second", "metadata_rate_per_s")
                    .rank(3),
                Column::numbers("p50", "latency_ns_p50").rank(4),
                Column::numbers("p99", "latency_ns_p99"),
                Column::numbers("p99.9", "latency_ns_p999").rank(4),
                Column::numbers("CPU", "cpu_share").rank(2),
                Column::words("steady", "steady").rank(2),
                Column::words("verdict", "verdict").rank(1),
                Column::remarks("remark", "note"),
            ],
        );
        table.rows = self.0.points.iter().map(row).collect();
        table
    }

    /// Removes columns that are empty for all points.
    fn shown_table(&self) -> Table {
        let mut table = self.table();
        let has_metadata =
            |point: &SweepPoint| point.metadata_rate_per_s.is_some_and(|rate| rate > 0.0);
        let has_sync = |point: &SweepPoint| !["", "none"].contains(&point.sync.as_str());
        let points = &self.0.points;
        let unused = [
            (!points.iter().any(has_metadata), "metadata_rate_per_s"),
            (!points.iter().any(has_sync), "sync"),
        ];
        for (_, key) in unused.into_iter().filter(|(is_unused, _)| *is_unused) {
            if let Some(at) = table.columns.iter().position(|column| column.key == key) {
                table.columns.remove(at);
                table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        table
    }

    /// Returns the report of a sweep.
    pub fn document(&self) -> Document {
        let measured = self.0.points.iter().filter(|point| point.rate_per_s.is_some()).count();
        let reason = format!("{measured} of {} points were measured.", self.0.points.len());
        let mut sections = Vec::new();
        let facts: Vec<Fact> = self.0.key_figures.iter().map(fact).collect();
        let (top, others): (Vec<Fact>, Vec<Fact>) =
            facts.iter().cloned().partition(|fact| fact.name.starts_with("top "));
        if !facts.is_empty() {
            // The terminal omits the notes of the headline's figures, so it needs this section. The
            // page shows them.
            let section = if others.is_empty() { Section::terminal } else { Section::brief };
            sections.push(section("remember", "Key figures").with(Block::Facts(facts)));
        }
        let mut grids = Section::terminal("grids", "Operations per second and average latency");
        let groups = ShapeGroup::all(&self.0.points);
        for plot in groups
            .iter()
            .flat_map(|g| [PointFigure::Rate, PointFigure::Latency].map(|of| of.map(g)))
        {
            if let Some(grid) = plot.grid() {
                grids = grids.with(Block::Table(grid));
            }
        }
        sections.push(grids);
        for group in groups {
            let mut section = Section::full(&group.id("group"), &group.name());
            for of in [PointFigure::Rate, PointFigure::Bandwidth, PointFigure::Latency] {
                section = section.with(Block::Chart(Box::new(of.map(&group))));
            }
            for of in [PointFigure::Rate, PointFigure::Bandwidth, PointFigure::Latency] {
                section = section.with(Block::Chart(Box::new(Self::lines(&group, of))));
            }
            sections.push(section);
        }
        let all = Section::brief("points", "All points")
            .with(Block::Table(self.shown_table()))
            .with(Block::Chart(Box::new(self.scatter())));
        sections.push(all);
        if !self.0.conditions.is_empty() {
            let list = Block::List(self.0.conditions.clone());
            sections.push(Section::full("conditions", "Conditions").with(list));
        }
        Document {
            title: self.0.name.clone(),
            headline: Headline {
                word: "SWEEP".to_owned(),
                tone: Tone::Plain,
                reason,
                figures: top,
            },
            sections,
            ..Document::default()
        }
    }
}

/// Adds one line for each read share to a chart of `points`.
fn plot_lines(
    mut plot: Plot,
    points: &[&SweepPoint],
    of: PointFigure,
    x: impl Fn(&SweepPoint) -> f64,
) -> Plot {
    let shares = sorted(points.iter().map(|point| point.shape.read_percent).collect());
    for (colour, share) in (0u8..).zip(shares.into_iter().rev()) {
        let alike = points.iter().filter(|point| point.shape.read_percent == share);
        let dot = |point: &&SweepPoint| {
            let interval = point.rate_interval_per_s.filter(|_| of == PointFigure::Rate);
            let (y, y_range) = (of.value(point)?, interval.map(Into::into));
            Some(Dot { x: x(point), y, y_range, ..Dot::default() })
        };
        let mut dots: Vec<Dot> = alike.filter_map(dot).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        let name = format!("{} reads", reads(share));
        plot = plot.mark(Mark::Dots { name, colour, dots, joined: true });
    }
    plot
}

fn row(point: &SweepPoint) -> Vec<Cell> {
    let tone = match point.verdict {
        VerdictKind::Pass | VerdictKind::Measured => Tone::Plain,
        VerdictKind::Inconclusive => Tone::Warn,
        VerdictKind::Fail | VerdictKind::Invalid => Tone::Bad,
    };
    let latency = |ns: Option<u64>| Cell::maybe(Unit::Latency, ns.map(|ns| ns as f64));
    vec![
        Cell::text(point.shape.pattern.clone()),
        Cell::count(u64::from(point.shape.queue_depth)),
        Cell::number(Unit::Size, point.shape.size_bytes as f64),
        Cell::number(Unit::Share, point.shape.read_percent / 100.0),
        if point.sync.is_empty() { Cell::unknown() } else { Cell::text(point.sync.clone()) },
        Cell::maybe(Unit::Bandwidth, point.bandwidth_bytes_per_s),
        Cell::maybe(Unit::Rate, point.rate_per_s),
        Cell::interval(Unit::Rate, point.rate_interval_per_s),
        latency(point.latency_ns_avg),
        Cell::maybe(Unit::Rate, point.read_rate_per_s),
        Cell::maybe(Unit::Rate, point.write_rate_per_s),
        Cell::maybe(Unit::Rate, point.metadata_rate_per_s),
        latency(point.latency_ns_p50),
        latency(point.latency_ns_p99),
        latency(point.latency_ns_p999),
        Cell::observed(Unit::Share, point.cpu_share),
        match point.steady {
            Some(true) => Cell::text("yes"),
            Some(false) => Cell::text("no").tone(Tone::Warn),
            None => Cell::unknown(),
        },
        Cell::text(point.verdict.label()).tone(tone),
        Cell::text(point.note.clone()),
    ]
}

fn fact(kept: &KeyFigure) -> Fact {
    let rate = Cell::number(Unit::Rate, kept.rate_per_s);
    let bandwidth = Cell::number(Unit::Bandwidth, kept.bandwidth_bytes_per_s);
    // The figure that the key figure is named after (bandwidth or rate) is shown first.
    let (cell, other) =
        if kept.name.contains("bandwidth") { (bandwidth, rate) } else { (rate, bandwidth) };
    let latency = kept.latency_ns_avg.map_or(String::new(), |ns| {
        format!(", mean latency {}", Unit::Latency.show(ns as f64, Letters::Unicode))
    });
    let other = other.show(None, Letters::Unicode);
    // The name of a key figure ends with its point in brackets. That is too long for a heading, so
    // the point is moved to the note.
    let (name, point) = match kept.name.strip_suffix(')').and_then(|name| name.split_once(" (")) {
        Some((name, point)) => (name, format!("{point}: ")),
        None => (kept.name.as_str(), String::new()),
    };
    Fact::new(name, cell).note(format!("{point}{other}{latency}"))
}
