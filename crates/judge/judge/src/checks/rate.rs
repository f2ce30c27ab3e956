//! Checks of rates: operations and bytes per second.
//!
//! A closed loop issues operations as fast as the storage completes them, so its rate belongs to
//! the storage. The rate of an open loop cannot exceed the arrivals. If fewer operations were due
//! than the requirement states, the rate shows nothing about the storage.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Arrival, Stream};

use super::{confidence, interval_ns, note_of, open_loop};
use crate::figures::{self, NS_PER_S, Pick, measured};
use crate::stats::Parts;
use crate::verdict::{Check, Quantity};

/// The rate of an open loop counts as reached if it is at most this share lower than its target
/// rate. An open loop cannot exceed that rate. The engine's pacing may cause an error of 0.5 %, and
/// the storage another 0.5 %.
const OPEN_LOOP_SLACK: f64 = 0.01;

/// Unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Reads and writes of data. Metadata operations never count: the kernel answers most of them
    /// from memory, so they have a separate limit.
    Data,
    Metadata,
    /// All operations that count for the rate.
    All,
    Bytes,
}

impl Unit {
    fn pick(self) -> Pick {
        match self {
            Self::Data => Pick::Data,
            Self::Metadata => Pick::Metadata(None),
            Self::All | Self::Bytes => Pick::Transactional,
        }
    }

    /// Returns the mean amount of one operation: its bytes, or 1.
    fn per_operation(self, bundle: &Bundle) -> Option<f64> {
        let sums = figures::totals(bundle, self.pick());
        match self {
            Self::Data | Self::Metadata | Self::All => Some(1.0),
            Self::Bytes => (sums.count > 0).then(|| sums.size_bytes as f64 / sums.count as f64),
        }
    }

    /// Returns the share of a stream's operations that count.
    fn share(self, stream: &Stream) -> f64 {
        let metadata = stream.metadata_percent / 100.0;
        match self {
            Self::Data => 1.0 - metadata,
            Self::Metadata => metadata,
            Self::All | Self::Bytes => 1.0,
        }
    }
}

pub(super) fn iops(bundle: &Bundle, limit_per_s: f64) -> Check {
    operations(bundle, "achieved_iops", Unit::Data, limit_per_s)
}

pub(super) fn metadata_ops(bundle: &Bundle, limit_per_s: f64) -> Check {
    operations(bundle, "achieved_metadata_ops", Unit::Metadata, limit_per_s)
}

fn operations(bundle: &Bundle, name: &str, unit: Unit, limit_per_s: f64) -> Check {
    let measured_per_s = figures::rate_per_s(bundle, unit.pick());
    let check = Check::undecided(name, Quantity::Rate { limit_per_s, measured_per_s }, true);
    let parts = || figures::rate_parts(bundle, unit.pick(), interval_ns(bundle));
    at_least(bundle, check, unit, (measured_per_s, limit_per_s), parts)
}

pub(super) fn bandwidth(bundle: &Bundle, limit_bytes_per_s: u64) -> Check {
    let unit = Unit::Bytes;
    let measured_bytes_per_s = figures::bytes_per_s(bundle, unit.pick());
    let quantity = Quantity::Bandwidth { limit_bytes_per_s, measured_bytes_per_s };
    let check = Check::undecided("bandwidth", quantity, true);
    let parts = || figures::bandwidth_parts(bundle, unit.pick(), interval_ns(bundle));
    at_least(bundle, check, unit, (measured_bytes_per_s, limit_bytes_per_s as f64), parts)
}

/// Checks that a rate is at least its limit. In a closed loop, the confidence interval of the rate
/// decides.
fn at_least(
    bundle: &Bundle,
    mut check: Check,
    unit: Unit,
    (measured, limit): (Option<f64>, f64),
    parts: impl Fn() -> Vec<Parts>,
) -> Check {
    let Some(rate) = measured else { return check };
    if open_loop(bundle) {
        let (ok, note) = of_open_loop(bundle, unit, rate, limit);
        return check.with_result(ok).with_note(note);
    }
    if let Some(cap) = cap_per_s(bundle, unit).filter(|cap| *cap < limit)
        && rate >= cap * (1.0 - OPEN_LOOP_SLACK)
    {
        return check.with_note(format!(
            "the plan limits the rate to {cap:.1}, and the storage reached it; request a higher \
             rate to check this limit"
        ));
    }
    let confidence = confidence(&parts(), rate, |rate| rate >= limit);
    check.interval = confidence.interval;
    let note = note_of(bundle, &confidence, rate, limit);
    check.with_result(confidence.within).with_note(note)
}

/// Decides whether the rate of an open loop reached its limit. The check is undecided if the rate
/// is too low and so few operations were due that no storage could have reached the limit.
pub(crate) fn of_open_loop(
    bundle: &Bundle,
    unit: Unit,
    rate: f64,
    limit: f64,
) -> (Option<bool>, String) {
    let due = due_per_s_max(bundle, unit);
    let offered = offered_per_s(bundle, unit)
        .zip(unit.per_operation(bundle))
        .map(|(operations, amount)| operations * amount);
    // If the load requested a higher rate than required, the storage itself did not reach the
    // limit. Otherwise the rate may be lower because of the pacing.
    let has_slack = offered.or(due).is_none_or(|most| most <= limit * (1.0 + OPEN_LOOP_SLACK));
    let is_near = rate >= limit * (1.0 - OPEN_LOOP_SLACK);
    let word = if unit == Unit::Bytes { "bytes/s" } else { "operations/s" };
    let undecided = |says: String| (None, format!("open loop: {says}"));
    match due {
        _ if rate >= limit || is_near && has_slack => {
            let note = "open loop: the rate counts as reached if it is within 1 % of the target";
            (Some(true), if has_slack { note.to_owned() } else { String::new() })
        }
        Some(due) if due < limit => undecided(format!(
            "at most {due:.1} {word} were due, and the storage completed {rate:.1}; request a \
             higher rate to check this limit"
        )),
        // Operations that were due before the measurement may have completed in it, so the number
        // of arrivals is uncertain.
        Some(due) if is_near && offered.is_none() => undecided(format!(
            "up to {due:.1} {word} were due, which is too close to the limit; request a higher rate"
        )),
        _ => (Some(false), String::new()),
    }
}

/// Returns the operations per second that the open loops of the plan requested. `None` if a stream
/// has no fixed rate.
fn offered_per_s(bundle: &Bundle, unit: Unit) -> Option<f64> {
    let matrix = bundle.plan.workload.matrix()?;
    let rate = |stream: &Stream| match stream.arrival {
        Arrival::Constant { rate_per_s, ramp_ns: 0 }
        | Arrival::Poisson { rate_per_s, ramp_ns: 0 } => Some(rate_per_s * unit.share(stream)),
        _ => None,
    };
    matrix.streams.iter().map(rate).sum()
}

/// Returns the largest rate that a plan permits. `None` if only the storage limits it.
fn cap_per_s(bundle: &Bundle, unit: Unit) -> Option<f64> {
    let matrix = bundle.plan.workload.matrix()?;
    let rate = |stream: &Stream| Some(stream.rate_max_per_s()? * unit.share(stream));
    let operations: f64 = matrix.streams.iter().map(rate).sum::<Option<f64>>()?;
    Some(operations * unit.per_operation(bundle)?)
}

/// Returns an upper bound of the rate of operations that were due while the run was measured:
/// completions and errors, plus all operations that can have been in flight or waiting at the end.
/// By Little's law, these are at most the arrivals during the longest latency, or since the last
/// completion. If the plan has fixed rates, at least [`planned_arrivals`] were due, even if the
/// generator did not issue them. `None` if an arrival may have depended on the storage, or if
/// operations are missing from the counts.
pub(crate) fn due_per_s_max(bundle: &Bundle, unit: Unit) -> Option<f64> {
    bundle.plan.workload.matrix().filter(|_| open_loop(bundle))?;
    let measure = measured(bundle)?;
    let pick = unit.pick();
    let classes = || bundle.run.classes.iter().filter(|class| pick.includes(class));
    let mut unfinished = 0;
    for class in classes() {
        unfinished += class.unfinished()? + class.drained + class.errors;
    }
    let end_ns = measure.start_ns.saturating_add(measure.duration_ns);
    let rows = bundle
        .series
        .iter()
        .filter(|row| row.start_ns < end_ns && classes().any(|class| class.name == row.name));
    let last_ns = rows.map(|row| row.start_ns.saturating_add(row.duration_ns)).max()?;
    let waited_ns = figures::latency_ns_max(bundle, pick)?.max(end_ns.saturating_sub(last_ns));
    let completed = figures::totals(bundle, pick).count_within() as f64;
    let seconds = measure.duration_ns as f64 / NS_PER_S;
    let rate_per_s = offered_per_s(bundle, unit).unwrap_or(0.0).max(completed / seconds);
    let waiting = rate_per_s * waited_ns as f64 / NS_PER_S;
    let due =
        (completed + waiting.max(unfinished as f64)).max(planned_arrivals(bundle, unit, seconds));
    Some(due / seconds * unit.per_operation(bundle)?)
}

/// Returns the number of operations that must have been due in `seconds`, according to the fixed
/// rates of the plan. A random number of arrivals is at most five standard deviations lower than its
/// mean.
fn planned_arrivals(bundle: &Bundle, unit: Unit, seconds: f64) -> f64 {
    let Some(matrix) = bundle.plan.workload.matrix() else { return 0.0 };
    let always = matrix.streams.iter().filter(|stream| stream.start_event.is_none());
    let arrivals = always.map(|stream| {
        let share = unit.share(stream);
        let (rate_per_s, is_random) = match stream.arrival {
            Arrival::Constant { rate_per_s, ramp_ns: 0 } => (rate_per_s, share < 1.0),
            Arrival::Poisson { rate_per_s, ramp_ns: 0 } => (rate_per_s, true),
            _ => return 0.0,
        };
        let mean = rate_per_s * share * seconds;
        if is_random { mean - 5.0 * libm::sqrt(mean) } else { mean }
    });
    arrivals.map(|count| count.max(0.0)).sum()
}
