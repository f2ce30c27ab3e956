//! Shows the current run of this server, or of another process of this user, as a page, as a stream
//! of events, and as JSON.

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Value;
use plimsoll_live::state::State;
use plimsoll_report::number::{Letters, Unit, elapsed};
use plimsoll_runner::prompt;
use serde_json::json;

use crate::live::{LiveHtml, render};
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem, json as answer};
use crate::site::Site;

/// Returns the requested process id; `None` stands for this server.
///
/// # Errors
/// The process id is invalid.
fn process(request: &PageRequest) -> Result<Option<u32>, Problem> {
    let number = |text: &str| {
        let says = format!("process: {text:?} is not a process id");
        text.parse().map_err(|_| Problem::bad_request(says))
    };
    request.given("process").map(number).transpose()
}

/// Shows the current state. A script updates the page during the run; without scripts, the page
/// reloads itself.
///
/// # Errors
/// The process is unknown, or a template has a defect.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let process = process(request)?;
    let (is_under_way, shown) = match process {
        Some(process) => {
            let state = site.live.others.one(process)?;
            (state.is_under_way, Some(site.live.render_state(&state)?))
        }
        None => {
            let is_under_way = site.live.with(|state| state.is_under_way).unwrap_or(false);
            (is_under_way, site.live.render()?)
        }
    };
    let others = site.live.others.all();
    let others = others.iter().filter(|one| one.process != process).map(brief);
    let part = |of: &dyn Fn(&LiveHtml) -> &String| {
        shown.as_ref().map(|shown| Value::from_safe_string(of(shown).clone()))
    };
    let values = context! {
        is_under_way,
        is_known => shown.is_some(),
        process,
        prompts => is_under_way.then(|| render::prompts(&site.live.places)),
        others => others.collect::<Vec<_>>(),
        now => part(&|shown| &shown.now),
        more => part(&|shown| &shown.more),
        charts => part(&|shown| &shown.charts),
    };
    site.page("live.html", "Live", "live", request, values)
}

/// Returns the row for a run of another process.
pub fn brief(state: &State) -> Value {
    let show = |unit: Unit, value: f64| unit.show(value, Letters::Unicode);
    // If the process does not respond, its last state may be old, so no rate is shown.
    let phase = state.phase.as_ref().filter(|_| !state.is_silent);
    let rate = state.rate_ops_per_s.filter(|_| !state.is_silent);
    context! {
        process => state.process,
        plan => state.plan.as_str(),
        is_silent => state.is_silent,
        phase => phase.map(|phase| phase.kind.as_str()),
        left => phase.and_then(|phase| phase.left_ns).map(|ns| elapsed(ns as f64)),
        rate => rate.map(|rate| show(Unit::Rate, rate)),
    }
}

/// Returns the runs of this user's other processes.
///
/// # Errors
/// None.
pub fn others(site: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    answer(&site.live.others.all())
}

/// Requests that the run of this server stops.
///
/// # Errors
/// No run of this server is in progress.
pub fn stop(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    stop_json(site, request)?;
    Ok(PageResponse::Redirect("/live".to_owned()))
}

/// Confirms a prompt of the run in the field `run`, or of the only run that waits for its operator:
/// the prompt in the field `prompt`, or the oldest prompt.
///
/// # Errors
/// No run waits for its operator, the prompt is already confirmed, or several runs wait and the
/// request names none of them.
pub fn mark(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    mark_json(site, request)?;
    Ok(PageResponse::Redirect("/live".to_owned()))
}

/// Confirms a prompt, like [`mark`], and returns JSON.
///
/// # Errors
/// The errors of [`mark`].
pub fn mark_json(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let places = &site.live.places;
    let given = |name: &str| request.field(name).or_else(|| request.given(name));
    let (named, number) = (given("run"), given("prompt"));
    let waiting = prompt::all(places);
    let mut of_run = waiting.iter().filter(|one| named.is_none_or(|name| one.run_id == name));
    let mut requested = of_run.clone().filter(|one| {
        number.is_none_or(|number| number.parse().is_ok_and(|number: u32| one.number == number))
    });
    let conflict = |says: &str| {
        Problem::new(StatusCode::CONFLICT, says.to_owned()).hint("reload the page of the run")
    };
    let Some(one) = requested.next() else {
        return Err(conflict(match of_run.next() {
            None => "no run waits for an operator",
            Some(_) => "this prompt does not wait for an operator",
        }));
    };
    if of_run.any(|other| other.run_id != one.run_id) {
        return Err(conflict(
            "several runs wait for an operator, so the request must contain the name of one run",
        ));
    }
    prompt::answer(places, &one.run_id, Some(one.number))?;
    site.access.record(&request.identity, &format!("confirmed the prompt of {}", one.run_id));
    answer(&json!({"run": one.run_id, "prompt": one.text}))
}

/// Returns the state of the run as JSON.
///
/// # Errors
/// The server has not started a run, or the process reports no run.
pub fn state_json(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    if let Some(process) = process(request)? {
        return answer(&site.live.others.one(process)?);
    }
    let state = site.live.with(answer);
    state.unwrap_or_else(|| Err(Problem::not_found("this server has not started a run yet")))
}

/// Returns the state of the run as a stream of events, for viewers.
///
/// # Errors
/// This server has not started a run, or there are too many viewers.
pub fn events(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Events(Box::new(site.live.watch(process(request)?)?)))
}

/// Requests that the run of this server stops.
///
/// # Errors
/// No run of this server is in progress.
pub fn stop_json(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    site.live.stop()?;
    site.access.record(&request.identity, "stopped the run");
    answer(&json!({"is_stopping": true}))
}
