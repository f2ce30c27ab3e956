//! Tests whether acknowledged writes survive a power cut or another interruption of the target. The
//! test writes data durably, records the acknowledgements outside the target, and verifies the data
//! after the power cut.
//!
//! The target consists of blocks, in one file or on one device. Each thread owns some of the
//! blocks. It writes a batch of them, makes the batch durable, and records the acknowledgement in
//! the witness. After the power cut, each block must contain the data of its newest acknowledged
//! write. It may instead contain the data of a newer write that was in flight.
//!
//! - `load`: the threads that write, and the phases before, during and after the cut command.
//! - `witness`: the records of acknowledgements, and the state of all blocks before a power cut.
//!   The records are stored in `witness_files`.
//! - `check`: reads the blocks after a power cut, and classifies the state of each block.
//! - `blocks`: the tested blocks, and the directory, device or server that contains them.
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

/// Size of a block in bytes.
pub const BLOCK_BYTES: u32 = 4096;
/// Maximum number of writes in a batch. One flush makes a whole batch durable.
pub const BATCH_MAX: usize = 8;
/// Target number in the stamps of all blocks. It is constant because a test has only one file.
pub(crate) const TARGET: u32 = 0;

/// File or device that contains the tested blocks. Offsets and sizes are multiples of
/// [`BLOCK_BYTES`], and buffers are aligned for direct I/O.
pub trait BlockFile: Send + Sync {
    /// Writes all of `bytes` at the offset.
    ///
    /// # Errors
    /// Fails if the target reports an error, or if it writes only a part of the bytes.
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()>;
    /// Makes all completed writes durable. Does nothing if each write is durable without a flush,
    /// or if the test uses no flush.
    ///
    /// # Errors
    /// Fails if the target reports an error.
    fn sync(&self) -> io::Result<()>;
    /// Fills `bytes` with the data at the offset. If possible, the data does not come from a cache
    /// of this host.
    ///
    /// # Errors
    /// Fails if the target reports an error. The error is `UnexpectedEof` if the range ends after
    /// the end of the target.
    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()>;
    /// Maximum number of writes that one flush makes durable. It is 1 if the test uses no flush.
    fn batch_max(&self) -> usize {
        BATCH_MAX
    }
}

/// Returns the generator of the contents of all blocks in a test.
///
/// # Errors
/// This function never fails for the block size of the test.
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
