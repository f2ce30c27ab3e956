//! Content and checksums at memory speed: the only vector code of the project.
//!
//! *Bytes.* [`Kernels::fill_at`] is a counter-based generator after ARS (Salmon, Moraes, Dror and
//! Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11): each 16-byte block is five AES rounds
//! of its own 128-bit counter under a key whose schedule is a Weyl sequence; five rounds is the
//! fewest that the paper found to pass BigCrush. Because AES is a permutation, two blocks under one
//! key are equal only if their counters are, so no compressor or deduplication, however long its
//! window, finds a repeat; and [`invert`] tells from 16 bytes which counter they came from. It is not
//! a cipher: it keeps no secret.
//!
//! *Checksums.* CRC-32C (Castagnoli, RFC 3720 appendix B.4) by the SSE 4.2 instruction in three or
//! four interleaved lanes, whose remainders are joined by a carry-less multiplication with
//! `x^(8n-33)` (Gopal et al., "Fast CRC computation for iSCSI polynomial using CRC32 instruction",
//! Intel 2011).
//!
//! Every kernel has a portable path that gives the same bytes; tests hold them equal.

mod ars;
mod crc;
mod level;
mod unit;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use ars::invert;
pub use level::{Kernels, Level};
pub use unit::{PART_BYTES, SECTOR_BYTES, SECTORS_MAX, STAMP_BYTES, Shape};

/// CRC-32C of `data`, continuing from `seed`: 0 to start, or the result for the bytes before.
#[must_use]
pub fn crc32c(seed: u32, data: &[u8]) -> u32 {
    Kernels::best().crc32c(seed, data)
}

/// Fills `out` with bytes that depend on `key` and `counter` alone: block `i` of 16 bytes comes from
/// the 128-bit counter `(counter, i)`. No two blocks under one key are equal.
pub fn fill(key: [u64; 2], counter: u64, out: &mut [u8]) {
    Kernels::best().fill_at(key, counter, 0, out);
}

/// [`fill`] and [`crc32c`] of what was filled, in one pass over the memory.
#[must_use]
pub fn fill_crc32c(key: [u64; 2], counter: u64, seed: u32, out: &mut [u8]) -> u32 {
    Kernels::best().fill_crc32c_at(key, counter, 0, seed, out)
}
