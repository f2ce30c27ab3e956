//! Decides in which order loads are measured.

use super::super::interval::Refusal;
use super::curve::Curve;
use super::{Goal, Loop, Outcome, Point, Purpose, STEPS_MAX, Step};

/// Upper bound of loads: 2^53, because larger whole numbers are not exact in a double.
const LOAD_MAX: u64 = 1 << 53;

/// Factor between loads in the growth stage.
const GROWTH: u64 = 4;

/// Maximum number of growth steps. If fourfold steps do not cover the range of loads in this
/// number, the steps are larger.
const GROWTH_STEPS_MAX: u32 = 8;

/// If a fourfold load increases the throughput by less than this factor, the curve counts as flat.
const FLAT: f64 = 1.05;

/// If a latency ceiling is exceeded for the first time and the strain is below this value, the
/// cause may be noise, so one more growth step follows.
const STRAIN_NEAR: f64 = 2.0;

/// Number of steps reserved for the requirement while the load line is refined.
const STEPS_REQUIREMENT: usize = 3;

/// Number of steps that are reserved to confirm the load line, and to continue the search if the
/// confirmation fails.
const STEPS_CONFIRM: usize = 2;

/// Maximum relative distance between two measured loads: the reported minimum number of threads,
/// and a smaller number that does not achieve the requirement.
const REQUIRED_LOAD_PRECISION: f64 = 0.05;

/// Search for the load line.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    points: Vec<Point>,
    factor: u64,
    grown: bool,
}

impl Search {
    /// Creates a search without measurements.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`] for an empty range of loads or a range above 2^53, a ceiling or a
    /// requirement that is not above zero, or a limit of zero steps.
    pub fn new(mut goal: Goal) -> Result<Self, Refusal> {
        let refuse = |name, value| Err(Refusal::OutOfRange { name, value });
        if goal.load_min == 0 || goal.load_min > goal.load_max {
            return refuse("smallest load", goal.load_min as f64);
        }
        if goal.load_max > LOAD_MAX {
            return refuse("largest load", goal.load_max as f64);
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if let Some(&ceiling) = goal.ceilings_ns.iter().find(|&&ceiling| !positive(ceiling)) {
            return refuse("latency ceiling", ceiling);
        }
        if let Some(required) = goal.required_per_s.filter(|&required| !positive(required)) {
            return refuse("required rate", required);
        }
        if goal.steps_max == 0 {
            return refuse("number of steps", 0.0);
        }
        goal.steps_max = goal.steps_max.min(STEPS_MAX);
        let range = goal.load_max as f64 / goal.load_min as f64;
        let even = libm::ceil(libm::pow(range, 1.0 / f64::from(GROWTH_STEPS_MAX - 1)));
        let factor = GROWTH.max(even as u64);
        Ok(Self { goal, points: Vec::new(), factor, grown: false })
    }

    /// Returns the next action. Until a measurement is recorded, further calls return the same
    /// action.
    #[must_use]
    pub fn next_step(&self) -> Step {
        let curve = Curve::of(&self.goal, &self.points);
        match self.propose(&curve) {
            Some((load, purpose)) => Step::Measure { load, purpose },
            None => Step::Done(self.conclude(&curve)),
        }
    }

    /// Records a measurement. Its load does not have to be a proposed load.
    ///
    /// A NaN throughput counts as 0, a NaN latency as infinite, and a load of 0 as 1.
    pub fn record(&mut self, mut point: Point) {
        point.load = point.load.clamp(1, LOAD_MAX);
        if !point.throughput_per_s.is_finite() {
            point.throughput_per_s = 0.0;
        }
        for latency in &mut point.latencies_ns {
            if latency.is_nan() {
                *latency = f64::INFINITY;
            }
        }
        self.points.push(point);
        if !self.grown {
            self.grown = self.growth_ends(&Curve::of(&self.goal, &self.points));
        }
    }

    /// Returns the current result, even before the end of the search.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.conclude(&Curve::of(&self.goal, &self.points))
    }

    fn propose(&self, curve: &Curve) -> Option<(u64, Purpose)> {
        let left = self.goal.steps_max.saturating_sub(self.points.len());
        if left == 0 {
            return None;
        }
        let Some(last) = self.points.last() else {
            return Some((self.goal.load_min, Purpose::Grow));
        };
        if !last.steady && self.points.iter().filter(|p| p.load == last.load).count() == 1 {
            return Some((last.load, Purpose::Repeat));
        }
        if !self.grown {
            let top = curve.spots.last().map_or(self.goal.load_min, |spot| spot.load);
            let next = top.saturating_mul(self.factor).min(self.goal.load_max);
            return Some((next, Purpose::Grow));
        }
        let seeks_required_load = self.goal.issue == Loop::Closed
            && self.required_load_gap(curve).is_some_and(|gap| gap.open);
        let doubted = curve.best().is_none_or(|best| curve.spots[best].measurements == 1);
        let kept = if doubted { STEPS_CONFIRM } else { 0 }
            + if seeks_required_load { STEPS_REQUIREMENT } else { 0 };
        if left > kept
            && let Some(load) = self.refine(curve)
        {
            return Some((load, Purpose::Refine));
        }
        if left > 1
            && let Some(load) = self.close_in(curve)
        {
            return Some((load, Purpose::Requirement));
        }
        self.unconfirmed(curve).map(|load| (load, Purpose::Confirm))
    }

    /// Returns true if larger loads need not be measured.
    fn growth_ends(&self, curve: &Curve) -> bool {
        let Some((top, below)) = curve.spots.split_last() else { return false };
        if self.points.last().is_none_or(|last| last.load != top.load) {
            return false;
        }
        if top.load >= self.goal.load_max {
            return true;
        }
        let highest = below.iter().map(|spot| spot.throughput_per_s).fold(0.0, f64::max);
        let grows = top.throughput_per_s > FLAT * highest;
        let sustained_before = below.iter().any(|spot| spot.sustained);
        if top.sustained || !sustained_before {
            return !grows;
        }
        // If a single load exceeds a latency ceiling, this may be a hump of the curve. If two
        // successive loads exceed it, growth ends.
        let broken_before = below.last().is_some_and(|spot| !spot.sustained);
        broken_before || top.strain > STRAIN_NEAR || !grows
    }

    /// Returns the next load to measure in the search for a higher load within the latency
    /// ceilings.
    fn refine(&self, curve: &Curve) -> Option<u64> {
        if let Some(best) = curve.best() {
            return curve.most_promising(best);
        }
        // No load is within the latency ceilings yet. The search continues next to the load that
        // exceeds the ceilings least.
        let (least, _) =
            curve.spots.iter().enumerate().min_by(|a, b| a.1.strain.total_cmp(&b.1.strain))?;
        let above = (least + 1 < curve.spots.len()).then_some(least);
        [least.checked_sub(1), above]
            .into_iter()
            .flatten()
            .filter(|&lower| curve.open(lower))
            .max_by_key(|&lower| curve.spots[lower + 1].load / curve.spots[lower].load)
            .map(|lower| curve.middle(lower))
    }

    /// Returns the position of the smallest load that achieves the requirement, and whether a
    /// smaller load may achieve it too. `None` if no measured load achieves it.
    fn required_load_gap(&self, curve: &Curve) -> Option<RequiredLoadGap> {
        let required = self.goal.required_per_s?;
        let meets = curve
            .spots
            .iter()
            .position(|spot| spot.sustained && spot.throughput_per_s >= required)?;
        let required_load = curve.spots[meets].load;
        let below = meets.checked_sub(1).map(|i| curve.spots[i].load);
        let open = match below {
            Some(below) => {
                let precision = libm::floor(required_load as f64 * REQUIRED_LOAD_PRECISION) as u64;
                required_load - below > precision.max(1)
            }
            None => required_load > self.goal.load_min,
        };
        Some(RequiredLoadGap { meets, open })
    }

    /// Returns the next load to measure in the search for the minimum number of threads.
    fn close_in(&self, curve: &Curve) -> Option<u64> {
        if self.goal.issue == Loop::Open {
            return None;
        }
        let gap = self.required_load_gap(curve).filter(|gap| gap.open)?;
        let required = self.goal.required_per_s?;
        let high = &curve.spots[gap.meets];
        let Some(low) = gap.meets.checked_sub(1).map(|i| &curve.spots[i]) else {
            return Some(self.goal.load_min);
        };
        let near = (high.load as f64 * (1.0 - REQUIRED_LOAD_PRECISION)) as u64;
        let near = near.clamp(low.load + 1, high.load - 1);
        if !low.sustained || low.throughput_per_s >= required {
            return Some(curve.middle(gap.meets - 1));
        }
        // Interpolates the requirement on logarithmic scales. If the result is the upper end, the
        // next load is slightly below it, to show that a smaller load is not enough.
        let share = libm::log(required / low.throughput_per_s)
            / libm::log(high.throughput_per_s / low.throughput_per_s);
        let ratio = high.load as f64 / low.load as f64;
        let aim = libm::ceil(low.load as f64 * libm::pow(ratio, share)) as u64;
        Some(if aim >= high.load { near } else { aim.clamp(low.load + 1, near.max(low.load + 1)) })
    }

    /// Returns a load that was measured only once and must be measured again. Candidates, in this
    /// order, are the load line, the next load if its measurement is doubtful, and the minimum
    /// number of threads.
    fn unconfirmed(&self, curve: &Curve) -> Option<u64> {
        let best = curve.best();
        let line = best.map(|best| &curve.spots[best]);
        let above = best.and_then(|best| curve.spots.get(best + 1)).filter(|spot| spot.doubtful);
        let required_load = self.required_load_gap(curve).map(|gap| &curve.spots[gap.meets]);
        [line, above, required_load]
            .into_iter()
            .flatten()
            .find(|spot| spot.measurements == 1)
            .map(|spot| spot.load)
    }

    fn conclude(&self, curve: &Curve) -> Outcome {
        let best = curve.best();
        let line = best.map(|best| curve.spots[best].measured_load());
        // If no higher load was measured, the load line is only a lower bound.
        let confirmed = best.is_some_and(|best| {
            curve.spots[best].measurements > 1
                && curve.most_promising(best).is_none()
                && best + 1 < curve.spots.len()
        });
        let gap = self.required_load_gap(curve).filter(|_| self.goal.issue == Loop::Closed);
        Outcome {
            load_line: line,
            confirmed,
            knee: curve.knee().map(|spot| spot.measured_load()),
            bend: curve.bend(),
            required_load: gap.as_ref().map(|gap| curve.spots[gap.meets].measured_load()),
            required_load_checked: gap.is_some_and(|gap| !gap.open),
            steps: self.points.len(),
        }
    }
}

/// Gap between two neighbouring loads: the larger one achieves the requirement, and the smaller one
/// does not ([`Search::required_load_gap`]).
struct RequiredLoadGap {
    /// Position of the smallest load that meets the requirement.
    meets: usize,
    /// True if a smaller load may still achieve the requirement.
    open: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(load_max: u64, ceilings_ns: Vec<f64>) -> Goal {
        Goal {
            issue: Loop::Closed,
            hosts: 1,
            load_min: 1,
            load_max,
            ceilings_ns,
            required_per_s: None,
            steps_max: STEPS_MAX,
        }
    }

    /// Measures the proposed loads until the search is complete. Every proposed load must be in the
    /// range.
    fn run(goal: Goal, mut measure: impl FnMut(u64) -> (f64, f64, bool)) -> (Outcome, Vec<u64>) {
        let mut search = Search::new(goal.clone()).unwrap();
        loop {
            match search.next_step() {
                Step::Done(outcome) => {
                    let loads = search.points.iter().map(|p| p.load).collect();
                    return (outcome, loads);
                }
                Step::Measure { load, .. } => {
                    assert!((goal.load_min..=goal.load_max).contains(&load));
                    let (throughput_per_s, latency_ns, steady) = measure(load);
                    let latencies_ns = vec![latency_ns; goal.ceilings_ns.len()];
                    search.record(Point { load, throughput_per_s, latencies_ns, steady });
                }
            }
        }
    }

    #[test]
    fn it_grows_fourfold_then_refines_then_confirms() {
        let (outcome, loads) = run(goal(1000, vec![]), |load| {
            (if load <= 20 { 100.0 * load as f64 } else { 500.0 }, 0.0, true)
        });
        assert_eq!(loads[..4], [1, 4, 16, 64]);
        let line = outcome.load_line.unwrap();
        assert_eq!((line.load, line.measurements, outcome.confirmed), (20, 2, true));
        assert_eq!(loads.last(), Some(&20));
        assert!(outcome.steps <= STEPS_MAX);
    }

    #[test]
    fn a_first_load_that_breaks_the_ceiling_does_not_end_the_search() {
        // The system is slow when it is almost idle, like a disk that spins down. Loads of 1 to 3
        // exceed the ceiling, and loads of 4 to 30 do not.
        let (outcome, _) = run(goal(4096, vec![10.0]), |load| {
            let latency = if load < 4 { 50.0 } else { load as f64 / 3.0 };
            (10.0 * load as f64, latency, true)
        });
        assert!((29..=30).contains(&outcome.load_line.unwrap().load), "{outcome:?}");
    }

    #[test]
    fn a_hump_is_looked_behind() {
        // A load of 16 exceeds the ceiling by 20 %, but a load of 64 is below the ceiling again.
        let (outcome, _) = run(goal(4096, vec![10.0]), |load| {
            let latency = if (12..=20).contains(&load) { 12.0 } else { load as f64 / 8.0 };
            (10.0 * load as f64, latency, true)
        });
        assert!((77..=80).contains(&outcome.load_line.unwrap().load), "{outcome:?}");
    }

    #[test]
    fn what_is_not_steady_is_repeated_once_and_then_not_carried() {
        let (outcome, loads) = run(goal(4096, vec![]), |load| {
            let throughput = if load <= 64 { 10.0 * load as f64 } else { 1.0 };
            (throughput, 0.0, load < 16)
        });
        assert_eq!(loads.iter().filter(|&&load| load == 16).count(), 2);
        assert!((14..=15).contains(&outcome.load_line.unwrap().load), "{outcome:?}");
    }

    #[test]
    fn a_ceiling_that_no_load_keeps_leaves_no_load_line() {
        let (outcome, _) = run(goal(64, vec![1.0]), |load| (10.0 * load as f64, 5.0, true));
        assert_eq!((outcome.load_line, outcome.confirmed), (None, false));
        assert!(outcome.knee.is_some());
    }

    #[test]
    fn the_rate_offered_by_a_fleet_is_that_of_all_hosts() {
        // Three hosts together achieve at most 600 operations per second. There is no latency
        // ceiling.
        let goal = Goal { issue: Loop::Open, hosts: 3, ..goal(4096, vec![]) };
        let (outcome, _) = run(goal, |load| ((3.0 * load as f64).min(600.0), 0.0, true));
        let line = outcome.load_line.unwrap();
        assert!((195..=207).contains(&line.load), "{line:?}");
        assert_eq!(line.rate_per_s, 600.0);
    }

    #[test]
    fn a_range_of_one_load_is_measured_twice() {
        let (outcome, loads) = run(goal(1, vec![]), |_| (7.0, 0.0, true));
        assert_eq!(loads, [1, 1]);
        assert!(!outcome.confirmed && outcome.load_line.unwrap().load == 1);
    }

    #[test]
    fn a_load_line_at_the_end_of_the_range_is_only_a_lower_bound() {
        let (outcome, _) = run(goal(8, vec![]), |load| (100.0 * load as f64, 0.0, true));
        let line = outcome.load_line.unwrap();
        assert_eq!((line.load, line.measurements, outcome.confirmed), (8, 2, false));
    }

    #[test]
    fn damaged_figures_end_within_the_steps() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -5.0] {
            let mut goal = goal(1 << 53, vec![1.0]);
            goal.required_per_s = Some(3.0);
            let (outcome, _) = run(goal, |load| (bad, bad, load % 3 != 0));
            assert!(outcome.steps <= STEPS_MAX);
        }
    }

    #[test]
    fn goals_that_mean_nothing_are_refused() {
        assert!(Search::new(goal(0, vec![])).is_err());
        assert!(Search::new(goal(u64::MAX, vec![])).is_err());
        assert!(Search::new(goal(9, vec![0.0])).is_err());
        assert!(Search::new(Goal { required_per_s: Some(-1.0), ..goal(9, vec![]) }).is_err());
        assert!(Search::new(Goal { steps_max: 0, ..goal(9, vec![]) }).is_err());
    }
}
