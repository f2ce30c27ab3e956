//! Evidence of a durability test: acknowledged writes, power cuts of the target, and the content of
//! the target after each power cut. `plimsoll durability` writes the evidence to the directory of
//! the witness. A run writes the evidence to its `run.json`.

use plimsoll_plan::{CutKind, SyncMethod};
use serde::{Deserialize, Serialize};

/// Name of the evidence file in the witness's directory.
pub const FILE: &str = "durability.json";
/// Version of the format of this evidence.
pub const VERSION: u32 = 1;
/// Maximum number of damaged blocks that are listed for each power cut.
pub const LISTED_MAX: usize = 20;

/// Settings of a durability test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilitySettings {
    /// Number that identifies the test. It is part of the content of every block.
    pub data_id: u64,
    /// Directory or device that the test writes to.
    pub target: String,
    /// True if the target is a device, false if it is a directory.
    pub is_device: bool,
    /// Size in bytes of the tested file, or of the tested part of the device.
    pub size_bytes: u64,
    /// Size of a block in bytes.
    pub block_bytes: u32,
    /// Writing threads.
    pub threads: u32,
    /// Method that makes a write durable.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache.
    pub direct: bool,
    /// Required number of power cuts.
    pub cuts: u64,
    /// Kind of the cut. It states what the cut interrupts, for example the power of the drives.
    pub kind: CutKind,
    /// Command that interrupts the target (the cut); `None` if the user interrupts the target by
    /// hand.
    pub cut: Option<String>,
    /// Command that makes the target available again after its interruption.
    pub restore: Option<String>,
    /// True if the target may acknowledge writes after the start of the power cut and then lose
    /// these writes.
    pub cut_drops_writes: bool,
    /// Seed for the random addresses of the writes, and for the random times of the power cuts.
    pub seed: u64,
}

/// Number of blocks with each kind of content after a power cut. Each block is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounts {
    /// Blocks that contain the newest acknowledged write, or a newer write that was in flight at
    /// the power cut.
    pub good: u64,
    /// Blocks that contain a mixture of the newest acknowledged write and a write that was in
    /// flight. This is permitted.
    pub in_flight: u64,
    /// Blocks whose content is not checked, because damage to them was already reported after an
    /// earlier power cut.
    pub unknown: u64,
    /// Blocks that still contain the data that the newest acknowledged write should have replaced.
    pub lost: u64,
    /// Blocks whose data is older than that of `lost` blocks, and blocks that lost a write which
    /// was still readable after an earlier interruption of the target.
    pub stale: u64,
    /// Blocks in which some sectors contain an acknowledged write, and other sectors contain older
    /// data.
    pub torn: u64,
    /// Blocks that contain data which was written to a different block.
    pub misdirected: u64,
    /// Blocks that contain data which was never written.
    pub corrupt: u64,
    /// Blocks that contain zeros in place of an acknowledged write.
    pub unwritten: u64,
    /// Blocks that could not be read.
    pub unreadable: u64,
}

impl BlockCounts {
    /// Returns the number of damaged blocks.
    pub fn damaged(&self) -> u64 {
        self.lost
            + self.stale
            + self.torn
            + self.misdirected
            + self.corrupt
            + self.unwritten
            + self.unreadable
    }
}

/// A block that was damaged after a power cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DamagedBlock {
    /// Byte offset of the block in the file or device.
    pub offset_bytes: u64,
    /// Generation number of the newest acknowledged write to the block.
    pub acknowledged_generation: u32,
    /// Description of the kind of damage.
    pub says: String,
    /// True if the target reordered writes: the target lost a write to this block, but kept a write
    /// that started after the lost write was acknowledged.
    pub reordered: bool,
}

/// Result of reading all blocks after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CutCheck {
    /// Number of blocks with each kind of content.
    pub blocks: BlockCounts,
    /// Number of damaged blocks that prove that the target reordered writes across a flush
    /// ([`DamagedBlock::reordered`]).
    pub reordered: u64,
    /// Number of damaged blocks whose newest write was acknowledged while the command for the power
    /// cut ran.
    pub acknowledged_during_cut: u64,
    /// True if the tested file is missing, or shorter than its acknowledged size.
    pub file_lost: bool,
    /// True if the data was certainly read from the target, because the reads bypassed the page
    /// cache, or because the page cache contained no data of the file.
    pub read_from_target: bool,
    /// The damaged blocks that were found first.
    pub damage: Vec<DamagedBlock>,
}

/// A power cut of the target, and the load before the power cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetCut {
    /// Number of the power cut, counted from 1.
    pub number: u64,
    /// Time when the load started, in ns since 1970.
    pub began_unix_ns: u64,
    /// Duration of the load until the command for the power cut started, in ns.
    pub load_ns: u64,
    /// Duration of the command for the power cut, in ns; 0 if the user interrupted the target by
    /// hand.
    pub command_ns: u64,
    /// Number of writes that were acknowledged before the command for the power cut started.
    pub acknowledged: u64,
    /// Number of writes that were acknowledged while the command for the power cut ran.
    pub acknowledged_during: u64,
    /// Number of writes that were acknowledged after the command for the power cut had ended. The
    /// other counts exclude these writes.
    pub acknowledged_after: u64,
    /// Number of operations that failed after the power cut.
    pub failed: u64,
    /// Error of the first operation that failed.
    pub failure: Option<String>,
    /// Longest time between the start of a batch and the acknowledgement of this batch, in ns.
    pub longest_ns: u64,
    /// Number of threads whose last operation never returned.
    pub stuck_threads: u64,
    /// True if the process of the test ended during the load, so that another process had to read
    /// the records of the witness.
    pub resumed: bool,
    /// True if another process resumed the test at this power cut, and this host has not restarted
    /// since the load.
    pub same_boot: bool,
    /// Result of reading the target after the power cut; `None` if the target did not become
    /// available again.
    pub check: Option<CutCheck>,
    /// Reason why the target could not be read.
    pub not_restored: Option<String>,
}

/// Evidence of a durability test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilityTest {
    /// Version of this format.
    pub durability_version: u32,
    /// Version of Plimsoll that ran the test.
    pub plimsoll_version: String,
    /// Settings.
    pub settings: DurabilitySettings,
    /// Boot ID that the host had during the latest load (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Power cuts in the order of their times.
    pub cuts: Vec<TargetCut>,
    /// True if the user stopped the test.
    pub interrupted: bool,
    /// Error that ended the durability phase of a run early; `None` if the phase did not end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl DurabilityTest {
    /// Returns the evidence of a test that has not yet made a power cut.
    #[must_use]
    pub fn new(settings: DurabilitySettings, boot_id: &str) -> Self {
        Self {
            durability_version: VERSION,
            plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            settings,
            boot_id: boot_id.to_owned(),
            cuts: Vec::new(),
            interrupted: false,
            failure: None,
        }
    }
}
