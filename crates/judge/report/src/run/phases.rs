//! Table of phases, and table of failed data checks.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Phase, PhaseKind};

use super::{empty_section, sentence};
use crate::document::{Block, Section};
use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

pub(super) fn section(bundle: &Bundle) -> Section {
    if bundle.run.phases.is_empty() {
        return empty_section();
    }
    let section = Section::full("phases", "Phases").with(Block::Table(table(bundle)));
    let checks = &bundle.run.checks;
    if checks.damage.is_empty() {
        return section;
    }
    section.with(Block::Table(damage(bundle)))
}

fn table(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("phase", "phase"),
            Column::numbers("from", "start_ns"),
            Column::numbers("lasted", "duration_ns"),
            Column::numbers("read", "read_bytes"),
            Column::numbers("written", "written_bytes"),
            Column::of(Unit::Bandwidth, "read and written", "bandwidth_bytes_per_s"),
            Column::words("reached", "reached"),
            Column::remarks("remark", "remark"),
        ],
    );
    table.rows = bundle.run.phases.iter().map(row).collect();
    table
}

fn row(phase: &Phase) -> Vec<Cell> {
    let bytes = phase.read_bytes + phase.written_bytes;
    let bandwidth =
        (bytes > 0 && phase.duration_ns > 0).then(|| bytes as f64 * 1e9 / phase.duration_ns as f64);
    let size = |bytes: u64| match bytes {
        0 => Cell::empty(),
        bytes => Cell::number(Unit::Size, bytes as f64),
    };
    let tone = if phase.kind == PhaseKind::Measure { Tone::Strong } else { Tone::Plain };
    vec![
        Cell::text(phase.kind.label()).tone(tone),
        Cell::number(Unit::Elapsed, phase.start_ns as f64),
        Cell::number(Unit::Elapsed, phase.duration_ns as f64),
        size(phase.read_bytes),
        size(phase.written_bytes),
        bandwidth.map_or(Cell::empty(), |rate| Cell::number(Unit::Bandwidth, rate)),
        match phase.reached {
            true => Cell::text("yes"),
            false => Cell::text("no").tone(Tone::Warn),
        },
        Cell::text(sentence(&phase.note)),
    ]
}

/// Lists pages with wrong contents.
fn damage(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "Failed data checks",
        vec![
            Column::words("target", "target"),
            Column::of(Unit::Count, "page", "page"),
            Column::words("kind", "kind"),
            Column::words("finding", "says"),
        ],
    );
    table.rows = bundle
        .run
        .checks
        .damage
        .iter()
        .map(|damage| {
            vec![
                Cell::text(damage.target.clone()),
                Cell::count(damage.page),
                Cell::text(damage.kind.clone()).tone(Tone::Bad),
                Cell::text(sentence(&damage.says)),
            ]
        })
        .collect();
    let shown = bundle.run.checks.damage.len() as u64;
    if bundle.run.checks.errors > shown {
        table.note =
            format!("The first {shown} of {} errors are listed.", bundle.run.checks.errors);
    }
    table
}
