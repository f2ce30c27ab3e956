//! Report of a sweep over I/O size, read share and pattern: table, maps and lines.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{KeyFigure, Sweep, SweepPoint};

use crate::chart::plot::Dot;
use crate::chart::{Axis, AxisScale, HeatMap, Mark, Plot};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

/// A sweep whose points are drawn.
pub struct SweepDrawing<'a>(pub &'a Sweep);

/// Figure of a point to draw.
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
}

fn percent(value: f64) -> String {
    Unit::Plain.show_round(value, Letters::Unicode)
}

fn size(bytes: u64) -> String {
    Unit::Size.show(bytes as f64, Letters::Unicode)
}

fn sorted<T: PartialOrd + Copy>(mut values: Vec<T>) -> Vec<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.dedup_by(|a, b| a == b);
    values
}

impl<'a> SweepDrawing<'a> {
    /// Returns patterns with queue depths, in order of appearance; each has a map.
    fn groups(&self) -> Vec<(String, u32)> {
        let mut groups: Vec<(String, u32)> = Vec::new();
        for point in &self.0.points {
            let group = (point.pattern.clone(), point.queue_depth);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    fn of_group(&self, group: &(String, u32)) -> impl Iterator<Item = &'a SweepPoint> {
        self.0.points.iter().filter(|c| c.pattern == group.0 && c.queue_depth == group.1)
    }

    fn sizes(&self, group: &(String, u32)) -> Vec<u64> {
        sorted(self.of_group(group).map(|point| point.size_bytes).collect())
    }

    fn reads(&self, group: &(String, u32)) -> Vec<f64> {
        sorted(self.of_group(group).map(|point| point.read_percent).collect())
    }

    fn group_name(group: &(String, u32)) -> String {
        format!("{}, queue depth {}", group.0, group.1)
    }

    fn id(group: &(String, u32), what: &str) -> String {
        let word: String = group
            .0
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        format!("{what}-{word}-{}", group.1)
    }

    /// Returns a map: I/O size by read share, with the figure as colour and text.
    pub fn map(&self, group: &(String, u32), of: PointFigure) -> Plot {
        let (sizes, reads) = (self.sizes(group), self.reads(group));
        let edges = |count: usize| (0..=count).map(|i| i as f64 - 0.5).collect();
        let mut cells = vec![None; sizes.len() * reads.len()];
        for point in self.of_group(group) {
            let column = sizes.iter().position(|size| *size == point.size_bytes);
            let row = reads.iter().position(|share| *share == point.read_percent);
            if let (Some(column), Some(row)) = (column, row) {
                cells[row * sizes.len() + column] = of.value(point);
            }
        }
        let map = HeatMap {
            x_edges: edges(sizes.len()),
            y_edges: edges(reads.len()),
            cells,
            unit: of.unit(),
            title: of.title().to_owned(),
            log: true,
            about: None,
            values: true,
        };
        let height = 90.0 + 36.0 * reads.len() as f64;
        let reads = reads.iter().map(|share| format!("{} %", percent(*share))).collect();
        Plot::new(
            &Self::id(group, &format!("map-{}", of.key())),
            &format!("{}: {}", Self::group_name(group), of.title()),
            Axis::names("I/O size", sizes.iter().map(|bytes| size(*bytes)).collect()),
            Axis::names("reads", reads),
        )
        .mark(Mark::Heat(map))
        .size(860.0, height)
    }

    /// Returns a chart of the figure over I/O size, with a line per read share.
    pub fn lines(&self, group: &(String, u32), of: PointFigure) -> Plot {
        let x = Axis { scale: AxisScale::Log2, ..Axis::linear("I/O size", Unit::Size) };
        let y = match of {
            PointFigure::Bandwidth => Axis::linear(of.title(), of.unit()),
            PointFigure::Rate => Axis::log("operations", Unit::Rate),
            PointFigure::Latency => Axis::log(of.title(), of.unit()),
        };
        let plot = Plot::new(
            &Self::id(group, &format!("lines-{}", of.key())),
            &format!("{}: {} against size", Self::group_name(group), of.title()),
            x,
            y,
        );
        let points = self.of_group(group).collect();
        plot_lines(plot, points, of, |point| point.size_bytes as f64)
    }

    /// Returns charts of rate and latency over the queue depth, with a line per read share, for
    /// each pattern and size. Empty with a single depth.
    pub fn depth_plots(&self) -> Vec<Plot> {
        let depths = sorted(self.0.points.iter().map(|point| point.queue_depth).collect());
        if depths.len() < 2 {
            return Vec::new();
        }
        let mut loads: Vec<(&str, u64)> = Vec::new();
        for point in &self.0.points {
            let load = (point.pattern.as_str(), point.size_bytes);
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
            &format!("{pattern} {}: {} against queue depth", size(size_bytes), of.title()),
            x,
            match of {
                PointFigure::Latency => Axis::log(of.title(), of.unit()),
                _ => Axis::linear("operations", of.unit()),
            },
        )
        .size(860.0, 260.0);
        let points = self.0.points.iter();
        let alike = points.filter(|p| p.pattern == pattern && p.size_bytes == size_bytes);
        plot_lines(plot, alike.collect(), of, |point| f64::from(point.queue_depth))
    }

    /// Returns a scatter plot of bandwidth and latency, with a colour per group.
    pub fn scatter(&self) -> Plot {
        let mut plot = Plot::new(
            "sweep-scatter",
            "Bandwidth and latency, every point",
            Axis::log("bandwidth", Unit::Bandwidth),
            Axis::log("average latency", Unit::Latency),
        )
        .size(860.0, 300.0);
        for (colour, group) in (0u8..).zip(self.groups()) {
            let dots: Vec<Dot> = self
                .of_group(&group)
                .filter_map(|point| {
                    let (x, y) = (point.bandwidth_bytes_per_s?, PointFigure::Latency.value(point)?);
                    Some(Dot { x, y, ..Dot::default() })
                })
                .collect();
            let name = Self::group_name(&group);
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
                Column::numbers("bandwidth", "bandwidth_bytes_per_s"),
                Column::of(Unit::Rate, "operations per second", "rate_per_s"),
                Column::numbers("95 % interval", "rate_per_s_interval").rank(5),
                Column::numbers("average latency", "latency_ns_avg"),
                Column::of(Unit::Rate, "reads per second", "read_rate_per_s").rank(3),
                Column::of(Unit::Rate, "writes per second", "write_rate_per_s").rank(3),
                Column::of(Unit::Rate, "metadata per second", "metadata_rate_per_s").rank(3),
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

    /// Returns the table without columns that no point uses.
    fn shown_table(&self) -> Table {
        let mut table = self.table();
        let did = |point: &SweepPoint| point.metadata_rate_per_s.is_some_and(|rate| rate > 0.0);
        let at = table.columns.iter().position(|column| column.key == "metadata_rate_per_s");
        if let Some(at) = at.filter(|_| !self.0.points.iter().any(did)) {
            table.columns.remove(at);
            table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        table
    }

    /// Returns the report of a sweep.
    pub fn document(&self) -> Document {
        let measured = self.0.points.iter().filter(|point| point.rate_per_s.is_some()).count();
        let reason = format!("{measured} of {} points have figures.", self.0.points.len());
        let mut sections = Vec::new();
        let facts: Vec<Fact> = self.0.key_figures.iter().map(fact).collect();
        let (top, others): (Vec<Fact>, Vec<Fact>) =
            facts.iter().cloned().partition(|fact| fact.name.starts_with("top "));
        if !facts.is_empty() {
            // The page has the notes of the headline's figures, the terminal has not.
            let section = if others.is_empty() { Section::terminal } else { Section::brief };
            sections.push(section("remember", "Key figures").with(Block::Facts(facts)));
        }
        let mut grids = Section::terminal("grids", "Operations per second and average latency");
        let groups = self.groups();
        for plot in groups
            .iter()
            .flat_map(|g| [PointFigure::Rate, PointFigure::Latency].map(|of| self.map(g, of)))
        {
            if let Some(grid) = plot.grid() {
                grids = grids.with(Block::Table(grid));
            }
        }
        sections.push(grids);
        for group in groups {
            let id = Self::id(&group, "group");
            let mut section = Section::full(&id, &Self::group_name(&group));
            for of in [PointFigure::Rate, PointFigure::Bandwidth, PointFigure::Latency] {
                section = section.with(Block::Chart(Box::new(self.map(&group, of))));
            }
            for of in [PointFigure::Rate, PointFigure::Bandwidth, PointFigure::Latency] {
                section = section.with(Block::Chart(Box::new(self.lines(&group, of))));
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

/// Adds a line per read share to a chart of `points`.
fn plot_lines(
    mut plot: Plot,
    points: Vec<&SweepPoint>,
    of: PointFigure,
    x: impl Fn(&SweepPoint) -> f64,
) -> Plot {
    let shares = sorted(points.iter().map(|point| point.read_percent).collect());
    for (colour, share) in (0u8..).zip(shares.into_iter().rev()) {
        let alike = points.iter().filter(|point| point.read_percent == share);
        let dot = |point: &&SweepPoint| {
            let interval = point.rate_interval_per_s.filter(|_| of == PointFigure::Rate);
            let (y, y_range) = (of.value(point)?, interval.map(Into::into));
            Some(Dot { x: x(point), y, y_range, ..Dot::default() })
        };
        let mut dots: Vec<Dot> = alike.filter_map(dot).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        let name = format!("{} % reads", percent(share));
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
        Cell::text(point.pattern.clone()),
        Cell::count(u64::from(point.queue_depth)),
        Cell::number(Unit::Size, point.size_bytes as f64),
        Cell::number(Unit::Share, point.read_percent / 100.0),
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
    // The figure of the section's name is first.
    let (cell, other) =
        if kept.name.contains("bandwidth") { (bandwidth, rate) } else { (rate, bandwidth) };
    let latency = kept.latency_ns_avg.map_or(String::new(), |ns| {
        format!(", {} on average", Unit::Latency.show(ns as f64, Letters::Unicode))
    });
    let other = other.show(None, Letters::Unicode);
    // The point at which it was reached is in brackets in the name, and too long for a heading.
    let (name, point) = match kept.name.strip_suffix(')').and_then(|name| name.split_once(" (")) {
        Some((name, point)) => (name, format!("{point}: ")),
        None => (kept.name.as_str(), String::new()),
    };
    Fact::new(name, cell).note(format!("{point}{other}{latency}"))
}
