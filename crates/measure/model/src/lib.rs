//! Runs a workload on a modelled storage system in virtual time.
//!
//! # Where to change what
//!
//! - a building block: its file in `blocks`, and its line in `blocks.rs`
//! - a shipped model: `models/NAME.toml` and its name in `spec/shipped.rs`
//! - lost and slow components: `blocks/losses.rs`, `blocks/replicate/absence.rs` (nodes and their
//!   disks), `blocks/raid/repair.rs` (drives), `system/components.rs` (names of components),
//!   `run/events.rs` (events of a plan)
//! - a run of a model: `run` (`virtual_time`, `mailbox`, `gauges`). `docs/models.md` describes
//!   speed, accuracy and parameters.
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
