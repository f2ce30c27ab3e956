//! `[durability]`.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{CutKind, SyncMethod};
use crate::units::{DurationNs, SizeBytes};

section! {
    /// After the load of a single run, this test interrupts the target (a cut), for example by a
    /// power failure. It then checks that every acknowledged write is still there. If a write is
    /// lost, the run fails. See [durability.md](durability.md).
    DurabilityRaw {
        /// Command that interrupts the target. The list consists of the program and its arguments;
        /// no shell is used. The web page and the agents of a fleet reject plans with
        /// `[durability]`.
        cut: List<Name> | "no command: the operator interrupts the target";
        /// Command that makes the target available again. The list consists of the program and its
        /// arguments.
        restore: List<Name> | "none";
        /// True if the target still acknowledges writes after the interruption (the cut) but loses
        /// their data, as dm-flakey does.
        cut_drops_writes: bool = false;
        /// Part of the system that the command `cut` interrupts. It determines what a PASS proves.
        kind: CutKind = "unstated";
        /// Number of cuts (interruptions of the target). If 59 cuts lose no write, the probability
        /// that a cut loses a write is at most 5 % (95 % confidence).
        cuts: Count = 59;
        /// Method that makes each write durable before the test counts it as acknowledged.
        sync: SyncMethod | "fdatasync, or dsync on S3";
        /// True if the threads write with `O_DIRECT`.
        direct: bool = false;
        /// Total size of the blocks that the test writes.
        size: SizeBytes = "64MiB";
        /// Number of threads that write.
        threads: Count = 4;
        /// Mean time that the threads spend writing before each interruption of the target.
        load: DurationNs = "2s";
        /// Time limit for each command. It is also the time limit within which the target must
        /// become available again.
        timeout: DurationNs = "5m";
        /// Directory for the list of acknowledged writes (the witness). The list must survive the
        /// interruption of the target, so the directory must not be on the target's disk. It may be
        /// on another host (`HOST:DIR`, over ssh).
        witness: Name | "Plimsoll's state directory";
    }
}
