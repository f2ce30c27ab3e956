//! Tests models of storage systems against theory, documentation and stored evidence.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod adsf;
mod caches;
mod curves;
mod golden;
mod losses;
mod mailbox;
mod pacing;
mod systems;
mod theory;
mod zfs;
