//! Checks a plan that hosts of a fleet will run. The agents of these hosts check its targets
//! against their own allow-lists.

use plimsoll_plan::{Plan, PlanErrors, ResolvedPlan};
use plimsoll_runner::allow::Allow;
use plimsoll_runner::preflight::{self, Preflight};
use plimsoll_runner::run::Work;

use super::check::{Messages, PlanCheck, check_name, message_with_hints};
use super::{NAME, RunGoal};
use crate::fleet::Fleet;

/// Checks the text of a plan for these hosts. Runs nothing, and sends no request to agents.
pub fn check(text: &str, goal: RunGoal, hosts: &[String], fleet: Option<&Fleet>) -> PlanCheck {
    let check = PlanCheck { text: text.to_owned(), ..PlanCheck::default() };
    let plan = match Plan::parse(text, NAME) {
        Ok(plan) => plan,
        Err(PlanErrors { errors, .. }) => return PlanCheck { problems: errors, ..check },
    };
    let resolved = plan.resolve();
    let mut messages = Messages::default();
    let outcome = startable_hosts(&resolved, goal, hosts, fleet).and_then(|hosts| {
        let before = Preflight::runs(&resolved, false, false);
        let checked = preflight::check_on_hosts(&resolved, &before, &mut messages);
        checked.map_err(|error| message_with_hints(&error)).map(|()| hosts)
    });
    if let Ok(hosts) = &outcome {
        messages.0.push(format!(
            "runs on {}: each agent checks the target against its own allow-list",
            hosts.join(", ")
        ));
    }
    PlanCheck {
        resolved: resolved.to_toml().ok(),
        takes: messages.0,
        can_start: outcome.is_ok(),
        refused: outcome.as_ref().err().cloned(),
        work: Some(Work::Plan(plan)),
        hosts: outcome.unwrap_or_default(),
        ..check
    }
}

/// Returns the hosts that will run the plan, or the reason why the plan is refused.
fn startable_hosts(
    plan: &ResolvedPlan,
    goal: RunGoal,
    hosts: &[String],
    fleet: Option<&Fleet>,
) -> Result<Vec<String>, String> {
    let Some(fleet) = fleet else {
        return Err("this server has no fleet: restart it with --fleet".to_owned());
    };
    let Some(runner) = &fleet.runner else {
        return Err(
            "this server is not allowed to start runs on the fleet: restart it with --allow-fleet"
                .to_owned(),
        );
    };
    if goal == RunGoal::LoadLine {
        return Err(
            "to search for a load line on a fleet, use `plimsoll tune PLAN --fleet`".to_owned()
        );
    }
    check_name(plan)?;
    // The plan's commands and requests are checked here, because the coordinator on this host would
    // execute them.
    Allow::default().check_all_but_targets(plan)?;
    runner.check(plan).map_err(|error| message_with_hints(&error))?;
    let hosts = fleet.pick(hosts)?;
    let placement = plan.fleet.clone().unwrap_or_default();
    let mut names = placement.names;
    names.sort();
    if placement.agents.is_some() || !placement.labels.is_empty() {
        return Err("remove fleet.agents and fleet.labels from the plan, because the hosts are \
                    selected on this page"
            .to_owned());
    }
    match names.is_empty() || names == hosts {
        true => Ok(hosts),
        false => Err(format!("the plan lists its hosts: select {}", names.join(", "))),
    }
}
