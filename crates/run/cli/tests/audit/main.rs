//! `plimsoll audit`, and results that the judgement must not accept.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod cases;
mod fio_forms;
mod fio_runs;
mod judgement;
