//! Layout of a page. This module also creates pages and identifies damage.
//!
//! ```text
//! 0   crc32c of bytes 4.. │ 4 magic │ 8 run id │ 16 database │ 20 page │ 24 generation
//! 28  slots, 3 × 0        │ 32 page LSN │ 40 zero                      64 slot directory (16 × u32)
//! 128 slot 0 │ slot 1 │ …
//! ```
//! The last four bytes of every sector of 512 B are a trailer. The trailer contains the low 16 bits
//! of the generation and a checksum. The checksum includes database, page, sector and the whole
//! generation. If the page's checksum is wrong, the trailers are checked. If the trailers are valid
//! but have different generations, sectors of two writes are mixed: the page is torn. If a trailer
//! is not valid for any generation, bytes were changed: the page is corrupt.
//!
//! The content of a slot is computed from the database, the page, the slot number and the slot's
//! version in the directory. A page can therefore be rewritten even if its bytes are not in memory.

use core::fmt;

use plimsoll_sys::simd;

use super::config::SLOTS_MAX;
use super::generation::Mark;
use super::geometry::{Geometry, PAGE_HEADER_BYTES, SECTOR_BYTES, SectorPlace, TRAILER_BYTES};

const MAGIC: u32 = u32::from_le_bytes(*b"PLMp");
const LIVE: u32 = 1 << 31;

/// Directory of a page. For each slot, it contains the version of the slot, and whether the slot
/// contains a record. A version never decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Directory(pub [u32; SLOTS_MAX]);

impl Directory {
    pub fn initial(geometry: &Geometry, page: u32) -> Self {
        let mut directory = Self::default();
        let live = geometry.initially_live(page);
        for slot in 0..usize::from(geometry.slots) {
            directory.0[slot] = 1 | if live >> slot & 1 == 1 { LIVE } else { 0 };
        }
        directory
    }

    /// Creates a directory for a driver without data, for which only the occupancy is known.
    pub fn from_occupancy(occupancy: u16) -> Self {
        let mut directory = Self::default();
        for (slot, entry) in directory.0.iter_mut().enumerate() {
            *entry = 1 | if occupancy >> slot & 1 == 1 { LIVE } else { 0 };
        }
        directory
    }

    /// Returns the occupancy, with one bit for each slot. The bit is set if the slot contains a
    /// record.
    pub fn occupancy(&self) -> u16 {
        let bits = self.0.iter().enumerate().map(|(slot, entry)| ((entry >> 31) as u16) << slot);
        bits.fold(0, |all, bit| all | bit)
    }

    /// Returns true if the slot contains a record.
    pub fn is_live(&self, slot: usize) -> bool {
        self.0.get(slot).is_some_and(|entry| entry & LIVE != 0)
    }

    /// Returns the version of the slot. The version is 0 if the slot was never used.
    pub fn version(&self, slot: usize) -> u32 {
        self.0.get(slot).map_or(0, |entry| entry & !LIVE)
    }

    /// Increments the version of a slot, and sets whether the slot contains a record.
    pub fn advance(&mut self, slot: usize, live: bool) {
        if let Some(entry) = self.0.get_mut(slot) {
            *entry = ((*entry & !LIVE) + 1) & !LIVE | if live { LIVE } else { 0 };
        }
    }
}

/// Contents of a page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHead {
    /// Number of the store that wrote the page.
    pub run_id: u64,
    /// Id of the database to which the page belongs.
    pub database: u32,
    pub page: u32,
    /// Generation: how many times the page was written.
    pub generation: u32,
    /// Log position. The page contains all of its changes that are before this position in the log.
    pub lsn: u64,
    /// Slot directory.
    pub directory: Directory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Damage {
    /// Bytes were changed. The checksum is wrong, and the page is not a mixture of two writes.
    Corrupt,
    /// The page contains sectors from different writes.
    Torn,
    /// The last acknowledged write is missing. The page has the version from before this write.
    Lost,
    /// The page has a version that is at least two writes old, or it belongs to an older store.
    Stale,
    /// The page is undamaged, but it was written for another address.
    Misdirected,
    /// The page was never written.
    Unwritten,
}

impl Damage {
    /// All kinds of damage. The order is also the order of the counters.
    pub const ALL: [Self; 6] =
        [Self::Corrupt, Self::Torn, Self::Lost, Self::Stale, Self::Misdirected, Self::Unwritten];

    /// Returns the word for this kind of damage, as used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Torn => "torn",
            Self::Lost => "lost",
            Self::Stale => "stale",
            Self::Misdirected => "misdirected",
            Self::Unwritten => "unwritten",
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A damaged page, with the kind of damage and with the observed and expected values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub damage: Damage,
    /// Header of the page; `None` if the checksum is wrong.
    pub found: Option<PageHead>,
    /// Expected generation of the page: the last acknowledged generation, or 0 if it is unknown.
    pub expected_generation: u32,
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Fills `out` with the data of a slot in one of its versions.
pub(crate) fn fill_record(g: &Geometry, place: (u32, u32, usize), version: u32, out: &mut [u8]) {
    let (database, page, slot) = place;
    let random = (g.random_bytes as usize).min(out.len());
    let counter = u64::from(page) << 8 | slot as u64;
    simd::fill(g.content_key(database, version), counter, &mut out[..random]);
    // Compressible content repeats the first 16 bytes of the slot. It is therefore not zero, and it
    // differs between slots.
    let mut done = random;
    while done < out.len() {
        let piece = 16.min(out.len() - done);
        out.copy_within(0..piece, done);
        done += piece;
    }
}

/// Renders a whole page into `out`, whose length must be the size of a page.
pub fn render(g: &Geometry, head: &PageHead, out: &mut [u8]) {
    debug_assert_eq!(out.len(), g.page_bytes as usize);
    for slot in 0..usize::from(g.slots) {
        let start = PAGE_HEADER_BYTES + slot * g.slot_bytes as usize;
        // The division of a page into slots may leave a remainder. These bytes belong to the last
        // slot.
        let end = if slot + 1 == usize::from(g.slots) {
            out.len()
        } else {
            start + g.slot_bytes as usize
        };
        let version = head.directory.version(slot);
        fill_record(g, (head.database, head.page, slot), version, &mut out[start..end]);
    }
    out[..PAGE_HEADER_BYTES].fill(0);
    put(out, 4, &MAGIC.to_le_bytes());
    put(out, 8, &head.run_id.to_le_bytes());
    put(out, 16, &head.database.to_le_bytes());
    put(out, 20, &head.page.to_le_bytes());
    put(out, 24, &head.generation.to_le_bytes());
    put(out, 28, &[g.slots]);
    put(out, 32, &head.lsn.to_le_bytes());
    for (slot, entry) in head.directory.0.iter().enumerate() {
        put(out, 64 + 4 * slot, &entry.to_le_bytes());
    }
    for sector in 0..g.sectors() {
        let place = SectorPlace {
            database: head.database,
            page: head.page,
            sector,
            generation: head.generation,
        };
        let at = (sector + 1) * SECTOR_BYTES - TRAILER_BYTES;
        put(out, at, &(head.generation as u16).to_le_bytes());
        put(out, at + 2, &g.sector_check(place).to_le_bytes());
    }
    let crc = simd::crc32c(0, &out[4..]);
    put(out, 0, &crc.to_le_bytes());
}

/// Parses the header of a page. Returns `None` if the magic number or the checksum is wrong.
pub fn parse(g: &Geometry, bytes: &[u8]) -> Option<PageHead> {
    if bytes.len() != g.page_bytes as usize || u32_at(bytes, 4) != MAGIC {
        return None;
    }
    if simd::crc32c(0, &bytes[4..]) != u32_at(bytes, 0) {
        return None;
    }
    let mut directory = Directory::default();
    for (slot, entry) in directory.0.iter_mut().enumerate() {
        *entry = u32_at(bytes, 64 + 4 * slot);
    }
    Some(PageHead {
        run_id: u64_at(bytes, 8),
        database: u32_at(bytes, 16),
        page: u32_at(bytes, 20),
        generation: u32_at(bytes, 24),
        lsn: u64_at(bytes, 32),
        directory,
    })
}

/// Checks a page against its mark. The page was read from the position of page number `page` in
/// `database`.
///
/// # Errors
/// Returns a [`Fault`] that states the kind of damage.
pub fn check(
    g: &Geometry,
    database: u32,
    page: u32,
    mark: Mark,
    bytes: &[u8],
) -> Result<PageHead, Fault> {
    let expected_generation = if mark == Mark::UNKNOWN { 0 } else { mark.acked };
    let fault = |damage, found| Fault { damage, found, expected_generation };
    let Some(head) = parse(g, bytes) else {
        return Err(fault(classify(g, database, page, mark, bytes), None));
    };
    if head.run_id != g.run_id {
        return Err(fault(Damage::Stale, Some(head)));
    }
    if (head.database, head.page) != (database, page) {
        return Err(fault(Damage::Misdirected, Some(head)));
    }
    if mark.allows(head.generation) {
        return Ok(head);
    }
    // A generation that was never issued can only come from another program.
    let damage = match mark.acked.checked_sub(head.generation) {
        Some(1) => Damage::Lost,
        Some(_) => Damage::Stale,
        None => Damage::Corrupt,
    };
    Err(fault(damage, Some(head)))
}

/// Determines the kind of damage of a page whose checksum is wrong.
fn classify(g: &Geometry, database: u32, page: u32, mark: Mark, bytes: &[u8]) -> Damage {
    let newest = match mark {
        // The first sector may come from the older or from the newer write. This loop therefore
        // searches the generations near the generation of the first sector.
        Mark::UNKNOWN => u32_at(bytes, 24).saturating_add(0x7fff),
        mark => mark.acked.saturating_add(2),
    };
    let mut first: Option<u32> = None;
    let (mut zeros, mut mixed, mut wrong) = (0, false, 0);
    for (sector, data) in bytes.chunks_exact(SECTOR_BYTES).enumerate() {
        if data.iter().all(|&byte| byte == 0) {
            zeros += 1;
            continue;
        }
        let low = u16_at(data, SECTOR_BYTES - TRAILER_BYTES);
        let check = u16_at(data, SECTOR_BYTES - TRAILER_BYTES + 2);
        let generation = nearest(newest, low);
        let place = SectorPlace { database, page, sector, generation };
        if g.sector_check(place) != check {
            wrong += 1;
        } else if *first.get_or_insert(generation) != generation {
            mixed = true;
        }
    }
    match (wrong, zeros, first) {
        (0, zeros, None) if zeros > 0 => Damage::Unwritten,
        (0, 0, Some(_)) if mixed => Damage::Torn,
        // Only the first write of a page can be mixed with sectors that were never written.
        (0, zeros, Some(1)) if zeros > 0 => Damage::Torn,
        _ => Damage::Corrupt,
    }
}

/// Returns the highest generation that is not above `newest` and whose low 16 bits are `low`.
fn nearest(newest: u32, low: u16) -> u32 {
    let candidate = newest & !0xffff | u32::from(low);
    if candidate <= newest { candidate } else { candidate.wrapping_sub(1 << 16) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mailbox::{DatabaseConfig, MailboxConfig};

    fn geometry(page_bytes: u32, record_bytes: u32, compressibility: f64) -> Geometry {
        let databases = vec![DatabaseConfig::new(0, 0, 0, 100)];
        let config = MailboxConfig::new(77, 5, databases, 4);
        let config = MailboxConfig { page_bytes, record_bytes, compressibility, ..config };
        config.validate().unwrap();
        Geometry::new(&config)
    }

    fn page(g: &Geometry, generation: u32, directory: Directory) -> Vec<u8> {
        let head =
            PageHead { run_id: 77, database: 3, page: 9, generation, lsn: 1 << 40, directory };
        let mut bytes = vec![0; g.page_bytes as usize];
        render(g, &head, &mut bytes);
        assert_eq!(parse(g, &bytes), Some(head));
        bytes
    }

    fn arbitrary_directory() -> impl Strategy<Value = Directory> {
        proptest::array::uniform16(any::<u32>()).prop_map(Directory)
    }

    proptest! {
        #[test]
        fn a_page_says_what_it_was_given(
            size in prop_oneof![Just(4096u32), Just(8192), Just(16384), Just(32768)],
            record in 16u32..2048,
            generation in 1u32..1 << 30,
            directory in arbitrary_directory(),
        ) {
            let g = geometry(size, record, 1.0);
            let bytes = page(&g, generation, directory);
            let head = check(&g, 3, 9, Mark::at(generation), &bytes).unwrap();
            prop_assert_eq!(head.directory, directory);
        }

        /// If a single byte is changed at any position, the page is reported as corrupt, because no
        /// sector is valid for two generations.
        #[test]
        fn a_changed_byte_is_corrupt(
            at in 0usize..32768, change in 1u8..=255, generation in 1u32..1 << 20,
        ) {
            let g = geometry(32768, 2000, 1.0);
            let mut bytes = page(&g, generation, Directory::default());
            bytes[at] ^= change;
            let fault = check(&g, 3, 9, Mark::at(generation), &bytes).unwrap_err();
            prop_assert_eq!(fault.damage, Damage::Corrupt);
        }

        /// If a page contains sectors of two writes, it is torn. This is so for any mixture, even
        /// if the generations of the two writes are far apart.
        #[test]
        fn mixed_sectors_are_torn(
            sectors in any::<u64>(), newer in 2u32..1 << 20, age in 1u32..60_000,
        ) {
            let older = newer.saturating_sub(age).max(1);
            prop_assume!(older != newer && sectors != 0 && sectors != u64::MAX);
            let g = geometry(32768, 2000, 1.0);
            let mut directory = Directory::default();
            let old = page(&g, older, directory);
            directory.advance(3, true);
            let mut bytes = page(&g, newer, directory);
            for sector in (0..64).filter(|sector| sectors >> sector & 1 == 1) {
                let range = sector * 512..(sector + 1) * 512;
                bytes[range.clone()].copy_from_slice(&old[range]);
            }
            let mark = Mark { acked: newer - 1, in_flight: true };
            let fault = check(&g, 3, 9, mark, &bytes).unwrap_err();
            prop_assert_eq!(fault.damage, Damage::Torn);
        }

        /// If only some sectors of a page's first write reached the disk, the page is reported as
        /// torn.
        #[test]
        fn a_first_write_can_be_torn(sectors in any::<u64>()) {
            prop_assume!(sectors != 0 && sectors != u64::MAX);
            let g = geometry(32768, 2000, 1.0);
            let mut bytes = page(&g, 1, Directory::default());
            for sector in (0..64).filter(|sector| sectors >> sector & 1 == 1) {
                bytes[sector * 512..(sector + 1) * 512].fill(0);
            }
            let mark = Mark { acked: 0, in_flight: true };
            let fault = check(&g, 3, 9, mark, &bytes).unwrap_err();
            prop_assert_eq!(fault.damage, Damage::Torn);
        }

        /// The check rejects arbitrary bytes, and never panics on them.
        #[test]
        fn any_bytes_can_be_checked(
            mut bytes in proptest::collection::vec(any::<u8>(), 4096), acked in any::<u32>(),
        ) {
            let g = geometry(4096, 200, 1.0);
            let mark = Mark::from_bits(acked);
            prop_assert!(check(&g, 3, 9, mark, &bytes).is_err());
            bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
            prop_assert!(check(&g, 3, 9, mark, &bytes).is_err());
            prop_assert!(check(&g, 3, 9, mark, &bytes[..100]).is_err());
        }

        #[test]
        fn the_nearest_generation_is_right(newest in any::<u32>(), age in 0u32..65_536) {
            prop_assume!(age <= newest);
            prop_assert_eq!(nearest(newest, (newest - age) as u16), newest - age);
        }

        #[test]
        fn versions_only_grow(changes in proptest::collection::vec((0usize..16, any::<bool>()), 60)) {
            let mut directory = Directory::default();
            for (slot, live) in changes {
                let before = directory.version(slot);
                directory.advance(slot, live);
                prop_assert_eq!(directory.version(slot), before + 1);
                prop_assert_eq!(directory.is_live(slot), live);
                prop_assert_eq!(directory.occupancy() >> slot & 1 == 1, live);
            }
        }
    }

    #[test]
    fn slots_fill_the_page() {
        // A page of 32 KiB has space for its header, its trailers and sixteen records of 2,000 B.
        // It does not have space for seventeen such records.
        let g = geometry(32768, 2000, 1.0);
        assert_eq!((g.slots, g.slot_bytes), (16, 2040));
        assert_eq!(geometry(4096, 200, 1.0).slots, 16);
        assert_eq!(geometry(4096, 2000, 1.0).slots, 1);
        assert_eq!(geometry(8192, 2000, 1.0).slots, 4);
    }

    #[test]
    fn creation_fills_as_asked() {
        let g = geometry(32768, 2000, 1.0);
        let live: u32 =
            (0..10_000).map(|p| Directory::initial(&g, p).occupancy().count_ones()).sum();
        let share = f64::from(live) / 160_000.0;
        // The test makes 160,000 random choices. The tolerance of a share is four standard
        // deviations.
        assert!((share - 0.75).abs() < 0.0044, "{share}");
    }
}
