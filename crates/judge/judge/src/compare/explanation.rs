//! Explains why two sides differ. The first part lists the first condition, phase, device and
//! interval in which they diverge. The second part lists how much of the difference of their mean
//! latencies each possible cause can explain.
//!
//! The mean latency of an operation is split into parts that add up to the whole. The effect of a
//! different read share is computed with the average of the two sides' latencies (R. Oaxaca,
//! "Male-Female Wage Differentials in Urban Labor Markets", 1973; A. Blinder, "Wage
//! Discrimination", 1973). The remaining difference is the extra time of operations of the same
//! kind. It has three parts: the wait in the load generator, the time of the underlying devices per
//! operation, and an unexplained remainder. If a cause can explain a share, this does not prove
//! that it is the real cause.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{ClassTotals, Driver, PhaseKind};
use serde::{Deserialize, Serialize};

use super::{ConditionDifference, Side};
use crate::figures::{self, Pick};

/// A phase counts as different if its lengths on the two sides differ at least by this factor.
const LONGER: f64 = 1.5;
/// A device counts as different if its times per I/O on the two sides differ at least by this
/// factor.
const SLOWER: f64 = 1.25;
/// Number of parts into which the measured phase is divided.
const STRETCHES: usize = 20;
/// The rates of the two sides diverge if they differ by at least this number of standard deviations
/// of neighbouring parts.
const APART: f64 = 3.0;
/// A smaller relative difference of the mean latencies is not explained.
const SAME: f64 = 0.02;

/// Explanation of the difference between the second side of the comparison and the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The first condition, phase, device and interval at which the sides of the comparison
    /// diverge. Kinds without a divergence are absent.
    #[serde(rename = "parts_at")]
    pub divergences: Vec<Divergence>,
    /// Mean latency of the second side of the comparison minus that of the first; `None` if a side
    /// has no mean latency.
    pub difference_ns: Option<f64>,
    /// Causes. Their contributions add up to the difference.
    pub causes: Vec<Cause>,
}

/// One point at which two sides diverge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// One of `condition`, `phase`, `device` and `interval`.
    pub kind: String,
    /// Description in a sentence.
    pub says: String,
}

/// Possible cause, and the part of the difference that it can explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Display name.
    pub name: String,
    /// Mean time that the cause adds to each operation of the second side of the comparison.
    pub ns_per_operation: f64,
    /// Share of the whole difference that the cause explains. Negative if the cause reduces the
    /// difference.
    pub share: f64,
}

/// Explains the difference; `None` unless there are two sides with completed runs.
pub(super) fn explain(
    sides: &[Side<'_>],
    differences: &[ConditionDifference],
) -> Option<Explanation> {
    let [a, b] = sides else { return None };
    let of = |side: &Side<'_>| figures::measured(side.completed().next()?.0).map(|_| ());
    of(a).and_then(|()| of(b))?;
    let divergences = [condition(differences), phase(a, b), device(a, b), interval(a, b)];
    let (difference_ns, causes) = causes(a, b);
    Some(Explanation {
        divergences: divergences.into_iter().flatten().collect(),
        difference_ns,
        causes,
    })
}

fn divergence(kind: &str, says: String) -> Divergence {
    Divergence { kind: kind.to_owned(), says }
}

fn condition(differences: &[ConditionDifference]) -> Option<Divergence> {
    let first = differences.iter().find(|one| !one.accepted).or_else(|| differences.first())?;
    let more = match differences.len() {
        1 => String::new(),
        n => format!(" ({} more below)", n - 1),
    };
    let says = format!("{}: {}{more}", first.name, first.values.join(" against "));
    Some(divergence("condition", says))
}

/// Returns the first phase that differs: it exists on one side of the comparison only, finished on
/// one side only, or took much longer on one side.
fn phase(a: &Side<'_>, b: &Side<'_>) -> Option<Divergence> {
    let (a, b) = (a.completed().next()?.0, b.completed().next()?.0);
    let of = |bundle: &Bundle, kind: PhaseKind| {
        let mut phases = bundle.run.phases.iter().filter(|phase| phase.kind == kind).peekable();
        phases.peek()?;
        Some(phases.fold((0u64, true), |(ns, reached), phase| {
            (ns.saturating_add(phase.duration_ns), reached && phase.reached)
        }))
    };
    let mut kinds: Vec<PhaseKind> = Vec::new();
    for phase in a.run.phases.iter().chain(&b.run.phases) {
        // Phases after the measurement cannot have caused a difference.
        let before = !matches!(phase.kind, PhaseKind::Close | PhaseKind::Verify);
        if before && !kinds.contains(&phase.kind) {
            kinds.push(phase.kind);
        }
    }
    kinds.into_iter().find_map(|kind| {
        let label = kind.label();
        let says = match (of(a, kind), of(b, kind)) {
            (Some(_), None) => {
                format!("only the first side of the comparison has the phase {label}")
            }
            (None, Some(_)) => {
                format!("only the second side of the comparison has the phase {label}")
            }
            (Some((_, true)), Some((_, false))) => {
                format!("the phase {label} finished only on the first side of the comparison")
            }
            (Some((_, false)), Some((_, true))) => {
                format!("the phase {label} finished only on the second side of the comparison")
            }
            (Some((first, _)), Some((second, _))) => {
                let (short, long) = (first.min(second) as f64, first.max(second) as f64);
                if long <= LONGER * short.max(1e9) {
                    return None;
                }
                format!(
                    "the phase {label} took {} on the first side of the comparison and {} on the \
                     second",
                    seconds(first),
                    seconds(second)
                )
            }
            (None, None) => return None,
        };
        Some(divergence("phase", says))
    })
}

fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// Returns the mean time per I/O of each device that the target uses, over all runs of a side of
/// the comparison.
fn devices(side: &Side<'_>) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64, u64)> = Vec::new();
    for (bundle, _) in side.completed() {
        for device in bundle.observed.devices.iter().filter(|device| device.top) {
            let (ns, ios) =
                (device.read_ns as f64 + device.write_ns as f64, device.reads + device.writes);
            match sums.iter_mut().find(|(name, ..)| *name == device.name) {
                Some(sum) => (sum.1, sum.2) = (sum.1 + ns, sum.2 + ios),
                None => sums.push((device.name.clone(), ns, ios)),
            }
        }
    }
    let busy = sums.into_iter().filter(|(_, _, ios)| *ios > 0);
    busy.map(|(name, ns, ios)| (name, ns / ios as f64)).collect()
}

/// Returns the first device whose time per I/O is much longer on one side of the comparison.
fn device(a: &Side<'_>, b: &Side<'_>) -> Option<Divergence> {
    let pairs = devices(a).into_iter().zip(devices(b));
    let mut apart = pairs.filter(|((_, a), (_, b))| a.max(*b) > SLOWER * a.min(*b));
    let ((first, first_ns), (second, second_ns)) = apart.next()?;
    let name = if first == second { first } else { format!("{first} and {second}") };
    let says = format!(
        "{name}: an I/O takes {} at the device on the first side of the comparison, and {} on the \
         second side",
        ms(first_ns),
        ms(second_ns)
    );
    Some(divergence("device", says))
}

fn ms(ns: f64) -> String {
    if ns.abs() < 1e6 { format!("{:.0} us", ns / 1e3) } else { format!("{:.2} ms", ns / 1e6) }
}

/// Returns the first part of the measured phase in which the rates of the two sides differ by much
/// more than those of neighbouring parts.
fn interval(a: &Side<'_>, b: &Side<'_>) -> Option<Divergence> {
    let (a, b) = (a.completed().next()?.0, b.completed().next()?.0);
    let length_ns = figures::measured(a)?.duration_ns.min(figures::measured(b)?.duration_ns);
    // The parts of the phase cannot be shorter than the recorded intervals.
    let recorded_ns = a.plan.evidence.interval_ns.max(b.plan.evidence.interval_ns);
    let width_ns = (length_ns / STRETCHES as u64).max(1_000_000_000).max(recorded_ns);
    let rates = |bundle: &Bundle| figures::rates_per_s(bundle, Pick::Transactional, width_ns);
    let (a, b) = (rates(a), rates(b));
    let both = a.len().min(b.len());
    let scatter = scatter(&a[..both])?.hypot(scatter(&b[..both])?);
    let at = (0..both).find(|&i| (a[i] - b[i]).abs() > APART * scatter)?;
    let when = match at {
        0 => "from the start of the measurement".to_owned(),
        at => format!("{} into the measurement", seconds(width_ns * at as u64)),
    };
    let says = format!(
        "{when}: {:.0} I/Os per second on the first side of the comparison and {:.0} on the second, \
         in {}",
        a[at],
        b[at],
        seconds(width_ns)
    );
    Some(divergence("interval", says))
}

/// Returns the standard deviation, computed from the differences of neighbouring values so that a
/// slow drift does not increase it (J. von Neumann et al., "The Mean Square Successive Difference",
/// 1941).
fn scatter(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    (squares.len() >= 3).then(|| (squares.iter().sum::<f64>() / squares.len() as f64 / 2.0).sqrt())
}

/// Returns the count and mean latency of a side's reads, writes and other operations.
fn kinds(side: &Side<'_>) -> [(f64, Option<f64>); 3] {
    let of = |pick: &dyn Fn(&ClassTotals) -> bool| {
        let (mut count, mut ns) = (0.0, 0.0);
        for (bundle, _) in side.completed() {
            count += bundle.run.sum(pick, |class| class.count) as f64;
            ns += bundle.run.sum(pick, |class| class.latency_ns_sum) as f64;
        }
        (count, (count > 0.0).then(|| ns / count))
    };
    let moves = |class: &ClassTotals| class.group == "transactional";
    let all = |class: &ClassTotals| Pick::Transactional.includes(class);
    [
        of(&|class| moves(class) && class.is_read),
        of(&|class| moves(class) && !class.is_read),
        of(&|class| all(class) && !moves(class)),
    ]
}

/// Returns the mean latency of a side of the comparison.
fn mean_ns(kinds: &[(f64, Option<f64>); 3]) -> Option<f64> {
    let count: f64 = kinds.iter().map(|(count, _)| count).sum();
    let ns: f64 = kinds.iter().map(|(count, mean)| count * mean.unwrap_or(0.0)).sum();
    (count > 0.0).then(|| ns / count)
}

/// Returns the part of the latency difference that results only from the different mix of reads and
/// writes.
fn by_mix(a: &[(f64, Option<f64>); 3], b: &[(f64, Option<f64>); 3]) -> f64 {
    let total = |kinds: &[(f64, Option<f64>); 3]| kinds.iter().map(|(count, _)| count).sum::<f64>();
    let (in_a, in_b) = (total(a).max(1.0), total(b).max(1.0));
    let of = |(a, b): (&(f64, Option<f64>), &(f64, Option<f64>))| {
        // If one side of the comparison has no operations of a kind, the latency of the other side
        // is used.
        let both = a.1.or(b.1).unwrap_or(0.0) + b.1.or(a.1).unwrap_or(0.0);
        (b.0 / in_b - a.0 / in_a) * both / 2.0
    };
    a.iter().zip(b).map(of).sum()
}

/// Returns a time divided by the number of transactional operations, over all runs of a side of the
/// comparison; `None` if the time is unknown in a run.
fn per_operation(side: &Side<'_>, of: impl Fn(&Bundle) -> Option<f64>) -> Option<f64> {
    let (mut ns, mut operations) = (0.0, 0.0);
    for (bundle, _) in side.completed() {
        ns += of(bundle)?;
        operations += figures::totals(bundle, Pick::Transactional).count as f64;
    }
    (operations > 0.0).then(|| ns / operations)
}

/// Returns the total time that operations waited in the load generator before they were submitted.
fn in_generator(bundle: &Bundle) -> Option<f64> {
    let lag = bundle.observed.generator.lag.as_ref().filter(|lag| lag.operations > 0)?;
    let each_ns = lag.wait_ns_sum as f64 / lag.operations as f64;
    Some(each_ns * figures::totals(bundle, Pick::Transactional).count as f64)
}

/// Returns the total time of I/Os at the underlying devices.
fn in_devices(bundle: &Bundle) -> Option<f64> {
    if bundle.run.driver != Driver::Real {
        return None;
    }
    let top = bundle.observed.devices.iter().filter(|device| device.top);
    let times: Vec<f64> =
        top.map(|device| device.read_ns as f64 + device.write_ns as f64).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

fn causes(a: &Side<'_>, b: &Side<'_>) -> (Option<f64>, Vec<Cause>) {
    let (in_a, in_b) = (kinds(a), kinds(b));
    let (Some(mean_a), Some(mean_b)) = (mean_ns(&in_a), mean_ns(&in_b)) else {
        return (None, Vec::new());
    };
    let difference = mean_b - mean_a;
    if difference.abs() < SAME * mean_a.max(mean_b) {
        return (Some(difference), Vec::new());
    }
    let mut left = difference;
    let mut causes = Vec::new();
    let mut put = |name: &str, ns: f64| {
        left -= ns;
        let share = ns / difference;
        causes.push(Cause { name: name.to_owned(), ns_per_operation: ns, share });
    };
    put("different mix of reads and writes", by_mix(&in_a, &in_b));
    let both =
        |of: &dyn Fn(&Bundle) -> Option<f64>| Some(per_operation(b, of)? - per_operation(a, of)?);
    if let Some(ns) = both(&in_generator) {
        put("waiting in the load generator", ns);
    }
    if let Some(ns) = both(&in_devices) {
        put("all I/O of the underlying devices", ns);
    }
    let name = "remainder: software and network between the load and the devices";
    causes.push(Cause { name: name.to_owned(), ns_per_operation: left, share: left / difference });
    (Some(difference), causes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rules::fixtures;
    use crate::verdict::Verdict;
    use plimsoll_evidence::observed::DeviceTotals;

    fn judged(bundles: &[Bundle]) -> Vec<Verdict> {
        bundles.iter().map(crate::judge).collect()
    }

    fn sides<'a>(bundles: &'a [Bundle; 2], verdicts: &'a [Verdict]) -> [Side<'a>; 2] {
        let side = |at: usize| Side {
            name: ["a", "b"][at].to_owned(),
            runs: vec![(&bundles[at], &verdicts[at])],
        };
        [side(0), side(1)]
    }

    /// The reads of the second side of the comparison take 1 ms longer, and three quarters of this
    /// are spent in its device.
    fn slower() -> [Bundle; 2] {
        let mut bundles = [fixtures::reads(), fixtures::reads()];
        let count = bundles[1].run.classes[0].count;
        bundles[1].run.classes[0].latency_ns_sum += count * 1_000_000;
        for (bundle, extra_ns) in bundles.iter_mut().zip([0, 750_000]) {
            bundle.observed.generator.lag = None;
            bundle.observed.devices = vec![DeviceTotals {
                name: "sda".to_owned(),
                top: true,
                reads: count,
                read_ns: count * (100_000 + extra_ns),
                ..DeviceTotals::default()
            }];
        }
        bundles
    }

    #[test]
    fn the_parts_of_a_difference_add_up_and_the_device_has_its_own() {
        let bundles = slower();
        let verdicts = judged(&bundles);
        let explanation = explain(&sides(&bundles, &verdicts), &[]).unwrap();
        let difference = explanation.difference_ns.unwrap();
        assert!((difference - 1e6).abs() < 1.0, "{difference}");
        let sum: f64 = explanation.causes.iter().map(|cause| cause.ns_per_operation).sum();
        assert!((sum - difference).abs() < 1e-3, "{explanation:?}");
        let device =
            explanation.causes.iter().find(|cause| cause.name.contains("devices")).unwrap();
        assert!((device.share - 0.75).abs() < 1e-6, "{explanation:?}");
        let divergence =
            explanation.divergences.iter().find(|divergence| divergence.kind == "device").unwrap();
        assert_eq!(
            divergence.says,
            "sda: an I/O takes 100 us at the device on the first side of the comparison, and 850 us \
             on the second side"
        );
    }

    #[test]
    fn sides_that_are_alike_part_nowhere() {
        let bundles = [fixtures::reads(), fixtures::reads()];
        let verdicts = judged(&bundles);
        let explanation = explain(&sides(&bundles, &verdicts), &[]).unwrap();
        assert_eq!(
            (explanation.divergences, explanation.causes, explanation.difference_ns),
            (vec![], vec![], Some(0.0))
        );
    }

    #[test]
    fn the_first_phase_and_condition_where_they_part_are_named() {
        let mut bundles = [fixtures::reads(), fixtures::reads()];
        for phase in &mut bundles[1].run.phases {
            if phase.kind == PhaseKind::WarmUp {
                phase.kind = PhaseKind::Caches;
            }
        }
        let verdicts = judged(&bundles);
        let kernel = ConditionDifference {
            name: "kernel".to_owned(),
            values: vec!["6.1".to_owned(), "6.6".to_owned()],
            accepted: true,
            factor: false,
        };
        let explanation = explain(&sides(&bundles, &verdicts), &[kernel]).unwrap();
        let says: Vec<&str> =
            explanation.divergences.iter().map(|divergence| divergence.says.as_str()).collect();
        assert_eq!(
            says,
            [
                "kernel: 6.1 against 6.6",
                "only the first side of the comparison has the phase warm-up"
            ]
        );
    }
}
