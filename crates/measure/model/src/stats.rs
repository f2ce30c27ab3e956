//! Statistics that are estimated from simulated samples.

mod batch;

pub use batch::{BatchMeans, Estimate};

/// Returns quantile `q` (from 0 to 1), interpolated between order statistics (type 7 of Hyndman and
/// Fan, *Sample Quantiles in Statistical Packages*, 1996). Sorts the values. Returns `None` if the
/// list is empty.
pub fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = q * (values.len().max(1) - 1) as f64;
    let low = values.get(at as usize).copied()?;
    let high = values.get(at as usize + 1).copied().unwrap_or(low);
    Some(low + (high - low) * (at - libm::floor(at)))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_between_order_statistics() {
        assert_eq!(quantile(&mut [], 0.5), None);
        assert_eq!(quantile(&mut [3.0], 0.9), Some(3.0));
        assert_eq!(quantile(&mut [4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        let mut ten: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!(quantile(&mut ten, 0.9), Some(9.0));
    }
}
