//! The pages of `plimsoll serve` in a browser, and untrusted contents on these pages.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod page;
mod page_hostile;
