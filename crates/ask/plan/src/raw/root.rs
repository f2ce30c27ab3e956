//! Top level of a plan.

use super::{
    CompareRaw, DurabilityRaw, EngineRaw, EventRaw, EvidenceRaw, FioRaw, FleetRaw, MailboxRaw,
    MatrixRaw, ObserveRaw, PhasesRaw, RepeatRaw, RequirementRaw, TargetRaw, TraceRaw,
};
use crate::read::list::OneOrMore;
use crate::read::section::section;
use crate::read::value::{Integer, Name};

section! {
    /// Name and purpose of the plan. Its sections follow; `[target]` and `[workload]` are required.
    Root {
        /// Version of the plan format; this build supports 1.
        version: Integer<1> = 1;
        /// Name of the plan in the report and the catalogue.
        name: Name | "the name of the file";
        /// Purpose of the plan, in a sentence or two.
        description: String = "";
        /// Owner of the plan in the report: a name, team or address. It is not a condition of the
        /// measurement.
        owner: Name | "none";
        /// Seed of all random choices. With the same seed, each session makes the same choices.
        seed: Integer<0> = 42;
        /// True for a short run that only demonstrates the tool. The first line of the report then
        /// says so.
        demonstration: bool = false;
        /// Name of the practice by which the settings were chosen, such as `best practice`. A
        /// comparison accepts different settings if both plans have the same practice.
        practice: Name | "none";
        /// Requirement of the application. Without this section, the run is measured but not
        /// judged.
        requirement: RequirementRaw | "no requirement";
        /// System under test. Use `[[target]]` sections with names to compare several.
        target: OneOrMore<TargetRaw> | "required";
        /// Source of the operations.
        workload: WorkloadRaw | "required";
        /// Events during the measurement. Use `[[event]]` for several events.
        event: OneOrMore<EventRaw> | "none";
        /// Cuts of the target after the load, and a check of each acknowledged write.
        durability: DurabilityRaw | "none";
        /// Phases before, during and after the measurement.
        phases: PhasesRaw = "{}";
        /// Minimum length and time resolution of the measurement.
        evidence: EvidenceRaw = "{}";
        /// Declared properties of the storage system, and its metrics endpoints.
        observe: ObserveRaw = "{}";
        /// Repetition of runs.
        repeat: RepeatRaw = "{}";
        /// Question that a comparison answers.
        compare: CompareRaw = "{}";
        /// I/O engine.
        engine: EngineRaw = "{}";
        /// Agents of a fleet that run the plan.
        fleet: FleetRaw | "one host, or all agents of `--fleet`";
    }
}

section! {
    /// Source of the operations: exactly one of `mailbox`, `matrix`, `fio` and `trace`.
    WorkloadRaw {
        /// Mail store.
        mailbox: MailboxRaw | "one of the four";
        /// Reads, writes and metadata operations. Use `[[workload.matrix]]` for several concurrent
        /// streams.
        matrix: OneOrMore<MatrixRaw> | "one of the four";
        /// fio job that is converted to streams.
        fio: FioRaw | "one of the four";
        /// Block trace to replay.
        trace: TraceRaw | "one of the four";
    }
}
