//! Runs on a model: loading, execution in virtual time, seeds and errors.

use plimsoll_model::fit::FitError;
use plimsoll_model::run::{ConfiguredModel, ModelRun, RunError, check_plan, run_plan};
use plimsoll_model::spec::ModelError;
use plimsoll_plan::{ResolvedPlan, TargetKind};
use plimsoll_record::recording::Recording;
use plimsoll_record::replay::ReplayTrace;

use crate::error::{RunnerError, engine_error};
use crate::listener::Listener;
use crate::run_request::RunRequest;

/// Returns the target of a plan if it is a model.
pub fn target_model(plan: &ResolvedPlan) -> Option<&TargetKind> {
    match &plan.targets[..] {
        [target] => Some(&target.kind).filter(|kind| matches!(kind, TargetKind::Model { .. })),
        _ => None,
    }
}

/// Loads a model and checks that it can run the plan's workload.
///
/// # Errors
/// The model is missing or invalid, or a parameter is out of range.
pub fn load(plan: &ResolvedPlan, kind: &TargetKind) -> Result<ConfiguredModel, RunnerError> {
    let TargetKind::Model { model: name, set } = kind else {
        return Err(RunnerError::usage("the target is not a model"));
    };
    let model = ConfiguredModel::load(name, set).map_err(|error| model_error(&error))?;
    check_plan(plan, &model).map_err(|error| run_error(&error))?;
    Ok(model)
}

/// Executes the run in virtual time.
///
/// # Errors
/// The errors of [`load`].
pub fn carry_out(
    request: &RunRequest<'_>,
    model: &ConfiguredModel,
    trace: Option<ReplayTrace>,
    progress: &mut dyn Listener,
) -> Result<Recording, RunnerError> {
    let number = request.experiment.as_ref().map_or(1, |place| place.number);
    run_plan(ModelRun {
        plan: request.config.resolved,
        model,
        trace,
        seed: seed_of(request.config.resolved.seed, number),
        interrupt: request.config.interrupt,
        watcher: progress,
    })
    .map_err(|error| run_error(&error))
}

/// Returns the seed of the `number`th run of an experiment; the first run has the plan's seed. On a
/// model, runs differ only by their seed.
fn seed_of(plan_seed: u64, number: u32) -> u64 {
    /// Multiplier of SplitMix64 (Steele, Lea and Flood, 2014).
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    plan_seed.wrapping_add(u64::from(number.saturating_sub(1)).wrapping_mul(STEP))
}

/// Converts a model's error, with hints.
pub fn model_error(error: &ModelError) -> RunnerError {
    let shown = RunnerError::usage(error.to_string());
    match error {
        ModelError::NoSuchModel { .. } => shown.hint(
            "run `plimsoll model list` to list the models, or specify the path of a \
                model file",
        ),
        ModelError::Unreadable { .. } => shown,
        _ => shown.hint("run `plimsoll model show MODEL` to show a model's parameters"),
    }
}

/// Converts an error from a fit of a model.
pub fn fit_error(error: &FitError) -> RunnerError {
    match error {
        FitError::Model(error) => model_error(error),
        other => RunnerError::usage(other.to_string()),
    }
}

fn run_error(error: &RunError) -> RunnerError {
    match error {
        RunError::Model(error) => model_error(error),
        RunError::Plan(error) => engine_error(&error.clone().into()),
        RunError::TooLarge(_) => RunnerError::usage(error.to_string())
            .hint("reduce the size of the files, or set a larger capacity in the model"),
        RunError::NoSuchComponent { known, .. } => {
            RunnerError::usage(error.to_string()).hint(format!("the components are: {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_has_the_plans_seed_and_each_one_its_own() {
        assert_eq!(seed_of(42, 1), 42);
        let mut seeds: Vec<u64> = (1..100).map(|number| seed_of(42, number)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 99);
    }
}
