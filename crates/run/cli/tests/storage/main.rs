//! Observations of real storage stacks, and of hosts that hide parts of themselves. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod freed_late;
mod mounted;
mod observed;
mod stacks;
mod unprivileged;
