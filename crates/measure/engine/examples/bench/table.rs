//! Output as a table.

use crate::Options;
use crate::compare::RowSamples;
use crate::fio::Sample;
use crate::jobs::{Metric, Row, Want};
use crate::stats::{median, ratio_interval};

/// Prints the conditions and the column names.
pub fn head(options: &Options) {
    let version = std::process::Command::new("fio").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    println!("core {}, {} s a run, {}", options.cpu, options.seconds, version.unwrap_or_default());
    println!("instructions: {}", plimsoll_sys::simd::Kernels::best().level());
    println!(
        "| {:30} | {:>12} | {:>12} | {:>12} | {:>22} | {:>22} | {:7} |",
        "work", "ours", "fio", "fio best", "to fio (asked)", "to fio best (asked)", ""
    );
    println!("|{}|", "-".repeat(136));
}

/// Prints a row's lines and returns the number of missed bounds.
pub fn print(row: &Row, measured: &RowSamples) -> usize {
    let mut missed = 0;
    for line in &row.lines {
        let of = |samples: &[Sample]| -> Vec<f64> {
            samples.iter().map(|sample| value(sample, line.metric)).collect()
        };
        let (ours, fio, best) = (of(&measured.ours), of(&measured.fio), of(&measured.best));
        let (to_fio, fio_ok) = ratio(&ours, &fio, line.metric, line.to_default);
        let (to_best, best_ok) = ratio(&ours, &best, line.metric, line.to_best);
        let ok = fio_ok && best_ok;
        missed += usize::from(!ok);
        println!(
            "| {:30} | {:>12} | {:>12} | {:>12} | {:>22} | {:>22} | {:7} |",
            format!("{}: {}", row.name, unit(line.metric)),
            shown(&ours, line.metric),
            shown(&fio, line.metric),
            shown(&best, line.metric),
            to_fio,
            to_best,
            if ok { "met" } else { "MISSED" }
        );
    }
    missed
}

fn value(sample: &Sample, metric: Metric) -> f64 {
    match metric {
        Metric::Rate => sample.operations_per_s,
        Metric::Bytes => sample.bytes_per_s,
        Metric::UserCpu => sample.user_ns,
        Metric::Cpu => sample.cpu_ns,
        Metric::P50 => sample.p50_ns,
        Metric::P99 => sample.p99_ns,
    }
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "op/s",
        Metric::Bytes => "GB/s",
        Metric::UserCpu => "user ns/op",
        Metric::Cpu => "CPU ns/op",
        Metric::P50 => "p50 ns",
        Metric::P99 => "p99 ns",
    }
}

fn shown(values: &[f64], metric: Metric) -> String {
    if values.is_empty() {
        return String::new();
    }
    let middle = median(values);
    match metric {
        Metric::Rate => format!("{middle:.0}"),
        Metric::Bytes => format!("{:.2}", middle / 1e9),
        _ => format!("{middle:.1}"),
    }
}

fn ratio(ours: &[f64], theirs: &[f64], metric: Metric, want: Want) -> (String, bool) {
    if theirs.is_empty() {
        return (String::new(), true);
    }
    let ratio = median(ours) / median(theirs);
    let (low, high) = ratio_interval(ours, theirs).unwrap_or((0.0, f64::INFINITY));
    let up = metric.higher_is_better();
    let bounded = |bound: f64| if up { ratio >= bound } else { ratio <= bound };
    let sign = if up { "≥" } else { "≤" };
    let (requested, ok) = match want {
        Want::Bound(bound) => (format!("{sign}{bound}"), bounded(bound)),
        Want::BoundAndInterval(bound) => {
            let clear = if up { low > 1.0 } else { high < 1.0 };
            (format!("{sign}{bound}!"), bounded(bound) && clear)
        }
        Want::NotWorse => ("~1".into(), if up { high >= 1.0 } else { low <= 1.0 }),
        Want::Nothing => ("-".into(), true),
    };
    (format!("{ratio:.2} [{low:.2} {high:.2}] {requested}"), ok)
}
