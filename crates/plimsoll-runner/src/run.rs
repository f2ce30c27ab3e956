//! A plan's runs on a thread of their own, that tell typed events and can be asked to stop.

mod teller;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use plimsoll_engine::defect;
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

use self::teller::Teller;
pub(crate) use self::teller::events_of;
use crate::allow::Allow;
use crate::arms;
use crate::asked::{Asked, Driver};
use crate::driver::{ThisHost, Within};
use crate::error::{RunnerError, engine_error};
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::observe::{self, Observation, Signalled, Signals};
use crate::places::Places;
use crate::repeat;
use crate::search::{self, Fewest, with_fewest_threads};
use crate::stages::{self, Staged};
use crate::sweep::{self, Earlier, Sweeping};

/// What becomes of a run's data and evidence.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ledger, catalogue, and what evidence is signed with.
    pub places: Places,
    /// Directory to make the bundle in, instead of the catalogue.
    pub bundles: Option<PathBuf>,
    /// Whether the data stays.
    pub keep: bool,
    /// Where acknowledged commits are written, if anywhere.
    pub witness: Option<PathBuf>,
    /// Devices whose data may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Within which places each run has to lie when it begins; `None`: wherever the plan says.
    pub allow: Option<Allow>,
    /// Where others have a say in it: when phases begin, and which run it is of theirs.
    pub shared: Option<Shared>,
}

/// A run that others carry out too, at the same time.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Says when phases begin.
    pub gate: Arc<dyn Gate>,
    /// What of the plan is run: a step of it, or all.
    pub resolved: ResolvedPlan,
    /// Its place in an experiment, which is led elsewhere.
    pub experiment: Option<Membership>,
    /// What the run before left for this one, and this one for the next.
    pub data: Arc<Mutex<DataSlot>>,
}

impl Options {
    /// The bundle goes to the catalogue of these places, and the data is removed.
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
        }
    }
}

/// What happens in a plan's runs. The last is [`Event::Failed`], or else [`Event::Finished`] of the only run, or
/// [`Event::Together`] of several.
#[derive(Debug)]
pub enum Event {
    /// A phase began.
    PhaseBegan {
        /// Which one.
        kind: PhaseKind,
        /// How long the plan has it last at most; `None` where that depends on something else.
        expected_ns: Option<u64>,
    },
    /// It goes on; at most ten times a second.
    Progress {
        /// Which one.
        kind: PhaseKind,
        /// How far it is.
        progress: Progress,
    },
    /// An interval of one class of operations, whose name holds its instance (`db3.read`), or a gauge:
    /// a row of the evidence's `series.csv`.
    Interval(Row),
    /// A histogram of a class over a second or more (`db3.read`; `db3.read.service` without its waits), or of the load
    /// generator's own waits. There may be several of one class and time, which add up.
    Latencies(Interval),
    /// A phase has ended.
    PhaseEnded(Phase),
    /// What goes on beside the phases.
    Note(String),
    /// Which of several parts begins: a stage of a job, a step of a search, a point, a run.
    Part(String),
    /// What has to be told.
    Warning(String),
    /// A rule whose outcome is not `pass`.
    Finding(Finding),
    /// A run has ended and was judged, whatever the verdict.
    Finished {
        /// The bundle.
        directory: PathBuf,
        /// The verdict.
        verdict: Box<Verdict>,
        /// Where the data was kept, if it was.
        kept: Vec<String>,
    },
    /// All runs of a plan that asks for several have ended: repeats, targets in turns, points of a sweep.
    Together {
        /// The directory that holds their bundles, and what follows from them.
        directory: PathBuf,
    },
    /// A run left no verdict, and none follows.
    Failed(RunnerError),
}

/// What is carried out.
#[derive(Clone, Debug)]
pub enum Work {
    /// All that a plan asks for.
    Plan(Plan),
    /// The search for a plan's load line.
    LoadLine(Plan),
    /// The stages of a job, one after the other.
    Stages {
        /// The job's name.
        job: String,
        /// In their order.
        stages: Vec<Staged>,
    },
}

impl Work {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Plan(plan) | Self::LoadLine(plan) => plan.name(),
            Self::Stages { job, .. } => job,
        }
    }
}

/// Starts runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runner;

impl Runner {
    /// Starts what a plan asks for: its runs, as often as it says; those of several targets in turns, and their
    /// comparison; the points of a sweep; the fewest threads that meet the requirement, and the runs with these. A plan
    /// that others carry out too ([`Options::shared`]) is run once, as they say.
    ///
    /// # Errors
    /// A directory for bundles that can't be made, and a thread that can't be started. What is wrong with
    /// the plan or its target comes as [`Event::Failed`].
    pub fn start(plan: &Plan, options: Options) -> Result<RunHandle, RunnerError> {
        Self::carry_out(Work::Plan(plan.clone()), options)
    }

    /// Starts any work. All but a plan's own is not shared with others ([`Options::shared`]).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn carry_out(work: Work, options: Options) -> Result<RunHandle, RunnerError> {
        let bundles = options.places.bundles(options.bundles.as_deref())?;
        on_a_thread(move |stop, events| match &work {
            Work::Plan(plan) => carry_out(plan, &options, &bundles, stop, events),
            Work::LoadLine(plan) => load_line(plan, &options, &bundles, stop, events),
            Work::Stages { job, stages } => {
                all_stages(job, stages, &options, &bundles, stop, events)
            }
        })
    }

    /// Starts a command and observes it. Asked to stop, it has the command end (SIGTERM).
    ///
    /// # Errors
    /// A thread that can't be started. What is wrong with the command comes as [`Event::Failed`].
    pub fn observe(observation: Observation) -> Result<RunHandle, RunnerError> {
        on_a_thread(move |stop, events| {
            let term = Signalled { number: Signal::TERM.as_raw(), by_terminal: false };
            let latest = || stop.load(Ordering::Relaxed).then_some(term);
            let signals = Signals { asked: stop, latest: &latest };
            let mut teller = Teller { events, plan: None, gate: None, told: None };
            observe::carry_out(&observation, &signals, &mut teller).map(drop)
        })
    }
}

/// Does `work` on a thread of its own: it is given what asks it to stop, and whom to tell.
fn on_a_thread(
    work: impl FnOnce(&AtomicBool, &Sender<Event>) -> Result<(), RunnerError> + Send + 'static,
) -> Result<RunHandle, RunnerError> {
    let (sender, events) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let work = move || {
        let ended = defect::caught(|| work(&asked, &sender));
        if let Err(error) = ended.map_err(|error| engine_error(&error)).flatten() {
            // Whoever listened may have gone.
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

/// A run under way: an iterator over its events. Dropped, it asks the run to stop and waits for its end.
#[derive(Debug)]
pub struct RunHandle {
    events: Receiver<Event>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunHandle {
    /// Asks the run to end in order: what it measured so far is kept, and it is INCONCLUSIVE.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What asks it to end when it turns true, for other threads.
    #[must_use]
    pub fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }
}

impl Iterator for RunHandle {
    type Item = Event;

    /// Waits for the next event; `None` once the run has ended and all was told.
    fn next(&mut self) -> Option<Event> {
        self.events.recv().ok()
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // Its panics were caught.
            drop(thread.join());
        }
    }
}

/// Whether a plan accepts as unknown only rules that there are, and that may be.
///
/// # Errors
/// One that is none of these.
pub fn check_accepted(rules: &[String]) -> Result<(), RunnerError> {
    for id in rules {
        let field = "evidence.accept_unknown";
        if rules::find(id).is_none() {
            let error = RunnerError::usage(format!("{field}: there is no rule {id}"));
            return Err(error.hint("`plimsoll audit --rules` lists them"));
        }
        if NOT_ACCEPTED.contains(&id.as_str()) {
            let says = format!("{field}: {id} cannot be accepted as unknown");
            return Err(RunnerError::usage(says)
                .hint("it asks whether the run was carried out at all: take it away"));
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
    let asked = asked(plan, &resolved, options, bundles, interrupt, &*driver);
    let gate = options.shared.as_ref().map(|shared| &*shared.gate);
    let mut teller = Teller { events, plan: Some(&resolved), gate, told: None };
    let left = match &options.shared {
        None => whole(&asked, &mut teller)?,
        Some(shared) => once(&asked, shared, &mut teller)?,
    };
    teller.left(left);
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
    let asked = search::Asked {
        range: search::default_range(&resolved)?,
        fresh: false,
        keep: options.keep,
        destroy: options.destroy.clone(),
        bundles: bundles.to_path_buf(),
        driver: &*driver,
    };
    let mut teller = Teller { events, plan: Some(&resolved), gate: None, told: None };
    let found = search::search(plan, &resolved, &asked, &options.places, &mut teller, interrupt)?;
    teller.left((found.kept, found.report.parent().map(Path::to_path_buf)));
    Ok(())
}

fn all_stages(
    job: &str,
    all: &[Staged],
    options: &Options,
    bundles: &Path,
    interrupt: &AtomicBool,
    events: &Sender<Event>,
) -> Result<(), RunnerError> {
    let Some(first) = all.first() else {
        return Err(RunnerError::usage(format!("{job} has no stage")));
    };
    for stage in all {
        check_accepted(&stage.resolved.evidence.accept_unknown)?;
    }
    let driver = driver(options);
    let asked = asked(&first.plan, &first.resolved, options, bundles, interrupt, &*driver);
    // How long a phase lasts differs from stage to stage: their progress tells.
    let mut teller = Teller { events, plan: None, gate: None, told: None };
    let ran = stages::carry_out(job, all, &asked, &mut teller)?;
    teller.left((ran.kept, ran.report.parent().map(Path::to_path_buf)));
    Ok(())
}

/// What is asked of this host.
fn asked<'a>(
    plan: &'a Plan,
    resolved: &'a ResolvedPlan,
    options: &'a Options,
    bundles: &'a Path,
    interrupt: &'a AtomicBool,
    driver: &'a dyn Driver,
) -> Asked<'a> {
    Asked {
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

fn driver(options: &Options) -> Box<dyn Driver> {
    match &options.allow {
        Some(allow) => Box::new(Within(allow.clone())),
        None => Box::new(ThisHost),
    }
}

/// Where data was kept, and the directory of runs that belong together.
type Left = (Vec<String>, Option<PathBuf>);

/// All that a plan asks for.
fn whole(asked: &Asked<'_>, listener: &mut dyn Listener) -> Result<Left, RunnerError> {
    let resolved = asked.resolved;
    if resolved.targets.len() > 1 {
        let compared = arms::carry_out(asked, &[], &[], listener)?;
        return Ok((compared.kept, compared.report.parent().map(Path::to_path_buf)));
    }
    if sweep::is_one(resolved) {
        let points = sweep::points(resolved)?;
        let (bundles, places) = (asked.bundles, asked.places);
        let mut sweeping =
            Sweeping::begin(resolved, &points, bundles, places, Earlier::Unfinished)?;
        let swept = sweep::carry_out(asked, &points, &mut sweeping, listener)?;
        let experiment = sweeping.experiment;
        return Ok((swept.kept, experiment.map(|of| of.directory().to_path_buf())));
    }
    match with_fewest_threads(asked, listener)? {
        Fewest::Known(plan) => repeated(&Asked { resolved: &plan, ..*asked }, listener),
        Fewest::None(exit) => {
            let says = "the search for the number of threads found none that keeps every ceiling";
            Err(RunnerError::new(exit, says).hint("its steps are in the list of runs"))
        }
    }
}

/// One run, which others carry out too.
fn once(
    asked: &Asked<'_>,
    shared: &Shared,
    listener: &mut dyn Listener,
) -> Result<Left, RunnerError> {
    // A run that ended by a defect left nothing in it.
    let data = shared.data.lock().unwrap_or_else(PoisonError::into_inner);
    let request = asked.request(asked.bundles, shared.experiment.clone(), &data);
    let finished = asked.driver.run_once(&request, listener)?;
    listener.finished(&finished);
    Ok((Vec::new(), None))
}

/// The runs of a plan, as often as it says.
fn repeated(asked: &Asked<'_>, listener: &mut dyn Listener) -> Result<Left, RunnerError> {
    let repeated = repeat::carry_out(asked, listener)?;
    let together = repeated.experiment.map(|of| of.directory().to_path_buf());
    Ok((repeated.handed_on, together))
}
