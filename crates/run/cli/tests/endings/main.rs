//! Every ending of a run, also when the thing that it waits for never responds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod endings;
mod endings_waits;
