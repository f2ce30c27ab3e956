//! What pages show, for programs. `openapi.json` says what there is, and a test holds it to the routes.

use std::fmt::Write;

use plimsoll_catalogue::{Entry, Filter};
use plimsoll_report::exports::prometheus::escaped as label;
use plimsoll_runner::live;
use serde_json::json;

use super::audit::{declared, told};
use super::compare::{Compared, compared};
use super::rows::filter;
use crate::answer::{Answer, Problem, json as answer};
use crate::ask::Ask;
use crate::site::Site;
use crate::tokens::Role;

/// What can be asked, and what is answered.
pub const DESCRIPTION: &str = include_str!("openapi.json");

/// Who asks, and what their requests have to hold that change something.
///
/// # Errors
/// None.
pub fn session(_: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let who = &ask.who;
    let csrf = Some(&who.csrf).filter(|csrf| !csrf.is_empty());
    answer(&json!({"role": who.role.word(), "may_run": who.role >= Role::Run, "csrf": csrf}))
}

/// Runs, in the order in which they were started.
///
/// # Errors
/// A filter that is none, a catalogue that can't be read.
pub fn runs(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let (filter, _) = filter(ask)?;
    answer(&site.known.with(|catalogue| catalogue.runs(&filter))?)
}

/// The verdict of a run, or what runs say together.
///
/// # Errors
/// A run that is not there, evidence that can't be relied on.
pub fn one(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let directory = site.known.directory(ask.part("id"))?;
    Ok(Answer::Json(site.drawn.of(&directory, &site.known)?.json.clone()))
}

/// A comparison.
///
/// # Errors
/// Fewer than two sides, one that is not there.
pub fn compare(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    match compared(site, ask)? {
        Some((Compared::Sides(sides), _)) => answer(&sides),
        Some((Compared::Sweeps(sweeps), _)) => answer(&sweeps),
        None => Err(Problem::wrong("name two to six sides: ?run=A&run=B")),
    }
}

/// The audit of the text that was sent. What is known of the system stands in the query.
///
/// # Errors
/// A text that is no result.
pub fn audit(_: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let declared = declared(|name| ask.given(name))?;
    let text = String::from_utf8_lossy(&ask.body);
    if text.trim().is_empty() {
        return Err(Problem::wrong("there is nothing to audit").hint("send a result as the body"));
    }
    let pasted = plimsoll_runner::audit::of_text("body", &text, &declared)?;
    answer(&told(&pasted, &declared)?)
}

/// What there is to ask.
///
/// # Errors
/// None.
pub fn description(_: &Site, _: &Ask) -> Result<Answer, Problem> {
    Ok(Answer::Json(DESCRIPTION.to_owned()))
}

/// Counts of runs, the latest run of each plan, and the run of this server, in the text format of Prometheus.
///
/// # Errors
/// A catalogue that can't be read.
pub fn metrics(site: &Site, _: &Ask) -> Result<Answer, Problem> {
    let text = site
        .known
        .made("metrics", |catalogue| Ok(metrics_of(&catalogue.runs(&Filter::default())?)))?;
    let live = site.live.with(live::metrics::text).unwrap_or_default();
    Ok(Answer::Text("text/plain; version=0.0.4; charset=utf-8", format!("{text}{live}")))
}

fn metrics_of(runs: &[Entry]) -> String {
    let mut verdicts = std::collections::BTreeMap::<String, u64>::new();
    let mut latest = std::collections::BTreeMap::new();
    for run in runs {
        let verdict = run.verdict.as_deref().unwrap_or("none").to_lowercase();
        *verdicts.entry(verdict).or_default() += 1;
        // A modelled run's rate is no measurement.
        if run.has_bundle() && !run.is_modelled() {
            latest.insert(run.name.as_str(), run);
        }
    }
    let mut text = String::from(
        "# HELP plimsoll_runs Runs of the catalogue by verdict.\n# TYPE plimsoll_runs gauge\n",
    );
    for (verdict, count) in &verdicts {
        let _ = writeln!(text, "plimsoll_runs{{verdict=\"{}\"}} {count}", label(verdict));
    }
    text.push_str(
        "# HELP plimsoll_last_run_iops_per_s Rate that the latest measured run of a plan \
         achieved.\n# TYPE plimsoll_last_run_iops_per_s gauge\n",
    );
    for (plan, run) in &latest {
        if let Some(rate) = run.achieved_iops_per_s {
            let plan = label(plan);
            let _ = writeln!(text, "plimsoll_last_run_iops_per_s{{plan=\"{plan}\"}} {rate}");
        }
    }
    text.push_str(
        "# HELP plimsoll_last_run_started_seconds When the latest measured run of a plan was \
         started.\n# TYPE plimsoll_last_run_started_seconds gauge\n",
    );
    for (plan, run) in &latest {
        let (plan, at) = (label(plan), run.started_unix_ns / 1_000_000_000);
        let _ = writeln!(text, "plimsoll_last_run_started_seconds{{plan=\"{plan}\"}} {at}");
    }
    text
}
