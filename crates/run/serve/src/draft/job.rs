//! Generates plans from the stages of a fio job in a form, and checks these plans.

use plimsoll_import::fio_job::{FioImport, NO_PLACE, import_fio, import_stages};
use plimsoll_plan::{Change, Plan, PlanErrors, ResolvedPlan, TargetKind, overlay};
use plimsoll_runner::allow::Allow;
use plimsoll_runner::preflight::{self, Preflight};
use plimsoll_runner::run::Work;
use plimsoll_runner::stages::StagePlan;

use super::check::{
    Messages, PlanCheck, StageText, check_parsed, check_startable, message_with_hints, time_max,
};
use super::goal::RunGoal;

/// Maximum length of a job. Typical fio jobs have a few KiB.
const JOB_BYTES_MAX: usize = 64 << 10;
/// Maximum number of stages of a job. The command line accepts jobs with more stages.
const STAGES_MAX: usize = 100;
const NAME: &str = "fio-job";
const NAME_LENGTH_MAX: usize = 80;

/// Checks a job. If `place` is given, it replaces the targets that the job states. Writes nothing
/// and reads no file.
pub fn check(
    name: &str,
    text: &str,
    place: Option<&Change>,
    goal: RunGoal,
    allow: &Allow,
) -> PlanCheck {
    let name = sanitize_name(name);
    let check = PlanCheck { text: text.to_owned(), ..PlanCheck::default() };
    let refuse = |says: String| PlanCheck { refused: Some(says), ..PlanCheck::default() };
    if text.trim().is_empty() {
        return refuse("the job is empty: paste a job, or load it from a file".to_owned());
    }
    if text.len() > JOB_BYTES_MAX {
        return refuse(format!(
            "the job has {} bytes, but this page accepts at most {JOB_BYTES_MAX}; `plimsoll run \
             JOB.fio` has no such limit",
            text.len()
        ));
    }
    let stages = match import(&name, text, place) {
        Ok(stages) => stages,
        Err(errors) => return PlanCheck { problems: errors.errors, ..check },
    };
    if stages.len() > STAGES_MAX {
        return refuse(format!(
            "the job has too many stages: it has {}, but this server starts at most {STAGES_MAX}",
            stages.len()
        ));
    }
    let texts: Vec<&str> = stages.iter().map(|(stage, _)| stage.plan.text()).collect();
    let mut notes: Vec<String> = stages.iter().flat_map(|(_, notes)| notes.clone()).collect();
    let mut known = std::collections::HashSet::new();
    // The note about a missing target is not needed, because a job without a target is rejected
    // with a hint.
    notes.retain(|note| !note.contains(NO_PLACE) && known.insert(note.clone()));
    let check = PlanCheck { text: texts.join("\n"), notes, ..check };
    let all: Vec<StagePlan> = stages.into_iter().map(|(stage, _)| stage).collect();
    if let Err(says) = all.iter().try_for_each(|stage| require_target(stage, all.len() > 1)) {
        return PlanCheck { refused: Some(says), ..check };
    }
    match <[StagePlan; 1]>::try_from(all) {
        Ok([only]) => check_parsed(check, only.plan, goal, allow),
        Err(several) => check_stages(check, name, several, goal, allow),
    }
}

/// Converts a name to a file name, which is also the name of the plan.
fn sanitize_name(name: &str) -> String {
    let bare = |c: char| if c.is_control() || "/\\.".contains(c) { '-' } else { c };
    let name: String = name.trim().chars().take(NAME_LENGTH_MAX).map(bare).collect();
    if name.is_empty() { NAME.to_owned() } else { name }
}

/// Returns the stages of a job on the given target. Each stage includes the options that were not
/// converted.
fn import(
    name: &str,
    text: &str,
    place: Option<&Change>,
) -> Result<Vec<(StagePlan, Vec<String>)>, PlanErrors> {
    let mut stages = import_stages(text, name)?;
    if let [(_, only)] = &mut stages[..] {
        *only = import_fio(text, name)?;
    }
    let staged = |(stage, FioImport { plan, notes }): (String, FioImport)| {
        let plan = match place {
            Some(place) => {
                let source = plan.source_name();
                let text = overlay(plan.text(), source, std::slice::from_ref(place))?;
                Plan::parse(&text, source)?
            }
            None => plan,
        };
        // Name of the stage: its number and its section, without the job's name.
        let short = stage.strip_prefix(name).unwrap_or(&stage).trim_start_matches('-');
        let resolved = plan.resolve();
        Ok((StagePlan { name: short.to_owned(), plan, resolved }, notes))
    };
    stages.into_iter().map(staged).collect()
}

/// Rejects a stage that states no target, or whose target depends on the server's working
/// directory.
fn require_target(stage: &StagePlan, is_one_of_several: bool) -> Result<(), String> {
    let of = match is_one_of_several {
        true => format!("stage {}: ", stage.name),
        false => String::new(),
    };
    let relative = paths(&stage.resolved).find(|path| !path.starts_with('/'));
    match relative {
        None => Ok(()),
        Some(".") => Err(format!(
            "{of}the job has no target: add `directory=` with an absolute path, or fill in the \
             field Place"
        )),
        Some(path) => Err(format!(
            "{of}{path} is not an absolute path: set `directory=` to a path that begins with /, or \
             fill in the field Place"
        )),
    }
}

fn paths(plan: &ResolvedPlan) -> impl Iterator<Item = &str> {
    plan.targets.iter().filter_map(|target| match &target.kind {
        TargetKind::Path { path } | TargetKind::Device { device: path } => Some(path.as_str()),
        _ => None,
    })
}

/// Checks the stages of a job. The stages run one after the other, and each must use an allowed
/// target.
fn check_stages(
    check: PlanCheck,
    job: String,
    stages: Vec<StagePlan>,
    goal: RunGoal,
    allow: &Allow,
) -> PlanCheck {
    let mut messages = Messages::default();
    let outcome = match goal {
        RunGoal::LoadLine => Err(format!(
            "the job has {} stages, and each has a different load line: keep only one stage",
            stages.len()
        )),
        RunGoal::Runs => stages
            .iter()
            .try_for_each(|stage| {
                check_startable(&stage.resolved, goal, allow)
                    .map_err(|says| format!("stage {}: {says}", stage.name))
            })
            .and_then(|()| {
                let all: Vec<_> =
                    stages.iter().map(|one| (one.name.clone(), one.resolved.clone())).collect();
                let Some(first) = stages.first() else { return Ok(()) };
                let runs = Preflight::runs(&first.resolved, false, false);
                preflight::check_stages(&all, &runs, &mut messages)
                    .map(drop)
                    .map_err(|error| message_with_hints(&error))
            }),
    };
    let texts = stages
        .iter()
        .map(|one| StageText { name: one.name.clone(), text: one.plan.text().to_owned() });
    PlanCheck {
        takes: messages.0,
        stages: texts.collect(),
        can_start: outcome.is_ok(),
        refused: outcome.err(),
        time_max: stages.iter().map(|stage| time_max(&stage.resolved)).sum(),
        work: Some(Work::Stages { job, stages }),
        ..check
    }
}
