//! Parameters that specify content.

use plimsoll_sys::simd::{SECTOR_BYTES, SECTORS_MAX};

/// Parameters of a target's content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentSpec {
    /// Compression ratio, at most 50. A value of N means "N to 1", and 1 means incompressible.
    pub compressibility: f64,
    /// Share of the target whose content is a copy of other content in the target. The share is
    /// less than 1. If the storage deduplicates blocks, it needs only the fraction `1 -
    /// duplicate_share` of the space.
    pub duplicate_share: f64,
    /// Number of bytes of each target that are filled with content. Only the choice of duplicates
    /// depends on it.
    pub space_bytes: u64,
    /// Size of a unit in bytes: 512, 1024, 2048 or 4096. For incompressible content without
    /// duplicates, other sizes are also possible ([`is_unit`]). See [`unit_bytes_for`].
    pub unit_bytes: u32,
    /// Number of the run. Each run has a different number. All content depends on this number, and
    /// each stamp contains it.
    pub run: u64,
    /// True if units have stamps. Without stamps, verification is impossible.
    pub stamps: bool,
}

/// Maximum compression ratio. If the ratio were larger, the stamps alone would be larger than the
/// compressed units.
pub(super) const COMPRESSIBILITY_MAX: f64 = 50.0;

/// Reason why the specified content cannot be generated.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ContentError {
    /// The compression ratio is out of range.
    #[error(
        "the compressibility is {requested}, but must be between 1 and {most} for units of \
         {unit_bytes} bytes"
    )]
    Compressibility {
        requested: f64,
        /// Maximum compression ratio for units of this size.
        most: f64,
        /// Size of a unit in bytes.
        unit_bytes: u32,
    },
    /// The share of duplicates is out of range, or the space is too small for it.
    #[error(
        "a duplicate share of {requested} is not possible in {space_bytes} bytes: the share must be \
         at least 0 and below 1, and the space must be large enough for the originals and their \
         duplicates"
    )]
    Duplicates {
        requested: f64,
        /// Size of the space in bytes.
        space_bytes: u64,
    },
    /// The size of a unit is not supported.
    #[error(
        "a unit of {unit_bytes} bytes is not possible: use 512, 1024, 2048 or 4096 bytes; only \
         incompressible content without duplicates can have other units, of 513 to 4095 bytes"
    )]
    Unit {
        /// Requested size of a unit in bytes.
        unit_bytes: u32,
    },
    /// The offset or size of a transfer is not a multiple of the unit size.
    #[error(
        "a transfer of {size_bytes} bytes at byte {offset_bytes} does not consist of whole units of \
         {unit_bytes} bytes: use a smaller unit"
    )]
    Misaligned {
        offset_bytes: u64,
        size_bytes: usize,
        /// Size of a unit in bytes.
        unit_bytes: u32,
    },
}

/// Maximum size of a unit. It is seven whole sectors and a part of an eighth sector.
const UNIT_BYTES_MAX: u32 = (SECTOR_BYTES * SECTORS_MAX) as u32 - 1;

/// Returns true if units of this size are supported.
#[must_use]
pub fn is_unit(unit_bytes: u32) -> bool {
    let whole_sectors = unit_bytes.is_multiple_of(SECTOR_BYTES as u32);
    (SECTOR_BYTES as u32..=UNIT_BYTES_MAX + 1).contains(&unit_bytes)
        && (!whole_sectors || unit_bytes.is_power_of_two())
}

/// Returns the largest unit size that divides all these sizes and offsets. If all of them are whole
/// sectors, the result is 4096, 2048, 1024 or 512 bytes. Otherwise it is another size, such as 2300
/// for records of 2300 bytes. Returns `None` if no unit size divides all of them.
#[must_use]
pub fn unit_bytes_for(sizes_and_offsets: &[u64]) -> Option<u32> {
    let fits = |unit: &u32| sizes_and_offsets.iter().all(|n| n.is_multiple_of(u64::from(*unit)));
    let sectors = [4096, 2048, 1024, SECTOR_BYTES as u32].into_iter();
    let others = (SECTOR_BYTES as u32..=UNIT_BYTES_MAX).rev().filter(|unit| is_unit(*unit));
    sectors.chain(others).find(fits)
}
