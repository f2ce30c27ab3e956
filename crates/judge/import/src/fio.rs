//! fio (J. Axboe): JSON and JSON+, terse and text output, and its log files.
//!
//! Derived from `stat.c`, `iolog.c` and the manual of versions 2.0 to 3.41: truncation and rounding
//! of numbers, width of the percentile bins, and sums in group reports.

pub mod json;
pub mod log;
pub mod options;
mod printed;
pub mod terse;
pub mod text;
