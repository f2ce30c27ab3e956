//! The sections of a plan. They contain the values in the form in which the file states them.

mod durability;
mod event;
mod fleet;
mod latency;
mod mailbox;
mod matrix;
mod requirement;
mod root;
mod run_settings;
mod target;
mod trace;
mod window;

pub(crate) use durability::DurabilityRaw;
pub(crate) use event::EventRaw;
pub(crate) use fleet::{FleetHostRaw, FleetRaw};
pub(crate) use latency::latency_fields;
pub(crate) use mailbox::{MailboxRaw, MixRaw};
pub(crate) use matrix::{FioRaw, MatrixRaw, MetadataMixRaw, SizeShareRaw};
pub(crate) use requirement::{RequirementFields, RequirementRaw};
pub(crate) use root::{Root, WorkloadRaw};
pub(crate) use run_settings::{
    CompareRaw, EngineRaw, EvidenceRaw, MetricsRaw, ObserveRaw, PhasesRaw, RepeatRaw,
};
pub(crate) use target::TargetRaw;
pub(crate) use trace::TraceRaw;
pub(crate) use window::{OrShare, WindowFields, WindowRaw};

use crate::read::section::{FieldDoc, Section};

/// If exactly one section has a field of this name, returns the full name of this section. The name
/// of the top level is empty.
pub(crate) fn section_of(field: &str) -> Option<&'static str> {
    let has = |s: &&SectionDoc| s.fields.iter().any(|f| f.name == field);
    let mut found = SECTIONS.iter().filter(has).map(|s| s.name);
    found.next().filter(|_| found.next().is_none())
}

/// Description of a section, for the reference of plan fields.
pub(crate) struct SectionDoc {
    /// Full name of the section. It is empty for the top level.
    pub(crate) name: &'static str,
    /// Purpose.
    pub(crate) doc: &'static str,
    /// Fields.
    pub(crate) fields: &'static [FieldDoc],
}

const fn documented<S: Section>(name: &'static str) -> SectionDoc {
    SectionDoc { name, doc: S::DOC, fields: S::FIELDS }
}

/// All sections, in the order in which the reference lists them.
pub(crate) const SECTIONS: &[SectionDoc] = &[
    documented::<Root>(""),
    documented::<RequirementFields>("requirement"),
    documented::<WindowFields>("requirement.during"),
    documented::<TargetRaw>("target"),
    documented::<WorkloadRaw>("workload"),
    documented::<MailboxRaw>("workload.mailbox"),
    documented::<MixRaw>("workload.mailbox.mix"),
    documented::<MatrixRaw>("workload.matrix"),
    documented::<SizeShareRaw>("workload.matrix.size_mix"),
    documented::<MetadataMixRaw>("workload.matrix.metadata_mix"),
    documented::<FioRaw>("workload.fio"),
    documented::<TraceRaw>("workload.trace"),
    documented::<EventRaw>("event"),
    documented::<DurabilityRaw>("durability"),
    documented::<PhasesRaw>("phases"),
    documented::<EvidenceRaw>("evidence"),
    documented::<ObserveRaw>("observe"),
    documented::<MetricsRaw>("observe.metrics"),
    documented::<RepeatRaw>("repeat"),
    documented::<CompareRaw>("compare"),
    documented::<EngineRaw>("engine"),
    documented::<FleetRaw>("fleet"),
    documented::<FleetHostRaw>("fleet.host"),
];
