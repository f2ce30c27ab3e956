//! The Models pages: run a shipped model in virtual time, with fields that the user can change, and
//! show the load that it sustains.

use std::sync::TryLockError;

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Value;
use plimsoll_fitting::sizing::Answer as Modelled;
use plimsoll_model::spec::{Spec, shipped, unit_of};
use plimsoll_report::html;
use serde_json::json;

use crate::request::PageRequest;
use crate::response::{PageResponse, Problem, json as answer};
use crate::site::Site;
use crate::sizing::{self, SIZE_MAX};

/// Lists the shipped models.
///
/// # Errors
/// A model has a defect.
pub fn list(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let models = all()?.into_iter().map(|spec| context! { name => spec.name, title => spec.title });
    let values = context! { models => models.collect::<Vec<_>>() };
    site.page("models.html", "Models", "models", request, values)
}

/// Shows a model with its form.
///
/// # Errors
/// The model does not exist.
pub fn one(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    form(site, request, &sizing::load_spec(request.part("id"))?, context! {})
}

/// Runs a model.
///
/// # Errors
/// The model is unknown. Other errors are shown on the page itself.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let spec = sizing::load_spec(request.part("id"))?;
    let values = match run_model(site, request) {
        Ok(modelled) => {
            context! { body => Value::from_safe_string(html::part(&modelled.page())?) }
        }
        Err(problem) => context! { says => problem.message, hints => problem.hints },
    };
    form(site, request, &spec, values)
}

/// Returns the shipped models.
///
/// # Errors
/// A model has a defect.
pub fn list_json(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    let one = |spec: Spec| json!({"name": spec.name, "title": spec.title});
    answer(&all()?.into_iter().map(one).collect::<Vec<_>>())
}

/// Runs a model with the values of the form, and returns the result as JSON.
///
/// # Errors
/// The model is unknown, a value is out of range, or another model is running.
pub fn answer_json(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    answer(&run_model(site, request)?.as_json())
}

fn all() -> Result<Vec<Spec>, Problem> {
    shipped().iter().map(|model| sizing::load_spec(model.name)).collect()
}

/// Only one model runs at a time. While a run of this server is in progress, no model may run,
/// because both would compete for the processors.
fn run_model(site: &Site, request: &PageRequest) -> Result<Modelled, Problem> {
    let question =
        sizing::question(request.part("id"), &|name| request.field(name).map(str::to_owned))?;
    if site.live.with(|state| state.is_under_way).unwrap_or(false) {
        let says = "a run is in progress, and a model would take processor time from it";
        return Err(
            Problem::new(StatusCode::CONFLICT, says).hint("try again after it has finished")
        );
    }
    let _alone = match site.modelling_lock.try_lock() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let says = "another model is running, and this server runs only one at a time";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, says)
                .hint("try again after it has finished"));
        }
    };
    Ok(question.answer()?)
}

fn form(
    site: &Site,
    request: &PageRequest,
    spec: &Spec,
    values: Value,
) -> Result<PageResponse, Problem> {
    let given = |name: &str, default: &str| request.field(name).unwrap_or(default).to_owned();
    let fields = sizing::fields(spec).into_iter().map(|(path, fact)| {
        let own = fact.value.to_string();
        context! {
            value => given(&path, &own),
            unit => unit_of(&path),
            own,
            from => fact.from.to_string(),
            note => fact.note,
            path,
        }
    });
    let searched = sizing::searchable_fields(spec);
    let own = searched.first().and_then(|field| spec.value(field)).unwrap_or(1.0).max(1.0);
    let own = own.to_string();
    let about: Vec<String> =
        spec.about.trim().split("\n\n").map(|part| part.replace('\n', " ")).collect();
    let load = [
        ("mailboxes", "Mailboxes", "1000"),
        ("mailbox_size", "Mailbox size", "1GiB"),
        ("iops", "I/Os per second per mailbox", "0.2"),
        ("read_latency", "Maximum average read latency", "20ms"),
        ("log_latency", "Maximum log write latency", "10ms"),
    ];
    let load =
        load.map(|(name, label, first)| context! { name, label, value => given(name, first) });
    let values = context! {
        name => spec.name.as_str(),
        title => spec.title.as_str(),
        about,
        fields => fields.collect::<Vec<_>>(),
        load => load.to_vec(),
        chosen => given("field", searched.first().map_or("", String::as_str)),
        searched,
        low => given("from", &own),
        high => given("to", &own),
        size_max => SIZE_MAX,
        ..values
    };
    site.page("model.html", &format!("Model {}", spec.name), "models", request, values)
}
