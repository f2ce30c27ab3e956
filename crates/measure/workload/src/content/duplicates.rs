//! Chooses which extents have the same content as other extents.
//!
//! A target is divided into extents of up to 1 MiB. A permutation selects the exact number of
//! extents with shared content. These extents are scattered over the target. Each shared content
//! has nearly the same number of copies ([`COPIES`] if the space is large enough). Only whole
//! extents share content. Deduplication in blocks of 4 KiB, 64 KiB or (in spaces of 256 MiB or
//! more) 1 MiB therefore finds the same share.
//!
//! Successive generations of a duplicate alternate between two contents, so that a lost write is
//! detectable. One half of the copies start with the first content, and the other half with the
//! second. The share of duplicates therefore stays constant.

use super::ContentError;
use crate::address::Permutation;

/// Number of copies that each content has, if the space is large enough.
const COPIES: u64 = 8;

/// Maximum size of an extent in bytes.
const EXTENT_BYTES_MAX: u64 = 1 << 20;

/// Minimum number of extents. The extent size is halved until there are at least this many extents.
/// The share of duplicates can only be set in steps of one extent, so it is more accurate with many
/// extents.
const EXTENTS_MIN: u64 = 256;

/// Constant that is mixed into the key of the permutation. Because of it, this key differs from all
/// other keys that are derived from the run's number.
const KEY: u64 = 0xD0B1;

/// Extents of one target that have shared content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicates {
    order: Permutation,
    /// Number of extents that have shared content. An extent has shared content if its rank in the
    /// permutation is less than this number.
    shared: u64,
    /// Number of pairs of contents that are assigned to these extents.
    pairs: u64,
    units_per_extent: u64,
}

/// Identifies the content of a unit in an extent with shared content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DuplicateContent {
    /// Number that identifies the content of the first unit in the extent.
    pub(super) first_id: u64,
    /// Which content of the pair the first generation has: 0 for the first content, 1 for the
    /// second content.
    pub(super) phase: u32,
}

impl Duplicates {
    /// Selects extents with shared content, so that the given share of `space_bytes` consists of
    /// copies. Returns `None` if the share is 0.
    ///
    /// # Errors
    /// [`ContentError::Duplicates`] if the share is impossible.
    pub fn new(
        share: f64,
        space_bytes: u64,
        unit_bytes: u32,
        run: u64,
    ) -> Result<Option<Self>, ContentError> {
        let refused = Err(ContentError::Duplicates { requested: share, space_bytes });
        if share == 0.0 {
            return Ok(None);
        }
        let unit_bytes = u64::from(unit_bytes);
        let mut extent = EXTENT_BYTES_MAX;
        while extent > unit_bytes && space_bytes / extent < EXTENTS_MIN {
            extent /= 2;
        }
        let extents = space_bytes / extent;
        if !(0.0..1.0).contains(&share) {
            return refused;
        }
        let copies = libm::round(share * extents as f64) as u64;
        // Each shared content also needs an extent for its original, so enough other extents must
        // exist.
        let room = extents.saturating_sub(copies) / 2;
        let pairs = (copies / (2 * (COPIES - 1))).clamp(1, room.max(1));
        if room == 0 || copies == 0 {
            return refused;
        }
        Ok(Some(Self {
            order: Permutation::new(extents, crate::address::mix(run, KEY)),
            shared: copies + 2 * pairs,
            pairs,
            units_per_extent: extent / unit_bytes,
        }))
    }

    #[must_use]
    pub fn units_per_extent(&self) -> u64 {
        self.units_per_extent
    }

    /// Returns the shared content of an extent, or `None` if the extent shares no content. An
    /// extent outside the space never shares content.
    #[inline]
    pub(super) fn of_extent(&self, extent: u64) -> Option<DuplicateContent> {
        if extent >= self.order.n() {
            return None;
        }
        let rank = self.order.at(extent);
        (rank < self.shared).then(|| DuplicateContent {
            first_id: rank / 2 % self.pairs * self.units_per_extent,
            phase: (rank & 1) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_share_is_exact_to_an_extent_and_copies_are_even() {
        for (share, space) in [
            (0.3, 1u64 << 30),
            (0.3, 1 << 40),
            (0.05, 1 << 32),
            (0.9, 1 << 32),
            (0.99, 1 << 32),
            (0.5, 64 << 20),
            (0.3, 1 << 20),
        ] {
            let Some(d) = Duplicates::new(share, space, 4096, 7).unwrap() else { panic!() };
            let extents = d.order.n().min(100_000);
            let mut contents: HashMap<(u64, u32), u64> = HashMap::new();
            let mut own = 0u64;
            for extent in 0..extents {
                match d.of_extent(extent) {
                    Some(s) => *contents.entry((s.first_id, s.phase)).or_default() += 1,
                    None => own += 1,
                }
            }
            let copies: u64 = contents.values().map(|n| n - 1).sum();
            assert_eq!(own + copies + contents.len() as u64, extents);
            if extents == d.order.n() {
                let got = copies as f64 / extents as f64;
                assert!((got - share).abs() <= 0.5 / extents as f64 + 1e-9, "{share}: {got}");
                let (least, most) =
                    (contents.values().min().unwrap(), contents.values().max().unwrap());
                assert!(*most <= least + 2 && *least >= 2, "{least} to {most}");
            }
        }
    }

    #[test]
    fn impossible_shares_are_refused() {
        for (share, space) in [(1.0, 1 << 30), (-0.1, 1 << 30), (f64::NAN, 1 << 30), (0.3, 8192)] {
            assert!(Duplicates::new(share, space, 4096, 1).is_err(), "{share}");
        }
        assert_eq!(Duplicates::new(0.0, 0, 4096, 1), Ok(None));
    }
}
