//! Functions of the commands `model show`, `model fit`, `model new`, `model predict` and `model
//! size`. They run no plan.
//!
//! - [`parameters`]: report of a model's parameters.
//! - [`fit`]: fits free parameters to a measured table, and predicts another table.
//! - [`prediction`]: predicts cells that are missing in a measured table, by [`interpolation`].
//! - [`sizing`]: finds the number of nodes that a mail store requires.
//! - [`structures`]: chooses the blocks of a new model for a measured table, and fits them.
//! - [`tool_results`]: rows of a table from results of other tools, such as fio.

pub mod fit;
pub mod interpolation;
pub mod parameters;
pub mod prediction;
pub mod sizing;
pub mod structures;
pub mod tool_results;
