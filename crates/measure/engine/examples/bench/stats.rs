//! Medians, and the interval of a ratio from pairs.

/// Returns the median; 0 without values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Two-sided 95 % points of Student's t for 1 to 20 degrees of freedom (NIST/SEMATECH e-Handbook of
/// Statistical Methods, table 1.3.6.7.2).
const T95: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// Returns the 95 % interval of the ratio of two sides from pairs measured together: Student's t on
/// the logarithms of the pairs' ratios. `None` for fewer than two pairs.
pub fn ratio_interval(ours: &[f64], theirs: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> =
        ours.iter().zip(theirs).map(|(a, b)| (a / b).ln()).filter(|l| l.is_finite()).collect();
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = T95[(logs.len() - 2).min(T95.len() - 1)];
    let half = t * (variance / n).sqrt();
    Some(((mean - half).exp(), (mean + half).exp()))
}
