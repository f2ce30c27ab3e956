//! Common code of all runs on a model. It runs phases, records intervals and reads counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::environment::ObservationGap;
use plimsoll_evidence::observed::AccessProfile;
use plimsoll_evidence::run::{Clock, EndKind, PathEngine, PhaseKind};
use plimsoll_observe::LiveAccess;
use plimsoll_observe::workload::WorkloadWatch;
use plimsoll_plan::ResolvedPlan;
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_record::recording::Recording;
use plimsoll_record::replay::ReplayTrace;
use plimsoll_record::snapshot::IntervalSnapshot;
use plimsoll_workload::step::{Class, ClassGroup, StepWorkload};

use super::events::Events;
use super::gauges::{Gauges, sources};
use super::modelled::ConfiguredModel;
use super::virtual_time::{Failure, VirtualTime};
use crate::system::System;

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Number of histograms of each class in the measured phase. The interval of a percentile requires
/// at least 17 (`stats::effective_sample_beyond` of the judge).
const HISTOGRAM_INTERVALS: u64 = 60;
/// Maximum number of intervals with histograms if the plan has events.
const EVENT_HISTOGRAM_INTERVALS: u64 = 600;
/// Number of samples of the stations during the measured phase.
const GAUGE_INTERVALS: u64 = 120;
/// Counters whose value is a current level and not a sum. Their increase during a phase has no
/// meaning.
const LEVELS: [&str; 2] = ["pages_used", "cache_pages_dirty"];

/// Input of a run on a model.
pub struct ModelRun<'a> {
    /// The plan, resolved for one target and one point of a sweep.
    pub plan: &'a ResolvedPlan,
    /// The model of the system.
    pub model: &'a ConfiguredModel,
    /// Seed of the random numbers of the load and of the system.
    pub seed: u64,
    pub trace: Option<ReplayTrace>,
    /// Becomes true when the operator requests that the run end.
    pub interrupt: &'a AtomicBool,
    /// Receives progress reports.
    pub watcher: &'a mut dyn Watcher,
}

/// A run that is in progress.
pub(super) struct ActiveRun<'a> {
    pub(super) run: ModelRun<'a>,
    pub(super) recording: Recording,
    pub(super) gauges: Gauges,
    pub(super) events: Events,
}

type Counters = BTreeMap<(u32, u32), Vec<(&'static str, u64)>>;

impl<'a> ActiveRun<'a> {
    /// Starts the recording of a run on the system `system`.
    pub(super) fn new(run: ModelRun<'a>, system: &mut System, events: Events) -> Self {
        let gauges = Gauges::new(system);
        let mut recording = Recording::new(0);
        let (name, origin) = (&run.model.spec().name, run.model.origin());
        let engine = &mut recording.engine;
        engine.kind = "model".to_owned();
        engine.why = format!("the target is the model {name} ({origin})");
        engine.threads = 1;
        engine.clock = Clock { source: "virtual".to_owned(), resolution_ns: 1, cost_ps: 0 };
        engine.paths = vec![PathEngine {
            path: format!("model {name}"),
            direct: true,
            ..PathEngine::default()
        }];
        recording.observed.unknown.push(ObservationGap {
            what: "the activity of the host".to_owned(),
            why: "the target is a model: this host only ran the simulation".to_owned(),
            remedy: "a run on real storage".to_owned(),
        });
        Self { run, recording, gauges, events }
    }

    pub(super) fn begin(&mut self, system: &System, kind: PhaseKind) -> u32 {
        self.run.watcher.begin(kind);
        self.recording.begin(kind, system.now_ns())
    }

    pub(super) fn finish(&mut self, system: &System, phase: u32, reached: bool, note: &str) {
        self.recording.finish(phase, system.now_ns(), reached, note);
        self.recording.tell(self.run.watcher);
        self.run.watcher.end(&self.recording.phases[phase as usize]);
    }

    pub(super) fn interrupted(&mut self, kind: PhaseKind) {
        let says = format!("interrupted by the operator during {}", kind.label());
        self.recording.fail(EndKind::Interrupted, says);
    }

    /// Ends the run because an I/O has failed.
    pub(super) fn failed(&mut self, kind: PhaseKind, failure: &Failure) {
        let start_ns = self.recording.phases.last().map_or(0, |phase| phase.start_ns);
        let at_s = failure.at_ns.saturating_sub(start_ns) as f64 / SECOND_NS as f64;
        let says = format!(
            "an I/O ({}) failed {at_s:.3} s after the start of the {} phase: all components that \
             store its data have failed",
            failure.class,
            kind.label()
        );
        self.recording.fail(EndKind::IoError, says);
    }

    pub(super) fn stuck(&mut self) {
        let says = "I/O is in flight, but the simulation has no further events (a defect in \
                    Plimsoll)";
        self.recording.fail(EndKind::Environment, says);
    }
}

/// Functions that read the request counts and access profile of a workload.
pub(super) struct Watch<W> {
    /// Function that is called at the start of the measurement.
    pub(super) begins: fn(&mut W),
    /// Reads the request counts of one part of the workload.
    pub(super) live: fn(&W) -> LiveAccess,
    /// Returns the combined access profile of all parts.
    pub(super) access_profile: fn(&mut dyn Iterator<Item = &W>) -> AccessProfile,
}

/// A load that is running.
pub(super) struct Load<'r, 'a, 's, W> {
    pub(super) running: &'r mut ActiveRun<'a>,
    pub(super) time: VirtualTime<'s, W>,
    /// Function that returns true if the store of one workload is warm. The warm-up ends early when
    /// all stores are warm. `None` if the warm-up always has its full length.
    pub(super) ready: Option<fn(&W) -> bool>,
    watch: Option<Watch<W>>,
    looks: WorkloadWatch,
    /// Time limit for operations that are in flight when the load ends. If it is `None`, the run
    /// waits until all operations have completed, because a store cannot be closed earlier.
    drain_ns: Option<u64>,
    latest: Latest,
    counters: Counters,
}

/// Number, latency and size of the transactional I/Os in the last interval, for the progress
/// display.
#[derive(Default)]
struct Latest {
    ios: u64,
    latency_ns: u64,
    size_bytes: u64,
}

impl<'r, 'a, 's, W: StepWorkload> Load<'r, 'a, 's, W> {
    pub(super) fn new(
        running: &'r mut ActiveRun<'a>,
        time: VirtualTime<'s, W>,
        ready: Option<fn(&W) -> bool>,
    ) -> Self {
        let (latest, counters) = (Latest::default(), Counters::new());
        let time = time.ending_at_failure(!running.run.plan.allows_errors());
        let looks = WorkloadWatch::default();
        Self { running, time, ready, watch: None, looks, drain_ns: None, latest, counters }
    }

    /// Sets the functions that read the workload's access profile of the measured phase.
    pub(super) fn watched(self, watch: Watch<W>) -> Self {
        let looks =
            WorkloadWatch::of(self.time.workloads().map(watch.live).collect(), self.time.now_ns());
        Self { watch: Some(watch), looks, ..self }
    }

    /// Sets a time limit after the end of the load. Operations that have not completed by then are
    /// abandoned.
    pub(super) fn drained_within(self, drain_ns: u64) -> Self {
        Self { drain_ns: Some(drain_ns), ..self }
    }

    /// Runs the warm-up, measured and close phases. `warm_up` is the current phase. Returns the
    /// parts of the workload.
    pub(super) fn carry_out(mut self, warm_up: u32, closed: fn(&W) -> bool) -> Vec<W> {
        let phases = &self.running.run.plan.phases;
        let (warm_up_ns, measure_ns) = (phases.warm_up_ns, phases.measure_ns);
        let ready = self.interval(PhaseKind::WarmUp, warm_up, warm_up_ns);
        let short = "when the warm-up ended, the caches were not full or the log depth was not \
                     reached";
        let well = self.running.recording.is_well();
        let note = if ready || !well { "" } else { short };
        let counters = self.measure(warm_up, ready, note, measure_ns);
        self.running.recording.counters = counters;
        self.running.recording.events = self.running.events.records();
        self.time = self.time.ending_at_failure(false);
        let close = self.close();
        let all = self.time.workloads().all(closed);
        self.end(close, all, "");
        self.time.into_workloads()
    }

    /// Runs a phase for its length, interval by interval. A warm-up ends early when the store is
    /// warm. Returns true if the phase reached its goal. The goal of a warm-up is a warm store; the
    /// goal of a measurement is its full length.
    fn interval(&mut self, kind: PhaseKind, phase: u32, length_ns: u64) -> bool {
        let start_ns = self.time.now_ns();
        let end_ns = start_ns + length_ns;
        let interval_ns = self.running.run.plan.evidence.interval_ns.max(10_000_000);
        let gauges_ns = (length_ns / GAUGE_INTERVALS).max(interval_ns);
        let mut sample_ns = start_ns + gauges_ns;
        loop {
            let now_ns = self.time.now_ns();
            let warming = kind == PhaseKind::WarmUp;
            if warming && self.ready.is_some_and(|ready| self.time.workloads().all(ready)) {
                return true;
            }
            if now_ns >= end_ns {
                return !warming || self.ready.is_none();
            }
            if self.running.run.interrupt.load(Ordering::Relaxed) {
                self.running.interrupted(kind);
                return false;
            }
            if !self.run_until((now_ns + interval_ns).min(end_ns)) {
                self.running.stuck();
                return false;
            }
            if let Some(failure) = self.time.fatal_failure() {
                self.running.failed(kind, failure);
                return false;
            }
            if self.time.has_ended() {
                // The schedule has ended. For a trace, this means that the replay is complete.
                return self.running.run.plan.workload.trace().is_some();
            }
            let now_ns = self.time.now_ns();
            if now_ns >= sample_ns || now_ns >= end_ns {
                let series = &mut self.running.recording.series;
                self.running.gauges.sample(self.time.system(), phase, series);
                self.looks.sample(now_ns, phase, series);
                sample_ns += gauges_ns;
            }
            let progress = self.progress(now_ns - start_ns, length_ns, interval_ns);
            self.running.recording.tell(self.running.run.watcher);
            self.running.run.watcher.progress(kind, &progress);
        }
    }

    fn progress(&self, elapsed_ns: u64, total_ns: u64, interval_ns: u64) -> Progress {
        let Latest { ios, latency_ns, size_bytes } = self.latest;
        let seconds = interval_ns as f64 / SECOND_NS as f64;
        Progress {
            elapsed_ns,
            total_ns,
            rate_ops_per_s: ios as f64 / seconds,
            rate_bytes_per_s: size_bytes as f64 / seconds,
            latency_ns_avg: (ios > 0).then(|| latency_ns / ios),
            ..Progress::default()
        }
    }

    fn run_until(&mut self, until_ns: u64) -> bool {
        let Self { running, time, latest, counters, .. } = self;
        *latest = Latest::default();
        while let Some(at_ns) = running.events.next_ns().filter(|at_ns| *at_ns <= until_ns) {
            if !time.advance(at_ns) {
                return false;
            }
            if time.now_ns() < at_ns {
                break;
            }
            running.events.act(time.system());
            time.wake();
        }
        time.run_until(until_ns, &mut taker(&mut running.recording, latest, counters))
    }

    fn change(&mut self, phase: u32) {
        let Self { running, time, latest, counters, .. } = self;
        time.begin(phase, &mut taker(&mut running.recording, latest, counters));
    }

    /// Ends the warm-up, and runs the measured phase. Returns the increase of the workload's
    /// counters during the measured phase.
    fn measure(
        &mut self,
        warm_up: u32,
        ready: bool,
        note: &str,
        length_ns: u64,
    ) -> BTreeMap<String, u64> {
        self.end(warm_up, ready, note);
        if !self.running.recording.is_well() {
            return BTreeMap::new();
        }
        let phase = self.start(PhaseKind::Measure);
        self.running.gauges.open(self.time.system());
        if let Some(watch) = &self.watch {
            self.time.workloads_mut().for_each(watch.begins);
        }
        self.looks.begin(self.time.now_ns());
        self.running.events.start(self.time.now_ns(), length_ns);
        let reached = self.interval(PhaseKind::Measure, phase, length_ns);
        let run = &self.running.run;
        let inside = self.running.gauges.close(self.time.system(), run.model, run.seed);
        self.running.recording.observed.sources = sources(&inside);
        self.running.recording.observed.inside = Some(inside);
        if let Some(watch) = &self.watch {
            self.running.recording.observed.workload =
                (watch.access_profile)(&mut self.time.workloads());
        }
        self.end_measured(phase, reached);
        rise(&self.counters, phase)
    }

    fn end_measured(&mut self, phase: u32, reached: bool) {
        let Self { running, time, latest, counters, .. } = self;
        time.end_measured(&mut taker(&mut running.recording, latest, counters));
        running.recording.finish(phase, time.now_ns(), reached, "");
        running.recording.phases[phase as usize].boundary_error_ns = Some(0);
        running.recording.tell(running.run.watcher);
        running.run.watcher.end(&running.recording.phases[phase as usize]);
    }

    /// Asks every part to close. Returns the close phase, which the caller must end.
    fn close(&mut self) -> u32 {
        let phase = self.start(PhaseKind::Close);
        self.time.stop();
        let give_up_ns = self.drain_ns.map_or(u64::MAX, |drain_ns| self.time.now_ns() + drain_ns);
        while !self.time.has_ended() && self.time.now_ns() < give_up_ns {
            if !self.run_until(self.time.now_ns() + SECOND_NS) {
                self.running.stuck();
                break;
            }
        }
        let Self { running, time, latest, counters, .. } = self;
        time.end_drain(&mut taker(&mut running.recording, latest, counters));
        phase
    }

    fn start(&mut self, kind: PhaseKind) -> u32 {
        let now_ns = self.time.now_ns();
        self.running.run.watcher.begin(kind);
        let phase = self.running.recording.begin(kind, now_ns);
        self.change(phase);
        phase
    }

    fn end(&mut self, phase: u32, reached: bool, note: &str) {
        self.change(phase);
        self.running.recording.finish(phase, self.time.now_ns(), reached, note);
        self.running.recording.tell(self.running.run.watcher);
        self.running.run.watcher.end(&self.running.recording.phases[phase as usize]);
    }
}

/// Returns the closure that records the intervals of all parts.
fn taker<'t>(
    recording: &'t mut Recording,
    latest: &'t mut Latest,
    counters: &'t mut Counters,
) -> impl FnMut(&IntervalSnapshot, &[Class]) + 't {
    |snapshot, classes| {
        recording.take(snapshot, classes);
        if snapshot.drained {
            return;
        }
        for (totals, class) in snapshot.totals.iter().zip(classes) {
            if class.group == ClassGroup::Transactional {
                latest.ios += totals.operations;
                latest.latency_ns += totals.latency_ns_sum;
                latest.size_bytes += totals.bytes;
            }
        }
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for (name, _, value) in &snapshot.counters {
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += value,
                None => sums.push((name, *value)),
            }
        }
        counters.insert((snapshot.phase, snapshot.thread), sums);
    }
}

/// Returns how much each counter increased during a phase. The increases of all parts are added.
fn rise(counters: &Counters, phase: u32) -> BTreeMap<String, u64> {
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, thread), after) in counters.range((phase, 0)..(phase + 1, 0)) {
        let mut earlier = counters.range(..(phase, 0)).rev().filter(|((_, t), _)| t == thread);
        let before = earlier.next().map(|(_, counted)| counted);
        for (name, value) in after.iter().filter(|(name, _)| !LEVELS.contains(name)) {
            let known = before.and_then(|b| b.iter().find(|(n, _)| n == name));
            let rise = value.saturating_sub(known.map_or(0, |(_, value)| *value));
            *totals.entry((*name).to_owned()).or_default() += rise;
        }
    }
    totals
}

/// Assigns part `i` to node `i`.
pub(super) fn on_nodes<W>(parts: Vec<W>) -> Vec<(W, u16)> {
    parts.into_iter().enumerate().map(|(at, part)| (part, at as u16)).collect()
}

/// Returns the length of the intervals that have their own histograms.
pub(super) fn histogram_interval_ns(plan: &ResolvedPlan) -> u64 {
    // If the plan has events, short intervals are needed, because the histograms show when
    // latencies have recovered.
    let (intervals, least_ns) = match plan.events.is_empty() {
        true => (HISTOGRAM_INTERVALS, SECOND_NS),
        false => (EVENT_HISTOGRAM_INTERVALS, plan.evidence.interval_ns.max(SECOND_NS)),
    };
    (plan.phases.measure_ns / intervals).max(least_ns)
}
