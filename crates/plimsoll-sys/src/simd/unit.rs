//! One stamped unit of content: what lies where in it, and the portable way to make and to check it.
//!
//! A unit is one to eight sectors of 512 bytes. Each sector starts with bytes that do not compress (in
//! the first, the stamp is part of them) and ends with a filler that does: a repeated 8-byte word.
//! Doing it per sector and not per unit keeps any two sectors different, so that a system that
//! deduplicates 512-byte pieces finds no more than one that does so at 4 KiB.
//!
//! A unit is a function of its key, counter, shape and stamp. So it is checked by making it again and
//! comparing, which covers every bit with certainty and costs less than a checksum would.

use super::ars;

/// Bytes of a sector: the smallest piece that a drive writes whole.
pub const SECTOR_BYTES: usize = 512;

/// Bytes at the start of a unit that belong to its stamp.
pub const STAMP_BYTES: usize = 32;

/// Bytes of a part: the quantum in which a sector's incompressible share is set.
pub const PART_BYTES: usize = 32;

/// Sectors in the largest unit, 4 KiB.
pub const SECTORS_MAX: usize = 8;

/// Parts in a sector.
pub(super) const PARTS: usize = SECTOR_BYTES / PART_BYTES;

/// What lies where in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    sectors: usize,
    /// Parts of each sector that do not compress, at most [`PARTS`].
    pub(super) random_parts: [u8; SECTORS_MAX],
    /// The word that the rest is filled with.
    pub(super) filler: u64,
}

impl Shape {
    /// The shape of a unit of `sectors` sectors in which `random_parts` parts of 32 bytes, spread over
    /// the sectors as evenly as goes, do not compress; the rest are repeats of `filler`. The first
    /// sector has at least one such part, for the stamp.
    ///
    /// `None` unless there are 1 to 8 sectors, and 1 to 16 parts for each of them.
    #[must_use]
    pub fn new(sectors: usize, random_parts: usize, filler: u64) -> Option<Self> {
        let fits =
            (1..=SECTORS_MAX).contains(&sectors) && (1..=sectors * PARTS).contains(&random_parts);
        if !fits {
            return None;
        }
        let mut shape = Self { sectors, random_parts: [0; SECTORS_MAX], filler };
        for i in 0..sectors {
            // Rounding up puts the first of too few parts into the first sector.
            let before = (i * random_parts).div_ceil(sectors);
            let after = ((i + 1) * random_parts).div_ceil(sectors);
            shape.random_parts[i] = (after - before) as u8;
        }
        Some(shape)
    }

    /// Bytes of the whole unit.
    #[must_use]
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        self.sectors * SECTOR_BYTES
    }

    /// Bytes at the start of sector `i` that do not compress, the stamp among them.
    #[must_use]
    pub fn random_bytes(&self, i: usize) -> usize {
        self.random_parts.get(i).map_or(0, |parts| usize::from(*parts) * PART_BYTES)
    }
}

/// The portable way to make a unit; `out` is as long as the shape says.
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

/// The portable way to check a unit; `data` is as long as the shape says.
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
