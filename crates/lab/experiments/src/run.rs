//! Runs those arms and load searches of a published experiment that have not yet run. Writes the
//! analysis after each of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_judge::VerdictKind;
use plimsoll_runner::arms;
use plimsoll_runner::custody::Reader;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::exit::Exit;
use plimsoll_runner::experiment::Experiment;
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::places::Places;
use plimsoll_runner::render;
use plimsoll_runner::run_request::Driver;
use plimsoll_sys::clock;

use crate::analysis::{Analysis, Ending, SearchAnalysis};
use crate::definition::{PlannedArm, StorageKind};
use crate::directory;
use crate::experiment_plan::{CompletedRun, ExperimentPlan};
use crate::pool::{Job, PoolContext, Work, WorkResult, run_all};
use crate::report::{Surroundings, analysis_document};

/// Minimum time between two analyses, because an analysis takes as much time as a short run.
const WRITTEN_EVERY_NS: u64 = 2_000_000_000;

/// Location of an experiment's directory.
#[derive(Clone, Copy, Debug)]
pub enum Directory<'a> {
    Below(&'a Path),
    /// Resume the interrupted experiment in this directory.
    Resumed(&'a Path),
}

/// Parameters for running an experiment, in addition to its plans.
pub struct RunOptions<'a> {
    /// Location of the experiment's directory.
    pub directory: Directory<'a>,
    /// Devices whose data may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Directories of the ledger and of generation maps.
    pub places: &'a Places,
    /// Set to true when the operator requests a stop.
    pub interrupt: &'a AtomicBool,
    /// Driver that executes the runs.
    pub driver: &'a dyn Driver,
    /// Creates the listener of a run. Each run needs a separate listener, because runs may be
    /// concurrent.
    pub of_run: &'a (dyn Fn() -> Box<dyn Listener> + Sync),
}

/// Result of running an experiment.
pub struct Outcome {
    /// Analysis of the runs.
    pub analysis: Analysis,
    /// Texts of the report, in addition to the figures.
    pub surroundings: Surroundings,
    /// Directory of the experiment.
    pub directory: PathBuf,
    pub report: PathBuf,
    /// Exit code for scripts.
    pub exit: Exit,
}

/// Runs those arms and load searches of the experiment that have not yet run.
///
/// # Errors
/// A target is unusable, or a bundle cannot be written. Earlier results are preserved.
pub fn carry_out(
    planned: &ExperimentPlan,
    requested: &RunOptions<'_>,
    listener: &mut dyn Listener,
) -> Result<Outcome, RunnerError> {
    let (experiment, ran) = begin(planned, requested)?;
    let directory = experiment.directory().to_path_buf();
    let shared = PoolContext {
        bundles: &directory,
        places: requested.places,
        interrupt: requested.interrupt,
        destroy: requested.destroy,
        driver: requested.driver,
        workers: match planned.on {
            StorageKind::Model => {
                std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
            }
            // On real storage, concurrent arms of the experiment would disturb each other.
            StorageKind::Real => 1,
        },
        listener: requested.of_run,
    };
    let mut under_way = ActiveExperiment::new(planned, experiment, ran);
    under_way.run(&shared, listener).map_err(|error| {
        error.hint(format!(
            "correct the problem, then continue the experiment with --resume {}",
            directory.display()
        ))
    })?;
    let analysis = under_way.write()?;
    let broke = |exit: &&Exit| matches!(exit, Exit::Defect | Exit::Corruption | Exit::Environment);
    let exit = under_way.exits.iter().find(broke).copied().unwrap_or_else(|| exit_of(&analysis));
    let surroundings = planned.surroundings(&under_way.ran);
    let report = under_way.experiment.report();
    Ok(Outcome { analysis, surroundings, directory, report, exit })
}

/// A running experiment, with its completed runs and load searches.
struct ActiveExperiment<'a> {
    planned: &'a ExperimentPlan,
    experiment: Experiment,
    ran: Vec<CompletedRun>,
    searched: Vec<SearchAnalysis>,
    exits: Vec<Exit>,
    written_ns: u64,
}

impl<'a> ActiveExperiment<'a> {
    fn new(planned: &'a ExperimentPlan, experiment: Experiment, ran: Vec<CompletedRun>) -> Self {
        let searched = directory::searched(experiment.directory(), &planned.searches);
        let (exits, written_ns) = (Vec::new(), clock::monotonic_ns());
        Self { planned, experiment, ran, searched, exits, written_ns }
    }

    /// Runs and load searches that have not yet completed.
    fn run(
        &mut self,
        shared: &PoolContext<'_>,
        listener: &mut dyn Listener,
    ) -> Result<(), RunnerError> {
        let jobs = jobs(self.planned, &self.experiment, &self.ran);
        let (total, arms) = (jobs.len(), &self.planned.arms);
        let title = &self.planned.definition.text.title;
        listener.say(&format!("{title}: {total} runs of {} arms", arms.len()));
        let missing = |one: &&PlannedArm| !self.searched.iter().any(|s| s.name == one.name);
        let searches: Vec<&PlannedArm> = self.planned.searches.iter().filter(missing).collect();
        for search in &searches {
            listener.say(&format!("search {}: {}", search.name, search.of.title));
        }
        let searches = searches.into_iter().map(Work::Search);
        let work: Vec<Work<'_>> = jobs.into_iter().map(Work::Run).chain(searches).collect();
        let mut done = 0;
        run_all(&work, shared, |ended| {
            match ended {
                WorkResult::Run(arm, finished) => {
                    done += 1;
                    let says = format!("{done:>3} of {total}: arm {}", arms[arm].name);
                    listener.say(&format!("{says}, {}", brief(&finished)));
                    self.take(arm, *finished);
                }
                WorkResult::Search(found) => {
                    if let Some(search) = found {
                        listener.say(&format!("search {} finished", search.name));
                        self.searched.push(*search);
                    }
                }
            }
            if clock::monotonic_ns().saturating_sub(self.written_ns) >= WRITTEN_EVERY_NS {
                self.write()?;
            }
            Ok(())
        })
        .inspect_err(|_| drop(self.write()))
    }

    fn take(&mut self, arm: usize, finished: FinishedRun) {
        self.experiment.note(&finished.evidence);
        self.exits.push(finished.exit());
        let number = finished.evidence.run.experiment.as_ref().map_or(0, |place| place.number);
        let FinishedRun { evidence, verdict, .. } = finished;
        self.ran.push(CompletedRun { arm, number, evidence, verdict });
    }

    /// Analyses the completed runs and writes the result.
    fn write(&mut self) -> Result<Analysis, RunnerError> {
        let analysis = write(self.planned, &self.experiment, &self.ran, &self.searched)?;
        self.written_ns = clock::monotonic_ns();
        Ok(analysis)
    }
}

fn write(
    planned: &ExperimentPlan,
    experiment: &Experiment,
    ran: &[CompletedRun],
    searched: &[SearchAnalysis],
) -> Result<Analysis, RunnerError> {
    let analysis = planned.analyse(ran, searched);
    let document = analysis_document(&analysis, &planned.surroundings(ran));
    experiment.write(&analysis, &render::document_html(&document)?)?;
    Ok(analysis)
}

/// Returns the exit code for an analysis.
fn exit_of(analysis: &Analysis) -> Exit {
    let invalid = |kind: &VerdictKind| *kind == VerdictKind::Invalid;
    match analysis.ending {
        Ending::Fitted | Ending::Predicted | Ending::Caught => Exit::Ok,
        Ending::Missed => Exit::Fail,
        Ending::NotCaught | Ending::Incomplete => Exit::NoVerdict,
        Ending::Reported if analysis.arms.iter().any(|arm| arm.verdicts.iter().any(invalid)) => {
            Exit::NoVerdict
        }
        Ending::Reported => Exit::Ok,
    }
}

/// Starts a new experiment, or resumes one with its finished runs.
fn begin(
    planned: &ExperimentPlan,
    requested: &RunOptions<'_>,
) -> Result<(Experiment, Vec<CompletedRun>), RunnerError> {
    const KIND: ExperimentKind = ExperimentKind::Published;
    let name = &planned.definition.files.name;
    let directory = match requested.directory {
        Directory::Resumed(directory) => directory,
        Directory::Below(bundles) => {
            let experiment = Experiment::begin(KIND, name, bundles, requested.places)?;
            directory::write_files(&planned.definition, experiment.directory())?;
            write(planned, &experiment, &[], &[])?;
            return Ok((experiment, Vec::new()));
        }
    };
    if directory::files_of(directory)? != planned.definition.files {
        let says = format!(
            "the directory {} belongs to another version of this experiment",
            directory.display()
        );
        return Err(RunnerError::usage(says).hint(
            "start a new run, or specify the directory that contains the original files of the \
             experiment",
        ));
    }
    let mut experiment = Experiment::resume(KIND, name, directory, requested.places)?;
    // An experiment that was interrupted before its first run has no bundle yet.
    let together = Reader::new().load_any(directory)?;
    let mut ran = directory::of_bundles(&planned.arms, &together.runs);
    // A run with the same number and arm does not count if it has another plan.
    ran.retain(|one| one.evidence.plan == planned.arms[one.arm].resolved);
    ran.iter().for_each(|one| experiment.note(&one.evidence));
    Ok((experiment, ran))
}

/// Returns the missing runs. The seed of a run depends on its number in the whole experiment.
/// Omitting arms therefore does not change the other arms.
fn jobs<'a>(
    planned: &'a ExperimentPlan,
    experiment: &Experiment,
    ran: &[CompletedRun],
) -> Vec<Job<'a>> {
    let arms = &planned.arms;
    let rounds = arms.iter().map(|arm| arm.repeats).max().unwrap_or(1);
    let seed = arms.first().map_or(0, |arm| arm.resolved.seed);
    let order = match planned.on {
        StorageKind::Model => (0..rounds).flat_map(|_| 0..arms.len()).collect(),
        StorageKind::Real => arms::order(arms.len(), rounds, seed),
    };
    let mut jobs = Vec::new();
    let mut counts = vec![0u32; arms.len()];
    let mut position = 0;
    for arm in order {
        let repeat = counts[arm];
        counts[arm] += 1;
        if repeat >= arms[arm].repeats {
            continue;
        }
        position += 1;
        // All arms of the experiment in one round have the same run number, and therefore the same
        // seed. On a model, they differ only in their settings, not in random choices.
        let number = match planned.on {
            StorageKind::Model => repeat + 1,
            StorageKind::Real => position,
        };
        let done = ran.iter().filter(|one| one.arm == arm).count() as u32;
        let has = match planned.on {
            StorageKind::Model => ran.iter().any(|one| one.arm == arm && one.number == number),
            StorageKind::Real => repeat < done,
        };
        if has {
            continue;
        }
        let place = Membership { number, ..experiment.next_membership(&arms[arm].name) };
        jobs.push(Job { arm, plan: &arms[arm], place });
    }
    jobs
}

fn brief(finished: &FinishedRun) -> String {
    let rate = finished.verdict.achieved_iops_per_s;
    let rate = rate.map_or("nothing measured".to_owned(), |rate| format!("{rate:.0} I/Os/s"));
    format!("{rate}, {}", finished.verdict.verdict)
}
