//! Tests of `plimsoll compare`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod compare_reported;
mod compare_sweeps;
