//! Combines several regions of several files into one sequence of slots.

use super::AddressError;

/// Range of a file or device that operations may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index of the file in the file table.
    pub file: u32,
    /// Offset in the file at which the region starts.
    pub offset_bytes: u64,
    /// Length of the region in bytes.
    pub size_bytes: u64,
}

/// File and offset of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the file in the file table.
    pub file: u32,
    /// Offset in the file, in bytes.
    pub offset_bytes: u64,
}

/// Several regions as one sequence of slots. The distance between a slot and the start of its
/// region is a multiple of a fixed number of bytes. A transfer of the largest size fits between
/// each slot and the end of its region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    regions: Vec<Region>,
    /// For each region: the number of its first slot. The last entry is the total number of slots.
    starts: Vec<u64>,
    slot_bytes: u64,
    /// Number of slots in each region; `None` if this number is not the same for all regions.
    each: Option<u64>,
}

impl Space {
    /// Creates the slots of `regions`, in the order of the regions. Within a region, the distance
    /// between slots is `slot_bytes`. A transfer of `transfer_bytes` fits at each slot. Regions
    /// that are smaller than one transfer are omitted.
    ///
    /// # Errors
    /// [`AddressError::NoGrid`] if `slot_bytes` is 0. [`AddressError::NoRoom`] if there is no slot.
    /// [`AddressError::TooLarge`] if the end of a region is above 2^63.
    pub fn new(
        regions: &[Region],
        slot_bytes: u64,
        transfer_bytes: u64,
    ) -> Result<Self, AddressError> {
        if slot_bytes == 0 {
            return Err(AddressError::NoGrid);
        }
        let mut space = Self { regions: Vec::new(), starts: vec![0], slot_bytes, each: None };
        let (mut slots, mut bytes) = (0u64, 0u64);
        for region in regions.iter().filter(|region| region.size_bytes >= transfer_bytes) {
            let end = region.offset_bytes.checked_add(region.size_bytes);
            let total = bytes.checked_add(region.size_bytes);
            let fits = |n: Option<u64>| n.filter(|n| i64::try_from(*n).is_ok());
            let (Some(_), Some(total)) = (fits(end), fits(total)) else {
                return Err(AddressError::TooLarge);
            };
            bytes = total;
            slots += (region.size_bytes - transfer_bytes) / slot_bytes + 1;
            space.regions.push(*region);
            space.starts.push(slots);
        }
        let first = space.starts.get(1).copied();
        let first = first.ok_or(AddressError::NoRoom { transfer_bytes })?;
        let even = space.starts.windows(2).all(|pair| pair[1] - pair[0] == first);
        space.each = even.then_some(first);
        Ok(space)
    }

    /// Returns the number of slots. There is at least one slot.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.starts.last().copied().unwrap_or(1)
    }

    /// Returns the distance between two neighbouring slots, in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// Returns the region that contains `slot`, and the index of the slot in this region. If `slot`
    /// is not less than [`Space::slots`], it is reduced modulo this number.
    #[inline]
    fn find(&self, slot: u64) -> (usize, u64) {
        let slots = self.slots();
        let slot = if slot < slots { slot } else { slot % slots };
        match self.each {
            Some(_) if self.regions.len() == 1 => (0, slot),
            Some(each) => ((slot / each) as usize, slot % each),
            None => {
                let region = self.starts.partition_point(|start| *start <= slot) - 1;
                (region, slot - self.starts[region])
            }
        }
    }

    /// Returns the first slot of the region that follows the region of `slot`. Returns 0 if `slot`
    /// is in the last region.
    #[must_use]
    pub fn next_region(&self, slot: u64) -> u64 {
        let (at, _) = self.find(slot);
        self.starts.get(at + 1).copied().filter(|start| *start < self.slots()).unwrap_or(0)
    }

    /// Returns the number of bytes between `slot` and the end of its region.
    #[must_use]
    pub fn room_bytes(&self, slot: u64) -> u64 {
        let (at, within) = self.find(slot);
        self.regions[at].size_bytes - within * self.slot_bytes
    }

    /// Returns the file and the offset of `slot`.
    #[must_use]
    #[inline]
    pub fn place(&self, slot: u64) -> Place {
        let (at, within) = self.find(slot);
        let region = &self.regions[at];
        Place { file: region.file, offset_bytes: region.offset_bytes + within * self.slot_bytes }
    }

    /// Returns the address of a transfer of `size_bytes` at `slot`. The offset from the start of
    /// the region is a multiple of `align_bytes`. If the transfer would end after the end of the
    /// region, the offset is decreased. Returns `None` if the region is smaller than the transfer.
    #[must_use]
    #[inline]
    pub fn place_of(&self, slot: u64, size_bytes: u64, align_bytes: u64) -> Option<Place> {
        let (at, within) = self.find(slot);
        let region = &self.regions[at];
        let highest = region.size_bytes.checked_sub(size_bytes)?;
        let required = (within * self.slot_bytes).min(highest);
        let aligned = if align_bytes <= 1 || required.is_multiple_of(align_bytes) {
            required
        } else {
            required - required % align_bytes
        };
        Some(Place { file: region.file, offset_bytes: region.offset_bytes + aligned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(file: u32, offset_bytes: u64, size_bytes: u64) -> Region {
        Region { file, offset_bytes, size_bytes }
    }

    #[test]
    fn slots_lie_in_their_regions_one_after_the_other() {
        for regions in [
            vec![region(0, 0, 40_960)],
            vec![region(3, 8192, 12_288), region(5, 0, 8_192), region(6, 4096, 4096 * 7 + 100)],
            vec![region(1, 0, 16_384), region(2, 512, 16_384)],
        ] {
            let space = Space::new(&regions, 4096, 4096).unwrap();
            let mut expected = Vec::new();
            for r in &regions {
                for i in 0..r.size_bytes / 4096 {
                    expected.push(Place { file: r.file, offset_bytes: r.offset_bytes + i * 4096 });
                }
            }
            let places: Vec<Place> = (0..space.slots()).map(|s| space.place(s)).collect();
            assert_eq!(places, expected);
            assert_eq!(space.place(space.slots() + 1), expected[1]);
        }
    }

    #[test]
    fn larger_transfers_are_aligned_and_stay_inside() {
        let regions = [region(0, 1 << 20, 100_000), region(1, 0, 65_536)];
        let space = Space::new(&regions, 4096, 4096).unwrap();
        for slot in 0..space.slots() {
            for size in [4096u64, 8192, 65_536] {
                let place = space.place_of(slot, size, size).unwrap();
                let r = &regions[place.file as usize];
                let within = place.offset_bytes - r.offset_bytes;
                assert!(
                    within.is_multiple_of(size) && within + size <= r.size_bytes,
                    "{slot} {size}"
                );
            }
            assert_eq!(space.place_of(slot, 1 << 20, 4096), None);
        }
    }

    #[test]
    fn transfers_longer_than_their_distance_fit_everywhere() {
        let space = Space::new(&[region(0, 0, 10_000)], 512, 4096).unwrap();
        assert_eq!(space.slots(), (10_000 - 4096) / 512 + 1);
        assert!(space.place(space.slots() - 1).offset_bytes + 4096 <= 10_000);
    }

    #[test]
    fn spaces_without_room_are_refused() {
        let no_room = Err(AddressError::NoRoom { transfer_bytes: 4096 });
        assert_eq!(Space::new(&[], 4096, 4096), no_room);
        assert_eq!(Space::new(&[region(0, 0, 4095)], 4096, 4096), no_room);
        assert_eq!(Space::new(&[region(0, 0, 4096)], 0, 4096), Err(AddressError::NoGrid));
        let huge = [region(0, u64::MAX - 5, 4096)];
        assert_eq!(Space::new(&huge, 4096, 4096), Err(AddressError::TooLarge));
        let halves = [region(0, 0, 1 << 62), region(1, 0, 1 << 62)];
        assert_eq!(Space::new(&halves, 4096, 4096), Err(AddressError::TooLarge));
    }

    #[test]
    fn exbibytes_are_addressed() {
        let space = Space::new(&[region(0, 0, i64::MAX as u64)], 512, 512).unwrap();
        let last = space.slots() - 1;
        assert_eq!(space.place(last).offset_bytes, last * 512);
    }
}
