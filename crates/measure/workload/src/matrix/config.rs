//! Configuration of a stream.

use std::sync::Arc;

use super::{FileSet, MetadataMix};
use crate::address::{AddressError, Pattern};
use crate::trace::Replay;

/// A size of transfers and its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeShare {
    /// Bytes of one transfer.
    pub size_bytes: u32,
    /// Weight among the sizes.
    pub share: f64,
}

/// By which call writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// By none.
    None,
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// Each write by itself (`O_DSYNC`, `RWF_DSYNC`, FUA).
    Durable,
}

impl SyncKind {
    /// True where a call of its own makes earlier writes durable.
    #[must_use]
    pub fn flushes(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync)
    }
}

/// When writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPolicy {
    /// By which call.
    pub kind: SyncKind,
    /// Number of a client's writes between syncs (`fsync` and `fdatasync`; 0 counts as 1). The file
    /// of the last write is synced.
    pub every_writes: u32,
}

/// Like clients with the same mix of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Name, the first part of the names of its classes.
    pub name: String,
    /// The run's seed and the stream's number, mixed: streams with one seed do the same things.
    pub seed: u64,
    /// Clients in all threads; client `i` works on share `i mod shares`.
    pub clients: u32,
    /// Operations that a client may have in flight at once: names younger than that are left alone.
    pub queue_depth: u32,
    /// The files.
    pub files: FileSet,
    /// Read share of the data operations, in percent.
    pub read_percent: f64,
    /// Sizes of transfers.
    pub sizes: Vec<SizeShare>,
    /// Sizes of writes, where they differ from those of reads; empty otherwise.
    pub write_sizes: Vec<SizeShare>,
    /// Where operations go.
    pub pattern: Pattern,
    /// Boundary that offsets are multiples of; 0: the size of the transfer.
    pub align_bytes: u64,
    /// When writes are made durable.
    pub sync: SyncPolicy,
    /// Share of metadata operations in reads, writes and metadata operations, in percent. Syncs come on
    /// top.
    pub metadata_percent: f64,
    /// Shares of the metadata operations.
    pub metadata_mix: MetadataMix,
    /// Small files that each client has when the stream starts, for removes and renames.
    pub names_per_client: u32,
    /// The trace whose operations these are; what is said above of sizes, mix and places is then of no effect.
    pub trace: Option<Arc<Replay>>,
}

/// Why a stream can't be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatrixError {
    /// The space can't be addressed.
    #[error("stream {stream:?}: {source}")]
    Address {
        /// The stream.
        stream: String,
        /// Cause of the error.
        source: AddressError,
    },
    /// A number is out of its range.
    #[error("stream {stream:?}: {what} is {value}, not {range}")]
    OutOfRange {
        /// The stream.
        stream: String,
        /// Which number.
        what: &'static str,
        /// Value that was given.
        value: f64,
        /// Accepted range.
        range: &'static str,
    },
}

impl StreamConfig {
    /// Every size that the stream transfers.
    #[must_use]
    pub fn all_sizes_bytes(&self) -> Vec<u64> {
        let all = self.sizes.iter().chain(&self.write_sizes).filter(|size| size.share > 0.0);
        let mut sizes: Vec<u64> = all.map(|size| size.size_bytes.into()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Checks what does not depend on the space.
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
        let weights = self.metadata_mix.weights();
        let sum: f64 = weights.iter().sum();
        let weighed = metadata == 0.0 || (sum > 0.0 && weights.iter().all(|w| *w >= 0.0));
        check("the sum of the metadata mix", sum, weighed, "shares above 0")?;
        let clients = f64::from(self.clients);
        check("the number of clients", clients, self.clients > 0, "1 or more")?;
        let sizes = self.all_sizes_bytes().len() as f64;
        check("the number of sizes", sizes, sizes > 0.0, "1 or more with a share above 0")
    }
}
