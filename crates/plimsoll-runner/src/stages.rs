//! The stages of a job, each a run of its own, one after the other in one experiment. What ends early ends them all.
//!
//! Each makes its data anew: what one stage wrote is not what the next one finds, which reports say.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::stages::{Stage, Stages};
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_report::stages_document;

use crate::asked::Asked;
use crate::custody::{Reader, Together};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::finished::{Finished, worst};
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::render;

/// A stage that is to be run.
#[derive(Clone, Debug)]
pub struct Staged {
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
    /// The plan, resolved.
    pub resolved: ResolvedPlan,
}

/// Stages that were run.
pub struct Ran {
    /// What they say together.
    pub stages: Stages,
    /// The runs, in their order.
    pub finished: Vec<Finished>,
    /// Where data was kept.
    pub kept: Vec<String>,
    /// The report's path.
    pub report: PathBuf,
}

impl Ran {
    /// The exit code of all of them.
    pub fn exit(&self) -> Exit {
        worst(&self.finished)
    }
}

/// Runs the stages of a job. `asked` says all but the plan.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn carry_out(
    job: &str,
    stages: &[Staged],
    asked: &Asked<'_>,
    listener: &mut dyn Listener,
) -> Result<Ran, RunnerError> {
    if let Some(stage) = stages.iter().find(|stage| stage.resolved.repeat.runs > 1) {
        let says = format!("the stages of a job run once each, and {} asks for more", stage.name);
        return Err(RunnerError::usage(says).hint("leave `repeat.runs` out, and run the job again"));
    }
    let mut experiment =
        Experiment::begin(ExperimentKind::Stages, job, asked.bundles, asked.places)?;
    let data = DataSlot::fresh();
    let planned: Vec<String> = stages.iter().map(|stage| stage.name.clone()).collect();
    let mut told = Stages { name: job.to_owned(), planned, stages: Vec::new() };
    let mut finished: Vec<Finished> = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        listener.part(&format!("stage {} of {}: {}", number + 1, stages.len(), stage.name));
        let of_stage = Asked { plan: &stage.plan, resolved: &stage.resolved, ..*asked };
        let place = Some(experiment.next(&stage.name));
        let directory = experiment.directory().to_path_buf();
        let run = asked.driver.run_once(&of_stage.request(&directory, place, &data), listener)?;
        listener.finished(&run);
        experiment.note(&run.evidence);
        told.stages.push(Stage::of(&run.evidence, &run.verdict));
        experiment.write(&told, &render::document_html(&stages_document(&told))?)?;
        let is_well = run.evidence.run.end.kind == EndKind::Completed && run.not_removed.is_none();
        finished.push(run);
        if !is_well || asked.interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    let kept = finished.iter().flat_map(|run| run.kept.clone()).collect();
    Ok(Ran { stages: told, finished, kept, report: experiment.report() })
}

/// The stages of a job from their directory: which there are from its record, what they say from their bundles,
/// judged anew.
///
/// # Errors
/// A directory without bundles, or with one that cannot be read.
pub fn again(directory: &Path) -> Result<(Stages, Together), RunnerError> {
    let before: Stages = experiment::result_of(directory)?;
    let together = Reader::new().load_all(directory)?;
    let mut stages: Vec<Stage> =
        together.runs.iter().map(|run| Stage::of(&run.bundle, &run.verdict)).collect();
    let at = |name: &str| before.planned.iter().position(|planned| planned == name);
    stages.sort_by_key(|stage| at(&stage.name));
    Ok((Stages { stages, ..before }, together))
}
