//! Stamped unit of content: its layout, and the portable functions to create and check it.
//!
//! A unit is one to eight sectors of 512 bytes. Each sector starts with incompressible bytes, which
//! include the stamp in the first sector. It ends with a compressible filler: a repeated 8-byte
//! word. Any two sectors therefore differ, so that deduplication of 512-byte pieces finds the same
//! duplicates as deduplication of 4 KiB pieces.
//!
//! A unit is a function of its key, counter, shape and stamp. To check a unit, the code creates the
//! expected unit and compares both. This checks every bit with certainty and costs less than a
//! checksum.

use super::ars;

/// Sector size: the smallest piece that a drive writes atomically.
pub const SECTOR_BYTES: usize = 512;

/// Size of the stamp at the start of a unit.
pub const STAMP_BYTES: usize = 32;

/// Size of a part. The incompressible share of a sector is a multiple of this size.
pub const PART_BYTES: usize = 32;

/// Number of sectors in the largest unit, which has 4 KiB.
pub const SECTORS_MAX: usize = 8;

pub(super) const PARTS: usize = SECTOR_BYTES / PART_BYTES;

/// Layout of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    sectors: usize,
    /// Number of incompressible parts of each sector, at most [`PARTS`].
    pub(super) random_parts: [u8; SECTORS_MAX],
    /// Word that fills the other bytes.
    pub(super) filler: u64,
}

impl Shape {
    /// Returns the shape of a unit that has `sectors` sectors. Its `random_parts` incompressible
    /// parts of 32 bytes are distributed over the sectors as evenly as possible. The remaining
    /// bytes repeat `filler`. The first sector has at least one incompressible part, for the stamp.
    ///
    /// Returns `None` unless there are 1 to 8 sectors, and 1 to 16 parts for each of them.
    #[must_use]
    pub fn new(sectors: usize, random_parts: usize, filler: u64) -> Option<Self> {
        let fits =
            (1..=SECTORS_MAX).contains(&sectors) && (1..=sectors * PARTS).contains(&random_parts);
        if !fits {
            return None;
        }
        let mut shape = Self { sectors, random_parts: [0; SECTORS_MAX], filler };
        for i in 0..sectors {
            // If there are fewer parts than sectors, rounding up assigns the first part to the
            // first sector.
            let before = (i * random_parts).div_ceil(sectors);
            let after = ((i + 1) * random_parts).div_ceil(sectors);
            shape.random_parts[i] = (after - before) as u8;
        }
        Some(shape)
    }

    /// Size of the whole unit in bytes.
    #[must_use]
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        self.sectors * SECTOR_BYTES
    }

    /// Number of incompressible bytes at the start of sector `i`, including the stamp.
    #[must_use]
    pub fn random_bytes(&self, i: usize) -> usize {
        self.random_parts.get(i).map_or(0, |parts| usize::from(*parts) * PART_BYTES)
    }
}

/// Creates a unit in `out`, which has the length of the shape.
pub(super) fn make(
    key: [u64; 2],
    high: u64,
    low_first: u64,
    shape: &Shape,
    stamp: &[u8; STAMP_BYTES],
    out: &mut [u8],
) {
    for (i, sector) in out.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        let (random, filler) = sector.split_at_mut(shape.random_bytes(i));
        let low = low_first.wrapping_add((i * SECTOR_BYTES / 16) as u64);
        ars::fill(key, high, low, random);
        for word in filler.chunks_exact_mut(8) {
            word.copy_from_slice(&shape.filler.to_le_bytes());
        }
    }
    out[..STAMP_BYTES].copy_from_slice(stamp);
}

/// Checks the unit in `data`, which has the length of the shape.
pub(super) fn is_intact(
    key: [u64; 2],
    high: u64,
    low_first: u64,
    shape: &Shape,
    stamp: &[u8; STAMP_BYTES],
    data: &[u8],
) -> bool {
    let mut expected = [0u8; SECTORS_MAX * SECTOR_BYTES];
    let expected = &mut expected[..shape.unit_bytes()];
    make(key, high, low_first, shape, stamp, expected);
    expected == data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_spread_evenly_and_all_placed() {
        for sectors in 1..=SECTORS_MAX {
            for parts in 1..=sectors * PARTS {
                let shape = Shape::new(sectors, parts, 1).unwrap();
                let each = &shape.random_parts[..sectors];
                assert_eq!(each.iter().map(|p| usize::from(*p)).sum::<usize>(), parts);
                assert!(each[0] >= 1);
                let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
                assert!(most - least <= 1, "{each:?}");
            }
        }
        assert_eq!(Shape::new(0, 1, 1), None);
        assert_eq!(Shape::new(9, 9, 1), None);
        assert_eq!(Shape::new(8, 0, 1), None);
        assert_eq!(Shape::new(8, 129, 1), None);
    }
}
