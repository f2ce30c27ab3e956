//! Phases of a mail store's load: warm-up, measurement and close. In each thread, one state machine
//! runs all three phases. The coordinating thread decides when the next phase starts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_evidence::observed::GeneratorThread;
use plimsoll_evidence::run::{EndKind, PhaseKind};
use plimsoll_evidence::series::Data;
use plimsoll_observe::{AccessProfiler, Observer};
use plimsoll_record::drain;
use plimsoll_record::snapshot::IntervalSnapshot;
use plimsoll_sys::{clock, inject};
use plimsoll_workload::mailbox::{Group, Store, spread};
use plimsoll_workload::step::{Class, ClassGroup, StepWorkload};

use super::caches;
use super::profiled_group::ProfiledGroup;
use super::run::LatestSnapshots;
use super::run_state::MailRunState;
use super::witness::CommitWitness;
use crate::step::{Control, Event, PartResult, Stage, WorkloadProgress, run_stage};
use crate::{EngineError, issue, start_barrier};

/// Counters that contain a current level instead of a sum. A difference of two levels would have no
/// meaning, so the record of a phase contains the level itself.
const LEVELS: [&str; 2] = ["pages_used", "cache_pages_dirty"];

impl MailRunState<'_> {
    /// Runs warm-up, measurement and close, and returns the store. Returns `None` if the store
    /// could not be closed.
    pub(super) fn load(&mut self, store: Store) -> Result<Option<Store>, EngineError> {
        let parts = spread(store.config(), self.threads);
        self.recording.engine.threads = parts.len() as u32;
        let stores = store.split(&parts);
        let mut groups = Vec::new();
        let store_id = self.mail.store_directories.manifest.store_id;
        let witness = self.mail.witness.map(|path| CommitWitness::open(path, store_id));
        let witness = witness.transpose()?;
        for (store, part) in stores.into_iter().zip(&parts) {
            let mut group = Group::new(store, &part.sessions)
                .map_err(|error| EngineError::Config(error.to_string()))?;
            if let Some(witness) = &witness {
                group.set_witness(Box::new(witness.clone()));
            }
            groups.push(group);
        }
        let classes: Vec<Vec<Class>> = groups.iter().map(|g| g.classes().to_vec()).collect();
        let (run_ns, warm_up) = (self.recording.start_ns, PhaseKind::WarmUp);
        let started_ns =
            start_barrier::wait_for_start(self.mail.watcher, self.mail.interrupt, warm_up, run_ns);
        let phase = self.recording.begin(warm_up, started_ns);
        self.mail.watcher.begin(PhaseKind::WarmUp);
        let control = Arc::new(Control::new(phase, started_ns));
        let latest =
            LatestSnapshots::new(&classes, |class| class.group == ClassGroup::Transactional);
        let mut coordinator =
            LoadCoordinator::new(self, &control, &classes, latest, phase, started_ns);
        coordinator.witness.clone_from(&witness);
        let polling = issue::polling(&coordinator.run.mail.plan.engine, groups.len());
        let stage = Stage { spin_ns: polling.longest_ns, ..coordinator.run.stage.clone() };
        coordinator.run.recording.engine.polling = Some(polling);
        let groups = ProfiledGroup::wrap_all(groups, &control, coordinator.run.mail.plan.seed);
        coordinator
            .observer
            .watch_workload(groups.iter().map(ProfiledGroup::live_access).collect());
        let ended = run_stage(groups, &stage, &control, progress_of, |event| {
            coordinator.handle_event(event)
        });
        let measured = coordinator.measure_phase.is_some();
        let counters = coordinator.finish();
        self.recording.counters = counters;
        if let Some(witness) = witness {
            witness.sync();
            if let Some(failure) = witness.failure() {
                self.recording.fail(EndKind::Environment, failure);
            }
        }
        if measured {
            self.access_profile(ProfiledGroup::merge_profiles(
                ended.iter().filter_map(|e| e.workload.as_ref()),
            ));
        }
        self.end_groups(ended)
    }

    fn end_groups(
        &mut self,
        ended: Vec<PartResult<ProfiledGroup>>,
    ) -> Result<Option<Store>, EngineError> {
        self.note_outcomes(&ended);
        let mut closed = true;
        let mut stores = Vec::new();
        let mut threads = Vec::new();
        for PartResult { workload, outcome, thread } in ended {
            threads.push(thread);
            closed &= outcome.is_ok();
            let Some(ProfiledGroup { group, .. }) = workload else {
                closed = false;
                continue;
            };
            if let Some(poison) = group.poison() {
                self.note_poison(poison);
            }
            closed &= group.is_closed();
            stores.push(group.into_store());
        }
        self.note_generator(threads);
        let Some(store) = Store::join(stores).filter(|_| closed) else { return Ok(None) };
        let page_bytes = u64::from(store.config().page_bytes);
        for (instance, state) in self.recording.instances.iter_mut().zip(store.databases()) {
            instance.size_bytes_final = u64::from(state.pages_used) * page_bytes;
        }
        Ok(Some(store))
    }

    /// Records how long I/Os waited in the generator, and on which CPUs the generator's threads
    /// ran.
    fn note_generator(&mut self, threads: Vec<GeneratorThread>) {
        let recording = &mut self.recording;
        let generator = &mut recording.observed.generator;
        generator.threads = recording.generator.threads(threads);
        generator.lag = recording.generator.lag();
        generator.lag_ns_max = generator.lag.as_ref().map(|lag| lag.wait_ns_max);
        if let Some(lag) = &generator.lag {
            plimsoll_record::generator::count(&mut recording.counters, "generator_lag", lag);
        }
    }

    /// Records how many operations the workload issued. For databases, these are the I/Os that were
    /// counted at issue. For logs, the counts come from the store's counters.
    fn access_profile(&mut self, counted: Option<AccessProfiler>) {
        if let Some(profiler) = counted {
            self.recording.observed.workload = profiler.totals();
        }
        let counter = |name: &str| self.recording.counters.get(name).copied();
        if let (Some(sequential), Some(writes)) =
            (counter("log_writes_sequential"), counter("log_writes"))
            && writes > 0
        {
            let share = sequential as f64 / writes as f64;
            self.recording.observed.workload.log_sequential_share = Some(share);
        }
    }
}

/// State of the coordinating thread. This thread controls the phases, the recording and the samples
/// of the host.
struct LoadCoordinator<'r, 'a> {
    run: &'r mut MailRunState<'a>,
    control: &'r Control,
    classes: &'r [Vec<Class>],
    latest: LatestSnapshots,
    observer: Observer,
    kind: PhaseKind,
    phase: u32,
    phase_started_ns: u64,
    next_sample_ns: u64,
    /// Longest delay with which a thread starts or ends the measured phase, in ns.
    boundary_error_ns: u64,
    /// Counters at the end of each phase. The keys are the numbers of phase and thread.
    counters: BTreeMap<(u32, u32), Vec<(&'static str, u64)>>,
    measure_phase: Option<u32>,
    /// For each thread: end of its latest interval in the measured phase.
    measured_to_ns: BTreeMap<u32, u64>,
    /// How many complete intervals of the measured phase were passed to
    /// [`EndCondition`](crate::end_condition::EndCondition).
    intervals_reported: u64,
    may_end: bool,
    /// Witness whose failure ends the load.
    witness: Option<CommitWitness>,
}

impl<'r, 'a> LoadCoordinator<'r, 'a> {
    fn new(
        run: &'r mut MailRunState<'a>,
        control: &'r Control,
        classes: &'r [Vec<Class>],
        latest: LatestSnapshots,
        phase: u32,
        started_ns: u64,
    ) -> Self {
        let since_ns = run.recording.since_start_ns(started_ns);
        let mut observer = Observer::new(run.stage.directories.clone(), since_ns);
        crate::caches::examine_files(&mut observer, &run.stage.held, caches::files_below);
        observer.watch_metrics(crate::issue::endpoints(&run.mail.plan.observe));
        let next_sample_ns = started_ns + run.stage.interval_ns;
        Self {
            run,
            control,
            classes,
            latest,
            observer,
            kind: PhaseKind::WarmUp,
            phase,
            phase_started_ns: started_ns,
            next_sample_ns,
            boundary_error_ns: 0,
            counters: BTreeMap::new(),
            measure_phase: None,
            measured_to_ns: BTreeMap::new(),
            intervals_reported: 0,
            may_end: false,
            witness: None,
        }
    }

    fn handle_event(&mut self, event: Event) {
        inject::point("step-conductor");
        match event {
            Event::Snapshot(snapshot) => self.take(*snapshot),
            Event::Tick => self.tick(),
        }
    }

    fn take(&mut self, snapshot: IntervalSnapshot) {
        let classes = &self.classes[snapshot.thread as usize];
        self.run.recording.take(&snapshot, classes);
        if snapshot.drained {
            return;
        }
        if self.kind == PhaseKind::Measure && snapshot.phase == self.phase {
            self.measured_to_ns.insert(snapshot.thread, snapshot.end_ns);
        }
        let sums = sum_counters(&snapshot);
        self.counters.insert((snapshot.phase, snapshot.thread), sums);
        self.latest.take(snapshot);
    }

    fn tick(&mut self) {
        let now_ns = clock::monotonic_ns();
        if now_ns >= self.next_sample_ns {
            let since_ns = self.run.recording.since_start_ns(now_ns);
            self.observer.sample(since_ns, self.phase, &mut self.run.recording.series);
            self.next_sample_ns = now_ns + self.run.stage.interval_ns;
        }
        let elapsed_ns = now_ns.saturating_sub(self.phase_started_ns);
        let phases = &self.run.mail.plan.phases;
        let (warm_up_ns, measure_ns) = (phases.warm_up_ns, phases.measure_ns);
        let total_ns = match self.kind {
            PhaseKind::WarmUp => warm_up_ns,
            PhaseKind::Measure => measure_ns,
            _ => 0,
        };
        let progress = self.latest.progress(elapsed_ns, total_ns);
        if self.run.mail.plan.phases.until_steady && self.kind == PhaseKind::Measure {
            self.run.recording.needed_from_ns =
                self.oldest_row_ns(self.intervals_reported, self.run.stage.interval_ns);
        }
        self.run.recording.tell(self.run.mail.watcher);
        self.run.mail.watcher.progress(self.kind, &progress);
        if self.run.mail.interrupt.load(Ordering::Relaxed) && self.kind != PhaseKind::Close {
            self.run.note_interrupt();
            return self.close(false);
        }
        let failure = self.witness.as_ref().and_then(CommitWitness::failure);
        if let Some(failure) = failure.filter(|_| self.kind != PhaseKind::Close) {
            self.run.recording.fail(EndKind::Environment, failure);
            return self.close(false);
        }
        match self.kind {
            PhaseKind::WarmUp if self.latest.ready() || elapsed_ns >= warm_up_ns => {
                // A host in a fleet continues its warm-up until every host is ready.
                let run_ns = self.run.recording.start_ns;
                let ready_ns = now_ns + drain::AHEAD_NS;
                let watcher = &mut self.run.mail.watcher;
                if let Some(at_ns) = watcher.begins_at(PhaseKind::Measure, run_ns, ready_ns) {
                    self.measure(at_ns);
                }
            }
            PhaseKind::Measure => {
                self.report_intervals();
                if self.may_end || elapsed_ns >= measure_ns {
                    self.close(true);
                }
            }
            _ => {}
        }
    }

    /// When all threads have reported an interval, passes this interval to the end condition, which
    /// then decides whether the phase ends.
    fn report_intervals(&mut self) {
        if !self.run.mail.plan.phases.until_steady || self.measured_to_ns.len() < self.classes.len()
        {
            return;
        }
        let interval_ns = self.run.stage.interval_ns;
        let to_ns = self.measured_to_ns.values().min().copied().unwrap_or(0);
        // A thread ends its interval at the first completion after the boundary of the interval
        // grid, or slightly before this boundary.
        let reached_ns = to_ns.saturating_sub(self.phase_started_ns) + interval_ns / 4;
        while !self.may_end && (self.intervals_reported + 1) * interval_ns <= reached_ns {
            let (operations, written_bytes) = self.interval(self.intervals_reported, interval_ns);
            self.intervals_reported += 1;
            self.may_end = self.run.mail.end_condition.add_interval(operations, written_bytes);
        }
    }

    /// Computes, for interval `number` of the measured phase, the number of transactional I/Os and
    /// the number of written bytes. The data comes from the rows of the series. A row that crosses
    /// an interval boundary is added to the interval that contains the midpoint of the row.
    fn interval(&self, number: u64, interval_ns: u64) -> (u64, u64) {
        let recording = &self.run.recording;
        let start_ns = recording.since_start_ns(self.phase_started_ns);
        let oldest_ns = self.oldest_row_ns(number, interval_ns);
        let (mut operations, mut written_bytes) = (0, 0);
        for row in recording.series.iter().rev().take_while(|row| row.start_ns >= oldest_ns) {
            let Data::Class { count, bytes, .. } = row.data else { continue };
            let middle_ns = (row.start_ns + row.duration_ns / 2).saturating_sub(start_ns);
            if row.phase != self.phase || middle_ns / interval_ns != number {
                continue;
            }
            let class = self.classes.iter().flatten().find(|class| class.name == row.name);
            let transactional = |c: &&Class| c.group == ClassGroup::Transactional;
            if let Some(class) = class.filter(transactional) {
                operations += count;
                written_bytes += if class.is_read { 0 } else { bytes };
            }
        }
        (operations, written_bytes)
    }

    /// Returns the earliest start time of the rows that may belong to interval `number`. Rows can
    /// arrive late, because threads send them separately, but the delay is always less than two
    /// intervals.
    fn oldest_row_ns(&self, number: u64, interval_ns: u64) -> u64 {
        let start_ns = self.run.recording.since_start_ns(self.phase_started_ns);
        start_ns + number.saturating_sub(2) * interval_ns
    }

    /// Ends the warm-up and starts the measurement at `from_ns` or later.
    fn measure(&mut self, from_ns: u64) {
        let ready = self.latest.ready();
        let note = if ready { String::new() } else { self.warm_up_note() };
        // The work before this point is part of the warm-up.
        let resident = caches::resident_bytes(&self.run.stage);
        self.run.recording.observed.page_cache.resident_bytes_before = resident.map(|r| r.0);
        let instances = self.run.recording.instances.iter();
        let sizes_bytes: Vec<u64> = instances.map(|instance| instance.allocated_bytes).collect();
        self.run.mail.end_condition.begin(PhaseKind::Measure, &sizes_bytes, 0);
        let start_ns = self.run.recording.start_ns;
        let clock = || clock::monotonic_ns().saturating_sub(start_ns);
        let since_ns = self.run.recording.since_start_ns(from_ns);
        let before = Some((self.phase, &mut self.run.recording.series));
        self.observer.begin(since_ns, clock, before);
        let at_ns = from_ns.max(clock::monotonic_ns() + drain::AHEAD_NS);
        self.run.recording.finish(self.phase, at_ns, ready, note);
        let warm_up = self.begin_phase(PhaseKind::Measure, at_ns);
        self.boundary_error_ns = self.control.measure(self.phase, at_ns);
        self.report_phase_change(warm_up);
        self.next_sample_ns = at_ns + self.run.stage.interval_ns;
        self.measure_phase = Some(self.phase);
    }

    fn warm_up_note(&self) -> String {
        let progress = self.latest.progress(0, 0);
        let percent = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64 * 100.0;
        format!(
            "at the end of the warm-up, the cache and the log depth had reached {percent:.0} % of \
             their target"
        )
    }

    /// Ends the current phase and requests that the groups of databases close. The groups switch to
    /// the next phase first, because recording the end of the phase takes time.
    fn close(&mut self, reached: bool) {
        let measured = self.kind == PhaseKind::Measure;
        let at_ns = clock::monotonic_ns() + drain::AHEAD_NS;
        self.run.recording.finish(self.phase, at_ns, reached, "");
        let ended = self.begin_phase(PhaseKind::Close, at_ns);
        let late_ns = self.control.close(self.phase, at_ns);
        if measured {
            self.boundary_error_ns = self.boundary_error_ns.max(late_ns);
            self.end_measure(ended, clock::monotonic_ns());
            let (settled, says) = self.run.mail.end_condition.end();
            let phase = &mut self.run.recording.phases[ended as usize];
            (phase.reached, phase.note) = (reached && settled, says);
        }
        self.report_phase_change(ended);
    }

    /// Records the state of the host at the end of the measured phase.
    fn end_measure(&mut self, measured: u32, now_ns: u64) {
        let phase = &mut self.run.recording.phases[measured as usize];
        phase.boundary_error_ns = Some(self.boundary_error_ns);
        let since_ns = self.run.recording.since_start_ns(now_ns);
        self.observer.sample(since_ns, measured, &mut self.run.recording.series);
        let mut observed = self.observer.end(since_ns);
        let before = &self.run.recording.observed;
        observed.page_cache = before.page_cache.clone();
        observed.unknown.extend(before.unknown.iter().cloned());
        if let Some((resident, files)) = caches::resident_bytes(&self.run.stage) {
            observed.page_cache.resident_bytes_after = Some(resident);
            observed.page_cache.files_bytes = Some(files);
        }
        self.run.recording.observed = observed;
    }

    /// Records the start of a phase. Returns the index of the phase before it.
    fn begin_phase(&mut self, kind: PhaseKind, at_ns: u64) -> u32 {
        let before = self.phase;
        self.phase = self.run.recording.begin(kind, at_ns);
        self.kind = kind;
        self.phase_started_ns = at_ns;
        before
    }

    fn report_phase_change(&mut self, ended: u32) {
        self.run.mail.watcher.end(&self.run.recording.phases[ended as usize]);
        self.run.mail.watcher.begin(self.kind);
    }

    fn end_phase(&mut self, now_ns: u64, reached: bool, note: String) {
        self.run.recording.finish(self.phase, now_ns, reached, note);
        self.run.recording.tell(self.run.mail.watcher);
        let phase = &self.run.recording.phases[self.phase as usize];
        self.run.mail.watcher.end(phase);
    }

    /// Ends the last phase after all threads have finished. Returns the counters for the measured
    /// phase.
    fn finish(mut self) -> BTreeMap<String, u64> {
        let now_ns = clock::monotonic_ns();
        if self.kind == PhaseKind::Measure {
            self.end_measure(self.phase, now_ns);
        }
        self.end_phase(now_ns, self.kind == PhaseKind::Close, String::new());
        let Some(measure) = self.measure_phase else { return BTreeMap::new() };
        let mut totals: BTreeMap<String, u64> = BTreeMap::new();
        for ((phase, thread), after) in &self.counters {
            if *phase != measure {
                continue;
            }
            // Values of the thread's counters when the measurement started.
            let before = self.counters.range(..(measure, 0)).rev();
            let before = before.into_iter().find(|((_, t), _)| t == thread).map(|(_, c)| c);
            for (name, value) in after.iter().filter(|(name, _)| !LEVELS.contains(name)) {
                let earlier = before.and_then(|b| b.iter().find(|(n, _)| n == name));
                let rise = value.saturating_sub(earlier.map_or(0, |(_, value)| *value));
                *totals.entry((*name).to_owned()).or_default() += rise;
            }
        }
        totals
    }
}

/// Returns the counters of a thread. Each counter is the sum over the thread's databases.
fn sum_counters(snapshot: &IntervalSnapshot) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    for (name, _, value) in &snapshot.counters {
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name, *value)),
        }
    }
    sums
}

fn progress_of(profiled: &ProfiledGroup) -> WorkloadProgress {
    let warm_up = profiled.group.warm_up();
    let page_bytes = 32 << 10;
    WorkloadProgress {
        done_bytes: warm_up.frames_filled * page_bytes + warm_up.logged_bytes,
        total_bytes: warm_up.frames_needed * page_bytes + warm_up.logged_needed_bytes,
        ready: warm_up.reached(),
    }
}
