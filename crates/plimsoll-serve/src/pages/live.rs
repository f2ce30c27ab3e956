//! The run under way: what is known of it, as a page, as events and for programs.

use minijinja::context;
use minijinja::value::Value;
use serde_json::json;

use crate::answer::{Answer, Problem, json as answer};
use crate::ask::Ask;
use crate::live::Shown;
use crate::site::Site;

/// Shows it as it is now. A script has it follow the run; without one the page is loaded again.
///
/// # Errors
/// A defect in a template.
pub fn show(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let is_under_way = site.live.with(|state| state.is_under_way).unwrap_or(false);
    let shown = site.live.shown()?;
    let part = |of: &dyn Fn(&Shown) -> &String| {
        shown.as_ref().map(|shown| Value::from_safe_string(of(shown).clone()))
    };
    let values = context! {
        is_under_way,
        is_known => shown.is_some(),
        now => part(&|shown| &shown.now),
        more => part(&|shown| &shown.more),
        charts => part(&|shown| &shown.charts),
    };
    site.page("live.html", "Live", "live", ask, values)
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
/// This server started none.
pub fn told(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    let told = site.live.with(|state| answer(state));
    told.unwrap_or_else(|| Err(Problem::nothing("this server started no run yet")))
}

/// The same as events, for those who watch.
///
/// # Errors
/// This server started none, or too many watch.
pub fn events(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    Ok(Answer::Events(Box::new(site.live.watch()?)))
}

/// Asks it to stop.
///
/// # Errors
/// None of this server is under way.
pub fn told_stop(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    site.live.stop()?;
    answer(&json!({"is_stopping": true}))
}
