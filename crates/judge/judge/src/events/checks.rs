//! Checks of limits that apply to only one window or one stream.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{
    Bound, LatencyLimit, LimitOrigin, LimitSet, Limits, Requirement, Stream, Window, WindowLimits,
};

use super::{NoRecovery, Part, Windows, errors, outage, slice};
use crate::checks;
use crate::checks::rate::{self, Unit};
use crate::figures::{self, Pick, measured};
use crate::verdict::{Check, Quantity};

/// Returns one check for each limit that applies to a stream.
pub(crate) fn of_streams(
    bundle: &Bundle,
    requirement: &Requirement,
    accepts_hidden: bool,
) -> Vec<Check> {
    let required = requirement.streams.iter();
    required
        .flat_map(|one| of_stream(bundle, requirement, one.stream, &one.limits, accepts_hidden))
        .collect()
}

/// Returns one check for each limit that applies to a window.
pub(crate) fn of_windows(
    bundle: &Bundle,
    requirement: &Requirement,
    accepts_hidden: bool,
) -> Vec<Check> {
    let mut all = Vec::new();
    if !requirement.windows.is_empty() {
        let windows = Windows::of(bundle);
        let run = |part: Part| slice(bundle, part, |stream| stream.start_event.is_none());
        let before = windows.as_ref().and_then(|w| w.part(Window::Before)).map(run);
        for required in &requirement.windows {
            let part = windows.as_ref().and_then(|windows| windows.part(required.window));
            let sliced = part.map(run);
            let case = Case { bundle, requirement, required, windows: windows.as_ref(), part };
            all.extend(case.checks(sliced.as_ref(), before.as_ref(), accepts_hidden));
        }
    }
    all
}

/// One window of the run, with the limits that apply to it.
struct Case<'a> {
    bundle: &'a Bundle,
    requirement: &'a Requirement,
    required: &'a WindowLimits,
    windows: Option<&'a Windows>,
    part: Option<Part>,
}

impl Case<'_> {
    fn checks(&self, own: Option<&Bundle>, before: Option<&Bundle>, hidden: bool) -> Vec<Check> {
        // The pattern lists every field and has no `..`, so the compiler reports a new field
        // without a check.
        let Limits {
            iops,
            bandwidth,
            outage_max_ns,
            recovery_max_ns,
            errors_max,
            latencies,
            relative,
        } = &self.required.limits;
        let window = self.required.window;
        let mut checks = Vec::new();
        let rate = |bundle: &Bundle| figures::rate_per_s(bundle, Pick::Data);
        let bytes = |bundle: &Bundle| figures::bytes_per_s(bundle, Pick::Transactional);
        let bound = |bound: &Bound, level: Option<f64>| match bound {
            Bound::PerS(limit) => (Some(*limit), String::new()),
            Bound::OfBefore(share) => (
                level.map(|level| level * share),
                format!("the limit is {:.0} % of the value before the event", share * 100.0),
            ),
        };
        if let Some(iops) = iops {
            let (limit, note) = bound(iops, before.and_then(rate));
            let limit_per_s = limit.unwrap_or(0.0);
            let measured_per_s = own.and_then(rate).filter(|_| limit.is_some());
            let quantity = Quantity::Rate { limit_per_s, measured_per_s };
            let check = Check::undecided("iops", quantity, true);
            checks.push(reaches(own, check, Unit::Data, (measured_per_s, limit_per_s), note));
        }
        if let Some(bandwidth) = bandwidth {
            let (limit, note) = bound(bandwidth, before.and_then(bytes));
            let limit_bytes_per_s = limit.unwrap_or(0.0) as u64;
            let measured_bytes_per_s = own.and_then(bytes).filter(|_| limit.is_some());
            let quantity = Quantity::Bandwidth { limit_bytes_per_s, measured_bytes_per_s };
            let check = Check::undecided("bandwidth", quantity, true);
            let figures = (measured_bytes_per_s, limit_bytes_per_s as f64);
            checks.push(reaches(own, check, Unit::Bytes, figures, note));
        }
        if let Some(limit_ns) = outage_max_ns {
            checks.push(self.outage(*limit_ns));
        }
        if let Some(limit_ns) = recovery_max_ns {
            checks.push(self.recovery(*limit_ns));
        }
        if let Some(limit_count) = errors_max {
            let measured_count = self.part.map(|part| errors(self.bundle, part));
            let quantity = Quantity::Count { limit_count: *limit_count, measured_count };
            let ok = measured_count.map(|count| count <= *limit_count);
            checks.push(Check::undecided("errors", quantity, false).with_result(ok));
        }
        let mut limits = latencies.clone();
        for limit in relative {
            let level = before.and_then(|before| {
                let own = LatencyLimit::new(limit.class, limit.statistic, 1, LimitOrigin::Plan);
                let check = latency_checks(before, self.requirement, vec![own], true).pop()?;
                match check.quantity {
                    Quantity::Latency { measured_ns, .. } => measured_ns,
                    _ => None,
                }
            });
            let limit_ns = level.map_or(0, |level| (level as f64 * limit.of_before) as u64);
            let (class, statistic) = (limit.class, limit.statistic);
            if level.is_some() {
                limits.push(LatencyLimit::new(class, statistic, limit_ns, LimitOrigin::Plan));
            } else {
                let name = LatencyLimit::field(class, statistic);
                let quantity = Quantity::Latency { limit_ns, measured_ns: None };
                let note = "the latency before the event is unknown";
                checks.push(Check::undecided(&name, quantity, false).with_note(note));
            }
        }
        match own {
            Some(own) => checks.extend(latency_checks(own, self.requirement, limits, hidden)),
            None => checks.extend(limits.iter().map(|limit| {
                let quantity = Quantity::Latency { limit_ns: limit.limit_ns, measured_ns: None };
                Check::undecided(&limit.name, quantity, false)
            })),
        }
        let missing = format!("the run contains no time {}", window_words(window));
        for check in &mut checks {
            check.name = format!("{}_{}", window.word(), check.name);
            if self.part.is_none() && check.ok.is_none() && check.note.is_empty() {
                check.note.clone_from(&missing);
            }
        }
        checks
    }

    fn outage(&self, limit_ns: u64) -> Check {
        let found = self.part.and_then(|part| outage(self.bundle, part));
        let measured_ns = found.map(|outage| outage.duration_ns);
        let ok = found.and_then(|outage| match () {
            () if outage.low_ns > limit_ns => Some(false),
            // If every interval has completions, an outage must be shorter than two intervals.
            () if outage.low_ns == 0 => (outage.high_ns <= limit_ns).then_some(true),
            () => Some(outage.duration_ns <= limit_ns),
        });
        let note = match found {
            Some(outage) if ok.is_none() => format!(
                "an outage shorter than {} s cannot be detected: set a shorter evidence.interval",
                outage.high_ns as f64 / 1e9
            ),
            Some(outage) if outage.low_ns == 0 => {
                format!(
                    "every interval has completions, so an outage is shorter than {} s",
                    outage.high_ns as f64 / 1e9
                )
            }
            _ => String::new(),
        };
        let quantity = Quantity::Latency { limit_ns, measured_ns };
        let mut check = Check::undecided("outage", quantity, false).with_result(ok).with_note(note);
        check.interval = found.map(|outage| [outage.low_ns as f64, outage.high_ns as f64]);
        check
    }

    fn recovery(&self, limit_ns: u64) -> Check {
        let open = |measured_ns| {
            Check::undecided("recovery", Quantity::Latency { limit_ns, measured_ns }, false)
        };
        let Some(windows) = self.windows else { return open(None).with_note("no event happened") };
        match &windows.recovery_ns {
            Ok(after_ns) => {
                let width_ns = windows.interval_ns;
                let mut check = open(Some(*after_ns)).with_result(Some(*after_ns <= limit_ns));
                let low = after_ns.saturating_sub(width_ns) as f64;
                check.interval = Some([low, after_ns.saturating_add(width_ns) as f64]);
                check.with_note(format!("from {:?}", windows.action))
            }
            Err(NoRecovery::NotWithinRun(rest_ns)) => {
                let rest_s = *rest_ns as f64 / 1e9;
                let check = open(Some(*rest_ns));
                // If the run ended after the limit without a recovery, the load did not recover
                // within the limit.
                let ok = (*rest_ns > limit_ns).then_some(false);
                check.with_result(ok).with_note(match ok {
                    Some(_) => format!(
                        "the load had not recovered at the end of the run, {rest_s:.0} s after \
                         {:?}",
                        windows.action
                    ),
                    None => format!(
                        "the load did not recover in the {rest_s:.0} s from {:?} to the end of \
                         the run: measure longer",
                        windows.action
                    ),
                })
            }
            Err(NoRecovery::Unknown(reason)) => open(None).with_note(reason.clone()),
        }
    }
}

/// Checks the rate of a window. The load of a closed loop may change during an event, so its rate
/// has no confidence interval.
fn reaches(
    own: Option<&Bundle>,
    check: Check,
    unit: Unit,
    (measured, limit): (Option<f64>, f64),
    note: String,
) -> Check {
    let (Some(own), Some(measured)) = (own, measured) else { return check.with_note(note) };
    if !checks::open_loop(own) {
        return check.with_result(Some(measured >= limit)).with_note(note);
    }
    let (ok, says) = rate::of_open_loop(own, unit, measured, limit);
    let notes = [note, says].into_iter().filter(|note| !note.is_empty());
    check.with_result(ok).with_note(notes.collect::<Vec<_>>().join("; "))
}

fn window_words(window: Window) -> &'static str {
    match window {
        Window::Before => "before an event",
        Window::During => "during an event",
        Window::After => "after the recovery",
    }
}

/// Returns the checks of latency limits on a part of a run.
fn latency_checks(
    own: &Bundle,
    requirement: &Requirement,
    limits: Vec<LatencyLimit>,
    accepts_hidden: bool,
) -> Vec<Check> {
    let count = limits.len();
    let only = Requirement { limits, ..without_limits(requirement) };
    let mut checks = checks::all(own, &only, accepts_hidden);
    checks.truncate(count);
    checks
}

fn without_limits(requirement: &Requirement) -> Requirement {
    Requirement {
        iops_per_s: None,
        metadata_ops_per_s: None,
        iops_from_workload: false,
        bandwidth_bytes_per_s: None,
        capacity_bytes: None,
        latency_max_of_ns: requirement.latency_max_of_ns,
        page_fault_stalls_max_per_s: None,
        limit_set: LimitSet::Plan,
        limits: Vec::new(),
        windows: Vec::new(),
        streams: Vec::new(),
    }
}

/// Returns the checks of a stream's own limits, over the time in which it ran.
fn of_stream(
    bundle: &Bundle,
    requirement: &Requirement,
    number: u32,
    limits: &Limits,
    accepts_hidden: bool,
) -> Vec<Check> {
    let matrix = bundle.plan.workload.matrix();
    let Some(stream) = matrix.and_then(|matrix| matrix.streams.get(number as usize)) else {
        return Vec::new();
    };
    let Some(part) = stream_part(bundle, stream) else { return Vec::new() };
    let own = slice(bundle, part, |other| other.name == stream.name);
    let rate = |bound: &Option<Bound>| match bound {
        Some(Bound::PerS(limit)) => Some(*limit),
        _ => None,
    };
    let only = Requirement {
        iops_per_s: rate(&limits.iops),
        bandwidth_bytes_per_s: rate(&limits.bandwidth).map(|bytes| bytes as u64),
        limits: limits.latencies.clone(),
        ..without_limits(requirement)
    };
    let mut checks = checks::all(&own, &only, accepts_hidden);
    for check in &mut checks {
        check.name = format!("{}: {}", stream.name, check.name);
    }
    checks
}

/// Returns the time in which a stream ran, or the whole measurement if the stream's event did not
/// happen. `None` if nothing was measured.
fn stream_part(bundle: &Bundle, stream: &Stream) -> Option<Part> {
    let measure = measured(bundle)?;
    let (start_ns, end_ns) =
        (measure.start_ns, measure.start_ns.saturating_add(measure.duration_ns));
    let event = stream
        .start_event
        .as_ref()
        .map(|name| bundle.run.events.iter().find(|event| event.name == *name));
    let part = match event {
        None => Some((start_ns, end_ns)),
        Some(event) => event
            .and_then(|event| Some((event.at_ns?, event.undo_at_ns.unwrap_or(end_ns).min(end_ns)))),
    };
    let (from_ns, to_ns) = part.filter(|(from, to)| from < to).unwrap_or((start_ns, end_ns));
    Some(Part { window: Window::During, from_ns, to_ns })
}

/// Returns the operations per second of a stream while it ran.
pub(crate) fn stream_rate_per_s(bundle: &Bundle, number: u32) -> Option<f64> {
    let stream = bundle.plan.workload.matrix()?.streams.get(number as usize)?;
    let part = stream_part(bundle, stream)?;
    let count = figures::totals(bundle, Pick::All(Some(number))).count_within();
    Some(count as f64 * figures::NS_PER_S / part.duration_ns() as f64)
}
