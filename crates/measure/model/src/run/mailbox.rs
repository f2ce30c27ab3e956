//! Runs a mail store on a modelled system. The phases of the run follow one another in virtual
//! time.
//!
//! Each node with load runs a virtual machine, which has a share of the databases and sessions.
//! Each database and each log is a virtual disk. Databases start as if they had been created and
//! duplicated, but this I/O is not simulated. The plan sets the initial state of the caches. The
//! warm-up, measured and close phases are the same as in a run on files. Recovery and backup phases
//! are simulated I/O by I/O. A model stores no data, so the run verifies no data, and the evidence
//! contains no statement about data integrity.

use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{Instance, PhaseKind};
use plimsoll_plan::{CacheState, Mailbox, Pace};
use plimsoll_record::progress::Progress;
use plimsoll_record::recording::Recording;
use plimsoll_workload::mailbox::{
    DatabaseState, GenerationMap, Group, GroupPart, Mark, Phase, PhaseIo, Recover, ReplayFrom,
    Scan, ScanKind, Store, spread,
};
use plimsoll_workload::planned::{PlannedError, store as planned_store};
use plimsoll_workload::step::FileSpec;

use super::error::RunError;
use super::events::Events;
use super::phases::{ActiveRun, Load, ModelRun, SECOND_NS, histogram_interval_ns, on_nodes};
use super::virtual_time::{Place, VirtualTime};
use crate::system::System;

/// Runs a mail store and returns its evidence.
///
/// # Errors
/// [`RunError`] if numbers of the plan or model are not valid. All later errors are stored in the
/// recording.
pub fn run_mailbox<'a>(run: ModelRun<'a>, mailbox: &'a Mailbox) -> Result<Recording, RunError> {
    let store = store(mailbox, run.plan.seed, run.seed)?;
    let mut system = run.model.build(run.seed)?;
    let events = Events::new(run.plan, &[], &mut system)?;
    let parts = spread(store.config(), u32::from(system.compute_nodes()));
    let mut mail = Mail { parts, mailbox, running: ActiveRun::new(run, &mut system, events) };
    mail.describe(&store);
    mail.phases(&mut system, store)?;
    mail.running.explain_standstill(&system);
    Ok(mail.running.recording)
}

/// Creates an empty store from a plan.
pub(super) fn store(mailbox: &Mailbox, seed: u64, load_seed: u64) -> Result<Store, PlannedError> {
    let mut config = planned_store::config(mailbox, seed, seed, 1, 2)?;
    config.load_seed = load_seed;
    let map = || Box::<NoGenerationMap>::default();
    let states = config.databases.iter().map(|d| DatabaseState::new(d.clone(), map())).collect();
    Store::new(config, states).map_err(PlannedError::numbers)
}

/// Page generations are not recorded, because a model has no pages to check.
#[derive(Debug, Default)]
struct NoGenerationMap {
    durable_lsn: u64,
}

impl GenerationMap for NoGenerationMap {
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

struct Mail<'a> {
    running: ActiveRun<'a>,
    mailbox: &'a Mailbox,
    parts: Vec<GroupPart>,
}

impl Mail<'_> {
    fn describe(&mut self, store: &Store) {
        let engine = &mut self.running.recording.engine;
        engine.sessions = self.mailbox.threads;
        engine.closed_loop = self.mailbox.pace == Pace::Free;
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
        self.running.recording.instances = store.databases().iter().map(instance).collect();
    }

    /// Returns the node that runs the virtual machine of a database.
    fn node_of(&self, database: u32) -> u16 {
        let at = self.parts.iter().position(|part| part.databases.contains(&database));
        at.unwrap_or(0) as u16
    }

    fn phases(&mut self, system: &mut System, store: Store) -> Result<(), RunError> {
        self.lay_out(system, &store)?;
        let Some(store) = self.caches(system, store) else { return Ok(()) };
        let Some(store) = self.load(system, store)? else { return Ok(()) };
        self.afterwards(system, store);
        Ok(())
    }

    /// Places the databases and logs. They are then in the same state as after creation,
    /// duplication and formatting.
    fn lay_out(&mut self, system: &mut System, store: &Store) -> Result<(), RunError> {
        let config = store.config();
        let page_bytes = u64::from(config.page_bytes);
        let mut first = true;
        let (mut created, mut copied, mut logs) = (0, 0, 0);
        let mut files = Vec::new();
        for state in store.databases() {
            let id = state.config.id;
            let node = self.node_of(id);
            let data_bytes = u64::from(state.pages_used) * page_bytes;
            files.push((2 * id, data_bytes, node));
            files.push((2 * id + 1, store.ring_bytes(), node));
            *(if first { &mut created } else { &mut copied }) += data_bytes;
            logs += store.ring_bytes();
            first = false;
        }
        system.lay_files(&files);
        system.overfull().map_or(Ok(()), |why| Err(RunError::TooLarge(why)))?;
        let kinds = [
            (PhaseKind::Create, created),
            (PhaseKind::Duplicate, copied),
            (PhaseKind::FormatLogs, logs),
        ];
        for (kind, bytes) in kinds.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let phase = self.begin(system, kind);
            self.running.recording.phases[phase as usize].written_bytes = bytes;
            self.finish(system, phase, true, "data placed directly, without simulated I/O");
        }
        Ok(())
    }

    fn caches(&mut self, system: &mut System, store: Store) -> Option<Store> {
        if self.running.run.plan.phases.cache == CacheState::Warm {
            let parts = store.split(&self.parts);
            let scan = |part| Scan::new(part, ScanKind::Warm, PhaseIo::default());
            return self.machines(system, PhaseKind::Caches, parts.into_iter().map(scan).collect());
        }
        let phase = self.begin(system, PhaseKind::Caches);
        let note = match self.running.run.plan.phases.cache {
            CacheState::WarmMetadata => {
                "the model starts with empty caches, including the metadata caches"
            }
            _ => "the model starts with empty caches",
        };
        self.finish(system, phase, true, note);
        Some(store)
    }

    /// Runs the recovery and backup phases, if the plan has them. A model has no data that these
    /// phases could verify.
    fn afterwards(&mut self, system: &mut System, store: Store) {
        let mut store = Some(store);
        let files = self.mailbox.soft_recovery_log_files;
        if files > 0
            && let Some(whole) = store.take()
        {
            let from = ReplayFrom::LogFiles(files);
            let parts = whole.split(&self.parts).into_iter();
            let parts = parts.map(|p| Recover::new(p, from, PhaseIo::default())).collect();
            store = self.machines(system, PhaseKind::SoftRecovery, parts);
        }
        if self.mailbox.streaming_backup
            && let Some(whole) = store.take()
        {
            let parts = whole.split(&self.parts).into_iter();
            let parts = parts.map(|p| Scan::new(p, ScanKind::Backup, PhaseIo::default())).collect();
            self.machines(system, PhaseKind::Backup, parts);
        }
    }

    /// Runs one phase machine on each node, in parallel. Returns `None` if they did not finish.
    fn machines<P: Phase>(
        &mut self,
        system: &mut System,
        kind: PhaseKind,
        parts: Vec<P>,
    ) -> Option<Store> {
        let phase = self.begin(system, kind);
        let placed = on_nodes(parts);
        let place = placer(self.mailbox);
        let mut time = VirtualTime::new(system, placed, place, phase, u64::MAX);
        let mut stopped = false;
        let started_ns = time.now_ns();
        while !time.has_ended() {
            let until_ns = time.now_ns() + SECOND_NS;
            let recording = &mut self.running.recording;
            if !time.run_until(until_ns, &mut |snapshot, classes| recording.take(snapshot, classes))
            {
                self.running.stuck();
                break;
            }
            let sums = time.workloads().map(Phase::progress);
            let (done_bytes, total_bytes) =
                sums.fold((0, 0), |(d, t), p| (d + p.done_bytes, t + p.total_bytes));
            let elapsed_ns = time.now_ns() - started_ns;
            let progress = Progress { elapsed_ns, done_bytes, total_bytes, ..Progress::default() };
            self.running.run.watcher.progress(kind, &progress);
            if self.running.run.interrupt.load(Ordering::Relaxed) && !stopped {
                stopped = true;
                time.stop();
            }
        }
        let machines = time.into_workloads();
        let complete = machines.iter().all(Phase::is_complete);
        let stores = machines.into_iter().map(|machine| Box::new(machine).into_store()).collect();
        self.finish(system, phase, complete, "");
        if stopped {
            self.running.interrupted(kind);
        }
        if complete && self.running.recording.is_well() { Store::join(stores) } else { None }
    }

    /// Runs the warm-up, measured and close phases.
    fn load(&mut self, system: &mut System, store: Store) -> Result<Option<Store>, RunError> {
        let page_bytes = u64::from(store.config().page_bytes);
        let mut groups = Vec::new();
        for (store, part) in store.split(&self.parts).into_iter().zip(&self.parts) {
            let group = Group::new(store, &part.sessions).map_err(PlannedError::numbers)?;
            groups.push(group);
        }
        let warm_up = self.begin(system, PhaseKind::WarmUp);
        let histograms_ns = histogram_interval_ns(self.running.run.plan);
        let place = placer(self.mailbox);
        let time = VirtualTime::new(system, on_nodes(groups), place, warm_up, histograms_ns);
        let ready = |group: &Group| group.warm_up().reached();
        let load = Load::new(&mut self.running, time, Some(ready));
        let groups = load.carry_out(warm_up, Group::is_closed);
        let closed = groups.iter().all(Group::is_closed);
        let stores = groups.into_iter().map(Group::into_store).collect();
        self.shape();
        let Some(store) = Store::join(stores).filter(|_| closed) else { return Ok(None) };
        let recording = &mut self.running.recording;
        for (instance, state) in recording.instances.iter_mut().zip(store.databases()) {
            instance.size_bytes_final = u64::from(state.pages_used) * page_bytes;
        }
        Ok(recording.is_well().then_some(store))
    }

    fn shape(&mut self) {
        let counter = |name: &str| self.running.recording.counters.get(name).copied();
        if let (Some(sequential), Some(writes)) =
            (counter("log_writes_sequential"), counter("log_writes"))
            && writes > 0
        {
            let share = sequential as f64 / writes as f64;
            self.running.recording.observed.workload.log_sequential_share = Some(share);
        }
    }

    fn begin(&mut self, system: &System, kind: PhaseKind) -> u32 {
        self.running.begin(system, kind)
    }

    fn finish(&mut self, system: &System, phase: u32, reached: bool, note: &str) {
        self.running.finish(system, phase, reached, note);
    }
}

/// Returns the locations of the store's files. Each database is a virtual disk. The log files of a
/// database are stored one after another on a second virtual disk.
fn placer(mailbox: &Mailbox) -> impl Fn(&FileSpec) -> Place + use<> {
    let log_bytes = mailbox.log_file_size_bytes;
    move |file| {
        // `Store::files` creates names such as `db03.edb` and `db03-log/0007.log`.
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
