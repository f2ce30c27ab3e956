//! Made-up evidence for tests that take several bundles together: a mail store's run at a given rate
//! and latency, steady to the last second.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Environment, Mount, Transport};
use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::series::{Data, Row};
use plimsoll_plan::{Plan, ResolvedPlan};
use serde_json::json;

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 60;

pub const PLAN: &str = "version = 1\nname = \"made-up\"\n[requirement]\n[target]\npath = \"/x\"\n\
    [workload.mailbox]\nmailboxes = 500\niops_per_mailbox = 0.2\nmailbox_size = \"1MiB\"\n\
    databases = 1\nthreads = 4\ncache = \"8MiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\n\
    min_measure = \"30s\"\n";

/// A class of I/O: name, group, whether it reads, rate per second, latency, size.
pub type Shape<'a> = (&'a str, &'a str, bool, f64, u64, u64);

pub fn plan(text: &str) -> ResolvedPlan {
    Plan::parse(text, "made-up.toml").unwrap_or_else(|errors| panic!("{errors}")).resolve()
}

/// A run that carried `reads_per_s` at `latency_ns`, under that name.
pub fn run(plan: &ResolvedPlan, id: &str, reads_per_s: f64, latency_ns: u64) -> Bundle {
    let shapes = [
        ("db0.read", "transactional", true, reads_per_s, latency_ns, 32_768),
        ("db0.log_write", "log", false, 40.0, 1_000_000, 32_768),
    ];
    run_of(plan, id, &shapes)
}

/// A run of these classes of I/O.
pub fn run_of(plan: &ResolvedPlan, id: &str, shapes: &[Shape<'_>]) -> Bundle {
    let (mut series, mut classes) = (Vec::new(), Vec::new());
    for &(name, group, is_read, per_second, latency_ns, size_bytes) in shapes {
        let (mut total, mut due) = (0, 0.0);
        for second in 0..SECONDS {
            // A little movement, so that the samples are not all alike.
            due += per_second * (1.0 + 0.001 * (second * 7 % 5) as f64 - 0.002);
            let count = due as u64 - total;
            total += count;
            let sum_ns = count * latency_ns;
            let data = Data::Class { count, sum_ns, bytes: count * size_bytes, max_ns: latency_ns };
            let start_ns = (10 + second) * SECOND_NS;
            let name = name.to_owned();
            series.push(Row { phase: 1, start_ns, duration_ns: SECOND_NS, name, data });
        }
        classes.push(json!({
            "name": name, "group": group, "instance": 0, "is_read": is_read, "count": total,
            "size_bytes": total * size_bytes, "latency_ns_sum": total * latency_ns,
            "latency_ns_max": latency_ns, "service_ns_sum": total * latency_ns,
            "service_ns_max": latency_ns, "errors": 0, "abandoned": 0, "never_started": 0
        }));
    }
    let phase = |kind: &str, start_s: u64, seconds: u64| {
        let exact = (kind == "measure").then_some(0);
        json!({
            "kind": kind, "boundary_error_ns": exact, "start_ns": start_s * SECOND_NS, "duration_ns": seconds * SECOND_NS,
            "read_bytes": 0, "written_bytes": 0, "reached": true, "note": ""
        })
    };
    let run = json!({
        "schema_version": 1, "tool_version": "0", "run_id": id, "name": plan.name,
        "plan_sha256": plan.sha256_hex().unwrap(), "driver": "real", "tier": "T1",
        "started_unix_ns": 0, "duration_ns": 80 * SECOND_NS,
        "end": { "kind": "completed", "says": "" }, "ledger": null,
        "engine": {
            "kind": "io_uring", "why": "", "threads": 1, "sessions": 4, "closed_loop": true,
            "paths": [{ "path": "/x", "direct": true, "why": "" }],
            "clock": { "source": "", "resolution_ns": 1, "cost_ps": 1 }
        },
        "phases": [phase("warm-up", 0, 10), phase("measure", 10, SECONDS)],
        "classes": classes,
        "instances": [{
            "name": "db0", "path": "/x", "log_path": null, "size_bytes_initial": 500 << 20,
            "size_bytes_final": 500 << 20, "allocated_bytes": 625 << 20
        }],
        "counters": { "page_fault_stalls": 0 },
        "checks": { "pages_checked": 16_000, "errors": 0, "damage": [] }
    });
    let mut observed = Observed::default();
    (observed.generator.user_ns, observed.generator.system_ns) = (Some(SECOND_NS), Some(SECOND_NS));
    (observed.generator.storage_read_bytes, observed.generator.storage_written_bytes) =
        (Some(u64::MAX), Some(u64::MAX));
    (observed.memory.dirty_bytes_after, observed.clock.stopped_ns) = (Some(0), Some(0));
    Bundle {
        run: serde_json::from_value(run).unwrap(),
        plan_text: String::new(),
        job_text: None,
        plan: plan.clone(),
        environment: Environment {
            cpus: Some(2),
            kernel: Some("6.1.0".into()),
            cpu_score: Some(1000.0),
            mounts: vec![Mount {
                path: "/x".into(),
                file_system: Some("ext4".into()),
                ..Mount::default()
            }],
            devices: vec![Device {
                name: "sda".into(),
                kind: "disk".into(),
                transport: Some(Transport::Iscsi),
                ..Device::default()
            }],
            ..Environment::default()
        },
        series,
        observed,
        latency: std::collections::BTreeMap::new(),
        latency_spans: Vec::new(),
        seal_sha256: None,
    }
}
