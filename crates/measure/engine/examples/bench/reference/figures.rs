//! Figures of the comparison.

/// Figures of one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub rate_per_s: f64,
    pub mean_ns: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub p999_ns: f64,
}

impl Figures {
    /// Computes the figures of individual latencies.
    pub fn of(rate_per_s: f64, latencies_ns: &mut [u64]) -> Self {
        latencies_ns.sort_unstable();
        let count = latencies_ns.len();
        let at = |quantile: f64| {
            let rank = (quantile * count as f64).ceil() as usize;
            latencies_ns.get(rank.saturating_sub(1)).map_or(0.0, |ns| *ns as f64)
        };
        let sum: u64 = latencies_ns.iter().sum();
        Self {
            rate_per_s,
            mean_ns: sum as f64 / count.max(1) as f64,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
        }
    }
}

/// Returns an error in percent.
pub fn error(reported: f64, truth: f64) -> String {
    if truth == 0.0 {
        return "-".to_owned();
    }
    format!("{:+.1} %", 100.0 * (reported / truth - 1.0))
}

/// Returns the largest error of a reported latency, as a fraction of its bound of 1 % + 2 µs.
pub fn bound_share(reported: &Figures, truth: &Figures) -> f64 {
    let fields: [fn(&Figures) -> f64; 4] =
        [|f| f.mean_ns, |f| f.p50_ns, |f| f.p99_ns, |f| f.p999_ns];
    let share = |field: &fn(&Figures) -> f64| {
        (field(reported) - field(truth)).abs() / (field(truth) * 0.01 + 2_000.0)
    };
    fields.iter().filter(|field| field(reported) > 0.0).map(share).fold(0.0, f64::max)
}
