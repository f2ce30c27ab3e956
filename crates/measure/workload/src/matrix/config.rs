//! Configuration of the streams in a matrix.

use std::sync::Arc;

use plimsoll_plan::{MetadataMix, Pattern, SizeShare, SyncPolicy};

use super::{FileSet, metadata};
use crate::address::AddressError;
use crate::trace::Replay;

/// Configuration of a stream. All clients of the stream have the same mix of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Name of the stream. The names of its classes start with this name.
    pub name: String,
    /// Seed of the stream, which is computed from the seed of the run and the number of the stream.
    /// Two streams with the same configuration and the same seed have the same operations.
    pub seed: u64,
    /// Number of clients on all threads together. Client `i` uses share `i mod shares`.
    pub clients: u32,
    /// Maximum number of operations that a client has in flight. It is also the number of newest
    /// small files that a client never removes or renames.
    pub queue_depth: u32,
    pub files: FileSet,
    /// Percentage of reads among the reads and writes.
    pub read_percent: f64,
    /// Sizes of transfers. Each size has a share of the transfers.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes. The list is empty if writes have the same sizes as reads.
    pub write_sizes: Vec<SizeShare>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Each offset is a multiple of this size. If the value is 0, each offset is a multiple of the
    /// transfer size.
    pub align_bytes: u64,
    /// How writes become durable.
    pub sync: SyncPolicy,
    /// Metadata operations, as a percentage of all reads, writes and metadata operations. Syncs do
    /// not count.
    pub metadata_percent: f64,
    /// Weights with which the kinds of metadata operations are chosen.
    pub metadata_mix: MetadataMix,
    /// Number of small files that each client has when the stream starts. Removes and renames need
    /// existing files.
    pub names_per_client: u32,
    /// True if the driver records when the first byte of each read arrives. Only some targets
    /// report this time.
    pub first_byte: bool,
    /// Trace that the stream replays. If it is set, the sizes, the mix and the pattern are not
    /// used.
    pub trace: Option<Arc<Replay>>,
}

/// Reason why the configuration of a stream is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatrixError {
    /// The operations cannot be addressed in the space of the stream.
    #[error("stream {stream:?}: {source}")]
    Address {
        stream: String,
        /// Reason why the operations cannot be addressed.
        source: AddressError,
    },
    #[error("stream {stream:?}: {what} is {value}, but must be {range}")]
    OutOfRange {
        stream: String,
        what: &'static str,
        value: f64,
        /// Accepted range.
        range: &'static str,
    },
}

impl StreamConfig {
    /// Returns all transfer sizes that occur in the stream.
    #[must_use]
    pub fn all_sizes_bytes(&self) -> Vec<u64> {
        let all =
            self.sizes.iter().chain(&self.write_sizes).filter(|size| size.share_percent > 0.0);
        let mut sizes: Vec<u64> = all.map(|size| size.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Checks the values that do not depend on the size of the space.
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
