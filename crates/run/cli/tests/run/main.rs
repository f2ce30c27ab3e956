//! `plimsoll run` on files and devices, and its list of runs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod calibrate;
mod events;
mod run;
mod run_matrix;
mod runs;
mod steady;
