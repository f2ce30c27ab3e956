//! Functions of the commands `model show`, `model fit` and `model size`. They run no plan.
//!
//! - [`parameters`]: report of a model's parameters.
//! - [`fit`]: fits free parameters to a measured table, and predicts another table.
//! - [`sizing`]: finds the number of nodes that a mail store needs.

pub mod fit;
pub mod parameters;
pub mod sizing;
