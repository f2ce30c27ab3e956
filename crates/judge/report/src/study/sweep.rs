//! Report of a sweep over I/O size, read share and pattern: table, maps and lines.

use crate::chart::plot::Dot;
use crate::chart::{Axis, AxisScale, HeatMap, Mark, Plot};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell as Shown, Column, Table, Tone, Value};

/// One point of the matrix. Figures are `None` if they were not measured or are unreliable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// `random`, `sequential`, `zipf`…
    pub pattern: String,
    /// Outstanding operations per client.
    pub queue_depth: u32,
    /// I/O size.
    pub size_bytes: u64,
    /// Fraction of reads among data operations, 0 to 1.
    pub read_share: f64,
    /// Operations per second, metadata included.
    pub rate_per_s: Option<f64>,
    /// 95 % interval of the rate.
    pub rate_interval: Option<(f64, f64)>,
    /// Bytes per second.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Mean latency.
    pub latency_ns_avg: Option<f64>,
    /// Read operations per second.
    pub read_rate_per_s: Option<f64>,
    /// Write operations per second.
    pub write_rate_per_s: Option<f64>,
    /// Metadata operations per second.
    pub metadata_rate_per_s: Option<f64>,
    /// Percentiles of latency: p50, p99, p99.9.
    pub latency_ns_percentiles: [Option<f64>; 3],
    /// Share of the host's CPUs.
    pub cpu_share: Option<f64>,
    /// True if the system was steady; `None` with too few intervals.
    pub steady: Option<bool>,
    /// Verdict, in capitals.
    pub verdict: String,
    /// Bundle, or the reason why there is no figure.
    pub note: String,
}

/// A sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Name of the plan.
    pub name: String,
    /// Points in order of measurement.
    pub cells: Vec<Cell>,
    /// Key figures.
    pub remember: Vec<Fact>,
    /// Conditions that every point shares.
    pub conditions: Vec<String>,
}

/// Figure of a cell to draw.
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
    fn value(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::Rate => cell.rate_per_s,
            Self::Bandwidth => cell.bandwidth_bytes_per_s,
            Self::Latency => cell.latency_ns_avg,
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

fn percent(share: f64) -> String {
    Unit::Plain.show_round(share * 100.0, Letters::Unicode)
}

fn size(bytes: u64) -> String {
    Unit::Size.show(bytes as f64, Letters::Unicode)
}

fn sorted<T: PartialOrd + Copy>(mut values: Vec<T>) -> Vec<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.dedup_by(|a, b| a == b);
    values
}

impl Sweep {
    /// Returns patterns with queue depths, in order of appearance; each has a map.
    fn groups(&self) -> Vec<(String, u32)> {
        let mut groups: Vec<(String, u32)> = Vec::new();
        for cell in &self.cells {
            let group = (cell.pattern.clone(), cell.queue_depth);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    fn of_group<'a>(&'a self, group: &'a (String, u32)) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(|c| c.pattern == group.0 && c.queue_depth == group.1)
    }

    fn sizes(&self, group: &(String, u32)) -> Vec<u64> {
        sorted(self.of_group(group).map(|cell| cell.size_bytes).collect())
    }

    fn reads(&self, group: &(String, u32)) -> Vec<f64> {
        sorted(self.of_group(group).map(|cell| cell.read_share).collect())
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
        for cell in self.of_group(group) {
            let column = sizes.iter().position(|size| *size == cell.size_bytes);
            let row = reads.iter().position(|share| *share == cell.read_share);
            if let (Some(column), Some(row)) = (column, row) {
                cells[row * sizes.len() + column] = of.value(cell);
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
        let mut plot = Plot::new(
            &Self::id(group, &format!("lines-{}", of.key())),
            &format!("{}: {} against size", Self::group_name(group), of.title()),
            x,
            y,
        );
        for (colour, share) in (0u8..).zip(self.reads(group).into_iter().rev()) {
            let mut dots: Vec<Dot> = self
                .of_group(group)
                .filter(|cell| cell.read_share == share)
                .filter_map(|cell| {
                    let y_range = cell.rate_interval.filter(|_| of == PointFigure::Rate);
                    let x = cell.size_bytes as f64;
                    Some(Dot { x, y: of.value(cell)?, y_range, ..Dot::default() })
                })
                .collect();
            dots.sort_by(|a, b| a.x.total_cmp(&b.x));
            let name = format!("{} % reads", percent(share));
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: true });
        }
        plot
    }

    /// Returns charts of rate and latency over the queue depth, with a line per read share, for
    /// each pattern and size. Empty with a single depth.
    pub fn depth_plots(&self) -> Vec<Plot> {
        let depths = sorted(self.cells.iter().map(|cell| cell.queue_depth).collect());
        if depths.len() < 2 {
            return Vec::new();
        }
        let mut loads: Vec<(&str, u64)> = Vec::new();
        for cell in &self.cells {
            let load = (cell.pattern.as_str(), cell.size_bytes);
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        let figures = [PointFigure::Rate, PointFigure::Latency];
        loads.iter().flat_map(|load| figures.map(|of| self.depth_plot(*load, of))).collect()
    }

    fn depth_plot(&self, (pattern, size_bytes): (&str, u64), of: PointFigure) -> Plot {
        let own =
            || self.cells.iter().filter(|c| c.pattern == pattern && c.size_bytes == size_bytes);
        let x = Axis { scale: AxisScale::Log2, ..Axis::linear("queue depth", Unit::Plain) };
        let mut plot = Plot::new(
            &format!("depth-{}-{pattern}-{size_bytes}", of.key()),
            &format!("{pattern} {}: {} against queue depth", size(size_bytes), of.title()),
            x,
            match of {
                PointFigure::Latency => Axis::log(of.title(), of.unit()),
                _ => Axis::linear("operations", of.unit()),
            },
        )
        .size(860.0, 260.0);
        let shares = sorted(own().map(|cell| cell.read_share).collect());
        for (colour, share) in (0u8..).zip(shares.into_iter().rev()) {
            let mut dots: Vec<Dot> = own()
                .filter(|cell| cell.read_share == share)
                .filter_map(|cell| {
                    let y_range = cell.rate_interval.filter(|_| of == PointFigure::Rate);
                    let x = f64::from(cell.queue_depth);
                    Some(Dot { x, y: of.value(cell)?, y_range, ..Dot::default() })
                })
                .collect();
            dots.sort_by(|a, b| a.x.total_cmp(&b.x));
            let name = format!("{} % reads", percent(share));
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: true });
        }
        plot
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
                .filter_map(|cell| {
                    let (x, y) = (cell.bandwidth_bytes_per_s?, cell.latency_ns_avg?);
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
        table.rows = self.cells.iter().map(row).collect();
        table
    }

    /// Returns the table without columns that no point uses.
    fn shown_table(&self) -> Table {
        let mut table = self.table();
        let did = |cell: &Cell| cell.metadata_rate_per_s.is_some_and(|rate| rate > 0.0);
        let at = table.columns.iter().position(|column| column.key == "metadata_rate_per_s");
        if let Some(at) = at.filter(|_| !self.cells.iter().any(did)) {
            table.columns.remove(at);
            table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        table
    }

    /// Returns the report of a sweep.
    pub fn document(&self) -> Document {
        let measured = self.cells.iter().filter(|cell| cell.rate_per_s.is_some()).count();
        let reason = format!("{measured} of {} points have figures.", self.cells.len());
        let mut sections = Vec::new();
        let (top, others): (Vec<Fact>, Vec<Fact>) =
            self.remember.iter().cloned().partition(|fact| fact.name.starts_with("top "));
        if !self.remember.is_empty() {
            // The page has the notes of the headline's figures, the terminal has not.
            let section = if others.is_empty() { Section::terminal } else { Section::brief };
            let facts = Block::Facts(self.remember.clone());
            sections.push(section("remember", "Key figures").with(facts));
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
        if !self.conditions.is_empty() {
            let list = Block::List(self.conditions.clone());
            sections.push(Section::full("conditions", "Conditions").with(list));
        }
        Document {
            title: self.name.clone(),
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

fn row(cell: &Cell) -> Vec<Shown> {
    let tone = match cell.verdict.as_str() {
        "PASS" | "MEASURED" => Tone::Plain,
        "INCONCLUSIVE" => Tone::Warn,
        _ => Tone::Bad,
    };
    let mut cells = vec![
        Shown::text(cell.pattern.clone()),
        Shown::count(u64::from(cell.queue_depth)),
        Shown::number(Unit::Size, cell.size_bytes as f64),
        Shown::number(Unit::Share, cell.read_share),
        Shown::maybe(Unit::Bandwidth, cell.bandwidth_bytes_per_s),
        Shown::maybe(Unit::Rate, cell.rate_per_s),
        match cell.rate_interval {
            Some((low, high)) => {
                Shown { value: Value::Interval(Unit::Rate, low, high), tone: Tone::Plain }
            }
            None => Shown::not_applicable(),
        },
        Shown::maybe(Unit::Latency, cell.latency_ns_avg),
        Shown::maybe(Unit::Rate, cell.read_rate_per_s),
        Shown::maybe(Unit::Rate, cell.write_rate_per_s),
        Shown::maybe(Unit::Rate, cell.metadata_rate_per_s),
    ];
    cells.extend(cell.latency_ns_percentiles.map(|ns| Shown::maybe(Unit::Latency, ns)));
    cells.push(Shown::observed(Unit::Share, cell.cpu_share));
    cells.push(match cell.steady {
        Some(true) => Shown::text("yes"),
        Some(false) => Shown::text("no").tone(Tone::Warn),
        None => Shown::unknown(),
    });
    cells.push(Shown::text(cell.verdict.clone()).tone(tone));
    cells.push(Shown::text(cell.note.clone()));
    cells
}
