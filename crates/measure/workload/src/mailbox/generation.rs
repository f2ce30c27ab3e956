//! The generation map: what was last acknowledged for each page, kept outside the store.
//!
//! A page alone can't say that a newer version of it should be there. The map can. It holds, per
//! page, the generation of the last write that the target acknowledged and whether another write
//! was on its way, and per database the log position up to which commits were acknowledged. A
//! driver keeps it where a kill of the process does not reach it (a shared file mapping);
//! simulations keep it in memory ([`MemoryGenerationMap`]).

/// Entry of the map for one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark {
    /// Generation of the last acknowledged write; 0 is never written.
    pub acked: u32,
    /// A write of generation `acked + 1` was handed to the target and not yet acknowledged.
    pub in_flight: bool,
}

impl Mark {
    /// No information: the map was lost. Every generation is then accepted, so lost and stale pages
    /// cannot be detected.
    pub const UNKNOWN: Self = Self { acked: u32::MAX >> 1, in_flight: true };

    /// Acknowledged, nothing on its way.
    pub fn at(acked: u32) -> Self {
        Self { acked, in_flight: false }
    }

    /// The 32 bits that a map keeps per page.
    pub fn to_bits(self) -> u32 {
        self.acked << 1 | u32::from(self.in_flight)
    }

    /// From [`Mark::to_bits`].
    pub fn from_bits(bits: u32) -> Self {
        Self { acked: bits >> 1, in_flight: bits & 1 == 1 }
    }

    /// Whether a page of this generation is what should be there.
    pub fn allows(self, generation: u32) -> bool {
        let newer = self.in_flight && generation == self.acked + 1;
        generation == self.acked || newer || self == Self::UNKNOWN
    }

    /// The greatest generation that the page may have: where the mark does not say, that which page
    /// and log say.
    pub(crate) fn newest_of(self, found: u32) -> u32 {
        if self == Self::UNKNOWN { found } else { self.newest() }
    }

    /// The greatest generation that the target may have been given.
    pub fn newest(self) -> u32 {
        self.acked + u32::from(self.in_flight)
    }
}

/// Where the marks of one database are kept.
pub trait GenerationMap: Send {
    /// The mark of a page; [`Mark::default`] for a page beyond the map.
    fn get(&self, page: u32) -> Mark;
    /// Sets the mark of a page.
    fn set(&mut self, page: u32, mark: Mark);
    /// Log position up to which commits were acknowledged as durable.
    fn durable_lsn(&self) -> u64;
    /// Returns whether the map is reliable for a log that ends at `end_lsn`. A map that may be
    /// older than the data, as after a crash of the host, is not: pages and log are then not
    /// checked against it.
    fn is_trusted(&self, end_lsn: u64) -> bool {
        let _ = end_lsn;
        true
    }
    /// Sets the acknowledged log position. Called before the commits are acknowledged.
    fn set_durable_lsn(&mut self, lsn: u64);
}

/// A [`GenerationMap`] in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryGenerationMap {
    bits: Vec<u32>,
    durable_lsn: u64,
}

impl MemoryGenerationMap {
    /// A map of `pages` pages, none of them written.
    pub fn new(pages: u32) -> Self {
        Self { bits: vec![0; pages as usize], durable_lsn: 0 }
    }
}

impl GenerationMap for MemoryGenerationMap {
    fn get(&self, page: u32) -> Mark {
        Mark::from_bits(self.bits.get(page as usize).copied().unwrap_or(0))
    }

    fn set(&mut self, page: u32, mark: Mark) {
        if let Some(bits) = self.bits.get_mut(page as usize) {
            *bits = mark.to_bits();
        }
    }

    fn durable_lsn(&self) -> u64 {
        self.durable_lsn
    }

    fn set_durable_lsn(&mut self, lsn: u64) {
        self.durable_lsn = lsn;
    }
}
