//! The run as a trace for browsers (`chrome://tracing`, Perfetto): phases are slices; rate,
//! bandwidth and latency of each class and all gauges are counters.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::series::Data;
use plimsoll_judge::Verdict;
use serde_json::{Value, json};

/// Process id of the run in the trace; its threads contain phases.
const PROCESS: u32 = 1;

/// Returns the trace as JSON.
pub fn json(bundle: &Bundle, verdict: &Verdict) -> Value {
    let run = &bundle.run;
    let us = |ns: u64| ns as f64 / 1e3;
    let mut events = vec![
        json!({"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": run.name}}),
        json!({"ph": "M", "pid": PROCESS, "tid": 1, "name": "thread_name", "args": {"name": "phases"}}),
    ];
    for phase in &run.phases {
        events.push(json!({
            "ph": "X", "pid": PROCESS, "tid": 1, "cat": "phase", "name": phase.kind.label(),
            "ts": us(phase.start_ns), "dur": us(phase.duration_ns),
            "args": {"read_bytes": phase.read_bytes, "written_bytes": phase.written_bytes, "note": phase.note},
        }));
    }
    for row in bundle.series.iter().filter(|row| row.duration_ns > 0) {
        let seconds = row.duration_ns as f64 / 1e9;
        // A counter's value is valid from its time on, so an interval's value is at its start.
        let mut counter = |name: String, args: Value| {
            events.push(json!({
                "ph": "C", "pid": PROCESS, "name": name, "ts": us(row.start_ns), "args": args,
            }));
        };
        match row.data {
            Data::Class { count, sum_ns, bytes, max_ns } => {
                counter(format!("{} per s", row.name), json!({"rate": count as f64 / seconds}));
                if bytes > 0 {
                    let rate = bytes as f64 / seconds;
                    counter(format!("{} bytes per s", row.name), json!({"bandwidth": rate}));
                }
                if count > 0 {
                    let mean = sum_ns as f64 / count as f64;
                    let args = json!({"mean": mean / 1e3, "max": max_ns as f64 / 1e3});
                    counter(format!("{} latency us", row.name), args);
                }
            }
            Data::Gauge(value) => counter(row.name.clone(), json!({"value": value})),
        }
    }
    json!({
        "displayTimeUnit": "ms",
        "otherData": {
            "run_id": run.run_id,
            "verdict": verdict.verdict.label(),
            "reason": verdict.reason,
            "tool": format!("plimsoll {}", run.tool_version),
            "started_unix_ns": run.started_unix_ns,
        },
        "traceEvents": events,
    })
}
