//! Top level of a plan.

use super::{
    CompareRaw, DurabilityRaw, EngineRaw, EventRaw, EvidenceRaw, FioRaw, FleetRaw, MailboxRaw,
    MatrixRaw, ObserveRaw, PhasesRaw, RepeatRaw, RequirementRaw, TargetRaw, TraceRaw,
};
use crate::read::list::OneOrMore;
use crate::read::section::section;
use crate::read::value::{Integer, Name};

section! {
    /// Fields outside all sections. Each plan must contain the sections `[target]` and
    /// `[workload]`.
    Root {
        /// Version of the plan format. The only supported version is 1.
        version: Integer<1> = 1;
        /// Name of the plan.
        name: Name | "the name of the file";
        /// Purpose of the plan, in one or two sentences.
        description: String = "";
        /// Owner of the plan: a person, a team or an address. Comparisons ignore it.
        owner: Name | "none";
        /// Seed of the random choices. Runs with the same seed make the same choices.
        seed: Integer<0> = 42;
        /// True for a run that only demonstrates Plimsoll. The first line of the report then states
        /// this.
        demonstration: bool = false;
        /// States how the settings of the system were chosen. If all compared plans state `best
        /// practice`, a comparison accepts differences in settings of the engine and the mail
        /// store, in threads, clients, queue depths and mount options.
        practice: Name | "none";
        /// Rates and latencies that the application requires. Without this section, the run is
        /// measured but not judged.
        requirement: RequirementRaw | "no requirement";
        /// System under test. Use named `[[target]]` sections to compare several systems.
        target: OneOrMore<TargetRaw> | "required";
        /// Operations that the run issues.
        workload: WorkloadRaw | "required";
        /// An event during the measurement. Use `[[event]]` for several events.
        event: OneOrMore<EventRaw> | "none";
        /// Test that interrupts the target after the load, and then checks that each acknowledged
        /// write is still there.
        durability: DurabilityRaw | "none";
        /// Settings of the phases: conditioning, warm-up, measurement and verification.
        phases: PhasesRaw = "{}";
        /// Minimum length of the measurement, and its time resolution.
        evidence: EvidenceRaw = "{}";
        /// Properties of the storage system that Plimsoll cannot detect, and its metrics endpoints.
        observe: ObserveRaw = "{}";
        /// Number of runs, and whether they reuse data.
        repeat: RepeatRaw = "{}";
        /// Condition whose effect a comparison determines.
        compare: CompareRaw = "{}";
        /// I/O engine.
        engine: EngineRaw = "{}";
        /// Agents of a fleet that run the plan.
        fleet: FleetRaw | "one host, or all agents of `--fleet`";
    }
}

section! {
    /// Operations that the run issues: exactly one of `mailbox`, `matrix`, `fio` and `trace`.
    WorkloadRaw {
        /// Mail store.
        mailbox: MailboxRaw | "one of the four";
        /// Reads, writes and metadata operations. Use `[[workload.matrix]]` for several concurrent
        /// streams.
        matrix: OneOrMore<MatrixRaw> | "one of the four";
        /// A fio job, which Plimsoll converts to streams.
        fio: FioRaw | "one of the four";
        /// Block trace that the run replays.
        trace: TraceRaw | "one of the four";
    }
}
