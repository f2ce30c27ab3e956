//! `[observe]`, `[repeat]`, `[compare]`, `[engine]`.

use std::collections::BTreeMap;

use super::target::{is_http, small, without_user};
use crate::raw::{CompareRaw, EngineRaw, MetricsRaw, ObserveRaw, RepeatRaw};
use crate::read::Cx;
use crate::resolved::{EngineChoice, MetricsEndpoint, Observe, Repeat};

/// Maximum number of runs of a plan. A larger number is probably a typing error.
const RUNS_MAX: u64 = 10_000;
/// Maximum number of threads that issue I/O.
const WORKERS_MAX: u64 = 4096;

pub(super) fn engine(raw: &EngineRaw, cx: &mut Cx) -> EngineChoice {
    EngineChoice {
        io: raw.io.value,
        direct: raw.direct.value,
        workers: small(raw.workers.value.0, WORKERS_MAX, &raw.workers.at, cx),
        io_poll: raw.io_poll.value,
        sq_poll: raw.sq_poll.value,
        spin: raw.spin.value,
    }
}

pub(super) fn repeat(raw: &RepeatRaw, cx: &mut Cx) -> Repeat {
    let runs = small(raw.runs.value.0, RUNS_MAX, &raw.runs.at, cx);
    Repeat { runs, fresh: raw.fresh.value }
}

/// Returns the factors of a comparison. Duplicates are removed.
pub(super) fn factors(raw: &CompareRaw) -> Vec<String> {
    let given = raw.factor.as_ref().map_or(&[][..], |factor| factor.value.items.as_slice());
    let mut factors: Vec<String> = given.iter().map(|(name, _)| name.0.trim().to_owned()).collect();
    factors.sort();
    factors.dedup();
    factors
}

pub(super) fn observe(raw: &ObserveRaw, cx: &mut Cx) -> Option<Observe> {
    let given = raw.metrics.as_ref().map_or(&[][..], |m| m.value.items.as_slice());
    // The loop checks all endpoints, even after an error, so that the errors of each endpoint are
    // recorded.
    let metrics: Vec<_> = given.iter().map(|(m, _)| endpoint(m, cx)).collect();
    Some(Observe {
        data_reduction: raw.data_reduction.as_ref().map(|g| g.value.0),
        array_cache_bytes: raw.array_cache.as_ref().map(|g| g.value.0),
        tier_bytes: raw.tier.as_ref().map(|g| g.value.0),
        link_bytes_per_s: raw.link.as_ref().map(|g| g.value.0),
        media: raw.media.as_ref().map(|g| g.value),
        metrics: metrics.into_iter().collect::<Option<_>>()?,
    })
}

fn endpoint(raw: &MetricsRaw, cx: &mut Cx) -> Option<MetricsEndpoint> {
    let (Some(url), Some(names)) = (&raw.url, &raw.names) else {
        for (name, is_there) in [("url", raw.url.is_some()), ("names", raw.names.is_some())] {
            if !is_there {
                let help = "set both `url` and `names`";
                cx.missing(&raw.at.unwritten(name), "is missing", help);
            }
        }
        return None;
    };
    if !is_http(&url.value.0) {
        cx.fail(
            &url.at,
            "is not an address",
            "use an address such as \"http://host:port/metrics\"",
        );
    }
    without_user(&url.value.0, &url.at, cx);
    if raw.interval.value.0 == 0 {
        cx.fail(&raw.interval.at, "is 0", "use a duration such as \"1s\"");
    }
    let mut known = BTreeMap::new();
    for (name, metric) in &names.value.0 {
        if !is_known(name) {
            let help = "use data_reduction, read_source.* or write_destination.*; see docs/plan.md";
            cx.fail(&names.at, format!("`{name}` is not a known metric name"), help);
        }
        // The parser accepts any TOML value here, but the name of a metric must be a string.
        match metric.parse::<toml::Value>() {
            Ok(toml::Value::String(text)) if !text.is_empty() => known.insert(name.clone(), text),
            _ => {
                let help = "set the metric's name, in quotes";
                cx.fail(&names.at, format!("`{name}` has no metric name"), help);
                None
            }
        };
    }
    Some(MetricsEndpoint {
        url: url.value.0.clone(),
        interval_ns: raw.interval.value.0,
        names: known,
    })
}

/// Returns true if Plimsoll has a metric of this name. Plimsoll's metrics are read sources, write
/// destinations and the data reduction. The evidence has no fields for other metrics.
fn is_known(name: &str) -> bool {
    match name.split_once('.') {
        Some(("read_source", from)) => {
            ["cache", "ssd", "hdd", "zero", "remote", "other"].contains(&from)
        }
        Some(("write_destination", to)) => {
            ["cache", "oplog", "ssd", "hdd", "remote", "other"].contains(&to)
        }
        _ => name == "data_reduction",
    }
}
