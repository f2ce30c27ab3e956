//! Checks a plan before it starts: its errors, whether this server may start it, and its expected
//! cost.

use std::time::Duration;

use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_plan::{Plan, PlanError, PlanErrors, ResolvedPlan, Workload};
use plimsoll_record::progress::{Progress, Watcher};
use plimsoll_runner::allow::Allow;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::preflight::{self, Preflight};
use plimsoll_runner::run::{Work, check_accepted};
use plimsoll_runner::search;
use serde::Serialize;

use super::goal::RunGoal;
use super::{NAME, model_limits};

/// Maximum length of a plan's name. The name becomes part of a directory name.
const NAME_LENGTH_MAX: usize = 160;
/// Maximum number of points of a sweep. The command line accepts sweeps with more points.
const POINTS_MAX: usize = 1_000;
#[derive(Debug, Default, Serialize)]
pub struct PlanCheck {
    /// Text of the plan. If the user submitted a fio job, the texts of the plans that were
    /// generated from it.
    pub text: String,
    pub problems: Vec<PlanError>,
    /// Reason why this server refuses to start the plan; `None` if it accepts the plan.
    pub refused: Option<String>,
    /// True if the plan is refused because no server could run it. False if only this server
    /// forbids it.
    #[serde(skip)]
    pub cannot_run: bool,
    /// Expected time, bytes written and required space. Each line is one sentence.
    pub takes: Vec<String>,
    /// Parts of a fio job that Plimsoll ignores or interprets differently from fio.
    pub notes: Vec<String>,
    /// Stages of a job, in order.
    pub stages: Vec<StageText>,
    /// Plan with all defaults filled in; `None` if there are several stages.
    pub resolved: Option<String>,
    /// True if the plan can be started.
    pub can_start: bool,
    /// Work to start.
    #[serde(skip)]
    pub work: Option<Work>,
    /// Maximum run time on this host; `None` for no limit.
    #[serde(skip)]
    pub time_max: Option<Duration>,
    /// Hosts of the fleet that run the plan; empty if this host runs it.
    #[serde(skip)]
    pub hosts: Vec<String>,
}

/// A stage of a job, as the text of a plan.
#[derive(Debug, Serialize)]
pub struct StageText {
    pub name: String,
    /// The plan's text.
    pub text: String,
}

/// Checks the text of a plan. The check writes nothing, and opens no path outside the allowed
/// targets.
pub fn check(text: &str, goal: RunGoal, allow: &Allow) -> PlanCheck {
    let check = PlanCheck { text: text.to_owned(), ..PlanCheck::default() };
    match Plan::parse(text, NAME) {
        Ok(plan) => check_parsed(check, plan, goal, allow),
        Err(PlanErrors { errors, .. }) => PlanCheck { problems: errors, ..check },
    }
}

pub(super) fn check_parsed(
    check: PlanCheck,
    plan: Plan,
    goal: RunGoal,
    allow: &Allow,
) -> PlanCheck {
    let resolved = plan.resolve();
    let mut messages = Messages::default();
    let (possible, allowed) = (check_plan(&resolved, goal), check_allowed(&resolved, goal, allow));
    let is_forbidden = possible.is_ok() && allowed.is_err();
    let outcome = possible.and(allowed).and_then(|()| {
        estimate(&resolved, goal, &mut messages).map_err(|error| message_with_hints(&error))
    });
    let work = match goal {
        RunGoal::Runs => Work::Plan(plan),
        RunGoal::LoadLine => Work::LoadLine(plan),
    };
    PlanCheck {
        resolved: resolved.to_toml().ok(),
        takes: messages.0,
        can_start: outcome.is_ok(),
        cannot_run: outcome.is_err() && !is_forbidden,
        refused: outcome.err(),
        work: Some(work),
        time_max: time_max(&resolved),
        ..check
    }
}

/// Returns the number of points of a sweep; `None` if the plan is invalid.
fn point_count(plan: &ResolvedPlan) -> Option<usize> {
    match &plan.workload {
        Workload::Matrix(matrix) => Some(matrix.point_count()).filter(|points| *points > 1),
        _ => None,
    }
}

/// Checks the length of a plan's name, and the rules that the plan accepts as unknown.
pub(super) fn check_name(plan: &ResolvedPlan) -> Result<(), String> {
    if plan.name.len() > NAME_LENGTH_MAX {
        return Err(format!(
            "the plan's name is too long: it has {} bytes, but at most {NAME_LENGTH_MAX} are \
             allowed",
            plan.name.len()
        ));
    }
    check_accepted(&plan.evidence.accept_unknown).map_err(|error| error.message)
}

/// Checks that this server accepts a plan. The error is the reason for the refusal.
pub(super) fn check_startable(
    plan: &ResolvedPlan,
    goal: RunGoal,
    allow: &Allow,
) -> Result<(), String> {
    check_plan(plan, goal).and_then(|()| check_allowed(plan, goal, allow))
}

/// Checks that a server can start the plan at all. The error is the reason why no server can.
fn check_plan(plan: &ResolvedPlan, goal: RunGoal) -> Result<(), String> {
    check_name(plan)?;
    if goal == RunGoal::LoadLine && point_count(plan).is_some() {
        return Err(
            "each point of a sweep has a different load line: replace each list in the plan by a \
             single value"
                .to_owned(),
        );
    }
    let runs = plan.repeat.runs as usize;
    if goal == RunGoal::Runs && plan.targets.len() > 1 && runs < RUNS_MIN {
        return Err(format!(
            "a comparison needs at least {RUNS_MIN} runs of each target: set repeat.runs"
        ));
    }
    Ok(())
}

/// Checks the limits of this server; other servers may accept the same plan. The error is the
/// reason for the refusal.
fn check_allowed(plan: &ResolvedPlan, goal: RunGoal, allow: &Allow) -> Result<(), String> {
    if let Some(points) = point_count(plan).filter(|points| *points > POINTS_MAX) {
        return Err(format!(
            "the sweep is too large: it has {points} points, but this server starts at most \
             {POINTS_MAX}"
        ));
    }
    model_limits::check(plan, goal)?;
    // A model writes nothing, so it needs no permission.
    let targets = plan.targets.iter().filter(|target| !model_limits::is_model(target)).cloned();
    allow.check_without_creating(&ResolvedPlan { targets: targets.collect(), ..plan.clone() })
}

/// Returns the time limit of a plan on this host; `None` for no limit.
pub(super) fn time_max(plan: &ResolvedPlan) -> Option<Duration> {
    let all = !plan.targets.is_empty() && plan.targets.iter().all(model_limits::is_model);
    all.then_some(model_limits::TIME_MAX)
}

/// Returns sentences about the expected cost.
fn estimate(
    plan: &ResolvedPlan,
    goal: RunGoal,
    messages: &mut Messages,
) -> Result<(), RunnerError> {
    let scope = match goal {
        RunGoal::Runs => {
            let runs = Preflight::runs(plan, false, false);
            match point_count(plan) {
                Some(points) => {
                    Preflight { measurements: points as u64, unit: "point", data_sets: 1, ..runs }
                }
                None => runs,
            }
        }
        RunGoal::LoadLine => {
            let range = search::default_range(plan)?;
            search::prepare(plan, range.clone(), 1)?;
            let steps = Preflight::steps(plan, &range, false, false, false)?;
            let loads = steps.listing.join(", ");
            messages.say(&format!(
                "a search for the load line, {loads}: at most {} steps, each of them a separate run",
                steps.measurements
            ));
            steps
        }
    };
    preflight::check(plan, &scope, messages)?;
    if time_max(plan).is_some() {
        messages.say(&model_limits::notice());
    }
    // Fails if the model rejects the plan.
    for target in plan.targets.iter().filter(|target| model_limits::is_model(target)) {
        plimsoll_runner::model_run::load(plan, &target.kind)?;
    }
    Ok(())
}

/// Error message with its hints, on one line.
pub(super) fn message_with_hints(error: &RunnerError) -> String {
    let hints = error.hints.iter().map(|hint| format!("; {hint}")).collect::<String>();
    format!("{}{hints}", error.message)
}

/// Collects the messages that are sent while the cost is estimated.
#[derive(Debug, Default)]
pub(super) struct Messages(pub(super) Vec<String>);

impl Watcher for Messages {
    fn begin(&mut self, _: PhaseKind) {}
    fn progress(&mut self, _: PhaseKind, _: &Progress) {}
    fn end(&mut self, _: &Phase) {}
}

impl Listener for Messages {
    fn say(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    fn warn(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}
