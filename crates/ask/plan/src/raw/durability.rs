//! `[durability]`.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{CutKind, SyncMethod};
use crate::units::{DurationNs, SizeBytes};

section! {
    /// Test that cuts the target off after the load of a single run, and then checks that every
    /// acknowledged write is still there. A lost write fails the run. See
    /// [durability.md](durability.md).
    DurabilityRaw {
        /// Command that cuts the target off: program and arguments, without a shell. The web page
        /// and the agents of a fleet reject plans with `[durability]`.
        cut: List<Name> | "none: the operator cuts the target off";
        /// Command that makes the target available again: program and arguments.
        restore: List<Name> | "none";
        /// True if the target acknowledges writes after the cut and drops them, as dm-flakey does.
        cut_drops_writes: bool = false;
        /// Part of the system that the cut interrupts. It determines what the result means.
        kind: CutKind = "unstated";
        /// Number of cuts. If none of 59 cuts loses a write, the loss probability is at most 5 %
        /// (95 % confidence).
        cuts: Count = 59;
        /// How each write is made durable before it is acknowledged.
        sync: SyncMethod | "fdatasync; dsync for objects";
        /// True to write with `O_DIRECT`.
        direct: bool = false;
        /// Bytes under test.
        size: SizeBytes = "64MiB";
        /// Writing threads.
        threads: Count = 4;
        /// Mean duration of the load before a cut.
        load: DurationNs = "2s";
        /// Time limit for each command, and for the target to become available again.
        timeout: DurationNs = "5m";
        /// Directory for the witness, which must keep its power during a cut: on another disk than
        /// the target, or on another host (`HOST:DIR`, over ssh).
        witness: Name | "Plimsoll's state directory";
    }
}
