//! The phases of a matrix run, one after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::observed::WorkloadShape;
use plimsoll_evidence::run::{Damage, EndKind, Instance, PhaseKind};
use plimsoll_observe::{Observer, Shape};
use plimsoll_plan::{CacheState, Layout, Matrix, ResolvedPlan};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::matrix::StreamConfig;
use plimsoll_workload::stamp::Finding;

use super::condition::whole;
use super::data::{CHUNKS_IN_FLIGHT, Pass, PassPlan, PassSource, lay_out, sync};
use super::home::DataHome;
use super::manifest::DataState;
use super::pace::StreamPace;
use super::record::{self, Phases, Scribe, clip, pass_classes, stream_classes, totals};
use super::streams;
use crate::EngineError;
use crate::backend::{BackendConfig, Direct, FileSource};
use crate::ending::Ending;
use crate::error::ErrorKind;
use crate::progress::{Progress, Watcher};
use crate::recording::Recording;
use crate::stream::collect::Interval;
use crate::stream::matrix::{MatrixSource, WriteContent};
use crate::stream::run::{
    Event, Group, GroupReport, INTERVAL_NS_MIN, Pace, RunConfig, RunReport, Target, watch,
};
use crate::{caches, issue};

/// How long before a scheduled start a thread watches the clock instead of sleeping.
const SPIN_NS: u64 = 50_000;
/// Counters of the system are read at most this often.
const SAMPLE_NS_MIN: u64 = 200_000_000;
/// Up to so many clients have histograms of their own.
const CLIENTS_APART_MAX: u32 = 64;
/// How long operations in flight are waited for after the stop.
const DRAIN_NS: u64 = 60_000_000_000;
/// Longer than any pass over data takes: it ends when all is done.
const UNTIL_DONE_NS: u64 = u64::MAX / 4;

/// A run of the matrix on files, a device or nothing.
pub struct MatrixRun<'a> {
    /// The plan, with one target and one point of a sweep.
    pub plan: &'a ResolvedPlan,
    /// Its matrix.
    pub matrix: &'a Matrix,
    /// The data; made first where it isn't yet.
    pub home: DataHome,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Is told how it goes.
    pub watcher: &'a mut dyn Watcher,
    /// Decides when conditioning and a measurement until steady end.
    pub ending: &'a mut dyn Ending,
    /// The load of `random-overwrite` conditioning ([`super::condition::random_overwrite`]).
    pub overwriting: &'a Matrix,
}

/// Carries the run out. Whatever happens, what was recorded up to then comes back, with the home.
pub fn run(matrix: MatrixRun<'_>) -> (Recording, DataHome) {
    let cpus = plimsoll_sys::cpu::allowed().unwrap_or_default();
    let mut running = Running {
        recording: Recording::new(monotonic_ns()),
        places: matrix.home.places(),
        cpus,
        matrix,
    };
    running.recording.engine.clock = issue::clock();
    if let Err(error) = running.phases() {
        running.fail(&error);
    }
    if let Some(remote) = &mut running.matrix.home.remote {
        remote.counters(&mut running.recording.counters);
    }
    clip(&mut running.recording);
    (running.recording, running.matrix.home)
}

pub(super) struct Running<'a> {
    pub(super) matrix: MatrixRun<'a>,
    pub(super) recording: Recording,
    /// What is observed.
    places: Vec<PathBuf>,
    cpus: Vec<usize>,
}

impl Running<'_> {
    fn phases(&mut self) -> Result<(), EngineError> {
        let plan = self.matrix.plan;
        let device_bytes = self.matrix.home.device_bytes();
        let configs = streams::streams(self.matrix.matrix, plan.seed, device_bytes)?;
        self.recording.instances = self.instances(&configs);
        if let (Some(remote), Some(config)) = (&mut self.matrix.home.remote, configs.first()) {
            self.matrix.home.is_made &= remote.fit(config)?;
        }
        // What can't be driven is found before anything is written.
        let groups = self.groups(&configs)?;
        if !self.matrix.home.is_made && !self.make()? {
            return Ok(());
        }
        self.matrix.home.mark(DataState::InUse)?;
        if !self.condition()? || !self.caches()? {
            return Ok(());
        }
        if let (Some(remote), Some(config)) = (&mut self.matrix.home.remote, configs.first()) {
            remote.reset_small(config)?;
        }
        self.load(&configs, groups)?;
        if self.recording.is_well() && plan.phases.verify && !self.matrix.home.is_null {
            self.verify()?;
        }
        if self.recording.is_well() {
            self.matrix.home.mark(DataState::Clean)?;
        }
        Ok(())
    }

    fn threads(&self) -> u32 {
        match self.matrix.plan.engine.workers {
            0 => self.cpus.len().max(1) as u32,
            asked => asked,
        }
    }

    /// The processor of the group with that number: none where there are more groups than processors.
    fn cpu(&self, number: usize, groups: usize) -> Option<usize> {
        (groups <= self.cpus.len()).then(|| self.cpus.get(number).copied()).flatten()
    }

    fn target(&self, direct: Direct, write: bool) -> Target {
        let home = &self.matrix.home;
        if home.is_null {
            return Target::Null;
        }
        if let Some(remote) = &home.remote {
            return remote.target(|_| true);
        }
        let source = |path: &PathBuf| FileSource::Path {
            path: path.clone(),
            write,
            create: false,
            size_bytes: 0,
        };
        let engine = &self.matrix.plan.engine;
        Target::Files(BackendConfig {
            files: home.files().iter().map(|file| source(&file.path)).collect(),
            prefer: issue::prefer(engine.io),
            direct,
            poll_completions: engine.io_poll,
            poll_submissions: engine.sq_poll,
            ..BackendConfig::default()
        })
    }

    // Making and checking data.

    /// Makes the data. `false` where it was ended before all was there.
    fn make(&mut self) -> Result<bool, EngineError> {
        let layout = self.matrix.matrix.streams.first().map_or(Layout::Written, |s| s.layout);
        let on_device = self.matrix.home.device_bytes().is_some();
        let whole = match layout {
            Layout::Written | Layout::Zeros => {
                let zeros = layout == Layout::Zeros;
                let sources = self.pass(PhaseKind::Create, Pass::Fill, zeros)?;
                if sources.is_some() && !zeros {
                    let generations = self.matrix.home.generations.iter().flat_map(|g| g.iter());
                    generations.for_each(plimsoll_workload::stamp::Generations::written_once);
                }
                sources.is_some()
            }
            // A device is what it is.
            Layout::Allocated | Layout::Sparse if on_device => true,
            Layout::Allocated | Layout::Sparse => {
                let phase = self.recording.begin(PhaseKind::Create, monotonic_ns());
                self.matrix.watcher.begin(PhaseKind::Create);
                match &mut self.matrix.home.remote {
                    Some(remote) => remote.lay_out()?,
                    None => lay_out(&self.matrix.home, layout, self.matrix.interrupt)?,
                }
                let note = format!("files are {}", layout.word());
                self.end_phase(phase, monotonic_ns(), true, &note);
                !self.is_interrupted()
            }
        };
        if whole {
            // On servers each thread committed what it wrote at its end.
            if self.matrix.home.remote.is_none() {
                sync(&self.matrix.home)?;
            }
            self.matrix.home.is_made = true;
        }
        Ok(whole)
    }

    /// Brings the caches into the state that the plan declares. `false` where it was interrupted.
    fn caches(&mut self) -> Result<bool, EngineError> {
        if self.matrix.home.is_null {
            return Ok(true);
        }
        let state = self.matrix.plan.phases.cache;
        if state == CacheState::Warm {
            return Ok(self.pass(PhaseKind::Caches, Pass::Check, false)?.is_some());
        }
        let phase = self.recording.begin(PhaseKind::Caches, monotonic_ns());
        self.matrix.watcher.begin(PhaseKind::Caches);
        if self.matrix.home.remote.is_some() {
            let note = "no cache of this host is in the way; the servers' caches are as they were";
            self.end_phase(phase, monotonic_ns(), true, note);
            return Ok(!self.is_interrupted());
        }
        let files = self.paths();
        let dropped = caches::drop_data(&files, state == CacheState::WarmMetadata)?;
        self.recording.observed.page_cache.system_dropped = dropped.system;
        self.end_phase(phase, monotonic_ns(), true, &dropped.note);
        Ok(!self.is_interrupted())
    }

    /// Reads and checks everything.
    fn verify(&mut self) -> Result<(), EngineError> {
        if self.matrix.home.generations.is_none() {
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

    /// Writes or reads all data once. `None` where not all of it was done.
    pub(super) fn pass(
        &mut self,
        kind: PhaseKind,
        pass: Pass,
        zeros: bool,
    ) -> Result<Option<Vec<PassSource>>, EngineError> {
        let plan = PassPlan::new(&self.matrix.home, pass, zeros)?;
        let threads = self.threads();
        let direct = self
            .matrix
            .matrix
            .streams
            .first()
            .map_or(Direct::Auto, |stream| issue::direct(stream.direct));
        // What warms the page cache has to go through it.
        let direct = if kind == PhaseKind::Caches { Direct::Off } else { direct };
        let groups: Vec<Group<PassSource>> = (0..threads)
            .map(|thread| Group {
                name: format!("pass-{thread}"),
                cpu: self.cpu(thread as usize, threads as usize),
                target: self.target(direct, pass == Pass::Fill),
                source: plan.part(thread.into(), threads.into()),
                clients: 1,
                pace: Pace::Closed { depth: CHUNKS_IN_FLIGHT },
                cap: None,
                size_bytes_max: plan.chunk_bytes,
                operations_max: u64::MAX,
                reap_min: 1,
                spin_ns: 0,
            })
            .collect();
        let started_ns = monotonic_ns();
        let phase = self.recording.begin(kind, started_ns);
        self.matrix.watcher.begin(kind);
        let classes = pass_classes();
        let config =
            self.run_config(classes.iter().map(|c| c.name.clone()).collect(), 0, UNTIL_DONE_NS);
        let mut scribe = Scribe::new(classes, config.interval_ns, 0);
        let mut phases = Phases { warm_up: None, measure: phase, measure_from_ns: started_ns };
        let mut pulse = Pulse::new(scribe.classes().len());
        let (recording, matrix) = (&mut self.recording, &mut self.matrix);
        let outcome = watch(&config, groups, matrix.interrupt, &mut |event| match event {
            Event::Starts { measure_from_ns } => phases.measure_from_ns = measure_from_ns,
            Event::Row(row) => {
                pulse.take(row, config.interval_ns);
                scribe.take(row, &phases, recording);
            }
            Event::Tick => {
                let elapsed_ns = monotonic_ns().saturating_sub(started_ns);
                let mut progress = pulse.progress(elapsed_ns, 0);
                progress.done_bytes = plan.done_bytes.load(Ordering::Relaxed);
                progress.total_bytes = plan.total_bytes();
                matrix.watcher.progress(kind, &progress);
            }
        });
        scribe.close(&mut self.recording);
        let whole = plan.done_bytes.load(Ordering::Relaxed) == plan.total_bytes();
        self.end_phase(phase, monotonic_ns(), whole, "");
        let (report, sources) = outcome?;
        self.note_groups(&report.groups);
        if !whole {
            self.note_interrupt();
        }
        Ok((whole && self.recording.is_well()).then_some(sources))
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
            drain_ns: DRAIN_NS,
            per_client: false,
            carry_on: false,
        }
    }

    // The load.

    /// The clients of all streams, dealt to threads.
    pub(super) fn groups(
        &self,
        configs: &[StreamConfig],
    ) -> Result<Vec<Group<MatrixSource>>, EngineError> {
        let threads = self.threads();
        let mut parts: Vec<(usize, Box<[u32]>)> = Vec::new();
        for (number, config) in configs.iter().enumerate() {
            if let Some(remote) = &self.matrix.home.remote {
                // All clients of a share are one thread's.
                let of = threads.min(remote.shares()).min(config.clients).max(1);
                let mine = |part: u32| {
                    (0..config.clients).filter(|c| c % remote.shares() % of == part).collect()
                };
                parts.extend((0..of).map(|part| (number, mine(part))));
                continue;
            }
            let of = threads.min(config.clients).max(1);
            let bound =
                |part: u32| (u64::from(config.clients) * u64::from(part) / u64::from(of)) as u32;
            parts.extend((0..of).map(|part| (number, (bound(part)..bound(part + 1)).collect())));
        }
        let writes = self.matrix.matrix.writes();
        let sizes = file_sizes(configs);
        let all = parts.len();
        let mut groups = Vec::new();
        for (at, (number, clients)) in parts.into_iter().enumerate() {
            let (stream, config) = (&self.matrix.matrix.streams[number], &configs[number]);
            let size_bytes_max = MatrixSource::size_bytes_max(config);
            let pace = StreamPace::new(stream, size_bytes_max, config.seed)?;
            let spin_ns = if pace.is_open() { SPIN_NS } else { 0 };
            let (pace, cap) = pace.group(&clients);
            let places = match &pace {
                Pace::Open { places, .. } => *places,
                _ => stream.queue_depth.max(1) * clients.len() as u32,
            };
            let count = clients.len() as u32;
            let before = configs[..number].iter();
            let first_class: usize = before.map(MatrixSource::class_count).sum();
            let content = self.write_content(stream, config)?;
            let target = match &self.matrix.home.remote {
                Some(remote) => {
                    let shares = remote.shares();
                    remote.target(|share| clients.iter().any(|c| c % shares == share))
                }
                None => self.target(issue::direct(stream.direct), writes),
            };
            let source = MatrixSource::of_clients(config.clone(), clients, content, places)
                .map_err(|error| EngineError::Config(error.to_string()))?;
            groups.push(Group {
                name: format!("{}-{at}", stream.name),
                cpu: self.cpu(at, all),
                target,
                source: source.with_first_class(first_class as u16).with_shape(Shape::new(
                    &sizes,
                    count as usize,
                    config.seed ^ at as u64,
                )),
                clients: count,
                pace,
                cap,
                size_bytes_max,
                operations_max: u64::MAX,
                reap_min: 1,
                spin_ns,
            });
        }
        Ok(groups)
    }

    fn write_content(
        &self,
        stream: &plimsoll_plan::Stream,
        config: &StreamConfig,
    ) -> Result<WriteContent, EngineError> {
        let home = &self.matrix.home;
        if home.is_null {
            return Ok(WriteContent::Buffers);
        }
        let Some(file) = home.files().get(config.files.first_file as usize) else {
            return Ok(WriteContent::Buffers);
        };
        let content = home.content(file)?;
        Ok(match &home.generations {
            Some(generations) => WriteContent::Followed {
                content,
                generations: Arc::clone(generations),
                verify_reads: stream.verify_reads,
            },
            None => WriteContent::Made(content),
        })
    }

    fn load(
        &mut self,
        configs: &[StreamConfig],
        groups: Vec<Group<MatrixSource>>,
    ) -> Result<(), EngineError> {
        let plan = self.matrix.plan;
        let engine = &mut self.recording.engine;
        engine.threads = groups.len() as u32;
        engine.sessions = configs.iter().map(|config| config.clients * config.queue_depth).sum();
        let open = |stream: &plimsoll_plan::Stream| stream.arrival.is_open();
        engine.closed_loop = !self.matrix.matrix.streams.iter().all(open);
        let classes = stream_classes(configs);
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let (warm_up_ns, measure_ns) = (plan.phases.warm_up_ns, plan.phases.measure_ns);
        let clients: u32 = configs.iter().map(|config| config.clients).sum();
        let config = RunConfig {
            per_client: clients <= CLIENTS_APART_MAX,
            ..self.run_config(names, warm_up_ns, measure_ns)
        };
        let stop = AtomicBool::new(false);
        let (sizes_bytes, conditioned_bytes) = (self.sizes_bytes(), self.conditioned_bytes());
        self.matrix.ending.begin(PhaseKind::Measure, &sizes_bytes, conditioned_bytes);
        let mut conductor = Conductor::new(self, classes, &config, &stop);
        let outcome = watch(&config, groups, &stop, &mut |event| conductor.hear(event));
        let (report, sources) = match outcome {
            Ok(ended) => ended,
            Err(error) => {
                conductor.give_up();
                return Err(error);
            }
        };
        let shape = shape_of(&sources);
        conductor.end(&report);
        let classes = stream_classes(configs);
        for (source, group) in sources.iter().zip(&report.collected.groups) {
            record::clients(&mut self.recording, &classes, source, group);
            let checks = source.checks();
            self.note_damage(checks.counts.damaged(), checks.first_finding);
        }
        self.note_groups(&report.groups);
        self.recording.observed.workload = shape;
        self.note_generator(&report);
        if report.measured_ns() < measure_ns {
            self.note_interrupt();
        }
        Ok(())
    }

    /// How well the generator kept its schedule, and what the kernel did for it in threads of its own.
    fn note_generator(&mut self, report: &RunReport) {
        let counters = &mut self.recording.counters;
        let mut own = crate::stream::histogram::Totals::new();
        let mut full = crate::stream::histogram::Totals::new();
        for group in &report.collected.groups {
            own.merge(&group.lag_own);
            full.merge(&group.lag_full);
        }
        if own.count() + full.count() > 0 {
            for (name, totals) in [("generator_lag", &own), ("full_queue_lag", &full)] {
                counters.insert(format!("{name}_operations"), totals.count());
                let quantile = |q| totals.quantile_ns(q).unwrap_or(0);
                counters.insert(format!("{name}_ns_p50"), quantile(0.5));
                counters.insert(format!("{name}_ns_p99"), quantile(0.99));
                counters.insert(format!("{name}_ns_max"), totals.max_ns().unwrap_or(0));
            }
            self.recording.observed.generator.lag_ns_max = own.max_ns();
        }
        let sum = |of: fn(&GroupReport) -> u64| report.groups.iter().map(of).sum::<u64>();
        counters.insert("operations_never_started".into(), sum(|g| g.end.never_started));
        counters.insert("operations_abandoned".into(), sum(|g| g.end.abandoned));
        counters.insert("intervals_merged".into(), sum(|g| g.end.intervals_merged));
        let workers = sum(|g| g.punt_workers as u64);
        counters.insert("ring_worker_threads".into(), workers);
        counters.insert("ring_worker_cpu_ns".into(), sum(|g| g.punt_cpu.total_ns()));
        if workers > 0 {
            let why = &mut self.recording.engine.why;
            why.push_str(&format!(
                "; the kernel carried operations in {workers} threads of its own, as this file \
                 system does not take them without waiting"
            ));
        }
    }

    // What becomes of it.

    pub(super) fn note_groups(&mut self, groups: &[GroupReport]) {
        // What warmed the page cache went through it on purpose: that says nothing of the load.
        let warming = self.recording.phases.last().is_some_and(|p| p.kind == PhaseKind::Caches);
        for group in groups {
            if let (Some(remote), Some(said)) = (&mut self.matrix.home.remote, &group.remote) {
                remote.note(said);
                issue::note_remote(&mut self.recording.engine, &remote.directories());
            }
            if !warming {
                issue::note(&mut self.recording.engine, &group.backend, &self.places);
            }
            if let Some(error) = group.failure()
                && error.kind() != ErrorKind::Corrupt
            {
                self.fail(&error);
            }
        }
    }

    /// Counts damaged data and ends the run as corrupt.
    pub(super) fn note_damage(&mut self, damaged: u64, first: Option<Finding>) {
        if damaged == 0 {
            return;
        }
        self.recording.checks.errors += damaged;
        let unit_bytes = u64::from(self.matrix.home.manifest.unit_bytes);
        let says = match first {
            Some(finding) => {
                let file = self.matrix.home.files().get(finding.target as usize);
                let path = file.map_or(String::new(), |file| file.path.display().to_string());
                let (offset_bytes, kind) = (finding.offset_bytes, finding.damage.name());
                let says = format!("{path} at byte {offset_bytes}: {kind}");
                self.recording.checks.damage.push(Damage {
                    target: path,
                    page: offset_bytes / unit_bytes,
                    kind: kind.to_owned(),
                    says: says.clone(),
                });
                format!("{says} ({damaged} blocks in all)")
            }
            None => format!("{damaged} blocks are damaged"),
        };
        self.recording.fail(EndKind::Corruption, says);
    }

    fn fail(&mut self, error: &EngineError) {
        let kind = match error.kind() {
            ErrorKind::NoSpace | ErrorKind::TooSmall => EndKind::NoSpace,
            ErrorKind::Device => EndKind::IoError,
            ErrorKind::Corrupt => EndKind::Corruption,
            _ => EndKind::Environment,
        };
        self.recording.fail(kind, format!("{error}; {}", error.hint()));
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
            let says = format!("interrupted by the operator during {phase}");
            self.recording.fail(EndKind::Interrupted, says);
        }
    }

    pub(super) fn end_phase(&mut self, phase: u32, now_ns: u64, reached: bool, note: &str) {
        self.recording.finish(phase, now_ns, reached, note);
        if let Some(phase) = self.recording.phases.get(phase as usize) {
            self.matrix.watcher.end(phase);
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        if self.matrix.home.remote.is_some() {
            return Vec::new();
        }
        self.matrix.home.files().iter().map(|file| file.path.clone()).collect()
    }

    /// One for each stream.
    fn instances(&self, configs: &[StreamConfig]) -> Vec<Instance> {
        let remote = self.matrix.home.remote.as_ref();
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

/// What the operations of all threads together were.
fn shape_of(sources: &[MatrixSource]) -> WorkloadShape {
    let mut shapes = sources.iter().filter_map(MatrixSource::shape);
    let Some(mut all) = shapes.next().cloned() else { return WorkloadShape::default() };
    shapes.for_each(|shape| all.merge(shape));
    all.totals()
}

/// Sizes of all files, by their number in the file table.
fn file_sizes(configs: &[StreamConfig]) -> Vec<u64> {
    let mut sizes = Vec::new();
    for config in configs {
        let files = &config.files;
        let end = files.first_file as usize + files.files() as usize;
        sizes.resize(sizes.len().max(end), 0);
        sizes[files.first_file as usize..end].fill(files.file_size_bytes);
    }
    sizes
}

/// The latest interval, for progress.
pub(super) struct Pulse {
    rate_ops_per_s: f64,
    rate_bytes_per_s: f64,
    latency_ns_avg: Option<u64>,
    classes: usize,
}

impl Pulse {
    pub(super) fn new(classes: usize) -> Self {
        Self { rate_ops_per_s: 0.0, rate_bytes_per_s: 0.0, latency_ns_avg: None, classes }
    }

    pub(super) fn take(&mut self, row: &Interval, interval_ns: u64) {
        if row.supplement {
            return;
        }
        let (mut count, mut bytes, mut latency_ns) = (0, 0, 0);
        for class in row.classes.iter().take(self.classes) {
            count += class.sums.operations;
            bytes += class.sums.bytes;
            latency_ns += class.sums.latency_ns;
        }
        let seconds = interval_ns as f64 / 1e9;
        (self.rate_ops_per_s, self.rate_bytes_per_s) =
            (count as f64 / seconds, bytes as f64 / seconds);
        self.latency_ns_avg = (count > 0).then(|| latency_ns / count);
    }

    pub(super) fn progress(&self, elapsed_ns: u64, total_ns: u64) -> Progress {
        Progress {
            elapsed_ns,
            done_bytes: 0,
            total_bytes: 0,
            total_ns,
            rate_ops_per_s: self.rate_ops_per_s,
            rate_bytes_per_s: self.rate_bytes_per_s,
            latency_ns_avg: self.latency_ns_avg,
        }
    }
}

/// The calling thread's part of the load: phases, rows, observation.
struct Conductor<'r, 'a> {
    running: &'r mut Running<'a>,
    scribe: Scribe,
    pulse: Pulse,
    observer: Observer,
    phases: Phases,
    warm_up_ns: u64,
    measure_ns: u64,
    interval_ns: u64,
    next_sample_ns: u64,
    kind: PhaseKind,
    /// Ends the load.
    stop: &'r AtomicBool,
    /// Whether it ended because whoever judges said that it may.
    may_end: bool,
}

impl<'r, 'a> Conductor<'r, 'a> {
    fn new(
        running: &'r mut Running<'a>,
        classes: Vec<plimsoll_workload::step::Class>,
        config: &RunConfig,
        stop: &'r AtomicBool,
    ) -> Self {
        let now_ns = monotonic_ns();
        let since_ns = running.recording.since_start_ns(now_ns);
        let mut observer = Observer::new(running.places.clone(), since_ns);
        if !running.matrix.home.is_null {
            observer.look_at_files(&running.paths());
        }
        observer.watch_metrics(crate::issue::endpoints(&running.matrix.plan.observe));
        let pulse = Pulse::new(classes.len());
        let phase = running.recording.begin(PhaseKind::WarmUp, now_ns);
        running.matrix.watcher.begin(PhaseKind::WarmUp);
        Self {
            scribe: Scribe::new(classes, config.interval_ns, config.measure_ns),
            pulse,
            observer,
            phases: Phases { warm_up: Some(phase), measure: phase, measure_from_ns: u64::MAX },
            warm_up_ns: config.warm_up_ns,
            measure_ns: config.measure_ns,
            interval_ns: config.interval_ns,
            next_sample_ns: now_ns,
            kind: PhaseKind::WarmUp,
            stop,
            may_end: false,
            running,
        }
    }

    fn hear(&mut self, event: Event<'_>) {
        let now_ns = monotonic_ns();
        if self.kind == PhaseKind::WarmUp && now_ns >= self.phases.measure_from_ns {
            self.measure(now_ns);
        }
        match event {
            Event::Starts { measure_from_ns } => {
                self.phases.measure_from_ns = measure_from_ns;
                self.note_residency_before();
            }
            Event::Row(row) => {
                self.pulse.take(row, self.interval_ns);
                self.scribe.take(row, &self.phases, &mut self.running.recording);
                if let Some((operations, bytes)) = whole(row, self.scribe.classes()) {
                    self.may_end |= self.running.matrix.ending.take(operations, bytes);
                }
            }
            Event::Tick => self.tick(now_ns),
        }
    }

    fn note_residency_before(&mut self) {
        let resident = caches::resident_bytes(&self.running.paths());
        let page_cache = &mut self.running.recording.observed.page_cache;
        page_cache.resident_bytes_before = resident.map(|r| r.0);
    }

    /// Ends the warm-up where the measurement has started.
    fn measure(&mut self, now_ns: u64) {
        let from_ns = self.phases.measure_from_ns;
        let Some(warm_up) = self.phases.warm_up else { return };
        self.running.end_phase(warm_up, from_ns, true, "");
        self.phases.measure = self.running.recording.begin(PhaseKind::Measure, from_ns);
        self.running.matrix.watcher.begin(PhaseKind::Measure);
        self.kind = PhaseKind::Measure;
        self.observer.begin(self.running.recording.since_start_ns(now_ns));
        self.next_sample_ns = now_ns + self.interval_ns.max(SAMPLE_NS_MIN);
    }

    fn tick(&mut self, now_ns: u64) {
        if self.may_end || self.running.matrix.interrupt.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
        let measuring = self.kind == PhaseKind::Measure;
        if now_ns >= self.next_sample_ns {
            let since_ns = self.running.recording.since_start_ns(now_ns);
            let phase = self.phases.measure;
            self.observer.sample(since_ns, phase, &mut self.running.recording.series);
            self.next_sample_ns = now_ns + self.interval_ns.max(SAMPLE_NS_MIN);
        }
        let from_ns = self.phases.measure_from_ns;
        let (began_ns, total_ns) = if measuring {
            (from_ns, self.measure_ns)
        } else {
            (from_ns.saturating_sub(self.warm_up_ns), self.warm_up_ns)
        };
        let elapsed_ns = now_ns.saturating_sub(began_ns).min(total_ns);
        let progress = self.pulse.progress(elapsed_ns, total_ns);
        self.running.matrix.watcher.progress(self.kind, &progress);
    }

    /// Ends the phases after a run that could not be driven.
    fn give_up(self) {
        let now_ns = monotonic_ns();
        let phase = self.phases.measure;
        self.running.end_phase(phase, now_ns, false, "");
    }

    fn end(mut self, report: &RunReport) {
        let now_ns = monotonic_ns();
        if self.kind == PhaseKind::WarmUp && report.stop_ns > report.measure_from_ns {
            self.measure(now_ns);
        }
        let running = &mut *self.running;
        self.scribe.close(&mut running.recording);
        if self.kind == PhaseKind::WarmUp {
            return running.end_phase(self.phases.measure, now_ns, false, "");
        }
        totals(&mut running.recording, self.scribe.classes(), &report.collected);
        self.observe_end(now_ns);
        let running = &mut *self.running;
        let (settled, note) = running.matrix.ending.end();
        let reached = settled && (self.may_end || report.measured_ns() >= self.measure_ns);
        running.end_phase(self.phases.measure, report.stop_ns, reached, &note);
        let phase = running.recording.begin(PhaseKind::Close, report.stop_ns);
        running.matrix.watcher.begin(PhaseKind::Close);
        running.end_phase(phase, now_ns, true, "operations in flight at the end");
    }

    fn observe_end(&mut self, now_ns: u64) {
        let running = &mut *self.running;
        let since_ns = running.recording.since_start_ns(now_ns);
        let phase = self.phases.measure;
        self.observer.sample(since_ns, phase, &mut running.recording.series);
        let mut observed = self.observer.end(since_ns);
        let before = &running.recording.observed;
        observed.page_cache = before.page_cache.clone();
        observed.unknown.extend(before.unknown.iter().cloned());
        if let Some((resident, files)) = caches::resident_bytes(&running.paths()) {
            observed.page_cache.resident_bytes_after = Some(resident);
            observed.page_cache.files_bytes = Some(files);
        }
        running.recording.observed = observed;
    }
}
