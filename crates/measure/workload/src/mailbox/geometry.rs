//! The numbers that follow from a [`MailboxConfig`] and the keys of the content.

use super::config::{BLOCK_BYTES, MailboxConfig, SLOTS_MAX};

/// Size of a sector, the unit that a torn write leaves whole.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of a page before its first record: header and slot directory.
pub const PAGE_HEADER_BYTES: usize = 128;

/// Sizes and keys, derived once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Identity of the store.
    pub run_id: u64,
    /// Page size.
    pub page_bytes: u32,
    /// Slots of a page.
    pub slots: u8,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Bytes of a record's data in the log.
    pub record_bytes: u32,
    /// Bytes of every slot that do not compress; the rest repeats.
    pub random_bytes: u32,
    /// Seed of choices.
    pub seed: u64,
    /// Threshold below which a hash fills a slot at creation.
    fill_threshold: u64,
    key: u64,
}

impl Geometry {
    /// Derives from a configuration that [`MailboxConfig::validate`] accepted.
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

    /// Sectors of a page.
    pub fn sectors(&self) -> usize {
        self.page_bytes as usize / SECTOR_BYTES
    }

    /// Byte offset of a page in its file.
    pub fn page_offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.page_bytes)
    }

    /// The slots of a page that creation fills, a bit for each. The same for every database: they
    /// start as copies.
    pub fn initially_live(&self, page: u32) -> u16 {
        if self.fill_threshold == 0 {
            return 0;
        }
        let place = u64::from(page) << 8;
        let live = |slot: u64| mix(self.seed ^ mix(place | slot)) <= self.fill_threshold;
        // From the last slot on, so that each moves the ones before it up: a chain that the compiler does not do in
        // vectors, which have no product of two 64-bit numbers on x86-64 and take longer.
        (0..u64::from(self.slots)).rev().fold(0, |all, slot| all << 1 | u16::from(live(slot)))
    }

    /// Key under which a database's content of one version is drawn. With page and slot as the
    /// counter, no two blocks under one key are equal.
    pub(crate) fn content_key(&self, database: u32, version: u32) -> [u64; 2] {
        [self.key ^ mix(u64::from(database) << 8 | 1), mix(self.key ^ u64::from(version))]
    }

    /// Key of the filler in a database's log.
    pub(crate) fn log_key(&self, database: u32, epoch: u32) -> [u64; 2] {
        [self.key ^ mix(u64::from(database) << 8 | 2), mix(self.key ^ u64::from(epoch))]
    }

    /// The 16-bit check of a sector trailer.
    pub(crate) fn sector_check(&self, place: SectorPlace) -> u16 {
        let SectorPlace { database, page, sector, generation } = place;
        let where_ = u64::from(database) << 32 | u64::from(page);
        let what = u64::from(generation) << 8 | sector as u64;
        (mix(self.key ^ mix(where_) ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 48) as u16
    }
}

/// Which sector, at which generation of its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectorPlace {
    pub database: u32,
    pub page: u32,
    pub sector: usize,
    pub generation: u32,
}

/// Bytes of a sector trailer: the generation's low 16 bits and a check.
pub(crate) const TRAILER_BYTES: usize = 4;

/// Blocks of `bytes`.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes / u64::from(BLOCK_BYTES)
}

/// Finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection on 64 bits.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
