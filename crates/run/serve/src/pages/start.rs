//! Starting a run: forms with the plan that they come to, what is wrong with it and what it will take.

use std::sync::{Arc, TryLockError};

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::{Serde, Value};
use plimsoll_model::spec::shipped;
use plimsoll_plan::{field_reference, gallery, gallery_plan};
use serde_json::json;

use crate::draft::{self, Field, PlanCheck, RunGoal, TARGET_KINDS};
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem, json as answer};
use crate::site::Site;

/// The form that comes first.
const DEFAULT_KIND: &str = "mailbox";

/// Shows a form.
///
/// # Errors
/// A form that there is none of.
pub fn show_form(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let kind = request.given("kind").unwrap_or(DEFAULT_KIND).to_owned();
    let fields = fields_of(&kind)?;
    let chosen = request.given("place_kind").zip(request.given("place"));
    let words = site.allow.descriptions();
    let first = || words.first().and_then(|word| word.split_once(' '));
    let first_place =
        chosen.or_else(first).map(|(kind, place)| (kind.to_owned(), place.to_owned()));
    let copied = request.given("plan").and_then(gallery_plan).map(|plan| plan.text.to_owned());
    let given = |name: &str| -> Option<String> {
        let field = fields.iter().find(|field| field.name == name);
        match name {
            "kind" => Some(kind.clone()),
            "name" if gallery_plan(&kind).is_none() => Some(format!("my-{kind}")),
            "plan" => copied.clone(),
            // A job has a place of its own.
            "place" if kind == "fio" && chosen.is_none() => None,
            "place_kind" => first_place.as_ref().map(|(kind, _)| kind.clone()),
            "place" => first_place.as_ref().map(|(_, place)| place.clone()),
            _ => field.map(|field| field.initial.to_owned()),
        }
        .filter(|value| !value.is_empty())
    };
    let checked = match kind.as_str() {
        // Nothing was pasted yet.
        "fio" => PlanCheck::default(),
        _ => draft::check_form(&given, &site.allow)?,
    };
    form(site, request, &kind, &fields, &given, &checked)
}

/// Starts what a form asks for, or shows it again with what is wrong.
///
/// # Errors
/// An unknown form, or a run in progress.
pub fn start(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let kind = request.field("kind").unwrap_or_default().to_owned();
    let fields = fields_of(&kind)?;
    let given = |name: &str| request.field(name).map(str::to_owned);
    let mut checked = match draft::check_form(&given, &site.allow) {
        Ok(checked) => checked,
        // Changes that are none.
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
/// A form that there is none of, changes that are none.
pub fn check(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    answer(&check_request(site, request)?)
}

/// Starts the plan in the body.
///
/// # Errors
/// An invalid or forbidden plan, or a run in progress.
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
        return Ok(draft::check(&String::from_utf8_lossy(&request.body), goal, &site.allow));
    }
    draft::check_form(&|name| request.field(name).map(str::to_owned), &site.allow)
}

fn begin(site: &Site, request: &PageRequest, checked: &mut PlanCheck) -> Result<(), Problem> {
    let work = match (checked.work.take(), &checked.refused) {
        (Some(work), None) => work,
        (_, why) => {
            let why = why.clone().unwrap_or_else(|| "the plan is wrong".to_owned());
            return Err(Problem::new(StatusCode::FORBIDDEN, why));
        }
    };
    // A model in use takes processors and memory, which would disturb the run.
    let _alone = match site.modelling_lock.try_lock() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let says = "a model is running on the Models page and would disturb the run";
            return Err(
                Problem::new(StatusCode::CONFLICT, says).hint("try again when it has finished")
            );
        }
    };
    let known = Arc::clone(&site.catalogue);
    let plan = work.name().to_owned();
    site.live.start(work, &site.allow, checked.time_max, move || known.invalidate())?;
    site.access.record(&request.identity, &format!("started the plan {plan}"));
    Ok(())
}

fn fields_of(kind: &str) -> Result<Vec<Field>, Problem> {
    draft::fields(kind).ok_or_else(|| Problem::not_found("there is no such form"))
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
        context! {
            name => field.name,
            label => field.label,
            value => given(field.name),
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
        checked => Value::from(Serde(checked)),
        is_live => site.live.with(|state| state.is_under_way).unwrap_or(false),
    };
    site.page("start.html", "Start a run", "start", request, values)
}
