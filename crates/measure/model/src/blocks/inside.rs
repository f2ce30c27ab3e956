//! Counts which locations serve reads and receive writes. The statistics pages of storage systems
//! show the same counts. In a model, the counts are exact.

/// A location that serves reads or receives writes. The locations are ordered from the fastest to
/// the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Metadata: the data was never written, or is all zeroes.
    Zero,
    /// A cache in memory.
    Dram,
    /// A write log on flash.
    Log,
    /// Flash.
    Ssd,
    /// Magnetic disk.
    Hdd,
}

impl Source {
    /// All locations, from the fastest to the slowest.
    pub const ALL: [Self; 5] = [Self::Zero, Self::Dram, Self::Log, Self::Ssd, Self::Hdd];

    /// Returns the name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Dram => "DRAM cache",
            Self::Log => "write log",
            Self::Ssd => "SSD",
            Self::Hdd => "HDD",
        }
    }
}

/// A count of I/Os, with their total size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of I/Os.
    pub ios: u64,
    /// Total size of these I/Os in bytes.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.ios += 1;
        self.bytes += bytes;
    }
}

/// I/Os that one node received, counted by location. An I/O that used several locations is counted
/// at the slowest of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Reads by the location that served them, in the order of [`Source::ALL`].
    pub reads: [Tally; 5],
    /// Writes by the location that received them, in the order of [`Source::ALL`].
    pub writes: [Tally; 5],
    /// Reads that needed data from another node.
    pub remote_reads: Tally,
    /// Number of metadata operations.
    pub metas: u64,
}

impl NodeCounters {
    pub fn reads_all(&self) -> Tally {
        self.reads.iter().fold(Tally::default(), |sum, t| Tally {
            ios: sum.ios + t.ios,
            bytes: sum.bytes + t.bytes,
        })
    }

    /// Returns the share of the reads that a location served; 0 if there were no reads.
    pub fn read_share(&self, source: Source) -> f64 {
        let all = self.reads_all().ios;
        if all == 0 { 0.0 } else { self.reads[source as usize].ios as f64 / all as f64 }
    }
}
