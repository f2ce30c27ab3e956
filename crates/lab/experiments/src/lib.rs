//! Published experiments. Each is a directory with `experiment.toml`, the plans to which it refers,
//! and `published.csv`. The experiments in `plans/experiments` are built into the program.
//!
//! - [`files`], [`experiment_file`], [`definition`], [`published_figures`], [`tables`]: the
//!   definition of an experiment, its published figures, and the fit to them.
//! - [`experiment_plan`]: its arms with their plans; [`run`]: executes the arms; on models, several
//!   at a time ([`pool`]).
//! - [`directory`]: stores the files of an experiment next to its bundles, and analyses the bundles
//!   again.
//! - [`directory_report`]: the report of an experiment of any kind in the catalogue.
//! - [`analysis`]: compares the results with the published figures; a pure function of the
//!   evidence. [`report`]: displays the analysis.
//!
//! # Where to change what
//!
//! - to add a published experiment: a directory in `plans/experiments` and a line in `files.rs`
//! - analysis: `analysis`, whole tables `analysis/points.rs`; display: `report`; published tables
//!   and fit: `tables.rs`; execution: `run.rs`

pub mod analysis;
pub mod definition;
pub mod directory;
pub mod directory_report;
pub mod experiment_file;
pub mod experiment_plan;
pub mod files;
mod pool;
pub mod published_figures;
pub mod report;
pub mod run;
pub mod tables;

#[cfg(test)]
#[path = "../../../judge/judge/tests/fixtures/mod.rs"]
mod fixtures;

pub use definition::{Definition, Overrides, PlannedArm, StorageKind};
pub use experiment_file::Arm;
pub use experiment_plan::ExperimentPlan;
pub use files::{Files, shipped};
