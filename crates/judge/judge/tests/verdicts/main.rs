//! Tests of verdicts and comparisons from stored evidence.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../fixtures/mod.rs"]
mod fixtures;

mod compare;
mod compare_sweeps;
mod robust;
mod verdict;
