//! Fits a model's free parameters to a measured table, and predicts another table with the fitted
//! model.
//!
//! The fit uses least squares on logarithms of rate and latency, within the bounds of each
//! parameter. The search starts from the parameters of the model file and from other points, which
//! a seed determines. It uses the fast analysis, corrected by simulation (see `evaluate`), and ends
//! when a simulation confirms its result. The fit also shows which parameters the data cannot
//! determine. For this purpose, it profiles every parameter, and refits the model without each row
//! in turn. As a reference, it also scores predictions that copy the nearest measured row.

mod checks;
mod evaluate;
pub mod goals;
mod least_squares;
mod search;
mod table;

pub use checks::{Checks, check};
pub use evaluate::{Point, simulate_row, simulate_rows};
pub use search::{Fit, FitOptions, FitProgress, Profile, RowScore, Scores, fit, predict, score};
pub use table::{DEPTH_MAX, Row, Table, implausible};

use crate::spec::ModelError;
use plimsoll_evidence::cells::TableError;
use thiserror::Error;

/// Reason why a fit failed.
#[derive(Debug, Error, PartialEq)]
pub enum FitError {
    /// The table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model cannot be built with one of the bounds of a free parameter.
    #[error("the bound {value} of the free parameter {path} is not possible: {error}")]
    Bound { path: String, value: f64, error: String },
    /// The model has no free parameter.
    #[error("{model} has no free parameter: mark at least one with `free = [lowest, highest]`")]
    NothingFree { model: String },
    /// The table has too few usable rows.
    #[error(
        "only {rows} rows of the table have an I/O size and a read share: too few for {free} free \
         parameters"
    )]
    TooFewRows {
        /// Number of usable rows.
        rows: usize,
        /// Number of free parameters.
        free: usize,
    },
}
