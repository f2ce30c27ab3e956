//! `[durability]`.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{CutKind, SyncMethod};
use crate::units::{DurationNs, SizeBytes};

section! {
    /// Cuts of the target after the load of a single run: is an acknowledged write there
    /// afterwards? A loss fails the run. See [durability.md](durability.md).
    DurabilityRaw {
        /// Command that cuts the target off: program and arguments, without a shell. A page and
        /// the agents of a fleet accept no plan with `[durability]`.
        cut: List<Name> | "none: the operator cuts the target off";
        /// Command that makes the target available again: program and arguments.
        restore: List<Name> | "none";
        /// True if the cut lets the target acknowledge writes and drops them, as dm-flakey does.
        cut_drops_writes: bool = false;
        /// Part of the system that the cut interrupts. The meaning of the result depends on it.
        kind: CutKind = "unstated";
        /// Number of cuts. 59 without a loss show a loss probability of at most 5 % (95 %).
        cuts: Count = 59;
        /// Durability of each write before it is acknowledged.
        sync: SyncMethod | "fdatasync; dsync for objects";
        /// True to write with O_DIRECT.
        direct: bool = false;
        /// Bytes under test.
        size: SizeBytes = "64MiB";
        /// Writing threads.
        threads: Count = 4;
        /// Mean duration of the load before a cut.
        load: DurationNs = "2s";
        /// Time limit of each command, and of the target's return.
        timeout: DurationNs = "5m";
        /// Directory for the witness, which must not lose power: on another disk than the target,
        /// or on another host (`HOST:DIR`, over ssh).
        witness: Name | "the state directory of Plimsoll";
    }
}
