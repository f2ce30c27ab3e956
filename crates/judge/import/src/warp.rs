//! JSON of warp (MinIO), from `warp analyze --json` of version 1 and earlier versions.
//!
//! Amounts and operations are totals over `measure_duration_millis`. Request times are in ms.

use plimsoll_evidence::tool_result::{
    Aggregate, Figure, Formula, Kind, Latency, Operation, Outstanding, Part, Setting, Stage,
    ToolResult,
};

use crate::json::JsonNode;
use crate::parts::{latency, percentile, source, unix_s};

const NS_PER_MS: f64 = 1e6;
/// Maximum relative amount by which the computed number of operations in flight may exceed the
/// number of threads. Request times are from the whole run, but rates from only the time during
/// which all threads ran.
const FLIGHT_SLACK: f64 = 0.1;

/// Returns true if the beginning of a text is that of warp's JSON.
#[must_use]
pub fn is_text(text: &str) -> bool {
    text.contains("\"measure_duration_millis\"")
        || text.contains("\"commandline\"") && text.contains("\"requests_by_client\"")
}

/// Returns true if the object is warp's JSON.
#[must_use]
pub fn is(root: &JsonNode<'_, '_>) -> bool {
    root.key("by_op_type").entries().next().is_some()
        || root.key("total").key("throughput").exists()
        || root.key("operations").items().any(|operation| operation.key("throughput").exists())
}

/// Reads the result, which has a part for each kind of operation.
#[must_use]
pub fn read(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("warp", "warp JSON", file));
    reported.source.version = root.key("warp_version").text().map(str::to_owned);
    let command = root.key("commandline").shown().map(|value| ("commandline".to_owned(), value));
    reported.options.extend(command);
    let paced = reported.options.get("commandline").is_some_and(|line| line.contains("-rps"));
    let by_kind: Vec<(String, JsonNode<'_, '_>)> =
        root.key("by_op_type").entries().map(|(name, at)| (name.to_owned(), at)).collect();
    let mut all = by_kind;
    if all.is_empty() {
        for at in root.key("operations").items() {
            all.push((at.key("type").text().unwrap_or_default().to_owned(), at));
        }
    }
    if all.is_empty() {
        all.push(("TOTAL".into(), root.key("total")));
    }
    for (name, at) in &all {
        if at.key("skipped").bool() != Some(true) {
            part(&mut reported, name, at, paced);
        }
    }
    if root.key("final").bool() == Some(false) {
        reported.remarks.push("the file was written before the end of the run".into());
    }
    reported
}

/// Returns the kind of operation that warp calls `name`.
pub(crate) fn kind(name: &str) -> Kind {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Kind::Read,
        "PUT" => Kind::Write,
        "TOTAL" => Kind::All,
        other => Kind::Name(other.to_ascii_lowercase()),
    }
}

fn part(reported: &mut ToolResult, name: &str, at: &JsonNode<'_, '_>, paced: bool) {
    let throughput = at.key("throughput");
    let window = throughput.key("measure_duration_millis").truncated();
    let concurrency = at.key("concurrency").exact().filter(|threads| threads.value > 0.0);
    let mut operation = Operation::of(kind(name));
    let ops = throughput.first_of(&["ops", "operations"]);
    operation.count.extend(ops.exact());
    operation.bytes.extend(throughput.key("bytes").exact().filter(|bytes| bytes.value > 0.0));
    let stated = |name: &str| throughput.key(name).float().filter(|rate| rate.value > 0.0);
    operation.bandwidth_per_s.extend(stated("average_bps"));
    operation.rate_per_s.extend(stated("average_ops"));
    operation.latencies.extend(requests(at));
    operation.errors = throughput.key("errors").exact().or_else(|| at.key("errors").exact());
    for (word, field) in [("bytes", "bytes"), ("operations", "ops")] {
        let each = throughput_by_host(at, field);
        let total = throughput.key(field).exact();
        if let Some(total) = total.filter(|_| each.len() > 1) {
            let what = format!("{word} of {name} over all hosts");
            reported.combined.push(Aggregate {
                what,
                formula: Formula::Sum,
                total,
                of: each,
                slack: 0.02,
            });
        }
    }
    reported.parts.push(Part {
        name: name.to_owned(),
        window_ns: window.filter(|w| w.value > 0.0).map(|ms| ms.scaled(NS_PER_MS)),
        start_unix_s: throughput.key("start_time").text().and_then(unix_s),
        setting: Setting {
            outstanding: concurrency.filter(|_| !paced).map(|threads| Outstanding {
                most: Figure { most: threads.value * (1.0 + FLIGHT_SLACK), ..threads },
                kept: false,
            }),
            ..Setting::default()
        },
        operations: vec![operation],
        ..Part::default()
    });
}

/// Returns the throughput of each host over the run. Returns `None` if the throughput of a host is
/// missing.
fn throughput_by_host(at: &JsonNode<'_, '_>, field: &str) -> Vec<Figure> {
    let hosts: Vec<JsonNode<'_, '_>> =
        at.key("throughput_by_host").entries().map(|(_, host)| host).collect();
    let window = at.key("throughput").key("measure_duration_millis").number();
    // If the hosts measured over different times, the sum of their rates has no meaning.
    let alike = |host: &JsonNode<'_, '_>| {
        let own = host.key("measure_duration_millis").number();
        own.zip(window).is_some_and(|(a, b)| (a / b - 1.0).abs() < 0.01)
    };
    let all: Vec<Figure> =
        hosts.iter().filter(|host| alike(host)).filter_map(|h| h.key(field).exact()).collect();
    if all.len() == hosts.len() { all } else { Vec::new() }
}

/// Returns the latency of requests. If the result has several lists of latencies, only their
/// extremes and their mean are used.
fn requests(at: &JsonNode<'_, '_>) -> Option<Latency> {
    let mut all: Vec<JsonNode<'_, '_>> = Vec::new();
    for (_, segments) in at.key("requests_by_client").entries() {
        all.extend(segments.items().map(|segment| segment.key("single_sized_requests")));
    }
    all.push(at.key("single_sized_requests"));
    all.retain(|single| {
        single.key("dur_avg_millis").exists() && single.key("skipped").bool() != Some(true)
    });
    let ms =
        |single: &JsonNode<'_, '_>, name: &str| Some(single.key(name).float()?.scaled(NS_PER_MS));
    if let [single] = &all[..] {
        return latency(Stage::Total, |latency| {
            latency.count = single.key("requests").exact();
            latency.mean_ns = ms(single, "dur_avg_millis");
            latency.min_ns = ms(single, "fastest_millis");
            latency.max_ns = ms(single, "slowest_millis");
            latency.stddev_ns = ms(single, "std_dev_millis");
            for (name, percent) in
                [("dur_median_millis", 50.0), ("dur_90_millis", 90.0), ("dur_99_millis", 99.0)]
            {
                latency.percentiles.extend(percentile(percent, ms(single, name)));
            }
        });
    }
    let extreme = |name: &str, of: fn(f64, f64) -> f64| {
        all.iter()
            .filter_map(|single| ms(single, name))
            .reduce(|a, b| if of(a.value, b.value) == a.value { a } else { b })
    };
    latency(Stage::Total, |latency| {
        latency.min_ns = extreme("fastest_millis", f64::min);
        latency.max_ns = extreme("slowest_millis", f64::max);
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::json;

    // Modelled on `aggregate.Realtime` and `aggregate.LiveAggregate` of warp 1.0.
    const LIVE: &str = r#"{"v": 2, "commandline": "warp get", "final": true, "warp_version": "1.3", "by_op_type": {"GET":
        {"total_requests": 1000, "concurrency": 8, "throughput": {"measure_duration_millis": 10000, "bytes": 1048576000,
        "ops": 1000, "errors": 0}, "throughput_by_host": {"a": {"measure_duration_millis": 10000, "bytes": 548576000,
        "ops": 500}, "b": {"measure_duration_millis": 10001, "bytes": 500000000, "ops": 500}}, "requests_by_client":
        {"c": [{"single_sized_requests": {"dur_avg_millis": 79.0, "fastest_millis": 3.0, "slowest_millis": 400.0,
        "dur_99_millis": 300.0, "requests": 1000}}]}}}}"#;

    #[test]
    fn a_live_aggregate_is_read() {
        assert!(is_text(LIVE));
        let (json, _) = json::parse(LIVE).unwrap();
        assert!(is(&JsonNode::root(&json)));
        let reported = read(&JsonNode::root(&json), "x.json");
        let part = &reported.parts[0];
        let get = &part.operations[0];
        assert_eq!((get.kind.clone(), get.count[0].value), (Kind::Read, 1000.0));
        assert_eq!(part.window_ns.as_ref().unwrap().value, 10e9);
        assert_eq!(get.latencies[0].mean_ns.as_ref().unwrap().value, 79e6);
        assert_eq!(reported.combined.len(), 2);
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 8.0);
    }

    #[test]
    fn an_older_list_of_operations_is_read() {
        let text = r#"{"type": "single", "operations": [{"type": "PUT", "concurrency": 4, "throughput":
            {"measure_duration_millis": 5000, "bytes": 1000, "operations": 10, "average_bps": 200.0, "average_ops": 2.0}},
            {"type": "STAT", "skipped": true, "throughput": {}}]}"#;
        let (json, _) = json::parse(text).unwrap();
        let reported = read(&JsonNode::root(&json), "x.json");
        assert_eq!(reported.parts.len(), 1);
        let put = &reported.parts[0].operations[0];
        assert_eq!((put.kind.clone(), put.bandwidth_per_s[0].value), (Kind::Write, 200.0));
    }
}
