//! Data of runs: checks of content, verification, removal, and targets that are replaced during a
//! run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../fleets/mod.rs"]
mod fleets;
#[path = "../../../../measure/engine/tests/support/swap.rs"]
mod scene;
#[path = "../support/mod.rs"]
mod support;

mod clean;
mod content;
mod swap;
mod verify;
