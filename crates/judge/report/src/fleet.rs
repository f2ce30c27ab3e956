//! Report of a fleet: a row for each host, the total, the average, the spread, and the slowest
//! host.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::{Fleet, Host, HostRun};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_judge::figures::{Pick, measured, rates_per_s};
use plimsoll_judge::fleet::{FleetVerdict, HostLine, Total};
use plimsoll_judge::{Verdict, VerdictKind};

use crate::chart::plot::Series as Line;
use crate::chart::{Axis, Mark, Plot};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::Unit;
use crate::run::{
    checks, demonstration, distribution, events, findings, links, timeline, verdict_tone,
};
use crate::table::{Cell, Column, Table, Tone};

/// Phases that each host runs independently. The report has one column for the duration of each
/// phase.
const TIMED: [PhaseKind; 4] =
    [PhaseKind::Create, PhaseKind::Duplicate, PhaseKind::FormatLogs, PhaseKind::Verify];

/// Maximum number of hosts in a chart. Each host is one line.
const LINES_MAX: usize = 8;

/// Returns the report of a fleet's run. `one` is the combined run of all hosts, and `hosts` the
/// bundles that the hosts wrote.
#[must_use]
pub fn fleet_document(
    fleet: &Fleet,
    verdict: &FleetVerdict,
    one: &(Bundle, Verdict),
    hosts: &[(Bundle, Verdict)],
) -> Document {
    let mut figures = Vec::new();
    if let Some(total) = &verdict.total {
        figures.push(Fact::new("all hosts", Cell::number(Unit::Rate, total.ops_per_s)));
        figures.push(Fact::new("bandwidth", Cell::number(Unit::Bandwidth, total.bytes_per_s)));
    }
    figures.push(Fact::new("hosts", Cell::count(fleet.hosts.len() as u64)));
    if let Some(window) = fleet.window {
        figures.push(
            Fact::new(
                "spread of start times",
                Cell::number(Unit::Latency, window.start_skew_ns as f64),
            )
            .note(format!("± {:.2} ms", window.start_skew_error_ns as f64 / 1e6)),
        );
    }
    Document {
        title: fleet.name.clone(),
        identity: vec![
            ("run".to_owned(), fleet.run_id.clone()),
            ("version".to_owned(), fleet.tool_version.clone()),
            ("plan signed by".to_owned(), fleet.signed_by.clone()),
        ],
        headline: Headline {
            word: verdict.verdict.label().to_owned(),
            tone: verdict_tone(verdict.verdict),
            reason: verdict.reason.clone(),
            figures,
        },
        // Without a common measured phase there is no banner: the verdict's reason already explains
        // it.
        demonstration: (verdict.demonstration && measured(&one.0).is_some())
            .then(|| demonstration(&one.0)),
        sections: [
            checks(verdict),
            events::section(&one.0),
            table(verdict),
            latencies(verdict.total.as_ref()),
            findings::list(
                &one.1.findings,
                "The rules have no findings, neither about single hosts nor about the whole fleet.",
            ),
            findings::claims_line(&one.1),
            phases(verdict),
            each(fleet, hosts),
            timeline::section(&one.0, &one.1),
            distribution::section(&one.0),
            findings::claims_section(&one.1),
            events::outputs(&one.0),
            interfaces(fleet, hosts),
            agents(fleet, verdict, hosts),
        ]
        .into_iter()
        .filter(|section| !section.blocks.is_empty())
        .collect(),
        ..Document::default()
    }
}

/// Shows each limit with the value of the host that is furthest from meeting the limit.
fn checks(verdict: &FleetVerdict) -> Section {
    let section = Section::brief("checks", "Checks");
    match verdict.checks.is_empty() {
        true => section,
        false => section.with(Block::Table(checks::table(&verdict.checks))),
    }
}

fn verdict_cell(verdict: Option<VerdictKind>) -> Cell {
    match verdict {
        Some(verdict) => Cell::text(verdict.label()).tone(verdict_tone(verdict)),
        None => Cell::text("no evidence").tone(Tone::Bad),
    }
}

fn table(verdict: &FleetVerdict) -> Section {
    let columns = vec![
        Column::words("host", "host"),
        Column::words("verdict", "verdict"),
        Column::of(Unit::Rate, "I/Os", "ops_per_s"),
        Column::of(Unit::Bandwidth, "bandwidth", "bytes_per_s"),
        Column::of(Unit::Latency, "mean latency", "latency_ns_avg"),
        Column::of(Unit::Latency, "largest", "latency_ns_max").rank(2),
        Column::of(Unit::Latency, "started late", "start_late_ns").rank(1),
    ];
    let mut table = Table::new("Figures of each host during the common measurement time", columns);
    let number = |unit, base: Option<u64>| Cell::maybe(unit, base.map(|base| base as f64));
    for host in &verdict.hosts {
        let (verdict, ops_per_s, bytes_per_s) = match host.until_lost {
            Some(until) => (
                Cell::text("lost as expected; figures end at the loss"),
                Cell::observed(Unit::Rate, until.ops_per_s),
                Cell::observed(Unit::Bandwidth, until.bytes_per_s),
            ),
            None => (
                verdict_cell(host.verdict),
                Cell::maybe(Unit::Rate, host.ops_per_s),
                Cell::maybe(Unit::Bandwidth, host.bytes_per_s),
            ),
        };
        table.rows.push(vec![
            Cell::text(host.name.as_str()),
            verdict,
            ops_per_s,
            bytes_per_s,
            number(Unit::Latency, host.latency_ns_avg),
            number(Unit::Latency, host.latency_ns_max),
            number(Unit::Latency, host.start_late_ns),
        ]);
    }
    let Some(total) = &verdict.total else {
        table.note =
            "There is no total, because at least one host did not run its part of the load."
                .to_owned();
        return Section::brief("hosts", "Hosts").with(Block::Table(table));
    };
    let row = |name: &str, ops: f64, bytes: f64| {
        let mut row = vec![
            Cell::text(name).tone(Tone::Strong),
            Cell::empty(),
            Cell::number(Unit::Rate, ops).tone(Tone::Strong),
            Cell::number(Unit::Bandwidth, bytes).tone(Tone::Strong),
        ];
        row.resize(7, Cell::empty());
        row
    };
    let counted = verdict.hosts.iter().filter(|host| host.until_lost.is_none());
    let count = counted.count().max(1) as f64;
    table.totals = vec![
        row("all", total.ops_per_s, total.bytes_per_s),
        row("average", total.host_ops_per_s_avg, total.bytes_per_s / count),
    ];
    table.note = format!(
        "Spread of the hosts' rates: {:.1} % of their average. The slowest host is {}.",
        total.host_ops_spread * 100.0,
        total.slowest_host
    );
    Section::brief("hosts", "Hosts").with(Block::Table(table))
}

/// Draws the rate of each host during its measured phase. The x axis is the time on the fleet's
/// clock.
fn each(fleet: &Fleet, hosts: &[(Bundle, Verdict)]) -> Section {
    let section = Section::full("each", "Each host over time");
    let width_ns = fleet.interval_ns.max(1);
    let reported = fleet.hosts.iter().filter_map(|host| Some((host, host.run.as_ref()?)));
    let line = |(colour, ((host, run), (bundle, _))): (usize, ((&Host, &HostRun), &_))| {
        let start_ns = run.phase_start_ns(PhaseKind::Measure)?;
        let rates = rates_per_s(bundle, Pick::Transactional, width_ns).into_iter().enumerate();
        let at = |number: usize| start_ns as f64 + (number as f64 + 0.5) * width_ns as f64;
        let points: Vec<_> = rates.map(|(number, rate)| (at(number), Some(rate))).collect();
        let name = host.name.clone();
        (points.len() > 1).then_some(Mark::Line(Line { name, colour: colour as u8, points }))
    };
    let marks: Vec<Mark> =
        reported.zip(hosts).enumerate().filter_map(line).take(LINES_MAX).collect();
    if marks.is_empty() || hosts.len() < 2 {
        return Section { blocks: Vec::new(), ..section };
    }
    let title = match hosts.len() > LINES_MAX {
        true => format!("Operation rate of the first {LINES_MAX} hosts"),
        false => "Operation rate of each host".to_owned(),
    };
    let (x, y) = (
        Axis::linear("time since the start of the run", Unit::Elapsed),
        Axis::linear("I/Os", Unit::Rate),
    );
    let plot = Plot { marks, ..Plot::new("fleet-each", &title, x, y) };
    section.with(Block::Chart(Box::new(plot)))
}

fn interfaces(fleet: &Fleet, hosts: &[(Bundle, Verdict)]) -> Section {
    let reported = fleet.hosts.iter().filter(|host| host.run.is_some());
    let named = reported.zip(hosts).map(|(host, (bundle, _))| (host.name.as_str(), bundle));
    let table = links::table_of_hosts(named);
    let section = Section::full("links", "Network interfaces");
    if table.rows.is_empty() { section } else { section.with(Block::Table(table)) }
}

fn latencies(total: Option<&Total>) -> Section {
    let latency = |title: &str, key: &str| Column::of(Unit::Latency, title, key);
    let columns = vec![
        Column::words("class", "class"),
        Column::of(Unit::Count, "I/Os", "latency_count"),
        latency("mean", "latency_ns_avg"),
        latency("p50", "latency_ns_p50"),
        latency("p99", "latency_ns_p99"),
        latency("p99.9", "latency_ns_p999"),
        latency("max", "latency_ns_max"),
    ];
    let mut table =
        Table::new("Latencies of all I/Os, from the merged histograms of all hosts", columns);
    for class in total.map_or(&[][..], |total| &total.classes) {
        let number = |base: Option<u64>| Cell::maybe(Unit::Latency, base.map(|base| base as f64));
        table.rows.push(vec![
            Cell::text(class.name.as_str()),
            Cell::count(class.latency_count),
            number(class.latency_ns_avg),
            number(class.latency_ns_p50),
            number(class.latency_ns_p99),
            number(class.latency_ns_p999),
            number(Some(class.latency_ns_max)),
        ]);
    }
    Section::brief("latencies", "Latencies").with(Block::Table(table))
}

fn phases(verdict: &FleetVerdict) -> Section {
    let took = |host: &HostLine, kind| {
        let of_kind = host.phases.iter().filter(|(of, _)| *of == kind).map(|(_, ns)| *ns);
        Some(of_kind.sum::<u64>()).filter(|ns| *ns > 0)
    };
    let timed =
        TIMED.into_iter().filter(|kind| verdict.hosts.iter().any(|h| took(h, *kind).is_some()));
    let kinds: Vec<PhaseKind> = timed.collect();
    let mut columns = vec![Column::words("host", "host")];
    columns.extend(kinds.iter().map(|kind| Column::numbers(kind.label(), kind.label())));
    let mut table = Table::new("Duration of the phases on each host", columns);
    for host in verdict.hosts.iter().filter(|_| !kinds.is_empty()) {
        let mut row = vec![Cell::text(host.name.as_str())];
        row.extend(
            kinds
                .iter()
                .map(|kind| Cell::maybe(Unit::Elapsed, took(host, *kind).map(|ns| ns as f64))),
        );
        table.rows.push(row);
    }
    Section::brief("phases", "Phases").with(Block::Table(table))
}

fn agents(fleet: &Fleet, verdict: &FleetVerdict, hosts: &[(Bundle, Verdict)]) -> Section {
    let columns = vec![
        Column::words("agent", "agent"),
        Column::words("host", "host"),
        Column::words("address", "address"),
        Column::of(Unit::Latency, "clock error", "clock_error_ns"),
        Column::words("run", "run"),
        Column::remarks("targets", "places"),
        Column::remarks("why", "reason"),
    ];
    let mut table =
        Table::new("Agents (the directory `hosts` contains the evidence of each host)", columns);
    let mut left = hosts.iter();
    for (host, line) in fleet.hosts.iter().zip(&verdict.hosts) {
        let own = host.run.as_ref().and_then(|_| left.next());
        table.rows.push(vec![
            Cell::text(host.name.as_str()),
            Cell::text(host.host.as_str()),
            Cell::text(host.address.as_str()),
            Cell::observed(Unit::Latency, line.clock_error_ns.map(|ns| ns as f64)),
            Cell::text(host.run.as_ref().map_or("none", |run| run.run_id.as_str())),
            Cell::text(own.map_or(String::new(), |(bundle, _)| target_list(bundle))),
            Cell::text(line.reason.as_str()),
        ]);
    }
    Section::full("agents", "Agents").with(Block::Table(table))
}

/// Returns the targets of the plan that a host ran, from its bundle.
fn target_list(bundle: &Bundle) -> String {
    let targets = bundle.plan.targets.iter();
    targets.flat_map(plimsoll_plan::Target::places).collect::<Vec<_>>().join(", ")
}
