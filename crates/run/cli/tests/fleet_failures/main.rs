//! Failures during a fleet run: fixed cases and random schedules.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../fleets/mod.rs"]
mod fleets;
#[path = "../support/mod.rs"]
mod support;

mod event_resume;
mod fleet_failures;
mod fleet_outages;
mod fleet_schedules;
