//! The run under way, of this server or of another process of this user: what is known of it, as a page, as events and for
//! programs.

use minijinja::context;
use minijinja::value::Value;
use plimsoll_report::number::{Letters, Unit, elapsed};
use plimsoll_runner::live::state::State;
use serde_json::json;

use crate::answer::{Answer, Problem, json as answer};
use crate::ask::Ask;
use crate::live::Shown;
use crate::site::Site;

/// The process that is asked about; `None`: this server.
///
/// # Errors
/// What is no number of a process.
fn process(ask: &Ask) -> Result<Option<u32>, Problem> {
    let number = |text: &str| {
        let says = format!("process: {text:?} is no number of a process");
        text.parse().map_err(|_| Problem::wrong(says))
    };
    ask.given("process").map(number).transpose()
}

/// Shows it as it is now. A script has it follow the run; without one the page is loaded again.
///
/// # Errors
/// A process that tells of no run, a defect in a template.
pub fn show(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let process = process(ask)?;
    let (is_under_way, shown) = match process {
        Some(process) => {
            let state = site.live.elsewhere.one(process)?;
            (state.is_under_way, Some(site.live.shown_of(&state)?))
        }
        None => {
            let is_under_way = site.live.with(|state| state.is_under_way).unwrap_or(false);
            (is_under_way, site.live.shown()?)
        }
    };
    let others = site.live.elsewhere.all();
    let others = others.iter().filter(|one| one.process != process).map(brief);
    let part = |of: &dyn Fn(&Shown) -> &String| {
        shown.as_ref().map(|shown| Value::from_safe_string(of(shown).clone()))
    };
    let values = context! {
        is_under_way,
        is_known => shown.is_some(),
        process,
        others => others.collect::<Vec<_>>(),
        now => part(&|shown| &shown.now),
        more => part(&|shown| &shown.more),
        charts => part(&|shown| &shown.charts),
    };
    site.page("live.html", "Live", "live", ask, values)
}

/// A run of another process in a row.
pub fn brief(state: &State) -> Value {
    let show = |unit: Unit, value: f64| unit.show(value, Letters::Unicode);
    // What it did when it was heard last may be long ago.
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

/// The runs of this user's other processes.
///
/// # Errors
/// None.
pub fn others(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    answer(&site.live.elsewhere.all())
}

/// Asks it to stop.
///
/// # Errors
/// None of this server is under way.
pub fn stop(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    site.live.stop()?;
    Ok(Answer::To("/live".to_owned()))
}

/// What is known of it.
///
/// # Errors
/// This server started none, a process that tells of no run.
pub fn told(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    if let Some(process) = process(ask)? {
        return answer(&site.live.elsewhere.one(process)?);
    }
    let told = site.live.with(answer);
    told.unwrap_or_else(|| Err(Problem::nothing("this server started no run yet")))
}

/// The same as events, for those who watch.
///
/// # Errors
/// This server started none, or too many watch.
pub fn events(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    Ok(Answer::Events(Box::new(site.live.watch(process(ask)?)?)))
}

/// Asks it to stop.
///
/// # Errors
/// None of this server is under way.
pub fn told_stop(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    site.live.stop()?;
    answer(&json!({"is_stopping": true}))
}
