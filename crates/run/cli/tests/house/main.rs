//! Properties of the sources and of the packages: the crate graph, module cycles, packaging, supply
//! chain.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod architecture;
mod circles;
mod packaging;
mod supply_chain;
