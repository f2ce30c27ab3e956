//! Streams of operations, address and arrival distributions, block content and stamps, and the
//! mail store's logic. Nothing here does I/O or reads a clock.

pub mod address;
pub mod arrival;
pub mod content;
pub mod mailbox;
pub mod matrix;
pub mod planned;
pub mod stamp;
pub mod step;
pub mod trace;
