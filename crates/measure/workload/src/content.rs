//! Generates the content of blocks.
//!
//! Content is a pure function of the run, the target, the address and the generation (the number of
//! writes to the address in this run). No content is stored or copied from a pool. Any two units
//! differ, unless duplicates are requested. A unit has at most 4 KiB. The I/O size does not affect
//! the boundaries of units, the compression ratio and the share of duplicates. A record may have a
//! size that is not a multiple of the sector size, for example 2300 bytes. The unit then has the
//! size of the record: it consists of whole sectors and a tail.
//!
//! * *Incompressible bytes* are generated from a counter ([`plimsoll_sys::simd`]). Each block of 16
//!   bytes has a different counter value, which a permutation converts to the bytes. Compression
//!   and deduplication therefore find no repeats, however long their window is.
//! * *Compressible bytes* are an 8-byte word that is repeated until the end of each 512-byte sector
//!   ([`Density`]).
//! * *Duplicates* are extents of up to 1 MiB. The whole extent has the same content as other
//!   extents ([`Duplicates`]).
//! * *Stamps* are at the start of each unit. A stamp identifies its unit ([`crate::stamp`]).

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
