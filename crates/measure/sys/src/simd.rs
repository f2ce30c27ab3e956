//! Generates content and checksums at memory speed. This is the project's only vector code.
//!
//! *Bytes.* [`Kernels::fill_at`] is a counter-based generator after ARS (Salmon, Moraes, Dror and
//! Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11). Each 16-byte block is the result
//! of five AES rounds on its 128-bit counter. The key schedule is a Weyl sequence. Five rounds are
//! the minimum that the paper found to pass BigCrush. AES is a permutation, so two blocks with the
//! same key are equal only if their counters are equal. Compression and deduplication therefore
//! find no repetition, even with a long window. [`invert`] computes the counter from 16 bytes. The
//! generator is not a cipher and protects no secret.
//!
//! *Checksums.* CRC-32C (Castagnoli, RFC 3720 appendix B.4) uses the SSE 4.2 instruction in three
//! or four interleaved lanes. A carry-less multiplication with `x^(8n-33)` combines their
//! remainders (Gopal et al., "Fast CRC computation for iSCSI polynomial using CRC32 instruction",
//! Intel 2011).
//!
//! Every kernel has a portable version with the same results; tests compare them.

mod ars;
mod crc;
mod level;
mod unit;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use ars::invert;
pub use level::{Kernels, Level};
pub use unit::{PART_BYTES, SECTOR_BYTES, SECTORS_MAX, STAMP_BYTES, Shape};

/// Returns the CRC-32C of `data`, continuing from `seed`: 0, or the result for the preceding bytes.
#[must_use]
pub fn crc32c(seed: u32, data: &[u8]) -> u32 {
    Kernels::best().crc32c(seed, data)
}

/// Fills `out` with bytes that depend only on `key` and `counter`: block `i` of 16 bytes is
/// generated from the 128-bit counter `(counter, i)`. No two blocks with the same key are equal.
pub fn fill(key: [u64; 2], counter: u64, out: &mut [u8]) {
    Kernels::best().fill_at(key, counter, 0, out);
}
