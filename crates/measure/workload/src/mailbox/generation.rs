//! The generation map. It records the last acknowledged write of each page, and is stored outside
//! the store.
//!
//! If a newer version of a page is missing, the contents of the page do not show this. The map
//! shows it. For each page, the map contains the generation of the last acknowledged write, and
//! whether another write was in flight. For each database, it contains the log position up to which
//! commits were acknowledged. A driver stores the map in a shared file mapping, which survives if
//! the process is killed. Simulations store the map in memory ([`MemoryGenerationMap`]).

/// Entry for one page in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark {
    /// Generation of the last acknowledged write; 0 if the page was never written.
    pub acked: u32,
    /// True if a write of generation `acked + 1` was submitted and has not been acknowledged.
    pub in_flight: bool,
}

impl Mark {
    /// Mark of a page about which nothing is known, because the map was lost. The check of such a
    /// page accepts every generation, so it cannot detect lost and stale pages.
    pub const UNKNOWN: Self = Self { acked: u32::MAX >> 1, in_flight: true };

    /// Creates the mark of a page that has no write in flight.
    pub fn at(acked: u32) -> Self {
        Self { acked, in_flight: false }
    }

    /// Returns the mark in the form in which a map stores it: 32 bits.
    pub fn to_bits(self) -> u32 {
        self.acked << 1 | u32::from(self.in_flight)
    }

    /// Creates a mark from the result of [`Mark::to_bits`].
    pub fn from_bits(bits: u32) -> Self {
        Self { acked: bits >> 1, in_flight: bits & 1 == 1 }
    }

    /// Returns true if a page may have this generation.
    pub fn allows(self, generation: u32) -> bool {
        let newer = self.in_flight && generation == self.acked + 1;
        generation == self.acked || newer || self == Self::UNKNOWN
    }

    /// Returns the highest generation that the page may have. If the mark contains no information,
    /// this generation is computed from the page and the log.
    pub(crate) fn newest_of(self, found: u32) -> u32 {
        if self == Self::UNKNOWN { found } else { self.newest() }
    }

    /// Returns the highest generation of all writes that may have been submitted.
    pub fn newest(self) -> u32 {
        self.acked + u32::from(self.in_flight)
    }
}

/// Storage for the marks of one database.
pub trait GenerationMap: Send {
    /// Returns the mark of a page. For a page outside the map, returns [`Mark::default`].
    fn get(&self, page: u32) -> Mark;
    fn set(&mut self, page: u32, mark: Mark);
    /// Returns the log position up to which commits were acknowledged as durable.
    fn durable_lsn(&self) -> u64;
    /// Returns true if the map is reliable and the log ends at `end_lsn`. After a crash of the
    /// host, a map may be older than the data. In this case, pages and log are not compared with
    /// the map.
    fn is_trusted(&self, end_lsn: u64) -> bool {
        let _ = end_lsn;
        true
    }
    /// Stores the log position up to which commits are acknowledged. The store calls this function
    /// before it acknowledges these commits.
    fn set_durable_lsn(&mut self, lsn: u64);
}

/// A [`GenerationMap`] that is stored in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryGenerationMap {
    bits: Vec<u32>,
    durable_lsn: u64,
}

impl MemoryGenerationMap {
    /// Creates a map for `pages` pages that were never written.
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
