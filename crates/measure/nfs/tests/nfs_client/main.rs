//! Tests the client against a real NFS server, and against servers that lose state.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/forgetful.rs"]
mod forgetful;
#[path = "../support/relay.rs"]
mod relay;
#[path = "../support/stamps.rs"]
mod stamps;
#[path = "../support/mod.rs"]
mod support;

mod counts;
mod procedures;
mod restart;
