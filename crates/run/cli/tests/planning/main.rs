//! Commands that measure nothing: plans, models, and bundles of earlier versions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod earlier;
mod model;
mod model_truth;
mod plan;
