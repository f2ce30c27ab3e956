//! Published experiments: a directory with `experiment.toml`, the plans that it names and
//! `published.csv`. Those below `plans/experiments` are built into the program.

mod definition;
mod files;
mod given;
mod tables;

pub use definition::{Arm, Definition, On, Overrides, PlannedArm};
pub use files::{Files, shipped};
pub use given::given;
pub use tables::given_of;
