//! Tests reports as text, SVG, HTML and exports, without a browser.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/markup.rs"]
mod markup;
#[path = "../common/matrix.rs"]
mod matrix;
#[path = "../common/studies.rs"]
mod studies;

mod charts;
mod exports;
mod page;
mod study;
mod text;
