//! Runs of several plans, as many at a time as there are workers. Each ends up with whoever asked for
//! them as soon as it is done, so that what is done is kept when the rest is interrupted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use plimsoll_evidence::run::Membership;

use crate::error::CliError;
use crate::kept_data::DataSlot;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::published::PlannedArm;
use crate::session::{Finished, Request, run_once};

/// A run to be made.
pub struct Job<'a> {
    /// Which arm.
    pub arm: usize,
    /// Its plan.
    pub plan: &'a PlannedArm,
    /// Its place in the experiment.
    pub place: Membership,
}

/// What all runs share.
pub struct Shared<'a> {
    /// Where bundles are made.
    pub bundles: &'a std::path::Path,
    /// Ledger and generation maps.
    pub places: &'a Places,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Devices whose data may be overwritten.
    pub destroy: &'a [std::path::PathBuf],
    /// How many at a time.
    pub workers: usize,
    /// No progress of single runs.
    pub quiet: bool,
}

/// Makes the runs; `take` gets each as it ends, with its arm.
///
/// # Errors
/// The first error of a run or of `take`; no further runs are begun then.
pub fn run_all(
    jobs: &[Job<'_>],
    shared: &Shared<'_>,
    mut take: impl FnMut(usize, Finished) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..shared.workers.clamp(1, jobs.len().max(1)) {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !shared.interrupt.load(Ordering::Relaxed) {
                    let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let ran = run_job(job, shared);
                    if sender.send((job.arm, ran)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut failure = None;
        for (arm, ran) in receiver {
            let taken = ran.and_then(|finished| take(arm, finished));
            if let Err(error) = taken {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    })
}

fn run_job(job: &Job<'_>, shared: &Shared<'_>) -> Result<Finished, CliError> {
    let data = DataSlot::fresh();
    let request = Request {
        plan: &job.plan.plan,
        resolved: &job.plan.resolved,
        keep: false,
        witness: None,
        destroy: shared.destroy,
        bundles: shared.bundles,
        places: shared.places,
        interrupt: shared.interrupt,
        experiment: Some(job.place.clone()),
        data: &data,
    };
    run_once(&request, &mut StderrProgress::new(shared.quiet))
}
