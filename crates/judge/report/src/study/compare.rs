//! Comparison of two or more experiments: ratios with intervals, and differing conditions.

use std::collections::BTreeSet;

use plimsoll_judge::compare::{Comparison, ConditionDifference, Metric, Outcome, SideFigure};
use plimsoll_judge::metrics::{self, Figure, FigureUnit};

use crate::chart::plot::{Dot, RuleKind};
use crate::chart::{Axis, Mark, Plot, Rule};
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

/// Maximum number of sides that the headline shows.
const FIGURES_MAX: usize = 4;

/// Note below tables of means and ratios.
pub(crate) const GEOMETRIC: &str = "means are geometric means of the runs";

/// Chart and table of a comparison's figures.
pub struct ComparisonDrawing<'a>(pub &'a Comparison);

impl ComparisonDrawing<'_> {
    /// Returns the chart of the ratios with their intervals.
    pub fn plot(&self) -> Plot {
        let names: Vec<String> = self.0.metrics.iter().rev().map(|m| m.name.clone()).collect();
        let height = 76.0 + 30.0 * names.len() as f64;
        let axis = if self.is_wide() {
            Axis::log("ratio", Unit::Plain)
        } else {
            Axis { low: self.least(), ..Axis::linear("ratio", Unit::Plain) }
        };
        let mut plot = Plot::new(
            "ratios",
            "Ratios, with 95 % confidence intervals",
            axis,
            Axis::names("", names),
        )
        .size(860.0, height.max(140.0))
        .says(format!(
            "Each point is the ratio of a mean to the mean of {}. If the interval of a point \
             crosses the line at 1, the runs show no difference.",
            self.0.names.first().map_or("the first", String::as_str)
        ));
        for (at, name) in self.0.names.iter().enumerate().skip(1) {
            let dots: Vec<Dot> = (0u32..)
                .zip(self.0.metrics.iter().rev())
                .filter_map(|(row, metric)| {
                    let side = metric.sides.get(at)?;
                    // The points of several experiments in one row are drawn slightly apart.
                    let apart = (at as f64 - self.0.names.len() as f64 / 2.0) * 0.18;
                    let y = f64::from(row) - apart;
                    Some(Dot {
                        x: side.ratio?,
                        y,
                        x_range: side.ratio_interval.map(Into::into),
                        ..Dot::default()
                    })
                })
                .collect();
            let (name, colour) = (name.clone(), (at - 1) as u8);
            plot = plot.mark(Mark::Dots { name, colour, dots, joined: false });
        }
        plot.rule(Rule { level: false, at: 1.0, label: "same".to_owned(), kind: RuleKind::Note })
    }

    /// Returns true if ratios need a logarithmic scale, on which 1/3 and 3 are equally far from 1.
    fn is_wide(&self) -> bool {
        let ratios = self.0.metrics.iter().flat_map(|m| &m.sides).filter_map(|side| side.ratio);
        ratios.filter(|ratio| *ratio > 0.0).any(|ratio| !(0.25..=4.0).contains(&ratio))
    }

    /// Returns the lower end of the axis, which is a little below the smallest ratio and always
    /// below 1.
    fn least(&self) -> Option<f64> {
        let ends = self
            .0
            .metrics
            .iter()
            .flat_map(|m| &m.sides)
            .flat_map(|side| [side.ratio, side.ratio_interval.map(|[low, _]| low)]);
        let least = ends.flatten().filter(|x| x.is_finite()).fold(1.0, f64::min);
        Some(((least - 0.05) * 20.0).floor() / 20.0)
    }

    /// Returns the text of the metrics if it is the same for all of them. It is then shown once,
    /// after the table.
    fn common_text(&self) -> Option<&str> {
        let (first, more) = self.0.metrics.split_first()?;
        let alike = !more.is_empty() && more.iter().all(|metric| metric.says == first.says);
        alike.then_some(first.says.as_str())
    }

    /// Returns the table. Two sides are columns; three or more sides are rows.
    pub fn table(&self) -> Table {
        let common = self.common_text();
        let mut table = if self.0.names.len() > 2 {
            self.long_table(common.is_some())
        } else {
            self.wide_table(common.is_some())
        };
        let mut sides = self.0.metrics.iter().flat_map(|metric| &metric.sides);
        let several = sides.any(|side| side.values.len() > 1);
        let notes = [
            common.map(|says| format!("all differences: {says}")),
            several.then(|| GEOMETRIC.to_owned()),
        ];
        table.note = notes.into_iter().flatten().collect::<Vec<_>>().join("; ");
        table
    }

    /// `common` is true if every metric has the same text, which is then shown after the table.
    fn wide_table(&self, common: bool) -> Table {
        let mut columns = vec![Column::words("metric", "metric")];
        for (at, name) in self.0.names.iter().enumerate() {
            let key = |what: &str| format!("{}_{what}", letter(at));
            columns.push(Column::numbers("mean", &key("mean")).under(name));
            columns.push(Column::numbers("95 % interval", &key("interval")).under(name).rank(2));
            columns.push(Column::numbers("spread", &key("spread_share")).under(name).rank(1));
            if at > 0 {
                columns.push(Column::numbers("ratio", &key("ratio")).under(name));
                columns.push(
                    Column::numbers("95 % interval of the ratio", &key("ratio_interval"))
                        .under(name),
                );
            }
        }
        columns.push(Column::remarks("difference", "says"));
        let mut table = Table::new("", columns);
        table.rows = self.0.metrics.iter().map(|metric| self.row(metric, common)).collect();
        table
    }

    /// Returns the table with a row for each metric of each side of the comparison.
    fn long_table(&self, common: bool) -> Table {
        let over = format!("over {}", self.0.names.first().map_or("the first", String::as_str));
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
        for metric in &self.0.metrics {
            for (at, (name, side)) in self.0.names.iter().zip(&metric.sides).enumerate() {
                let last = at + 1 == self.0.names.len();
                let says = if last && !common { metric.says.as_str() } else { "" };
                table.rows.push(vec![
                    Cell::text(metric.name.clone()),
                    Cell::text(name.clone()),
                    Cell::maybe(unit(&metric.key), side.mean).tone(Tone::Strong),
                    Cell::interval(unit(&metric.key), side.interval),
                    Cell::maybe(Unit::Share, side.spread),
                    Cell::maybe(Unit::Plain, side.ratio).tone(self.tone(metric, side)),
                    Cell::interval(Unit::Plain, side.ratio_interval),
                    Cell::text(says),
                ]);
            }
        }
        table
    }

    fn row(&self, metric: &Metric, common: bool) -> Vec<Cell> {
        let unit = unit(&metric.key);
        let mut cells = vec![Cell::text(metric.name.clone())];
        for (at, side) in metric.sides.iter().enumerate() {
            cells.push(Cell::maybe(unit, side.mean).tone(Tone::Strong));
            cells.push(Cell::interval(unit, side.interval));
            cells.push(Cell::maybe(Unit::Share, side.spread));
            if at > 0 {
                cells.push(Cell::maybe(Unit::Plain, side.ratio).tone(self.tone(metric, side)));
                cells.push(Cell::interval(Unit::Plain, side.ratio_interval));
            }
        }
        cells.push(Cell::text(if common { "" } else { &metric.says }));
        cells
    }

    /// Returns the figures of the headline: the first metric of each side of the comparison and, if
    /// there are two sides, their ratio.
    pub fn figures(&self) -> Vec<Fact> {
        let Some(metric) = self.0.metrics.first().filter(|_| self.0.names.len() <= FIGURES_MAX)
        else {
            return Vec::new();
        };
        let fact = |(name, side): (&String, &SideFigure)| {
            let name = format!("{name}: {}", metric.name);
            Fact::new(&name, Cell::maybe(unit(&metric.key), side.mean))
        };
        let mut figures: Vec<Fact> = self.0.names.iter().zip(&metric.sides).map(fact).collect();
        if let [_, SideFigure { ratio: Some(ratio), ratio_interval, .. }] = &metric.sides[..] {
            let note = ratio_interval.map_or(String::new(), |ends| {
                let interval = Cell::interval(Unit::Plain, Some(ends));
                format!("95 %: {}", interval.show(None, Letters::Unicode))
            });
            figures.push(Fact::new("ratio", Cell::number(Unit::Plain, *ratio)).note(note));
        }
        figures
    }

    /// Returns the tone of a ratio. It is coloured only if the comparison of this figure is decided
    /// and its interval excludes 1.
    fn tone(&self, metric: &Metric, side: &SideFigure) -> Tone {
        let higher = match side.ratio_interval.filter(|_| is_decided(self.0, metric)) {
            Some([low, _]) if low > 1.0 => true,
            Some([_, high]) if high < 1.0 => false,
            _ => return Tone::Plain,
        };
        if higher == metric.higher_is_better { Tone::Good } else { Tone::Bad }
    }

    /// Returns the chart and the table of the figures.
    pub fn section(&self) -> Section {
        Section::brief("metrics", "Side by side")
            .with(Block::Chart(Box::new(self.plot())))
            .with(Block::Table(self.table()))
    }

    /// Returns the table of conditions that differ, with the value of each side of the comparison.
    pub fn differences(&self) -> Section {
        let mut table = Table::new("", vec![Column::words("condition", "condition")]);
        for (at, name) in self.0.names.iter().enumerate() {
            table.columns.push(Column::words(name, &letter(at).to_string()));
        }
        let row = |one: &ConditionDifference| {
            let accepted = match (one.factor, one.accepted) {
                (true, _) => " (factor under comparison)",
                (false, true) => " (accepted)",
                (false, false) => "",
            };
            let values = with_units(&one.name, &one.values);
            let mut cells = vec![Cell::text(format!("{}{accepted}", one.name)).tone(Tone::Warn)];
            cells.extend((0..self.0.names.len()).map(|at| {
                values.get(at).map_or(Cell::unknown(), |value| Cell::text(value.clone()))
            }));
            cells
        };
        table.rows = self.0.differences.iter().map(row).collect();
        Section::brief("unlike", "Conditions that differ").with(Block::Table(table))
    }
}

fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}

/// Formats the values of a condition. The end of the condition's name determines the unit:
/// `measure_ns` 600000000000 is 10 min. If different values would look equal after formatting, they
/// are not formatted.
fn with_units(name: &str, values: &[String]) -> Vec<String> {
    let unit = match Unit::of_name(name).0 {
        Unit::Plain | Unit::Share => return values.to_vec(),
        unit => unit,
    };
    let one = |value: &str| match value.parse::<f64>() {
        Ok(ns) if unit == Unit::Latency && ns >= 60e9 => Unit::Elapsed.show(ns, Letters::Unicode),
        Ok(number) => unit.show(number, Letters::Unicode),
        Err(_) => value.to_owned(),
    };
    // Several values of one side of the comparison are joined by "and".
    let all = |value: &String| value.split(" and ").map(one).collect::<Vec<_>>().join(" and ");
    let shown: Vec<String> = values.iter().map(all).collect();
    let tells = |values: &[String]| values.iter().collect::<BTreeSet<_>>().len();
    if tells(&shown) == tells(values) { shown } else { values.to_vec() }
}

/// Returns true if the difference of a figure is significant.
fn is_decided(comparison: &Comparison, metric: &Metric) -> bool {
    let decides = !matches!(
        comparison.outcome,
        Outcome::UnlikeConditions | Outcome::NotBelieved | Outcome::NotShown | Outcome::TooFewRuns
    );
    decides && metric.sides.iter().any(|side| side.significant == Some(true))
}

/// Returns the unit of the figure with this key. An estimate of a figure has the same unit as the
/// figure.
pub fn unit(key: &str) -> Unit {
    match figure(key).map(|figure| figure.unit) {
        Some(FigureUnit::PerSecond) => Unit::Rate,
        Some(FigureUnit::BytesPerSecond) => Unit::Bandwidth,
        Some(FigureUnit::Nanoseconds) => Unit::Latency,
        Some(FigureUnit::Share) => Unit::Share,
        // The key is a latency of a class over all hosts.
        None if key.contains("latency_ns_") => Unit::Latency,
        None => Unit::Plain,
    }
}

/// Returns the figure with this key, whatever its workload.
pub(crate) fn figure(key: &str) -> Option<&'static Figure> {
    let key = key.strip_suffix("_cpu_adjusted_estimate").unwrap_or(key);
    metrics::all().find(|figure| figure.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_unit_that_their_name_ends_with() {
        let shown = |name: &str, values: &[&str]| {
            with_units(name, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            shown("plan.phases.measure_ns", &["600000000000", "30000000000"]),
            ["10 min", "30.0 s"]
        );
        assert_eq!(shown("plan.size_bytes", &["4096", "null"]), ["4 KiB", "null"]);
        assert_eq!(
            shown("plan.rate_per_s", &["500", "1000 and 2000"]),
            ["500.0/s", "1,000/s and 2,000/s"]
        );
        assert_eq!(shown("kernel", &["6.1", "6.18"]), ["6.1", "6.18"]);
        let close = ["1000000000001", "1000000000002"];
        assert_eq!(shown("plan.x_ns", &close), close, "what differs must not read alike");
    }
}
