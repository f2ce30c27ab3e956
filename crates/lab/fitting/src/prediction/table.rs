//! A measured table. Its columns are axes, which describe a cell, and figures, which are predicted.

use std::collections::BTreeMap;

use plimsoll_evidence::cells::{Cells, Line, TableError};
use plimsoll_model::fit::Table as Measured;
use plimsoll_model::run::Pattern;
use plimsoll_runner::error::RunnerError;

/// Names of columns that are axes by default.
const AXES: [&str; 17] = [
    "io_kib",
    "size_kib",
    "block_kib",
    "size_bytes",
    "pattern",
    "read_percent",
    "read_share",
    "depth",
    "queue_depth",
    "outstanding",
    "clients",
    "threads",
    "jobs",
    "numjobs",
    "files",
    "nodes",
    "layout",
];
const FIGURE_ENDS: [&str; 5] = ["_per_s", "_ms", "_us", "_ns", "iops"];
/// Parts of the names of latency columns, such as `latency_ns_p99` and `latency_ms_p99`.
const LATENCY_PARTS: [&str; 3] = ["latency_ns_", "latency_us_", "latency_ms_"];
/// Columns of a table that was made from results of another tool.
const ROW_COLUMNS: &str =
    "io_kib,pattern,read_percent,sync,depth,ops_per_s,latency_ms,latency_ms_p99";

#[derive(Debug)]
pub struct MeasuredTable {
    pub(super) axes: Vec<Axis>,
    /// Axes that have the same value in all rows.
    constants: BTreeMap<String, String>,
    /// Position of each row on the axes.
    pub(super) points: Vec<Vec<f64>>,
    pub(super) figures: Vec<Figure>,
    /// Columns that are neither axes nor figures.
    pub(super) ignored: Vec<String>,
    /// Rows that were left out because their verdict is INVALID.
    pub(super) invalid_rows: usize,
}

/// A figure, with the rows that contain it.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) rows: Vec<usize>,
    pub(super) values: Vec<f64>,
}

/// An axis, whose positions range from 0 to 1.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    scale: Scale,
}

#[derive(Debug)]
enum Scale {
    /// Numbers, in ascending order. Percentages and shares have a linear scale. All other axes
    /// whose numbers are above 0 have a logarithmic scale.
    Numbers { sorted: Vec<f64>, is_logarithmic: bool },
    /// Words. Each word has a separate dimension.
    Words(Vec<String>),
}

/// Position of a cell on the axes.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) point: Vec<f64>,
    /// The first axis on which the cell is outside the measured range, and this range.
    pub(super) outside: Option<String>,
}

fn parse_number(text: &str) -> Option<f64> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Returns true if two numbers are equal, or if two words are equal apart from upper and lower
/// case.
fn is_same(a: &str, b: &str) -> bool {
    match (parse_number(a), parse_number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.eq_ignore_ascii_case(b),
    }
}

impl Axis {
    fn new(name: &str, values: &[&str]) -> Self {
        let numbers: Option<Vec<f64>> = values.iter().map(|value| parse_number(value)).collect();
        let scale = match numbers {
            Some(mut sorted) => {
                sorted.sort_by(f64::total_cmp);
                sorted.dedup();
                let is_share = name.contains("percent") || name.ends_with("_share");
                let is_logarithmic = !is_share && sorted[0] > 0.0;
                Scale::Numbers { sorted, is_logarithmic }
            }
            None => {
                let mut words: Vec<String> =
                    values.iter().map(|word| word.to_lowercase()).collect();
                words.sort();
                words.dedup();
                Scale::Words(words)
            }
        };
        Self { name: name.to_owned(), scale }
    }

    /// Returns the measured values, in ascending order.
    pub(super) fn values(&self) -> Vec<String> {
        match &self.scale {
            Scale::Numbers { sorted, .. } => sorted.iter().map(f64::to_string).collect(),
            Scale::Words(words) => words.clone(),
        }
    }

    fn is_constant(&self) -> bool {
        self.values().len() == 1
    }

    /// Appends the position of a value to `point`. Returns the measured range if the value is
    /// outside it.
    fn locate(&self, text: &str, point: &mut Vec<f64>) -> Result<Option<String>, String> {
        let name = &self.name;
        match &self.scale {
            Scale::Words(words) => {
                let word = text.to_lowercase();
                if !words.contains(&word) {
                    return Err(format!(
                        "`{name}` is {text}, but it was measured only with {}",
                        words.join(", ")
                    ));
                }
                point.extend(words.iter().map(|other| if *other == word { 1.0 } else { 0.0 }));
                Ok(None)
            }
            Scale::Numbers { sorted, is_logarithmic } => {
                let number = parse_number(text)
                    .ok_or_else(|| format!("`{name}` is {text}, not a number"))?;
                if *is_logarithmic && number <= 0.0 {
                    return Err(format!("`{name}` is {text}, but must be above 0"));
                }
                let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
                let scaled = |value: f64| if *is_logarithmic { value.ln() } else { value };
                let place = (scaled(number) - scaled(low)) / (scaled(high) - scaled(low));
                point.push(place);
                let outside = !(low..=high).contains(&number);
                Ok(outside
                    .then(|| format!("{name} is {number}, but only {low} to {high} was measured")))
            }
        }
    }
}

impl MeasuredTable {
    /// Reads a table. `more_axes`: columns that are axes in addition to the default axes.
    ///
    /// # Errors
    /// The table is malformed, or has no axis or no figure.
    pub fn parse(text: &str, more_axes: &[String]) -> Result<Self, RunnerError> {
        let cells = Cells::read(text).map_err(|error| RunnerError::usage(error.to_string()))?;
        if let Some(name) = more_axes.iter().find(|name| !cells.has(name)) {
            let has = cells.names().collect::<Vec<_>>().join(", ");
            return Err(RunnerError::usage(format!(
                "the table has no column {name}; it has {has}"
            )));
        }
        let is_axis = |name: &str| AXES.contains(&name) || more_axes.iter().any(|n| n == name);
        let is_figure = |name: &str| {
            let is_known = FIGURE_ENDS.iter().any(|end| name.ends_with(end));
            !is_axis(name) && (is_known || LATENCY_PARTS.iter().any(|part| name.contains(part)))
        };
        let names: Vec<&str> = cells.names().collect();
        let with_axes = |line: &Line<'_>| {
            names.iter().filter(|name| is_axis(name)).all(|name| line.text(name).is_some())
        };
        let is_invalid = |line: &Line<'_>| {
            line.text("verdict").is_some_and(|verdict| verdict.eq_ignore_ascii_case("INVALID"))
        };
        let invalid_rows = cells.lines().filter(is_invalid).count();
        // A row without a value for an axis is a fill or a total, so it is left out.
        let lines: Vec<Line<'_>> =
            cells.lines().filter(|line| with_axes(line) && !is_invalid(line)).collect();
        let mut constants = BTreeMap::new();
        let mut axes = Vec::new();
        for name in names.iter().filter(|name| is_axis(name)) {
            let values: Vec<&str> = lines.iter().filter_map(|line| line.text(name)).collect();
            if values.is_empty() {
                continue;
            }
            let axis = Axis::new(name, &values);
            match axis.is_constant() {
                true => drop(constants.insert(axis.name.clone(), axis.values().concat())),
                false => axes.push(axis),
            }
        }
        let figures: Result<Vec<Figure>, TableError> =
            names.iter().filter(|name| is_figure(name)).map(|name| figure(name, &lines)).collect();
        let figures = figures.map_err(|error| RunnerError::usage(error.to_string()))?;
        let figures: Vec<Figure> = figures.into_iter().filter(|f| !f.rows.is_empty()).collect();
        if axes.is_empty() || figures.is_empty() {
            let says = format!(
                "the table requires a column that is an axis with several values ({}), and a figure \
                 (a column whose name ends with {})",
                AXES.join(", "),
                FIGURE_ENDS.join(", ")
            );
            return Err(RunnerError::usage(says));
        }
        let point = |line: &Line<'_>| {
            let mut point = Vec::new();
            for axis in &axes {
                let text = line.text(&axis.name).unwrap_or_default();
                axis.locate(text, &mut point)
                    .map_err(|why| RunnerError::usage(format!("line {}: {why}", line.number)))?;
            }
            Ok(point)
        };
        let points = lines.iter().map(point).collect::<Result<_, RunnerError>>()?;
        let ignored = names.iter().filter(|name| !is_axis(name) && !is_figure(name));
        let ignored = ignored.map(|name| (*name).to_owned()).collect();
        Ok(Self { axes, constants, points, figures, ignored, invalid_rows })
    }

    /// Creates a table from results of another tool. Its axes are the settings of the jobs.
    ///
    /// # Errors
    /// See [`MeasuredTable::parse`].
    pub fn of_rows(rows: &Measured, more_axes: &[String]) -> Result<Self, RunnerError> {
        let mut text = ROW_COLUMNS.to_owned();
        for row in rows.matrix() {
            let kib = row.io_bytes.unwrap_or(0) as f64 / 1024.0;
            let pattern = if row.pattern == Pattern::Sequential { "sequential" } else { "random" };
            let percent = 100.0 * row.read_share.unwrap_or(0.0);
            let sync = if row.durable { "dsync" } else { "none" };
            let depth = row.outstanding().unwrap_or(1);
            let (rate, ms) = (row.ops_per_s, row.latency_ms);
            let p99 = row.latency_p99_ms.map(|ms| ms.to_string()).unwrap_or_default();
            text.push_str(&format!("\n{kib},{pattern},{percent},{sync},{depth},{rate},{ms},{p99}"));
        }
        Self::parse(&text, &[more_axes, &["sync".to_owned()]].concat())
    }

    /// Parses a cell, such as `io_kib=16,read_percent=70`.
    pub(super) fn cell(
        &self,
        text: &str,
    ) -> Result<(BTreeMap<String, String>, Position), RunnerError> {
        let wrong = |why: String| RunnerError::usage(format!("--cell {text}: {why}"));
        let mut cell = BTreeMap::new();
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| wrong(format!("{part:?} is not in the form NAME=VALUE")))?;
            let (name, value) = (name.trim().to_lowercase(), value.trim().to_owned());
            if let Some(constant) = self.constants.get(&name)
                && !is_same(constant, &value)
            {
                return Err(wrong(format!("{name} is always {constant} in the table")));
            }
            if !self.constants.contains_key(&name) && !self.axes.iter().any(|a| a.name == name) {
                let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
                return Err(wrong(format!(
                    "the table has no axis `{name}`; its axes are {}",
                    axes.join(", ")
                )));
            }
            if cell.insert(name.clone(), value).is_some() {
                return Err(wrong(format!("`{name}` is given twice")));
            }
        }
        let mut position = Position { point: Vec::new(), outside: None };
        for axis in &self.axes {
            let value = cell.get(&axis.name);
            let value = value.ok_or_else(|| wrong(format!("`{}` is missing", axis.name)))?;
            let outside = axis.locate(value, &mut position.point).map_err(wrong)?;
            position.outside = position.outside.or(outside);
        }
        Ok((cell, position))
    }
}

fn figure(name: &str, lines: &[Line<'_>]) -> Result<Figure, TableError> {
    let mut figure = Figure { name: name.to_owned(), rows: Vec::new(), values: Vec::new() };
    for (row, line) in lines.iter().enumerate() {
        // If a row has no writes, its columns about writes are empty or 0, so they cannot be
        // interpolated.
        if line.text(name).is_some_and(|text| text.eq_ignore_ascii_case("unknown")) {
            continue;
        }
        if let Some(value) = line.number(name)?.filter(|value| *value > 0.0) {
            figure.rows.push(row);
            figure.values.push(value);
        }
    }
    Ok(figure)
}
