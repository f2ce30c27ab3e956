//! Sources of reads and destinations of writes, like the statistics pages of storage systems. In a
//! model these figures are exact.

/// A location that serves reads or receives writes, from the fastest to the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Never written, or all zeroes: answered from metadata.
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
    /// All locations, in order.
    pub const ALL: [Self; 5] = [Self::Zero, Self::Dram, Self::Log, Self::Ssd, Self::Hdd];

    /// Name in reports.
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

/// Number of I/Os and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.ios += 1;
        self.bytes += bytes;
    }
}

/// I/Os received by one node, by location. An I/O that used several locations counts for the
/// slowest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Reads by source, in the order of [`Source::ALL`].
    pub reads: [Tally; 5],
    /// Writes by destination, in the same order.
    pub writes: [Tally; 5],
    /// Reads that needed another node.
    pub remote_reads: Tally,
    /// Metadata operations.
    pub metas: u64,
}

impl NodeCounters {
    pub fn reads_all(&self) -> Tally {
        self.reads.iter().fold(Tally::default(), |sum, t| Tally {
            ios: sum.ios + t.ios,
            bytes: sum.bytes + t.bytes,
        })
    }

    /// Returns the share of the reads that were served from a source; 0 without reads.
    pub fn read_share(&self, source: Source) -> f64 {
        let all = self.reads_all().ios;
        if all == 0 { 0.0 } else { self.reads[source as usize].ios as f64 / all as f64 }
    }
}
