//! Little's law as a consistency check of a result's figures.
//!
//! J. D. C. Little, *A Proof for the Queuing Formula L = lambda W*, Operations Research 9 (1961):
//! in the long run, operations in flight = rate x mean time in the system. In a closed loop without
//! pauses, the number of operations in flight is clients x queue depth. The product of rate and
//! mean latency must equal that number (in a measurement with 8 operations in flight, it was 7.99).
//! In a result that violates the law, the latency, the rate or the stated load is wrong.

use super::interval::Refusal;

/// Maximum relative deviation that rounding and the ends of a phase can explain. The value is a
/// convention of this project. It is far above the 0.1 % deviation of the measurement above, and
/// far below the deviation caused by a wrong queue depth.
pub const TOLERANCE: f64 = 0.05;

/// Result of applying Little's law to a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// Number of operations in flight, computed from rate and latency.
    pub in_flight: f64,
    /// Relative deviation of `in_flight` from the number of operations that the load has in flight.
    pub deviation: f64,
    /// True if the deviation is within 5 %.
    pub holds: bool,
}

/// Compares the product of a rate in operations per second and a mean latency in ns with
/// `outstanding`, the number of operations that the closed loop has in flight.
///
/// # Errors
/// [`Refusal::OutOfRange`] for a negative or infinite figure, or if no operations are outstanding.
pub fn little(rate_per_s: f64, latency_ns_mean: f64, outstanding: f64) -> Result<Little, Refusal> {
    let refuse = |name, value| Err(Refusal::OutOfRange { name, value });
    if !(rate_per_s.is_finite() && rate_per_s >= 0.0) {
        return refuse("rate", rate_per_s);
    }
    if !(latency_ns_mean.is_finite() && latency_ns_mean >= 0.0) {
        return refuse("mean latency", latency_ns_mean);
    }
    if !(outstanding.is_finite() && outstanding > 0.0) {
        return refuse("number of operations outstanding", outstanding);
    }
    let in_flight = rate_per_s * latency_ns_mean / 1e9;
    let deviation = in_flight / outstanding - 1.0;
    Ok(Little { in_flight, deviation, holds: deviation.abs() <= TOLERANCE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_in_flight_are_eight() {
        let law = little(10_000.0, 799_000.0, 8.0).unwrap();
        assert!((law.in_flight - 7.99).abs() < 1e-12 && law.holds);
    }

    #[test]
    fn a_latency_that_leaves_out_half_the_time_breaks_the_law() {
        let law = little(10_000.0, 400_000.0, 8.0).unwrap();
        assert!(!law.holds && (law.deviation + 0.5).abs() < 1e-12);
    }

    #[test]
    fn damaged_figures_are_refused() {
        assert!(little(f64::NAN, 1.0, 1.0).is_err());
        assert!(little(1.0, -1.0, 1.0).is_err());
        assert!(little(1.0, 1.0, 0.0).is_err());
    }
}
