//! One file per command.

pub mod after;
pub mod arms;
pub mod audit;
pub mod bundle;
pub mod calibrate;
pub mod chosen;
pub mod clean;
pub mod compare;
pub mod compare_sweeps;
pub mod completions;
pub mod experiment;
pub mod judge;
pub mod ledger;
pub mod man;
pub mod model;
pub mod observe;
pub mod plan;
pub mod quickstart;
pub mod report;
pub mod run;
pub mod runs;
pub mod sides;
pub mod sweep;
pub mod together;
pub mod tune;
pub mod verify;
