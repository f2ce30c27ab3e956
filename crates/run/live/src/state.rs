//! Live state of a run. It is aggregated only from the run's events, in bounded memory.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::series::{Data, Row, drained_class, operation_of};
use plimsoll_judge::finding::Finding;
use plimsoll_record::progress::Progress;
use plimsoll_runner::listener::HostStatus;
use plimsoll_runner::run::Event;
use serde::{Deserialize, Serialize};

use crate::charts::{Charts, SECOND_NS, Sums, entry};

/// Maximum number of classes; a plan may have thousands of databases.
const CLASSES_MAX: usize = 128;
/// Maximum number of devices.
const DEVICES_MAX: usize = 32;
/// Maximum number of messages; the oldest are dropped.
const NOTES_MAX: usize = 40;
/// Maximum number of listed runs; the oldest are dropped.
const ENDED_MAX: usize = 50;
/// Longest time to which the rate in a fleet's report applies. Reports are about a second apart; if
/// none arrived for longer, the rate of this time is unknown.
const FLEET_REPORT_NS_MAX: u64 = 2 * SECOND_NS;

/// State of the current run, or of the last run after it has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Process id; `None` for this process.
    pub process: Option<u32>,
    pub plan: String,
    /// Start time of the run.
    pub started_unix_ns: u64,
    /// True while the run is active.
    pub is_under_way: bool,
    /// True if the last request to the process timed out (the process may be stopped). The other
    /// fields are from the last successful request.
    pub is_silent: bool,
    /// True after a stop was requested.
    pub is_stopping: bool,
    /// Name of the current stage, step, point or run. `None` if the work has only one part.
    pub part: Option<String>,
    pub phase: Option<CurrentPhase>,
    pub phases: Vec<FinishedPhase>,
    /// I/Os per second in the last interval. If the workload has transactional I/Os, only these
    /// count.
    pub rate_ops_per_s: Option<f64>,
    /// Bytes per second in the last interval.
    pub rate_bytes_per_s: Option<f64>,
    /// Classes of operations in the phase, with their names as keys. A name includes the database
    /// or stream.
    pub classes: BTreeMap<String, ClassStatus>,
    /// Latest report of each host of a fleet, with the name of the host as key.
    pub hosts: BTreeMap<String, HostStatus>,
    /// I/O rates of block devices in the last sampled interval.
    pub devices: BTreeMap<String, DeviceStatus>,
    /// State of the classes at the end of the measurement. It is shown after the run.
    #[serde(skip)]
    measured: BTreeMap<String, ClassStatus>,
    /// Bytes that the load read in this phase, from any source.
    pub read_bytes: u64,
    /// Share of processor time that is in use.
    pub cpu_busy_share: Option<f64>,
    /// Properties of reads.
    pub reads: AccessStatus,
    /// Properties of writes.
    pub writes: AccessStatus,
    /// Findings other than `pass`. They arrive when a run is judged.
    pub findings: Vec<Finding>,
    /// Messages and warnings, oldest first.
    pub notes: Vec<Note>,
    /// The latest finished runs of the plan.
    pub ended: Vec<JudgedRun>,
    /// Number of finished runs.
    pub ended_count: u64,
    /// Directory name of the experiment, if there are several runs.
    pub together: Option<String>,
    /// Error that prevented a verdict.
    pub failed: Option<RunFailure>,
    /// Counters that the target itself reports, with the value and time of their last increase.
    #[serde(skip)]
    pub(super) counters: BTreeMap<String, (f64, u64)>,
    /// Data of charts over time.
    #[serde(skip)]
    pub charts: Charts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CurrentPhase {
    pub kind: String,
    /// Maximum duration; `None` if the plan states no maximum.
    pub expected_ns: Option<u64>,
    /// Time since the phase began.
    pub elapsed_ns: u64,
    /// Remaining time at the current rate; `None` if unknown.
    pub left_ns: Option<u64>,
    /// Number of bytes transferred so far; 0 if the phase is not limited by bytes.
    pub done_bytes: u64,
    /// Number of bytes after which the phase ends.
    pub total_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishedPhase {
    pub kind: String,
    pub duration_ns: u64,
    /// Remark on the phase; empty if there is none.
    pub note: String,
}

/// Status of a class of operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassStatus {
    /// Operations per second in the last interval.
    pub rate_ops_per_s: f64,
    /// Bytes per second in the last interval.
    pub rate_bytes_per_s: f64,
    /// Mean latency of the last interval.
    pub latency_ns_avg: Option<u64>,
    /// Maximum latency in this phase.
    pub latency_ns_max: u64,
    /// Number of operations in this phase.
    pub count: u64,
    /// Bytes transferred in this phase.
    pub bytes: u64,
    /// Sum of the latencies in this phase.
    pub latency_ns_sum: u64,
    /// Median latency of the phase; `None` before the first histogram.
    pub latency_ns_p50: Option<u64>,
    /// 99th percentile of latency; `None` before the first histogram.
    pub latency_ns_p99: Option<u64>,
    /// 99.9th percentile of latency; `None` before the first histogram.
    pub latency_ns_p999: Option<u64>,
    /// Histogram of the latencies.
    #[serde(skip)]
    histogram: BTreeMap<u64, u64>,
}

/// I/O of a block device in the last sampled interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Reads per second that reached the device.
    pub reads_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Bytes written per second.
    pub written_bytes_per_s: f64,
    /// Share of time in which the device was busy.
    pub busy_share: Option<f64>,
    /// Bytes read from the device in this phase.
    pub read_bytes: u64,
}

/// Properties of the reads or writes that the load issued.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct AccessStatus {
    /// Distinct bytes accessed in this phase, counted in blocks of 4 KiB; `None` if no bytes were
    /// accessed or the number is unknown.
    pub working_set_bytes: Option<u64>,
    /// Share of recent I/Os that were not sequential for their client.
    pub random_share: Option<f64>,
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// True if the message is a warning.
    pub is_warning: bool,
    /// Text.
    pub says: String,
}

/// A finished and judged run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgedRun {
    pub run_id: String,
    /// Verdict, in capitals.
    pub verdict: String,
    /// Reason for the verdict.
    pub reason: String,
}

/// Error that prevented a verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFailure {
    /// Message.
    pub says: String,
    pub hints: Vec<String>,
}

impl State {
    /// Creates the state of a plan that starts now.
    pub fn new(plan: &str, started_unix_ns: u64) -> Self {
        Self { plan: plan.to_owned(), started_unix_ns, is_under_way: true, ..Self::default() }
    }

    pub fn apply(&mut self, event: Event) {
        match event {
            Event::PhaseBegan { kind, expected_ns } => self.begin(kind, expected_ns),
            Event::Progress { progress, .. } => self.progress(&progress),
            Event::Interval(row) => self.row(row),
            Event::Latencies(interval) => self.latencies(&interval),
            Event::PhaseEnded(phase) => {
                self.phase = None;
                if phase.kind == PhaseKind::Measure {
                    self.measured = self.classes.clone();
                }
                let kind = phase.kind.label().to_owned();
                let (duration_ns, note) = (phase.duration_ns, phase.note);
                self.phases.push(FinishedPhase { kind, duration_ns, note });
                keep_latest(&mut self.phases, NOTES_MAX);
            }
            // Fleet reports are handled by `StateListener`, which knows the time of the last
            // report. Planned events are also reported as notes.
            Event::Fleet(_) | Event::Planned(_) => {}
            Event::Note(says) => self.note(false, says),
            Event::Part(says) => {
                // The time axis restarts at each stage, step, point or run, so charts show only the
                // current one.
                self.charts = Charts::default();
                self.phases.clear();
                self.measured.clear();
                self.part = Some(says.clone());
                self.note(false, says);
            }
            Event::Warning(says) => self.note(true, says),
            Event::Finding(finding) => {
                // The runs of a search repeat the same finding about this host, so it is added only
                // once.
                let is_same = |one: &Finding| one.rule == finding.rule && one.says == finding.says;
                if !self.findings.iter().any(is_same) {
                    self.findings.push(finding);
                    keep_latest(&mut self.findings, NOTES_MAX);
                }
            }
            Event::Finished { directory, verdict, .. } => {
                let run_id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
                let verdict = *verdict;
                self.ended.push(JudgedRun {
                    run_id: run_id.unwrap_or_default(),
                    verdict: verdict.verdict.label().to_owned(),
                    reason: verdict.reason,
                });
                keep_latest(&mut self.ended, ENDED_MAX);
                self.ended_count += 1;
            }
            Event::ExperimentFinished { directory } => {
                let id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
                self.together = id;
            }
            Event::Failed(error) => {
                self.failed = Some(RunFailure { says: error.message, hints: error.hints });
            }
        }
    }

    /// Applies the reports of a fleet's hosts. They describe the `duration_ns` before the time
    /// `at_ns` of the run.
    pub fn fleet(&mut self, hosts: &BTreeMap<String, HostStatus>, at_ns: u64, duration_ns: u64) {
        // The reports do not contain hosts that are silent.
        self.hosts.retain(|name, _| hosts.contains_key(name));
        if hosts.is_empty() {
            // All hosts have finished or are silent, so the rate is unknown.
            (self.rate_ops_per_s, self.rate_bytes_per_s) = (None, None);
        }
        let duration_ns = duration_ns.min(FLEET_REPORT_NS_MAX);
        let start_ns = at_ns.saturating_sub(duration_ns);
        for (name, now) in hosts {
            let Some(host) = entry(&mut self.hosts, name.clone(), CLASSES_MAX) else { continue };
            host.clone_from(now);
            // Reports are slightly more than a second apart. Each column gets its part.
            let done = |to_ns: u64| {
                (now.rate_ops_per_s * (to_ns - start_ns) as f64 / SECOND_NS as f64) as u64
            };
            let mut from_ns = start_ns;
            while from_ns < at_ns {
                let to_ns = at_ns.min((from_ns / SECOND_NS + 1) * SECOND_NS);
                let ios = Sums { count: done(to_ns) - done(from_ns), sum_ns: 0 };
                self.charts.hosts.add(from_ns, SECOND_NS, name.clone(), ios);
                from_ns = to_ns;
            }
        }
    }

    /// Marks the run as finished.
    pub fn end(&mut self) {
        (self.is_under_way, self.phase) = (false, None);
        (self.rate_ops_per_s, self.rate_bytes_per_s) = (None, None);
        if !self.measured.is_empty() {
            self.classes = std::mem::take(&mut self.measured);
        }
    }

    /// Returns the id of the page with the report: the experiment's id if there are several runs,
    /// otherwise the run's.
    pub fn report(&self) -> Option<&str> {
        self.together.as_deref().or(self.ended.last().map(|ended| ended.run_id.as_str()))
    }

    fn begin(&mut self, kind: PhaseKind, expected_ns: Option<u64>) {
        if self.phases.last().is_some_and(|last| last.kind == PhaseKind::CleanUp.label()) {
            // This phase is the first of a new run.
            self.phases.clear();
        }
        self.phase = Some(CurrentPhase {
            kind: kind.label().to_owned(),
            expected_ns,
            ..CurrentPhase::default()
        });
        self.classes.clear();
        self.read_bytes = 0;
        (self.reads, self.writes) = (AccessStatus::default(), AccessStatus::default());
        self.devices.values_mut().for_each(|device| device.read_bytes = 0);
        (self.rate_ops_per_s, self.rate_bytes_per_s) = (None, None);
    }

    fn progress(&mut self, progress: &Progress) {
        let Some(phase) = &mut self.phase else { return };
        phase.elapsed_ns = progress.elapsed_ns;
        (phase.done_bytes, phase.total_bytes) = (progress.done_bytes, progress.total_bytes);
        let share = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let lasts_ns = Some(progress.total_ns).filter(|ns| *ns > 0).or(phase.expected_ns);
        phase.left_ns = match lasts_ns {
            Some(lasts_ns) => Some(lasts_ns.saturating_sub(progress.elapsed_ns)),
            None if share > 0.01 => {
                Some((progress.elapsed_ns as f64 * (1.0 - share).max(0.0) / share) as u64)
            }
            None => None,
        };
        self.rate_ops_per_s = Some(progress.rate_ops_per_s);
        self.rate_bytes_per_s = Some(progress.rate_bytes_per_s);
    }

    fn row(&mut self, row: Row) {
        let Row { start_ns, duration_ns, name, data, .. } = row;
        let seconds = duration_ns.max(1) as f64 / SECOND_NS as f64;
        match data {
            Data::Class { count, sum_ns, bytes, max_ns } => {
                let name = drained_class(&name).map(str::to_owned).unwrap_or(name);
                let operation = operation_of(&name).to_owned();
                let is_read = operation.contains("read");
                if is_read {
                    self.read_bytes = self.read_bytes.saturating_add(bytes);
                }
                let moved = if is_read { "load read" } else { "load written" };
                let bytes_moved = Sums { count: bytes, sum_ns: 0 };
                // Devices are sampled at most once a second, so columns must be at least one second
                // wide.
                let column_ns = duration_ns.max(SECOND_NS);
                if bytes > 0 {
                    self.charts.moved.add(start_ns, column_ns, moved.to_owned(), bytes_moved);
                }
                self.charts.series.add(start_ns, duration_ns, operation, Sums { count, sum_ns });
                let Some(class) = entry(&mut self.classes, name, CLASSES_MAX) else { return };
                class.rate_ops_per_s = count as f64 / seconds;
                class.rate_bytes_per_s = bytes as f64 / seconds;
                class.latency_ns_avg = sum_ns.checked_div(count);
                class.latency_ns_max = class.latency_ns_max.max(max_ns);
                class.count += count;
                class.bytes = class.bytes.saturating_add(bytes);
                class.latency_ns_sum = class.latency_ns_sum.saturating_add(sum_ns);
            }
            Data::Gauge(value) => self.gauge(&name, value, start_ns, duration_ns),
        }
    }

    fn gauge(&mut self, name: &str, value: f64, start_ns: u64, duration_ns: u64) {
        let seconds = duration_ns.max(1) as f64 / SECOND_NS as f64;
        if name == "cpu.busy_share" {
            self.cpu_busy_share = Some(value);
        }
        self.place(name, value, start_ns, duration_ns);
        self.access(name, value, start_ns, duration_ns);
        let Some((device, what)) =
            name.strip_prefix("device.").and_then(|rest| rest.rsplit_once('.'))
        else {
            return;
        };
        if let Some(way) = what.strip_suffix("_bytes").filter(|_| value > 0.0) {
            let bytes = Sums { count: value as u64, sum_ns: 0 };
            self.charts.moved.add(
                start_ns,
                duration_ns.max(SECOND_NS),
                format!("{device} {way}"),
                bytes,
            );
        }
        let Some(device) = entry(&mut self.devices, device.to_owned(), DEVICES_MAX) else { return };
        match what {
            "reads" => device.reads_per_s = value / seconds,
            "read_bytes" => {
                device.read_bytes_per_s = value / seconds;
                device.read_bytes = device.read_bytes.saturating_add(value as u64);
            }
            "writes" => device.writes_per_s = value / seconds,
            "written_bytes" => device.written_bytes_per_s = value / seconds,
            "busy_share" => device.busy_share = Some(value),
            _ => {}
        }
    }

    /// Applies a histogram of a class.
    pub fn latencies(&mut self, interval: &Interval) {
        // Histograms of service times and of the generator's waits have other tags. They are
        // ignored here.
        let Some(class) = self.classes.get_mut(&interval.tag) else { return };
        for (ns, count) in interval.histogram.buckets() {
            *class.histogram.entry(ns).or_default() += count;
        }
        self.charts.heat.add(interval);
        let [p50, p99, p999] = percentiles(&class.histogram, [0.5, 0.99, 0.999]);
        (class.latency_ns_p50, class.latency_ns_p99, class.latency_ns_p999) = (p50, p99, p999);
    }

    fn note(&mut self, is_warning: bool, says: String) {
        self.notes.push(Note { is_warning, says });
        keep_latest(&mut self.notes, NOTES_MAX);
    }
}

/// Returns the percentiles for the given `shares`, which must be in ascending order.
fn percentiles<const N: usize>(
    histogram: &BTreeMap<u64, u64>,
    shares: [f64; N],
) -> [Option<u64>; N] {
    let total: u64 = histogram.values().sum();
    let ranks = shares.map(|share| ((total as f64 * share).ceil() as u64).max(1));
    let mut found = [None; N];
    let mut cumulative = 0;
    for (value, count) in histogram {
        cumulative += count;
        for (found, rank) in found.iter_mut().zip(ranks) {
            if found.is_none() && cumulative >= rank {
                *found = Some(*value);
            }
        }
    }
    found
}

fn keep_latest<T>(all: &mut Vec<T>, most: usize) {
    if all.len() > most {
        all.drain(..all.len() - most);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::latency::histogram;
    use plimsoll_evidence::run::Phase;

    use super::*;
    use crate::charts::COLUMNS_MAX;

    fn class(start_s: u64, name: &str, count: u64, sum_ns: u64) -> Event {
        let data = Data::Class { count, sum_ns, bytes: count * 4_096, max_ns: sum_ns };
        let start_ns = start_s * SECOND_NS;
        Event::Interval(Row { phase: 0, start_ns, duration_ns: SECOND_NS, name: name.into(), data })
    }

    fn began(kind: PhaseKind) -> Event {
        Event::PhaseBegan { kind, expected_ns: Some(10 * SECOND_NS) }
    }

    #[test]
    fn what_is_shown_is_what_the_events_say() {
        let mut state = State::new("p", 5);
        state.apply(began(PhaseKind::Measure));
        let done =
            Progress { elapsed_ns: 4 * SECOND_NS, rate_ops_per_s: 7.0, ..Progress::default() };
        state.apply(Event::Progress { kind: PhaseKind::Measure, progress: done });
        state.apply(class(1, "db1.read", 10, 1_000));
        state.apply(class(1, "db2.read", 30, 5_000));
        let mut values = histogram();
        (1..=1_000u64).for_each(|us| values.record(us * 1_000).unwrap());
        let histogram = (&values).into();
        let (start_ns, duration_ns) = (SECOND_NS, SECOND_NS);
        let interval = |tag: &str| Interval { tag: tag.into(), start_ns, duration_ns, histogram };
        let latency = interval("db1.read");
        let beside = Interval { tag: "db1.read.service".into(), ..latency.clone() };
        state.apply(Event::Latencies(latency));
        state.apply(Event::Latencies(beside));
        let read = &state.classes["db1.read"];
        assert_eq!((read.rate_ops_per_s, read.latency_ns_avg), (10.0, Some(100)));
        let p99 = read.latency_ns_p99.unwrap();
        assert!((990_000..=991_000).contains(&p99), "{p99}");
        assert_eq!(state.classes["db2.read"].latency_ns_p99, None, "no histogram is no zero");
        assert_eq!((state.classes.len(), state.read_bytes), (2, 40 * 4_096));
        let both = state.charts.series.columns[&SECOND_NS]["read"];
        assert_eq!((both.count, both.sum_ns), (40, 6_000));
        assert_eq!(state.charts.heat.columns[&SECOND_NS].values().sum::<u64>(), 1_000);
        assert_eq!(state.phase.as_ref().unwrap().left_ns, Some(6 * SECOND_NS));
        state.apply(began(PhaseKind::Close));
        assert!(state.classes.is_empty(), "percentiles are those of one phase");
        state.end();
        assert_eq!(state.classes.len(), 0, "the measurement never ended");
    }

    #[test]
    fn what_is_drawn_is_of_one_part_and_not_the_sum_of_all() {
        let mut state = State::new("p", 0);
        for step in 1..=3 {
            state.apply(Event::Part(format!("step {step}")));
            state.apply(began(PhaseKind::Measure));
            state.apply(class(1, "a.read", 10, 1_000));
            let (kind, note) = (PhaseKind::Measure, String::new());
            let (start_ns, duration_ns) = (0, SECOND_NS);
            let (read_bytes, written_bytes, reached, boundary_error_ns) = (0, 0, true, None);
            let phase = Phase {
                kind,
                start_ns,
                duration_ns,
                read_bytes,
                written_bytes,
                reached,
                note,
                boundary_error_ns,
            };
            state.apply(Event::PhaseEnded(phase));
        }
        assert_eq!(state.charts.series.columns[&SECOND_NS]["read"].count, 10);
        assert_eq!((state.part.as_deref(), state.phases.len()), (Some("step 3"), 1));
        assert_eq!(state.notes.len(), 3, "messages of earlier steps are kept");
        state.end();
        assert_eq!(state.classes["a.read"].count, 10);
    }

    #[test]
    fn however_long_it_goes_on_it_takes_no_more_room() {
        let mut state = State::new("p", 0);
        state.apply(began(PhaseKind::Measure));
        for second in 0..5_000 {
            state.apply(class(second, &format!("db{}.read", second % 500), 1, 1));
            state.apply(Event::Note(second.to_string()));
        }
        assert!(state.charts.series.columns.len() <= COLUMNS_MAX);
        let counted: u64 = state.charts.series.columns.values().map(|c| c["read"].count).sum();
        assert_eq!(counted, 5_000, "none is lost");
        assert_eq!((state.classes.len(), state.notes.len()), (CLASSES_MAX, NOTES_MAX));
        assert_eq!(state.notes.last().unwrap().says, "4999");
    }

    #[test]
    fn a_fleets_rate_is_divided_among_its_columns_and_unknown_after_its_end() {
        let mut state = State::new("p", 0);
        state.apply(began(PhaseKind::Measure));
        let done = Progress { rate_ops_per_s: 1_000.0, ..Progress::default() };
        state.apply(Event::Progress { kind: PhaseKind::Measure, progress: done });
        let report = HostStatus { rate_ops_per_s: 1_000.0, ..HostStatus::default() };
        let hosts = BTreeMap::from([("a".to_owned(), report)]);
        // The first report comes after a long wait. The rate of this time is unknown.
        state.fleet(&hosts, 60 * SECOND_NS, 60 * SECOND_NS);
        let period_ns = SECOND_NS + SECOND_NS / 20;
        (1..=20).for_each(|n| state.fleet(&hosts, 60 * SECOND_NS + n * period_ns, period_ns));
        let columns = &state.charts.hosts.columns;
        assert_eq!(columns.len(), 2 + 21);
        let is_even = |column: &BTreeMap<String, Sums>| (999..=1_001).contains(&column["a"].count);
        assert!(columns.values().all(is_even), "{columns:?}");
        assert_eq!(state.rate_ops_per_s, Some(1_000.0));
        let mut ended = state.clone();
        ended.end();
        assert_eq!(ended.rate_ops_per_s, None);
        state.fleet(&BTreeMap::new(), 90 * SECOND_NS, SECOND_NS);
        assert_eq!((state.rate_ops_per_s, state.hosts.len()), (None, 0));
    }
}
