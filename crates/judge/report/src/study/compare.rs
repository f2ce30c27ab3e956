//! Comparison of two or more experiments: ratios with intervals, and differing conditions.

use crate::chart::plot::{Dot, RuleKind};
use crate::chart::{Axis, Mark, Plot, Rule};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone, Value};

/// Maximum number of sides that the headline shows.
const FIGURES_MAX: usize = 4;

/// Value of a metric in one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Mean over its runs; `None`: not measured.
    pub mean: Option<f64>,
    /// 95 % interval of the mean; `None` if there are too few runs.
    pub interval: Option<(f64, f64)>,
    /// Largest minus least run, over the mean.
    pub spread_share: Option<f64>,
    /// Ratio to the first experiment; `None` for the first itself, and if it cannot be computed.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    pub ratio_interval: Option<(f64, f64)>,
}

/// A metric over all experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, with `higher is better` or `lower is better` if known.
    pub name: String,
    /// Name in CSV.
    pub key: String,
    /// Kind of numbers.
    pub unit: Unit,
    /// True if higher is better, false if lower is better, `None` if neither applies.
    pub more_is_better: Option<bool>,
    /// The experiments, in the order of [`Comparison::names`].
    pub sides: Vec<Side>,
    /// Description of the difference: significant or not.
    pub says: String,
}

/// A comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Names of the experiments. The first is the baseline.
    pub names: Vec<String>,
    /// Headline: whether the difference should decide.
    pub headline: Headline,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// Conditions that differ: name, and the value of each experiment.
    pub unlike: Vec<(String, Vec<String>)>,
    /// Remarks: accepted differences, estimates.
    pub remarks: Vec<String>,
}

impl Comparison {
    /// Returns the chart of ratios with intervals.
    pub fn plot(&self) -> Plot {
        let names: Vec<String> = self.metrics.iter().rev().map(|m| m.name.clone()).collect();
        let height = 76.0 + 30.0 * names.len() as f64;
        let axis = if self.is_wide() {
            Axis::log("ratio", Unit::Plain)
        } else {
            Axis { low: self.least(), ..Axis::linear("ratio", Unit::Plain) }
        };
        let mut plot = Plot::new(
            "ratios",
            "Ratios, with 95 % intervals",
            axis,
            Axis::names("", names),
        )
        .size(860.0, height.max(140.0))
        .says(format!(
            "Each point is a mean over {}'s. An interval that crosses the line shows no difference.",
            self.names.first().map_or("the first", String::as_str)
        ));
        for (at, name) in self.names.iter().enumerate().skip(1) {
            let dots: Vec<Dot> = (0u32..)
                .zip(self.metrics.iter().rev())
                .filter_map(|(row, metric)| {
                    let side = metric.sides.get(at)?;
                    // Several experiments in one row are offset slightly.
                    let apart = (at as f64 - self.names.len() as f64 / 2.0) * 0.18;
                    let y = f64::from(row) - apart;
                    Some(Dot { x: side.ratio?, y, x_range: side.ratio_interval, ..Dot::default() })
                })
                .collect();
            let (name, colour) = (name.clone(), (at - 1) as u8);
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: false });
        }
        plot.rule(Rule { level: false, at: 1.0, label: "same".to_owned(), kind: RuleKind::Note })
    }

    /// Returns true if ratios need a logarithmic scale, on which 1/3 and 3 are equally far from 1.
    fn is_wide(&self) -> bool {
        let ratios = self.metrics.iter().flat_map(|m| &m.sides).filter_map(|side| side.ratio);
        ratios.filter(|ratio| *ratio > 0.0).any(|ratio| !(0.25..=4.0).contains(&ratio))
    }

    /// Returns the lower end of the axis, a little below the smallest ratio and 1.
    fn least(&self) -> Option<f64> {
        let ends = self
            .metrics
            .iter()
            .flat_map(|m| &m.sides)
            .flat_map(|side| [side.ratio, side.ratio_interval.map(|interval| interval.0)]);
        let least = ends.flatten().filter(|x| x.is_finite()).fold(1.0, f64::min);
        Some(((least - 0.05) * 20.0).floor() / 20.0)
    }

    /// Returns the text that all metrics share, to show it once below the table.
    fn common_text(&self) -> Option<&str> {
        let (first, more) = self.metrics.split_first()?;
        let alike = !more.is_empty() && more.iter().all(|metric| metric.says == first.says);
        alike.then_some(first.says.as_str())
    }

    /// Returns the table: two sides as columns, more sides as rows.
    pub fn table(&self) -> Table {
        if let Some(says) = self.common_text() {
            let apart = |metric: &Metric| Metric { says: String::new(), ..metric.clone() };
            let metrics = self.metrics.iter().map(apart).collect();
            let mut table = Self { metrics, ..self.clone() }.wide_table();
            table.note = format!("every difference: {says}");
            return table;
        }
        self.wide_table()
    }

    fn wide_table(&self) -> Table {
        if self.names.len() > 2 {
            return self.long_table();
        }
        let mut columns = vec![Column::words("metric", "metric")];
        for (at, name) in self.names.iter().enumerate() {
            let key = |what: &str| format!("{}_{what}", letter(at));
            columns.push(Column::numbers("mean", &key("mean")).under(name));
            columns.push(Column::numbers("95 % interval", &key("interval")).under(name).rank(2));
            columns.push(Column::numbers("spread", &key("spread_share")).under(name).rank(1));
            if at > 0 {
                columns.push(Column::numbers("ratio", &key("ratio")).under(name));
                columns
                    .push(Column::numbers("95 % of the ratio", &key("ratio_interval")).under(name));
            }
        }
        columns.push(Column::remarks("difference", "says"));
        let mut table = Table::new("", columns);
        table.rows = self.metrics.iter().map(|metric| self.row(metric)).collect();
        table
    }

    /// Returns the table with a row per metric and side.
    fn long_table(&self) -> Table {
        let over = format!("over {}", self.names.first().map_or("the first", String::as_str));
        let columns = vec![
            Column::words("metric", "metric"),
            Column::words("side", "side"),
            Column::numbers("mean", "mean"),
            Column::numbers("95 % interval", "interval").rank(2),
            Column::numbers("spread", "spread_share").rank(1),
            Column::numbers("ratio", "ratio").under(&over),
            Column::numbers("95 %", "ratio_interval").under(&over),
            Column::remarks("difference", "says"),
        ];
        let mut table = Table::new("", columns);
        for metric in &self.metrics {
            for (at, (name, side)) in self.names.iter().zip(&metric.sides).enumerate() {
                let says = if at + 1 == self.names.len() { metric.says.as_str() } else { "" };
                table.rows.push(vec![
                    Cell::text(metric.name.clone()),
                    Cell::text(name.clone()),
                    Cell::maybe(metric.unit, side.mean).tone(Tone::Strong),
                    interval(metric.unit, side.interval),
                    Cell::maybe(Unit::Share, side.spread_share),
                    Cell::maybe(Unit::Plain, side.ratio).tone(tone(metric, side)),
                    interval(Unit::Plain, side.ratio_interval),
                    Cell::text(says),
                ]);
            }
        }
        table
    }

    fn row(&self, metric: &Metric) -> Vec<Cell> {
        let mut cells = vec![Cell::text(metric.name.clone())];
        let nothing = Side::default();
        for at in 0..self.names.len() {
            let side = metric.sides.get(at).unwrap_or(&nothing);
            cells.push(Cell::maybe(metric.unit, side.mean).tone(Tone::Strong));
            cells.push(interval(metric.unit, side.interval));
            cells.push(Cell::maybe(Unit::Share, side.spread_share));
            if at > 0 {
                cells.push(Cell::maybe(Unit::Plain, side.ratio).tone(tone(metric, side)));
                cells.push(interval(Unit::Plain, side.ratio_interval));
            }
        }
        cells.push(Cell::text(metric.says.clone()));
        cells
    }

    /// Returns the first metric of each side for the headline, and the ratio of two sides.
    fn figures(&self) -> Vec<Fact> {
        let Some(metric) = self.metrics.first().filter(|_| self.names.len() <= FIGURES_MAX) else {
            return Vec::new();
        };
        let fact = |(name, side): (&String, &Side)| {
            let name = format!("{name}: {}", metric.name);
            Fact::new(&name, Cell::maybe(metric.unit, side.mean))
        };
        let mut figures: Vec<Fact> = self.names.iter().zip(&metric.sides).map(fact).collect();
        if let [_, Side { ratio: Some(ratio), ratio_interval, .. }] = &metric.sides[..] {
            let note = ratio_interval.map_or(String::new(), |ends| {
                format!("95 %: {}", interval(Unit::Plain, Some(ends)).show(None, Letters::Unicode))
            });
            figures.push(Fact::new("ratio", Cell::number(Unit::Plain, *ratio)).note(note));
        }
        figures
    }

    /// Returns the report of a comparison.
    pub fn document(&self) -> Document {
        let mut sections = vec![
            Section::brief("metrics", "Side by side")
                .with(Block::Chart(Box::new(self.plot())))
                .with(Block::Table(self.table())),
        ];
        let mut unlike = Table::new("", vec![Column::words("condition", "condition")]);
        for (at, name) in self.names.iter().enumerate() {
            unlike.columns.push(Column::words(name, &letter(at).to_string()));
        }
        unlike.rows = self
            .unlike
            .iter()
            .map(|(name, values)| {
                let mut cells = vec![Cell::text(name.clone()).tone(Tone::Warn)];
                cells.extend((0..self.names.len()).map(|at| {
                    values.get(at).map_or(Cell::unknown(), |value| Cell::text(value.clone()))
                }));
                cells
            })
            .collect();
        if !unlike.rows.is_empty() {
            let section = Section::brief("unlike", "Conditions that differ");
            sections.push(section.with(Block::Table(unlike)));
        }
        if !self.remarks.is_empty() {
            let list = Block::List(self.remarks.clone());
            sections.push(Section::brief("remarks", "Remarks").with(list));
        }
        let mut headline = self.headline.clone();
        headline.figures.extend(self.figures());
        Document { title: self.names.join(" and "), headline, sections, ..Document::default() }
    }
}

fn interval(unit: Unit, ends: Option<(f64, f64)>) -> Cell {
    match ends {
        Some((low, high)) => Cell { value: Value::Interval(unit, low, high), tone: Tone::Plain },
        None => Cell::not_applicable(),
    }
}

/// Returns the tone of a ratio: coloured only if its interval excludes 1 and the better direction
/// is known.
fn tone(metric: &Metric, side: &Side) -> Tone {
    match (metric.more_is_better, side.ratio_interval) {
        (Some(more), Some((low, _))) if low > 1.0 => {
            if more {
                Tone::Good
            } else {
                Tone::Bad
            }
        }
        (Some(more), Some((_, high))) if high < 1.0 => {
            if more {
                Tone::Bad
            } else {
                Tone::Good
            }
        }
        _ => Tone::Plain,
    }
}

fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}
