//! fio (J. Axboe): JSON and JSON+, terse, its text, and the logs that it writes beside them.
//!
//! Learned from `stat.c`, `iolog.c` and the manual of versions 2.0 to 3.41: which numbers are cut off and
//! which are rounded, how wide the bins are that percentiles are taken from, and what a group report sums.

pub mod json;
pub mod log;
pub mod options;
mod printed;
pub mod terse;
pub mod text;
