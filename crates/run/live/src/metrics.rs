//! Formats the live state in the text format of Prometheus (0.0.4), with the base units seconds,
//! bytes and ratios. Unknown values are omitted.

use plimsoll_report::exports::prometheus::Families;
use plimsoll_runner::listener::HostStatus;

use crate::state::{AccessStatus, ClassStatus, DeviceStatus, State};

/// Returns a value of a class; `None` if it is unknown.
type ClassValue = fn(&ClassStatus) -> Option<f64>;
/// Returns a value of a device; `None` if it is unknown.
type DeviceValue = fn(&DeviceStatus) -> Option<f64>;

/// Metrics of a class of operations. Each row has name, kind, help text and value.
const CLASSES: [(&str, &str, &str, ClassValue); 5] = [
    ("operations_total", "counter", "Operations completed in the current phase.", |c| {
        Some(c.count as f64)
    }),
    ("bytes_total", "counter", "Bytes transferred in the current phase.", |c| Some(c.bytes as f64)),
    ("operations_per_second", "gauge", "Operations per second in the last interval.", |c| {
        Some(c.rate_ops_per_s)
    }),
    ("bytes_per_second", "gauge", "Bandwidth of the last interval.", |c| Some(c.rate_bytes_per_s)),
    ("latency_max_seconds", "gauge", "Maximum latency in the current phase.", |c| {
        (c.count > 0).then(|| seconds(c.latency_ns_max))
    }),
];

/// Metrics of an underlying block device.
const DEVICES: [(&str, &str, DeviceValue); 5] = [
    ("device_reads_per_second", "Reads that reached the device.", |d| Some(d.reads_per_s)),
    ("device_read_bytes_per_second", "Bytes read from the device.", |d| Some(d.read_bytes_per_s)),
    ("device_writes_per_second", "Writes that reached the device.", |d| Some(d.writes_per_s)),
    ("device_written_bytes_per_second", "Bytes written to the device.", |d| {
        Some(d.written_bytes_per_s)
    }),
    ("device_busy_ratio", "Share of time in which the device was busy.", |d| d.busy_share),
];

/// Returns a value of a host of a fleet.
type HostValue = fn(&HostStatus) -> Option<f64>;

/// Metrics of a host of a fleet.
const HOSTS: [(&str, &str, HostValue); 3] = [
    ("host_operations_per_second", "Operations completed by the host.", |h| Some(h.rate_ops_per_s)),
    ("host_bytes_per_second", "Bytes transferred by the host.", |h| Some(h.rate_bytes_per_s)),
    ("host_latency_seconds", "Recent mean latency on the host.", |h| h.latency_ns_avg.map(seconds)),
];

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the metrics. The text ends with a line feed.
pub fn text(state: &State) -> String {
    let plan = ("plan", state.plan.as_str());
    let mut all = Families::default();
    all.family("live_under_way", "gauge", "1 while the run is active, 0 when it has ended.");
    all.line("live_under_way", &[plan], f64::from(u8::from(state.is_under_way)));
    all.family("live_started_seconds", "gauge", "Start of the run, seconds since 1970.");
    all.line("live_started_seconds", &[plan], state.started_unix_ns as f64 / 1e9);
    all.family("live_runs_ended_total", "counter", "Number of judged runs of the plan.");
    all.line("live_runs_ended_total", &[plan], state.ended_count as f64);
    if !state.is_under_way {
        // Once the run has finished, its rates are outdated, so they are omitted.
        return all.text();
    }
    if let Some(phase) = &state.phase {
        let of = [plan, ("phase", phase.kind.as_str())];
        all.family("live_phase_seconds", "gauge", "Time since the phase began.");
        all.line("live_phase_seconds", &of, seconds(phase.elapsed_ns));
        if let Some(left_ns) = phase.left_ns {
            all.family(
                "live_phase_left_seconds",
                "gauge",
                "Estimated remaining time of the phase, if the rate does not change.",
            );
            all.line("live_phase_left_seconds", &of, seconds(left_ns));
        }
    }
    classes(&mut all, state);
    for (name, help, value) in DEVICES {
        let known = state.devices.iter().filter_map(|(name, of)| Some((name, value(of)?)));
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            all.family(&format!("live_{name}"), "gauge", help);
        }
        for (device, value) in known {
            all.line(&format!("live_{name}"), &[plan, ("device", device.as_str())], value);
        }
    }
    for (name, help, value) in HOSTS {
        let known: Vec<_> =
            state.hosts.iter().filter_map(|(name, of)| Some((name, value(of)?))).collect();
        if !known.is_empty() {
            all.family(&format!("live_{name}"), "gauge", help);
        }
        for (host, value) in known {
            all.line(&format!("live_{name}"), &[plan, ("host", host.as_str())], value);
        }
    }
    accesses(&mut all, state);
    if let Some(busy) = state.cpu_busy_share {
        all.family("live_cpu_busy_ratio", "gauge", "Share of processor time that is in use.");
        all.line("live_cpu_busy_ratio", &[plan], busy);
    }
    all.text()
}

/// Adds the working set and the share of random I/Os.
fn accesses(all: &mut Families, state: &State) {
    let plan = ("plan", state.plan.as_str());
    let sides = [("read", &state.reads), ("written", &state.writes)];
    let values: [(&str, &str, fn(&AccessStatus) -> Option<f64>); 2] = [
        (
            "live_working_set_bytes",
            "Distinct bytes accessed in the current phase, counted in blocks of 4 KiB.",
            |now| now.working_set_bytes.map(|bytes| bytes as f64),
        ),
        (
            "live_random_ratio",
            "Share of recent I/Os that were not sequential for their client.",
            |now| now.random_share,
        ),
    ];
    for (name, help, value) in values {
        let known: Vec<_> =
            sides.iter().filter_map(|(side, now)| Some((*side, value(now)?))).collect();
        if !known.is_empty() {
            all.family(name, "gauge", help);
        }
        for (side, value) in known {
            all.line(name, &[plan, ("side", side)], value);
        }
    }
}

fn classes(all: &mut Families, state: &State) {
    let phase = state.phase.as_ref().map_or("", |phase| phase.kind.as_str());
    if state.classes.is_empty() {
        return;
    }
    let of = |class: &str| {
        let [plan, phase] = [state.plan.clone(), phase.to_owned()];
        [("plan", plan), ("phase", phase), ("class", class.to_owned())]
    };
    for (name, kind, help, value) in CLASSES {
        let name = format!("live_{name}");
        all.family(&name, kind, help);
        for (class, now) in &state.classes {
            if let Some(value) = value(now) {
                all.line(&name, &borrowed(&of(class)), value);
            }
        }
    }
    let help = "Latency from the intended start of an operation, in the current phase.";
    all.family("live_latency_seconds", "summary", help);
    for (class, now) in &state.classes {
        let of = of(class);
        let of = borrowed(&of);
        let quantiles = [
            ("0.5", now.latency_ns_p50),
            ("0.99", now.latency_ns_p99),
            ("0.999", now.latency_ns_p999),
        ];
        for (quantile, ns) in quantiles {
            if let Some(ns) = ns {
                let labels = [&of[..], &[("quantile", quantile)]].concat();
                all.line("live_latency_seconds", &labels, seconds(ns));
            }
        }
        all.line("live_latency_seconds_sum", &of, seconds(now.latency_ns_sum));
        all.line("live_latency_seconds_count", &of, now.count as f64);
    }
}

fn borrowed<'a>(labels: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    labels.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_has_a_line_in_base_units_and_what_is_not_has_none() {
        let mut state = State::new("a \"b\"", 2_500_000_000);
        let mut class = ClassStatus::default();
        (class.count, class.bytes) = (4, 16_384);
        (class.latency_ns_sum, class.latency_ns_max) = (6_000_000, 3_000_000);
        class.latency_ns_p50 = Some(1_000_000);
        state.classes.insert("db1.read".to_owned(), class);
        state.classes.insert("db2.read".to_owned(), ClassStatus::default());
        state.devices.insert("sda".to_owned(), DeviceStatus::default());
        let host = HostStatus { rate_ops_per_s: 7.0, ..HostStatus::default() };
        state.hosts.insert("one".to_owned(), host);
        state.reads.working_set_bytes = Some(4_096);
        let text = text(&state);
        for line in [
            "plimsoll_live_under_way{plan=\"a \\\"b\\\"\"} 1",
            "plimsoll_live_started_seconds{plan=\"a \\\"b\\\"\"} 2.5",
            "plimsoll_live_operations_total{plan=\"a \\\"b\\\"\",phase=\"\",class=\"db1.read\"} 4",
            "plimsoll_live_latency_seconds{plan=\"a \\\"b\\\"\",phase=\"\",class=\"db1.read\",quantile=\"0.5\"} 0.001",
            "plimsoll_live_latency_seconds_sum{plan=\"a \\\"b\\\"\",phase=\"\",class=\"db1.read\"} 0.006",
            "plimsoll_live_device_reads_per_second{plan=\"a \\\"b\\\"\",device=\"sda\"} 0",
            "plimsoll_live_working_set_bytes{plan=\"a \\\"b\\\"\",side=\"read\"} 4096",
            "plimsoll_live_host_operations_per_second{plan=\"a \\\"b\\\"\",host=\"one\"} 7",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        for unknown in [
            "quantile=\"0.99\"",
            "host_latency",
            "live_random_ratio",
            "side=\"written\"",
            "busy_ratio",
            "phase_seconds",
            "latency_max_seconds{plan=\"a \\\"b\\\"\",phase=\"\",class=\"db2",
        ] {
            assert!(!text.contains(unknown), "{unknown}\n{text}");
        }
    }
}
