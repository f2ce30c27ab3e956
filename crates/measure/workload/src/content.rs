//! Content of blocks.
//!
//! Content is a pure function of run, target, place and generation (how many times the place was
//! written in this run): nothing is stored, nothing is copied from a pool, and no two units are
//! alike unless duplicates are requested. Units are at most 4 KiB and their bounds do not depend on
//! the I/O size, so neither do compression ratio and share of duplicates. Records that are not whole
//! sectors, such as 2300 bytes, are units of their own size: whole sectors and a tail.
//!
//! * *Incompressible bytes* come from a counter-based generator ([`plimsoll_sys::simd`]): each 16 bytes have a
//!   counter of their own and a permutation keeps them different, so there is nothing that a compressor
//!   or deduplication could find, whatever its window.
//! * *Compressible bytes* are a repeated 8-byte word at the end of each 512-byte sector ([`Density`]).
//! * *Duplicates* are whole extents of up to 1 MiB that share their content with others ([`Duplicates`]).
//! * *Stamps* at the start of each unit say what it is ([`crate::stamp`]).

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
