//! The generation map: the last acknowledged write of each page, stored outside the store.
//!
//! The contents of a page cannot show that a newer version of the page is missing; the map can. For
//! each page, it stores the generation of the last acknowledged write, and whether another write
//! was in flight. For each database, it stores the log position up to which commits were
//! acknowledged. A driver keeps the map in a shared file mapping, which survives a kill of the
//! process. Simulations keep it in memory ([`MemoryGenerationMap`]).

/// Entry of the map for one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark {
    /// Generation of the last acknowledged write; 0 if the page was never written.
    pub acked: u32,
    /// True if a write of generation `acked + 1` was submitted but not yet acknowledged.
    pub in_flight: bool,
}

impl Mark {
    /// The mark of a page about which nothing is known, because the map was lost. Every generation
    /// is then accepted, so lost and stale pages cannot be detected.
    pub const UNKNOWN: Self = Self { acked: u32::MAX >> 1, in_flight: true };

    /// Returns a mark without a write in flight.
    pub fn at(acked: u32) -> Self {
        Self { acked, in_flight: false }
    }

    /// Returns the 32 bits that a map stores for a page.
    pub fn to_bits(self) -> u32 {
        self.acked << 1 | u32::from(self.in_flight)
    }

    /// Creates a mark from [`Mark::to_bits`].
    pub fn from_bits(bits: u32) -> Self {
        Self { acked: bits >> 1, in_flight: bits & 1 == 1 }
    }

    /// Returns true if a page may have this generation.
    pub fn allows(self, generation: u32) -> bool {
        let newer = self.in_flight && generation == self.acked + 1;
        generation == self.acked || newer || self == Self::UNKNOWN
    }

    /// Returns the highest generation that the page may have. If the mark has no information, the
    /// page and the log determine this generation.
    pub(crate) fn newest_of(self, found: u32) -> u32 {
        if self == Self::UNKNOWN { found } else { self.newest() }
    }

    /// Returns the highest generation that may have been submitted.
    pub fn newest(self) -> u32 {
        self.acked + u32::from(self.in_flight)
    }
}

/// Store for the marks of one database.
pub trait GenerationMap: Send {
    /// Returns the mark of a page; [`Mark::default`] for a page outside the map.
    fn get(&self, page: u32) -> Mark;
    fn set(&mut self, page: u32, mark: Mark);
    /// Returns the log position up to which commits were acknowledged as durable.
    fn durable_lsn(&self) -> u64;
    /// Returns true if the map is reliable for a log that ends at `end_lsn`. After a crash of the
    /// host, a map may be older than the data. In this case, the pages and the log are not checked
    /// against the map.
    fn is_trusted(&self, end_lsn: u64) -> bool {
        let _ = end_lsn;
        true
    }
    /// Sets the log position up to which commits are acknowledged. The store calls this before it
    /// acknowledges the commits.
    fn set_durable_lsn(&mut self, lsn: u64);
}

/// A [`GenerationMap`] in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryGenerationMap {
    bits: Vec<u32>,
    durable_lsn: u64,
}

impl MemoryGenerationMap {
    /// Creates a map for `pages` unwritten pages.
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
