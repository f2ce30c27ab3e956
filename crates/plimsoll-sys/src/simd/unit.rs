//! One stamped unit of content: what lies where in it, and the portable way to make it.
//!
//! A unit is one to eight sectors of 512 bytes. Each sector starts with bytes that do not compress (in
//! the first, the stamp is part of them) and ends with a filler that does: a repeated 8-byte word.
//! Doing it per sector and not per unit keeps any two sectors different, so that a system that
//! deduplicates 512-byte pieces finds no more than one that does so at 4 KiB.
//!
//! The CRC is linear. With zero in place of the bytes that do not compress, a unit's CRC is a constant
//! of the shape; each stretch of such bytes adds its own CRC, advanced by the number of bytes after it.
//! So the filler costs no checksum work at all, and the stretches are independent of each other.

use super::{ars, crc};

/// Bytes of a sector: the smallest piece that a drive writes whole.
pub const SECTOR_BYTES: usize = 512;

/// Bytes at the start of a unit that belong to its stamp.
pub const STAMP_BYTES: usize = 32;

/// Sectors in the largest unit, 4 KiB.
const SECTORS_MAX: usize = 8;

/// What lies where in a unit, and the constants of its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    sectors: usize,
    /// Bytes of each sector that do not compress, multiples of 32.
    pub(super) random_bytes: [usize; SECTORS_MAX],
    /// `x^(8n-33)` with n the bytes after each sector's such stretch; 0 where n is 0.
    pub(super) advance_by: [u32; SECTORS_MAX],
    /// CRC register of the unit with start value !0 and zeros where the bytes do not compress.
    pub(super) constant: u32,
    pub(super) filler: u64,
}

impl Shape {
    /// The shape of a unit whose sector `i` starts with `random_bytes[i]` bytes that do not
    /// compress, followed by repeats of `filler`.
    ///
    /// `None` unless there are 1 to 8 sectors, each a multiple of 32 up to 512 and the first at least
    /// 32 (the stamp).
    #[must_use]
    pub fn new(random_bytes: &[usize], filler: u64) -> Option<Self> {
        let sectors = random_bytes.len();
        let fits = (1..=SECTORS_MAX).contains(&sectors)
            && random_bytes[0] >= STAMP_BYTES
            && random_bytes.iter().all(|&r| r % 32 == 0 && r <= SECTOR_BYTES);
        if !fits {
            return None;
        }
        let mut shape = Self {
            sectors,
            random_bytes: [0; SECTORS_MAX],
            advance_by: [0; SECTORS_MAX],
            constant: 0,
            filler,
        };
        let mut unit = vec![0u8; sectors * SECTOR_BYTES];
        for (i, &random) in random_bytes.iter().enumerate() {
            let after = (sectors - i) * SECTOR_BYTES - random;
            shape.random_bytes[i] = random;
            // A filler of at least 32 bytes follows, or nothing: 8n - 33 is never negative.
            shape.advance_by[i] =
                if after == 0 { 0 } else { crc::x_pow_mod(8 * after as u64 - 33) };
            for word in unit[i * SECTOR_BYTES..][random..SECTOR_BYTES].chunks_mut(8) {
                word.copy_from_slice(&filler.to_le_bytes());
            }
        }
        shape.constant = crc::raw(!0, &unit[4..]);
        Some(shape)
    }

    /// Bytes of the whole unit.
    #[must_use]
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        self.sectors * SECTOR_BYTES
    }

    /// Sectors of the unit.
    #[must_use]
    pub fn sectors(&self) -> usize {
        self.sectors
    }

    /// Bytes of the unit that do not compress, the stamp among them.
    #[must_use]
    pub fn random_bytes_total(&self) -> usize {
        self.random_bytes.iter().sum()
    }
}

/// The portable way to make a unit; `out` is as long as the shape says.
pub(super) fn portable(
    key: [u64; 2],
    high: u64,
    low_first: u64,
    shape: &Shape,
    stamp: &[u8; 32],
    out: &mut [u8],
) {
    for (i, sector) in out.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        let (random, filler) = sector.split_at_mut(shape.random_bytes[i]);
        let low = low_first.wrapping_add((i * SECTOR_BYTES / 16) as u64);
        ars::fill(key, high, low, random);
        for word in filler.chunks_exact_mut(8) {
            word.copy_from_slice(&shape.filler.to_le_bytes());
        }
    }
    out[..STAMP_BYTES].copy_from_slice(stamp);
    let crc = !crc::raw(!0, &out[4..]);
    out[..4].copy_from_slice(&crc.to_le_bytes());
}
