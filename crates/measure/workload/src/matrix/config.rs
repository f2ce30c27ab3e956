//! Configuration of the streams of a matrix.

use std::sync::Arc;

use plimsoll_plan::{MetadataMix, Pattern, SizeShare, SyncPolicy};

use super::{FileSet, metadata};
use crate::address::AddressError;
use crate::trace::Replay;

/// Configuration of a stream, whose clients all have the same mix of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Name of the stream, which is the first part of its class names.
    pub name: String,
    /// Seed, which is derived from the run's seed and the stream's number. Streams with the same
    /// configuration and seed consist of the same operations.
    pub seed: u64,
    /// Number of clients over all threads. Client `i` uses share `i mod shares`.
    pub clients: u32,
    /// Maximum number of operations that a client has in flight. The newest small files, up to this
    /// number, are not removed or renamed.
    pub queue_depth: u32,
    pub files: FileSet,
    /// Share of reads among the data operations, in percent.
    pub read_percent: f64,
    /// Sizes of transfers, with the share of each size.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes. Empty if writes have the same sizes as reads.
    pub write_sizes: Vec<SizeShare>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Alignment of offsets. With 0, offsets are multiples of the size of the transfer.
    pub align_bytes: u64,
    /// Durability of writes.
    pub sync: SyncPolicy,
    /// Number of metadata operations in percent of all reads, writes and metadata operations. Syncs
    /// do not count.
    pub metadata_percent: f64,
    /// Weights of the kinds of metadata operations.
    pub metadata_mix: MetadataMix,
    /// Number of small files that each client has at the start of the stream, so that removes and
    /// renames find files.
    pub names_per_client: u32,
    /// True to record the arrival of the first byte of each read, which only some targets report.
    pub first_byte: bool,
    /// Trace to replay. If it is set, the sizes, the mix and the pattern have no effect.
    pub trace: Option<Arc<Replay>>,
}

/// Reason why a stream is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatrixError {
    /// The space cannot be addressed.
    #[error("stream {stream:?}: {source}")]
    Address {
        stream: String,
        /// The reason why the space cannot be addressed.
        source: AddressError,
    },
    #[error("stream {stream:?}: {what} is {value}, but must be {range}")]
    OutOfRange {
        stream: String,
        what: &'static str,
        /// Given value.
        value: f64,
        /// Accepted range.
        range: &'static str,
    },
}

impl StreamConfig {
    /// Returns every transfer size that occurs in the stream.
    #[must_use]
    pub fn all_sizes_bytes(&self) -> Vec<u64> {
        let all =
            self.sizes.iter().chain(&self.write_sizes).filter(|size| size.share_percent > 0.0);
        let mut sizes: Vec<u64> = all.map(|size| size.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Checks the values that do not depend on the space.
    pub(super) fn check(&self) -> Result<(), MatrixError> {
        let check = |what, value: f64, ok: bool, range| {
            let stream = self.name.clone();
            if ok { Ok(()) } else { Err(MatrixError::OutOfRange { stream, what, value, range }) }
        };
        let percent = |p: f64| (0.0..=100.0).contains(&p);
        let reads = self.read_percent;
        check("the read share", reads, percent(reads), "from 0 to 100")?;
        let metadata = self.metadata_percent;
        check("the metadata share", metadata, percent(metadata), "from 0 to 100")?;
        let weights = metadata::weights(&self.metadata_mix);
        let sum: f64 = weights.iter().sum();
        let weighed = metadata == 0.0 || (sum > 0.0 && weights.iter().all(|w| *w >= 0.0));
        check("the sum of the metadata mix", sum, weighed, "above 0, with no share below 0")?;
        let clients = f64::from(self.clients);
        check("the number of clients", clients, self.clients > 0, "at least 1")?;
        let sizes = self.all_sizes_bytes().len() as f64;
        check("the number of sizes", sizes, sizes > 0.0, "at least 1 with a share above 0")
    }
}
