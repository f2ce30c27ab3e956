//! Synthetic studies, for tests and review. Nothing in them was measured.

#![allow(dead_code, reason = "each user takes a part")]

use plimsoll_report::document::{Fact, Headline};
use plimsoll_report::number::Unit;
use plimsoll_report::study::{Comparison, Curve, Metric, Side, Step, Sweep, SweepCell};
use plimsoll_report::table::{Cell, Tone};

/// A curve that falls after its knee.
pub fn curve() -> Curve {
    let steps = [
        (1., 1_200., 1.9, 0.4),
        (2., 2_400., 2.0, 0.4),
        (4., 4_700., 2.2, 0.5),
        (8., 9_100., 2.9, 0.6),
        (16., 15_800., 4.4, 0.9),
        (32., 21_500., 7.6, 1.6),
        (64., 23_900., 14.1, 2.9),
        (128., 24_100., 28.7, 6.1),
        (256., 22_700., 60.2, 11.8),
    ];
    let step = |(load, rate_per_s, read_ms, log_ms): (f64, f64, f64, f64)| Step {
        load,
        rate_per_s,
        rate_interval: Some((rate_per_s * 0.985, rate_per_s * 1.015)),
        latency_ns: vec![Some(read_ms * 1e6), Some(log_ms * 1e6)],
        latency_interval_ns: Some((read_ms * 0.93e6, read_ms * 1.07e6)),
        within: Some(load <= 64.0),
        steady: (load < 256.0).then_some(true),
        note: String::new(),
    };
    Curve {
        name: "exchange-1000-heavy".into(),
        load_name: "threads".into(),
        latency_names: vec!["database reads, average".into(), "log writes, average".into()],
        ceilings_ns: vec![Some(20e6), Some(10e6)],
        steps: steps.map(step).to_vec(),
        required_per_s: Some(9_000.0),
        load_line: Some(6),
        fewest: Some(3),
        remarks: vec!["Beyond 128 threads the rate falls: more threads carry less.".into()],
    }
}

/// Six sizes by five mixes, one point missing.
pub fn sweep() -> Sweep {
    let mut cells = Vec::new();
    for (column, kib) in [4u64, 8, 16, 32, 64, 128].into_iter().enumerate() {
        for (row, share) in [1.0, 0.75, 0.5, 0.25, 0.0].into_iter().enumerate() {
            let rate = 96_000.0 / (1.0 + kib as f64 / 24.0) * (1.0 - 0.11 * row as f64);
            let missing = (column, row) == (4, 3);
            let figure = |value: f64| (!missing).then_some(value);
            let latency = 32.0 / rate * 1e9;
            cells.push(SweepCell {
                pattern: "random".into(),
                queue_depth: 4,
                size_bytes: kib * 1_024,
                read_share: share,
                rate_per_s: figure(rate),
                rate_interval: figure(rate).map(|rate| (rate * 0.98, rate * 1.02)),
                bandwidth_bytes_per_s: figure(rate * kib as f64 * 1_024.0),
                latency_ns_avg: figure(latency),
                read_rate_per_s: figure(rate * share),
                write_rate_per_s: figure(rate * (1.0 - share)),
                metadata_rate_per_s: figure(0.0),
                steady: if missing { None } else { Some(kib != 8) },
                latency_ns_percentiles: [
                    figure(latency * 0.8),
                    figure(latency * 3.1),
                    figure(latency * 7.7).filter(|_| kib < 64),
                ],
                cpu_share: figure(0.31),
                verdict: if missing { "INVALID" } else { "MEASURED" }.into(),
                note: if missing { "an I/O error ended it" } else { "" }.into(),
            });
        }
    }
    Sweep {
        name: "array-profile".into(),
        cells,
        remember: vec![
            Fact::new("4 KiB, 75 % reads", Cell::number(Unit::Rate, 73_234.0)),
            Fact::new("32 KiB, 75 % reads", Cell::number(Unit::Rate, 36_617.0)),
            Fact::new("top bandwidth", Cell::number(Unit::Bandwidth, 1.99e9)),
        ],
        conditions: vec![
            "8 shares × 15 files, 5 % metadata operations, incompressible data".into(),
        ],
    }
}

/// Two file systems: one metric clearly better, one without a significant difference, one clearly
/// worse.
pub fn comparison() -> Comparison {
    let side = |mean: f64, half: f64, ratio: Option<(f64, f64, f64)>| Side {
        mean: Some(mean),
        interval: Some((mean - half, mean + half)),
        spread_share: Some(half / mean),
        ratio: ratio.map(|r| r.0),
        ratio_interval: ratio.map(|r| (r.1, r.2)),
    };
    let metric = |name: &str, key: &str, unit, more, a, b, says: &str| Metric {
        name: name.into(),
        key: key.into(),
        unit,
        more_is_better: Some(more),
        sides: vec![a, b],
        says: says.into(),
    };
    let metrics = vec![
        metric(
            "I/Os per second",
            "rate_per_s",
            Unit::Rate,
            true,
            side(331.8, 4.1, None),
            side(351.7, 5.0, Some((1.060, 1.031, 1.090))),
            "significant",
        ),
        metric(
            "database read latency",
            "db_read_latency_ns_avg",
            Unit::Latency,
            false,
            side(8.57e6, 0.2e6, None),
            side(8.35e6, 0.3e6, Some((0.974, 0.931, 1.019))),
            "no significant difference",
        ),
        metric(
            "CPU per I/O",
            "cpu_ns_per_io",
            Unit::Latency,
            false,
            side(41e3, 1e3, None),
            side(53.7e3, 1.4e3, Some((1.31, 1.24, 1.38))),
            "significant",
        ),
    ];
    Comparison {
        names: vec!["ext4".into(), "Btrfs".into()],
        headline: Headline {
            word: "BOTH MEET THE REQUIREMENT".into(),
            tone: Tone::Good,
            reason:
                "Both carry what is required with headroom, so the difference should not decide."
                    .into(),
            figures: Vec::new(),
        },
        metrics,
        unlike: vec![("mount options".into(), vec!["rw,relatime".into(), "rw,noatime".into()])],
        remarks: vec!["Three runs each, in alternation, with fresh data.".into()],
    }
}
