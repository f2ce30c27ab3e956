//! Distribution of latency: percentiles with sample counts, and charts.

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_judge::stats::percentile_gate;

use super::empty_section;
use super::kinds::{Kind, Totals, kinds};
use crate::chart::{Axis, Mark, Plot, Series};
use crate::document::{Block, Section};
use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

/// Shown percentiles: name, key and quantile.
pub(crate) const QUANTILES: [(&str, &str, f64); 7] = [
    ("p50", "p50", 0.5),
    ("p90", "p90", 0.9),
    ("p95", "p95", 0.95),
    ("p99", "p99", 0.99),
    ("p99.9", "p999", 0.999),
    ("p99.99", "p9999", 0.9999),
    ("p99.999", "p99999", 0.99999),
];

/// Bins per decade of latency.
const BINS_PER_DECADE: f64 = 24.0;
/// A percentile is shown only if at least this many I/Os are above it.
const BEYOND_MIN: u64 = 10;

pub(crate) fn section(bundle: &Bundle) -> Section {
    let table = percentiles(bundle);
    if table.rows.is_empty() {
        return empty_section();
    }
    let section = Section::full("latency", "Latency").with(Block::Table(table));
    let charts = [chart(bundle), tail_chart(bundle)].into_iter().flatten();
    charts.fold(section, |section, plot| section.with(Block::Chart(Box::new(plot))))
}

pub(crate) fn percentiles(bundle: &Bundle) -> Table {
    let mut columns = vec![
        Column::words("latency of", "latency_of"),
        Column::of(Unit::Count, "I/Os", "count"),
        Column::numbers("average", "latency_ns_avg"),
    ];
    columns.extend(
        QUANTILES.iter().map(|(name, key, _)| Column::numbers(name, &format!("latency_ns_{key}"))),
    );
    columns.push(Column::numbers("largest", "latency_ns_max"));
    let mut table = Table::new("Percentiles", columns);
    for kind in kinds(bundle) {
        for service in [false, true] {
            if let Some(histogram) = kind.histogram(bundle, service) {
                table.rows.push(row(bundle, &kind, service, &histogram));
            }
        }
    }
    table.note = "The percentiles are computed from merged histograms with three significant \
                  digits. A percentile is n/a if fewer than ten I/Os took longer than its value. \
                  Latency is measured from the intended start of an I/O, and service time from the \
                  moment just before the I/O is submitted."
        .to_owned();
    drop_empty_percentiles(&mut table);
    table
}

/// Removes percentiles above p99 for which no row has enough I/Os.
fn drop_empty_percentiles(table: &mut Table) {
    for key in ["latency_ns_p99999", "latency_ns_p9999", "latency_ns_p999"] {
        let Some(at) = table.columns.iter().position(|column| column.key == key) else { return };
        if table.rows.iter().any(|row| row[at] != Cell::not_applicable()) {
            return;
        }
        table.columns.remove(at);
        for row in &mut table.rows {
            row.remove(at);
        }
    }
}

fn row(bundle: &Bundle, kind: &Kind, service: bool, histogram: &Histogram<u64>) -> Vec<Cell> {
    let totals: Totals = kind.totals(bundle, None);
    let n = histogram.len();
    let (name, tone, average, largest) = match service {
        false => (kind.label.clone(), Tone::Plain, totals.latency_ns_avg(), totals.latency_ns_max),
        true => (
            format!("{}, service time", kind.label),
            Tone::Faint,
            totals.service_ns_avg(),
            totals.service_ns_max,
        ),
    };
    let mut cells =
        vec![Cell::text(name).tone(tone), Cell::count(n), Cell::maybe(Unit::Latency, average)];
    for (_, _, quantile) in QUANTILES {
        cells.push(Cell::maybe(Unit::Latency, percentile_ns(histogram, quantile)));
    }
    cells.push(Cell::number(Unit::Latency, largest as f64));
    cells
}

/// Returns a percentile if it has enough samples.
pub(crate) fn percentile_ns(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    let n = histogram.len();
    percentile_gate(n as usize, n as f64, quantile).ok()?;
    Some(histogram.value_at_quantile(quantile) as f64)
}

fn chart(bundle: &Bundle) -> Option<Plot> {
    let mut plot = Plot::new(
        "distribution",
        "Distribution of latency",
        Axis::log("latency", Unit::Latency),
        Axis::linear("share of all I/Os of this kind", Unit::Share),
    )
    .size(860.0, 240.0)
    .says(
        "Each step shows the share of the I/Os of one kind in one histogram bin; there are 24 bins \
         per decade of latency. A line with two peaks indicates that the data came from two \
         sources, such as a cache and the media.",
    );
    for (kind, histogram) in drawn(bundle) {
        let (colour, points) = (kind.colour(), bins(&histogram));
        plot = plot.mark(Mark::StepArea(Series { name: kind.label, colour, points }));
    }
    (!plot.marks.is_empty()).then_some(plot)
}

/// Returns a chart that shows, for each latency, the share of I/Os with a higher latency.
fn tail_chart(bundle: &Bundle) -> Option<Plot> {
    let mut plot = Plot::new(
        "latency-beyond",
        "Share of I/Os that took longer than a latency",
        Axis::log("latency", Unit::Latency),
        Axis::log("share of I/Os that took longer", Unit::Share),
    )
    .size(860.0, 240.0)
    .says(
        "Each line shows, for one kind of I/O, the share of I/Os that took longer than the latency \
         on the horizontal axis. p99 is at 1 %, and p99.9 is at 0.1 %. A line ends at the latency \
         that fewer than ten I/Os exceeded.",
    );
    for (kind, histogram) in drawn(bundle) {
        let (colour, points) = (kind.colour(), beyond(&histogram));
        if points.len() > 1 {
            plot = plot.mark(Mark::Line(Series { name: kind.label, colour, points }));
        }
    }
    (!plot.marks.is_empty()).then_some(plot)
}

/// Returns the kinds of I/O to which limits apply, with their latency histograms.
fn drawn(bundle: &Bundle) -> impl Iterator<Item = (Kind, Histogram<u64>)> {
    kinds(bundle).into_iter().filter(Kind::is_judged).filter_map(|kind| {
        let histogram = kind.histogram(bundle, false)?;
        Some((kind, histogram))
    })
}

/// Returns the share of I/Os in each bin. On a logarithmic axis all bins are equally wide.
fn bins(histogram: &Histogram<u64>) -> Vec<(f64, Option<f64>)> {
    let (first, counts) = counts(histogram);
    let total = histogram.len() as f64;
    let mut points = vec![(edge(first), Some(0.0))];
    points.extend(
        (first..).zip(&counts).map(|(bin, count)| (edge(bin), Some(*count as f64 / total))),
    );
    points.push((edge(first + counts.len() as i64), Some(0.0)));
    points
}

/// Returns, for each edge between bins, the share of values above this edge. It stops before the
/// first edge with too few values above it.
fn beyond(histogram: &Histogram<u64>) -> Vec<(f64, Option<f64>)> {
    let (first, counts) = counts(histogram);
    let mut left = histogram.len();
    let mut points = vec![(edge(first), Some(1.0))];
    for (bin, count) in (first + 1..).zip(&counts) {
        left = left.saturating_sub(*count);
        if left < BEYOND_MIN {
            break;
        }
        points.push((edge(bin), Some(left as f64 / histogram.len() as f64)));
    }
    points
}

/// Returns the lower edge of a bin, in ns.
fn edge(bin: i64) -> f64 {
    10f64.powf(bin as f64 / BINS_PER_DECADE)
}

/// Returns the number of the first bin, and the number of values in this bin and in each later bin.
fn counts(histogram: &Histogram<u64>) -> (i64, Vec<u64>) {
    let bin_of = |ns: u64| ((ns.max(1) as f64).log10() * BINS_PER_DECADE).floor() as i64;
    // A logarithmic axis has no zero, so zero counts as 1 ns. Values below the clock's resolution
    // are in the first bin.
    let (first, last) = (bin_of(histogram.min_nz()), bin_of(histogram.max()));
    let mut counts = vec![0u64; (last - first + 1).clamp(1, 1_000) as usize];
    for value in histogram.iter_recorded() {
        let at = (bin_of(value.value_iterated_to()) - first).max(0) as usize;
        let at = at.min(counts.len() - 1);
        counts[at] += value.count_at_value();
    }
    (first, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_beyond_falls_from_all_and_ends_with_the_samples() {
        let mut histogram = plimsoll_evidence::latency::histogram();
        histogram.record_n(100_000, 900).unwrap();
        histogram.record_n(1_000_000, 90).unwrap();
        histogram.record_n(50_000_000, 10).unwrap();
        let points = beyond(&histogram);
        let share_at = |ns: f64| {
            let at = points.iter().rev().find(|(x, _)| *x <= ns);
            at.and_then(|(_, share)| *share)
        };
        assert_eq!(points[0].1, Some(1.0));
        assert_eq!((share_at(5e5), share_at(3e7)), (Some(0.1), Some(0.01)));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
        // The last point has ten larger values.
        assert_eq!(points.last().unwrap().1, Some(0.01));
        histogram.reset();
        histogram.record_n(100_000, 9).unwrap();
        assert_eq!(beyond(&histogram).len(), 1);
    }

    #[test]
    fn bins_hold_every_io_once() {
        let mut histogram = plimsoll_evidence::latency::histogram();
        for ns in [0, 90_000, 100_000, 5_000_000, 5_100_000, 700_000_000] {
            histogram.record(ns).unwrap();
        }
        let shares: f64 = bins(&histogram).iter().filter_map(|(_, share)| *share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        let least = bins(&histogram)[0].0;
        assert!((80_000.0..90_000.0).contains(&least), "{least}");
    }
}
