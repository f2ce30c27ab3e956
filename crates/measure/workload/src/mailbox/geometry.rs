//! Sizes that are computed from a [`MailboxConfig`], and the keys from which content is generated.

use super::config::{BLOCK_BYTES, MailboxConfig, SLOTS_MAX};

/// Size of a sector in bytes. A torn write never splits a sector.
pub const SECTOR_BYTES: usize = 512;
/// Number of bytes in a page before its first record. They contain the header and the directory of
/// slots.
pub const PAGE_HEADER_BYTES: usize = 128;

/// Sizes and keys that are computed from the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Number that identifies the mail store.
    pub run_id: u64,
    /// Page size.
    pub page_bytes: u32,
    /// Number of slots in a page.
    pub slots: u8,
    /// Size of a slot in bytes.
    pub slot_bytes: u32,
    /// Number of bytes of data that a record occupies in the log.
    pub record_bytes: u32,
    /// Number of incompressible bytes in each slot. The other bytes of the slot repeat a pattern.
    pub random_bytes: u32,
    /// Seed that determines which slots are filled.
    pub seed: u64,
    /// Threshold for the hash of a slot. Creation fills the slots whose hash is below this
    /// threshold.
    fill_threshold: u64,
    key: u64,
}

impl Geometry {
    /// Computes the sizes and keys. [`MailboxConfig::validate`] must have accepted the
    /// configuration.
    pub fn new(config: &MailboxConfig) -> Self {
        let body = config.page_bytes - PAGE_HEADER_BYTES as u32;
        let trailers = TRAILER_BYTES as u32 * config.page_bytes / SECTOR_BYTES as u32;
        let fit = (body - trailers) / config.record_bytes;
        let slots = fit.clamp(1, SLOTS_MAX as u32);
        let slot_bytes = body / slots;
        let random = f64::from(slot_bytes) / config.compressibility;
        Self {
            run_id: config.run_id,
            page_bytes: config.page_bytes,
            slots: slots as u8,
            slot_bytes,
            record_bytes: config.record_bytes,
            random_bytes: (random as u32).clamp(16, slot_bytes.max(16)),
            seed: config.seed,
            fill_threshold: (config.initial_fill * u64::MAX as f64) as u64,
            key: mix(config.run_id ^ mix(config.seed)),
        }
    }

    /// Returns the number of sectors in a page.
    pub fn sectors(&self) -> usize {
        self.page_bytes as usize / SECTOR_BYTES
    }

    /// Returns the offset at which a page starts in its file, in bytes.
    pub fn page_offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.page_bytes)
    }

    /// Returns which slots of a page are filled at creation. The result has one bit for each slot.
    /// It is the same for all databases, because each database starts as a copy of the first
    /// database.
    pub fn initially_live(&self, page: u32) -> u16 {
        if self.fill_threshold == 0 {
            return 0;
        }
        let place = u64::from(page) << 8;
        let live = |slot: u64| mix(self.seed ^ mix(place | slot)) <= self.fill_threshold;
        // The loop starts at the last slot. Each iteration shifts the previous slots up. The
        // iterations depend on one another, so the compiler does not vectorise the loop. Vector
        // code would be slower, because x86-64 cannot multiply vectors of 64-bit numbers.
        (0..u64::from(self.slots)).rev().fold(0, |all, slot| all << 1 | u16::from(live(slot)))
    }

    /// Returns the key for the content of one version in a database. The counter is computed from
    /// the page and the slot. Any two blocks with the same key therefore differ.
    pub(crate) fn content_key(&self, database: u32, version: u32) -> [u64; 2] {
        [self.key ^ mix(u64::from(database) << 8 | 1), mix(self.key ^ u64::from(version))]
    }

    /// Returns the key for the filler in the log of a database.
    pub(crate) fn log_key(&self, database: u32, epoch: u32) -> [u64; 2] {
        [self.key ^ mix(u64::from(database) << 8 | 2), mix(self.key ^ u64::from(epoch))]
    }

    /// Returns the 16-bit checksum for the trailer of a sector.
    pub(crate) fn sector_check(&self, place: SectorPlace) -> u16 {
        let SectorPlace { database, page, sector, generation } = place;
        let where_ = u64::from(database) << 32 | u64::from(page);
        let what = u64::from(generation) << 8 | sector as u64;
        (mix(self.key ^ mix(where_) ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 48) as u16
    }
}

/// The hash is computed from the position of the sector and from the generation of its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectorPlace {
    pub database: u32,
    pub page: u32,
    pub sector: usize,
    pub generation: u32,
}

/// Returns the bytes of a sector's trailer: the low 16 bits of the generation, and a checksum.
pub(crate) const TRAILER_BYTES: usize = 4;

/// Returns how many log blocks `bytes` contains.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes / u64::from(BLOCK_BYTES)
}

/// Finaliser (last mixing step) of SplitMix64 (Steele, Lea and Flood 2014). It is a bijection on 64
/// bits.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
