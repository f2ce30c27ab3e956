//! The report of a sweep, from what was judged of its points.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{Remembered, Sweep, SweepPoint};

use crate::document::{Document, Fact};
use crate::number::{Letters, Unit};
use crate::study;
use crate::table::{Cell, Tone};

/// The report: figures to keep in mind, maps and lines for each pattern and depth, all points.
pub fn sweep_document(sweep: &Sweep) -> Document {
    let mut document = drawn(sweep).document();
    let (planned, done) = (sweep.points_planned, sweep.points.len());
    if done < planned {
        document.headline.tone = Tone::Warn;
        document.headline.reason = format!("{done} of {planned} points so far.");
    }
    let invalid = sweep.points.iter().filter(|p| p.verdict == VerdictKind::Invalid).count();
    if invalid > 0 {
        document.headline.tone = Tone::Bad;
        let reason = &mut document.headline.reason;
        reason.push_str(&format!(" {invalid} of them are not what they claim to be."));
    }
    let unsteady = sweep.points.iter().filter(|point| point.steady == Some(false)).count();
    if unsteady > 0 {
        document.headline.reason.push_str(&format!(" {unsteady} of them were not steady."));
    }
    document
}

/// All points as CSV, in base units.
pub fn sweep_csv(sweep: &Sweep) -> String {
    drawn(sweep).table().csv()
}

fn drawn(sweep: &Sweep) -> study::Sweep {
    study::Sweep {
        name: sweep.name.clone(),
        cells: sweep.points.iter().map(cell).collect(),
        remember: sweep.remember.iter().map(fact).collect(),
        conditions: sweep.conditions.clone(),
    }
}

fn cell(point: &SweepPoint) -> study::SweepCell {
    let float = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let percentiles = [point.latency_ns_p50, point.latency_ns_p99, point.latency_ns_p999];
    study::SweepCell {
        pattern: point.pattern.clone(),
        queue_depth: point.queue_depth,
        size_bytes: point.size_bytes,
        read_share: point.read_percent / 100.0,
        rate_per_s: point.rate_per_s,
        rate_interval: point.rate_interval_per_s.map(|[low, high]| (low, high)),
        bandwidth_bytes_per_s: point.bandwidth_bytes_per_s,
        latency_ns_avg: float(point.latency_ns_avg),
        read_rate_per_s: point.read_rate_per_s,
        write_rate_per_s: point.write_rate_per_s,
        metadata_rate_per_s: point.metadata_rate_per_s,
        steady: point.steady,
        latency_ns_percentiles: percentiles.map(float),
        cpu_share: point.cpu_share,
        verdict: point.verdict.label().to_owned(),
        note: point.note.clone(),
    }
}

fn fact(kept: &Remembered) -> Fact {
    let bandwidth = Unit::Bandwidth.show(kept.bandwidth_bytes_per_s, Letters::Unicode);
    let latency = kept.latency_ns_avg.map_or(String::new(), |ns| {
        format!(", {} on average", Unit::Latency.show(ns as f64, Letters::Unicode))
    });
    Fact::new(&kept.name, Cell::number(Unit::Rate, kept.rate_per_s))
        .note(format!("{bandwidth}{latency}"))
}
