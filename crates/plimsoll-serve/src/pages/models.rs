//! Models: a shipped one with fields changed, asked in virtual time what it carries.

use std::sync::TryLockError;

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Value;
use plimsoll_model::spec::{Spec, shipped, unit_of};
use plimsoll_report::html;
use plimsoll_runner::sizing::Answer as Modelled;
use serde_json::json;

use crate::answer::{Answer, Problem, json as answer};
use crate::ask::Ask;
use crate::site::Site;
use crate::sized::{self, SIZE_MAX};

/// Lists the shipped models.
///
/// # Errors
/// A defect in one.
pub fn list(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let models = all()?.into_iter().map(|spec| context! { name => spec.name, title => spec.title });
    let values = context! { models => models.collect::<Vec<_>>() };
    site.page("models.html", "Models", "models", ask, values)
}

/// Shows a model and asks what it shall carry.
///
/// # Errors
/// No such model.
pub fn one(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    form(site, ask, &sized::spec(ask.part("id"))?, context! {})
}

/// Runs a model.
///
/// # Errors
/// No such model. What else is wrong is told on the page itself.
pub fn show(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let spec = sized::spec(ask.part("id"))?;
    let values = match asked(site, ask) {
        Ok(modelled) => {
            context! { body => Value::from_safe_string(html::part(&modelled.page())?) }
        }
        Err(problem) => context! { says => problem.says, hints => problem.hints },
    };
    form(site, ask, &spec, values)
}

/// The shipped models.
///
/// # Errors
/// A defect in one.
pub fn told_list(_: &Site, _: &Ask) -> Result<Answer, Problem> {
    let one = |spec: Spec| json!({"name": spec.name, "title": spec.title});
    answer(&all()?.into_iter().map(one).collect::<Vec<_>>())
}

/// What a model says of what the form of its page asks.
///
/// # Errors
/// No such model, a question that is not answered here, one that goes on.
pub fn told(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    answer(&asked(site, ask)?.as_json())
}

fn all() -> Result<Vec<Spec>, Problem> {
    shipped().iter().map(|model| sized::spec(model.name)).collect()
}

/// One model runs at a time, and none while a run of this server measures: it would take that its processors.
fn asked(site: &Site, ask: &Ask) -> Result<Modelled, Problem> {
    let question = sized::question(ask.part("id"), &|name| ask.field(name).map(str::to_owned))?;
    if site.live.with(|state| state.is_under_way).unwrap_or(false) {
        let says = "a run is under way, whose processors a model would take";
        return Err(Problem::new(StatusCode::CONFLICT, says).hint("ask again when it has ended"));
    }
    let _alone = match site.modelling.try_lock() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let says = "another model is being run: one at a time";
            return Err(
                Problem::new(StatusCode::TOO_MANY_REQUESTS, says).hint("ask again in a while")
            );
        }
    };
    Ok(question.answer()?)
}

fn form(site: &Site, ask: &Ask, spec: &Spec, values: Value) -> Result<Answer, Problem> {
    let given = |name: &str, default: &str| ask.field(name).unwrap_or(default).to_owned();
    let fields = sized::fields(spec).into_iter().map(|(path, fact)| {
        let own = fact.value.to_string();
        context! {
            value => given(&path, &own),
            unit => unit_of(path.rsplit('.').next().unwrap_or_default()),
            own,
            from => fact.from.to_string(),
            note => fact.note,
            path,
        }
    });
    let searched = sized::searched(spec);
    let own = searched.first().and_then(|field| spec.value(field)).unwrap_or(1.0).max(1.0);
    let own = own.to_string();
    let about: Vec<String> =
        spec.about.trim().split("\n\n").map(|part| part.replace('\n', " ")).collect();
    let load = [
        ("mailboxes", "Mailboxes", "1000"),
        ("mailbox_size", "Size of one", "1GiB"),
        ("iops", "I/Os per second and mailbox", "0.2"),
        ("read_latency", "Reads within, on average", "20ms"),
        ("log_latency", "Log writes within", "10ms"),
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
    site.page("model.html", &format!("Model {}", spec.name), "models", ask, values)
}
