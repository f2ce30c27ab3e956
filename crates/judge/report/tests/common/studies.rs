//! Synthetic studies, for tests and review. None of their figures was measured.

#![allow(dead_code, reason = "each user takes a part")]

use plimsoll_judge::VerdictKind;
use plimsoll_judge::compare::{
    Comparison, ConditionDifference, Metric, Outcome, RequirementResult, SideFigure,
};
use plimsoll_judge::stats::tune::MeasuredLoad;
use plimsoll_judge::sweep::{IoShape, KeyFigure, Sweep, SweepPoint};
use plimsoll_judge::tuning::{Latency, Range, TuneStep, Tuning};
use plimsoll_plan::Knob;

/// Creates a search on a system whose throughput falls above its knee.
pub fn search() -> Tuning {
    let steps = [
        (1, 1_200., 1.9, 0.4),
        (2, 2_400., 2.0, 0.4),
        (4, 4_700., 2.2, 0.5),
        (8, 9_100., 2.9, 0.6),
        (16, 15_800., 4.4, 0.9),
        (32, 21_500., 7.6, 1.6),
        (64, 23_900., 14.1, 2.9),
        (128, 24_100., 28.7, 6.1),
        (256, 22_700., 60.2, 11.8),
    ];
    let step = |(load, rate_per_s, read_ms, log_ms): (u64, f64, f64, f64)| TuneStep {
        load,
        rate_per_s: Some(rate_per_s),
        rate_interval_per_s: Some([rate_per_s * 0.985, rate_per_s * 1.015]),
        latencies_ns: vec![Some(read_ms * 1e6), Some(log_ms * 1e6)],
        within: Some(load <= 64),
        steady: (load < 256).then_some(true),
        verdict: VerdictKind::Pass,
        ..TuneStep::default()
    };
    let latency = |name: &str, ms: f64| Latency { name: name.into(), ceiling_ns: Some(ms * 1e6) };
    let at = |load, rate_per_s| Some(MeasuredLoad { load, rate_per_s, measurements: 1 });
    Tuning {
        name: "exchange-1000-heavy".into(),
        knob: Knob::Threads,
        range: Range::up_to(256),
        neighbour: None,
        latencies: vec![
            latency("db_read_latency_avg", 20.0),
            latency("log_write_latency_avg", 10.0),
        ],
        stalls_max_per_s: None,
        required_per_s: Some(9_000.0),
        has_requirement: true,
        steps: steps.map(step).to_vec(),
        complete: true,
        load_line: at(64, 23_900.0),
        confirmed: true,
        knee: None,
        required_load: at(8, 9_100.0),
        required_load_checked: true,
        remarks: vec!["Beyond 128 threads the rate falls: more threads carry less.".into()],
    }
}

/// Creates a sweep of six sizes and five mixes, in which one point is missing.
pub fn sweep() -> Sweep {
    let mut points = Vec::new();
    for (column, kib) in [4u64, 8, 16, 32, 64, 128].into_iter().enumerate() {
        for (row, read_percent) in [100.0, 75.0, 50.0, 25.0, 0.0].into_iter().enumerate() {
            let rate = 96_000.0 / (1.0 + kib as f64 / 24.0) * (1.0 - 0.11 * row as f64);
            let missing = (column, row) == (4, 3);
            let figure = |value: f64| (!missing).then_some(value);
            let latency = |factor: f64| figure(32.0 / rate * 1e9 * factor).map(|ns| ns as u64);
            points.push(SweepPoint {
                label: format!("random {kib}KiB r{read_percent} q4"),
                shape: IoShape {
                    pattern: "random".into(),
                    queue_depth: 4,
                    size_bytes: kib * 1_024,
                    read_percent,
                    metadata_percent: 0.0,
                },
                rate_per_s: figure(rate),
                rate_interval_per_s: figure(rate).map(|rate| [rate * 0.98, rate * 1.02]),
                bandwidth_bytes_per_s: figure(rate * kib as f64 * 1_024.0),
                latency_ns_avg: latency(1.0),
                read_rate_per_s: figure(rate * read_percent / 100.0),
                write_rate_per_s: figure(rate * (1.0 - read_percent / 100.0)),
                metadata_rate_per_s: figure(0.0),
                latency_ns_p50: latency(0.8),
                latency_ns_p99: latency(3.1),
                latency_ns_p999: latency(7.7).filter(|_| kib < 64),
                cpu_share: figure(0.31),
                steady: if missing { None } else { Some(kib != 8) },
                verdict: if missing { VerdictKind::Invalid } else { VerdictKind::Measured },
                note: if missing { "an I/O error ended it" } else { "" }.into(),
                ..SweepPoint::default()
            });
        }
    }
    Sweep {
        name: "array-profile".into(),
        plan_sha256: "0123456789abcdef".into(),
        points_planned: points.len(),
        points,
        key_figures: vec![
            key_figure("4 KiB, 75 % reads", 73_234.0, 300e6),
            key_figure("32 KiB, 75 % reads", 36_617.0, 1.2e9),
            key_figure("top read bandwidth", 15_187.0, 1.99e9),
        ],
        conditions: vec![
            "8 shares × 15 files, 5 % metadata operations, incompressible data".into(),
        ],
    }
}

pub fn key_figure(name: &str, rate_per_s: f64, bandwidth_bytes_per_s: f64) -> KeyFigure {
    let (name, label) = (name.into(), String::new());
    KeyFigure { name, label, rate_per_s, bandwidth_bytes_per_s, latency_ns_avg: None }
}

/// Creates a comparison of two file systems. The second is clearly better in one metric, equal in
/// another, and clearly worse in a third.
pub fn comparison() -> Comparison {
    let side = |mean: f64, half: f64, ratio: Option<(f64, f64, f64)>| SideFigure {
        values: Vec::new(),
        mean: Some(mean),
        interval: Some([mean - half, mean + half]),
        spread: Some(half / mean),
        ratio: ratio.map(|r| r.0),
        ratio_interval: ratio.map(|r| [r.1, r.2]),
        significant: ratio.map(|r| r.1 > 1.0 || r.2 < 1.0),
    };
    let metric = |name: &str, key: &str, more, a, b, says: &str| Metric {
        key: key.into(),
        name: name.into(),
        higher_is_better: more,
        estimate: false,
        sides: vec![a, b],
        says: says.into(),
    };
    let metrics = vec![
        metric(
            "I/Os per second",
            "achieved_iops_per_s",
            true,
            side(331.8, 4.1, None),
            side(351.7, 5.0, Some((1.060, 1.031, 1.090))),
            "significant",
        ),
        metric(
            "database read latency",
            "db_read_latency_ns_avg",
            false,
            side(8.57e6, 0.2e6, None),
            side(8.35e6, 0.3e6, Some((0.974, 0.931, 1.019))),
            "no significant difference",
        ),
        metric(
            "CPU per I/O",
            "cpu_ns_per_op",
            false,
            side(41e3, 1e3, None),
            side(53.7e3, 1.4e3, Some((1.31, 1.24, 1.38))),
            "significant",
        ),
    ];
    let passed = RequirementResult {
        runs: 3,
        passed: 3,
        failed: 0,
        measured: 0,
        verdicts: "PASS 3".into(),
        headroom_min: Some(0.31),
    };
    Comparison {
        names: vec!["ext4".into(), "Btrfs".into()],
        outcome: Outcome::AllMeetWithHeadroom,
        winner: None,
        reason: "Both carry what is required with headroom, so the difference should not decide."
            .into(),
        doubt: None,
        judged: None,
        requirement_results: vec![passed.clone(), passed],
        metrics,
        differences: vec![ConditionDifference {
            name: "mount options".into(),
            values: vec!["rw,relatime".into(), "rw,noatime".into()],
            accepted: false,
            factor: false,
        }],
        explanation: None,
        remarks: vec!["Three runs each, in alternation, with fresh data.".into()],
        runs: Vec::new(),
    }
}
