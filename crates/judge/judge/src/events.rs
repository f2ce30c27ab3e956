//! Windows of a run with events (before, during and after them), and the recovery.
//!
//! *Before* ends with the first event. *During* lasts until the load has recovered ([`recovery`]),
//! but at least until the last undo and at least for the hold time. *After* is the remaining time.
//! Each whole interval belongs to one window; the interval of an event belongs to *during*.

pub mod checks;
mod figures;
pub mod recovery;
mod slice;
mod stations;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::run::{ClassTotals, Phase};
use plimsoll_evidence::series::{Data, errors_class};
use plimsoll_plan::{ResolvedPlan, Window};

use self::recovery::{HOLD_NS, P99_FACTOR, Recovery, Sample};
use crate::figures::{NS_PER_S, Pick, measured};
use crate::stats::percentile_gate;

pub use self::figures::{WindowFigures, window_figures};
pub(crate) use self::slice::slice;
pub use self::stations::{StationWindows, station_windows};

/// Part of the measured phase, on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub window: Window,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Part {
    /// Returns the length of the part.
    pub fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// Longest time in which no operation completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// Best estimate of the longest time without a completion. Zero if at least one operation
    /// completed in every whole interval.
    pub duration_ns: u64,
    /// Lower bound of the longest time, computed from the intervals. `high_ns` is the upper bound.
    pub low_ns: u64,
    pub high_ns: u64,
}

/// Windows of a run with events.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// Windows that exist in this run, in chronological order.
    pub parts: Vec<Part>,
    /// Start of the last action, which is an event or its undo. The recovery time is measured from
    /// here.
    pub action_ns: u64,
    pub action: String,
    /// Length of the intervals in which the recovery was searched.
    pub interval_ns: u64,
    /// Time from the last action to the recovery.
    pub recovery_ns: Result<u64, NoRecovery>,
}

/// Reason why there is no recovery time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRecovery {
    /// The load had not recovered when the run ended. The value is the time from the action to the
    /// end of the run.
    NotWithinRun(u64),
    /// The series does not contain enough data for a decision.
    Unknown(String),
}

impl Windows {
    /// Returns the windows; `None` if no event happened in the measured phase.
    pub fn of(bundle: &Bundle) -> Option<Self> {
        let measure = measured(bundle)?;
        let (start_ns, end_ns) = (measure.start_ns, end_ns(measure));
        let within = |ns: &u64| (start_ns..end_ns).contains(ns);
        let happened = |event: &EventRecord| event.at_ns.filter(within);
        let first_ns = bundle.run.events.iter().filter_map(happened).min()?;
        let actions = bundle.run.events.iter().flat_map(|event| {
            let undo = event.undo_at_ns.map(|ns| (ns, format!("undo {}", event.name)));
            event.at_ns.map(|ns| (ns, event.name.clone())).into_iter().chain(undo)
        });
        let (action_ns, action) = actions.filter(|(ns, _)| within(ns)).max()?;
        let width_ns = width_ns(bundle);
        let grid = Grid { start_ns, end_ns, width_ns };
        let recovery = search(bundle, &grid, first_ns, action_ns);
        let recovered_ns = match &recovery {
            Recovery::After(0) => Ok(0),
            Recovery::After(intervals) => {
                let at_ns = grid.floor_ns(action_ns) + *intervals as u64 * width_ns;
                Ok(at_ns.saturating_sub(action_ns))
            }
            Recovery::NotWithinRun => Err(NoRecovery::NotWithinRun(end_ns - action_ns)),
            Recovery::Unknown(reason) => Err(NoRecovery::Unknown(reason.clone())),
        };
        let lasts_ns = disturbance_end_ns(&bundle.plan, &bundle.run.events, end_ns);
        let during_ns = match &recovered_ns {
            Ok(after_ns) => {
                (action_ns + after_ns).max(lasts_ns).max(first_ns.saturating_add(HOLD_NS))
            }
            Err(_) => end_ns,
        };
        let (first_ns, during_ns) = (grid.floor_ns(first_ns), grid.ceil_ns(during_ns));
        let parts = [
            Part { window: Window::Before, from_ns: start_ns, to_ns: first_ns },
            Part { window: Window::During, from_ns: first_ns, to_ns: during_ns },
            Part { window: Window::After, from_ns: during_ns, to_ns: end_ns },
        ];
        Some(Self {
            parts: parts.into_iter().filter(|part| part.to_ns > part.from_ns).collect(),
            action_ns,
            action,
            interval_ns: width_ns,
            recovery_ns: recovered_ns,
        })
    }

    /// Returns one window of the run. `None` if the window is empty.
    pub fn part(&self, window: Window) -> Option<Part> {
        self.parts.iter().copied().find(|part| part.window == window)
    }
}

/// Returns the end of the disturbance. This is the last undo, or the end of the streams that events
/// started.
fn disturbance_end_ns(plan: &ResolvedPlan, events: &[EventRecord], end_ns: u64) -> u64 {
    let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let starts = |name: &str| streams.iter().any(|s| s.start_event.as_deref() == Some(name));
    let ends = events.iter().filter(|event| event.at_ns.is_some()).map(|event| {
        let until_end = if starts(&event.name) { end_ns } else { 0 };
        let command = event.command.as_ref().map_or(0, |command| command.end_ns);
        event.undo_at_ns.unwrap_or(until_end).max(command)
    });
    ends.max().unwrap_or(0).min(end_ns)
}

/// Intervals of the measured phase.
struct Grid {
    start_ns: u64,
    end_ns: u64,
    width_ns: u64,
}

impl Grid {
    fn count(&self) -> usize {
        ((self.end_ns - self.start_ns) / self.width_ns) as usize
    }

    fn index(&self, at_ns: u64) -> Option<usize> {
        let index = (at_ns.checked_sub(self.start_ns)? / self.width_ns) as usize;
        (index < self.count()).then_some(index)
    }

    fn floor_ns(&self, at_ns: u64) -> u64 {
        at_ns - (at_ns - self.start_ns) % self.width_ns
    }

    fn ceil_ns(&self, at_ns: u64) -> u64 {
        let past_ns = (at_ns - self.start_ns) % self.width_ns;
        let up_ns =
            if past_ns == 0 { at_ns } else { (at_ns - past_ns).saturating_add(self.width_ns) };
        up_ns.min(self.end_ns)
    }
}

/// Maximum number of intervals of a run.
const INTERVALS_MAX: u64 = 10_000_000;

/// Returns the length of an interval of the series.
fn interval_ns(bundle: &Bundle) -> u64 {
    let measured_ns = measured(bundle).map_or(0, |measure| measure.duration_ns);
    bundle.plan.evidence.interval_ns.max(measured_ns / INTERVALS_MAX).max(1)
}

fn end_ns(phase: &Phase) -> u64 {
    phase.start_ns.saturating_add(phase.duration_ns)
}

/// Returns the length of intervals for which the run recorded both a rate and a histogram.
fn width_ns(bundle: &Bundle) -> u64 {
    let interval_ns = interval_ns(bundle);
    // The last span of a run also includes operations that completed after its end.
    let mut spans_ns: Vec<u64> = bundle.latency_spans.iter().map(|span| span.duration_ns).collect();
    spans_ns.sort_unstable();
    let usual_ns = spans_ns.get(spans_ns.len() / 2).copied().unwrap_or(0);
    // Times in the log are rounded to milliseconds.
    let intervals = usual_ns.saturating_add(interval_ns / 2) / interval_ns;
    interval_ns.saturating_mul(intervals.max(1))
}

/// Returns true if the operations belong to a stream that already ran before the events.
pub(crate) fn is_of_load(plan: &ResolvedPlan, class: &ClassTotals) -> bool {
    let streams = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let stream = streams.get(class.instance as usize);
    Pick::Transactional.includes(class) && stream.is_none_or(|stream| stream.start_event.is_none())
}

fn search(bundle: &Bundle, grid: &Grid, first_ns: u64, action_ns: u64) -> Recovery {
    let Some((first, action)) = grid.index(first_ns).zip(grid.index(action_ns)) else {
        return Recovery::Unknown("there is no whole interval after the event".to_owned());
    };
    let samples = samples(bundle, grid, first);
    recovery::find(&samples[..first], &samples[action..], grid.width_ns)
}

/// Returns one sample of the load for each interval. The first `before` samples define the
/// baseline.
fn samples(bundle: &Bundle, grid: &Grid, before: usize) -> Vec<Sample> {
    let of_load = |name: &str| {
        let class = bundle.run.class(name);
        class.is_some_and(|class| is_of_load(&bundle.plan, class))
    };
    let mut counts = vec![0u64; grid.count()];
    for (name, start_ns, duration_ns, data) in class_rows(bundle) {
        let Data::Class { count, .. } = data else { continue };
        let at =
            grid.index(start_ns.saturating_add(duration_ns / 2)).and_then(|at| counts.get_mut(at));
        if let Some(sum) = at.filter(|_| of_load(name)) {
            *sum = sum.saturating_add(count);
        }
    }
    let spans = || {
        let own = bundle.latency_spans.iter().filter(|span| of_load(&span.tag));
        own.filter_map(|span| {
            Some((grid.index(span.start_ns.saturating_add(span.duration_ns / 2))?, span))
        })
    };
    let mut level = plimsoll_evidence::latency::histogram();
    for (_, span) in spans().filter(|(at, _)| *at < before) {
        span.histogram.add_to(&mut level);
    }
    let known = percentile_gate(level.len() as usize, level.len() as f64, 0.99).is_ok();
    let bound = known.then(|| {
        level.highest_equivalent((level.value_at_quantile(0.99) as f64 * P99_FACTOR) as u64)
    });
    let mut slow = vec![(0u64, 0u64); grid.count()];
    for (at, span) in spans() {
        let beyond = bound.map_or(0, |bound| span.histogram.count_beyond(bound));
        slow[at].0 = slow[at].0.saturating_add(beyond);
        slow[at].1 = slow[at].1.saturating_add(span.histogram.count());
    }
    let per_s = NS_PER_S / grid.width_ns as f64;
    let sample = |(count, (slow, all)): (u64, (u64, u64))| Sample {
        rate_per_s: count as f64 * per_s,
        slow_share: match (count, all) {
            (0, _) => 1.0,
            (_, 0) => 0.0,
            (_, all) => slow as f64 / all as f64,
        },
    };
    counts.into_iter().zip(slow).map(sample).collect()
}

/// Returns the rows of the measured phase, each with its name, start, length and data.
fn class_rows(bundle: &Bundle) -> impl Iterator<Item = (&str, u64, u64, Data)> {
    let measure = measured(bundle);
    let index = bundle.run.phases.iter().position(|phase| Some(phase) == measure);
    let rows = bundle.series.iter().filter(move |row| Some(row.phase as usize) == index);
    rows.map(|row| (row.name.as_str(), row.start_ns, row.duration_ns, row.data))
}

/// Completions of the load in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Completions {
    count: u64,
    max_ns: u64,
    errors: u64,
}

/// Returns the longest time in a part of the run during which no operation of the load completed,
/// although an operation was waiting or failed. A pause of the load is not an outage.
pub fn outage(bundle: &Bundle, part: Part) -> Option<Outage> {
    let measure = measured(bundle)?;
    let width_ns = interval_ns(bundle);
    let (start_ns, end_ns) = (measure.start_ns, end_ns(measure));
    let grid = Grid { start_ns, end_ns, width_ns };
    let mut intervals = vec![Completions::default(); grid.count()];
    for (name, start_ns, duration_ns, data) in class_rows(bundle) {
        let name = if let Data::Gauge(_) = data { errors_class(name) } else { Some(name) };
        let class = name.and_then(|name| bundle.run.class(name));
        let of_load = class.is_some_and(|class| is_of_load(&bundle.plan, class));
        let at = grid
            .index(start_ns.saturating_add(duration_ns / 2))
            .and_then(|at| intervals.get_mut(at));
        match (at.filter(|_| of_load), data) {
            (Some(sums), Data::Class { count, max_ns, .. }) => {
                sums.count = sums.count.saturating_add(count);
                sums.max_ns = sums.max_ns.max(max_ns);
            }
            (Some(sums), Data::Gauge(errors)) => sums.errors += errors as u64,
            (None, _) => {}
        }
    }
    let silent_from = silent_intervals(bundle, &intervals, width_ns);
    let first = grid.index(part.from_ns)?;
    let last = grid.index(part.to_ns.saturating_sub(1)).unwrap_or(intervals.len());
    let mut longest = Outage { duration_ns: 0, low_ns: 0, high_ns: 2 * width_ns };
    let mut silent = 0u64;
    for (at, Completions { max_ns, .. }) in intervals.iter().enumerate().skip(first) {
        if silent_from[at] && at <= last {
            silent += 1;
            let low_ns = silent * width_ns;
            if low_ns > longest.low_ns {
                longest = Outage { duration_ns: low_ns, low_ns, high_ns: low_ns + 2 * width_ns };
            }
            continue;
        }
        // An operation that waited during the whole outage has a latency of at least the length of
        // the outage.
        if silent > 0 && silent * width_ns == longest.low_ns {
            longest.duration_ns = (*max_ns).clamp(longest.low_ns, longest.high_ns);
        }
        silent = 0;
        if at > last {
            break;
        }
    }
    Some(longest)
}

/// Returns for each interval whether it belongs to an outage: no operation completed, but one was
/// waiting or failed. A later completion shows since when its operation was waiting.
fn silent_intervals(bundle: &Bundle, intervals: &[Completions], width_ns: u64) -> Vec<bool> {
    if !pauses(&bundle.plan) {
        return intervals.iter().map(|interval| interval.count == 0).collect();
    }
    let load = bundle.run.classes.iter().filter(|class| is_of_load(&bundle.plan, class));
    // Operations that completed after the end, or never, waited at most for the longest latency.
    let total_ns = intervals.len() as u64 * width_ns;
    let since = |class: &ClassTotals| match class.unfinished() {
        Some(0) if class.drained == 0 => u64::MAX,
        Some(_) => total_ns.saturating_sub(class.latency_ns_max),
        None => 0,
    };
    let mut waiting_since_ns = load.map(since).min().unwrap_or(0);
    let mut silent = vec![false; intervals.len()];
    for (at, interval) in intervals.iter().enumerate().rev() {
        let end_ns = (at as u64 + 1) * width_ns;
        if interval.count == 0 {
            silent[at] = waiting_since_ns <= end_ns || interval.errors > 0;
        } else {
            waiting_since_ns = waiting_since_ns.min(end_ns.saturating_sub(interval.max_ns));
        }
    }
    silent
}

/// Returns true if the plan may have no operation in flight for a time: all streams of the load have
/// start times, a rate cap or a think time.
fn pauses(plan: &ResolvedPlan) -> bool {
    let Some(matrix) = plan.workload.matrix() else { return false };
    let mut load = matrix.streams.iter().filter(|stream| stream.start_event.is_none());
    load.all(|stream| stream.arrival.is_open() || stream.rate_max_per_s().is_some())
}

/// Returns the largest latency of the load in a part of the run.
pub fn largest_ns(bundle: &Bundle, part: Part) -> Option<u64> {
    let largest = class_rows(bundle).filter_map(|(name, start_ns, duration_ns, data)| {
        let Data::Class { max_ns, .. } = data else { return None };
        let class = bundle.run.class(name)?;
        let middle_ns = start_ns.saturating_add(duration_ns / 2);
        let inside = (part.from_ns..part.to_ns).contains(&middle_ns);
        (inside && is_of_load(&bundle.plan, class)).then_some(max_ns)
    });
    largest.max()
}

/// Returns the number of failed I/Os in a part of the run.
pub fn errors(bundle: &Bundle, part: Part) -> u64 {
    let counts = class_rows(bundle).filter_map(|(name, start_ns, duration_ns, data)| {
        let Data::Gauge(count) = data else { return None };
        let middle_ns = start_ns.saturating_add(duration_ns / 2);
        let inside = (part.from_ns..part.to_ns).contains(&middle_ns);
        (inside && errors_class(name).is_some()).then_some(count as u64)
    });
    counts.fold(0, u64::saturating_add)
}

/// Returns the number of failed I/Os in windows for which the requirement limits errors. The check
/// of such a window judges them.
pub(crate) fn errors_judged_by_windows(bundle: &Bundle) -> u64 {
    let Some(windows) = Windows::of(bundle).filter(|_| bundle.plan.allows_errors()) else {
        return 0;
    };
    let required = bundle.plan.requirement.iter().flat_map(|requirement| &requirement.windows);
    let limited = required.filter(|required| required.limits.errors_max.is_some());
    let parts = limited.filter_map(|required| windows.part(required.window));
    parts.map(|part| errors(bundle, part)).fold(0, u64::saturating_add)
}

/// Returns one window as if it were a separate run, without the streams that events started. `None`
/// if the window is empty.
pub(crate) fn slice_window(bundle: &Bundle, window: Window) -> Option<Bundle> {
    let part = Windows::of(bundle)?.part(window)?;
    Some(slice(bundle, part, |stream| stream.start_event.is_none()))
}

#[cfg(test)]
mod tests;
