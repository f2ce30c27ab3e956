//! Commands with several runs: experiments, sweeps and searches.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../measure/nfs/tests/support/mod.rs"]
mod ganesha;
#[path = "../support/mod.rs"]
mod support;

mod experiment;
mod experiment_interrupted;
mod sweep;
mod tune;
