//! KV-cache benchmark of MLPerf Storage. Its result is a JSON file with the latency of each
//! request.
//!
//! The benchmark computes rates over the period in which it started requests. It also counts
//! requests that ended after this period, so the longest latency may exceed the length of the
//! period.

use plimsoll_evidence::tool_result::{
    Aggregate, Claim, Complaint, Figure, Formula, Kind, Latency, Membership, Operation, Part,
    Population, Stage, ToolResult, Unit, Weight,
};

use crate::json::JsonNode;
use crate::parts::{latency, percentile, source};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// Maximum relative deviation of a tier's bandwidth from its bytes divided by the elapsed time.
/// They differ because the benchmark reads the clock twice.
const TIER_SLACK: f64 = 0.01;

/// Returns true if the object is a result of the KV-cache benchmark.
#[must_use]
pub fn is(root: &JsonNode<'_, '_>) -> bool {
    let summary = root.key("summary");
    summary.key("cache_stats").exists() && summary.key("elapsed_time").exists()
}

#[must_use]
pub fn read(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("KV-cache benchmark", "KV-cache JSON", file));
    let summary = root.key("summary");
    let cache = summary.key("cache_stats");
    let mut part = Part {
        window_ns: summary.key("elapsed_time").float().map(|time| time.scaled(NS_PER_S)),
        ..Part::default()
    };
    let mut requests = Operation::of(Kind::Other("requests".into()));
    requests.count.extend(root.key("requests_completed").exact());
    requests.rate_per_s.extend(summary.key("requests_per_second").float());
    let list = root.key("end_to_end_latencies");
    let stated = summary.key("end_to_end_latency_ms");
    requests.latencies.extend(of_latency(&stated, Stage::Request).map(|mut latency| {
        let numbers = list.items().filter_map(|item| item.float());
        let longest = numbers.reduce(|a, b| if b.value > a.value { b } else { a });
        latency.max_ns = longest.map(|seconds| seconds.scaled(NS_PER_S)).or(latency.max_ns);
        latency
    }));
    part.operations.push(requests);
    for (kind, word, count) in
        [(Kind::Read, "read", "decode_reads"), (Kind::Write, "write", "prefill_writes")]
    {
        let mut operation = Operation::of(kind);
        operation.bytes.extend(cache.key(&format!("total_{word}_bytes")).exact());
        let in_gib = cache.key(&format!("total_{word}_gb")).float();
        operation.bytes.extend(in_gib.map(|amount| amount.scaled(GIB)));
        operation.count.extend(cache.key(count).exact());
        take_iops(&mut operation, &cache.key(&format!("{word}_iops")));
        let of_tier = |tier: &str, p: &str| cache.key(&format!("{tier}_{word}_{p}_ms")).float();
        let stated = |p: &str| of_tier("storage", p).or_else(|| of_tier("nvme", p));
        let ns = |p: &str| stated(p).map(|ms| ms.scaled(NS_PER_MS));
        operation.latencies.extend(latency(Stage::Total, |latency| {
            // Latencies of requests to the NVMe tier. They exclude requests that memory served.
            latency.sampled = true;
            for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
                latency.percentiles.extend(percentile(percent, ns(name)));
            }
        }));
        let says = operation != Operation::of(operation.kind.clone());
        if says && !operation.is_idle() {
            part.operations.push(operation);
        }
    }
    reported.combined.extend(tiers(&cache, part.window_ns.as_ref()));
    reported.combined.extend(ratios(root, &summary));
    reported.combined.extend(device_shares(&cache));
    reported.complaints.extend(complaints(root, &cache));
    reported.parts.push(part);
    for (name, word) in [
        ("end_to_end_latencies", "end_to_end_latency_ms"),
        ("storage_latencies", "storage_io_latency_ms"),
    ] {
        reported.populations.extend(population(&root.key(name), &summary.key(word)));
    }
    reported
}

/// Despite their names, `read_iops` and `write_iops` usually contain the number of operations. If
/// the value differs from that number, it is a rate.
fn take_iops(operation: &mut Operation, stated: &JsonNode<'_, '_>) {
    let Some(value) = stated.exact() else { return };
    let is_count = operation.count.first().is_some_and(|count| count.value == value.value);
    if is_count {
        operation.count.push(value);
    } else {
        operation.rate_per_s.extend(stated.float());
    }
}

/// Returns the bandwidth of each tier, which is its bytes divided by the elapsed time. Both are in
/// GiB.
fn tiers(cache: &JsonNode<'_, '_>, window: Option<&Figure>) -> Vec<Aggregate> {
    let Some(seconds) = window.map(|w| w.value / NS_PER_S).filter(|s| *s > 0.0) else {
        return Vec::new();
    };
    let mut combined = Vec::new();
    for tier in ["gpu", "cpu", "storage"] {
        for (word, moved) in [("read", "read"), ("write", "written")] {
            let amount = cache.key(&format!("tier_{tier}_kv_bytes_{moved}_gb")).float();
            let rate = cache.key(&format!("tier_{tier}_{word}_bandwidth_gbps")).float();
            let Some((amount, total)) = amount.zip(rate).filter(|(a, r)| a.value + r.value > 0.0)
            else {
                continue;
            };
            let field = format!("{} / elapsed_time", amount.field);
            let of = vec![Figure { field, ..amount.scaled(GIB / seconds) }];
            let what = format!("the {word} bandwidth of the {tier} tier");
            let (formula, total) = (Formula::Sum, total.scaled(GIB));
            combined.push(Aggregate { what, formula, total, of, slack: TIER_SLACK });
        }
    }
    combined
}

/// Returns the figures that the benchmark repeats, or computes from two other figures.
fn ratios(root: &JsonNode<'_, '_>, summary: &JsonNode<'_, '_>) -> Vec<Aggregate> {
    let cache = summary.key("cache_stats");
    let sum = |list: &str| -> Option<Figure> {
        let list = root.key(list);
        let sum: f64 = list.items().filter_map(|item| item.number()).sum();
        list.items().next().map(|_| Figure::exact(sum, list.path()))
    };
    let (hits, misses) = (cache.key("cache_hits").number(), cache.key("cache_misses").number());
    let lookups = hits.zip(misses).map(|(hits, misses)| Figure::exact(hits + misses, "lookups"));
    let one = || Some(Figure::exact(1.0, ""));
    let pairs = [
        (
            summary.key("avg_throughput_tokens_per_sec"),
            summary.key("total_tokens").float(),
            summary.key("elapsed_time").float(),
        ),
        (
            summary.key("storage_throughput_tokens_per_sec"),
            summary.key("total_tokens").float(),
            summary.key("total_storage_io_time").float(),
        ),
        (summary.key("total_storage_io_time"), sum("storage_latencies"), one()),
        (summary.key("total_requests"), root.key("requests_completed").float(), one()),
        (summary.key("total_tokens"), root.key("total_tokens_generated").float(), one()),
        (cache.key("cache_hit_rate"), cache.key("cache_hits").float(), lookups),
        (
            cache.key("read_write_ratio"),
            cache.key("total_read_gb").float(),
            cache.key("total_write_gb").float(),
        ),
    ];
    let aggregate = |(at, of, over): (JsonNode<'_, '_>, Option<Figure>, Option<Figure>)| {
        let (total, of) = (at.float()?, of?);
        let over = over.filter(|over| over.value > 0.0)?.value;
        let field = of.field.clone();
        let of = vec![Figure { field, ..of.scaled(1.0 / over) }];
        let what = at.path().to_owned();
        Some(Aggregate { what, formula: Formula::Sum, total, of, slack: TIER_SLACK })
    };
    pairs.into_iter().filter_map(aggregate).collect()
}

/// In each operation, the device's part of the latency is at most the whole latency. The same
/// therefore applies to each percentile.
fn device_shares(cache: &JsonNode<'_, '_>) -> Vec<Aggregate> {
    let mut combined = Vec::new();
    for word in ["read", "write"] {
        for share in ["device", "host"] {
            for p in ["p50", "p95", "p99"] {
                let of = |name: String| cache.key(&name).float();
                let part = of(format!("storage_{word}_{share}_{p}_ms"));
                let whole = of(format!("storage_{word}_{p}_ms"));
                let Some((total, whole)) = part.zip(whole) else { continue };
                let what = format!(
                    "the {p} of the time that a {word} spends in the {share}, compared with the {p} \
                     of its whole latency"
                );
                let of = vec![Figure::exact(0.0, "no time"), whole];
                let formula = Formula::Between;
                combined.push(Aggregate { what, formula, total, of, slack: TIER_SLACK });
            }
        }
    }
    combined
}

/// Returns the benchmark's own warnings, and a complaint if it did not use the storage at all.
fn complaints(root: &JsonNode<'_, '_>, cache: &JsonNode<'_, '_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut complain = |weight: Weight, says: &str, at: &JsonNode<'_, '_>| {
        let field = at.path().to_owned();
        complaints.push(Complaint { weight, says: says.into(), field });
    };
    let completed = root.key("requests_completed");
    if completed.number() == Some(0.0) {
        complain(Weight::Invalid, "no request was completed", &completed);
    }
    let moved = ["read", "written"]
        .map(|word| cache.key(&format!("tier_storage_kv_bytes_{word}_gb")))
        .map(|at| (at.number(), at));
    if moved.iter().all(|(bytes, _)| *bytes == Some(0.0)) {
        let says = "no byte was read from or written to the storage tier, so the figures describe \
                    memory";
        complain(Weight::Invalid, says, &moved[0].1);
    }
    let status = cache.key("storage_health").key("overall_status");
    if status.text().is_some_and(|word| word.eq_ignore_ascii_case("fail")) {
        complain(Weight::Warning, "the storage did not meet the benchmark's own criteria", &status);
    }
    complaints
}

/// Returns true if the object is the summary of a run over all ranks.
#[must_use]
pub fn is_run_summary(root: &JsonNode<'_, '_>) -> bool {
    root.key("options").entries().any(|(_, option)| option.key("rank_count").exists())
}

/// Reads the summary of a run. The result has a part for each option.
#[must_use]
pub fn read_run_summary(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("KV-cache benchmark", "KV-cache run summary", file));
    let complain = |reported: &mut ToolResult, at: &JsonNode<'_, '_>| {
        let failed = at.key("partial_failure");
        if failed.bool() == Some(true) {
            reported.complaints.push(Complaint {
                weight: Weight::Invalid,
                says: "the benchmark reports a partial failure".into(),
                field: failed.path().to_owned(),
            });
        }
    };
    let ranks = root.key("total_ranks").exact();
    let hosts = root.key("host_count").float().zip(root.key("npernode").number());
    reported.combined.extend(ranks.clone().zip(hosts).map(|(total, (hosts, each))| Aggregate {
        what: "the ranks of all hosts".into(),
        formula: Formula::Sum,
        total,
        of: vec![hosts.scaled(each)],
        slack: 0.0,
    }));
    for (name, option) in root.key("options").entries() {
        let place = format!("ranks of option {name}");
        if let Some((stated, used)) = ranks.clone().zip(option.key("rank_count").number()) {
            reported.memberships.push(Membership {
                of: format!("ranks of option {name}"),
                stated,
                found: used.max(0.0) as u64,
                missing: Vec::new(),
                place: "in rank_count".into(),
            });
        }
        let missing: Vec<String> = option
            .key("missing_files")
            .items()
            .filter_map(|path| path.text().map(str::to_owned))
            .map(|path| path.rsplit('/').next().unwrap_or(&path).to_owned())
            .collect();
        if let Some(stated) = option.key("rank_count").exact() {
            let trials = option.key("trial_count").number().unwrap_or(1.0).max(1.0);
            let stated = stated.scaled(trials);
            let found = (stated.value - missing.len() as f64).max(0.0) as u64;
            let place = "not listed in missing_files".into();
            let of = format!("ranks of option {name}");
            reported.memberships.push(Membership { of, stated, found, missing, place });
        }
        complain(&mut reported, &option);
        let mut part = Part { name: place, ..Part::default() };
        for (kind, word) in [(Kind::Read, "read"), (Kind::Write, "write")] {
            let mut operation = Operation::of(kind);
            let rate = option.key(&format!("aggregated_{word}_bandwidth_gbps")).float();
            operation.bandwidth_per_s.extend(rate.map(|rate| rate.scaled(GIB)));
            if !operation.bandwidth_per_s.is_empty() {
                part.operations.push(operation);
            }
        }
        reported.parts.push(part);
    }
    if reported.complaints.is_empty() {
        complain(&mut reported, root);
    }
    reported
}

fn of_latency(at: &JsonNode<'_, '_>, stage: Stage) -> Option<Latency> {
    let ms = |name: &str| at.key(name).float().map(|value| value.scaled(NS_PER_MS));
    latency(stage, |latency| {
        latency.mean_ns = ms("mean");
        latency.max_ns = ms("max");
        for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
            latency.percentiles.extend(percentile(percent, ms(name)));
        }
    })
}

/// Returns the list of latencies, and the figures that are computed from it.
fn population(list: &JsonNode<'_, '_>, stated: &JsonNode<'_, '_>) -> Option<Population> {
    let values: Vec<f64> = list.items().filter_map(|item| item.number()).collect();
    let claims = [
        ("mean", Formula::Mean),
        ("p50", Formula::Percentile(0.5)),
        ("p95", Formula::Percentile(0.95)),
        ("p99", Formula::Percentile(0.99)),
    ];
    let claim = |(name, formula): (&str, Formula)| {
        let total: Figure = stated.key(name).float()?.scaled(NS_PER_MS);
        Some(Claim { formula, total, slack: 1e-9 })
    };
    (!values.is_empty()).then(|| Population {
        of: "requests".into(),
        what: list.path().replace('_', " "),
        unit: Unit::Ns,
        field: list.path().to_owned(),
        values: values.iter().map(|seconds| seconds * NS_PER_S).collect(),
        alike: false,
        claims: claims.into_iter().filter_map(claim).collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::json;

    // This text has the structure of `kv-cache.py` output, with invented figures.
    const TEXT: &str = r#"{"requests_completed": 4, "end_to_end_latencies": [1.0, 2.0, 3.0, 22.0],
        "storage_latencies": [0.5, 0.5], "summary": {"elapsed_time": 10.0, "requests_per_second": 0.4,
        "end_to_end_latency_ms": {"mean": 7000.0, "p50": 2500.0}, "storage_io_latency_ms": {"mean": 500.0},
        "cache_stats": {"total_read_bytes": 1000, "decode_reads": 10, "read_iops": 10, "nvme_read_p50_ms": 5.0}}}"#;

    #[test]
    fn the_longest_request_and_the_window_are_read() {
        let (json, _) = json::parse(TEXT).unwrap();
        assert!(is(&JsonNode::root(&json)));
        let reported = read(&JsonNode::root(&json), "x.json");
        let part = &reported.parts[0];
        assert_eq!(part.window_ns.as_ref().unwrap().value, 10e9);
        assert_eq!(part.operations[0].latencies[0].max_ns.as_ref().unwrap().value, 22e9);
        assert_eq!(part.operations.len(), 2, "nothing says of writes that there were any");
        assert_eq!(reported.populations[0].claims.len(), 2);
    }
}
