//! Layout of the 32 bytes at the start of a unit (little-endian):
//!
//! | bytes | meaning |
//! |---|---|
//! | 0-3 | CRC-32C of the 32 bytes, computed with zeros in bytes 0-3 |
//! | 4-5 | `PL` |
//! | 6 | number of sectors in the unit (1 to 8); bit 7 is set if the unit is a duplicate |
//! | 7 | number of incompressible parts, which have 32 bytes each (1 to 128) |
//! | 8-15 | byte offset in the target; for a duplicate, the number of its content |
//! | 16-23 | number of the run |
//! | 24-27 | generation, which is 0 or 1 for a duplicate |
//! | 28-31 | number of the target |
//!
//! Bytes 4 to 31 are then combined with a mask, which is computed from the CRC. Many fields are
//! equal in all stamps of a run. Without the mask, these fields would be compressible. They are 4 %
//! of a unit of 512 bytes.

use plimsoll_sys::simd::{self, Kernels, STAMP_BYTES, Shape};

use crate::address::mix;

const MAGIC: [u8; 2] = *b"PL";
const DUPLICATE: u8 = 0x80;

/// Bit that is set in the counters of duplicates. A duplicate has no address of its own, so its
/// counter must not be mistaken for an address.
const SHARED_BIT: u64 = 1 << 63;

/// Number of counter values that the largest unit uses. Each value generates 16 bytes.
const UNIT_COUNTERS: u64 = 256;

/// Where the content of a unit comes from. Run, target, generation and origin together identify the
/// content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The content belongs to one address. The value is the byte offset in the target.
    Place(u64),
    /// Several addresses share the content. The value is the number of the content.
    Shared(u64),
}

/// Identity of a unit of content. All bytes of the unit can be computed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Number of the run that wrote the unit. Each run has a different number, so two runs never
    /// write the same data.
    pub run: u64,
    /// Number of the file or device to which the unit was written.
    pub target: u32,
    /// Number of writes to the address in this run, including this write. For a duplicate, the
    /// value is 0 or 1, and selects one of the two contents of the duplicate.
    pub generation: u32,
    /// Address of the unit, or the number of its shared content.
    pub origin: Origin,
    /// Number of sectors in the unit, from 1 to 8. A sector has 512 bytes.
    pub sectors: u8,
    /// Number of incompressible parts in the unit, from 1 to 16 for each sector. A part has 32
    /// bytes.
    pub random_parts: u8,
}

/// Returns the key from which the content of a run is generated.
pub(crate) fn key_of(run: u64) -> [u64; 2] {
    [mix(run, 0), mix(run, 1)]
}

/// Returns the word with which compressible content is filled. It contains no zero bytes, so that
/// it differs from space that was never written.
pub(crate) fn filler_of(run: u64) -> u64 {
    mix(run, 2) | 0x0101_0101_0101_0101
}

/// A stamp as four words. Whole words are faster: assembling the stamp from bytes would take 28 ns.
type Words = [u64; 4];

/// Combines all bytes except the CRC with a mask, which is computed from `crc`. A second call
/// restores the original words.
#[inline]
fn mask(words: &mut Words, crc: u32) {
    for (i, word) in words.iter_mut().enumerate() {
        let mask = mix(u64::from(crc), i as u64);
        *word ^= if i == 0 { mask & !0xFFFF_FFFF } else { mask };
    }
}

#[inline]
fn bytes_of(words: &Words) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

impl Stamp {
    /// Encodes the stamp in the form in which it is stored on the target.
    #[must_use]
    #[inline]
    pub fn encode(&self, kernels: Kernels) -> [u8; STAMP_BYTES] {
        let (shared, number) = match self.origin {
            Origin::Place(offset_bytes) => (0, offset_bytes),
            Origin::Shared(id) => (DUPLICATE, id),
        };
        let shape = u64::from(self.sectors | shared) << 48 | u64::from(self.random_parts) << 56;
        let mut words = [
            u64::from(u16::from_le_bytes(MAGIC)) << 32 | shape,
            number,
            self.run,
            u64::from(self.generation) | u64::from(self.target) << 32,
        ];
        let crc = kernels.crc32c(0, &bytes_of(&words));
        words[0] |= u64::from(crc);
        mask(&mut words, crc);
        bytes_of(&words)
    }

    /// Parses the stamp at the start of a unit. Returns `None` if there is no stamp, or if the
    /// stamp is damaged.
    #[must_use]
    pub fn decode(unit: &[u8]) -> Option<Self> {
        let bytes: &[u8; STAMP_BYTES] = unit.first_chunk()?;
        let mut words: Words =
            core::array::from_fn(|i| u64::from_le_bytes(bytes.as_chunks::<8>().0[i]));
        let crc = words[0] as u32;
        mask(&mut words, crc);
        words[0] &= !0xFFFF_FFFF;
        let [head, number, run, tail] = words;
        let magic = (head >> 32) as u16;
        if magic != u16::from_le_bytes(MAGIC) || simd::crc32c(0, &bytes_of(&words)) != crc {
            return None;
        }
        let sectors = (head >> 48) as u8;
        let shared = sectors & DUPLICATE != 0;
        let stamp = Self {
            run,
            target: (tail >> 32) as u32,
            generation: tail as u32,
            origin: if shared { Origin::Shared(number) } else { Origin::Place(number) },
            sectors: sectors & !DUPLICATE,
            random_parts: (head >> 56) as u8,
        };
        // If the stamp describes an impossible unit, another program wrote the stamp, although its
        // checksum is right.
        Shape::new(stamp.sectors.into(), stamp.random_parts.into(), 0).map(|_| stamp)
    }

    /// Returns the counter value with which the generator starts the content of the unit.
    #[inline]
    pub(crate) fn counter(&self) -> (u64, u64) {
        let high = u64::from(self.target) << 32 | u64::from(self.generation);
        let low = match self.origin {
            Origin::Place(offset_bytes) => offset_bytes / 16,
            Origin::Shared(id) => SHARED_BIT | id.wrapping_mul(UNIT_COUNTERS),
        };
        (high, low)
    }

    /// Finds the unit whose content starts at this counter of the generator. Returns its target,
    /// generation and origin; `None` if no unit of `unit_bytes` can start at this counter.
    pub(crate) fn from_counter(
        (high, low): (u64, u64),
        unit_bytes: u64,
    ) -> Option<(u32, u32, Origin)> {
        let origin = if low & SHARED_BIT == 0 {
            // If units do not consist of whole sectors, a unit may start in the middle of the 16
            // bytes of one counter value.
            let offset_bytes = low.checked_mul(16)?.checked_next_multiple_of(unit_bytes)?;
            (offset_bytes / 16 == low).then_some(Origin::Place(offset_bytes))?
        } else {
            let counters = low & !SHARED_BIT;
            let whole = counters.is_multiple_of(UNIT_COUNTERS);
            whole.then_some(Origin::Shared(counters / UNIT_COUNTERS))?
        };
        Some(((high >> 32) as u32, high as u32, origin))
    }

    /// Returns the total size of the whole sectors in the unit, in bytes.
    #[must_use]
    pub fn unit_bytes(&self) -> usize {
        usize::from(self.sectors) * simd::SECTOR_BYTES
    }

    /// Returns the layout of the unit. Returns `None` if the stamp describes an impossible layout.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        Shape::new(self.sectors.into(), self.random_parts.into(), filler_of(self.run))
    }

    /// Fills the part of a unit that follows the whole sectors. This part is incompressible, and it
    /// is shorter than a sector.
    #[inline]
    pub(crate) fn fill_tail(&self, kernels: Kernels, tail: &mut [u8]) {
        let (high, low) = self.counter();
        let sectors_counters = self.unit_bytes() as u64 / 16;
        kernels.fill_at(key_of(self.run), high, low.wrapping_add(sectors_counters), tail);
    }

    /// Returns true if `tail` is exactly the part of this unit that follows the whole sectors.
    #[inline]
    pub(crate) fn has_tail(&self, kernels: Kernels, tail: &[u8]) -> bool {
        if tail.is_empty() {
            return true;
        }
        let mut expected = [0; simd::SECTOR_BYTES];
        let Some(expected) = expected.get_mut(..tail.len()) else { return false };
        self.fill_tail(kernels, expected);
        expected == tail
    }

    /// Generates the unit that this stamp identifies. Returns `None` if the stamp describes an
    /// impossible layout, or if the size of the unit is not `size_bytes`.
    #[must_use]
    pub(crate) fn render(&self, size_bytes: usize) -> Option<Vec<u8>> {
        let kernels = Kernels::best();
        let shape = self.shape()?;
        let tail_bytes = size_bytes.checked_sub(shape.unit_bytes())?;
        if tail_bytes >= simd::SECTOR_BYTES {
            return None;
        }
        let mut unit = vec![0; size_bytes];
        let stamp = self.encode(kernels);
        let (sectors, tail) = unit.split_at_mut(shape.unit_bytes());
        self.fill_tail(kernels, tail);
        kernels.make_unit(key_of(self.run), self.counter(), &shape, &stamp, sectors).then_some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_stamp() -> impl Strategy<Value = Stamp> {
        let origin = prop_oneof![
            (0u64..1 << 51).prop_map(|unit| Origin::Place(unit * 4096)),
            (0u64..1 << 50).prop_map(Origin::Shared),
        ];
        (any::<(u64, u32, u32)>(), origin, 1u8..=8, 1u8..=16).prop_map(
            |((run, target, generation), origin, sectors, parts)| Stamp {
                run,
                target,
                generation,
                origin,
                sectors,
                random_parts: sectors * parts,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(stamp in any_stamp()) {
            prop_assert_eq!(Stamp::decode(&stamp.encode(Kernels::best())), Some(stamp));
        }

        #[test]
        fn a_damaged_stamp_is_none(stamp in any_stamp(), bit in 0usize..256) {
            let mut bytes = stamp.encode(Kernels::best());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Stamp::decode(&bytes), None);
        }

        #[test]
        fn any_bytes_are_no_stamp_or_a_possible_one(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(Stamp::decode(&bytes).is_none_or(|s| s.shape().is_some()));
        }

        #[test]
        fn the_counter_names_the_origin(stamp in any_stamp()) {
            let found = Stamp::from_counter(stamp.counter(), 4096);
            prop_assert_eq!(found, Some((stamp.target, stamp.generation, stamp.origin)));
        }
    }

    #[test]
    fn a_unit_starts_with_its_stamp_and_has_no_zero_bytes_in_its_filler() {
        let stamp = Stamp {
            run: 3,
            target: 1,
            generation: 9,
            origin: Origin::Place(81_920),
            sectors: 8,
            random_parts: 8,
        };
        let unit = stamp.render(stamp.unit_bytes()).unwrap();
        assert_eq!(Stamp::decode(&unit), Some(stamp));
        assert!(unit[32..512].iter().all(|byte| *byte != 0));
    }
}
