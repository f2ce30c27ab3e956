//! Prints the events of a run, one JSON object per line: `cargo run -p plimsoll-runner --example
//! events PLAN`. The first line on stdin stops the run.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use plimsoll_evidence::series::Data;
use plimsoll_plan::Plan;
use plimsoll_runner::places::Places;
use plimsoll_runner::run::{Event, Options, Runner};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which plan?")?;
    let plan = Plan::load(Path::new(&path), &plimsoll_import::fio_job::read_job)
        .map_err(|errors| errors.to_string())?;
    let places = Places::from_environment().map_err(|error| error.to_string())?;
    let run = Runner::start(&plan, Options::new(places)).map_err(|error| error.to_string())?;
    let stop = run.stop_flag();
    std::thread::spawn(move || {
        if std::io::stdin().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    for event in run {
        if let Some(line) = line(&event) {
            writeln!(std::io::stdout(), "{line}")?;
        }
    }
    Ok(())
}

fn line(event: &Event) -> Option<Value> {
    Some(match event {
        Event::PhaseBegan { kind, expected_ns } => {
            json!({"event": "phase-began", "phase": kind, "expected_ns": expected_ns})
        }
        Event::Interval(row) => match row.data {
            Data::Class { count, sum_ns, bytes, max_ns } => json!({
                "event": "interval", "class": row.name, "start_ns": row.start_ns,
                "duration_ns": row.duration_ns, "count": count, "latency_ns_sum": sum_ns,
                "latency_ns_max": max_ns, "size_bytes": bytes
            }),
            Data::Gauge(_) => return None,
        },
        Event::PhaseEnded(phase) => json!({"event": "phase-ended", "phase": phase}),
        Event::Note(text) => json!({"event": "note", "text": text}),
        Event::Part(text) => json!({"event": "part", "text": text}),
        Event::Warning(text) => json!({"event": "warning", "text": text}),
        Event::Planned(record) => json!({"event": "planned", "record": record}),
        Event::Finding(finding) => json!({"event": "finding", "finding": finding}),
        Event::Finished { directory, verdict, .. } => json!({
            "event": "finished", "bundle": directory, "verdict": verdict.verdict
        }),
        Event::ExperimentFinished { directory } => {
            json!({"event": "experiment-finished", "experiment": directory})
        }
        Event::Failed(error) => json!({"event": "failed", "message": error.message}),
        Event::Latencies(_) | Event::Progress { .. } | Event::Fleet(_) => return None,
    })
}
