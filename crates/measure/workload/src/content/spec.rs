//! Parameters that specify content.

use plimsoll_sys::simd::{SECTOR_BYTES, SECTORS_MAX};

/// Parameters of a target's content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentSpec {
    /// Compression ratio, as N in "N to 1": 1 is incompressible. At most 50.
    pub compressibility: f64,
    /// Share of the target that is a copy of another part of the target; below 1. Storage that
    /// deduplicates blocks only needs the share `1 - duplicate_share` of the space.
    pub duplicate_share: f64,
    /// Size of the part of each target that is filled with content, in bytes. It only affects
    /// duplicates.
    pub space_bytes: u64,
    /// Size of a unit in bytes: 512, 1024, 2048 or 4096; or another size that [`is_unit`] accepts,
    /// for incompressible content without duplicates. See [`unit_bytes_for`].
    pub unit_bytes: u32,
    /// Number of the run. Each run has a different number. All content depends on it, and each
    /// stamp contains it.
    pub run: u64,
    /// True if units have stamps. Without stamps, verification is impossible.
    pub stamps: bool,
}

/// Maximum compression ratio. With a larger ratio, the stamps alone would be too large.
pub(super) const COMPRESSIBILITY_MAX: f64 = 50.0;

/// Reason why content cannot be generated as specified.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ContentError {
    /// The ratio is out of range.
    #[error(
        "the compressibility is {requested}, but must be between 1 and {most} for units of \
         {unit_bytes} bytes"
    )]
    Compressibility {
        requested: f64,
        /// Maximum compression ratio of units of this size.
        most: f64,
        /// Size of a unit in bytes.
        unit_bytes: u32,
    },
    /// The share is out of range, or the space is too small for it.
    #[error(
        "a duplicate share of {requested} is not possible in {space_bytes} bytes: the share must \
         be at least 0 and below 1, and the originals must fit into the space next to their \
         duplicates"
    )]
    Duplicates {
        requested: f64,
        /// Size of the space in bytes.
        space_bytes: u64,
    },
    /// The unit size is not supported.
    #[error(
        "a unit can't be {unit_bytes} bytes: use 512, 1024, 2048 or 4096; other sizes above 512 \
         bytes require a compressibility of 1 and no duplicates"
    )]
    Unit {
        /// The requested unit size in bytes.
        unit_bytes: u32,
    },
    /// A transfer does not consist of whole units.
    #[error(
        "a transfer of {size_bytes} bytes at byte {offset_bytes} does not consist of whole units \
         of {unit_bytes} bytes: use a smaller unit"
    )]
    Misaligned {
        offset_bytes: u64,
        size_bytes: usize,
        /// Size of a unit in bytes.
        unit_bytes: u32,
    },
}

/// Maximum size of a unit: eight sectors and a part of a ninth.
const UNIT_BYTES_MAX: u32 = (SECTOR_BYTES * SECTORS_MAX) as u32 - 1;

/// Returns true if content can have units of this size.
#[must_use]
pub fn is_unit(unit_bytes: u32) -> bool {
    let whole_sectors = unit_bytes.is_multiple_of(SECTOR_BYTES as u32);
    (SECTOR_BYTES as u32..=UNIT_BYTES_MAX + 1).contains(&unit_bytes)
        && (!whole_sectors || unit_bytes.is_power_of_two())
}

/// Returns the largest unit size that divides all these sizes and offsets. If they are whole
/// sectors, this is 4096, 2048, 1024 or 512 bytes. Otherwise it is another size, such as 2300 for
/// records of 2300 bytes. `None` if no unit size divides them.
#[must_use]
pub fn unit_bytes_for(sizes_and_offsets: &[u64]) -> Option<u32> {
    let fits = |unit: &u32| sizes_and_offsets.iter().all(|n| n.is_multiple_of(u64::from(*unit)));
    let sectors = [4096, 2048, 1024, SECTOR_BYTES as u32].into_iter();
    let others = (SECTOR_BYTES as u32..=UNIT_BYTES_MAX).rev().filter(|unit| is_unit(*unit));
    sectors.chain(others).find(fits)
}
