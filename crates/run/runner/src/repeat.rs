//! Runs the repeats of a plan one after the other, or in parallel if the target is a model.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use plimsoll_evidence::run::{EndKind, ExperimentKind, Membership, Phase, PhaseKind};
use plimsoll_judge::experiment;
use plimsoll_record::progress::{Progress, Watcher};

use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::finished_run::{FinishedRun, worst};
use crate::listener::Listener;
use crate::model_run;
use crate::render;
use crate::run_request::{RunConfig, RunRequest};
use crate::session::run_once;

/// Finished repeats of a plan.
pub struct RepeatedRuns {
    /// Runs in order.
    pub finished: Vec<FinishedRun>,
    /// Experiment of the runs, if the plan requires several runs.
    pub experiment: Option<Experiment>,
    /// Directories of data that all runs used and that still exists after the runs.
    pub(crate) kept_shared: Vec<String>,
}

impl RepeatedRuns {
    /// Returns the summary of all runs.
    pub fn summary(&self) -> experiment::Experiment {
        summarise(&self.finished)
    }

    /// Returns the directories of kept data.
    pub fn kept(&self) -> impl Iterator<Item = &String> {
        self.finished.last().into_iter().flat_map(|last| &last.kept).chain(&self.kept_shared)
    }

    /// Returns the exit code of all runs.
    pub fn exit(&self) -> Exit {
        worst(&self.finished)
    }
}

/// Runs the repeats of a plan. If a run does not complete, no further run is started.
///
/// # Errors
/// The target is unusable, or a bundle cannot be written.
pub fn carry_out(
    config: &RunConfig<'_>,
    listener: &mut dyn Listener,
) -> Result<RepeatedRuns, RunnerError> {
    let (resolved, bundles) = (config.resolved, config.bundles);
    let runs = resolved.repeat.runs.max(1);
    let mut experiment = (runs > 1)
        .then(|| Experiment::begin(ExperimentKind::Repeat, &resolved.name, bundles, config.places))
        .transpose()?;
    if let (Some(series), Some(_)) = (&mut experiment, model_run::target_model(resolved)) {
        let finished = run_on_model(config, runs, series, listener)?;
        return Ok(RepeatedRuns { finished, experiment, kept_shared: Vec::new() });
    }
    let reuses_data = runs > 1 && !resolved.repeat.fresh;
    let data = if reuses_data { DataSlot::reused() } else { DataSlot::fresh() };
    let mut finished: Vec<FinishedRun> = Vec::new();
    for run in 1..=runs {
        if runs > 1 {
            listener.part(&format!("run {run} of {runs}"));
        }
        let membership = experiment.as_ref().map(|experiment| experiment.next_membership(""));
        let bundles = experiment.as_ref().map_or(bundles, Experiment::directory);
        let request = config.request(bundles, membership, &data);
        let one = match config.driver.run_once(&request, listener) {
            Ok(one) => one,
            Err(error) => {
                data.finish(config.keep)?;
                return Err(error);
            }
        };
        listener.finished(&one);
        let completed = one.evidence.run.end.kind == EndKind::Completed;
        finished.push(one);
        if let Some(experiment) = &mut experiment {
            note(experiment, &finished)?;
        }
        if config.interrupt.load(Ordering::Relaxed) || !completed {
            break;
        }
    }
    let kept_shared = data.finish(config.keep)?;
    if runs > 1 {
        config.driver.release(listener)?;
    }
    Ok(RepeatedRuns { finished, experiment, kept_shared })
}

impl<'a> RunConfig<'a> {
    /// Returns a request for one run, whose bundle will be written to `bundles`.
    pub(crate) fn request(
        self,
        bundles: &'a Path,
        experiment: Option<Membership>,
        data: &'a DataSlot,
    ) -> RunRequest<'a> {
        RunRequest { config: Self { bundles, ..self }, experiment, data }
    }
}

/// Executes runs with different seeds on a model, as many in parallel as there are cores. A model
/// needs no data.
fn run_on_model(
    config: &RunConfig<'_>,
    runs: u32,
    experiment: &mut Experiment,
    listener: &mut dyn Listener,
) -> Result<Vec<FinishedRun>, RunnerError> {
    let data = DataSlot::fresh();
    let memberships: Vec<Membership> =
        (1..=runs).map(|number| Membership { number, ..experiment.next_membership("") }).collect();
    let directory = experiment.directory().to_path_buf();
    let request = config.request(&directory, None, &data);
    let mut finished = Vec::new();
    for one in run_parallel(&request, memberships, listener) {
        let one = one?;
        listener.finished(&one);
        finished.push(one);
        note(experiment, &finished)?;
    }
    Ok(finished)
}

/// Listener that forwards only warnings.
struct WarningForwarder(Sender<String>);

impl Watcher for WarningForwarder {
    fn begin(&mut self, _kind: PhaseKind) {}
    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}

impl Listener for WarningForwarder {
    fn say(&mut self, _text: &str) {}

    fn warn(&mut self, text: &str) {
        // Sending fails if the receiver no longer exists.
        let _ = self.0.send(text.to_owned());
    }
}

/// Runs a plan once for each membership, as many runs in parallel as there are cores. Returns the
/// results in the order of the memberships.
fn run_parallel(
    request: &RunRequest<'_>,
    memberships: Vec<Membership>,
    progress: &mut dyn Listener,
) -> Vec<Result<FinishedRun, RunnerError>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    progress.say(&format!(
        "{} runs with different seeds, up to {cores} runs at the same time",
        memberships.len()
    ));
    let config = RunConfig { keep: false, witness: None, destroy: &[], ..request.config };
    let (warnings, received) = channel();
    let one = |membership: Membership, warnings: Sender<String>| {
        let data = DataSlot::fresh();
        let request = RunRequest { config, experiment: Some(membership), data: &data };
        run_once(&request, &mut WarningForwarder(warnings))
    };
    let mut finished = Vec::new();
    for batch in memberships.chunks(cores) {
        let batch = batch.to_vec();
        finished.extend(std::thread::scope(|scope| {
            let started: Vec<_> = batch
                .into_iter()
                .map(|membership| {
                    let warnings = warnings.clone();
                    scope.spawn(move || one(membership, warnings))
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            started.into_iter().map(join).collect::<Vec<_>>()
        }));
        received.try_iter().for_each(|text| progress.warn(&text));
    }
    finished
}

fn summarise(finished: &[FinishedRun]) -> experiment::Experiment {
    let runs: Vec<_> = finished.iter().map(|f| (&f.evidence, &f.verdict)).collect();
    experiment::summarise(&runs)
}

/// Adds the latest run to its experiment and writes the combined result.
fn note(experiment: &mut Experiment, finished: &[FinishedRun]) -> Result<(), RunnerError> {
    let Some(latest) = finished.last() else { return Ok(()) };
    experiment.note(&latest.evidence);
    let summary = summarise(finished);
    let document = plimsoll_report::experiment_document(&summary);
    experiment.write(&summary, &render::document_html(&document)?)
}
