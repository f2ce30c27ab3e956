//! Renders the page fragment of the current run: live values and charts.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use plimsoll_live::charts::{PER_DECADE, Series, Sums};
use plimsoll_live::gauges::SHARE_PARTS;
use plimsoll_live::state::{ClassStatus, DeviceStatus, State};
use plimsoll_report::chart::plot::{HeatMap, Series as Line};
use plimsoll_report::chart::{Axis, Mark, Plot};
use plimsoll_report::number::{Letters, Unit, elapsed};
use plimsoll_report::time::utc;
use plimsoll_runner::listener::HostStatus;
use plimsoll_runner::places::Places;
use plimsoll_runner::prompt;

use crate::request::quoted;

/// Maximum number of kinds of operations for which a chart has separate lines.
const LINES_MAX: usize = 4;

/// Renders status and tables as HTML, with the prompts of this user's runs.
///
/// # Errors
/// A template has a defect.
pub fn status_and_tables(
    state: &State,
    templates: &Environment<'_>,
    places: &Places,
) -> Result<(String, String), minijinja::Error> {
    let show = |unit: Unit, value: f64| unit.show(value, Letters::Unicode);
    let maybe = |unit: Unit, value: Option<f64>| value.map_or("n/a".into(), |v| show(unit, v));
    let phase = state.phase.as_ref().map(|phase| {
        let lasts_ns = phase.left_ns.map(|left| left.saturating_add(phase.elapsed_ns));
        let share = match lasts_ns {
            Some(lasts_ns) if lasts_ns > 0 => Some(phase.elapsed_ns as f64 / lasts_ns as f64),
            _ => None,
        };
        context! {
            kind => phase.kind.as_str(),
            elapsed => elapsed(phase.elapsed_ns as f64),
            left => phase.left_ns.map(|ns| elapsed(ns as f64)),
            share => share.map(|share| (100.0 * share.clamp(0.0, 1.0)).round()),
            done => (phase.done_bytes < phase.total_bytes).then(|| show(Unit::Size, phase.done_bytes as f64)),
            total => show(Unit::Size, phase.total_bytes as f64),
        }
    });
    let class = |(name, class): (&String, &ClassStatus)| {
        let latency = |ns: Option<u64>| maybe(Unit::Latency, ns.map(|ns| ns as f64));
        context! {
            name,
            rate => show(Unit::Rate, class.rate_ops_per_s),
            bytes => maybe(Unit::Bandwidth, Some(class.rate_bytes_per_s).filter(|_| class.bytes > 0)),
            avg => latency(class.latency_ns_avg),
            p50 => latency(class.latency_ns_p50),
            p99 => latency(class.latency_ns_p99),
            p999 => latency(class.latency_ns_p999),
            max => latency(Some(class.latency_ns_max).filter(|ns| *ns > 0)),
        }
    };
    let device = |(name, device): (&String, &DeviceStatus)| {
        context! {
            name,
            reads => show(Unit::Rate, device.reads_per_s),
            read_bytes => show(Unit::Bandwidth, device.read_bytes_per_s),
            writes => show(Unit::Rate, device.writes_per_s),
            written_bytes => show(Unit::Bandwidth, device.written_bytes_per_s),
            busy => maybe(Unit::Share, device.busy_share),
        }
    };
    let rates = state.hosts.values().map(|host| host.rate_ops_per_s);
    let average = rates.sum::<f64>() / state.hosts.len().max(1) as f64;
    let host = |(name, host): (&String, &HostStatus)| {
        let share = Some(host.rate_ops_per_s / average).filter(|_| average > 0.0);
        context! {
            name,
            phase => host.phase.as_str(),
            rate => show(Unit::Rate, host.rate_ops_per_s),
            share => maybe(Unit::Share, share),
            bytes => show(Unit::Bandwidth, host.rate_bytes_per_s),
            avg => maybe(Unit::Latency, host.latency_ns_avg.map(|ns| ns as f64)),
        }
    };
    let ended = state.ended.iter().map(|ended| {
        context! {
            path => quoted(&ended.run_id),
            run_id => ended.run_id.as_str(),
            verdict => ended.verdict.as_str(),
            reason => ended.reason.as_str(),
            tone => tone(&ended.verdict),
        }
    });
    let phases = state.phases.iter().map(|phase| {
        context! { kind => phase.kind.as_str(), took => elapsed(phase.duration_ns as f64), note => phase.note.as_str() }
    });
    let findings = state.findings.iter().map(|finding| {
        let outcome = format!("{:?}", finding.outcome).to_lowercase();
        context! { rule => finding.rule.as_str(), outcome, says => finding.says.as_str() }
    });
    let reads_at_devices = reads_at_devices(state);
    let access = [("read", &state.reads), ("written", &state.writes)];
    let access = access.into_iter().filter(|(_, now)| now.working_set_bytes.is_some());
    let access = access.map(|(side, now)| {
        context! {
            side,
            working_set => maybe(Unit::Size, now.working_set_bytes.map(|bytes| bytes as f64)),
            random => now.random_share.map(|share| show(Unit::Share, share)),
        }
    });
    let values = context! {
        plan => state.plan.as_str(),
        started => (state.started_unix_ns > 0).then(|| utc(state.started_unix_ns)),
        is_under_way => state.is_under_way,
        prompts => state.is_under_way.then(|| prompts(places)),
        is_silent => state.is_silent,
        is_stopping => state.is_stopping,
        process => state.process,
        since => (state.is_under_way && state.started_unix_ns > 0).then(|| since(state.started_unix_ns)),
        part => state.part.as_deref(),
        phase,
        phases => phases.collect::<Vec<_>>(),
        rate => maybe(Unit::Rate, state.rate_ops_per_s),
        bytes => maybe(Unit::Bandwidth, state.rate_bytes_per_s),
        cpu => state.cpu_busy_share.map(|share| show(Unit::Share, share)),
        classes => state.classes.iter().map(class).collect::<Vec<_>>(),
        hosts => state.hosts.iter().map(host).collect::<Vec<_>>(),
        devices => state.devices.iter().map(device).collect::<Vec<_>>(),
        reads_at_devices,
        access => access.collect::<Vec<_>>(),
        findings => findings.collect::<Vec<_>>(),
        notes => Value::from(Serde(&state.notes)),
        ended => ended.collect::<Vec<_>>(),
        together => state.together.as_deref().map(quoted),
        failed => state.failed.as_ref().map(|failed| Value::from(Serde(failed))),
    };
    let drawn = |name: &str| templates.get_template(name)?.render(&values);
    Ok((drawn("live_now.html")?, drawn("live_more.html")?))
}

/// Returns the prompts on this host that wait for confirmation.
pub fn prompts(places: &Places) -> Vec<Value> {
    let all = prompt::all(places).into_iter();
    all.map(|one| context! { run => one.run_id, number => one.number, text => one.text }).collect()
}

/// Returns a sentence about the sources of reads; `None` if there are no reads or no device is
/// visible.
fn reads_at_devices(state: &State) -> Option<String> {
    let (name, most) = state.devices.iter().max_by_key(|(_, device)| device.read_bytes)?;
    if state.read_bytes == 0 || !state.is_under_way {
        return None;
    }
    let share = most.read_bytes as f64 / state.read_bytes as f64;
    let shown = Unit::Share.show(share, Letters::Unicode);
    Some(match share {
        0.0..1.05 => format!(
            "In this phase, {name} read {shown} of the bytes that the load read; the other bytes \
             came from other devices or from a cache."
        ),
        _ => format!(
            "In this phase, {name} read {shown} of the bytes that the load read: the device's \
             blocks are larger than the requests, or other processes also read from this device."
        ),
    })
}

/// Returns the time elapsed since `unix_ns`; `None` if the clock was set back.
fn since(unix_ns: u64) -> Option<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    let now_ns = u64::try_from(now.as_nanos()).ok()?;
    Some(elapsed(now_ns.checked_sub(unix_ns)? as f64))
}

/// Returns the display class of a verdict.
fn tone(verdict: &str) -> &'static str {
    match verdict {
        "PASS" => "good",
        "FAIL" | "INVALID" => "bad",
        "INCONCLUSIVE" => "warn",
        _ => "plain",
    }
}

/// Renders the charts as HTML; empty before the first interval.
pub fn charts(state: &State) -> String {
    let places = &state.charts;
    let all = [
        rate(state),
        latency(state),
        heat(state),
        hosts(state),
        bytes_moved(state),
        device_and_cache_split(state, "read"),
        device_and_cache_split(state, "written"),
        stacked("live-read-of", "Where reads came from", &places.read_of),
        stacked("live-written-to", "Where writes went", &places.written_to),
        means("live-working-set", "Working set", &places.working_set, Unit::Size, 1.0),
        means("live-random", "Share of random I/Os", &places.random, Unit::Share, SHARE_PARTS),
    ];
    all.into_iter().flatten().map(|plot| plot.figure()).collect()
}

/// Returns a chart's lines for sampled values. The samples in each column are averaged.
fn means(id: &str, title: &str, series: &Series, unit: Unit, parts: f64) -> Option<Plot> {
    let value =
        |sums: &Sums| (sums.count > 0).then(|| sums.sum_ns as f64 / sums.count as f64 / parts);
    plot_unless_empty(id, title, Axis::linear("read, written", unit), lines(series, value))
}

fn kinds(series: &Series) -> Vec<&str> {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for (kind, sums) in series.columns.values().flatten() {
        *counts.entry(kind).or_default() += sums.count;
    }
    let mut kinds: Vec<(&str, u64)> = counts.into_iter().collect();
    kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    kinds.into_iter().take(LINES_MAX).map(|(kind, _)| kind).collect()
}

/// Returns a chart's lines over time, one for each kind of operation.
fn lines(series: &Series, value: impl Fn(&Sums) -> Option<f64>) -> Vec<Mark> {
    let columns = &series.columns;
    let line = |(colour, kind): (usize, &str)| {
        let points = columns.iter().map(|(start_ns, column)| {
            let sums = column.get(kind).copied().unwrap_or_default();
            (*start_ns as f64, value(&sums))
        });
        let name = kind.replace('_', " ");
        Mark::Line(Line { name, colour: colour as u8, points: points.collect() })
    };
    kinds(series).into_iter().enumerate().map(line).collect()
}

fn plot_unless_empty(id: &str, title: &str, y: Axis, marks: Vec<Mark>) -> Option<Plot> {
    let is_empty = marks.iter().all(|mark| match mark {
        Mark::Line(line) => line.points.len() < 2,
        _ => false,
    });
    let plot = Plot::new(id, title, Axis::linear("time of the run", Unit::Elapsed), y);
    (!marks.is_empty() && !is_empty).then_some(Plot { marks, ..plot }.size(860.0, 200.0))
}

fn rate(state: &State) -> Option<Plot> {
    let mut series = state.charts.series.clone();
    let width_s = series.width_ns as f64 / 1e9;
    // Intervals in which no operation completed have no rows.
    let ends = series.columns.first_key_value().zip(series.columns.last_key_value());
    if let Some((first, last)) = ends.map(|((first, _), (last, _))| (*first, *last)) {
        let starts = (first..last).step_by(series.width_ns.max(1) as usize);
        for start_ns in starts {
            series.columns.entry(start_ns).or_default();
        }
    }
    let marks = lines(&series, |sums| Some(sums.count as f64 / width_s));
    plot_unless_empty("live-rate", "Rate", Axis::linear("operations", Unit::Rate), marks)
}

fn latency(state: &State) -> Option<Plot> {
    let mean = |sums: &Sums| (sums.count > 0).then(|| sums.sum_ns as f64 / sums.count as f64);
    let marks = lines(&state.charts.series, mean);
    plot_unless_empty(
        "live-latency",
        "Mean latency",
        Axis::linear("mean latency", Unit::Latency),
        marks,
    )
}

/// Returns the chart of the bytes that the load requested and the bytes that devices transferred.
/// The difference is due to caches.
fn bytes_moved(state: &State) -> Option<Plot> {
    let moved = &state.charts.moved;
    let width_s = moved.width_ns as f64 / 1e9;
    let mut marks = lines(moved, |sums| Some(sums.count as f64 / width_s));
    for mark in &mut marks {
        if let Mark::Line(line) = mark {
            // The last column is removed, because it is incomplete.
            line.points.pop();
        }
    }
    let title = "Throughput of load and devices";
    plot_unless_empty("live-moved", title, Axis::linear("bytes", Unit::Bandwidth), marks)
}

/// Returns a chart in which the rates of all hosts of a fleet are stacked.
fn hosts(state: &State) -> Option<Plot> {
    stacked("live-hosts", "Rate by host", &state.charts.hosts)
}

/// If the target does not report which layer served the bytes of the load, returns a chart that
/// estimates it. The chart shows how many bytes the busiest underlying device transferred. The
/// layers above this device served the remaining bytes.
fn device_and_cache_split(state: &State, way: &str) -> Option<Plot> {
    let (reported, title, above) = match way {
        "read" => (&state.charts.read_of, "Where reads came from", "caches above the device"),
        _ => (
            &state.charts.written_to,
            "Where writes went",
            "caches above the device (not yet written back)",
        ),
    };
    if !reported.columns.is_empty() {
        return None;
    }
    let moved = &state.charts.moved;
    let ends = format!(" {way}");
    let devices = kinds(moved).into_iter().filter_map(|kind| kind.strip_suffix(&ends));
    let device = devices.into_iter().find(|device| *device != "load")?.to_owned();
    let (of_load, of_device) = (format!("load {way}"), format!("{device} {way}"));
    let mut split = Series { width_ns: moved.width_ns, ..Series::default() };
    for (at, column) in &moved.columns {
        let bytes = |kind: &String| column.get(kind).map_or(0, |sums| sums.count);
        let (load, below) = (bytes(&of_load), bytes(&of_device));
        let parts = [(&device, load.min(below)), (&above.to_owned(), load.saturating_sub(below))];
        let parts = parts.map(|(name, count)| (name.clone(), Sums { count, sum_ns: 0 }));
        split.columns.insert(*at, parts.into_iter().collect());
    }
    // The last column is removed, because it is incomplete.
    split.columns.pop_last();
    let id = format!("live-answered-{way}");
    stacked_of(&id, title, &split, Axis::linear("bytes", Unit::Bandwidth))
}

/// Returns a chart in which the counts of all kinds are stacked, in the order of their names.
fn stacked(id: &str, title: &str, series: &Series) -> Option<Plot> {
    stacked_of(id, title, series, Axis::linear("I/Os", Unit::Rate))
}

fn stacked_of(id: &str, title: &str, series: &Series, y: Axis) -> Option<Plot> {
    let width_s = series.width_ns as f64 / 1e9;
    let columns = || series.columns.values();
    let kinds: std::collections::BTreeSet<&str> = columns()
        .flat_map(|column| column.iter().filter(|(_, sums)| sums.count > 0))
        .map(|(kind, _)| kind.as_str())
        .collect();
    let mut sums: Vec<(f64, f64)> = series.columns.keys().map(|at| (*at as f64, 0.0)).collect();
    let area = |(colour, kind): (usize, &str)| {
        for ((_, sum), column) in sums.iter_mut().zip(columns()) {
            *sum += column.get(kind).map_or(0.0, |of| of.count as f64 / width_s);
        }
        let points = sums.iter().map(|(at, sum)| (*at, Some(*sum))).collect();
        Mark::Area(Line { name: kind.to_owned(), colour: colour as u8, points })
    };
    let mut marks: Vec<Mark> = kinds.into_iter().enumerate().map(area).collect();
    // The largest total is drawn first, so that smaller areas remain visible.
    marks.reverse();
    let is_drawn = !marks.is_empty() && series.columns.len() > 1;
    let x = Axis::linear("time of the run", Unit::Elapsed);
    let plot = Plot::new(id, title, x, y);
    is_drawn.then_some(Plot { marks, ..plot }.size(860.0, 200.0))
}

fn heat(state: &State) -> Option<Plot> {
    let columns = &state.charts.heat.columns;
    let rows = columns.values().flat_map(|column| column.keys());
    let (low, high) = (rows.clone().min()?, rows.max()?);
    let (first, last) = (columns.keys().next()?, columns.keys().next_back()?);
    let width_ns = state.charts.heat.width_ns;
    let count = (last - first) / width_ns + 1;
    let x_edges = (0..=count).map(|at| (first + at * width_ns) as f64).collect();
    let y_edges = (*low..=high + 1).map(|row| 10f64.powf(f64::from(row) / PER_DECADE)).collect();
    let cell = |row: i32, at: u64| columns.get(&(first + at * width_ns))?.get(&row).copied();
    let cells = (*low..=*high).flat_map(|row| (0..count).map(move |at| (row, at)));
    let cells = cells.map(|(row, at)| cell(row, at).map(|n| n as f64)).collect();
    let map = HeatMap {
        x_edges,
        y_edges,
        cells,
        unit: Unit::Count,
        title: "I/Os".to_owned(),
        log: true,
        about: None,
        values: false,
    };
    let x = Axis::linear("time of the run", Unit::Elapsed);
    let plot = Plot::new(
        "live-heat",
        "Latency distribution over time",
        x,
        Axis::log("latency", Unit::Latency),
    );
    Some(plot.mark(Mark::Heat(map)).size(860.0, 240.0))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::run::PhaseKind;
    use plimsoll_evidence::series::{Data, Row};
    use plimsoll_runner::run::Event;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn at(second: u64, name: &str, data: Data) -> Event {
        let (start_ns, duration_ns) = (second * SECOND_NS, SECOND_NS);
        Event::Interval(Row { phase: 0, start_ns, duration_ns, name: name.into(), data })
    }

    fn state(gauges: &[(&str, f64)]) -> State {
        let mut state = State::new("p", 0);
        state.apply(Event::PhaseBegan { kind: PhaseKind::Measure, expected_ns: None });
        for second in 0..5 {
            let read = Data::Class { count: 100, sum_ns: 100, bytes: 4_000_000, max_ns: 1 };
            state.apply(at(second, "load.read", read));
            for (name, value) in gauges {
                state.apply(at(second, name, Data::Gauge(*value)));
            }
        }
        state
    }

    #[test]
    fn where_reads_came_from_is_told_by_the_device_that_moved_most_and_not_where_there_is_none() {
        let drawn =
            charts(&state(&[("device.md0.read_bytes", 9e5), ("device.sda.read_bytes", 1e6)]));
        assert!(drawn.contains("live-answered-read"), "{drawn}");
        assert!(
            drawn.contains("caches above the device") && !drawn.contains("live-answered-written")
        );
        assert!(!charts(&state(&[])).contains("live-answered"), "what is not seen is not reported");
        let reported =
            charts(&state(&[("device.sda.read_bytes", 1e6), ("model.node0.read.dram", 5.0)]));
        assert!(
            reported.contains("live-read-of") && !reported.contains("live-answered-read"),
            "it tells itself"
        );
    }

    #[test]
    fn seconds_without_an_answer_have_a_rate_of_zero() {
        let mut state = state(&[]);
        let read = Data::Class { count: 100, sum_ns: 100, bytes: 4_000_000, max_ns: 1 };
        state.apply(at(7, "load.read", read));
        let Some(Mark::Line(line)) = rate(&state).and_then(|plot| plot.marks.into_iter().next())
        else {
            panic!("no line");
        };
        let rates: Vec<Option<f64>> = line.points.iter().map(|(_, rate)| *rate).collect();
        let (busy, idle) = (Some(100.0), Some(0.0));
        assert_eq!(rates, [busy, busy, busy, busy, busy, idle, idle, busy]);
    }
}
