//! Charts over time: rates and latencies per kind of I/O, with phases and limits.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{ClassTotals, Driver, EndKind, Phase, PhaseKind};
use plimsoll_evidence::series::{Data, drained_class};
use plimsoll_judge::Verdict;
use plimsoll_judge::events::Windows;
use plimsoll_plan::{LatencyClass, LatencyStatistic, Window};

use super::empty_section;
use super::kinds::{Kind, kinds};
use crate::chart::{Axis, Band, Mark, Plot, Rule, Series};
use crate::document::{Block, Section};
use crate::number::{Letters, Unit};

/// Maximum number of points that are drawn as steps. More points are drawn as a plain line.
const STEPS_MAX: usize = 150;
/// Maximum number of idle intervals that are added. Once it is reached, each further gap becomes a
/// single interval.
const IDLE_MAX: u64 = 100_000;
/// If the measurement is less than this fraction of the run, charts show only the measurement and
/// the warm-up.
const SHARE_OF_RUN_MIN: f64 = 0.3;

/// One interval of one kind of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    start_ns: u64,
    duration_ns: u64,
    phase: u32,
    count: u64,
    sum_ns: u64,
    bytes: u64,
    max_ns: u64,
}

pub(crate) fn section(bundle: &Bundle, verdict: &Verdict) -> Section {
    let time = time_axis(bundle);
    let window = (time.low.unwrap_or(0.0), time.high.unwrap_or(f64::INFINITY));
    let timed = |kind: Kind| {
        let slots = slots(bundle, window, |class| kind.includes(class));
        KindTimeline { kind, slots }
    };
    // Upkeep consists of few I/Os, so only the tables show it.
    let shown = |kind: &Kind| kind.group != "upkeep" && kind.group != "phase";
    let all: Vec<KindTimeline> = kinds(bundle).into_iter().filter(shown).map(timed).collect();
    if all.iter().all(|timed| timed.slots.is_empty()) {
        return empty_section();
    }
    let bands = bands(bundle, (time.low.unwrap_or(0.0), time.high.unwrap_or(0.0)));
    let rate = rate_plot(bundle, &all, time.clone(), verdict).bands(bands.clone());
    let latency = latency_plot(bundle, &all, time.clone()).bands(bands.clone());
    let largest = largest_plot(&all, time).bands(bands);
    Section::full("time", "Over time")
        .with(Block::Chart(Box::new(rate)))
        .with(Block::Chart(Box::new(latency)))
        .with(Block::Chart(Box::new(largest)))
}

/// For each interval of the shown time, adds up the rows of the selected classes. The close phase
/// is excluded, because its flush would dominate the scale.
fn slots(
    bundle: &Bundle,
    (low, high): (f64, f64),
    takes: impl Fn(&ClassTotals) -> bool,
) -> Vec<Slot> {
    let of_close = |phase: u32| {
        let phase = bundle.run.phases.get(phase as usize);
        phase.is_some_and(|phase| phase.kind == PhaseKind::Close)
    };
    let names: Vec<&str> =
        bundle.run.classes.iter().filter(|c| takes(c)).map(|c| c.name.as_str()).collect();
    let mut slots: BTreeMap<(u32, u64), Slot> = BTreeMap::new();
    for row in &bundle.series {
        let Data::Class { count, sum_ns, bytes, max_ns } = row.data else { continue };
        let middle = row.start_ns as f64 + row.duration_ns as f64 / 2.0;
        let is_shown = (low..=high).contains(&middle) && !of_close(row.phase);
        if row.duration_ns == 0 || !is_shown || !names.contains(&row.name.as_str()) {
            continue;
        }
        let slot = slots.entry((row.phase, row.start_ns)).or_insert(Slot {
            start_ns: row.start_ns,
            phase: row.phase,
            ..Slot::default()
        });
        slot.duration_ns = slot.duration_ns.max(row.duration_ns);
        slot.count += count;
        slot.sum_ns = slot.sum_ns.saturating_add(sum_ns);
        slot.bytes += bytes;
        slot.max_ns = slot.max_ns.max(max_ns);
    }
    let mut slots = merge_short(with_idle(bundle, slots.into_values().collect()));
    // I/Os that were still running at the end of the measurement count in its last interval.
    for row in &bundle.series {
        if let (Some(class), Data::Class { max_ns, .. }) = (drained_class(&row.name), row.data)
            && names.contains(&class)
            && let Some(last) = slots.iter_mut().rev().find(|slot| slot.phase == row.phase)
        {
            last.max_ns = last.max_ns.max(max_ns);
        }
    }
    slots
}

/// Adds intervals in which no I/O completed, because Plimsoll records no rows for them. In results
/// of other tools a missing row may have been lost, so nothing is added.
fn with_idle(bundle: &Bundle, slots: Vec<Slot>) -> Vec<Slot> {
    if bundle.run.driver == Driver::Foreign {
        return slots;
    }
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let mut all: Vec<Slot> = Vec::with_capacity(slots.len());
    let mut left = IDLE_MAX;
    let mut idle = |all: &mut Vec<Slot>, phase: u32, from_ns: u64, to_ns: u64| {
        // The start of an interval may deviate a little.
        let gap_ns = to_ns.saturating_sub(from_ns);
        let count = gap_ns.saturating_add(interval_ns / 2) / interval_ns;
        let count = count.min(left.max(1));
        left = left.saturating_sub(count);
        for i in 0..count {
            let start_ns = from_ns + gap_ns / count * i;
            all.push(Slot { start_ns, duration_ns: gap_ns / count, phase, ..Slot::default() });
        }
    };
    let is_loaded = |phase: &&Phase| matches!(phase.kind, PhaseKind::WarmUp | PhaseKind::Measure);
    let phase_of = |slot: &Slot| bundle.run.phases.get(slot.phase as usize).filter(is_loaded);
    for slot in slots {
        if let Some(phase) = phase_of(&slot) {
            let before = all.last().filter(|last: &&Slot| last.phase == slot.phase);
            let from_ns = before.map_or(phase.start_ns, |last| last.start_ns + last.duration_ns);
            idle(&mut all, slot.phase, from_ns, slot.start_ns);
        }
        all.push(slot);
    }
    // The last rows of a run that failed may be missing.
    if bundle.run.end.kind == EndKind::Completed
        && let Some(last) = all.last().copied()
        && let Some(phase) = phase_of(&last)
    {
        let to_ns = phase.start_ns + phase.duration_ns;
        idle(&mut all, last.phase, last.start_ns + last.duration_ns, to_ns);
    }
    all
}

/// Merges an interval into the previous one if it is less than half as long. A rate over a few
/// milliseconds would be meaningless.
fn merge_short(slots: Vec<Slot>) -> Vec<Slot> {
    let mut merged: Vec<Slot> = Vec::with_capacity(slots.len());
    for slot in slots {
        match merged.last_mut() {
            Some(last) if last.phase == slot.phase && slot.duration_ns < last.duration_ns / 2 => {
                last.duration_ns += slot.duration_ns;
                last.count += slot.count;
                last.sum_ns = last.sum_ns.saturating_add(slot.sum_ns);
                last.bytes += slot.bytes;
                last.max_ns = last.max_ns.max(slot.max_ns);
            }
            _ => merged.push(slot),
        }
    }
    merged
}

/// A limit on a maximum applies to the largest of the means over intervals. Returns the length of
/// these intervals if the measurement contains enough of them. Otherwise returns 0, which selects
/// the recorded intervals.
fn judged_width_ns(bundle: &Bundle) -> u64 {
    const MEANS_MIN: u64 = 30;
    let (Some(requirement), Some(measure)) = (&bundle.plan.requirement, bundle.run.measure())
    else {
        return 0;
    };
    let width_ns = requirement.latency_max_of_ns;
    if width_ns > 0 && measure.duration_ns / width_ns >= MEANS_MIN { width_ns } else { 0 }
}

/// Combines neighbouring intervals of a phase into intervals of this length. The first of them
/// begins at the start of the phase.
fn widen(slots: &[Slot], width_ns: u64) -> Vec<Slot> {
    if width_ns == 0 {
        return slots.to_vec();
    }
    let mut wide: Vec<Slot> = Vec::new();
    let mut phase = None;
    for slot in slots {
        let (at, start_ns) = phase.unwrap_or((slot.phase, slot.start_ns));
        let start_ns = if at == slot.phase { start_ns } else { slot.start_ns };
        phase = Some((slot.phase, start_ns));
        let interval = |slot: &Slot| (slot.start_ns + slot.duration_ns / 2 - start_ns) / width_ns;
        match wide.last_mut() {
            Some(last) if last.phase == slot.phase && interval(last) == interval(slot) => {
                last.duration_ns = slot.start_ns + slot.duration_ns - last.start_ns;
                last.count += slot.count;
                last.sum_ns = last.sum_ns.saturating_add(slot.sum_ns);
                last.bytes += slot.bytes;
                last.max_ns = last.max_ns.max(slot.max_ns);
            }
            _ => wide.push(*slot),
        }
    }
    merge_short(wide)
}

/// Returns the points of a series, with gaps for intervals that are unknown.
fn points(
    slots: &[Slot],
    steps: bool,
    of: impl Fn(&Slot) -> Option<f64>,
) -> Vec<(f64, Option<f64>)> {
    let mut points = Vec::with_capacity(slots.len() + 2);
    let mut end_ns: Option<u64> = None;
    for slot in slots {
        // The start of an interval may deviate a little.
        if let Some(end) = end_ns
            && slot.start_ns > end + slot.duration_ns / 4
        {
            points.push((end as f64, None));
        }
        let x = if steps { slot.start_ns } else { slot.start_ns + slot.duration_ns / 2 };
        points.push((x as f64, of(slot)));
        end_ns = Some(slot.start_ns + slot.duration_ns);
    }
    if let (true, Some(end), Some(last)) = (steps, end_ns, slots.last()) {
        points.push((end as f64, of(last)));
    }
    points
}

fn mark(name: &str, colour: u8, slots: &[Slot], of: impl Fn(&Slot) -> Option<f64>) -> Mark {
    let steps = slots.len() <= STEPS_MAX;
    let series = Series { name: name.to_owned(), colour, points: points(slots, steps, of) };
    if steps { Mark::Steps(series) } else { Mark::Line(series) }
}

/// A kind of I/O over time.
struct KindTimeline {
    kind: Kind,
    slots: Vec<Slot>,
}

impl KindTimeline {
    fn mark(&self, of: impl Fn(&Slot) -> Option<f64>) -> Mark {
        mark(&self.kind.label, self.kind.colour(), &self.slots, of)
    }

    /// Returns true if limits apply to this kind of I/O.
    fn is_judged(&self) -> bool {
        self.kind.is_judged()
    }
}

/// Returns the time axis: the whole run, or only the measurement and warm-up if the other phases
/// would dominate.
fn time_axis(bundle: &Bundle) -> Axis {
    let axis = Axis::linear("time since the start of the run", Unit::Elapsed);
    let end = |kinds: &[PhaseKind]| {
        let phases = bundle.run.phases.iter().filter(|phase| kinds.contains(&phase.kind));
        phases.map(|phase| (phase.start_ns, phase.start_ns + phase.duration_ns)).fold(
            None,
            |range: Option<(u64, u64)>, (from, to)| {
                Some(range.map_or((from, to), |(low, high)| (low.min(from), high.max(to))))
            },
        )
    };
    let whole = bundle.run.duration_ns.max(1) as f64;
    match (bundle.run.measure(), end(&[PhaseKind::WarmUp, PhaseKind::Measure])) {
        (Some(measure), Some((from, to)))
            if (measure.duration_ns as f64) < whole * SHARE_OF_RUN_MIN =>
        {
            axis.from_to(from as f64, to as f64)
        }
        _ => axis.from_to(0.0, whole),
    }
}

fn bands(bundle: &Bundle, (low, high): (f64, f64)) -> Vec<Band> {
    let phases = bundle.run.phases.iter().map(|phase| Band {
        from: (phase.start_ns as f64).max(low),
        to: ((phase.start_ns + phase.duration_ns) as f64).min(high),
        label: phase.kind.label().to_owned(),
        clear: phase.kind == PhaseKind::Measure,
    });
    let shown = |band: &Band| band.to > band.from;
    let Some(windows) = Windows::of(bundle) else { return phases.filter(shown).collect() };
    let parts = windows.parts.iter().map(|part| Band {
        from: (part.from_ns as f64).max(low),
        to: (part.to_ns as f64).min(high),
        label: part.window.word().to_owned(),
        clear: part.window != Window::During,
    });
    // The windows around the event replace the band of the measured phase.
    let mut bands: Vec<Band> =
        phases.filter(|band| !band.clear).chain(parts).filter(shown).collect();
    bands.sort_by(|a, b| a.from.total_cmp(&b.from));
    bands
}

fn rate_plot(bundle: &Bundle, all: &[KindTimeline], time: Axis, verdict: &Verdict) -> Plot {
    let window = (time.low.unwrap_or(0.0), time.high.unwrap_or(f64::INFINITY));
    let per_second = |slot: &Slot| Some(slot.count as f64 * 1e9 / slot.duration_ns as f64);
    let mut plot = Plot::new("rate", "I/Os per second", time, Axis::linear("I/Os", Unit::Rate));
    let transactional = all.iter().filter(|timed| timed.kind.group == "transactional").count();
    if transactional > 1 {
        let slots = slots(bundle, window, |class| class.group == "transactional");
        plot = plot.mark(mark("transactional I/Os (reads and writes)", 6, &slots, per_second));
    }
    // These classes are not drawn, because their I/Os are already counted: a durable write is also
    // a write, and a first byte belongs to a read.
    let counted = |group: &str| matches!(group, "durable" | "first_byte");
    for timed in all.iter().filter(|timed| !counted(&timed.kind.group)) {
        plot = plot.mark(timed.mark(per_second));
    }
    if let Some(required) = verdict.required_iops_per_s {
        let shown = Unit::Rate.show_round(required, Letters::Unicode);
        plot = plot.rule(Rule::target(required, format!("required, transactional: {shown}")));
    }
    plot.says("Rate of the I/Os that completed in each interval.")
}

fn latency_plot(bundle: &Bundle, all: &[KindTimeline], time: Axis) -> Plot {
    let mean = |slot: &Slot| (slot.count > 0).then(|| slot.sum_ns as f64 / slot.count as f64);
    let mut plot =
        Plot::new("latency-time", "Average latency", time, Axis::log("latency", Unit::Latency));
    let width_ns = judged_width_ns(bundle);
    for timed in all.iter().filter(|timed| timed.is_judged()) {
        let slots = widen(&timed.slots, width_ns);
        plot = plot.mark(mark(&timed.kind.label, timed.kind.colour(), &slots, mean));
    }
    let limits = bundle.plan.requirement.iter().flat_map(|requirement| &requirement.limits);
    let mut labels: BTreeMap<(u64, &str), Vec<&str>> = BTreeMap::new();
    for limit in limits {
        let statistic = match limit.statistic {
            LatencyStatistic::Avg => "average",
            LatencyStatistic::Max => "maximum",
            _ => continue,
        };
        let class = match limit.class {
            LatencyClass::DbRead => "database reads",
            LatencyClass::DbWrite => "database writes",
            LatencyClass::LogWrite => "log writes",
            LatencyClass::Read => "reads",
            LatencyClass::Write => "writes",
            LatencyClass::Sync => "flushes",
            LatencyClass::FirstByte => "first bytes",
            LatencyClass::Metadata => "metadata",
            LatencyClass::All => "all",
        };
        labels.entry((limit.limit_ns, statistic)).or_default().push(class);
    }
    for ((limit_ns, statistic), classes) in labels {
        let shown = Unit::Latency.show_round(limit_ns as f64, Letters::Unicode);
        let label = format!("limit {shown}: {statistic} of {}", classes.join(" and "));
        plot = plot.rule(Rule::limit(limit_ns as f64, label));
    }
    plot.says(match width_ns {
        0 => "Mean of each interval, on a logarithmic axis.".to_owned(),
        ns => format!(
            "Means over intervals of {}, on a logarithmic axis. A limit on the maximum latency is \
             compared with the largest of these means.",
            crate::number::elapsed(ns as f64)
        ),
    })
}

fn largest_plot(all: &[KindTimeline], time: Axis) -> Plot {
    let largest = |slot: &Slot| (slot.count > 0).then_some(slot.max_ns as f64);
    let mut plot = Plot::new(
        "largest-time",
        "Latency of the slowest I/O in each interval",
        time,
        Axis::log("latency", Unit::Latency),
    );
    for timed in all.iter().filter(|timed| timed.is_judged()) {
        plot = plot.mark(timed.mark(largest));
    }
    plot.says("This chart shows stalls that averages hide. Its values are not judged.")
        .size(860.0, 220.0)
}

/// Returns a sparkline of the rate, for the terminal.
pub(super) fn spark(bundle: &Bundle) -> Block {
    let measure = bundle.run.phases.iter().position(|phase| phase.kind == PhaseKind::Measure);
    let values: Vec<Option<f64>> =
        slots(bundle, (0.0, f64::INFINITY), |class| class.group == "transactional")
            .iter()
            .filter(|slot| Some(slot.phase as usize) == measure)
            .map(|slot| Some(slot.count as f64 * 1e9 / slot.duration_ns as f64))
            .collect();
    let finite = || values.iter().flatten().copied();
    let least = finite().fold(f64::INFINITY, f64::min);
    let largest = finite().fold(f64::NEG_INFINITY, f64::max);
    let show = |rate| Unit::Rate.show(rate, Letters::Unicode);
    let note = match least <= largest {
        true => format!("{} – {}", show(least), show(largest)),
        false => String::new(),
    };
    Block::Spark { name: "transactional I/Os, measured phase".to_owned(), values, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(start_s: u64, duration_ms: u64, count: u64) -> Slot {
        Slot {
            start_ns: start_s * 1_000_000_000,
            duration_ns: duration_ms * 1_000_000,
            count,
            ..Slot::default()
        }
    }

    #[test]
    fn a_short_tail_joins_the_interval_before_it() {
        let merged = merge_short(vec![slot(0, 1_000, 10), slot(1, 1_000, 9), slot(2, 3, 4)]);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[1].count, 13);
        assert_eq!(merged[1].duration_ns, 1_003_000_000);
    }

    #[test]
    fn intervals_begin_with_their_phase() {
        let mut slots: Vec<Slot> = (0..7).map(|s| slot(s, 1_000, 1)).collect();
        slots.extend((7..10).map(|s| Slot { phase: 1, ..slot(s, 1_000, 5) }));
        let wide = widen(&slots, 3_000_000_000);
        let counts: Vec<u64> = wide.iter().map(|slot| slot.count).collect();
        assert_eq!(counts, [3, 4, 15]);
        assert_eq!(wide[1].duration_ns, 4_000_000_000);
        assert_eq!(wide[2].start_ns, 7_000_000_000);
    }

    #[test]
    fn missing_intervals_are_gaps() {
        let slots = [slot(0, 1_000, 1), slot(5, 1_000, 2)];
        let points = points(&slots, true, |slot| Some(slot.count as f64));
        assert_eq!(points, [(0., Some(1.)), (1e9, None), (5e9, Some(2.)), (6e9, Some(2.))]);
    }
}
