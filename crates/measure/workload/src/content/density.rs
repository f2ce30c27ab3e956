//! Determines how many bytes of a unit cannot be compressed.

use plimsoll_sys::simd::{PART_BYTES, SECTOR_BYTES};

use super::ContentError;
use super::spec::COMPRESSIBILITY_MAX;

/// Number of bytes that remain of the filler of a sector after compression. The value is between
/// zstd's half byte and LZ4's 4 to 6 bytes (a token, one or two lengths, an offset).
const OVERHEAD_PER_SECTOR_BYTES: f64 = 3.0;

/// Average number of incompressible parts in a unit. A part has 32 bytes. The average is a whole
/// number and a fraction. Because of the fraction, some units have one more part than other units,
/// so any average compression ratio is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Density {
    parts: u8,
    /// Fraction of the average, in units of 2^-64.
    fraction: u64,
}

impl Density {
    /// Returns the density for units of `unit_bytes`. On average, the units have the compression
    /// ratio `compressibility`.
    ///
    /// # Errors
    /// [`ContentError::Compressibility`] if the ratio is not in the range 1 to 50. The same error
    /// is returned if the stamp alone would be larger than the compressed unit. Units of 512 bytes
    /// can be compressed by at most 16 to one, and units of 1024 bytes by at most 32 to one.
    pub fn new(compressibility: f64, unit_bytes: u32) -> Result<Self, ContentError> {
        let sectors = f64::from(unit_bytes) / SECTOR_BYTES as f64;
        let full = f64::from(unit_bytes) / PART_BYTES as f64;
        let most = full.min(COMPRESSIBILITY_MAX);
        if !(1.0..=most).contains(&compressibility) {
            return Err(ContentError::Compressibility {
                requested: compressibility,
                most,
                unit_bytes,
            });
        }
        if compressibility <= 1.0 {
            return Ok(Self { parts: full as u8, fraction: 0 });
        }
        let overhead = OVERHEAD_PER_SECTOR_BYTES * sectors / PART_BYTES as f64;
        let parts = (full / compressibility - overhead).clamp(1.0, full);
        let whole = libm::floor(parts);
        // The factor is 2^64. The fraction is less than 1, so the product fits into 64 bits.
        let fraction = ((parts - whole) * 18_446_744_073_709_551_616.0) as u64;
        Ok(Self { parts: whole as u8, fraction })
    }

    /// Returns how many incompressible parts the unit with the number `unit` has.
    #[must_use]
    #[inline]
    pub fn parts(&self, unit: u64) -> u8 {
        // The unit has one more part if floor((unit + 1) f) - floor(unit f) is 1. This is true
        // exactly if adding the fraction causes an overflow.
        let ahead = unit.wrapping_add(1).wrapping_mul(self.fraction);
        self.parts + u8::from(ahead < self.fraction)
    }

    /// Returns the number of incompressible parts that every unit has at least.
    #[must_use]
    pub fn parts_min(&self) -> u8 {
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incompressible_units_are_full() {
        for unit_bytes in [512, 1024, 2048, 4096] {
            let density = Density::new(1.0, unit_bytes).unwrap();
            assert!((0..1_000).all(|u| u32::from(density.parts(u)) == unit_bytes / 32));
        }
    }

    #[test]
    fn the_fraction_is_met_over_any_stretch() {
        for ratio in [1.01, 1.5, 2.0, 3.0, 7.3, 20.0, 50.0] {
            let density = Density::new(ratio, 4096).unwrap();
            let required = (128.0 / ratio - 0.75).max(1.0);
            for start in [0, 12_345, 1 << 40] {
                let sum: f64 = (start..start + 256).map(|u| f64::from(density.parts(u))).sum();
                assert!((sum / 256.0 - required).abs() < 0.01, "{ratio}: {sum}");
            }
        }
    }

    #[test]
    fn impossible_ratios_are_refused() {
        for (ratio, unit) in [(0.5, 4096), (51.0, 4096), (f64::NAN, 4096), (17.0, 512)] {
            assert!(Density::new(ratio, unit).is_err(), "{ratio} {unit}");
        }
        assert!(Density::new(16.0, 512).is_ok());
    }
}
