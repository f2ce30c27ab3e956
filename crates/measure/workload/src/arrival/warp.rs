//! Rates that change over time. The start times of a process with a constant rate are mapped to
//! other times.
//!
//! Let `r(t)` be the rate as a fraction of the full rate, and `R(t)` its integral. Mapping the
//! start times of a process at the full rate through the inverse of `R` yields a process with the
//! rate `r(t)` (Çinlar, "Introduction to Stochastic Processes", 1975, section 4.7). If the starts
//! of the original process are evenly spaced, the same amount of work is between two mapped starts,
//! but not the same time.

/// How a rate changes over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warp {
    /// The rate is constant.
    #[default]
    None,
    /// The rate increases linearly from 0 to the full rate, and then stays constant.
    Ramp {
        /// Time in ns until the full rate is reached.
        ramp_ns: u64,
    },
    /// Bursts at the full rate alternate with pauses, in which no operation starts.
    Bursts {
        /// Length of a burst in ns; 0 is treated as 1 ns.
        on_ns: u64,
        /// Length of the pause between two bursts, in ns.
        off_ns: u64,
    },
}

impl Warp {
    /// Converts `steady_ns`, a start time of the process with the full rate, to the start time with
    /// the changing rate. If `steady_ns` increases, the result never decreases.
    #[must_use]
    #[inline]
    pub fn time_ns(self, steady_ns: u64) -> u64 {
        match self {
            Self::None => steady_ns,
            Self::Ramp { ramp_ns } => {
                // While the rate increases, R(t) = t^2 / (2 ramp). At the end of the increase, R is
                // ramp / 2.
                let half = ramp_ns / 2;
                if steady_ns >= half {
                    steady_ns.saturating_add(ramp_ns - half)
                } else {
                    (2 * u128::from(steady_ns) * u128::from(ramp_ns)).isqrt() as u64
                }
            }
            Self::Bursts { on_ns, off_ns } => {
                let on_ns = on_ns.max(1);
                let (bursts, within) = (steady_ns / on_ns, steady_ns % on_ns);
                bursts.saturating_mul(on_ns.saturating_add(off_ns)).saturating_add(within)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ramp_has_half_its_work_behind_it_after_its_time() {
        let ramp = Warp::Ramp { ramp_ns: 10_000_000_000 };
        assert_eq!(ramp.time_ns(0), 0);
        // The whole ramp contains as many operations as 5 s at the full rate. Its first quarter
        // contains 1/16 of these operations.
        assert_eq!(ramp.time_ns(312_500_000), 2_500_000_000);
        assert_eq!(ramp.time_ns(5_000_000_000), 10_000_000_000);
        assert_eq!(ramp.time_ns(6_000_000_000), 11_000_000_000);
        assert_eq!(Warp::Ramp { ramp_ns: 0 }.time_ns(5), 5);
    }

    #[test]
    fn bursts_skip_their_pauses() {
        let bursts = Warp::Bursts { on_ns: 100, off_ns: 900 };
        let times = [0, 99, 100, 250].map(|t| bursts.time_ns(t));
        assert_eq!(times, [0, 99, 1_000, 2_050]);
        assert_eq!(Warp::Bursts { on_ns: 0, off_ns: 9 }.time_ns(3), 30);
    }

    proptest! {
        #[test]
        fn time_never_goes_back(a: u64, b: u64, ramp_ns: u64, on_ns: u64, off_ns: u64) {
            let (a, b) = (a.min(b), a.max(b));
            for warp in [Warp::None, Warp::Ramp { ramp_ns }, Warp::Bursts { on_ns, off_ns }] {
                prop_assert!(warp.time_ns(a) <= warp.time_ns(b));
            }
        }
    }
}
