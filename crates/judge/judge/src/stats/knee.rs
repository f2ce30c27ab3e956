//! Knee of a throughput-latency curve: the load with the largest ratio of throughput to latency (L.
//! Kleinrock, *Power and Deterministic Rules of Thumb*, 1979). Below the knee, throughput grows
//! faster than latency; above it, latency grows faster.

/// The power of a load is its throughput divided by its latency. If the power is at least this
/// fraction of the largest power, the two are considered equal: noise of a few per cent in rate and
/// latency can explain the difference.
const EQUAL: f64 = 0.93;
/// Minimum number of measured loads for the detection of a bend.
const LOADS_MIN: usize = 3;

/// Measurement at one load of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Load: threads, queue depth or offered rate.
    pub load: u64,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Mean latency.
    pub latency_ns: f64,
}

impl LoadPoint {
    /// Returns the throughput divided by the latency.
    fn power(&self) -> f64 {
        self.rate_per_s / self.latency_ns
    }
}

/// Load at which a curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bend {
    /// The curve bends between two measured loads.
    Between {
        /// Load with the largest power.
        load: u64,
        /// Rate at this load, in operations per second.
        rate_per_s: f64,
        /// Largest load below the knee that has clearly less power.
        low: u64,
        /// Smallest load above the knee that has clearly less power.
        high: u64,
    },
    /// There is no bend up to the largest load.
    Beyond {
        /// Largest load measured.
        load: u64,
    },
    /// The curve bends at or below the smallest load.
    Below {
        /// Smallest load measured.
        load: u64,
        /// Rate at this load, in operations per second.
        rate_per_s: f64,
    },
}

/// Returns the load at which a curve bends; `None` if there are fewer than three loads. The loads
/// must be distinct.
#[must_use]
pub fn bend(points: &[LoadPoint]) -> Option<Bend> {
    let power = |point: &LoadPoint| Some(point.power()).filter(|power| power.is_finite());
    let mut points: Vec<LoadPoint> =
        points.iter().copied().filter(|point| power(point).is_some_and(|p| p > 0.0)).collect();
    points.sort_by_key(|point| point.load);
    if points.len() < LOADS_MIN {
        return None;
    }
    let top = points.iter().max_by(|a, b| a.power().total_cmp(&b.power()))?;
    let is_less = |point: &&LoadPoint| point.power() < EQUAL * top.power();
    let low = points.iter().rfind(|point| point.load < top.load && is_less(point));
    let high = points.iter().find(|point| point.load > top.load && is_less(point));
    Some(match (low, high, points.last(), points.first()) {
        (Some(low), Some(high), ..) => Bend::Between {
            load: top.load,
            rate_per_s: top.rate_per_s,
            low: low.load,
            high: high.load,
        },
        (_, None, Some(last), _) => Bend::Beyond { load: last.load },
        (None, Some(_), _, Some(first)) => {
            Bend::Below { load: first.load, rate_per_s: first.rate_per_s }
        }
        _ => return None,
    })
}

impl Bend {
    /// Returns the bend as a sentence. `name` is the name of the load, such as "queue depth".
    #[must_use]
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::Between { load, rate_per_s, low, high } => format!(
                "The curve bends at {name} {load} (between {low} and {high}), with {rate_per_s:.0} \
                 I/Os per second: above this load, latency grows faster than throughput."
            ),
            Self::Beyond { load } => format!(
                "The curve has no knee up to {name} {load}, the largest load that was measured: \
                 throughput still grows at least as fast as latency. A larger load may achieve a \
                 higher rate."
            ),
            Self::Below { load, rate_per_s } => format!(
                "The curve bends at or below {name} {load}, the smallest load that was measured, \
                 with {rate_per_s:.0} I/Os per second: above this load, latency grows faster than \
                 throughput."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the measurements of a system that serves up to `most` operations at the same time,
    /// each in 1 ms.
    fn curve(loads: &[u64], most: u64) -> Vec<LoadPoint> {
        let point = |&load: &u64| {
            let rate_per_s = load.min(most) as f64 * 1_000.0;
            LoadPoint { load, rate_per_s, latency_ns: load as f64 * 1e9 / rate_per_s }
        };
        loads.iter().map(point).collect()
    }

    #[test]
    fn a_curve_bends_where_its_servers_are_busy() {
        let bend = bend(&curve(&[1, 4, 16, 64], 16)).unwrap();
        assert_eq!(bend, Bend::Between { load: 16, rate_per_s: 16_000.0, low: 4, high: 64 });
        assert_eq!(
            bend.sentence("queue depth"),
            "The curve bends at queue depth 16 (between 4 and 64), with 16000 I/Os per second: \
             above this load, latency grows faster than throughput."
        );
    }

    #[test]
    fn no_bend_is_invented_at_either_end() {
        assert_eq!(bend(&curve(&[1, 4, 16], 64)), Some(Bend::Beyond { load: 16 }));
        let below = Bend::Below { load: 4, rate_per_s: 1_000.0 };
        assert_eq!(bend(&curve(&[4, 8, 16], 1)), Some(below));
        assert_eq!(bend(&curve(&[1, 16], 4)), None);
        assert_eq!(bend(&[]), None);
    }

    #[test]
    fn loads_of_nearly_equal_power_widen_the_interval() {
        let mut points = curve(&[1, 4, 8, 16, 64], 8);
        points[3].latency_ns = points[3].rate_per_s / (points[2].power() * 0.97);
        let Some(Bend::Between { load, low, high, .. }) = bend(&points) else { panic!("no bend") };
        assert_eq!((load, low, high), (8, 4, 64));
    }

    #[test]
    fn figures_that_are_no_numbers_do_not_bend_anything() {
        let bad = |rate_per_s, latency_ns| LoadPoint { load: 4, rate_per_s, latency_ns };
        for (rate, latency) in [(f64::NAN, 1.0), (1.0, 0.0), (0.0, 1.0), (1.0, f64::INFINITY)] {
            let points = [curve(&[1, 8], 64), vec![bad(rate, latency)]].concat();
            assert_eq!(bend(&points), None);
        }
    }
}
