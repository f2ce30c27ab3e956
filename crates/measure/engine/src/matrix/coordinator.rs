//! Coordinates a running load on the calling thread. It controls the phases, records rows and
//! samples the host.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::PhaseKind;
use plimsoll_observe::{LiveAccess, Observer};
use plimsoll_record::scribe::{Phases, Scribe, totals};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::inject;

use super::progress_meter::{ProgressMeter, interval_totals};
use super::run_state::{MatrixRun, MatrixRunState};
use crate::stream::run::{Event, RunConfig, RunReport};
use crate::{caches, start_barrier};

/// Minimum interval between two samples of the host's counters.
const SAMPLE_NS_MIN: u64 = 200_000_000;

/// State of the coordinating thread. This thread controls the phases, records rows and samples the
/// host.
pub(super) struct LoadCoordinator<'r, 'a> {
    run: &'r mut MatrixRunState<'a>,
    scribe: Scribe,
    meter: ProgressMeter,
    observer: Observer,
    phases: Phases,
    warm_up_ns: u64,
    measure_ns: u64,
    interval_ns: u64,
    next_sample_ns: u64,
    kind: PhaseKind,
    /// Becomes true to end the load.
    stop: &'r AtomicBool,
    /// True after the end condition has permitted the end of the measurement. Also true after the
    /// whole trace was replayed.
    pub(super) may_end: bool,
}

impl<'r, 'a> LoadCoordinator<'r, 'a> {
    pub(super) fn new(
        run: &'r mut MatrixRunState<'a>,
        classes: Vec<plimsoll_workload::step::Class>,
        config: &RunConfig,
        stop: &'r AtomicBool,
    ) -> Self {
        let now_ns = monotonic_ns();
        let since_ns = run.recording.since_start_ns(now_ns);
        let mut observer = Observer::new(run.places.clone(), since_ns);
        if !run.matrix.data_set.is_null {
            let files = run.paths();
            caches::examine_files(&mut observer, &run.matrix.data_set.held, |_| files);
        }
        if let Some(remote) = &run.matrix.data_set.remote {
            observer.watch_servers(remote.addresses());
        }
        observer.watch_metrics(crate::issue::endpoints(&run.matrix.plan.observe));
        let meter = ProgressMeter::new(classes.len());
        let phase = run.recording.begin(PhaseKind::WarmUp, now_ns);
        run.matrix.watcher.begin(PhaseKind::WarmUp);
        Self {
            scribe: Scribe::new(classes, config.interval_ns, config.measure_ns),
            meter,
            observer,
            phases: Phases { warm_up: Some(phase), measure: phase, measure_from_ns: u64::MAX },
            warm_up_ns: config.warm_up_ns,
            measure_ns: config.measure_ns,
            interval_ns: config.interval_ns,
            next_sample_ns: now_ns,
            kind: PhaseKind::WarmUp,
            stop,
            may_end: false,
            run,
        }
    }

    /// Gives the observer access to the threads' counts of operations.
    pub(super) fn watch_workload(&mut self, threads: Vec<LiveAccess>) {
        self.observer.watch_workload(threads);
    }

    pub(super) fn handle_event(&mut self, event: Event<'_>) {
        inject::point("stream-conductor");
        let now_ns = monotonic_ns();
        if self.kind == PhaseKind::WarmUp && now_ns >= self.phases.measure_from_ns {
            self.measure(now_ns);
        }
        match event {
            Event::Ready { start_ns } => self.delay_start(start_ns),
            Event::Starts { measure_from_ns } => {
                self.phases.measure_from_ns = measure_from_ns;
                self.note_residency_before();
            }
            Event::Row(row) => {
                self.meter.take(row, self.interval_ns);
                self.scribe.take(row, &self.phases, &mut self.run.recording);
                if let Some((operations, bytes)) = interval_totals(row, self.scribe.classes()) {
                    self.may_end |= self.run.matrix.end_condition.add_interval(operations, bytes);
                }
            }
            Event::Tick => self.tick(now_ns),
        }
    }

    /// Delays the start of the load until the load has permission to begin. The delay is not part
    /// of the warm-up.
    fn delay_start(&mut self, start_ns: &mut u64) {
        let run = &mut *self.run;
        let MatrixRun { watcher, interrupt, .. } = &mut run.matrix;
        let of = (PhaseKind::WarmUp, self.phases.measure);
        start_barrier::delay_start(*watcher, interrupt, &mut run.recording, of, start_ns);
    }

    fn note_residency_before(&mut self) {
        let files = self.run.paths();
        let resident = caches::resident_bytes(&self.run.matrix.data_set.held, |_| files);
        let page_cache = &mut self.run.recording.observed.page_cache;
        page_cache.resident_bytes_before = resident.map(|r| r.0);
    }

    /// Ends the warm-up when the measurement starts.
    fn measure(&mut self, now_ns: u64) {
        let from_ns = self.phases.measure_from_ns;
        let Some(warm_up) = self.phases.warm_up else { return };
        self.run.end_phase(warm_up, from_ns, true, "");
        self.phases.measure = self.run.recording.begin(PhaseKind::Measure, from_ns);
        self.run.matrix.watcher.begin(PhaseKind::Measure);
        self.kind = PhaseKind::Measure;
        let start_ns = self.run.recording.start_ns;
        let clock = || monotonic_ns().saturating_sub(start_ns);
        let since_ns = self.run.recording.since_start_ns(from_ns);
        let before = Some((warm_up, &mut self.run.recording.series));
        self.observer.begin(since_ns, clock, before);
        self.next_sample_ns = now_ns + self.interval_ns.max(SAMPLE_NS_MIN);
    }

    fn tick(&mut self, now_ns: u64) {
        if self.may_end || self.run.matrix.interrupt.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
        let measuring = self.kind == PhaseKind::Measure;
        if now_ns >= self.next_sample_ns {
            let since_ns = self.run.recording.since_start_ns(now_ns);
            let phase = self.phases.measure;
            self.observer.sample(since_ns, phase, &mut self.run.recording.series);
            self.next_sample_ns = now_ns + self.interval_ns.max(SAMPLE_NS_MIN);
        }
        let from_ns = self.phases.measure_from_ns;
        let (began_ns, total_ns) = if measuring {
            (from_ns, self.measure_ns)
        } else {
            (from_ns.saturating_sub(self.warm_up_ns), self.warm_up_ns)
        };
        let elapsed_ns = now_ns.saturating_sub(began_ns).min(total_ns);
        let progress = self.meter.progress(elapsed_ns, total_ns);
        self.run.recording.tell(self.run.matrix.watcher);
        self.run.matrix.watcher.progress(self.kind, &progress);
    }

    /// Ends the phase of a load that could not run.
    pub(super) fn abort(self) {
        let now_ns = monotonic_ns();
        let phase = self.phases.measure;
        self.run.end_phase(phase, now_ns, false, "");
    }

    pub(super) fn end(mut self, report: &RunReport) {
        let now_ns = monotonic_ns();
        if self.kind == PhaseKind::WarmUp && report.stop_ns > report.measure_from_ns {
            self.measure(now_ns);
        }
        let run = &mut *self.run;
        self.scribe.close(&mut run.recording);
        if self.kind == PhaseKind::WarmUp {
            return run.end_phase(self.phases.measure, now_ns, false, "");
        }
        totals(&mut run.recording, self.scribe.classes(), &report.collected);
        self.observe_end(now_ns);
        let run = &mut *self.run;
        let (settled, note) = run.matrix.end_condition.end();
        let reached = settled && (self.may_end || report.measured_ns() >= self.measure_ns);
        if let Some(phase) = run.recording.phases.get_mut(self.phases.measure as usize) {
            phase.boundary_error_ns = Some(report.stop_error_ns);
        }
        run.end_phase(self.phases.measure, report.stop_ns, reached, &note);
        let phase = run.recording.begin(PhaseKind::Close, report.stop_ns);
        run.matrix.watcher.begin(PhaseKind::Close);
        run.end_phase(phase, now_ns, true, "operations in flight at the end");
    }

    fn observe_end(&mut self, now_ns: u64) {
        let run = &mut *self.run;
        let since_ns = run.recording.since_start_ns(now_ns);
        let phase = self.phases.measure;
        self.observer.sample(since_ns, phase, &mut run.recording.series);
        let mut observed = self.observer.end(since_ns);
        let before = &run.recording.observed;
        observed.page_cache = before.page_cache.clone();
        observed.unknown.extend(before.unknown.iter().cloned());
        let files = run.paths();
        if let Some((resident, files)) =
            caches::resident_bytes(&run.matrix.data_set.held, |_| files)
        {
            observed.page_cache.resident_bytes_after = Some(resident);
            observed.page_cache.files_bytes = Some(files);
        }
        run.recording.observed = observed;
    }
}
