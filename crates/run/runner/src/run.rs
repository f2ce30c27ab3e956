//! Runs a plan on its own thread, with typed events and a way to stop it.

mod event_sender;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use plimsoll_engine::defect;
use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::run::{Membership, Phase, PhaseKind};
use plimsoll_evidence::series::Row;
use plimsoll_judge::Verdict;
use plimsoll_judge::finding::Finding;
use plimsoll_judge::judge::NOT_ACCEPTED;
use plimsoll_judge::rules;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_record::progress::{Gate, Progress};
use rustix::process::Signal;

use self::event_sender::EventSender;
pub use self::event_sender::finished_events;
use crate::allow::Allow;
use crate::arms::{self, EarlierComparison};
use crate::data_slot::DataSlot;
use crate::driver::{RestrictedHost, ThisHost};
use crate::error::{RunnerError, engine_error};
use crate::listener::{FleetProgress, Listener};
use crate::observe::{self, Observation, ReceivedSignal, Signals};
use crate::places::Places;
use crate::repeat;
use crate::run_request::{Driver, RunConfig};
use crate::search::{self, ThreadSearch, resolve_threads};
use crate::stages::{self, StagePlan};
use crate::sweep::{self, EarlierSweep, SweepProgress};

/// Options for data and evidence of runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ledger, catalogue and signing key.
    pub places: Places,
    /// Directory for the bundle; `None` for the catalogue.
    pub bundles: Option<PathBuf>,
    /// True to keep the data after the run.
    pub keep: bool,
    /// File in which the run records acknowledged commits; `None` if there is no such file.
    pub witness: Option<PathBuf>,
    /// Devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Allowed targets, checked at the start of each run. `None` allows any target.
    pub allow: Option<Allow>,
    /// Set if other hosts execute the plan at the same time.
    pub shared: Option<SharedRun>,
    /// Driver of the runs, such as a fleet; `None` means this host.
    pub driver: Option<Arc<dyn Driver>>,
}

/// Options of a run that other hosts execute at the same time.
#[derive(Clone, Debug)]
pub struct SharedRun {
    /// Decides when phases begin.
    pub gate: Arc<dyn Gate>,
    /// Part of the plan that is run: one step, or the whole plan.
    pub resolved: ResolvedPlan,
    /// Membership in an experiment. The coordinator stores the experiment's record.
    pub experiment: Option<Membership>,
    /// Data shared with the previous and the next run.
    pub data: Arc<Mutex<DataSlot>>,
}

impl Options {
    /// Returns options that write bundles to the catalogue and remove the data.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self {
            places,
            bundles: None,
            keep: false,
            witness: None,
            destroy: Vec::new(),
            allow: None,
            shared: None,
            driver: None,
        }
    }
}

/// Event of a plan's runs. The last event is [`Event::Failed`], [`Event::ExperimentFinished`], or,
/// if there is only one run, its [`Event::Finished`].
#[derive(Debug)]
pub enum Event {
    PhaseBegan {
        kind: PhaseKind,
        /// Maximum duration of the phase; `None` if the plan states no maximum.
        expected_ns: Option<u64>,
    },
    /// Progress of a phase, at most ten times a second.
    Progress {
        kind: PhaseKind,
        progress: Progress,
    },
    /// A row of `series.csv` in the evidence. It describes a gauge, or one interval of a class of
    /// operations. The name of a class includes its instance (`db3.read`).
    Interval(Row),
    /// A histogram of one second, or of a longer time. It contains the latencies of a class
    /// (`db3.read`), its service times (`db3.read.service`), or waits of the load generator.
    /// Several histograms of the same class and time must be added up.
    Latencies(Interval),
    PhaseEnded(Phase),
    /// A message.
    Note(String),
    /// Progress of a fleet, about once a second.
    Fleet(FleetProgress),
    /// A part of the work (a stage, step, point or run) has started.
    Part(String),
    Warning(String),
    /// The command or undo of an event of the plan started or ended. Times are on the driver's
    /// clock.
    Planned(EventRecord),
    /// A finding of a rule, unless it is `pass`.
    Finding(Finding),
    /// A run has finished and was judged, with any verdict.
    Finished {
        /// Directory of the bundle.
        directory: PathBuf,
        verdict: Box<Verdict>,
        /// Directories with data that was kept.
        kept: Vec<String>,
    },
    /// All runs of an experiment (repeats, alternating targets, or points of a sweep) have
    /// finished.
    ExperimentFinished {
        /// Directory of the experiment.
        directory: PathBuf,
    },
    /// A run ended without a verdict, and no further run follows.
    Failed(RunnerError),
}

/// Work to execute.
#[derive(Clone, Debug)]
pub enum Work {
    /// All runs of a plan.
    Plan(Plan),
    /// Search for a plan's load line.
    LoadLine(Plan),
    /// Stages of a job, one after the other.
    Stages {
        job: String,
        /// Stages in order.
        stages: Vec<StagePlan>,
    },
}

impl Work {
    /// Returns the name of the plan or job.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Plan(plan) | Self::LoadLine(plan) => plan.name(),
            Self::Stages { job, .. } => job,
        }
    }
}

/// Starts runs on a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runner;

impl Runner {
    /// Starts all runs of a plan: repeats; alternating targets and their comparison; the points of
    /// a sweep; or the search for the number of threads, followed by the runs with this number. A
    /// shared plan ([`Options::shared`]) runs once.
    ///
    /// # Errors
    /// The directory for bundles cannot be created, or the thread cannot be started. Errors of the
    /// plan or target arrive as [`Event::Failed`].
    pub fn start(plan: &Plan, options: Options) -> Result<RunHandle, RunnerError> {
        Self::carry_out(Work::Plan(plan.clone()), options)
    }

    /// Starts any kind of work. Only a plan can be shared ([`Options::shared`]).
    ///
    /// # Errors
    /// The errors of [`Self::start`].
    pub fn carry_out(work: Work, options: Options) -> Result<RunHandle, RunnerError> {
        let bundles = options.places.bundles(options.bundles.as_deref())?;
        spawn_work(move |stop, events| match &work {
            Work::Plan(plan) => carry_out(plan, &options, &bundles, stop, events),
            Work::LoadLine(plan) => load_line(plan, &options, &bundles, stop, events),
            Work::Stages { job, stages } => {
                all_stages(job, stages, &options, &bundles, stop, events)
            }
        })
    }

    /// Starts a command and observes it. Stopping sends SIGTERM to the command.
    ///
    /// # Errors
    /// The thread cannot be started. Errors of the command arrive as [`Event::Failed`].
    pub fn observe(observation: Observation) -> Result<RunHandle, RunnerError> {
        spawn_work(move |stop, events| {
            let term = ReceivedSignal { number: Signal::TERM.as_raw(), by_terminal: false };
            let latest = || stop.load(Ordering::Relaxed).then_some(term);
            let signals = Signals { stop, latest: &latest };
            let mut sender = EventSender { events, plan: None, gate: None, last_progress: None };
            observe::carry_out(&observation, &signals, &mut sender).map(drop)
        })
    }
}

/// Runs `work` on a new thread, with a stop flag and a sender of events.
fn spawn_work(
    work: impl FnOnce(&AtomicBool, &Sender<Event>) -> Result<(), RunnerError> + Send + 'static,
) -> Result<RunHandle, RunnerError> {
    let (sender, events) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stop_flag = Arc::clone(&stop);
    let work = move || {
        let ended = defect::catch_panic(|| work(&stop_flag, &sender));
        if let Err(error) = ended.map_err(|error| engine_error(&error)).flatten() {
            // Sending fails if the receiver no longer exists.
            let _ = sender.send(Event::Failed(error));
        }
    };
    let thread = std::thread::Builder::new().name("run".to_owned()).spawn(work);
    let thread = thread.map_err(|error| {
        RunnerError::environment(format!("cannot start a thread: {error}"))
            .hint("raise the limit of processes and threads (ulimit -u)")
    })?;
    Ok(RunHandle { events, stop, thread: Some(thread) })
}

/// A running plan: an iterator over its events. Dropping it stops the run and waits until the run
/// has ended.
#[derive(Debug)]
pub struct RunHandle {
    events: Receiver<Event>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunHandle {
    /// Stops the run in an orderly way. The evidence is preserved, and the verdict is INCONCLUSIVE.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the stop flag, for other threads.
    #[must_use]
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }
}

impl Iterator for RunHandle {
    type Item = Event;

    /// Waits for the next event; `None` once the run has ended and all events were returned.
    fn next(&mut self) -> Option<Event> {
        self.events.recv().ok()
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // The thread itself catches its panics, so `join` does not fail.
            drop(thread.join());
        }
    }
}

/// Checks that every rule in `accept_unknown` exists, and that a plan can accept the result unknown
/// for this rule.
///
/// # Errors
/// A rule does not exist, or a plan cannot accept that it is unknown.
pub fn check_accepted(rules: &[String]) -> Result<(), RunnerError> {
    for id in rules {
        let field = "evidence.accept_unknown";
        if rules::find(id).is_none() {
            let error = RunnerError::usage(format!("{field}: there is no rule with the id {id}"));
            return Err(error.hint("`plimsoll audit --rules` lists them"));
        }
        if NOT_ACCEPTED.contains(&id.as_str()) {
            let says = format!("{field}: {id} cannot be accepted as unknown");
            return Err(RunnerError::usage(says).hint(
                "this rule checks whether the run took place at all: remove it from the list",
            ));
        }
    }
    Ok(())
}

fn carry_out(
    plan: &Plan,
    options: &Options,
    bundles: &Path,
    interrupt: &AtomicBool,
    events: &Sender<Event>,
) -> Result<(), RunnerError> {
    let resolved = match &options.shared {
        Some(shared) => shared.resolved.clone(),
        None => plan.resolve(),
    };
    check_accepted(&resolved.evidence.accept_unknown)?;
    let driver = driver(options);
    let config = run_config(plan, &resolved, options, bundles, interrupt, &*driver);
    let gate = options.shared.as_ref().map(|shared| &*shared.gate);
    let mut sender = EventSender { events, plan: Some(&resolved), gate, last_progress: None };
    let output = match &options.shared {
        None => run_all(&config, &mut sender)?,
        Some(shared) => run_shared(&config, shared, &mut sender)?,
    };
    sender.send_output(output);
    Ok(())
}

fn load_line(
    plan: &Plan,
    options: &Options,
    bundles: &Path,
    interrupt: &AtomicBool,
    events: &Sender<Event>,
) -> Result<(), RunnerError> {
    let resolved = plan.resolve();
    check_accepted(&resolved.evidence.accept_unknown)?;
    let driver = driver(options);
    let search_options = search::SearchOptions {
        range: search::default_range(&resolved)?,
        fresh: false,
        keep: options.keep,
        destroy: options.destroy.clone(),
        bundles: bundles.to_path_buf(),
        driver: &*driver,
    };
    let mut sender = EventSender { events, plan: Some(&resolved), gate: None, last_progress: None };
    let found =
        search::search(plan, &resolved, &search_options, &options.places, &mut sender, interrupt)?;
    sender.send_output((found.kept, found.report.parent().map(Path::to_path_buf)));
    Ok(())
}

fn all_stages(
    job: &str,
    all: &[StagePlan],
    options: &Options,
    bundles: &Path,
    interrupt: &AtomicBool,
    events: &Sender<Event>,
) -> Result<(), RunnerError> {
    let Some(first) = all.first() else {
        return Err(RunnerError::usage(format!("{job} has no stages")));
    };
    for stage in all {
        check_accepted(&stage.resolved.evidence.accept_unknown)?;
    }
    let driver = driver(options);
    let config = run_config(&first.plan, &first.resolved, options, bundles, interrupt, &*driver);
    // The duration of a phase differs between stages, so it is taken from the progress reports.
    let mut sender = EventSender { events, plan: None, gate: None, last_progress: None };
    let ran = stages::carry_out(job, all, &config, &mut sender)?;
    sender.send_output((ran.kept, ran.report.parent().map(Path::to_path_buf)));
    Ok(())
}

/// Configuration of runs on this host.
fn run_config<'a>(
    plan: &'a Plan,
    resolved: &'a ResolvedPlan,
    options: &'a Options,
    bundles: &'a Path,
    interrupt: &'a AtomicBool,
    driver: &'a dyn Driver,
) -> RunConfig<'a> {
    RunConfig {
        plan,
        resolved,
        keep: options.keep,
        witness: options.witness.as_deref(),
        destroy: &options.destroy,
        bundles,
        places: &options.places,
        interrupt,
        driver,
    }
}

fn driver(options: &Options) -> Arc<dyn Driver> {
    match (&options.driver, &options.allow) {
        (Some(driver), _) => Arc::clone(driver),
        (None, Some(allow)) => Arc::new(RestrictedHost(allow.clone())),
        (None, None) => Arc::new(ThisHost),
    }
}

/// Directories with kept data, and the directory of the experiment if there are several runs.
type RunOutput = (Vec<String>, Option<PathBuf>);

/// Executes all runs of a plan.
fn run_all(config: &RunConfig<'_>, listener: &mut dyn Listener) -> Result<RunOutput, RunnerError> {
    let resolved = config.resolved;
    if resolved.targets.len() > 1 {
        let comparison = arms::carry_out(config, &[], &[], EarlierComparison::Ignore, listener)?;
        return Ok((comparison.kept, comparison.report.parent().map(Path::to_path_buf)));
    }
    if sweep::is_sweep(resolved) {
        let points = sweep::points(resolved)?;
        let (bundles, places) = (config.bundles, config.places);
        let mut progress =
            SweepProgress::begin(resolved, &points, bundles, places, EarlierSweep::Resume)?;
        let end = sweep::carry_out(config, &points, &mut progress, listener)?;
        let experiment = progress.experiment;
        return Ok((end.kept, experiment.map(|of| of.directory().to_path_buf())));
    }
    match resolve_threads(config, listener)? {
        ThreadSearch::Known(plan) => {
            run_repeats(&RunConfig { resolved: &plan, ..*config }, listener)
        }
        ThreadSearch::None(exit) => {
            let says = "every number of threads in the search exceeded a latency ceiling";
            Err(RunnerError::new(exit, says).hint("run `plimsoll runs` to list the search's steps"))
        }
    }
}

/// Executes one run of a plan that other hosts execute at the same time.
fn run_shared(
    config: &RunConfig<'_>,
    shared: &SharedRun,
    listener: &mut dyn Listener,
) -> Result<RunOutput, RunnerError> {
    // If the run failed because of a defect, none of its data is left.
    let data = shared.data.lock().unwrap_or_else(PoisonError::into_inner);
    let request = config.request(config.bundles, shared.experiment.clone(), &data);
    let finished = config.driver.run_once(&request, listener)?;
    listener.finished(&finished);
    Ok((Vec::new(), None))
}

/// Runs the repeats of a plan.
fn run_repeats(
    config: &RunConfig<'_>,
    listener: &mut dyn Listener,
) -> Result<RunOutput, RunnerError> {
    let repeated = repeat::carry_out(config, listener)?;
    let experiment = repeated.experiment.map(|of| of.directory().to_path_buf());
    Ok((repeated.kept_shared, experiment))
}
