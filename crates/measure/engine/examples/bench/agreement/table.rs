//! Output as a table.

use super::rows::Row;
use super::{Options, Pairs, Sample};
use crate::stats::{median, ratio_interval};

/// Prints the conditions and the names of the columns.
pub fn head(options: &Options) {
    let fio = super::place::output("fio", &["--version"]).unwrap_or_default();
    println!(
        "{} pairs of {} s after {} s of warm-up, {fio}; latencies in us; ratio = ours / peer of the \
         medians [95 % interval]\n",
        options.pairs, options.seconds, options.warm_up
    );
    println!(
        "| work | ours/s | peer/s | rate | mean | p50 ours | p50 peer | p50 | p99 ours | p99 peer | \
         p99 | CPU per op |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

pub fn print(row: &Row, pairs: &Pairs) {
    let of = |samples: &[Sample], field: fn(&Sample) -> f64| -> Vec<f64> {
        samples.iter().map(field).collect()
    };
    let both = |field: fn(&Sample) -> f64| (of(&pairs.ours, field), of(&pairs.theirs, field));
    let (rate, peer_rate) = both(|s| s.rate);
    let (mean, peer_mean) = both(|s| s.mean_ns);
    let (p50, peer_p50) = both(|s| s.p50_ns / 1e3);
    let (p99, peer_p99) = both(|s| s.p99_ns / 1e3);
    let (cpu, peer_cpu) = both(|s| s.cpu_ns);
    println!(
        "| {} | {:.0} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.name(),
        median(&rate),
        median(&peer_rate),
        ratio(&rate, &peer_rate),
        short(&mean, &peer_mean),
        us(&p50),
        us(&peer_p50),
        short(&p50, &peer_p50),
        us(&p99),
        us(&peer_p99),
        short(&p99, &peer_p99),
        short(&cpu, &peer_cpu),
    );
}

fn us(values: &[f64]) -> String {
    match median(values) {
        0.0 => "-".to_owned(),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn ratio(ours: &[f64], theirs: &[f64]) -> String {
    match ratio_interval(ours, theirs) {
        Some((low, high)) => format!("{} [{low:.2} {high:.2}]", short(ours, theirs)),
        None => short(ours, theirs),
    }
}

fn short(ours: &[f64], theirs: &[f64]) -> String {
    match (median(ours), median(theirs)) {
        (ours, theirs) if ours > 0.0 && theirs > 0.0 => format!("{:.2}", ours / theirs),
        _ => "-".to_owned(),
    }
}
