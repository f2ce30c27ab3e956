//! Measured part of the throughput-latency curve.

use super::super::knee::{Bend, LoadPoint, bend};
use super::{Goal, Loop, MeasuredLoad, Point};

/// Minimum share of an offered rate that the storage must achieve to sustain this rate.
const ACHIEVED_MIN: f64 = 0.97;

/// The strain of a load is the largest ratio of a latency to its ceiling. If it is above 1 but at
/// most this value, a single measurement does not prove that the storage cannot sustain a load. For
/// an offered rate, the next constant is the corresponding lower limit of the achieved share.
const STRAIN_DOUBTFUL: f64 = 1.15;
const ACHIEVED_DOUBTFUL: f64 = 0.9;

/// A measured neighbour of the best load is close enough if the ratio of the two loads is at most
/// this value.
const SIDE_RATIO: f64 = 2.0;

/// Maximum gain in throughput that does not justify another step.
const GAIN_MIN: f64 = 0.03;

/// Maximum position of an interpolated load in a gap, as a fraction of the gap; bisection is at
/// 0.5. Without this limit, noise could lead to ever smaller steps at one end of the gap.
const INTERPOLATION_MAX: f64 = 0.7;

/// Minimum ratio of the two loads from which the growth of throughput is computed.
const GROWTH_RATIO: f64 = 1.4;

/// If the ratio of two neighbouring loads is below this value, the gap between them is not
/// searched.
const GAP_MIN: f64 = 1.04;

/// All measurements at one load.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub load: u64,
    /// Mean over the steady measurements. If no measurement was steady, the mean over all of them.
    pub throughput_per_s: f64,
    /// Largest ratio of a latency to its ceiling; 0 if there are no ceilings.
    pub strain: f64,
    /// Mean of the first latency in ns; 0 if it is unknown.
    pub latency_ns: f64,
    pub measurements: usize,
    pub sustained: bool,
    /// The load is not sustained, but the margin is so small that this may be chance.
    pub doubtful: bool,
}

impl Spot {
    pub fn measured_load(&self) -> MeasuredLoad {
        MeasuredLoad {
            load: self.load,
            rate_per_s: self.throughput_per_s,
            measurements: self.measurements,
        }
    }
}

/// Measured spots, in ascending order of their loads.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub spots: Vec<Spot>,
    issue: Loop,
}

impl Curve {
    pub fn of(goal: &Goal, points: &[Point]) -> Self {
        let mut loads: Vec<u64> = points.iter().map(|p| p.load).collect();
        loads.sort_unstable();
        loads.dedup();
        let spots = loads.into_iter().map(|load| spot(goal, points, load)).collect();
        Self { spots, issue: goal.issue }
    }

    /// Returns the best measured load within the latency ceilings: the highest throughput, at the
    /// smallest load that achieves it.
    pub fn best(&self) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (i, spot) in self.spots.iter().enumerate().filter(|(_, spot)| spot.sustained) {
            if best.is_none_or(|b| spot.throughput_per_s > self.spots[b].throughput_per_s) {
                best = Some(i);
            }
        }
        best
    }

    /// Returns the spot with the largest ratio of throughput to latency. If the latency is unknown
    /// in a closed loop, it is computed with Little's law.
    pub fn knee(&self) -> Option<&Spot> {
        let power = |spot: &Spot| spot.throughput_per_s / self.latency_ns(spot);
        self.spots
            .iter()
            .filter(|spot| spot.throughput_per_s > 0.0 && power(spot) > 0.0)
            .max_by(|a, b| power(a).total_cmp(&power(b)))
    }

    /// Returns the bend of the curve, computed from the measured loads.
    pub fn bend(&self) -> Option<Bend> {
        let point = |spot: &Spot| LoadPoint {
            load: spot.load,
            rate_per_s: spot.throughput_per_s,
            latency_ns: self.latency_ns(spot),
        };
        bend(&self.spots.iter().map(point).collect::<Vec<_>>())
    }

    fn latency_ns(&self, spot: &Spot) -> f64 {
        match self.issue {
            _ if spot.latency_ns > 0.0 => spot.latency_ns,
            Loop::Closed => spot.load as f64 * 1e9 / spot.throughput_per_s,
            Loop::Open => f64::INFINITY,
        }
    }

    /// Chooses the gap between two measured loads in which the gain over the best spot can be
    /// largest, and returns a load in this gap. `None` if no gap has a possible gain that justifies
    /// a step, and the best spot has close neighbours on both sides.
    pub fn most_promising(&self, best: usize) -> Option<u64> {
        (0..self.spots.len() - 1)
            .filter(|&lower| self.open(lower))
            .filter(|&lower| self.spots[lower].sustained || self.spots[lower + 1].sustained)
            .map(|lower| (lower, self.gain(lower, best)))
            .filter(|&(lower, gain)| {
                let beside = lower == best || lower + 1 == best;
                gain > GAIN_MIN || beside && self.ratio(lower) > SIDE_RATIO * 1.01
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(lower, _)| self.middle(lower))
    }

    /// Returns the possible gain over the best spot, on a logarithmic scale, in the gap between a
    /// spot and the next spot. It assumes that throughput grows with the same slope almost up to
    /// the next load, and then drops.
    fn gain(&self, lower: usize, best: usize) -> f64 {
        let start = self.spots[lower].throughput_per_s / self.spots[best].throughput_per_s;
        libm::log(start) + self.growth(lower) * libm::log(self.ratio(lower))
    }

    /// Returns the elasticity of the throughput just below a spot: its relative growth divided by
    /// that of the load, clamped to 0..1. Always 1 in an open loop.
    fn growth(&self, upper: usize) -> f64 {
        let top = &self.spots[upper];
        // The two loads differ so much that noise does not look like growth.
        let near = top.load as f64 / GROWTH_RATIO;
        let from = self.spots[..upper].iter().rev().find(|spot| spot.load as f64 <= near);
        match (self.issue, from) {
            (Loop::Open, _) | (_, None) => 1.0,
            (Loop::Closed, Some(from)) => {
                let grown = libm::log(top.throughput_per_s / from.throughput_per_s);
                (grown / libm::log(top.load as f64 / from.load as f64)).clamp(0.0, 1.0)
            }
        }
    }

    /// Returns true if the gap between a spot and the next spot is wide enough for another
    /// measurement.
    pub fn open(&self, lower: usize) -> bool {
        self.spots[lower + 1].load - self.spots[lower].load > 1 && self.ratio(lower) > GAP_MIN
    }

    /// Returns the load to measure between two neighbouring loads; it differs from both. It is
    /// their geometric mean, or a load closer to the point at which the strain is expected to reach
    /// the ceiling.
    pub fn middle(&self, lower: usize) -> u64 {
        let (low, high) = (&self.spots[lower], &self.spots[lower + 1]);
        let crosses = low.sustained && low.strain > 0.0 && high.strain.is_finite();
        let share = if crosses && high.strain > 1.0 {
            -libm::log(low.strain) / libm::log(high.strain / low.strain)
        } else {
            0.5
        };
        let share = share.clamp(1.0 - INTERPOLATION_MAX, INTERPOLATION_MAX);
        let middle = low.load as f64 * libm::pow(self.ratio(lower), share);
        (libm::round(middle) as u64).clamp(low.load + 1, high.load.max(low.load + 2) - 1)
    }

    fn ratio(&self, lower: usize) -> f64 {
        self.spots[lower + 1].load as f64 / self.spots[lower].load as f64
    }
}

fn spot(goal: &Goal, points: &[Point], load: u64) -> Spot {
    let all: Vec<&Point> = points.iter().filter(|p| p.load == load).collect();
    let steady: Vec<&Point> = all.iter().copied().filter(|p| p.steady).collect();
    let used = if steady.is_empty() { &all } else { &steady };
    let count = used.len() as f64;
    let average =
        |value: &dyn Fn(&Point) -> f64| used.iter().map(|p| value(p)).sum::<f64>() / count;
    let latency = |i: usize| average(&|p| p.latencies_ns.get(i).copied().unwrap_or(f64::INFINITY));
    let strain = goal
        .ceilings_ns
        .iter()
        .enumerate()
        .map(|(i, ceiling)| latency(i) / ceiling)
        .fold(0.0, f64::max);
    // A rate of zero has no logarithm, so it is replaced by one operation in a million seconds.
    let throughput_per_s = average(&|p| p.throughput_per_s).max(1e-6);
    let achieved = match goal.issue {
        Loop::Closed => 1.0,
        Loop::Open => throughput_per_s / (load as f64 * f64::from(goal.hosts)),
    };
    let sustained = !steady.is_empty() && strain <= 1.0 && achieved >= ACHIEVED_MIN;
    let near = strain <= STRAIN_DOUBTFUL && achieved >= ACHIEVED_DOUBTFUL;
    Spot {
        load,
        throughput_per_s,
        strain,
        latency_ns: average(&|p| p.latencies_ns.first().copied().unwrap_or(0.0)),
        measurements: all.len(),
        sustained,
        doubtful: !sustained && !steady.is_empty() && near,
    }
}
