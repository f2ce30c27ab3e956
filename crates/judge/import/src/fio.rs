//! fio (J. Axboe): JSON and JSON+, terse and text output, and its log files.
//!
//! The truncation and rounding of numbers, the width of the percentile bins, and the sums in group
//! reports are derived from `stat.c`, `iolog.c` and the manual of versions 2.0 to 3.41.

pub mod json;
pub mod log;
mod messages;
pub mod options;
mod printed;
mod shares;
pub mod terse;
pub mod text;
