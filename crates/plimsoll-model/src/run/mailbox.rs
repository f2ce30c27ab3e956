//! A mail store on a modelled system: the phases of a run, one after the other, in virtual time.
//!
//! Each node that runs load has a virtual machine with its share of the databases and sessions; each
//! database and each log is a virtual disk. Databases are laid out in bulk as creation and duplication
//! leave them, without their I/O being simulated; caches are then as the plan declares. Warm-up, measure
//! and close are those of a run on files. Recovery and backup phases are simulated I/O by I/O. A model
//! carries no data, so that there is nothing to verify, and nothing is claimed of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::EngineError;
use plimsoll_engine::mailbox::store_config;
use plimsoll_engine::progress::{Progress, Watcher};
use plimsoll_engine::recording::Recording;
use plimsoll_engine::step::Snapshot;
use plimsoll_evidence::environment::Unknown;
use plimsoll_evidence::run::{Clock, EndKind, Instance, PathEngine, PhaseKind};
use plimsoll_plan::{CacheState, Mailbox, Pace, ResolvedPlan};
use plimsoll_workload::mailbox::{
    DatabaseState, GenerationMap, Group, GroupPart, Mark, Phase, PhaseIo, Recover, ReplayFrom,
    Scan, ScanKind, Store, spread,
};
use plimsoll_workload::step::{Class, ClassGroup, FileSpec};
use thiserror::Error;

use super::gauges::{Gauges, sources};
use super::modelled::Modelled;
use super::virtual_time::{Place, VirtualTime};
use crate::spec::ModelError;
use crate::system::System;

const SECOND_NS: u64 = 1_000_000_000;
/// Histograms are a quarter of a megabyte for each class: so many intervals of them over the measured
/// phase, and as many samples of stations times ten.
const HISTOGRAM_INTERVALS: u64 = 12;
const GAUGE_INTERVALS: u64 = 120;
/// Counters that are levels and not sums: their change over a phase says nothing.
const LEVELS: [&str; 2] = ["pages_used", "cache_pages_dirty"];

/// Why a plan cannot be run on a model.
#[derive(Debug, Error)]
pub enum RunError {
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The plan's numbers.
    #[error(transparent)]
    Plan(#[from] EngineError),
}

/// A mail store run to be carried out on a model.
pub struct ModelMail<'a> {
    /// The plan, with one target.
    pub plan: &'a ResolvedPlan,
    /// The store's settings.
    pub mailbox: &'a Mailbox,
    /// The system.
    pub model: &'a Modelled,
    /// Seed of the load and of the system's own choices.
    pub seed: u64,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Is told how it goes.
    pub watcher: &'a mut dyn Watcher,
}

/// Carries the run out and gives its evidence.
///
/// # Errors
/// [`RunError`]: a plan or model whose numbers do not fit. What happens later is in the recording.
pub fn run_mailbox(mail: ModelMail<'_>) -> Result<Recording, RunError> {
    let mut config = store_config(mail.mailbox, mail.plan.seed, mail.plan.seed, 1, 2)?;
    config.load_seed = mail.seed;
    let marks = || Box::<Unmarked>::default();
    let states = config.databases.iter().map(|d| DatabaseState::new(d.clone(), marks())).collect();
    let store = Store::new(config, states)
        .map_err(|error| RunError::Plan(EngineError::Config(error.to_string())))?;
    let mut system = mail.model.build(mail.seed)?;
    let parts = spread(store.config(), u32::from(system.compute_nodes()));
    let gauges = Gauges::new(&mut system);
    let mut running = Running { parts, gauges, recording: Recording::new(0), mail };
    running.describe(&store);
    running.phases(&mut system, store)?;
    Ok(running.recording)
}

/// No generations: a model carries no pages that could be checked against them.
#[derive(Debug, Default)]
struct Unmarked {
    durable_lsn: u64,
}

impl GenerationMap for Unmarked {
    fn get(&self, _page: u32) -> Mark {
        Mark::at(1)
    }

    fn set(&mut self, _page: u32, _mark: Mark) {}

    fn durable_lsn(&self) -> u64 {
        self.durable_lsn
    }

    fn set_durable_lsn(&mut self, lsn: u64) {
        self.durable_lsn = lsn;
    }
}

struct Running<'a> {
    mail: ModelMail<'a>,
    recording: Recording,
    parts: Vec<GroupPart>,
    gauges: Gauges,
}

type Counters = BTreeMap<(u32, u32), Vec<(&'static str, u64)>>;

impl Running<'_> {
    fn describe(&mut self, store: &Store) {
        let model = self.mail.model;
        let engine = &mut self.recording.engine;
        engine.kind = "model".to_owned();
        engine.why = format!("the target is the model {} ({})", model.spec().name, model.origin());
        engine.threads = 1;
        engine.sessions = self.mail.mailbox.threads;
        engine.closed_loop = self.mail.mailbox.pace == Pace::Free;
        engine.clock = Clock { source: "virtual".to_owned(), resolution_ns: 1, cost_ps: 0 };
        engine.paths = vec![PathEngine {
            path: format!("model {}", model.spec().name),
            direct: true,
            why: String::new(),
        }];
        let page_bytes = u64::from(store.config().page_bytes);
        let instance = |state: &DatabaseState| {
            let size_bytes = u64::from(state.pages_used) * page_bytes;
            let disk =
                |n: u32| format!("virtual disk {n} of node{}", self.node_of(state.config.id));
            Instance {
                name: format!("db{}", state.config.id),
                path: disk(2 * state.config.id),
                log_path: Some(disk(2 * state.config.id + 1)),
                size_bytes_initial: size_bytes,
                size_bytes_final: size_bytes,
                allocated_bytes: u64::from(state.config.pages_max) * page_bytes,
            }
        };
        self.recording.instances = store.databases().iter().map(instance).collect();
        self.recording.observed.unknown.push(Unknown {
            what: "what the host did".to_owned(),
            why: "the target is a model in virtual time: the host only computed".to_owned(),
            would_show: "a run on real storage".to_owned(),
        });
    }

    /// The node on which a database's virtual machine runs.
    fn node_of(&self, database: u32) -> u16 {
        let at = self.parts.iter().position(|part| part.databases.contains(&database));
        at.unwrap_or(0) as u16
    }

    fn phases(&mut self, system: &mut System, store: Store) -> Result<(), RunError> {
        self.lay_out(system, &store);
        let Some(store) = self.caches(system, store) else { return Ok(()) };
        let Some(store) = self.load(system, store)? else { return Ok(()) };
        self.afterwards(system, store);
        Ok(())
    }

    /// Databases and logs, as creation, duplication and formatting leave them.
    fn lay_out(&mut self, system: &mut System, store: &Store) {
        let config = store.config();
        let page_bytes = u64::from(config.page_bytes);
        let mut first = true;
        let (mut created, mut copied, mut logs) = (0, 0, 0);
        for state in store.databases() {
            let id = state.config.id;
            let node = self.node_of(id);
            let data_bytes = u64::from(state.pages_used) * page_bytes;
            system.lay_file(2 * id, data_bytes, node);
            system.lay_file(2 * id + 1, store.ring_bytes(), node);
            *(if first { &mut created } else { &mut copied }) += data_bytes;
            logs += store.ring_bytes();
            first = false;
        }
        let kinds = [
            (PhaseKind::Create, created),
            (PhaseKind::Duplicate, copied),
            (PhaseKind::FormatLogs, logs),
        ];
        for (kind, bytes) in kinds.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let phase = self.begin(system, kind);
            self.recording.phases[phase as usize].written_bytes = bytes;
            self.finish(system, phase, true, "laid out in bulk; not simulated");
        }
    }

    fn caches(&mut self, system: &mut System, store: Store) -> Option<Store> {
        if self.mail.plan.phases.cache == CacheState::Warm {
            let parts = store.split(&self.parts);
            let scan = |part| Scan::new(part, ScanKind::Checksum, PhaseIo::default());
            return self.machines(system, PhaseKind::Caches, parts.into_iter().map(scan).collect());
        }
        let phase = self.begin(system, PhaseKind::Caches);
        let note = match self.mail.plan.phases.cache {
            CacheState::WarmMetadata => "the model begins with empty caches, metadata's too",
            _ => "the model begins with empty caches",
        };
        self.finish(system, phase, true, note);
        Some(store)
    }

    /// Recovery and backup, where the plan has them; there is nothing to verify.
    fn afterwards(&mut self, system: &mut System, store: Store) {
        let mut store = Some(store);
        let files = self.mail.mailbox.soft_recovery_log_files;
        if files > 0
            && let Some(whole) = store.take()
        {
            let from = ReplayFrom::LogFiles(files);
            let parts = whole.split(&self.parts).into_iter();
            let parts = parts.map(|p| Recover::new(p, from, PhaseIo::default())).collect();
            store = self.machines(system, PhaseKind::SoftRecovery, parts);
        }
        if self.mail.mailbox.streaming_backup
            && let Some(whole) = store.take()
        {
            let parts = whole.split(&self.parts).into_iter();
            let parts = parts.map(|p| Scan::new(p, ScanKind::Backup, PhaseIo::default())).collect();
            self.machines(system, PhaseKind::Backup, parts);
        }
    }

    /// Drives phase machines side by side, one on each node; `None` where they did not end.
    fn machines<P: Phase>(
        &mut self,
        system: &mut System,
        kind: PhaseKind,
        parts: Vec<P>,
    ) -> Option<Store> {
        let phase = self.begin(system, kind);
        let placed = on_nodes(parts);
        let place = placer(self.mail.mailbox);
        let mut time = VirtualTime::new(system, placed, place, phase, u64::MAX);
        let mut stopped = false;
        let started_ns = time.now_ns();
        while !time.has_ended() {
            let until_ns = time.now_ns() + SECOND_NS;
            let recording = &mut self.recording;
            if !time.run_until(until_ns, &mut |snapshot, classes| recording.take(snapshot, classes))
            {
                self.stuck();
                break;
            }
            let sums = time.workloads().map(Phase::progress);
            let (done_bytes, total_bytes) =
                sums.fold((0, 0), |(d, t), p| (d + p.done_bytes, t + p.total_bytes));
            let elapsed_ns = time.now_ns() - started_ns;
            let progress = Progress { elapsed_ns, done_bytes, total_bytes, ..Progress::default() };
            self.mail.watcher.progress(kind, &progress);
            if self.mail.interrupt.load(Ordering::Relaxed) && !stopped {
                stopped = true;
                time.stop();
            }
        }
        let machines = time.into_workloads();
        let complete = machines.iter().all(Phase::is_complete);
        let stores = machines.into_iter().map(|machine| Box::new(machine).into_store()).collect();
        self.finish(system, phase, complete, "");
        if stopped {
            self.interrupted(kind);
        }
        if complete && self.recording.is_well() { Store::join(stores) } else { None }
    }

    /// Warms up, measures and closes.
    fn load(&mut self, system: &mut System, store: Store) -> Result<Option<Store>, RunError> {
        let config = store.config().clone();
        let mut groups = Vec::new();
        for (store, part) in store.split(&self.parts).into_iter().zip(&self.parts) {
            let group = Group::new(store, &part.sessions)
                .map_err(|error| EngineError::Config(error.to_string()))?;
            groups.push(group);
        }
        let place = placer(self.mail.mailbox);
        let phases = &self.mail.plan.phases;
        let (warm_up_ns, measure_ns) = (phases.warm_up_ns, phases.measure_ns);
        let warm_up = self.begin(system, PhaseKind::WarmUp);
        let histograms_ns = (measure_ns / HISTOGRAM_INTERVALS).max(SECOND_NS);
        let time = VirtualTime::new(system, on_nodes(groups), place, warm_up, histograms_ns);
        let mut load =
            Load { running: self, time, latest: Latest::default(), counters: Counters::new() };
        let ready = load.stretch(PhaseKind::WarmUp, warm_up, warm_up_ns);
        let note =
            if ready { "" } else { "cache and log depth were not there when its time was up" };
        let counters = load.measure(warm_up, ready, note, measure_ns);
        let close = load.close();
        let Load { time, .. } = load;
        let groups = time.into_workloads();
        let closed = groups.iter().all(Group::is_closed);
        let stores = groups.into_iter().map(Group::into_store).collect();
        self.finish(system, close, closed, "");
        self.recording.counters = counters;
        self.shape();
        let Some(store) = Store::join(stores).filter(|_| closed) else { return Ok(None) };
        for (instance, state) in self.recording.instances.iter_mut().zip(store.databases()) {
            instance.size_bytes_final = u64::from(state.pages_used) * u64::from(config.page_bytes);
        }
        Ok(self.recording.is_well().then_some(store))
    }

    fn shape(&mut self) {
        let counter = |name: &str| self.recording.counters.get(name).copied();
        if let (Some(sequential), Some(writes)) =
            (counter("log_writes_sequential"), counter("log_writes"))
            && writes > 0
        {
            let share = sequential as f64 / writes as f64;
            self.recording.observed.workload.log_sequential_share = Some(share);
        }
    }

    fn begin(&mut self, system: &System, kind: PhaseKind) -> u32 {
        self.mail.watcher.begin(kind);
        self.recording.begin(kind, system.now_ns())
    }

    fn finish(&mut self, system: &System, phase: u32, reached: bool, note: &str) {
        self.recording.finish(phase, system.now_ns(), reached, note);
        self.mail.watcher.end(&self.recording.phases[phase as usize]);
    }

    fn interrupted(&mut self, kind: PhaseKind) {
        let says = format!("interrupted by the operator during {}", kind.label());
        self.recording.fail(EndKind::Interrupted, says);
    }

    fn stuck(&mut self) {
        let says = "nothing is left to happen in the model although I/O is in flight: a defect";
        self.recording.fail(EndKind::Environment, says);
    }
}

/// The load under way.
struct Load<'r, 'a, 's> {
    running: &'r mut Running<'a>,
    time: VirtualTime<'s, Group>,
    latest: Latest,
    counters: Counters,
}

/// Transactional I/O of the last interval, for progress.
#[derive(Default)]
struct Latest {
    ios: u64,
    latency_ns: u64,
    size_bytes: u64,
}

impl Load<'_, '_, '_> {
    /// Runs for a phase's length, interval by interval. A warm-up ends when the store is warm. True
    /// where the phase reached what it was for.
    fn stretch(&mut self, kind: PhaseKind, phase: u32, length_ns: u64) -> bool {
        let start_ns = self.time.now_ns();
        let end_ns = start_ns + length_ns;
        let interval_ns = self.running.mail.plan.evidence.interval_ns.max(10_000_000);
        let gauges_ns = (length_ns / GAUGE_INTERVALS).max(interval_ns);
        let mut sample_ns = start_ns + gauges_ns;
        loop {
            let now_ns = self.time.now_ns();
            if kind == PhaseKind::WarmUp && self.time.workloads().all(|g| g.warm_up().reached()) {
                return true;
            }
            if now_ns >= end_ns {
                return kind == PhaseKind::Measure;
            }
            if self.running.mail.interrupt.load(Ordering::Relaxed) {
                self.running.interrupted(kind);
                return false;
            }
            if !self.run_until((now_ns + interval_ns).min(end_ns)) {
                self.running.stuck();
                return false;
            }
            let now_ns = self.time.now_ns();
            if now_ns >= sample_ns || now_ns >= end_ns {
                let series = &mut self.running.recording.series;
                self.running.gauges.sample(self.time.system(), phase, series);
                sample_ns += gauges_ns;
            }
            let progress = self.progress(now_ns - start_ns, length_ns, interval_ns);
            self.running.mail.watcher.progress(kind, &progress);
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
        let Self { running, time, latest, counters } = self;
        *latest = Latest::default();
        time.run_until(until_ns, &mut taker(&mut running.recording, latest, counters))
    }

    fn change(&mut self, phase: u32) {
        let Self { running, time, latest, counters } = self;
        time.begin(phase, &mut taker(&mut running.recording, latest, counters));
    }

    /// Ends the warm-up, measures; gives what the workload counted meanwhile.
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
        let reached = self.stretch(PhaseKind::Measure, phase, length_ns);
        let mail = &self.running.mail;
        let inside = self.running.gauges.close(self.time.system(), mail.model, mail.seed);
        self.running.recording.observed.sources = sources(&inside);
        self.running.recording.observed.inside = Some(inside);
        self.end(phase, reached, "");
        rise(&self.counters, phase)
    }

    /// Has every group close; gives the phase, which the caller ends.
    fn close(&mut self) -> u32 {
        let phase = self.start(PhaseKind::Close);
        self.time.stop();
        while !self.time.has_ended() {
            if !self.run_until(self.time.now_ns() + SECOND_NS) {
                self.running.stuck();
                break;
            }
        }
        phase
    }

    fn start(&mut self, kind: PhaseKind) -> u32 {
        let now_ns = self.time.now_ns();
        self.running.mail.watcher.begin(kind);
        let phase = self.running.recording.begin(kind, now_ns);
        self.change(phase);
        phase
    }

    fn end(&mut self, phase: u32, reached: bool, note: &str) {
        let phase_before = phase;
        self.change(phase_before);
        self.running.recording.finish(phase, self.time.now_ns(), reached, note);
        self.running.mail.watcher.end(&self.running.recording.phases[phase as usize]);
    }
}

/// What takes the intervals of all parts in.
fn taker<'t>(
    recording: &'t mut Recording,
    latest: &'t mut Latest,
    counters: &'t mut Counters,
) -> impl FnMut(&Snapshot, &[Class]) + 't {
    |snapshot, classes| {
        recording.take(snapshot, classes);
        for (sums, class) in snapshot.classes.iter().zip(classes) {
            if class.group == ClassGroup::Transactional {
                latest.ios += sums.count;
                latest.latency_ns += sums.latency_ns_sum;
                latest.size_bytes += sums.size_bytes;
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

/// How much each counter rose during a phase, over all parts.
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

/// Part `i` runs on node `i`.
fn on_nodes<W>(parts: Vec<W>) -> Vec<(W, u16)> {
    parts.into_iter().enumerate().map(|(at, part)| (part, at as u16)).collect()
}

/// Where the store's files lie: each database on a virtual disk, the files of its log one after the
/// other on another.
fn placer(mailbox: &Mailbox) -> impl Fn(&FileSpec) -> Place + use<> {
    let log_bytes = mailbox.log_file_size_bytes;
    move |file| {
        // Names are those of `Store::files`: `db03.edb` and `db03-log/0007.log`.
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let text = file.name.strip_prefix("db").unwrap_or_default();
        let id: u32 = text[..digits(text)].parse().unwrap_or(0);
        match file.name.split_once('/') {
            None => Place { disk: 2 * id, base_bytes: 0 },
            Some((_, log)) => {
                let number: u64 = log[..digits(log)].parse().unwrap_or(0);
                Place { disk: 2 * id + 1, base_bytes: number * log_bytes }
            }
        }
    }
}
