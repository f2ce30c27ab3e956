//! Published tables of arms of the experiment that are sweeps over I/O sizes and read shares, and
//! the fit of a model to one of these tables.
//!
//! A table has the columns that `model fit` reads. Its rows become published figures of the points
//! of its arm. Checks detect contradictions between the table's columns, and values that exceed the
//! limits of the hardware.

use std::collections::BTreeMap;

use plimsoll_model::fit::{self, Checks, FitOptions, Row, Table as Measured};
use plimsoll_model::spec::Spec;
use plimsoll_plan::Workload;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::model_run::{fit_error, model_error};
use toml::{Table, Value};

use crate::analysis::{Arithmetic, FittedParameter, PublishedFigure, Role};
use crate::definition::{Definition, PlannedArm};
use crate::experiment_file::{TableText, merge};

/// Number of rounds of a fit. The fit starts with values from an earlier fit.
const ROUNDS: usize = 2;

impl Definition {
    pub(crate) fn check_tables(&self) -> Result<(), String> {
        for table in &self.text.table {
            if !self.text.arm.iter().any(|arm| arm.name == table.arm) {
                return Err(format!(
                    "a [[table]] refers to arm {}, but the experiment has no such arm",
                    table.arm
                ));
            }
            let Some(text) = self.files.texts.get(&table.file) else {
                return Err(format!("the table file {} is not in the same directory", table.file));
            };
            Measured::parse(text).map_err(|error| format!("{}: {error}", table.file))?;
        }
        if let Some(fit) = &self.text.fit
            && !self.text.table.iter().any(|table| table.arm == fit.arm)
        {
            return Err(format!(
                "[fit] refers to the table of arm {}, which has no table",
                fit.arm
            ));
        }
        Ok(())
    }

    /// Published table of one of the experiment's arms. The table was already parsed when the
    /// experiment was read.
    fn measured(&self, table: &TableText) -> Option<Measured> {
        Measured::parse(self.files.texts.get(&table.file)?).ok()
    }

    /// Returns the published figures. Rows of published tables are added as figures of these arms
    /// of the experiment.
    pub fn published(&self, arms: &[PlannedArm]) -> Vec<PublishedFigure> {
        let mut all = self.given.clone();
        all.extend(self.given_by_tables(arms));
        all
    }

    /// Returns the rows of published tables as published figures of the points that were run.
    fn given_by_tables(&self, arms: &[PlannedArm]) -> Vec<PublishedFigure> {
        let mut all = Vec::new();
        for table in &self.text.table {
            let Some(measured) = self.measured(table) else { continue };
            let own = arms.iter().filter(|arm| arm.of.name == table.arm);
            all.extend(given_of(&measured, &own.collect::<Vec<_>>(), table.role, &table.file));
        }
        all
    }

    /// Checks whether each table's columns agree with each other.
    pub fn arithmetic(&self) -> Vec<Arithmetic> {
        let one = |table: &TableText| {
            let measured = self.measured(table)?;
            Some(Arithmetic { group: table.arm.clone(), says: arithmetic(table, &measured) })
        };
        self.text.table.iter().filter_map(one).collect()
    }

    /// Fits the free parameters, if the experiment requests it.
    ///
    /// # Errors
    /// The model is missing or has no free parameters, or the table has too few rows.
    pub fn fit(&self) -> Result<Vec<FittedParameter>, RunnerError> {
        let Some(requested) = &self.text.fit else { return Ok(Vec::new()) };
        let table = self.text.table.iter().find(|table| table.arm == requested.arm);
        let Some((table, measured)) = table.and_then(|t| Some((t, self.measured(t)?))) else {
            return Ok(Vec::new());
        };
        let mut spec = Spec::load(&requested.model).map_err(|error| model_error(&error))?;
        for (path, value) in &requested.from {
            spec.set(path, *value).map_err(|error| model_error(&error))?;
        }
        let options =
            FitOptions { starts: 0, rounds: ROUNDS, diagnose: false, ..FitOptions::default() };
        let found =
            fit::fit(&spec, &measured, &options, &|_| ()).map_err(|error| fit_error(&error))?;
        let one = |parameter: fit::Profile| FittedParameter {
            path: parameter.path,
            table: table.file.clone(),
            value: parameter.fitted,
            bounds: parameter.bounds,
        };
        Ok(found.parameters.into_iter().map(one).collect())
    }

    /// Returns the changes of an arm of the experiment, including the fitted values of its model.
    pub(crate) fn with_fitted(
        &self,
        plan: &str,
        changes: Table,
        fitted: &BTreeMap<String, f64>,
    ) -> Table {
        let Some(fit) = &self.text.fit else { return changes };
        let plan: Table = plan.parse().unwrap_or_default();
        let model = |table: &Table| table.get("target")?.get("model")?.as_str().map(str::to_owned);
        if model(&changes).or_else(|| model(&plan)).as_ref() != Some(&fit.model) {
            return changes;
        }
        let values = if fitted.is_empty() { &fit.from } else { fitted };
        let mut all = Table::new();
        let mut set = Table::new();
        for (path, value) in values {
            set.insert(path.clone(), Value::Float(*value));
            if let Some(field) = fit.also.get(path).filter(|field| states(&plan, field)) {
                merge(&mut all, nested(field, Value::Float(*value)));
            }
        }
        merge(&mut all, nested("target.set", Value::Table(set)));
        merge(&mut all, changes);
        all
    }
}

/// Returns true if a plan contains a field.
fn states(plan: &Table, field: &str) -> bool {
    let mut parts = field.split('.');
    let first = parts.next().and_then(|name| plan.get(name));
    parts.fold(first, |value, name| value.and_then(|value| value.get(name))).is_some()
}

fn nested(field: &str, value: Value) -> Table {
    let mut parts: Vec<&str> = field.split('.').collect();
    let last = parts.pop().unwrap_or(field);
    let mut table = Table::from_iter([(last.to_owned(), value)]);
    while let Some(name) = parts.pop() {
        table = Table::from_iter([(name.to_owned(), Value::Table(table))]);
    }
    table
}

/// Returns the rows of a table as figures of an arm's points.
pub fn given_of(
    measured: &Measured,
    arms: &[&PlannedArm],
    role: Role,
    source: &str,
) -> Vec<PublishedFigure> {
    let mut all = Vec::new();
    for arm in arms {
        let Some(row) = measured.matrix().find(|row| is_of(row, arm)) else { continue };
        let mut add = |figure: &str, value: f64| {
            let source = format!("{source}, line {}", row.line);
            let (arm, figure) = (arm.name.clone(), figure.to_owned());
            all.push(PublishedFigure { arm, figure, value, role, source });
        };
        add("achieved_iops_per_s", row.ops_per_s);
        add("latency_ns_avg", 1e6 * row.latency_ms);
    }
    all
}

/// Returns true if a row has the I/O size and the read share of a point in the arm's table.
fn is_of(row: &Row, arm: &PlannedArm) -> bool {
    let Workload::Matrix(matrix) = &arm.resolved.workload else { return false };
    let [stream] = &matrix.streams[..] else { return false };
    let [size] = &stream.sizes[..] else { return false };
    let share = row.read_share.map(|share| 100.0 * share);
    row.io_bytes == Some(size.size_bytes)
        && share.is_some_and(|percent| (percent - stream.read_percent).abs() < 1e-6)
}

fn gigabytes(bytes_per_s: f64) -> String {
    format!("{:.2} GB/s", bytes_per_s / 1e9)
}

/// Checks whether the columns of a table agree with each other, and whether the ports have the
/// bandwidth that its rows need.
fn arithmetic(table: &TableText, measured: &Measured) -> Vec<String> {
    let checks = fit::check(measured, |_| table.outstanding);
    let mut says = identities(&checks, table);
    if let Some(limit) = table.ports_bytes_per_s {
        let most = checks.network_bytes_per_s_max;
        let word = if most > limit { "of it, which is IMPOSSIBLE" } else { "of it" };
        says.push(format!(
            "The busiest row transfers {} in one direction. The bandwidth of the ports is {}, and \
             the row uses {:.1} % {word}.",
            gigabytes(most),
            gigabytes(limit),
            100.0 * most / limit
        ));
    }
    says.extend(written(table, measured));
    says
}

fn identities(checks: &Checks, table: &TableText) -> Vec<String> {
    let mut says = Vec::new();
    if checks.identity_median.is_finite() {
        let unit = if checks.unit_bytes == 1e6 { "10^6" } else { "2^20" };
        let odd = match checks.identity_odd.len() {
            0 => "the bandwidth of no row deviates by more than 2 %".to_owned(),
            n => format!("the bandwidths of {n} rows deviate by more than 2 %"),
        };
        says.push(format!(
            "The published bandwidth equals data operations × I/O size + operations × {:.0} \
             protocol bytes, in units of {unit} bytes: the median residual is {:.3} %, and {odd}.",
            checks.protocol_bytes,
            100.0 * checks.identity_median
        ));
        if checks.unit_bytes != 1e6 {
            says.push("MB in this table means MiB.".to_owned());
        }
    }
    let (least, most) = checks.concurrency;
    let allowed = table.outstanding.map_or(String::new(), |allowed| {
        let word = match checks.concurrency_impossible.len() {
            0 if most < 0.9 * allowed => {
                "all rows are possible, but the clients used less than 90 % of this number"
            }
            0 => "all rows are possible",
            _ => "some rows are IMPOSSIBLE",
        };
        format!(", of {allowed:.0} that the load allows: {word}")
    });
    says.push(format!(
        "By Little's law (rate × latency), the rows have {least:.0} to {most:.0} operations in \
         flight{allowed}."
    ));
    if let Some((low, high)) = checks.metadata_share {
        says.push(format!(
            "Operations that transfer no data are {:.1} to {:.1} % of all operations.",
            100.0 * low,
            100.0 * high
        ));
    }
    says
}

/// Returns sentences about the bandwidth that the drives' ports need if data arrives in full
/// records, and if each write rewrites its record.
fn written(table: &TableText, measured: &Measured) -> Vec<String> {
    let (Some(drives), Some(port), Some(factor)) =
        (table.drives, table.drive_port_bytes_per_s, table.written_per_byte)
    else {
        return Vec::new();
    };
    let of_row = |row: &Row, least_bytes: f64| {
        let size = (row.io_bytes.unwrap_or(0) as f64).max(least_bytes);
        row.write_ops_per_s.unwrap_or(0.0) * size * factor
    };
    let most = |least_bytes: f64| {
        let rows = measured.matrix().map(|row| (of_row(row, least_bytes), row));
        rows.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut says = Vec::new();
    if let Some((bytes, row)) = most(0.0) {
        says.push(format!(
            "If data arrives in full records, the drives write at most {} (in the row {}), which is \
             {:.0} MB/s for each drive.",
            gigabytes(bytes),
            row.label(),
            bytes / 1e6 / f64::from(drives)
        ));
    }
    if let Some((bytes, row)) = table.record_bytes.and_then(most) {
        let each = bytes / f64::from(drives);
        let judged = if each > port {
            "this exceeds the bandwidth of the port, so \"random\" cannot mean that each write \
             rewrites a whole record"
        } else {
            "the ports can sustain this bandwidth"
        };
        says.push(format!(
            "If every write rewrote a whole record of {:.0} KiB, the drives would write {} (in the \
             row {}). Each drive would write {} through a port of {}: {judged}.",
            table.record_bytes.unwrap_or(0.0) / 1024.0,
            gigabytes(bytes),
            row.label(),
            gigabytes(each),
            gigabytes(port)
        ));
    }
    says
}
