//! The phases of a run on real files, one after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{EndKind, Instance, PhaseKind};
use plimsoll_plan::{Mailbox, ResolvedPlan, Target};
use plimsoll_record::progress::Progress;
use plimsoll_record::recording::Recording;
use plimsoll_record::snapshot::IntervalSnapshot;
use plimsoll_sys::clock;
use plimsoll_workload::mailbox::{
    Create, Duplicate, Finding, Format, Phase, PhaseIo, Recover, ReplayFrom, Scan, ScanKind, Store,
    spread,
};
use plimsoll_workload::step::Class;

use super::generation_map::MappedGenerationMap;
use super::locator::Locator;
use super::manifest::StoreState;
use super::run_state::{MailRun, MailRunState};
use super::store_directories::StoreDirectories;
use super::{caches, settings};
use crate::backend::BackendReport;
use crate::step::{Control, Event, PartResult, Stage, WorkloadProgress, run_stage};
use crate::{EngineError, defect, issue, start_barrier};

/// Maximum number of damaged parts that the bundle lists. Other damaged parts are only counted.
const DAMAGE_LISTED_MAX: usize = 100;
/// Maximum number of times that a thread sends its histograms during the measured phase.
const HISTOGRAM_INTERVALS: u64 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// Runs all phases. Returns the directories of the store and all recorded data, even after an
/// error.
pub fn run(mut mail: MailRun<'_>) -> (Recording, StoreDirectories) {
    let mut run = MailRunState {
        stage: stage(mail.plan, mail.target, &mail.store_directories),
        threads: threads(mail.plan, mail.mailbox),
        recording: Recording::new(clock::monotonic_ns()).with_spool(mail.spool.take()),
        mail,
    };
    run.recording.engine.sessions = run.mail.mailbox.threads;
    run.recording.engine.closed_loop = run.mail.mailbox.pace == plimsoll_plan::Pace::Free;
    run.recording.engine.clock = issue::clock();
    match defect::catch_panic(|| run.phases()) {
        Ok(Ok(())) => {}
        Ok(Err(error)) | Err(error) => run.fail(&error),
    }
    defect::note_panic(&mut run.recording);
    run.recording.recall();
    (run.recording, run.mail.store_directories)
}

impl MailRunState<'_> {
    fn phases(&mut self) -> Result<(), EngineError> {
        let store = settings::open_store(&self.mail.store_directories.manifest)?;
        self.recording.instances = self.instances(&store);
        let store = if self.mail.store_directories.is_prepared() {
            store
        } else {
            self.mail.store_directories.make_files(&store)?;
            let Some(store) = self.prepare(store)? else { return Ok(()) };
            store
        };
        let Some(store) = caches::prepare(self, store)? else { return Ok(()) };
        self.mail.store_directories.mark(StoreState::InUse, settings::positions(&store))?;
        let Some(store) = self.load(store)? else { return Ok(()) };
        self.close(&store)?;
        if !self.recording.is_well() {
            return Ok(());
        }
        self.run_final_phases(store)
    }

    /// Creates the first database, copies it to the other databases, and creates the log files.
    fn prepare(&mut self, store: Store) -> Result<Option<Store>, EngineError> {
        let io = PhaseIo::default();
        let create = Create::new(store, io);
        let Some(store) = self.run_machines(PhaseKind::Create, vec![create])? else {
            return Ok(None);
        };
        let store = if store.databases().len() > 1 {
            self.run_machines(PhaseKind::Duplicate, vec![Duplicate::new(store, io)])?
        } else {
            Some(store)
        };
        let Some(store) = store else { return Ok(None) };
        let parts = self.split(store).into_iter().map(|part| Format::new(part, io)).collect();
        self.run_machines(PhaseKind::FormatLogs, parts)
    }

    /// Marks the store as cleanly closed after the database files contain every change and the
    /// generation maps are durable.
    fn close(&mut self, store: &Store) -> Result<(), EngineError> {
        let directory = self.mail.store_directories.marks_directory();
        for state in store.databases() {
            MappedGenerationMap::persist(&directory, state.config.id, state.config.pages_max)
                .map_err(|error| EngineError::system("storing the generations", error))?;
        }
        self.mail.store_directories.mark(StoreState::Clean, settings::positions(store))
    }

    /// Runs those phases after the load that the plan requests: soft recovery, backup, and a
    /// checksum of all pages.
    fn run_final_phases(&mut self, store: Store) -> Result<(), EngineError> {
        let mut store = Some(store);
        let files = self.mail.mailbox.soft_recovery_log_files;
        if files > 0
            && let Some(whole) = store.take()
        {
            // Recovery writes pages and a log block. If recovery is killed, the store must
            // therefore not be marked as closed.
            self.mail.store_directories.mark(StoreState::InUse, settings::positions(&whole))?;
            let from = ReplayFrom::LogFiles(files);
            let parts = self.split(whole).into_iter();
            let parts = parts.map(|p| Recover::new(p, from, PhaseIo::default())).collect();
            store = self.run_machines(PhaseKind::SoftRecovery, parts)?;
            if let Some(recovered) = store.as_ref().filter(|_| self.recording.is_well()) {
                self.close(recovered)?;
            }
        }
        if self.mail.mailbox.streaming_backup
            && let Some(whole) = store.take()
        {
            let parts = self.split(whole).into_iter();
            let parts = parts.map(|p| Scan::new(p, ScanKind::Backup, PhaseIo::default())).collect();
            store = self.run_machines(PhaseKind::Backup, parts)?;
        }
        if self.mail.plan.phases.verify
            && let Some(whole) = store.take()
        {
            self.verify(whole)?;
        }
        Ok(())
    }

    fn verify(&mut self, store: Store) -> Result<(), EngineError> {
        let parts = self.split(store);
        let scan = |part| Scan::new(part, ScanKind::Checksum, PhaseIo::default());
        let parts: Vec<Scan> = parts.into_iter().map(scan).collect();
        let (ended, phase) = self.drive_machines(PhaseKind::Verify, parts)?;
        let complete = ended.iter().all(|e| e.workload.as_ref().is_some_and(Scan::is_complete));
        let reports = || ended.iter().filter_map(|e| Some(e.workload.as_ref()?.report()));
        let pages: u64 = reports().map(|report| report.pages_checked).sum();
        let blocks: u64 = reports().map(|report| report.log_blocks_checked).sum();
        if complete {
            self.recording.checks.pages_checked = Some(pages);
            self.recording.checks.log_blocks_checked = Some(blocks);
        }
        self.end_machines(phase, ended)?;
        Ok(())
    }

    /// Runs the state machines of a phase in parallel. Returns the store, or `None` if a state
    /// machine did not finish.
    pub(super) fn run_machines<W: Phase + Send + 'static>(
        &mut self,
        kind: PhaseKind,
        parts: Vec<W>,
    ) -> Result<Option<Store>, EngineError> {
        let (ended, phase) = self.drive_machines(kind, parts)?;
        self.end_machines(phase, ended)
    }

    fn drive_machines<W: Phase + Send + 'static>(
        &mut self,
        kind: PhaseKind,
        parts: Vec<W>,
    ) -> Result<(Vec<PartResult<W>>, u32), EngineError> {
        let classes: Vec<_> = parts.iter().map(|part| part.classes().to_vec()).collect();
        let run_ns = self.recording.start_ns;
        let started_ns =
            start_barrier::wait_for_start(self.mail.watcher, self.mail.interrupt, kind, run_ns);
        let phase = self.recording.begin(kind, started_ns);
        self.mail.watcher.begin(kind);
        let control = Arc::new(Control::new(phase, started_ns));
        let mut latest = LatestSnapshots::new(&classes, |_| true);
        let (recording, mail) = (&mut self.recording, &mut self.mail);
        let ended =
            run_stage(parts, &self.stage, &control, progress_of::<W>, |event| match event {
                Event::Snapshot(snapshot) => {
                    recording.take(&snapshot, &classes[snapshot.thread as usize]);
                    latest.take(*snapshot);
                }
                Event::Tick => {
                    if mail.interrupt.load(Ordering::Relaxed) {
                        control.stop();
                    }
                    let elapsed_ns = clock::monotonic_ns().saturating_sub(started_ns);
                    mail.watcher.progress(kind, &latest.progress(elapsed_ns, 0));
                }
            });
        Ok((ended, phase))
    }

    fn end_machines<W: Phase + Send + 'static>(
        &mut self,
        phase: u32,
        ended: Vec<PartResult<W>>,
    ) -> Result<Option<Store>, EngineError> {
        let done = |e: &PartResult<W>| {
            e.outcome.is_ok() && e.workload.as_ref().is_some_and(Phase::is_complete)
        };
        let complete = ended.iter().all(done);
        self.recording.finish(phase, clock::monotonic_ns(), complete, "");
        self.recording.tell(self.mail.watcher);
        self.mail.watcher.end(&self.recording.phases[phase as usize]);
        self.note_outcomes(&ended);
        let mut stores = Vec::new();
        for workload in ended.into_iter().filter_map(|ended| ended.workload) {
            self.note_findings(workload.findings());
            if let Some(poison) = workload.poison() {
                self.note_poison(poison);
            }
            stores.push(Box::new(workload).into_store());
        }
        if !complete {
            self.note_interrupt();
        }
        Ok(if complete && self.recording.is_well() { Store::join(stores) } else { None })
    }

    /// Records how the threads issued their I/O, and the errors that ended threads.
    pub(super) fn note_outcomes<W>(&mut self, ended: &[PartResult<W>]) {
        self.recording.left_behind |= ended.iter().any(PartResult::is_abandoned);
        let left = |e: &PartResult<W>| e.is_abandoned() || e.outcome == Err(EngineError::Stopped);
        if ended.iter().any(left) {
            self.note_interrupt();
        }
        for PartResult { outcome, .. } in ended {
            match outcome {
                Ok(report) => self.note_backend(report),
                // The error is recorded for the thread that caused the stop.
                Err(EngineError::Stopped) => {}
                Err(error) => self.fail(error),
            }
        }
    }

    /// If the operator interrupted the run, records this.
    pub(super) fn note_interrupt(&mut self) {
        if self.mail.interrupt.load(Ordering::Relaxed) {
            let phase = self.recording.phases.last().map_or("", |phase| phase.kind.label());
            let by = self.mail.watcher.stop_reason();
            let by = by.as_deref().unwrap_or("the operator");
            let says = format!("interrupted by {by} during {phase}");
            self.recording.fail(EndKind::Interrupted, says);
        }
    }

    /// Splits the store into parts, one for each thread.
    pub(super) fn split(&self, store: Store) -> Vec<Store> {
        let parts = spread(store.config(), self.threads);
        store.split(&parts)
    }

    pub(super) fn note_backend(&mut self, report: &BackendReport) {
        issue::note(&mut self.recording.engine, report, &self.stage.directories);
    }

    fn note_findings(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.note_damage(finding);
        }
    }

    /// Counts the damaged parts. If there are any, marks the run as corrupt.
    fn note_damage(&mut self, finding: &Finding) {
        let locator = self.locator();
        let says = match &locator {
            Some(locator) => locator.describe(finding),
            None => finding.to_string(),
        };
        let checks = &mut self.recording.checks;
        checks.errors += 1;
        if let Some(locator) = locator.filter(|_| checks.damage.len() < DAMAGE_LISTED_MAX) {
            checks.damage.push(locator.damage(finding));
        }
        self.recording.fail(EndKind::Corruption, says);
    }

    /// Ends the run with the error that stopped a state machine.
    pub(super) fn note_poison(&mut self, poison: &Finding) {
        if poison.is_corruption() {
            return self.note_damage(poison);
        }
        let located = self.locator().and_then(|locator| locator.locate(poison));
        let where_ = located.map(|(path, _)| format!(" ({})", path.display()));
        let error = poison.errno().map(plimsoll_sys::error::describe);
        let says = match error {
            Some(error) => format!(
                "database {}, {}: {error}{}",
                poison.database,
                poison.place,
                where_.unwrap_or_default()
            ),
            None => format!("{poison}{}", where_.unwrap_or_default()),
        };
        let kind = match poison.errno() {
            Some(libc::ENOSPC | libc::EDQUOT) => EndKind::NoSpace,
            _ => EndKind::IoError,
        };
        self.recording.fail(kind, says);
    }

    /// Returns a locator for the store, or `None` if the settings of the store are not valid.
    fn locator(&self) -> Option<Locator> {
        let config = settings::config_of(&self.mail.store_directories.manifest).ok()?;
        Some(Locator { directories: self.stage.directories.clone(), config })
    }

    /// Ends the run with an error from the engine.
    pub(super) fn fail(&mut self, error: &EngineError) {
        self.recording.fail_with(error);
        let now_ns = clock::monotonic_ns();
        if let Some(last) = self.recording.phases.len().checked_sub(1)
            && self.recording.phases[last].duration_ns == 0
        {
            self.recording.finish(last as u32, now_ns, false, "");
        }
    }

    fn instances(&self, store: &Store) -> Vec<Instance> {
        let page_bytes = u64::from(store.config().page_bytes);
        let path = |directory: u32| {
            let path = self.stage.directories.get(directory as usize);
            path.map(|path| path.display().to_string()).unwrap_or_default()
        };
        let instance = |state: &plimsoll_workload::mailbox::DatabaseState| {
            let size_bytes = u64::from(state.pages_used) * page_bytes;
            Instance {
                name: format!("db{}", state.config.id),
                path: path(state.config.directory),
                log_path: Some(path(state.config.log_directory)),
                size_bytes_initial: size_bytes,
                size_bytes_final: size_bytes,
                allocated_bytes: u64::from(state.config.pages_max) * page_bytes,
            }
        };
        store.databases().iter().map(instance).collect()
    }
}

/// Latest interval of each thread. The progress reports use these intervals.
pub(super) struct LatestSnapshots {
    threads: Vec<Option<IntervalSnapshot>>,
    /// For each thread and class: true if the class is counted in the reported rate and latency.
    /// Threads with different numbers of databases have different classes.
    counted: Vec<Vec<bool>>,
    rate_ops_per_s: f64,
    rate_bytes_per_s: f64,
    latency: (u64, u64),
}

impl LatestSnapshots {
    /// Creates an entry for each thread. `counts` returns true for the classes that are counted in
    /// the reported rate and latency.
    pub(super) fn new(classes: &[Vec<Class>], counts: impl Fn(&Class) -> bool) -> Self {
        let counted = |classes: &Vec<Class>| classes.iter().map(&counts).collect();
        Self {
            threads: vec![None; classes.len()],
            counted: classes.iter().map(counted).collect(),
            rate_ops_per_s: 0.0,
            rate_bytes_per_s: 0.0,
            latency: (0, 0),
        }
    }

    /// Stores the latest interval of a thread, and updates the reported rate and latency.
    pub(super) fn take(&mut self, snapshot: IntervalSnapshot) {
        let at = snapshot.thread as usize;
        if let Some(slot) = self.threads.get_mut(at) {
            *slot = Some(snapshot);
        }
        let (mut ops, mut bytes, mut latency) = (0.0, 0.0, (0, 0));
        for (snapshot, counted) in self.threads.iter().zip(&self.counted) {
            let Some(snapshot) = snapshot else { continue };
            let seconds = snapshot.end_ns.saturating_sub(snapshot.start_ns).max(1) as f64 / 1e9;
            let classes = snapshot.totals.iter().zip(counted).filter(|(_, counted)| **counted);
            for (totals, _) in classes {
                ops += totals.operations as f64 / seconds;
                bytes += totals.bytes as f64 / seconds;
                latency = (latency.0 + totals.operations, latency.1 + totals.latency_ns_sum);
            }
        }
        (self.rate_ops_per_s, self.rate_bytes_per_s, self.latency) = (ops, bytes, latency);
    }

    /// Returns true if every thread has reported that its warm-up is complete.
    pub(super) fn ready(&self) -> bool {
        self.threads.iter().all(|s| s.as_ref().is_some_and(|s| s.ready))
    }

    pub(super) fn progress(&self, elapsed_ns: u64, total_ns: u64) -> Progress {
        let sum = |of: fn(&IntervalSnapshot) -> u64| self.threads.iter().flatten().map(of).sum();
        Progress {
            elapsed_ns,
            done_bytes: sum(|s| s.progress_bytes.0),
            total_bytes: sum(|s| s.progress_bytes.1),
            total_ns,
            rate_ops_per_s: self.rate_ops_per_s,
            rate_bytes_per_s: self.rate_bytes_per_s,
            latency_ns_avg: (self.latency.0 > 0).then(|| self.latency.1 / self.latency.0),
        }
    }
}

fn progress_of<W: Phase>(phase: &W) -> WorkloadProgress {
    let progress = phase.progress();
    WorkloadProgress {
        done_bytes: progress.done_bytes,
        total_bytes: progress.total_bytes,
        ready: phase.is_complete(),
    }
}

/// Returns the number of threads. It is the number in the plan, or else the number of CPUs, but
/// never more than the number of databases.
fn threads(plan: &ResolvedPlan, mailbox: &Mailbox) -> u32 {
    let cpus = plimsoll_sys::cpu::allowed().map_or(1, |cpus| cpus.len() as u32);
    let requested = if plan.engine.workers > 0 { plan.engine.workers } else { cpus };
    requested.clamp(1, mailbox.databases.max(1))
}

fn stage(plan: &ResolvedPlan, target: &Target, store_directories: &StoreDirectories) -> Stage {
    let interval_ns = plan.evidence.interval_ns.max(10_000_000);
    Stage {
        directories: store_directories.directories(),
        held: store_directories.held.clone(),
        missing: Vec::new(),
        prefer: issue::prefer(plan.engine.io),
        direct: issue::direct(plan.engine.direct),
        poll_completions: plan.engine.io_poll,
        poll_submissions: plan.engine.sq_poll,
        spin_ns: 0,
        write: true,
        interval_ns,
        histogram_interval_ns: (plan.phases.measure_ns / HISTOGRAM_INTERVALS)
            .max(interval_ns)
            .max(SECOND_NS),
        outage_max_ns: target.outage_max_ns(plan.phases.measure_ns),
    }
}
