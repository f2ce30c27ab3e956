//! Content of blocks.
//!
//! Content is a pure function of run, target, address and generation (the number of writes to the
//! address in this run). No content is stored or copied from a pool, and any two units differ
//! unless duplicates are requested. Units are at most 4 KiB. Their boundaries, the compression
//! ratio and the share of duplicates do not depend on the I/O size. If a record does not consist of
//! whole sectors (2300 bytes, for example), the unit has the size of the record: whole sectors and
//! a tail.
//!
//! * *Incompressible bytes* are generated from a counter ([`plimsoll_sys::simd`]). Each block of 16
//!   bytes has a different counter value, which a permutation converts to the bytes. Compression
//!   and deduplication therefore find no repeats, however long their window is.
//! * *Compressible bytes* are a repeated 8-byte word at the end of each 512-byte sector
//!   ([`Density`]).
//! * *Duplicates* are whole extents of up to 1 MiB that share their content with other extents
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
