//! The I/O tables, per database, in the order of Jetstress reports.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_judge::figures::{Pick, is_counted_elsewhere, measured, rate_per_s};

use super::distribution::percentile_ns;
use super::empty_section;
use super::kinds::{Kind, Operation, Totals, kind, kinds};
use crate::document::{Block, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table};

pub(super) fn section(bundle: &Bundle) -> Section {
    let of = |group: &str| -> Vec<Kind> {
        kinds(bundle).into_iter().filter(|kind| kind.group == group).collect()
    };
    let transactional = of("transactional");
    if transactional.is_empty() {
        return empty_section();
    }
    let with_log: Vec<Kind> = transactional.iter().cloned().chain(of("log")).collect();
    let mut section = Section::full("io", "I/O performance");
    let caption = "Transactional I/O performance";
    section = section.with(Block::Table(full(bundle, caption, &with_log)));
    if bundle.plan.workload.mailbox().is_some() {
        let caption = "Background database maintenance I/O performance";
        section = section.with(Block::Table(small(bundle, caption, &of("maintenance"))));
        let caption = "Log replication I/O performance";
        section = section.with(Block::Table(small(bundle, caption, &of("replication"))));
    }
    let caption = "Upkeep I/O performance";
    let mut upkeep = small(bundle, caption, &of("upkeep"));
    upkeep.note = "Checkpoints, headers, formatting of log files, and flushes. A flush makes \
        earlier writes durable and transfers no data."
        .to_owned();
    section.with(Block::Table(upkeep)).with(Block::Table(total(bundle)))
}

/// Returns rates and latencies in one table, for the terminal.
pub(super) fn brief(bundle: &Bundle) -> Section {
    const SHOWN: [(&str, f64, u8); 3] = [("p50", 0.5, 1), ("p99", 0.99, 0), ("p99.9", 0.999, 2)];
    if measured(bundle).is_none() {
        return empty_section();
    }
    let mut columns = vec![
        Column::words("", "io"),
        Column::of(Unit::Count, "I/Os", "count").rank(3),
        Column::of(Unit::Rate, "per second", "rate_per_s"),
        Column::numbers("average", "latency_ns_avg"),
    ];
    columns.extend(SHOWN.iter().map(|(name, _, rank)| Column::numbers(name, name).rank(*rank)));
    columns.push(Column::numbers("largest", "latency_ns_max"));
    let mut table = Table::new("", columns);
    for kind in kinds(bundle) {
        let totals = kind.totals(bundle, None);
        let histogram = kind.histogram(bundle, false);
        let mut row = vec![
            Cell::text(kind.label.clone()),
            Cell::count(totals.sums.count),
            Cell::maybe(Unit::Rate, totals.rate_per_s(bundle)),
            Cell::maybe(Unit::Latency, totals.latency_ns_avg()),
        ];
        row.extend(SHOWN.iter().map(|(_, quantile, _)| {
            let ns = histogram.as_ref().and_then(|h| percentile_ns(h, *quantile));
            Cell::maybe(Unit::Latency, ns)
        }));
        let largest = Some(totals.latency_ns_max as f64).filter(|ns| *ns > 0.0);
        row.push(Cell::maybe(Unit::Latency, largest));
        table.rows.push(row);
    }
    if kinds(bundle).iter().any(|kind| kind.group == "upkeep") {
        table.note = "upkeep: the store's own I/O (checkpoints, headers, flushes)".to_owned();
    }
    Section::terminal("measured", "Measured")
        .with(Block::Table(table))
        .with(super::timeline::spark(bundle))
        .with(Block::Line(beside(bundle)))
}

/// Returns threads and CPU, for the terminal.
fn beside(bundle: &Bundle) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let sessions = bundle.run.engine.sessions;
    let known = bundle.run.driver != Driver::Foreign || sessions > 0;
    pairs.extend(known.then(|| ("threads".to_owned(), sessions.to_string())));
    if let Some(rate) = rate_per_s(bundle, Pick::Transactional).filter(|_| sessions > 0) {
        let each = Unit::Rate.show(rate / f64::from(sessions), Letters::Unicode);
        pairs.push(("I/Os per thread".to_owned(), each));
    }
    let share = |share: Option<f64>| {
        share.map_or("unknown".to_owned(), |s| Unit::Share.show(s, Letters::Unicode))
    };
    let cpu = &bundle.observed.cpu;
    let busy = match cpu.busy_avg {
        Some(_) => {
            format!("{} ({} to {})", share(cpu.busy_avg), share(cpu.busy_min), share(cpu.busy_max))
        }
        None => share(None),
    };
    pairs.push(("CPU".to_owned(), busy));
    pairs
}

/// Returns the name of an instance, or its number if it has no name.
pub(super) fn instance_name(bundle: &Bundle, instance: u32) -> String {
    match bundle.run.instances.get(instance as usize) {
        Some(instance) => instance.name.clone(),
        None => format!("{}", instance + 1),
    }
}

fn instances(bundle: &Bundle, kinds: &[Kind]) -> Vec<u32> {
    let mut found: Vec<u32> = bundle
        .run
        .classes
        .iter()
        .filter(|class| kinds.iter().any(|kind| kind.includes(class)))
        .map(|class| class.instance)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn instance_title(bundle: &Bundle) -> &'static str {
    if bundle.plan.workload.mailbox().is_some() { "database" } else { "instance" }
}

/// Returns a table with the latencies, rates and sizes of each kind of I/O.
fn full(bundle: &Bundle, caption: &str, kinds: &[Kind]) -> Table {
    let title = instance_title(bundle);
    let mut columns = vec![Column::words(title, title)];
    for kind in kinds {
        let key = format!("{}_latency_ns_avg", kind.key);
        columns.push(Column::of(Unit::Latency, &kind.label, &key).under("average latency"));
    }
    for kind in kinds {
        let key = format!("{}_rate_per_s", kind.key);
        columns.push(Column::of(Unit::Rate, &kind.label, &key).under("I/Os per second"));
    }
    for kind in kinds {
        let key = format!("{}_size_bytes_avg", kind.key);
        columns.push(Column::of(Unit::Size, &kind.label, &key).under("average size"));
    }
    let row = |name: &str, instance: Option<u32>| {
        let totals: Vec<Totals> = kinds.iter().map(|kind| kind.totals(bundle, instance)).collect();
        let mut cells = vec![Cell::text(name)];
        cells.extend(totals.iter().map(|t| Cell::maybe(Unit::Latency, t.latency_ns_avg())));
        cells.extend(totals.iter().map(|t| Cell::maybe(Unit::Rate, t.rate_per_s(bundle))));
        cells.extend(totals.iter().map(|t| Cell::maybe(Unit::Size, t.size_bytes_avg())));
        cells
    };
    let mut table = Table::new(caption, columns);
    let instances = instances(bundle, kinds);
    table.rows = instances.iter().map(|i| row(&instance_name(bundle, *i), Some(*i))).collect();
    if instances.len() > 1 {
        table.totals.push(row("all", None));
    }
    table
}

/// Returns rate, bandwidth, size and latency of one kind of I/O. Returns no rows if there was no
/// such I/O.
fn small(bundle: &Bundle, caption: &str, kinds: &[Kind]) -> Table {
    let title = instance_title(bundle);
    let mut columns = vec![Column::words(title, title)];
    for kind in kinds {
        let key = |what: &str| format!("{}_{what}", kind.key);
        columns.extend([
            Column::of(Unit::Rate, "per second", &key("rate_per_s")).under(&kind.label),
            Column::of(Unit::Bandwidth, "bandwidth", &key("bandwidth_bytes_per_s"))
                .under(&kind.label),
            Column::of(Unit::Size, "average size", &key("size_bytes_avg")).under(&kind.label),
            Column::of(Unit::Latency, "average latency", &key("latency_ns_avg")).under(&kind.label),
        ]);
    }
    let mut table = Table::new(caption, columns);
    if kinds.is_empty() {
        return table;
    }
    let row = |name: &str, instance: Option<u32>| {
        let mut cells = vec![Cell::text(name)];
        for kind in kinds {
            let totals = kind.totals(bundle, instance);
            let bandwidth = super::kinds::per_second(bundle, totals.sums.bytes_within());
            cells.extend([
                Cell::maybe(Unit::Rate, totals.rate_per_s(bundle)),
                Cell::maybe(Unit::Bandwidth, bandwidth),
                Cell::maybe(Unit::Size, totals.size_bytes_avg()),
                Cell::maybe(Unit::Latency, totals.latency_ns_avg()),
            ]);
        }
        cells
    };
    let instances = instances(bundle, kinds);
    table.rows = instances.iter().map(|i| row(&instance_name(bundle, *i), Some(*i))).collect();
    if instances.len() > 1 {
        table.totals.push(row("all", None));
    }
    table
}

/// Returns totals of all I/O in the measured phase, including maintenance and upkeep.
pub(crate) fn total(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "Total I/O performance",
        vec![
            Column::words("I/O", "io"),
            Column::of(Unit::Count, "I/Os", "count"),
            Column::of(Unit::Rate, "per second", "rate_per_s"),
            Column::of(Unit::Bandwidth, "bandwidth", "bandwidth_bytes_per_s"),
            Column::numbers("average size", "size_bytes_avg"),
            Column::numbers("average latency", "latency_ns_avg"),
            Column::numbers("largest single", "latency_ns_max"),
        ],
    );
    let row = |name: &str, totals: &Totals| {
        let largest = (totals.sums.count > 0).then_some(totals.latency_ns_max as f64);
        vec![
            Cell::text(name),
            Cell::count(totals.sums.count),
            Cell::maybe(Unit::Rate, totals.rate_per_s(bundle)),
            Cell::maybe(
                Unit::Bandwidth,
                super::kinds::per_second(bundle, totals.sums.bytes_within()),
            ),
            Cell::maybe(Unit::Size, totals.size_bytes_avg()),
            Cell::maybe(Unit::Latency, totals.latency_ns_avg()),
            Cell::maybe(Unit::Latency, largest),
        ]
    };
    for kind in kinds(bundle) {
        table.rows.push(row(&kind.label, &kind.totals(bundle, None)));
    }
    for (name, operation) in [("all reads", Operation::Read), ("all writes", Operation::Write)] {
        let mut totals = Totals::default();
        for class in bundle
            .run
            .classes
            .iter()
            .filter(|c| !is_counted_elsewhere(c) && Operation::of(c) == operation)
        {
            totals.add(class);
        }
        if totals.sums.count > 0 {
            table.totals.push(row(name, &totals));
        }
    }
    let reads = kind(bundle, "transactional", Operation::Read).label;
    table.note = format!(
        "Only {reads} and writes count as transactional I/O. A transfer of several adjacent pages \
         is one I/O."
    );
    table
}
