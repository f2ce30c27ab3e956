//! Shows front-end I/O next to drive I/O, which exposes inflated results. Each arm of the
//! experiment is a column, as on the statistics pages of storage systems.

use plimsoll_judge::VerdictKind;
use plimsoll_report::document::{Block, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone};

use crate::analysis::{Analysis, ArmAnalysis, Front};

/// Minimum ratio of drive I/Os to front-end I/Os. If the ratio is lower, a cache or unwritten space
/// served the reads.
const CARRIED_LEAST: f64 = 0.1;
/// Maximum share of reads from memory or unwritten space.
const UNSERVED_MOST: f64 = 0.5;
/// Minimum share of a source that is shown.
const SHARE_LEAST: f64 = 0.0005;
/// Sources of reads, with the terms that the statistics pages of storage systems use.
const SOURCES: [(&str, &str); 8] = [
    ("zero", "zero (never written)"),
    ("dram", "DRAM cache"),
    ("cache", "page cache"),
    ("log", "write log"),
    ("ssd", "SSD"),
    ("hdd", "HDD"),
    ("remote", "another system"),
    ("other", "elsewhere"),
];

pub(super) fn shows_front(analysis: &Analysis, arm: &ArmAnalysis) -> bool {
    arm.front.is_some() && analysis.arms.iter().any(|arm| arm.expects.is_some())
}

fn share(value: f64) -> String {
    match value {
        none if none < SHARE_LEAST => "0 %".to_owned(),
        value => Unit::Share.show_round(value, Letters::Unicode),
    }
}

/// Returns the section on front-end and drive I/O.
pub(super) fn fronts(analysis: &Analysis) -> Section {
    let arms: Vec<(&ArmAnalysis, &Front)> =
        analysis.arms.iter().filter_map(|arm| Some((arm, arm.front.as_ref()?))).collect();
    let mut section =
        Section::brief("front", "Advertised figures compared with the I/O of the drives");
    let heroes = arms.iter().filter(|(arm, _)| arm.expects == Some(VerdictKind::Invalid));
    let lines: Vec<String> = heroes.map(|(arm, front)| taken_apart(arm, front)).collect();
    if !lines.is_empty() {
        section = section.with(Block::List(lines));
    }
    section.with(Block::Table(panel(&arms))).with(Block::Words(
        "Signs of an inflated result: much I/O at the front end but almost none at the drives, a \
         latency below that of the drives, a working set that fits into a cache, or reads from \
         memory or unwritten space."
            .to_owned(),
    ))
}

/// Returns the figure as a vendor would advertise it, and the facts that contradict it.
fn taken_apart(arm: &ArmAnalysis, front: &Front) -> String {
    let rate = Unit::Rate.show(front.front_ios_per_s, Letters::Unicode);
    let bytes = Unit::Bandwidth.show(front.front_bytes_per_s, Letters::Unicode);
    let latency = |ns: f64| Unit::Latency.show(ns, Letters::Unicode);
    // Vendors quote operations for random patterns and bandwidth for sequential ones.
    let figure = if front.pattern == "random" { format!("{rate} I/Os") } else { bytes };
    let at = front.front_latency_ns.map_or(String::new(), |ns| format!(" at {}", latency(ns)));
    let mut against = Vec::new();
    if let Some(drives) = front.drive_ios_per_s {
        against.push(match Unit::Rate.show_round(drives, Letters::Unicode) {
            none if none == "0/s" => "the drives performed no I/O".to_owned(),
            rate => format!("the drives performed {rate} I/Os"),
        });
    }
    let nowhere = from(front, "zero");
    let memory = from(front, "dram") + from(front, "cache");
    if nowhere >= SHARE_LEAST {
        against.push(format!("{} of reads went to blocks that were never written", share(nowhere)));
    }
    if memory >= SHARE_LEAST {
        against.push(format!("{} of reads came from memory", share(memory)));
    }
    if let Some(bytes) = front.read_set_bytes {
        let size = Unit::Size.show(bytes as f64, Letters::Unicode);
        let written = match front.write_set_bytes {
            Some(0) => ", and nothing was written",
            _ => "",
        };
        against.push(format!("reads accessed only {size}{written}"));
    }
    let rules = match &arm.failed_rules[..] {
        [] => "No rule failed".to_owned(),
        [rule] => format!("Failed rule: {rule}"),
        rules => format!("Failed rules: {}", rules.join(", ")),
    };
    let title = if arm.title.is_empty() { String::new() } else { format!(" ({})", arm.title) };
    format!(
        "Arm {}{title}: \u{201c}{figure}{at}\u{201d}. But {}. {rules}.",
        arm.name,
        against.join("; ")
    )
}

fn from(front: &Front, place: &str) -> f64 {
    front.reads_from.iter().filter(|(name, _)| name == place).map(|(_, share)| share).sum()
}

/// A row of the panel: its name, and a cell for each arm of the experiment.
struct Row {
    name: String,
    cell: Box<dyn Fn(&Front) -> Cell>,
}

fn row(name: &str, cell: impl Fn(&Front) -> Cell + 'static) -> Row {
    Row { name: name.to_owned(), cell: Box::new(cell) }
}

fn panel(arms: &[(&ArmAnalysis, &Front)]) -> Table {
    let mut columns = vec![Column::words("", "figure")];
    columns.extend(arms.iter().map(|(arm, _)| Column::numbers(&arm.name, &arm.name)));
    let mut table = Table::new("Front end and drives", columns);
    let set = |bytes: Option<u64>| Cell::observed(Unit::Size, bytes.map(|bytes| bytes as f64));
    let mut rows = vec![
        row("front end, I/Os per second", |f| {
            Cell::number(Unit::Rate, f.front_ios_per_s).tone(Tone::Strong)
        }),
        row("drives, I/Os per second", |f| {
            let little = |of: &f64| *of < CARRIED_LEAST * f.front_ios_per_s;
            let suspect = f.drive_ios_per_s.as_ref().is_some_and(little);
            Cell::observed(Unit::Rate, f.drive_ios_per_s).tone(bad_if(suspect))
        }),
        row("front end, bandwidth", |f| Cell::number(Unit::Bandwidth, f.front_bytes_per_s)),
        row("front end, latency", |f| Cell::maybe(Unit::Latency, f.front_latency_ns)),
        row("drives, latency", |f| {
            let above = f.drive_latency_ns.zip(f.front_latency_ns).is_some_and(|(d, f)| d > f);
            Cell::maybe(Unit::Latency, f.drive_latency_ns).tone(bad_if(above))
        }),
        row("working set, read", move |f| set(f.read_set_bytes)),
        row("working set, written", move |f| set(f.write_set_bytes)),
        row("order of addresses", |f| Cell::text(f.pattern.clone())),
        row("sequential", |f| match f.sequential_share {
            Some(seen) => Cell::text(share(seen)),
            None => Cell::unknown(),
        }),
    ];
    let seen = |place: &str| arms.iter().any(|(_, front)| from(front, place) >= SHARE_LEAST);
    for (place, name) in SOURCES.iter().filter(|(place, _)| seen(place)) {
        let answered = ["zero", "dram", "cache"].contains(place);
        rows.push(row(&format!("reads from: {name}"), move |f| {
            let value = from(f, place);
            match f.reads_from.is_empty() {
                true => Cell::unknown(),
                false => Cell::text(share(value)).tone(bad_if(answered && value > UNSERVED_MOST)),
            }
        }));
    }
    if arms.iter().all(|(_, front)| front.reads_from.is_empty()) {
        rows.push(row("reads from", |_| Cell::unknown()));
    }
    if arms.iter().any(|(_, front)| front.remote_share.is_some_and(|s| s >= SHARE_LEAST)) {
        rows.push(row("reads from: another node", |f| match f.remote_share {
            Some(remote) => Cell::text(share(remote)),
            None => Cell::unknown(),
        }));
    }
    for Row { name, cell } in &rows {
        let mut cells = vec![Cell::text(name.clone())];
        cells.extend(arms.iter().map(|(_, front)| cell(front)));
        table.rows.push(cells);
    }
    let verdicts = arms.iter().map(|(arm, _)| {
        let words = super::arms::verdict_words(arm);
        Cell::text(words).tone(if arm.is_as_expected() { Tone::Good } else { Tone::Bad })
    });
    table.rows.push(std::iter::once(Cell::text("verdict")).chain(verdicts).collect());
    table
}

fn bad_if(suspect: bool) -> Tone {
    if suspect { Tone::Bad } else { Tone::Plain }
}
