//! Predicts cells that are missing in a measured table, by interpolation between its rows.

mod table;
mod text;

use std::collections::BTreeMap;

use plimsoll_model::stats::quantile;
use plimsoll_report::document::Document;
use plimsoll_runner::error::RunnerError;
use serde::Serialize;

pub use self::table::MeasuredTable;
use self::table::{Axis, Position};
use crate::interpolation::{COVERAGE, Interpolation};

/// Predicted cells and the errors of the method, in the form of the JSON output.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Probability with which an interval contains the measured figure.
    coverage: f64,
    axes: Vec<AxisOut>,
    figures: Vec<FigureOut>,
    cells: Vec<CellOut>,
    /// Columns that are neither axes nor figures.
    columns_ignored: Vec<String>,
    /// Figures that are in too few rows for a prediction.
    figures_ignored: Vec<String>,
    /// Rows that were left out because their verdict is INVALID.
    invalid_rows: usize,
}

#[derive(Debug, Serialize)]
struct AxisOut {
    name: String,
    /// Measured values, in ascending order.
    values: Vec<String>,
}

/// Errors of a figure. To predict a row, all rows with the same value of an axis are left out.
#[derive(Debug, Serialize)]
struct FigureOut {
    name: String,
    rows: usize,
    error_median: f64,
    error_p90: f64,
    /// Median error if the nearest remaining row is copied instead.
    copying_error_median: f64,
}

#[derive(Debug, Serialize)]
struct CellOut {
    cell: BTreeMap<String, String>,
    /// Reason why the cell has no prediction.
    outside: Option<String>,
    figures: BTreeMap<String, ValueOut>,
}

#[derive(Debug, Serialize)]
struct ValueOut {
    value: f64,
    low: f64,
    high: f64,
}

impl Outcome {
    /// True if all cells are predicted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cells.iter().all(|cell| cell.outside.is_none())
    }

    /// Returns the report.
    #[must_use]
    pub fn document(&self) -> Document {
        text::document(self)
    }
}

/// Predicts cells such as `io_kib=16,read_percent=70` from a measured table. Calls `progress` with a
/// line of text before each figure.
///
/// # Errors
/// A cell does not contain each axis exactly once, or the table has too few or too many rows.
pub fn predict(
    table: &MeasuredTable,
    cells: &[String],
    progress: &dyn Fn(&str),
) -> Result<Outcome, RunnerError> {
    let cells: Vec<(BTreeMap<String, String>, Position)> =
        cells.iter().map(|text| table.cell(text)).collect::<Result<_, _>>()?;
    let mut out: Vec<CellOut> = cells
        .iter()
        .map(|(cell, position)| CellOut {
            cell: cell.clone(),
            outside: position.outside.clone(),
            figures: BTreeMap::new(),
        })
        .collect();
    let (mut figures, mut ignored) = (Vec::new(), Vec::new());
    for figure in &table.figures {
        let rows = figure.values.len();
        progress(&format!("interpolating {} between {rows} rows", figure.name));
        let points = figure.rows.iter().map(|row| table.points[*row].clone()).collect();
        let Some(interpolation) = Interpolation::new(points, &figure.values) else {
            ignored.push(format!("{} ({rows} rows)", figure.name));
            continue;
        };
        figures.push(FigureOut {
            name: figure.name.clone(),
            rows,
            error_median: quantile_of_absolute(&interpolation.left_out_errors, 0.5),
            error_p90: quantile_of_absolute(&interpolation.left_out_errors, 0.9),
            copying_error_median: quantile_of_absolute(&interpolation.copying_errors, 0.5),
        });
        for (out, (_, position)) in out.iter_mut().zip(&cells) {
            if out.outside.is_some() {
                continue;
            }
            // Some rows may lack this figure. For example, a load that only reads has no write
            // latency.
            let Some(predicted) = interpolation.at(&position.point) else { continue };
            let [low, high] = predicted.interval;
            let value = ValueOut { value: predicted.value, low, high };
            out.figures.insert(figure.name.clone(), value);
        }
    }
    if figures.is_empty() {
        let (least, most) = (Interpolation::ROWS_MIN, Interpolation::ROWS_MAX);
        return Err(RunnerError::usage(format!(
            "an interpolation needs {least} to {most} usable rows; the table has {}",
            ignored.join(", ")
        )));
    }
    for cell in out.iter_mut().filter(|cell| cell.figures.is_empty()) {
        let why = "the cell is between the only two values of an axis, or no row close to it has the \
             figure";
        cell.outside.get_or_insert_with(|| why.to_owned());
    }
    Ok(Outcome {
        coverage: COVERAGE,
        axes: table.axes.iter().map(axis_out).collect(),
        figures,
        cells: out,
        columns_ignored: table.ignored.clone(),
        figures_ignored: ignored,
        invalid_rows: table.invalid_rows,
    })
}

fn axis_out(axis: &Axis) -> AxisOut {
    AxisOut { name: axis.name.clone(), values: axis.values() }
}

fn quantile_of_absolute(errors: &[f64], q: f64) -> f64 {
    let mut absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    quantile(&mut absolute, q).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_report::text::Style;

    use super::*;

    /// Returns a table whose rate is a product of powers of its axes.
    fn table() -> MeasuredTable {
        let mut text =
            "# a made table\nio_kib,read_percent,depth,layout,pattern,ops_per_s,note\n".to_owned();
        for io_kib in [4, 8, 16, 32, 64] {
            for reads in [0, 50, 100] {
                for pattern in ["random", "sequential"] {
                    let factor = if pattern == "random" { 1.0 } else { 2.0 };
                    let rate = 1e5 * factor * (1.0 + f64::from(reads) / 100.0) / f64::from(io_kib);
                    text.push_str(&format!("{io_kib},{reads},4,raidz,{pattern},{rate:.1},x\n"));
                }
            }
        }
        MeasuredTable::parse(&text, &[]).unwrap()
    }

    #[test]
    fn cells_are_predicted_with_an_interval() {
        let cell = "io_kib=12,read_percent=50%,pattern=random".to_owned();
        let found = predict(&table(), &[cell], &|_| {}).unwrap();
        let rate = &found.cells[0].figures["ops_per_s"];
        let truth = 1e5 * 1.5 / 12.0;
        assert!((rate.value / truth - 1.0).abs() < 0.02, "{rate:?}, and not {truth}");
        assert!((rate.low..=rate.high).contains(&truth), "{rate:?}");
        assert!(found.is_complete());
        assert_eq!(found.columns_ignored, ["note"]);
        assert!(found.figures[0].error_median < 0.1 * found.figures[0].copying_error_median);
    }

    #[test]
    fn a_sweep_is_predicted_without_its_invalid_rows() {
        let mut text =
            "queue_depth,size_bytes,rate_per_s,latency_ns_p99,stalls_per_s,verdict\n".to_owned();
        for depth in [1, 2, 4, 8] {
            for size in [4096, 8192, 16384] {
                let rate = 1e4 * f64::from(depth) / f64::from(size / 4096);
                let p99 = 1e8 * f64::from(size) / 4096.0;
                text.push_str(&format!("{depth},{size},{rate},{p99},unknown,PASS\n"));
            }
        }
        text.push_str("8,4096,9e9,1,1,INVALID\n");
        let table = MeasuredTable::parse(&text, &[]).unwrap();
        let found =
            predict(&table, &["queue_depth=3,size_bytes=4096".to_owned()], &|_| {}).unwrap();
        let figure = |name: &str| found.cells[0].figures[name].value;
        assert!((figure("rate_per_s") / 3e4 - 1.0).abs() < 0.02, "{found:?}");
        assert!((figure("latency_ns_p99") / 1e8 - 1.0).abs() < 0.02, "{found:?}");
        assert_eq!(found.invalid_rows, 1);
        let few = text.lines().take(6).collect::<Vec<_>>().join("\n");
        let few = MeasuredTable::parse(&few, &[]).unwrap();
        let error = predict(&few, &["queue_depth=1,size_bytes=8192".to_owned()], &|_| {});
        assert!(error.unwrap_err().to_string().contains("rate_per_s (5 rows)"));
    }

    #[test]
    fn cells_outside_the_measured_range_are_not_predicted() {
        let cells = [
            "io_kib=128,read_percent=50,pattern=random",
            "io_kib=8,read_percent=50,pattern=random",
        ];
        let found = predict(&table(), &cells.map(str::to_owned), &|_| {}).unwrap();
        assert!(!found.is_complete());
        assert!(found.cells[0].figures.is_empty());
        let text = plimsoll_report::text::document(&found.document(), &Style::default());
        assert!(text.starts_with("NOT PREDICTED"), "{text}");
        assert!(text.contains("io_kib is 128, but only 4 to 64 was measured"), "{text}");
    }

    #[test]
    fn bad_cells_say_what_is_wrong() {
        let error =
            |cell: &str| predict(&table(), &[cell.to_owned()], &|_| {}).unwrap_err().to_string();
        assert!(error("io_kib=8,read_percent=50").contains("`pattern` is missing"));
        assert!(error("io_kib=8,read_percent=50,pattern=strided").contains("random, sequential"));
        assert!(error("io_kib=eight,read_percent=50,pattern=random").contains("not a number"));
        assert!(error("io_kib=0,read_percent=50,pattern=random").contains("above 0"));
        assert!(error("io_kib=8,io_kib=8,read_percent=5,pattern=random").contains("twice"));
        assert!(
            error("io_kib=8,read_percent=50,pattern=random,depth=8").contains("depth is always 4")
        );
        assert!(
            error("io_kib=8,read_percent=50,pattern=random,colour=red")
                .contains("no axis `colour`")
        );
        let other = error("io_kib=8,read_percent=50,pattern=random,layout=mirror");
        assert!(other.contains("layout is always raidz"), "{other}");
        assert!(error("io_kib").contains("NAME=VALUE"));
    }

    #[test]
    fn the_report_is_readable() {
        let cells = [
            "io_kib=12,read_percent=25,pattern=random",
            "io_kib=48,read_percent=75,pattern=sequential",
        ];
        let found = predict(&table(), &cells.map(str::to_owned), &|_| {}).unwrap();
        let text = plimsoll_report::text::document(&found.document(), &Style::default());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn rows_of_other_tools_and_their_percentiles_are_predicted() {
        let mut text =
            "io_kib,pattern,read_percent,sync,depth,ops_per_s,latency_ms,latency_ms_p99\n"
                .to_owned();
        for io_kib in [4, 8, 16, 32] {
            for depth in [1, 2, 4] {
                let (rate, ms) =
                    (1e5 * f64::from(depth) / f64::from(io_kib), f64::from(io_kib) / 100.0);
                text.push_str(&format!(
                    "{io_kib},random,0,dsync,{depth},{rate},{ms},{}\n",
                    3.0 * ms
                ));
            }
        }
        let cell = ["io_kib=12,depth=2".to_owned()];
        let rows = plimsoll_model::fit::Table::parse(&text).unwrap();
        for table in [MeasuredTable::of_rows(&rows, &[]), MeasuredTable::parse(&text, &[])] {
            let found = predict(&table.unwrap(), &cell, &|_| {}).unwrap();
            let p99 = found.cells[0].figures["latency_ms_p99"].value;
            assert!((p99 / 0.36 - 1.0).abs() < 0.05, "{found:?}");
        }
    }
}
