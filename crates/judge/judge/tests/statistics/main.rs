//! Tests the judge's statistics against known distributions and against SciPy.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../synthetic/mod.rs"]
mod synthetic;

mod comparison;
mod coverage;
mod golden;
mod steady;
mod tune;
