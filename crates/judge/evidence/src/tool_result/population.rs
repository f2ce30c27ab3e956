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

/// Set of values of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Population {
    /// Things to which the values belong: `ranks`, `requests`.
    pub of: String,
    /// Quantity, such as `time to write`.
    pub what: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Location of the values: the column or list.
    pub field: String,
    /// Values, in file order.
    pub values: Vec<f64>,
    /// True if all parts did the same work at the same time, so that their values are comparable.
    pub alike: bool,
    /// Figures that aggregate these values.
    pub claims: Vec<Claim>,
}

/// A figure that aggregates a population.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Formula.
    #[serde(rename = "how")]
    pub formula: Formula,
    /// The aggregate figure, in the unit of the population.
    pub total: Figure,
    /// Relative deviation that can be explained by the tool's source code.
    pub slack: f64,
}
