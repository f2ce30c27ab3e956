//! The top of a plan.

use super::{
    CompareRaw, EngineRaw, EvidenceRaw, FioRaw, FleetRaw, MailboxRaw, MatrixRaw, ObserveRaw,
    PhasesRaw, RepeatRaw, RequirementRaw, TargetRaw, TraceRaw,
};
use crate::read::list::OneOrMore;
use crate::read::section::section;
use crate::read::value::{Name, Whole};

section! {
    /// What the plan is, and its sections.
    Root {
        /// Version of the plan format; this build knows 1.
        version: Whole<1> = 1;
        /// Name of the plan, in the report and the catalogue.
        name: Name | "the name of the file";
        /// What it is for.
        description: String = "";
        /// Who answers for the plan, in the report: a name, a team or an address. It is no condition of the
        /// measurement.
        owner: Name | "none";
        /// Seed of every random choice: the same seed gives the same choices per session.
        seed: Whole<0> = 42;
        /// True for a short run that shows the tool and can't show the storage; the first line of
        /// the report says so.
        demonstration: bool = false;
        /// Name of the practice that the settings follow, such as `best practice`: two plans with the
        /// same name are compared as such.
        practice: Name | "none";
        /// What the application needs. Without this section the run is measured and not judged.
        requirement: RequirementRaw | "no requirement";
        /// The system under test; `[[target]]`, each with a name, for several to compare.
        target: OneOrMore<TargetRaw> | "required";
        /// Where operations come from.
        workload: WorkloadRaw | "required";
        /// What is done before, while and after measuring.
        phases: PhasesRaw = "{}";
        /// How much must be measured, and how finely.
        evidence: EvidenceRaw = "{}";
        /// What is declared of the system beneath, and where its own statistics are.
        observe: ObserveRaw = "{}";
        /// How often.
        repeat: RepeatRaw = "{}";
        /// What a comparison asks.
        compare: CompareRaw = "{}";
        /// How I/O is issued.
        engine: EngineRaw = "{}";
        /// Which agents of a fleet carry it.
        fleet: FleetRaw | "one host, or all agents of `--fleet`";
    }
}

section! {
    /// Where operations come from: exactly one of these.
    WorkloadRaw {
        /// The mail store.
        mailbox: MailboxRaw | "one of the four";
        /// Reads, writes and metadata operations; `[[workload.matrix]]` for several streams at once.
        matrix: OneOrMore<MatrixRaw> | "one of the four";
        /// A fio job, turned into streams.
        fio: FioRaw | "one of the four";
        /// A block trace, replayed.
        trace: TraceRaw | "one of the four";
    }
}
