//! Section about a replayed trace: its file, how its addresses are mapped to the target, delays,
//! and omitted operations.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Replay, TraceBegun};

use super::empty_section;
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit, elapsed};
use crate::table::Cell;

/// Number of digits of a hash that are shown.
const HASH_DIGITS: usize = 12;

/// Returns the section; empty if the run did not replay a trace.
pub(super) fn section(bundle: &Bundle) -> Section {
    let Some(replay) = bundle.observed.replay.as_deref() else { return empty_section() };
    let mut facts = vec![trace(replay), requested(replay), places(replay)];
    match &replay.begun {
        Some(begun) => facts.extend(began(replay, begun)),
        None => facts.push(Fact::new("replayed", Cell::unknown())),
    }
    facts.push(Fact::new("left out", Cell::text(left_out(replay))));
    Section::brief("replay", "Trace replay").with(Block::Facts(facts))
}

fn size(bytes: u64) -> String {
    Unit::Size.show(bytes as f64, Letters::Unicode)
}

fn latency(ns: u64) -> String {
    Unit::Latency.show(ns as f64, Letters::Unicode)
}

fn trace(replay: &Replay) -> Fact {
    let trace = &replay.trace;
    let hash: String = trace.sha256.chars().take(HASH_DIGITS).collect();
    let stage = trace.stage.as_ref().map_or(String::new(), |stage| format!(", events {stage}"));
    let volumes = match trace.volumes_count {
        1 => String::new(),
        n => format!(", {n} devices or files, concatenated"),
    };
    Fact::new("trace", Cell::text(trace.file.clone()))
        .note(format!("{}{stage}{volumes}, sha256 {hash}…", trace.format))
}

fn share(part: u64, all: u64) -> String {
    if all == 0 {
        return "no operations".to_owned();
    }
    format!("{:.1} % reads", part as f64 / all as f64 * 100.0)
}

fn requested(replay: &Replay) -> Fact {
    let due = &replay.due;
    let of = match due.operations == replay.operations {
        true => String::new(),
        false => format!(" of {}", replay.operations),
    };
    let pace = match replay.speed {
        None => "to be started as fast as the target allows".to_owned(),
        Some(1.0) => "to be started at the recorded pace".to_owned(),
        Some(speed) => format!("to be started {speed} times as fast as recorded"),
    };
    let flushes = match due.flushes {
        0 => String::new(),
        n => format!(", {n} flushes"),
    };
    let text = format!(
        "{}{of} operations, {}{flushes}, {} in {}",
        due.operations,
        share(due.reads, due.operations),
        size(due.size_bytes),
        elapsed(due.span_ns as f64)
    );
    Fact::new("requested", Cell::text(text)).note(pace)
}

fn places(replay: &Replay) -> Fact {
    let mapping = &replay.mapping;
    let share = |n: u64| n as f64 / replay.operations.max(1) as f64 * 100.0;
    let mut note =
        format!("{:.1} % of the operations were moved to another offset", share(mapping.moved));
    for (n, what) in [
        (mapping.folded, "share their offset on the target with other addresses of the trace"),
        (mapping.rounded, "were rounded to the block size"),
    ] {
        if n > 0 {
            note.push_str(&format!(", {:.1} % {what}", share(n)));
        }
    }
    let text = format!(
        "{}: the addresses of the trace span a range of {}, of which the trace accesses at most {}; \
         the size of the target is {}",
        mapping.rule,
        size(mapping.extent_bytes),
        size(mapping.touched_bytes.min(mapping.extent_bytes)),
        size(mapping.target_bytes)
    );
    Fact::new("addresses", Cell::text(text)).note(note)
}

fn began(replay: &Replay, begun: &TraceBegun) -> Vec<Fact> {
    let never = match begun.never {
        0 => String::new(),
        n => format!(", {n} more never started"),
    };
    let took = begun.took_ns.map_or(String::new(), |ns| format!(" in {}", elapsed(ns as f64)));
    let order = match (begun.threads, replay.trace.out_of_order) {
        (0 | 1, 0) => "started in the order of the trace".to_owned(),
        (0 | 1, n) => format!(
            "started in the order of their recorded times; {n} were out of order in the trace"
        ),
        (n, _) => format!("started by {n} threads, so the order of the trace is not preserved"),
    };
    let all = if replay.due.flushes > 0 { "operations and flushes" } else { "operations" };
    let text = format!("{} {all}{took}{never}", begun.operations);
    let mut facts = vec![Fact::new("replayed", Cell::text(text)).note(order)];
    if let Some(lag) = &begun.lag {
        let end =
            begun.lag_end_ns.map_or(String::new(), |ns| format!(", at the end {}", latency(ns)));
        let text = format!(
            "p50 {}, p99 {}, largest {}{end}",
            latency(lag.wait_ns_p50),
            latency(lag.wait_ns_p99),
            latency(lag.wait_ns_max)
        );
        facts.push(
            Fact::new("lag", Cell::text(text))
                .note("delay between the time in the trace and the actual start"),
        );
    }
    facts
}

fn left_out(replay: &Replay) -> String {
    let trace = &replay.trace;
    let mut parts: Vec<String> =
        trace.left_out.iter().map(|(what, count)| format!("{count} {what}")).collect();
    for (n, what) in [
        (trace.unreadable_lines, "lines that cannot be read"),
        (replay.mapping.outside, "operations after the end of the target"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}
