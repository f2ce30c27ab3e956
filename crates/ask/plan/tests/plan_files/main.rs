//! Plan files: valid, invalid, built in and resolved.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod any_text;
mod bad_plans;
mod durability;
mod events;
mod gallery;
mod ready_plans;
mod resolved;
mod units;
