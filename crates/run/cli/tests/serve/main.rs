//! `plimsoll serve` over HTTP: its API, live status, and a team's catalogue.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod api_fuzz;
mod attacks;
mod live;
mod mark;
mod serve;
mod team;
