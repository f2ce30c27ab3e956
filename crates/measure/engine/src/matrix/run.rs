//! The phases of a matrix run, in their order.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{Damage, EndKind, Instance, PhaseKind};
use plimsoll_plan::{CacheState, Layout, TargetKind};
use plimsoll_record::drain;
use plimsoll_record::recording::Recording;
use plimsoll_record::scribe::{Phases, Scribe, clip};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::matrix::StreamConfig;
use plimsoll_workload::planned::pace::Pace;
use plimsoll_workload::planned::streams;
use plimsoll_workload::stamp::Finding;

use super::data_set::DataSet;
use super::manifest::DataState;
use super::pass::{CHUNKS_IN_FLIGHT, Pass, PassPlan, PassSource, lay_out, pass_classes, sync};
use super::progress_meter::ProgressMeter;
use super::run_state::{MatrixRun, MatrixRunState};
use crate::backend::{BackendConfig, Direct, FileSource};
use crate::error::ErrorKind;
use crate::placement::{self, Placement, WakeSource};
use crate::stream::matrix::Checks;
use crate::stream::run::{
    Event, Group, GroupReport, INTERVAL_NS_MIN, RunConfig, RunReport, Target, UNTIL_DONE_NS,
    run_with_events,
};
use crate::{EngineError, caches, defect, issue, start_barrier};

/// Runs all phases. Returns the data set and all recorded data, even after an error.
pub fn run(mut matrix: MatrixRun<'_>) -> (Recording, DataSet) {
    let cpus = plimsoll_sys::cpu::allowed().unwrap_or_default();
    let places = matrix.data_set.places();
    let wake_source = match (matrix.data_set.is_null, &matrix.data_set.remote) {
        (true, _) => WakeSource::Nothing,
        (_, Some(_)) => WakeSource::Network,
        _ => placement::wake_source(&places),
    };
    let recording = Recording::new(monotonic_ns()).with_spool(matrix.spool.take());
    let mut run = MatrixRunState { recording, places, cpus, wake_source, matrix, replay: None };
    run.recording.engine.clock = issue::clock();
    match defect::catch_panic(|| run.phases()) {
        Ok(Ok(())) => {}
        Ok(Err(error)) | Err(error) => run.fail(&error),
    }
    defect::note_panic(&mut run.recording);
    if let Some(remote) = &mut run.matrix.data_set.remote {
        remote.counters(&mut run.recording.counters);
    }
    run.recording.recall();
    clip(&mut run.recording);
    (run.recording, run.matrix.data_set)
}

impl MatrixRunState<'_> {
    fn phases(&mut self) -> Result<(), EngineError> {
        let plan = self.matrix.plan;
        let device_bytes = self.matrix.data_set.device_bytes();
        let mut configs = streams::streams(self.matrix.matrix, plan.seed, device_bytes)?;
        let on_s3 =
            matches!(plan.targets.first().map(|target| &target.kind), Some(TargetKind::S3 { .. }));
        configs.iter_mut().for_each(|config| config.first_byte = on_s3);
        self.map_trace(&mut configs)?;
        self.recording.instances = self.instances(&configs);
        if let (Some(remote), Some(config)) = (&mut self.matrix.data_set.remote, configs.first()) {
            self.matrix.data_set.is_created &= remote.fit(config)?;
        }
        // If the plan cannot be driven, the run fails here, before it writes anything.
        let groups = self.groups(&configs)?;
        if !self.matrix.data_set.is_created && !self.create_data()? {
            return Ok(());
        }
        self.matrix.data_set.mark(DataState::InUse)?;
        if !self.condition()? || !self.prepare_caches()? {
            return Ok(());
        }
        self.matrix.data_set.reset_small(self.matrix.matrix, &configs)?;
        self.load(&configs, groups)?;
        if self.recording.is_well() && !self.matrix.data_set.is_null {
            // The recording contains the I/O settings of the load, not the I/O settings of the
            // verification.
            let engine = self.recording.engine.clone();
            let checked = if plan.phases.verify { self.verify() } else { self.read_back() };
            self.recording.engine = engine;
            checked?;
        }
        if self.recording.is_well() {
            self.matrix.data_set.mark(DataState::Clean)?;
        }
        Ok(())
    }

    /// Returns the time after which the run gives up on a target that does not respond. The limit
    /// applies while a phase runs and after a phase has ended.
    fn outage_max_ns(&self) -> u64 {
        let plan = self.matrix.plan;
        let target = plan.targets.first();
        target.map_or(issue::OUTAGE_NS_MAX, |t| t.outage_max_ns(plan.phases.measure_ns))
    }

    pub(super) fn threads(&self) -> u32 {
        match self.matrix.plan.engine.workers {
            0 => self.cpus.len().max(1) as u32,
            requested => requested,
        }
    }

    /// Returns the CPU placement of each thread, if each of `groups` groups has one thread.
    pub(super) fn placements(&self, groups: usize) -> Vec<Placement> {
        placement::place_threads(&self.wake_source, groups, &self.cpus)
    }

    pub(super) fn target(&self, direct: Direct, write: bool) -> Target {
        let data_set = &self.matrix.data_set;
        if data_set.is_null {
            return Target::Null;
        }
        if let Some(remote) = &data_set.remote {
            return remote.whole();
        }
        let source = |path: &PathBuf| FileSource::Path {
            path: path.clone(),
            write,
            create: false,
            size_bytes: 0,
        };
        let engine = &self.matrix.plan.engine;
        Target::Files(BackendConfig {
            files: data_set.files().iter().map(|file| source(&file.path)).collect(),
            prefer: issue::prefer(engine.io),
            direct,
            held: data_set.held.clone(),
            poll_completions: engine.io_poll,
            poll_submissions: engine.sq_poll,
            ..BackendConfig::default()
        })
    }

    // Phases that create and verify the data.

    /// Creates the data. Returns false if creation ended early.
    fn create_data(&mut self) -> Result<bool, EngineError> {
        let layout = self.matrix.matrix.streams.first().map_or(Layout::Written, |s| s.layout);
        let on_device = self.matrix.data_set.device_bytes().is_some();
        let whole = match layout {
            Layout::Written | Layout::Zeros => {
                let zeros = layout == Layout::Zeros;
                let sources = self.pass(PhaseKind::Create, Pass::Fill, zeros)?;
                if sources.is_some() && !zeros {
                    self.matrix.data_set.written_once();
                }
                sources.is_some()
            }
            // A device always has its full size. There is nothing to create.
            Layout::Allocated | Layout::Sparse if on_device => true,
            Layout::Allocated | Layout::Sparse => {
                let phase = self.recording.begin(PhaseKind::Create, monotonic_ns());
                self.matrix.watcher.begin(PhaseKind::Create);
                match &mut self.matrix.data_set.remote {
                    Some(remote) => remote.lay_out()?,
                    None => lay_out(&self.matrix.data_set, layout, self.matrix.interrupt)?,
                }
                let note = format!("files are {}", layout.word());
                self.end_phase(phase, monotonic_ns(), true, &note);
                !self.is_interrupted()
            }
        };
        if whole {
            // If the data is on servers, each thread committed its writes before it ended.
            if self.matrix.data_set.remote.is_none() {
                sync(&self.matrix.data_set)?;
            }
            self.matrix.data_set.is_created = true;
        }
        Ok(whole)
    }

    /// Brings the caches into the planned state. Returns false if the operator interrupts this.
    fn prepare_caches(&mut self) -> Result<bool, EngineError> {
        if self.matrix.data_set.is_null {
            return Ok(true);
        }
        let state = self.matrix.plan.phases.cache;
        if state == CacheState::Warm {
            return Ok(self.pass(PhaseKind::Caches, Pass::Check, false)?.is_some());
        }
        let phase = self.recording.begin(PhaseKind::Caches, monotonic_ns());
        self.matrix.watcher.begin(PhaseKind::Caches);
        if self.matrix.data_set.remote.is_some() {
            let note = "this host does not cache the data; Plimsoll did not drop the caches of the \
                        servers";
            self.end_phase(phase, monotonic_ns(), true, note);
            return Ok(!self.is_interrupted());
        }
        let files = self.paths();
        let dropped = caches::drop_data(
            &self.matrix.data_set.held,
            files,
            state == CacheState::WarmMetadata,
        )?;
        self.recording.observed.page_cache.system_dropped = dropped.system;
        self.end_phase(phase, monotonic_ns(), true, &dropped.note);
        Ok(!self.is_interrupted())
    }

    /// Reads all data and verifies it.
    fn verify(&mut self) -> Result<(), EngineError> {
        if self.matrix.data_set.generations.is_none() {
            self.recording.checks.pages_checked = None;
            return Ok(());
        }
        let Some(sources) = self.pass(PhaseKind::Verify, Pass::Check, false)? else {
            return Ok(());
        };
        let mut checked = 0;
        for source in sources {
            let (counts, first) = source.found();
            checked += counts.good + counts.damaged();
            self.note_damage(counts.damaged(), first);
        }
        self.recording.checks.pages_checked = Some(checked);
        Ok(())
    }

    /// Writes or reads all data once. Returns `None` if the pass did not complete.
    pub(super) fn pass(
        &mut self,
        kind: PhaseKind,
        pass: Pass,
        zeros: bool,
    ) -> Result<Option<Vec<PassSource>>, EngineError> {
        let plan = PassPlan::new(&self.matrix.data_set, pass, zeros)?;
        let threads = self.threads();
        let direct = self
            .matrix
            .matrix
            .streams
            .first()
            .map_or(Direct::Auto, |stream| issue::direct(stream.direct));
        // These reads warm the page cache, so they must not bypass it.
        let direct = if kind == PhaseKind::Caches { Direct::Off } else { direct };
        let places = self.placements(threads as usize);
        let groups: Vec<Group<PassSource>> = (0..threads)
            .zip(places)
            .map(|(thread, place)| Group {
                name: format!("pass-{thread}"),
                place,
                target: self.target(direct, pass == Pass::Fill),
                source: plan.part(thread.into(), threads.into()),
                clients: 1,
                pace: Pace::Closed { depth: CHUNKS_IN_FLIGHT },
                cap: None,
                size_bytes_max: plan.chunk_bytes,
                operations_max: u64::MAX,
                spin_ns: 0,
            })
            .collect();
        let mut started_ns = monotonic_ns();
        let phase = self.recording.begin(kind, started_ns);
        self.matrix.watcher.begin(kind);
        let classes = pass_classes();
        let config =
            self.run_config(classes.iter().map(|c| c.name.clone()).collect(), 0, UNTIL_DONE_NS);
        let mut scribe = Scribe::new(classes, config.interval_ns, 0);
        let mut phases = Phases { warm_up: None, measure: phase, measure_from_ns: started_ns };
        let mut meter = ProgressMeter::new(scribe.classes().len());
        let (recording, matrix) = (&mut self.recording, &mut self.matrix);
        let outcome =
            run_with_events(&config, groups, matrix.interrupt, &mut |event| match event {
                Event::Ready { start_ns } => {
                    let (watcher, interrupt) = (&mut *matrix.watcher, matrix.interrupt);
                    let of = (kind, phase);
                    if start_barrier::delay_start(watcher, interrupt, recording, of, start_ns) {
                        started_ns = *start_ns;
                    }
                }
                Event::Starts { measure_from_ns } => phases.measure_from_ns = measure_from_ns,
                Event::Row(row) => {
                    meter.take(row, config.interval_ns);
                    scribe.take(row, &phases, recording);
                }
                Event::Tick => {
                    let elapsed_ns = monotonic_ns().saturating_sub(started_ns);
                    let mut progress = meter.progress(elapsed_ns, 0);
                    progress.done_bytes = plan.done_bytes.load(Ordering::Relaxed);
                    progress.total_bytes = plan.total_bytes();
                    matrix.watcher.progress(kind, &progress);
                }
            });
        scribe.close(&mut self.recording);
        let whole = plan.done_bytes.load(Ordering::Relaxed) == plan.total_bytes();
        self.end_phase(phase, monotonic_ns(), whole, "");
        let (report, sources) = outcome?;
        self.note_report(&report, false);
        if !whole {
            self.note_interrupt();
        }
        Ok((whole && self.recording.is_well()).then(|| sources.into_iter().flatten().collect()))
    }

    pub(super) fn run_config(
        &self,
        classes: Vec<String>,
        warm_up_ns: u64,
        measure_ns: u64,
    ) -> RunConfig {
        RunConfig {
            classes,
            warm_up_ns,
            measure_ns,
            interval_ns: self.matrix.plan.evidence.interval_ns.max(INTERVAL_NS_MIN),
            drain_ns: drain::IN_FLIGHT_NS,
            backlog_ns: drain::BACKLOG_NS,
            per_client: false,
            carry_on: false,
            spin_ns: 0,
            outage_max_ns: self.outage_max_ns(),
        }
    }

    // Results.

    /// Records the results of the groups, and the errors that ended groups. If `errors_allowed` is
    /// true, failed operations did not end the groups. The judge then counts these failures.
    pub(super) fn note_report(&mut self, report: &RunReport, errors_allowed: bool) {
        self.note_groups(&report.groups, errors_allowed);
        if let Some(error) = &report.error {
            if let (Some(remote), EngineError::Remote { .. }) =
                (&mut self.matrix.data_set.remote, error)
            {
                remote.note_silence();
            }
            self.fail(error);
        }
    }

    fn note_groups(&mut self, groups: &[GroupReport], errors_allowed: bool) {
        // The reads that warm the page cache are buffered on purpose. The load may use another I/O
        // mode.
        let warming = self.recording.phases.last().is_some_and(|p| p.kind == PhaseKind::Caches);
        for group in groups {
            if let (Some(remote), Some(calls)) = (&mut self.matrix.data_set.remote, &group.remote) {
                remote.add_calls(calls);
                issue::note_remote(&mut self.recording.engine, &remote.directories());
            }
            if !warming {
                issue::note(&mut self.recording.engine, &group.backend, &self.places);
            }
            if let Some(error) = group.failure()
                && error.kind() != ErrorKind::Corrupt
                && !errors_allowed
            {
                if let (Some(remote), EngineError::Remote { errno: Some(libc::ETIMEDOUT), .. }) =
                    (&mut self.matrix.data_set.remote, &error)
                {
                    remote.note_silence();
                }
                self.fail(&error);
            }
        }
    }

    /// Counts the reads whose content was verified.
    pub(super) fn note_checked(&mut self, checks: &Checks) {
        if checks.reads > 0 {
            let sampled = self.recording.checks.sampled.get_or_insert_default();
            sampled.reads += checks.reads;
            sampled.blocks += checks.units;
        }
    }

    /// Counts the damaged data. If there is any, marks the run as corrupt.
    pub(super) fn note_damage(&mut self, damaged: u64, first: Option<Finding>) {
        if damaged == 0 {
            return;
        }
        self.recording.checks.errors += damaged;
        let unit_bytes = u64::from(self.matrix.data_set.manifest.unit_bytes);
        let says = match first {
            Some(finding) => {
                let file = self.matrix.data_set.files().get(finding.target as usize);
                let path = file.map_or(String::new(), |file| file.path.display().to_string());
                let (offset_bytes, kind) = (finding.offset_bytes, finding.damage.name());
                let says = format!("{path} at byte {offset_bytes}: {kind}");
                self.recording.checks.damage.push(Damage {
                    target: path,
                    page: offset_bytes / unit_bytes,
                    kind: kind.to_owned(),
                    says: says.clone(),
                });
                format!("{says} ({damaged} damaged blocks in total)")
            }
            None => format!("{damaged} blocks are damaged"),
        };
        self.recording.fail(EndKind::Corruption, says);
    }

    fn fail(&mut self, error: &EngineError) {
        if matches!(error, EngineError::Stopped | EngineError::Abandoned { .. }) {
            self.note_interrupt();
        }
        self.recording.fail_with(error);
        let now_ns = monotonic_ns();
        if let Some(last) = self.recording.phases.len().checked_sub(1)
            && self.recording.phases[last].duration_ns == 0
        {
            self.recording.finish(last as u32, now_ns, false, "");
        }
    }

    fn is_interrupted(&mut self) -> bool {
        self.note_interrupt();
        self.matrix.interrupt.load(Ordering::Relaxed)
    }

    pub(super) fn note_interrupt(&mut self) {
        if self.matrix.interrupt.load(Ordering::Relaxed) {
            let phases = self.recording.phases.iter().rev();
            let mut kinds = phases.map(|phase| phase.kind).filter(|k| *k != PhaseKind::Close);
            let phase = kinds.next().map_or("", PhaseKind::label);
            let by = self.matrix.watcher.stop_reason();
            let by = by.as_deref().unwrap_or("the operator");
            let says = format!("interrupted by {by} during {phase}");
            self.recording.fail(EndKind::Interrupted, says);
        }
    }

    pub(super) fn end_phase(&mut self, phase: u32, now_ns: u64, reached: bool, note: &str) {
        self.recording.finish(phase, now_ns, reached, note);
        self.recording.tell(self.matrix.watcher);
        if let Some(phase) = self.recording.phases.get(phase as usize) {
            self.matrix.watcher.end(phase);
        }
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        if self.matrix.data_set.remote.is_some() {
            return Vec::new();
        }
        self.matrix.data_set.files().iter().map(|file| file.path.clone()).collect()
    }

    /// Returns the instances for the recording. There is one instance for each stream.
    fn instances(&self, configs: &[StreamConfig]) -> Vec<Instance> {
        let remote = self.matrix.data_set.remote.as_ref();
        let remote = remote.and_then(|remote| remote.directories().into_iter().next());
        let place = self.places.first().map(|place| place.display().to_string());
        let place = remote.or(place).unwrap_or_else(|| "null".to_owned());
        let instance = |config: &StreamConfig| {
            let size_bytes = config.files.file_size_bytes * config.files.files();
            Instance {
                name: config.name.clone(),
                path: place.clone(),
                log_path: None,
                size_bytes_initial: size_bytes,
                size_bytes_final: size_bytes,
                allocated_bytes: size_bytes,
            }
        };
        configs.iter().map(instance).collect()
    }
}
