//! Compares the records of the same I/Os in totals, rows, histograms and phases.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::latency::LATENCY_NS_MAX;
use plimsoll_evidence::run::{ClassTotals, Driver, EndKind, PhaseKind};
use plimsoll_evidence::series::{Data, drained_class};

use super::CrossChecks;

/// Relative error of a histogram value. The engine's histograms have finer buckets than the log,
/// and the log contains the bounds of these buckets. Each value may therefore be off by one bucket
/// of a histogram with three significant digits.
const BUCKET: f64 = 0.002;
/// Maximum share of a histogram that may be missing. Older versions could lose an interval that
/// started in the last half millisecond of the run.
const SHORT: f64 = 0.01;
/// Prefix of the tags of the generator's own histograms.
const GENERATOR: &str = "generator";
/// Interval of the rows; `None` if unknown. A thread closes a row at its first completion after the
/// end of the interval. For other tools, the interval is unknown. If a run did not complete, its
/// rows may have been closed late.
const GRID_NS: u64 = 1_000_000_000;

pub(super) fn check(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    phases(bundle, cross_checks);
    let rows = rows(bundle);
    let mut names = BTreeSet::new();
    for class in &bundle.run.classes {
        cross_checks
            .require(names.insert(class.name.as_str()), || format!("{} occurs twice", class.name));
        check_class(class, cross_checks);
        let within = rows.measured.get(class.name.as_str());
        check_rows(class, within, rows.drained.get(class.name.as_str()), cross_checks);
        check_histograms(bundle, class, cross_checks);
    }
    // If threads hung, the run has rows but no totals for them.
    if !bundle.run.classes.is_empty() {
        let all = rows.measured.keys().chain(rows.drained.keys());
        for name in all.filter(|name| !names.contains(**name)) {
            cross_checks
                .require(false, || format!("the series contains {name}, but the totals do not"));
        }
        for tag in bundle.latency.keys() {
            let mut all = names.iter().copied().chain([GENERATOR]);
            let known = all.any(|name| {
                tag.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            cross_checks
                .require(known, || format!("the histograms contain {tag}, but the totals do not"));
        }
    }
    check_phase_bytes(bundle, &rows, cross_checks);
}

/// Checks that phases follow each other within the run.
fn phases(bundle: &Bundle, cross_checks: &mut CrossChecks) {
    let mut end_ns = 0;
    for phase in &bundle.run.phases {
        let name = phase.kind.label();
        cross_checks.require(phase.start_ns >= end_ns, || {
            format!("the phase {name} starts before the end of the previous phase")
        });
        end_ns = phase.start_ns.saturating_add(phase.duration_ns);
    }
    cross_checks.require(end_ns <= bundle.run.duration_ns, || {
        format!(
            "the phases are longer than the run: they end at {end_ns} ns, but the run ended at {} \
             ns",
            bundle.run.duration_ns
        )
    });
}

/// Sums over the rows of the series.
#[derive(Default)]
struct Rows<'a> {
    /// Sums of the measured phase, by class.
    measured: BTreeMap<&'a str, Sums>,
    /// Sums of operations that started in the measured phase and completed after its end, by class.
    drained: BTreeMap<&'a str, Sums>,
    /// Bytes of each phase, by its index.
    bytes: BTreeMap<u32, u64>,
    /// Number of rows whose phase does not exist in the run, or that are outside the measured
    /// phase.
    astray: u64,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: u64,
    latency_ns: u64,
    bytes: u64,
    max_ns: u64,
    /// Number of rows whose figures contradict each other.
    absurd: u64,
}

fn rows(bundle: &Bundle) -> Rows<'_> {
    let mut rows = Rows::default();
    let grid_ns = grid_ns(bundle);
    for row in &bundle.series {
        let Some(phase) = bundle.run.phases.get(row.phase as usize) else {
            rows.astray += 1;
            continue;
        };
        let Data::Class { count, sum_ns, bytes, max_ns } = row.data else { continue };
        let of_phase = rows.bytes.entry(row.phase).or_default();
        *of_phase = of_phase.saturating_add(bytes);
        if phase.kind != PhaseKind::Measure {
            continue;
        }
        let end_ns = phase.start_ns.saturating_add(phase.duration_ns);
        let drained = drained_class(&row.name);
        let (from_ns, to_ns) = match drained {
            Some(_) => (end_ns, u64::MAX),
            None => (phase.start_ns, end_ns.saturating_add(grid_ns)),
        };
        if row.start_ns.saturating_add(grid_ns) < from_ns || row.start_ns > to_ns {
            rows.astray += 1;
        }
        let sums_by_class = match drained {
            Some(class) => rows.drained.entry(class),
            None => rows.measured.entry(row.name.as_str()),
        };
        let sums = sums_by_class.or_default();
        sums.count = sums.count.saturating_add(count);
        sums.latency_ns = sums.latency_ns.saturating_add(sum_ns);
        sums.bytes = sums.bytes.saturating_add(bytes);
        sums.max_ns = sums.max_ns.max(max_ns);
        sums.absurd += u64::from(count == 0 || !is_possible(count, sum_ns, max_ns));
    }
    rows
}

/// Returns the maximum time by which a row may start outside its phase.
fn grid_ns(bundle: &Bundle) -> u64 {
    let is_ours = bundle.run.driver != Driver::Foreign;
    let is_whole = bundle.run.end.kind == EndKind::Completed;
    if is_ours && is_whole { GRID_NS.min(bundle.plan.evidence.interval_ns) } else { GRID_NS }
}

/// Returns true if `count` latencies, none larger than `max_ns`, can have the sum `sum_ns`.
fn is_possible(count: u64, sum_ns: u64, max_ns: u64) -> bool {
    let most = u128::from(count) * (u128::from(max_ns) + 1);
    max_ns <= sum_ns.saturating_add(1) && u128::from(sum_ns) <= most
}

fn check_class(class: &ClassTotals, cross_checks: &mut CrossChecks) {
    let name = &class.name;
    cross_checks.require(
        class.drained <= class.count && class.drained_bytes <= class.size_bytes,
        || {
            format!(
                "{name}: more operations or bytes were drained after the end than the total \
                 contains"
            )
        },
    );
    let sums = is_possible(class.count, class.latency_ns_sum, class.latency_ns_max);
    cross_checks.require(class.count == 0 || sums, || {
        format!(
            "{name}: the sum of {} latencies of at most {} ns cannot be {} ns",
            class.count, class.latency_ns_max, class.latency_ns_sum
        )
    });
    let service = class.service_ns_sum <= class.latency_ns_sum
        && class.service_ns_max <= class.latency_ns_max;
    cross_checks
        .require(service, || format!("{name}: the service times are longer than the latencies"));
}

/// Compares the totals with the rows of the series. Operations that ended after the phase have
/// separate rows. Older versions did not record these rows.
fn check_rows(
    class: &ClassTotals,
    rows: Option<&Sums>,
    drained: Option<&Sums>,
    cross_checks: &mut CrossChecks,
) {
    let name = &class.name;
    let mut rows = rows.copied().unwrap_or_default();
    let within = class.count.saturating_sub(class.drained);
    cross_checks.require_equal(
        &format!("I/Os of {name}"),
        ("the total", within),
        ("the series", rows.count),
    );
    let bytes = class.size_bytes.saturating_sub(class.drained_bytes);
    cross_checks.require_equal(
        &format!("bytes of {name}"),
        ("the total", bytes),
        ("the series", rows.bytes),
    );
    let has_rows = class.unfinished().is_some();
    if has_rows {
        let late = drained.copied().unwrap_or_default();
        let what = format!("drained I/Os of {name}");
        cross_checks.require_equal(&what, ("the total", class.drained), ("the series", late.count));
        let what = format!("drained bytes of {name}");
        cross_checks.require_equal(
            &what,
            ("the total", class.drained_bytes),
            ("the series", late.bytes),
        );
        rows.latency_ns = rows.latency_ns.saturating_add(late.latency_ns);
        (rows.max_ns, rows.absurd) = (rows.max_ns.max(late.max_ns), rows.absurd + late.absurd);
    }
    let none_drained = has_rows || class.drained == 0;
    let sum = class.latency_ns_sum;
    cross_checks.require(rows.latency_ns == sum || !none_drained && rows.latency_ns < sum, || {
        format!(
            "latencies of {name}: their sum is {sum} ns in the totals, but {} ns in the series",
            rows.latency_ns
        )
    });
    let max = class.latency_ns_max;
    cross_checks.require(rows.max_ns == max || !none_drained && rows.max_ns <= max, || {
        format!(
            "the largest latency of {name} is {max} ns in the totals, but {} ns in the series",
            rows.max_ns
        )
    });
    cross_checks.require(rows.absurd == 0, || {
        format!("{name}: {} rows of the series are inconsistent", rows.absurd)
    });
}

/// Compares the totals with the histograms.
fn check_histograms(bundle: &Bundle, class: &ClassTotals, cross_checks: &mut CrossChecks) {
    let both = [
        (class.name.clone(), class.count, class.latency_ns_sum, class.latency_ns_max),
        (
            format!("{}.service", class.name),
            class.served(),
            class.service_ns_sum,
            class.service_ns_max,
        ),
    ];
    for (tag, total, sum_ns, max_ns) in both {
        let histogram = bundle.latency.get(&tag);
        let count = histogram.map_or(0, Histogram::len);
        let what = format!("values of {tag}");
        let histogram = if bundle.run.build.is_some() {
            cross_checks.require_equal(&what, ("the histogram", count), ("the total", total));
            histogram.filter(|histogram| histogram.len() == total)
        } else {
            // Histograms of older versions include writes of the closing phase that started in the
            // same millisecond.
            let enough = count as f64 >= total as f64 * (1.0 - SHORT);
            cross_checks.require(enough, || {
                format!("{what}: {count} in the histogram, but {total} in the totals")
            });
            None
        };
        let Some(histogram) = histogram else { continue };
        let (low, high) = bounds(histogram);
        // A histogram clamps longer latencies to its maximum.
        let told_apart = max_ns < LATENCY_NS_MAX;
        cross_checks.require(!told_apart || (low..=high).contains(&(sum_ns as f64)), || {
            format!(
                "latencies of {tag}: their sum is {sum_ns} ns in the totals, but {low:.0} to \
                 {high:.0} ns in the histogram"
            )
        });
        let largest = histogram.max() as f64;
        let near = (max_ns as f64 - largest).abs() <= largest * 2.0 * BUCKET + 2.0;
        cross_checks.require(!told_apart || near, || {
            format!(
                "the largest latency of {tag} is {max_ns} ns in the totals, but {largest:.0} ns in \
                 the histogram"
            )
        });
    }
}

/// Returns the minimum and maximum sum of a histogram's values.
fn bounds(histogram: &Histogram<u64>) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 0.0);
    for bucket in histogram.iter_recorded() {
        let (value, count) = (bucket.value_iterated_to(), bucket.count_at_value() as f64);
        low += count * histogram.lowest_equivalent(value) as f64;
        high += count * histogram.highest_equivalent(value) as f64;
    }
    // A histogram counts a latency of zero as the smallest value that it can represent.
    let least = histogram.len() as f64;
    (low * (1.0 - BUCKET) - least, high * (1.0 + BUCKET) + least)
}

/// Compares the bytes of the phases with the series, and the bytes of the measurement with the
/// totals.
fn check_phase_bytes(bundle: &Bundle, rows: &Rows<'_>, cross_checks: &mut CrossChecks) {
    cross_checks.require(rows.astray == 0, || {
        format!("{} rows of the series are outside the phases", rows.astray)
    });
    let classes = &bundle.run.classes;
    for (index, phase) in (0u32..).zip(&bundle.run.phases) {
        let name = phase.kind.label();
        let bytes = phase.read_bytes.saturating_add(phase.written_bytes);
        if phase.kind == PhaseKind::Measure {
            if classes.is_empty() {
                continue;
            }
            let total = |read: bool| {
                let of = classes.iter().filter(|class| class.is_read == read);
                of.fold(0u64, |sum, class| sum.saturating_add(class.size_bytes))
            };
            let totals = "the totals of all classes";
            cross_checks.require_equal(
                "bytes read",
                ("the measured phase", phase.read_bytes),
                (totals, total(true)),
            );
            cross_checks.require_equal(
                "bytes written",
                ("the measured phase", phase.written_bytes),
                (totals, total(false)),
            );
        } else if let Some(rows) = rows.bytes.get(&index) {
            cross_checks.require(*rows <= bytes, || {
                format!("bytes of {name}: {bytes} in the phase, but {rows} in the series")
            });
        }
    }
}
