//! Plans on several hosts with a real NATS server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../fleets/mod.rs"]
mod fleets;
#[path = "../support/mod.rs"]
mod support;

mod fleet;
mod fleet_docs;
mod fleet_events;
mod fleet_hostile;
mod fleet_page;
mod fleet_secure;
