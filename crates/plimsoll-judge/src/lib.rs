//! Statistics, audit rules, checks and the verdict: pure functions of evidence. It does no I/O and
//! knows no tool's name.

pub mod checks;
pub mod claim;
pub mod figures;
pub mod finding;
pub mod judge;
pub mod rules;
pub mod stats;
pub mod verdict;

pub use judge::judge;
pub use verdict::{Verdict, VerdictKind};
