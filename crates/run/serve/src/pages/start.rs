//! The Start page: forms for starting a run, with the resulting plan, its errors and its expected
//! cost.

use std::sync::{Arc, TryLockError};

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::{Serde, Value};
use plimsoll_model::spec::shipped;
use plimsoll_plan::{field_reference, gallery, gallery_plan};
use plimsoll_runner::run::{Options, Work};
use serde_json::json;

use crate::draft::{self, Field, PlanCheck, RunGoal, TARGET_KINDS};
use crate::fleet::Fleet;
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem, json as answer};
use crate::site::Site;

/// The default form.
const DEFAULT_KIND: &str = "mailbox";

/// Shows a form.
///
/// # Errors
/// The form is unknown.
pub fn show_form(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let kind = request.given("kind").unwrap_or(DEFAULT_KIND).to_owned();
    let fields = fields_of(&kind)?;
    let chosen = request.given("place_kind").zip(request.given("place"));
    let of_fleet = || site.fleet_to_start().and_then(Fleet::first_allowed);
    let word = site.allow.descriptions().into_iter().next().or_else(of_fleet);
    let first = || word.as_deref().and_then(|word| word.split_once(' '));
    let first_place =
        chosen.or_else(first).map(|(kind, place)| (kind.to_owned(), place.to_owned()));
    let copied = request.given("plan").and_then(gallery_plan).map(|plan| plan.text.to_owned());
    let given = |name: &str| -> Option<String> {
        let field = fields.iter().find(|field| field.name == name);
        match name {
            "kind" => Some(kind.clone()),
            "name" if gallery_plan(&kind).is_none() => Some(format!("my-{kind}")),
            "plan" => copied.clone(),
            // A fio job states its own target, so the target field of the web form is initially
            // empty.
            "place" if kind == "fio" && chosen.is_none() => None,
            "place_kind" => first_place.as_ref().map(|(kind, _)| kind.clone()),
            "place" => first_place.as_ref().map(|(_, place)| place.clone()),
            _ => field.map(|field| field.initial.to_owned()),
        }
        .filter(|value| !value.is_empty())
    };
    let checked = match kind.as_str() {
        // No text has been pasted yet.
        "fio" => PlanCheck::default(),
        _ => check_given(site, request, &given)?,
    };
    form(site, request, &kind, &fields, &given, &checked)
}

/// Starts the run that a form describes, or shows the form again with the errors.
///
/// # Errors
/// The form is unknown, or a run is in progress.
pub fn start(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let kind = request.field("kind").unwrap_or_default().to_owned();
    let fields = fields_of(&kind)?;
    let given = |name: &str| request.field(name).map(str::to_owned);
    let mut checked = match check_given(site, request, &given) {
        Ok(checked) => checked,
        // Invalid changes.
        Err(problem) => PlanCheck { refused: Some(problem.message), ..PlanCheck::default() },
    };
    if request.field("do") == Some("start") && checked.can_start {
        begin(site, request, &mut checked)?;
        return Ok(PageResponse::Redirect("/live".to_owned()));
    }
    form(site, request, &kind, &fields, &given, &checked)
}

/// Checks the submitted form, or the TOML in the body.
///
/// # Errors
/// The form is unknown, or its changes to the plan are invalid.
pub fn check(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    answer(&check_request(site, request)?)
}

/// Starts the plan in the body.
///
/// # Errors
/// The plan is invalid or not allowed, or a run is in progress.
pub fn start_json(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let mut checked = check_request(site, request)?;
    if let Some(first) = checked.problems.first() {
        let says = format!("{}: {}", first.field, first.message);
        return Err(Problem::bad_request(says).hint(first.help.clone()));
    }
    let plan = checked.work.as_ref().map(|work| work.name().to_owned());
    begin(site, request, &mut checked)?;
    answer(&json!({"plan": plan, "live": "/api/live"}))
}

fn check_request(site: &Site, request: &PageRequest) -> Result<PlanCheck, Problem> {
    if request.form.is_empty() {
        let goal = RunGoal::parse(request.given("find"))?;
        let (text, hosts) = (String::from_utf8_lossy(&request.body), request.all_given("host"));
        return Ok(match hosts.is_empty() {
            true => draft::check(&text, goal, &site.allow),
            false => draft::check_on_hosts(&text, goal, &hosts, site.fleet.as_deref()),
        });
    }
    check_given(site, request, &|name| request.field(name).map(str::to_owned))
}

/// Checks a form, for this host or for the selected hosts of the fleet.
fn check_given(
    site: &Site,
    request: &PageRequest,
    given: &dyn Fn(&str) -> Option<String>,
) -> Result<PlanCheck, Problem> {
    let hosts = request.all_fields("host");
    if hosts.is_empty() {
        return draft::check_form(given, &site.allow);
    }
    if given("kind").as_deref() == Some("fio") {
        let says = "a fio job on a fleet is started with `plimsoll run JOB --fleet`";
        return Ok(PlanCheck { refused: Some(says.to_owned()), ..PlanCheck::default() });
    }
    let goal = RunGoal::parse(given("find").as_deref())?;
    Ok(draft::check_on_hosts(&draft::text(given)?, goal, &hosts, site.fleet.as_deref()))
}

fn begin(site: &Site, request: &PageRequest, checked: &mut PlanCheck) -> Result<(), Problem> {
    let work = match (checked.work.take(), &checked.refused) {
        (Some(work), None) => work,
        (_, why) => {
            let why = why.clone().unwrap_or_else(|| "the plan is not valid".to_owned());
            return Err(match checked.cannot_run {
                true => Problem::bad_request(why),
                false => Problem::new(StatusCode::FORBIDDEN, why),
            });
        }
    };
    // A running model uses processors and memory, so it would disturb a run.
    let _alone = match site.modelling_lock.try_lock() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let says = "a model is running on the Models page, and it would disturb the run";
            return Err(
                Problem::new(StatusCode::CONFLICT, says).hint("try again after it has finished")
            );
        }
    };
    let known = Arc::clone(&site.catalogue);
    let mut started = format!("started the plan {}", work.name());
    let options = match (&checked.hosts[..], &work, site.fleet_to_start()) {
        ([], ..) => {
            let places = site.live.places.clone();
            Options { allow: Some(site.allow.clone()), ..Options::new(places) }
        }
        (hosts, Work::Plan(plan), Some(Fleet { runner: Some(runner), .. })) => {
            started.push_str(&format!(" on {}", hosts.join(", ")));
            let (driver, places) = runner.select(&plan.resolve(), hosts)?;
            Options { driver: Some(driver), ..Options::new(places) }
        }
        _ => return Err(Problem::forbidden("this server is not allowed to start runs on a fleet")),
    };
    site.live.start(work, options, checked.time_max, move || known.invalidate())?;
    site.access.record(&request.identity, &started);
    Ok(())
}

fn fields_of(kind: &str) -> Result<Vec<Field>, Problem> {
    draft::fields(kind).ok_or_else(|| Problem::not_found("there is no such form"))
}

/// Returns the possible values of a field; an empty list if the field accepts other values than a
/// few words.
fn options(written: &str) -> Vec<String> {
    let written = written.strip_suffix(", or a list of them").unwrap_or(written);
    let one = |word: &str| match word {
        "true" | "false" => Some(word.to_owned()),
        _ => Some(word.strip_prefix('"')?.strip_suffix('"')?.to_owned()),
    };
    written
        .split(" or ")
        .map(one)
        .collect::<Option<Vec<String>>>()
        .filter(|all| all.len() > 1)
        .unwrap_or_default()
}

fn form(
    site: &Site,
    request: &PageRequest,
    kind: &str,
    fields: &[Field],
    given: &dyn Fn(&str) -> Option<String>,
    checked: &PlanCheck,
) -> Result<PageResponse, Problem> {
    let field = |field: &Field| {
        let says = field_reference(field.name);
        let default = says.as_ref().map(|says| says.default.clone()).unwrap_or_default();
        let meaning = says.as_ref().map_or("99th percentile of latency.", |says| says.meaning);
        let value = given(field.name);
        let options = says.as_ref().map(|says| options(&says.value)).unwrap_or_default();
        let is_one = |value: &String| options.contains(value);
        let options = if value.as_ref().is_none_or(is_one) { options } else { Vec::new() };
        context! {
            name => field.name,
            label => field.label,
            options,
            value,
            default,
            meaning => meaning.replace('`', ""),
            written => says.map(|says| says.value),
        }
    };
    let ready_plan = gallery_plan(kind);
    let gallery = gallery().iter().map(|plan| {
        let about = plan.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        context! { name => plan.name, about }
    });
    let values = context! {
        kind,
        gallery => gallery.collect::<Vec<_>>(),
        about => ready_plan.map(|plan| plan.says("For whom")),
        needs => ready_plan.map(|plan| plan.says("Needs")),
        lasts => ready_plan.map(|plan| plan.says("Takes")),
        name => given("name"),
        place => given("place"),
        place_kind => given("place_kind"),
        places => TARGET_KINDS.iter().map(|(name, label, like)| context! { name => *name, label => *label, like => *like }).collect::<Vec<_>>(),
        models => shipped().iter().map(|model| model.name).collect::<Vec<_>>(),
        more => given("more"),
        plan => given("plan"),
        job => given("job"),
        find => given("find"),
        like => site.allow.descriptions().iter().find_map(|word| word.strip_prefix("path ").map(str::to_owned)),
        fields => fields.iter().map(field).collect::<Vec<_>>(),
        allowed => site.allow.descriptions(),
        fleet => site.fleet_to_start().map(Fleet::template_value),
        picked => request.all_fields("host"),
        checked => Value::from(Serde(checked)),
        is_live => site.live.with(|state| state.is_under_way).unwrap_or(false),
    };
    site.page("start.html", "Start a run", "start", request, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_few_values_offers_them() {
        assert_eq!(options("\"free\" or \"target\""), ["free", "target"]);
        assert_eq!(options("true or false"), ["true", "false"]);
        assert_eq!(options("\"a\" or \"b\", or a list of them"), ["a", "b"]);
        assert!(options("duration, or \"until-steady\"").is_empty());
        assert!(
            options("whole number from 1, or \"auto\"").is_empty() && options("text").is_empty()
        );
        let of = |name: &str| field_reference(name).map(|says| options(&says.value).len());
        assert_eq!(of("workload.mailbox.pace"), Some(2));
        assert!(of("workload.matrix.patterns") > Some(5) && of("workload.matrix.sync") > Some(3));
    }
}
