//! `plimsoll observe`: other benchmarks under observation.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod observe;
mod observe_as_audit;
mod observe_others;
