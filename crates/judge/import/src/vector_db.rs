//! Vector-database benchmark of MLPerf Storage. Its result is a JSON object for each run.

use plimsoll_evidence::tool_result::{
    Aggregate, Complaint, Figure, Formula, Kind, Operation, Part, Stage, ToolResult, Weight,
};

use crate::json::JsonNode;
use crate::parts::{latency, percentile, source};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
const QPS_STEP: f64 = 0.01;
const TIME_STEP_S: f64 = 0.01;

/// Returns true if a text begins in the same way as a result of the vector-database benchmark.
#[must_use]
pub fn is_text(text: &str) -> bool {
    text.contains("\"throughput_qps\"") && text.contains("\"total_queries\"")
}

/// Returns true if the object is a result of the vector-database benchmark.
#[must_use]
pub fn is(root: &JsonNode<'_, '_>) -> bool {
    root.key("total_queries").exists() && root.key("throughput_qps").exists()
}

#[must_use]
pub fn read(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let mut reported =
        ToolResult::new(source("vector-database benchmark", "vector-database JSON", file));
    let mut queries = Operation::of(Kind::Other("queries".into()));
    queries.count.extend(root.key("total_queries").exact());
    // The figures were rounded to two decimals, but JSON omits trailing zeroes.
    let rate = root.key("throughput_qps").exact();
    queries.rate_per_s.extend(rate.map(|rate| within(rate, QPS_STEP)));
    let ms = |name: &str| root.key(name).float().map(|value| value.scaled(NS_PER_MS));
    queries.latencies.extend(latency(Stage::Total, |latency| {
        (latency.min_ns, latency.mean_ns, latency.max_ns) =
            (ms("min_latency_ms"), ms("mean_latency_ms"), ms("max_latency_ms"));
        for (name, percent) in
            [("median_latency_ms", 50.0), ("p95_latency_ms", 95.0), ("p99_latency_ms", 99.0)]
        {
            latency.percentiles.extend(percentile(percent, ms(name)));
        }
    }));
    let window = root.key("total_time_seconds").exact();
    reported.parts.push(Part {
        window_ns: window.map(|time| within(time, TIME_STEP_S).scaled(NS_PER_S)),
        operations: vec![queries],
        ..Part::default()
    });
    let recall = root.key("recall").key("mean_recall");
    if recall.number() == Some(0.0) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: "the recall is 0, so no query found any of its neighbours, and the rate counts \
                   only wrong results"
                .into(),
            field: recall.path().to_owned(),
        });
    }
    recalls(&mut reported, &root.key("recall"));
    reported
}

/// Checks the recalls, which are shares. Their mean must be between the smallest and the largest
/// recall.
fn recalls(reported: &mut ToolResult, recall: &JsonNode<'_, '_>) {
    let of = |name: &str| recall.key(name).float();
    let mut between = |what: &str, total: Figure, of: Vec<Figure>| {
        let (what, formula) = (what.to_owned(), Formula::Between);
        reported.combined.push(Aggregate { what, formula, total, of, slack: 1e-6 });
    };
    for name in ["mean_recall", "min_recall", "max_recall"] {
        let bounds = vec![Figure::exact(0.0, "no neighbour"), Figure::exact(1.0, "all neighbours")];
        of(name).into_iter().for_each(|share| between(name, share, bounds.clone()));
    }
    if let (Some(mean), Some(min), Some(max)) =
        (of("mean_recall"), of("min_recall"), of("max_recall"))
    {
        between("the mean recall", mean, vec![min, max]);
    }
}

/// Creates a figure whose last printed digit was rounded.
fn within(figure: Figure, step: f64) -> Figure {
    Figure { least: figure.value - step, most: figure.value + step, ..figure }
}
