//! Judgement: statistics, steady state, audit rules, checks, claims, verdict and comparison.
//!
//! Pure functions of evidence. Nothing in this crate does I/O, reads a clock or draws a random
//! number that was not passed in, so that the same evidence gives the same verdict to the letter
//! on any machine, a year later.

pub mod carried;
pub mod checks;
pub mod claim;
pub mod compare;
pub mod conservation;
pub mod experiment;
pub mod figures;
pub mod finding;
pub mod fleet;
pub mod inside;
pub mod judge;
mod links;
pub mod metrics;
pub mod place;
pub mod rules;
pub mod stages;
pub mod stats;
pub mod steady;
pub mod sweep;
pub mod tail;
mod touched;
pub mod tuning;
pub mod verdict;
mod words;

pub use judge::judge;
pub use verdict::{Verdict, VerdictKind};
