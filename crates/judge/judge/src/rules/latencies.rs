//! Latencies of the reads or writes of a run, independent of class names.

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::VERIFY_GROUP;
use plimsoll_evidence::run::ClassTotals;

fn classes(bundle: &Bundle, is_read: bool) -> impl Iterator<Item = &ClassTotals> {
    let of = move |c: &&ClassTotals| c.is_read == is_read && c.group != VERIFY_GROUP;
    bundle.run.classes.iter().filter(of).filter(|c| c.size_bytes > 0)
}

/// Returns one histogram of the latencies of all reads; `None` if no read latency is known.
pub(super) fn histogram(bundle: &Bundle) -> Option<Histogram<u64>> {
    merged(bundle, true)
}

/// Returns one histogram of the latencies of all reads, or of all writes.
pub(super) fn merged(bundle: &Bundle, is_read: bool) -> Option<Histogram<u64>> {
    let mut merged = plimsoll_evidence::latency::histogram();
    for class in classes(bundle, is_read) {
        if let Some(histogram) = bundle.latency.get(&class.name) {
            merged.add(histogram).ok()?;
        }
    }
    (!merged.is_empty()).then_some(merged)
}

/// Typical latency of a run's reads or writes.
pub(super) struct TypicalLatency {
    /// Kind of average: `median`, or `mean` if there is no histogram.
    pub(super) kind: &'static str,
    pub(super) ns: u64,
}

/// Returns the median, or the mean if there is no histogram. `None` if both are unknown.
pub(super) fn typical(bundle: &Bundle, is_read: bool) -> Option<TypicalLatency> {
    if let Some(histogram) = merged(bundle, is_read) {
        return Some(TypicalLatency { kind: "median", ns: histogram.value_at_quantile(0.5) });
    }
    let (count, sum) = classes(bundle, is_read)
        .fold((0u64, 0u64), |(n, sum), c| (n + c.count, sum.saturating_add(c.latency_ns_sum)));
    (count > 0 && sum > 0).then(|| TypicalLatency { kind: "mean", ns: sum / count })
}
