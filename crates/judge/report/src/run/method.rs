//! Sections about the method, the terms, and the run's line in the ledger.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, LedgerPosition};
use plimsoll_judge::Verdict;

use super::{empty_section, sentence};
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit, elapsed};
use crate::table::{Cell, Column, Table, Tone};
use crate::time;

pub(super) fn section(bundle: &Bundle, verdict: &Verdict) -> Section {
    Section::full("method", "How it was measured")
        .with(Block::List(notes(bundle, verdict)))
        .with(Block::Table(paths(bundle)))
}

fn notes(bundle: &Bundle, verdict: &Verdict) -> Vec<String> {
    let run = &bundle.run;
    let engine = &run.engine;
    let mut notes = Vec::new();
    notes.push(match (run.driver, engine.closed_loop) {
        (Driver::Foreign, _) => "Another tool measured; Plimsoll judged its results.".to_owned(),
        (_, true) => format!(
            "Closed loop of {}: an operation starts when the previous one has ended. While the \
             storage stalls, no new operations start. The percentiles therefore lack the operations \
             that a user would have started during the stall (coordinated omission). Latency is \
             measured from the time at which the operation was due to start.",
            super::threads(engine.sessions)
        ),
        (_, false) => "Open loop: each operation starts at its scheduled time, even if earlier \
                       operations have not ended. Latency is measured from the scheduled time, so \
                       that a stall adds to the latency of every operation that it delays."
            .to_owned(),
    });
    if run.driver != Driver::Model {
        notes.push(
            "Evidence has one of three tiers. T1: Plimsoll's own engine measured the storage. T2: \
             another tool measured it while Plimsoll observed the underlying system. T3: there is \
             only a result file. A result file never shows where the data came from or whether \
             writes are durable."
                .to_owned(),
        );
    }
    notes.push(
        "Service time is the time from just before an I/O is submitted to the kernel until its \
         completion arrives."
            .to_owned(),
    );
    if run.driver == Driver::Model {
        notes.push(
            "The storage system is modelled, in virtual time: these figures are predictions, not \
             measurements."
                .to_owned(),
        );
    }
    if let Some(requirement) = &bundle.plan.requirement {
        notes.push(format!(
            "A maximum latency is the largest mean over intervals of {}, as in Jetstress. The \
             largest single I/O is also shown, but it is not judged.",
            elapsed(requirement.latency_max_of_ns as f64)
        ));
    }
    notes.extend(
        [
            "Latencies are recorded in HdrHistograms of three significant digits and merged; \
             percentiles are never averaged. A percentile is shown if at least ten I/Os are above \
             it.",
            "A 95 % interval is computed from the means of ten batches of the measured phase. The \
             interval is omitted if the samples are too strongly correlated. A mean passes if its \
             interval is within the limit, or if each of the ten batch means is within the limit.",
            "Unknown means that Plimsoll could not observe the fact. It never counts as zero or as \
             passed. A claim that is not shown may still be true; this evidence does not prove it.",
        ]
        .map(str::to_owned),
    );
    notes.push(format!(
        "I/O engine: {}{}, with {} operating-system threads.",
        engine.kind,
        if engine.why.is_empty() { String::new() } else { format!(" ({})", engine.why) },
        engine.threads
    ));
    if !engine.ring_features.is_empty() {
        notes.push(format!(
            "Features of the io_uring instance: {}.",
            engine.ring_features.join(", ")
        ));
    }
    if !engine.ring_refusals.is_empty() {
        notes.push(format!("The kernel did not provide {}.", engine.ring_refusals.join("; ")));
    }
    if let Some(polling) = &engine.polling {
        notes.push(match polling.longest_ns {
            0 => format!("Waiting threads slept without polling: {}.", polling.why_not),
            longest_ns => format!(
                "Waiting threads polled for completions for up to {} before they slept.",
                Unit::Latency.show(longest_ns as f64, Letters::Unicode)
            ),
        });
    }
    let clock = &engine.clock;
    if !clock.source.is_empty() {
        notes.push(format!(
            "Clock: {}, with a resolution of {}. Reading it takes {:.1} ns.",
            clock.source,
            Unit::Latency.show(clock.resolution_ns as f64, Letters::Unicode),
            clock.cost_ps as f64 / 1e3
        ));
    }
    notes.push(format!(
        "KiB, MiB and GiB are powers of 1,024; kB, MB and GB are powers of 1,000. Judged by rules \
         version {}.",
        verdict.rules_version
    ));
    notes
}

fn paths(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "Direct I/O, by path",
        vec![
            Column::words("path", "path"),
            Column::words("direct I/O", "direct"),
            Column::words("remark", "why"),
        ],
    );
    table.rows = bundle
        .run
        .engine
        .paths
        .iter()
        .map(|path| {
            let direct = match path.direct {
                true => Cell::text("yes").tone(Tone::Good),
                false => Cell::text("no").tone(Tone::Warn),
            };
            vec![Cell::text(path.path.clone()), direct, Cell::text(sentence(&path.why))]
        })
        .collect();
    table
}

pub(super) fn ledger(bundle: &Bundle) -> Section {
    let Some(ledger) = &bundle.run.ledger else {
        let words = "No ledger contains this run, so the number of earlier attempts is unknown.";
        let section = Section::full("ledger", "Ledger");
        return match bundle.run.driver {
            Driver::Foreign => empty_section(),
            _ => section.with(Block::Words(words.to_owned())),
        };
    };
    let mut facts = vec![
        Fact::new("line in the ledger", Cell::count(ledger.position)),
        Fact::new("SHA-256 of the previous line", Cell::text(ledger.previous_sha256.clone())),
        Fact::new("SHA-256 of the plan", Cell::text(bundle.run.plan_sha256.clone())),
    ];
    if let Some(unix_ns) = ledger.began_unix_ns {
        facts.insert(
            1,
            Fact::new("start of the ledger", Cell::text(began(bundle, ledger, unix_ns))),
        );
    }
    let words = Block::Words(tries(ledger));
    Section::full("ledger", "Ledger").with(words).with(Block::Facts(facts))
}

/// Describes the time of the ledger's first line. Runs before this time are not in the ledger.
fn began(bundle: &Bundle, ledger: &LedgerPosition, unix_ns: u64) -> String {
    let before = bundle.run.started_unix_ns.saturating_sub(unix_ns);
    match (ledger.position, before / 86_400_000_000_000) {
        (1, _) => "with this run".to_owned(),
        (_, 0) => format!("{}, {} before this run", time::utc(unix_ns), elapsed(before as f64)),
        (_, days) => format!("{}, {days} days before this run", time::utc(unix_ns)),
    }
}

fn tries(ledger: &LedgerPosition) -> String {
    if let (Some(alike), Some(given_up)) =
        (ledger.earlier_runs_alike, ledger.earlier_alike_not_completed)
    {
        return match alike {
            0 => "The ledger contains no earlier run of the same test on this system.".to_owned(),
            1 => format!(
                "The ledger contains one earlier run of the same test on this system; that run {}.",
                if given_up == 1 { "did not complete" } else { "completed" }
            ),
            n => format!(
                "The ledger contains {n} earlier runs of the same test on this system; {given_up} \
                 of these runs did not complete."
            ),
        };
    }
    let earlier = ledger.earlier_runs_of_plan;
    match earlier {
        0 => "This is the first run of this plan on this machine.".to_owned(),
        1 => format!(
            "This is run 2 of this plan on this machine; the previous run {}.",
            if ledger.earlier_runs_not_completed == 1 { "did not complete" } else { "completed" }
        ),
        _ => format!(
            "This is run {} of this plan on this machine; of the {earlier} earlier runs, {} did not \
             complete.",
            earlier + 1,
            match ledger.earlier_runs_not_completed {
                0 => "none".to_owned(),
                n => n.to_string(),
            }
        ),
    }
}
