//! Determines which writes produced the sectors of a unit.

use plimsoll_sys::simd::{SECTOR_BYTES, SECTORS_MAX, invert};

use super::Stamp;
use super::format::key_of;

/// Write that may have produced some sectors of the unit, and the sectors that match this write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explanation {
    pub(super) stamp: Stamp,
    /// One bit for each sector. Bit `i` is set if sector `i` has exactly the content that the write
    /// would produce.
    pub(super) sectors: u8,
}

/// What is known about the sectors of a unit.
pub(super) struct Evidence<'a> {
    unit: &'a [u8],
    pub(super) explanations: Vec<Explanation>,
    /// One bit for each sector. Bit `i` is set if sector `i` contains only zeros.
    pub(super) zero: u8,
}

/// Maximum number of writes with which a unit is compared. There may be two writes for each sector,
/// and in addition the expected writes.
const TRIES_MAX: usize = 40;

impl<'a> Evidence<'a> {
    pub(super) fn new(unit: &'a [u8]) -> Self {
        let mut zero = 0;
        for (i, sector) in unit.chunks(SECTOR_BYTES).take(SECTORS_MAX).enumerate() {
            if sector.iter().all(|byte| *byte == 0) {
                zero |= 1 << i;
            }
        }
        Self { unit, explanations: Vec::new(), zero }
    }

    /// Returns a mask in which the bits of all sectors of the unit are set.
    pub(super) fn all(&self) -> u8 {
        let sectors = self.unit.len().div_ceil(SECTOR_BYTES).min(SECTORS_MAX);
        (u16::MAX >> (16 - sectors)) as u8
    }

    /// Compares the unit with a write, and records which sectors match.
    pub(super) fn consider(&mut self, stamp: Stamp) {
        let known = self.explanations.iter().any(|e| e.stamp == stamp);
        if known || self.explanations.len() >= TRIES_MAX {
            return;
        }
        let Some(made) = stamp.render(self.unit.len()) else { return };
        let mut sectors = 0;
        let pairs = self.unit.chunks(SECTOR_BYTES).zip(made.chunks(SECTOR_BYTES));
        for (i, (found, made)) in pairs.enumerate() {
            if found == made {
                sectors |= 1 << i;
            }
        }
        if sectors != 0 {
            self.explanations.push(Explanation { stamp, sectors });
        }
    }

    /// Inverts the generator for the first bytes of each sector, with the key of a run. For each
    /// sector, returns the counter at which the content of the sector's unit would have started.
    pub(super) fn counters(&self, run: u64) -> Vec<(u64, u64)> {
        let key = key_of(run);
        let mut found = Vec::new();
        for (i, sector) in self.unit.chunks(SECTOR_BYTES).enumerate() {
            // The first sector starts with the stamp. The stamp is as long as two blocks of the
            // generator.
            let skip = if i == 0 { 2 } else { 0 };
            let Some(block) = sector.get(16 * skip..).and_then(|rest| rest.first_chunk()) else {
                continue;
            };
            let (high, low) = invert(key, *block);
            let ahead = (i * SECTOR_BYTES / 16 + skip) as u64;
            found.push((high, low.wrapping_sub(ahead)));
        }
        found
    }

    /// Returns a mask of the sectors that match a write or contain only zeros.
    pub(super) fn explained(&self) -> u8 {
        self.explanations.iter().fold(self.zero, |all, e| all | e.sectors)
    }

    /// Compares the unit with the write that matches the largest number of sectors. Returns the
    /// position of the first byte that differs, and the number of bits that differ. If no sector
    /// matches any write, uses the write `otherwise`.
    pub(super) fn difference(&self, otherwise: Stamp) -> (u16, u32) {
        let best = self.explanations.iter().max_by_key(|e| e.sectors.count_ones());
        let made = best.map_or(otherwise, |e| e.stamp).render(self.unit.len()).unwrap_or_default();
        let pairs = || self.unit.iter().zip(&made);
        let first = pairs().position(|(found, made)| found != made).unwrap_or(0);
        let bits = pairs().map(|(found, made)| (found ^ made).count_ones()).sum();
        (u16::try_from(first).unwrap_or(u16::MAX), bits)
    }
}
