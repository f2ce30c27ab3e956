//! Runs the stages of a job one after the other in one experiment. A stage that does not complete
//! ends the job.
//!
//! Each stage creates its own data and does not use the data of earlier stages. Reports mention
//! this.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::stages::{Stage, Stages};
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_report::stages_document;

use crate::custody::{Reader, RunSet};
use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::finished_run::{FinishedRun, worst};
use crate::listener::Listener;
use crate::render;
use crate::run_request::RunConfig;

/// One stage of a job.
#[derive(Clone, Debug)]
pub struct StagePlan {
    pub name: String,
    /// Plan as written.
    pub plan: Plan,
    pub resolved: ResolvedPlan,
}

/// Finished stages.
pub struct StageRuns {
    /// Combined result.
    pub stages: Stages,
    /// Runs in order.
    pub finished: Vec<FinishedRun>,
    /// Directories with data that was kept.
    pub kept: Vec<String>,
    pub report: PathBuf,
}

impl StageRuns {
    /// Returns the exit code of all stages.
    pub fn exit(&self) -> Exit {
        worst(&self.finished)
    }
}

/// Runs the stages of a job. `config` applies to all stages, but its plan is not used.
///
/// # Errors
/// The target is unusable, or a bundle cannot be written.
pub fn carry_out(
    job: &str,
    stages: &[StagePlan],
    config: &RunConfig<'_>,
    listener: &mut dyn Listener,
) -> Result<StageRuns, RunnerError> {
    if let Some(stage) = stages.iter().find(|stage| stage.resolved.repeat.runs > 1) {
        let says = format!(
            "each stage of a job runs only once, but stage {} sets `repeat.runs` to more than one",
            stage.name
        );
        return Err(
            RunnerError::usage(says).hint("remove `repeat.runs`, and run the job several times")
        );
    }
    let mut experiment =
        Experiment::begin(ExperimentKind::Stages, job, config.bundles, config.places)?;
    let data = DataSlot::fresh();
    let planned: Vec<String> = stages.iter().map(|stage| stage.name.clone()).collect();
    let mut result = Stages { name: job.to_owned(), planned, stages: Vec::new() };
    let mut finished: Vec<FinishedRun> = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        listener.part(&format!("stage {} of {}: {}", number + 1, stages.len(), stage.name));
        let stage_config = RunConfig { plan: &stage.plan, resolved: &stage.resolved, ..*config };
        let membership = Some(experiment.next_membership(&stage.name));
        let directory = experiment.directory().to_path_buf();
        let run = config
            .driver
            .run_once(&stage_config.request(&directory, membership, &data), listener)?;
        listener.finished(&run);
        experiment.note(&run.evidence);
        result.stages.push(Stage::of(&run.evidence, &run.verdict));
        experiment.write(&result, &render::document_html(&stages_document(&result))?)?;
        let is_well =
            run.evidence.run.end.kind == EndKind::Completed && run.removal_error.is_none();
        finished.push(run);
        if !is_well || config.interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    let kept: BTreeSet<String> = finished.iter().flat_map(|run| run.kept.clone()).collect();
    let kept = kept.into_iter().collect();
    Ok(StageRuns { stages: result, finished, kept, report: experiment.report() })
}

/// Reads the stages of a job from their directory and judges the bundles again.
///
/// # Errors
/// The directory has no bundles, or one of its bundles cannot be read.
pub fn reload(directory: &Path) -> Result<(Stages, RunSet), RunnerError> {
    let before: Stages = experiment::result_of(directory)?;
    let run_set = Reader::new().load_all(directory)?;
    let mut stages: Vec<Stage> =
        run_set.runs.iter().map(|run| Stage::of(&run.bundle, &run.verdict)).collect();
    let at = |name: &str| before.planned.iter().position(|planned| planned == name);
    stages.sort_by_key(|stage| at(&stage.name));
    Ok((Stages { stages, ..before }, run_set))
}
