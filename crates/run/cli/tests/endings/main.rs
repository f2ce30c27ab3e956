//! All endings of a run, including endings in which something that the run waits for never
//! responds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod endings;
mod endings_waits;
