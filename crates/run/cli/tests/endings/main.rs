//! Endings of a run, including runs that wait for something that never responds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod endings;
mod endings_waits;
