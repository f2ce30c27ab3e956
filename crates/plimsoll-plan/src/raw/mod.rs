//! The plan as written, section by section.

mod mailbox;
mod matrix;
mod requirement;
mod root;
mod surroundings;
mod target;

pub(crate) use mailbox::{MailboxRaw, MixRaw};
pub(crate) use matrix::{FioRaw, MatrixRaw, MetadataMixRaw, SizeShareRaw};
pub(crate) use requirement::RequirementRaw;
pub(crate) use root::{Root, WorkloadRaw};
pub(crate) use surroundings::{
    EngineRaw, EvidenceRaw, MetricsRaw, ObserveRaw, PhasesRaw, RepeatRaw,
};
pub(crate) use target::TargetRaw;

use crate::read::section::{FieldDoc, Section};

/// The section (full name; empty for the top of the plan) that alone has a field of this name.
pub(crate) fn section_of(field: &str) -> Option<&'static str> {
    let mut found = SECTIONS
        .iter()
        .filter(|(_, fields)| fields.iter().any(|f| f.name == field))
        .map(|(name, _)| *name);
    found.next().filter(|_| found.next().is_none())
}

/// Every section with its full name and fields, in the order of the reference.
pub(crate) const SECTIONS: &[(&str, &[FieldDoc])] = &[
    ("", Root::FIELDS),
    ("requirement", RequirementRaw::FIELDS),
    ("target", TargetRaw::FIELDS),
    ("workload", WorkloadRaw::FIELDS),
    ("workload.mailbox", MailboxRaw::FIELDS),
    ("workload.mailbox.mix", MixRaw::FIELDS),
    ("workload.matrix", MatrixRaw::FIELDS),
    ("workload.matrix.size_mix", SizeShareRaw::FIELDS),
    ("workload.matrix.metadata_mix", MetadataMixRaw::FIELDS),
    ("workload.fio", FioRaw::FIELDS),
    ("phases", PhasesRaw::FIELDS),
    ("evidence", EvidenceRaw::FIELDS),
    ("observe", ObserveRaw::FIELDS),
    ("observe.metrics", MetricsRaw::FIELDS),
    ("repeat", RepeatRaw::FIELDS),
    ("engine", EngineRaw::FIELDS),
];
