//! `[durability]`.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{CutKind, SyncMethod};
use crate::units::{DurationNs, SizeBytes};

section! {
    /// After the load of a single run, the [durability test](durability.md) interrupts the target
    /// (a cut), and then checks that every acknowledged write is still there. If a write is lost,
    /// the run fails.
    DurabilityRaw {
        /// Command that interrupts the target: the program and its arguments; no shell is used.
        cut: List<Name> | "no command: the operator interrupts the target";
        /// Command that makes the target available again, in the same form as `cut`.
        restore: List<Name> | "none";
        /// True if the target still acknowledges writes after a cut but loses their data, as
        /// dm-flakey does.
        cut_drops_writes: bool = false;
        /// Part of the system that the command `cut` interrupts. It determines how much a PASS
        /// proves.
        kind: CutKind = "unstated";
        /// Number of cuts. [durability.md](durability.md#which-cuts-are-valid) states how much 59
        /// cuts without a loss prove.
        cuts: Count = 59;
        /// Method that makes each write durable before the test counts it as acknowledged.
        sync: SyncMethod | "fdatasync, or dsync on S3";
        /// True if the threads write with `O_DIRECT`.
        direct: bool = false;
        /// Total size of the blocks that the test writes.
        size: SizeBytes = "64MiB";
        /// Number of threads that write.
        threads: Count = 4;
        /// Mean time that the threads write before each cut.
        load: DurationNs = "2s";
        /// Time limit for each command, and for the target to become available again.
        timeout: DurationNs = "5m";
        /// Directory for the list of acknowledged writes (the witness). It must not be on the
        /// target's disk, and may be on another host (`HOST:DIR`, over ssh).
        witness: Name | "Plimsoll's state directory";
    }
}
