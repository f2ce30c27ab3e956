//! Runs of a catalogue, as a table.

use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

/// Row of the table of runs.
#[derive(Clone, Debug, Default)]
pub struct RunRow {
    /// Number of the run in the ledger; `None` if the run is not in the ledger.
    pub position: Option<u64>,
    pub run_id: String,
    /// Verdict in capitals. For a modelled or unverified run, `MODELLED` or `UNVERIFIED` precedes
    /// it.
    pub verdict: String,
    /// Transactional I/Os per second.
    pub achieved_iops_per_s: Option<f64>,
    /// Mean latency of transactional reads.
    pub read_latency_ns_avg: Option<u64>,
    /// Mean latency of transactional writes.
    pub write_latency_ns_avg: Option<u64>,
    /// Duration of the measurement.
    pub measured_ns: Option<u64>,
    pub remarks: Vec<String>,
}

#[must_use]
pub fn runs_table(runs: impl Iterator<Item = RunRow>) -> Table {
    let columns = vec![
        Column::numbers("no.", "position"),
        // This is a number column because such columns are not wrapped, so that the name can be
        // copied.
        Column::numbers("run", "run_id"),
        Column::words("verdict", "verdict"),
        Column::of(Unit::Rate, "I/Os per second", "achieved_iops_per_s"),
        Column::numbers("reads, average", "read_latency_ns_avg").rank(1),
        Column::numbers("writes, average", "write_latency_ns_avg").rank(2),
        Column::numbers("measured", "measured_ns").rank(3),
        Column::remarks("remarks", "remarks"),
    ];
    let mut table = Table::new("", columns);
    table.rows = runs.map(|run| row(&run)).collect();
    table
}

fn row(run: &RunRow) -> Vec<Cell> {
    // Modelled and unverified results have no colour.
    let tone = match run.verdict.as_str() {
        "PASS" => Tone::Good,
        "FAIL" | "INVALID" => Tone::Bad,
        "INCONCLUSIVE" => Tone::Warn,
        _ => Tone::Plain,
    };
    let latency = |ns: Option<u64>| Cell::maybe(Unit::Latency, ns.map(|ns| ns as f64));
    vec![
        run.position.map_or(Cell::text("-"), |position| Cell::text(position.to_string())),
        Cell::text(run.run_id.clone()),
        Cell::text(run.verdict.clone()).tone(tone),
        Cell::maybe(Unit::Rate, run.achieved_iops_per_s),
        latency(run.read_latency_ns_avg),
        latency(run.write_latency_ns_avg),
        Cell::maybe(Unit::Elapsed, run.measured_ns.map(|ns| ns as f64)),
        Cell::text(run.remarks.join("; ")),
    ]
}

/// Formats the tags and the note of a run.
#[must_use]
pub fn labels_text<'a>(tags: impl Iterator<Item = &'a str>, note: &str) -> String {
    let tags: Vec<&str> = tags.collect();
    let tags = if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
    let note = if note.is_empty() { "none" } else { note };
    format!("tags: {tags}\nnote: {note}\n")
}
