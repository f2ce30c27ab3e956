//! The result in Prometheus' text format (0.0.4), for node_exporter's textfile collector. Values
//! are in base units: seconds, bytes, ratios. A metric whose value is unknown is omitted.

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_judge::figures::measured;
use plimsoll_judge::finding::Outcome;

use crate::run::distribution::{QUANTILES, percentile_ns};
use crate::run::kinds::Operation;

/// The text that is being built. It consists of families of metrics.
#[derive(Debug, Default)]
pub struct Families(String);

impl Families {
    /// Starts the family of metrics `plimsoll_NAME`. Its kind is `gauge`, `counter` or `summary`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP plimsoll_{name} {help}\n# TYPE plimsoll_{name} {kind}\n"));
    }

    /// Adds a value to the family.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.0.push_str(&format!("plimsoll_{name}{{{}}} {value}\n", labels.join(",")));
    }

    /// Returns the text, with a line feed at the end.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

/// Escapes the value of a label.
pub fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the result in Prometheus' text format.
pub fn text(bundle: &Bundle, verdict: &Verdict) -> String {
    let run = &bundle.run;
    let plan = run.name.as_str();
    let mut all = Families::default();
    all.family(
        "run_info",
        "gauge",
        "The labels identify the run and its verdict; the value is always 1.",
    );
    let of = [
        ("plan", plan),
        ("run_id", &run.run_id),
        ("verdict", verdict.verdict.label()),
        ("tool_version", &run.tool_version),
    ];
    all.line("run_info", &of, 1.0);
    all.family("run_started_seconds", "gauge", "Start of the run, seconds since 1970.");
    all.line("run_started_seconds", &[("plan", plan)], run.started_unix_ns as f64 / 1e9);
    if let Some(phase) = measured(bundle) {
        all.family("measured_seconds", "gauge", "Duration of the measurement.");
        all.line("measured_seconds", &[("plan", plan)], phase.duration_ns as f64 / 1e9);
    }
    classes(&mut all, bundle);
    latencies(&mut all, bundle);
    if verdict.checks.iter().any(|check| check.ok.is_some()) {
        all.family("check_kept", "gauge", "1 if the limit is met, 0 if it is exceeded.");
        for check in &verdict.checks {
            if let Some(ok) = check.ok {
                let of = [("plan", plan), ("check", check.name.as_str())];
                all.line("check_kept", &of, f64::from(u8::from(ok)));
            }
        }
    }
    all.family("rules", "gauge", "Number of audit rules by outcome.");
    let found = |outcome| verdict.findings.iter().filter(|f| f.outcome == outcome).count();
    for (word, count) in [
        ("fail", found(Outcome::Fail)),
        ("unknown", found(Outcome::Unknown)),
        ("warn", found(Outcome::Warn)),
        ("pass", verdict.passed.len()),
    ] {
        all.line("rules", &[("plan", plan), ("outcome", word)], count as f64);
    }
    all.0
}

fn classes(all: &mut Families, bundle: &Bundle) {
    let seconds = measured(bundle).map(|phase| phase.duration_ns as f64 / 1e9);
    type Value = fn(&plimsoll_evidence::run::ClassTotals, Option<f64>) -> Option<f64>;
    let families: [(&str, &str, Value); 5] = [
        ("operations", "Operations during the measurement.", |class, _| Some(class.count as f64)),
        ("bytes", "Bytes that were read and written during the measurement.", |class, _| {
            Some(class.size_bytes as f64)
        }),
        ("errors", "Operations that failed.", |class, _| Some(class.errors as f64)),
        ("operations_per_second", "Rate.", |class, s| Some(class.count_within() as f64 / s?)),
        ("bytes_per_second", "Bandwidth.", |class, s| Some(class.bytes_within() as f64 / s?)),
    ];
    for (name, help, value) in families {
        all.family(name, "gauge", help);
        for class in &bundle.run.classes {
            let of = [
                ("plan", bundle.run.name.as_str()),
                ("class", class.name.as_str()),
                ("group", class.group.as_str()),
                ("operation", Operation::of(class).word()),
            ];
            if let Some(value) = value(class, seconds) {
                all.line(name, &of, value);
            }
        }
    }
}

fn latencies(all: &mut Families, bundle: &Bundle) {
    all.family(
        "latency_seconds",
        "summary",
        "Latency, measured from the intended start of the operation.",
    );
    for class in bundle.run.classes.iter().filter(|class| class.count > 0) {
        let of = [("plan", bundle.run.name.as_str()), ("class", class.name.as_str())];
        for (_, _, quantile) in QUANTILES {
            let histogram = bundle.latency.get(&class.name);
            if let Some(ns) = histogram.and_then(|h| percentile_ns(h, quantile)) {
                let shown = quantile.to_string();
                let labels = [of[0], of[1], ("quantile", shown.as_str())];
                all.line("latency_seconds", &labels, ns / 1e9);
            }
        }
        all.line("latency_seconds_sum", &of, class.latency_ns_sum as f64 / 1e9);
        all.line("latency_seconds_count", &of, class.count as f64);
    }
    all.family("latency_max_seconds", "gauge", "Largest latency.");
    for class in bundle.run.classes.iter().filter(|class| class.count > 0) {
        let of = [("plan", bundle.run.name.as_str()), ("class", class.name.as_str())];
        all.line("latency_max_seconds", &of, class.latency_ns_max as f64 / 1e9);
    }
}
