//! Drives a workload through a modelled storage system in virtual time.
pub mod analytic;
pub mod blocks;
pub mod cache;
pub mod core;
pub mod fit;
pub(crate) mod parallel;
pub mod run;
pub mod size;
pub mod spec;
pub mod stats;
pub mod system;
