//! Determines the writes that produced the sectors of a unit.

use plimsoll_sys::simd::{SECTOR_BYTES, SECTORS_MAX, invert};

use super::Stamp;
use super::format::key_of;

/// A write that may have produced sectors of the unit, and the sectors that match it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explanation {
    pub(super) stamp: Stamp,
    /// Bit `i` is set if sector `i` is exactly the sector that the write produced.
    pub(super) sectors: u8,
}

/// Findings about the sectors of a unit.
pub(super) struct Evidence<'a> {
    unit: &'a [u8],
    pub(super) explanations: Vec<Explanation>,
    /// Bit `i` is set if sector `i` is all zeros.
    pub(super) zero: u8,
}

/// Maximum number of writes that are compared with a unit: two for each sector, and the expected
/// writes.
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

    /// Returns the mask of all sectors of the unit.
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

    /// Inverts the generator, with the key of a run, for the first bytes of each sector. Returns,
    /// for each sector, the counter at which its unit would have started.
    pub(super) fn counters(&self, run: u64) -> Vec<(u64, u64)> {
        let key = key_of(run);
        let mut found = Vec::new();
        for (i, sector) in self.unit.chunks(SECTOR_BYTES).enumerate() {
            // The first sector starts with the stamp, which is as long as two blocks.
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

    /// Returns the mask of the sectors that match a write or contain only zeroes.
    pub(super) fn explained(&self) -> u8 {
        self.explanations.iter().fold(self.zero, |all, e| all | e.sectors)
    }

    /// Compares the unit with the write that most sectors match. Returns the first differing byte
    /// and the number of differing bits. If no sector matches any write, uses the write
    /// `otherwise`.
    pub(super) fn difference(&self, otherwise: Stamp) -> (u16, u32) {
        let best = self.explanations.iter().max_by_key(|e| e.sectors.count_ones());
        let made = best.map_or(otherwise, |e| e.stamp).render(self.unit.len()).unwrap_or_default();
        let pairs = || self.unit.iter().zip(&made);
        let first = pairs().position(|(found, made)| found != made).unwrap_or(0);
        let bits = pairs().map(|(found, made)| (found ^ made).count_ones()).sum();
        (u16::try_from(first).unwrap_or(u16::MAX), bits)
    }
}
