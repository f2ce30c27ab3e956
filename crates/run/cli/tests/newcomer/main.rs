//! The commands of a new user's first hour: quickstart, built-in plans, the documented session.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod first_hour;
mod plans;
mod quickstart;
