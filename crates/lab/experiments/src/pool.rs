//! Worker pool that executes the runs of several plans and several load searches. The caller
//! receives each result as soon as the run has finished. An interrupted experiment therefore loses
//! no finished runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use plimsoll_engine::defect;
use plimsoll_evidence::run::Membership;
use plimsoll_judge::stats::tune::STEPS_MAX;
use plimsoll_judge::tuning::Range;
use plimsoll_runner::data_slot::DataSlot;
use plimsoll_runner::error::{RunnerError, engine_error};
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_request::{Driver, RunConfig, RunRequest};
use plimsoll_runner::search;
use plimsoll_sys::clock;

use crate::analysis::SearchAnalysis;
use crate::definition::PlannedArm;
use crate::experiment_plan::search_analysis;

/// A requested run.
pub struct Job<'a> {
    /// Index of the experiment's arm.
    pub arm: usize,
    /// Plan of the run.
    pub plan: &'a PlannedArm,
    /// Position of the run in the experiment.
    pub place: Membership,
}

/// Parameters that all runs share.
pub struct PoolContext<'a> {
    /// Directory for bundles.
    pub bundles: &'a std::path::Path,
    /// Directories of the ledger and of generation maps.
    pub places: &'a Places,
    /// Set to true when the operator requests a stop.
    pub interrupt: &'a AtomicBool,
    /// Devices whose data may be overwritten.
    pub destroy: &'a [std::path::PathBuf],
    /// Driver that executes the runs.
    pub driver: &'a dyn Driver,
    /// Number of concurrent runs.
    pub workers: usize,
    /// Creates the listener of a run. Each run needs a separate listener, because runs are
    /// concurrent.
    pub listener: &'a (dyn Fn() -> Box<dyn Listener> + Sync),
}

/// A piece of work for a worker.
pub enum Work<'a> {
    Run(Job<'a>),
    /// A search with all its steps.
    Search(&'a PlannedArm),
}

pub enum WorkResult {
    /// A finished run of one of the experiment's arms.
    Run(usize, Box<FinishedRun>),
    /// A finished search; `None` if it was interrupted.
    Search(Option<Box<SearchAnalysis>>),
}

/// Work that has not started. Load searches come first, because each is a long sequence of runs.
/// One run of each arm of the experiment follows, in order. The remaining runs of the slowest arms
/// come next, so that all workers are busy until the end.
struct Queue<'a, 'b> {
    left: Vec<&'b Work<'a>>,
    /// Duration of a run in nanoseconds, for each arm of the experiment of which a run has ended.
    took_ns: BTreeMap<usize, u64>,
    in_order: bool,
}

impl<'a, 'b> Queue<'a, 'b> {
    fn next(&mut self) -> Option<&'b Work<'a>> {
        let rank = |work: &Work<'_>| match work {
            _ if self.in_order => 0,
            Work::Search(_) => u64::MAX,
            Work::Run(job) => self.took_ns.get(&job.arm).copied().unwrap_or(u64::MAX - 1),
        };
        let best = self.left.iter().map(|work| rank(work)).max()?;
        let at = self.left.iter().position(|work| rank(work) == best)?;
        Some(self.left.remove(at))
    }
}

/// Executes all runs and load searches; `take` receives each result as soon as it is available.
///
/// # Errors
/// The first error of a run, of a search or of `take`. After an error, no further runs are started.
pub fn run_all(
    work: &[Work<'_>],
    shared: &PoolContext<'_>,
    mut take: impl FnMut(WorkResult) -> Result<(), RunnerError>,
) -> Result<(), RunnerError> {
    let left = work.iter().collect();
    let queue = Queue { left, took_ns: BTreeMap::new(), in_order: shared.workers == 1 };
    let queue = Mutex::new(queue);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..shared.workers.clamp(1, work.len().max(1)) {
            let (sender, queue, stop) = (sender.clone(), &queue, &stop);
            let locked = || queue.lock().unwrap_or_else(PoisonError::into_inner);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !shared.interrupt.load(Ordering::Relaxed) {
                    let Some(next) = locked().next() else { break };
                    let begun_ns = clock::monotonic_ns();
                    let done = defect::catch_panic(|| carry_out(next, shared));
                    let done = done.map_err(|error| engine_error(&error)).flatten();
                    if let Work::Run(job) = next {
                        let took_ns = clock::monotonic_ns().saturating_sub(begun_ns);
                        locked().took_ns.insert(job.arm, took_ns);
                    }
                    if sender.send(done).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut failure = None;
        for done in receiver {
            if let Err(error) = done.and_then(&mut take) {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    })
}

fn carry_out(work: &Work<'_>, shared: &PoolContext<'_>) -> Result<WorkResult, RunnerError> {
    match work {
        Work::Run(job) => Ok(WorkResult::Run(job.arm, Box::new(run_job(job, shared)?))),
        Work::Search(planned) => Ok(WorkResult::Search(search(planned, shared)?)),
    }
}

/// Each step is a separate run.
fn search(
    planned: &PlannedArm,
    shared: &PoolContext<'_>,
) -> Result<Option<Box<SearchAnalysis>>, RunnerError> {
    let Some(requested) = &planned.of.search else { return Ok(None) };
    let steps_max = requested.steps.unwrap_or(STEPS_MAX);
    let range = Range { load_min: requested.min, steps_max, ..Range::up_to(requested.max) };
    let destroy = shared.destroy.to_vec();
    let bundles = shared.bundles.to_path_buf();
    let driver = shared.driver;
    let requested =
        search::SearchOptions { range, fresh: true, keep: false, destroy, bundles, driver };
    let mut listener = (shared.listener)();
    let (plan, resolved) = (&planned.plan, &planned.resolved);
    let (places, interrupt) = (shared.places, shared.interrupt);
    let found = search::search(plan, resolved, &requested, places, listener.as_mut(), interrupt)?;
    Ok(found.tuning.complete.then(|| Box::new(search_analysis(planned, Some(found.tuning)))))
}

fn run_job(job: &Job<'_>, shared: &PoolContext<'_>) -> Result<FinishedRun, RunnerError> {
    let data = DataSlot::fresh();
    let request = RunRequest {
        config: RunConfig {
            plan: &job.plan.plan,
            resolved: &job.plan.resolved,
            keep: false,
            witness: None,
            destroy: shared.destroy,
            bundles: shared.bundles,
            places: shared.places,
            interrupt: shared.interrupt,
            driver: shared.driver,
        },
        experiment: Some(job.place.clone()),
        data: &data,
    };
    shared.driver.run_once(&request, (shared.listener)().as_mut())
}
