//! `plimsoll audit`, and what the judgement refuses to believe.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod cases;
mod fio_forms;
mod fio_runs;
mod judgement;
