//! Evidence of a durability test: acknowledged writes, power cuts of the target, and the content of
//! the target after each cut. `plimsoll durability` writes the evidence to the directory of the
//! witness; a run writes it to its `run.json`.

use plimsoll_plan::{CutKind, SyncMethod};
use serde::{Deserialize, Serialize};

/// Name of the evidence file in the witness's directory.
pub const FILE: &str = "durability.json";
/// Version of the format of this evidence.
pub const VERSION: u32 = 1;
/// Maximum number of damaged blocks that are listed for each cut.
pub const LISTED_MAX: usize = 20;

/// Settings of a durability test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilitySettings {
    /// Number of the test, which is part of the content of every block.
    pub data_id: u64,
    /// Directory or device that is tested.
    pub target: String,
    /// True if the target is a device, false if it is a directory.
    pub is_device: bool,
    /// Size of the tested file, or of the tested part of the device, in bytes.
    pub size_bytes: u64,
    /// Size of a block in bytes.
    pub block_bytes: u32,
    /// Writing threads.
    pub threads: u32,
    /// Method that makes a write durable.
    pub sync: SyncMethod,
    /// True if writes bypass the page cache.
    pub direct: bool,
    /// Required number of cuts.
    pub cuts: u64,
    /// Kind of cut.
    pub kind: CutKind,
    /// Command that cuts the target off; `None` if the user cuts it off by hand.
    pub cut: Option<String>,
    /// Command that makes the target available again.
    pub restore: Option<String>,
    /// True if, once the cut has started, the target may acknowledge writes and then drop them.
    pub cut_drops_writes: bool,
    /// Seed from which the addresses and the time of each cut are generated.
    pub seed: u64,
}

/// Numbers of blocks after a cut, by kind of content. Each block is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounts {
    /// Blocks that contain the newest acknowledged write, or a newer write that was in flight.
    pub good: u64,
    /// Blocks that contain a mixture of the newest acknowledged write and a write that was in
    /// flight. This is permitted.
    pub in_flight: u64,
    /// Blocks without an expected content, because damage to them was reported at an earlier cut.
    pub unknown: u64,
    /// Blocks that contain the data which the newest acknowledged write should have replaced.
    pub lost: u64,
    /// Blocks that contain older data than `lost` blocks, or have lost a write that was still
    /// readable after an earlier cut.
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

/// A block that was damaged after a cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DamagedBlock {
    /// Offset in the file or device.
    pub offset_bytes: u64,
    /// Generation of the newest acknowledged write to the block.
    pub acknowledged_generation: u32,
    /// Kind of damage, in words.
    pub says: String,
    /// True if the target reordered writes: a write survived that started after the lost write to
    /// this block was acknowledged.
    pub reordered: bool,
}

/// Result of reading all blocks after a cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CutCheck {
    /// Numbers of blocks, by their content.
    pub blocks: BlockCounts,
    /// Number of damaged blocks that show that the target reordered writes across a flush
    /// ([`DamagedBlock::reordered`]).
    pub reordered: u64,
    /// Number of damaged blocks whose newest write was acknowledged while the cut command ran.
    pub acknowledged_during_cut: u64,
    /// True if the tested file is missing, or shorter than its acknowledged size.
    pub file_lost: bool,
    /// True if the data came from the target: reads bypassed the page cache, or the cache contained
    /// no data of the file.
    pub read_from_target: bool,
    /// The first damaged blocks.
    pub damage: Vec<DamagedBlock>,
}

/// A power cut of the target, and the load before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetCut {
    /// Number of the cut, from 1.
    pub number: u64,
    /// Start of the load, in ns since 1970.
    pub began_unix_ns: u64,
    /// Duration of the load until the cut command started, in ns.
    pub load_ns: u64,
    /// Duration of the cut command, in ns; 0 if the user cut the target off by hand.
    pub command_ns: u64,
    /// Number of writes that were acknowledged before the cut command started.
    pub acknowledged: u64,
    /// Number of writes that were acknowledged while the cut command ran.
    pub acknowledged_during: u64,
    /// Number of writes that were acknowledged after the cut command had ended. The other counts
    /// exclude them.
    pub acknowledged_after: u64,
    /// Number of operations that failed after the cut.
    pub failed: u64,
    /// The first failure of an operation.
    pub failure: Option<String>,
    /// Longest time from the start of a batch to its acknowledgement, in ns.
    pub longest_ns: u64,
    /// Number of threads whose last operation never returned.
    pub stuck_threads: u64,
    /// True if the test's process ended during the load, so that another process read the witness.
    pub resumed: bool,
    /// True if the cut was resumed, and this host has not restarted since the load.
    pub same_boot: bool,
    /// Result of reading the target after the cut; `None` if the target did not become available
    /// again.
    pub check: Option<CutCheck>,
    /// Reason why the target could not be read.
    pub not_restored: Option<String>,
}

/// Evidence of a durability test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilityTest {
    /// Version of the format.
    pub durability_version: u32,
    /// Version of Plimsoll.
    pub plimsoll_version: String,
    /// Settings.
    pub settings: DurabilitySettings,
    /// Boot ID of the host during the latest load (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Cuts, in order.
    pub cuts: Vec<TargetCut>,
    /// True if the user stopped the test.
    pub interrupted: bool,
    /// Error that ended the durability phase of a run early; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl DurabilityTest {
    /// Returns the evidence of a test that has not made a cut yet.
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
