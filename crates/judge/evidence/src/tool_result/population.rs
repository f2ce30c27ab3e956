//! Large sets of values, such as the times of thousands of ranks or the latencies of all requests.

use serde::Serialize;

use super::{Figure, Formula};

/// Unit of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
}

/// A large set of values of the same quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Objects that the values describe: `ranks` or `requests`.
    pub of: String,
    /// Name of the quantity that was measured, such as `time to write`.
    pub what: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Location of the values in the file. It is a column or a list.
    pub field: String,
    /// Values, in the order of the file.
    pub values: Vec<f64>,
    /// True if all parts did the same work at the same time. Their values are then comparable.
    pub alike: bool,
    /// Figures in the result that are aggregates of these values.
    pub claims: Vec<Claim>,
}

/// A figure that is an aggregate of the values of a population.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Formula.
    #[serde(rename = "how")]
    pub formula: Formula,
    /// The figure that is the aggregate, in the unit of the population.
    pub total: Figure,
    /// Permitted relative deviation of the aggregate. The tool's source code explains a deviation
    /// of this size.
    pub slack: f64,
}
