//! Writes data durably, records the acknowledgements outside the target, and verifies the writes
//! after the target was cut off.
//!
//! The target is one file or device of blocks. Each thread owns a share of the blocks. It writes a
//! batch of its blocks, makes the batch durable, and records the acknowledgement in the witness.
//! After the cut, each block must contain the data of its newest acknowledged write, or of a newer
//! write that was in flight.
//!
//! - `load`: the threads that write, and the phases of a cut.
//! - `witness`: the records of acknowledgements, and the state of the blocks before a cut, in
//!   `witness_files`.
//! - `check`: reads the blocks after a cut and classifies each.
//! - `blocks`: the tested blocks and their location.
//! - `target`: creates and opens the blocks in a directory, on a device, on an export
//!   (`nfs_blocks`), or in a bucket (`s3_blocks`).

mod blocks;
mod check;
mod load;
mod nfs_blocks;
mod per_thread;
mod s3_blocks;
mod target;
mod witness;
mod witness_files;

use std::io;

use plimsoll_workload::content::{Content, ContentSpec};

pub use blocks::{
    BlockTarget, BucketAddress, FileSystemId, OpenBlocks, Reopened, TargetPlace, TestedBlocks,
};
pub use check::check_blocks;
pub use load::{CutPhase, Load, LoadCounts};
pub use nfs_blocks::NfsBlocks;
pub use target::directory_space;
pub use witness::{AckWitness, Acknowledgement, BlockState, ExpectedBlock, Witness};
pub use witness_files::{LocalFiles, WitnessFiles};

use crate::EngineError;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 4096;
/// Maximum number of writes in a batch. One flush makes a batch durable.
pub const BATCH_MAX: usize = 8;
/// Number of the target in all stamps. It is constant because a test has only one file.
pub(crate) const TARGET: u32 = 0;

/// File or device of blocks under test. Offsets and sizes are multiples of [`BLOCK_BYTES`], and
/// buffers are aligned for direct I/O.
pub trait BlockFile: Send + Sync {
    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// The error of the target. A short write is also an error.
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()>;
    /// Makes all completed writes durable. Does nothing if each write is durable without a flush,
    /// or if the test uses no flush.
    ///
    /// # Errors
    /// The error of the target.
    fn sync(&self) -> io::Result<()>;
    /// Reads all bytes at an offset; if possible, not from a cache of this host.
    ///
    /// # Errors
    /// The error of the target, or `UnexpectedEof` if the range ends after the end of the target.
    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()>;
    /// Maximum number of writes that one flush makes durable. 1 if there is no flush.
    fn batch_max(&self) -> usize {
        BATCH_MAX
    }
}

/// Returns the content of a test's blocks.
///
/// # Errors
/// Never fails for this block size.
pub fn content(data_id: u64, size_bytes: u64) -> Result<Content, EngineError> {
    let spec = ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: size_bytes,
        unit_bytes: BLOCK_BYTES,
        run: data_id,
        stamps: true,
    };
    Content::new(&spec).map_err(|error| EngineError::Config(error.to_string()))
}
