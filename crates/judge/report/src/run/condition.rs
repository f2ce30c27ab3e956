//! Chart of conditioning.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_evidence::series::Data;

use super::empty_section;
use crate::chart::{Axis, Mark, Plot, Series};
use crate::document::{Block, Section};
use crate::number::{Letters, Unit};

/// Returns a section with a chart of bandwidth over time. It is empty if the run had no
/// conditioning.
pub(super) fn section(bundle: &Bundle) -> Section {
    let phases = bundle.run.phases.iter().enumerate();
    let condition: Vec<(usize, &Phase)> =
        phases.filter(|(_, phase)| phase.kind == PhaseKind::Condition).collect();
    let (Some((_, first)), Some((_, last))) = (condition.first(), condition.last()) else {
        return empty_section();
    };
    let mut written: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in &bundle.series {
        let of_condition = condition.iter().any(|(index, _)| *index == row.phase as usize);
        if let (true, Data::Class { bytes, .. }) = (of_condition, row.data) {
            let slot = written.entry(row.start_ns).or_default();
            slot.0 += bytes;
            slot.1 = slot.1.max(row.duration_ns);
        }
    }
    let points =
        written.iter().filter(|(_, (_, lasts_ns))| *lasts_ns > 0).map(|(start_ns, slot)| {
            let seconds = slot.1 as f64 / 1e9;
            let x = (start_ns.saturating_sub(first.start_ns) + slot.1 / 2) as f64;
            (x, Some(slot.0 as f64 / seconds))
        });
    let points: Vec<(f64, Option<f64>)> = points.collect();
    let total: u64 = condition.iter().map(|(_, phase)| phase.written_bytes).sum();
    let lasted = last.start_ns + last.duration_ns - first.start_ns;
    let mut says = format!(
        "Before the measurement, the run wrote {} in {}.",
        Unit::Size.show(total as f64, Letters::Unicode),
        Unit::Elapsed.show(lasted as f64, Letters::Unicode)
    );
    if !last.note.is_empty() {
        says.push_str(&format!(" The rate: {}.", last.note));
    }
    let plot = Plot::new(
        "condition",
        "Conditioning",
        Axis::linear("time", Unit::Elapsed),
        Axis::linear("written", Unit::Bandwidth),
    )
    .says(says)
    .mark(Mark::Line(Series { name: String::new(), colour: 0, points }));
    Section::full("condition", "Conditioning").with(Block::Chart(Box::new(plot)))
}
