//! Content of blocks.
//!
//! Content is a pure function of run, target, address and generation (the number of writes to the
//! address in this run). No content is stored or copied from a pool, and any two units differ
//! unless duplicates are requested. Units are at most 4 KiB, and their bounds do not depend on the
//! I/O size. Neither do compression ratio and share of duplicates. Records that are not whole
//! sectors, such as 2300 bytes, are units of their own size: whole sectors and a tail.
//!
//! * *Incompressible bytes* are generated from a counter ([`plimsoll_sys::simd`]). Each 16 bytes
//!   have their own counter value, and a permutation makes them different. A compressor or
//!   deduplication finds no repeat, however long its window.
//! * *Compressible bytes* are a repeated 8-byte word at the end of each 512-byte sector
//!   ([`Density`]).
//! * *Duplicates* are whole extents of up to 1 MiB that share their content with others
//!   ([`Duplicates`]).
//! * *Stamps* at the start of each unit identify it ([`crate::stamp`]).

mod density;
mod duplicates;
mod make;
mod spec;
#[cfg(test)]
mod tests;

pub use density::Density;
pub use duplicates::Duplicates;
pub use make::{Content, Cursor};
pub use spec::{ContentError, ContentSpec, is_unit, unit_bytes_for};
