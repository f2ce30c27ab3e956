//! The JSON API. A test checks that `openapi.json` describes exactly these routes.

use std::fmt::Write;

use plimsoll_catalogue::{Entry, Filter, UNVERIFIED};
use plimsoll_live::metrics;
use plimsoll_report::exports::prometheus::escaped as label;
use serde_json::json;

use super::audit::{audit_json, declared};
use super::compare::{AnyComparison, compared};
use super::rows::filter;
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem, json as answer};
use crate::site::Site;
use crate::tokens::Role;

/// OpenAPI description.
pub const DESCRIPTION: &str = include_str!("openapi.json");

/// Returns the role of the client, and the form token for requests that change data.
///
/// # Errors
/// None.
pub fn session(_: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let who = &request.identity;
    let csrf = Some(&who.csrf).filter(|csrf| !csrf.is_empty());
    answer(&json!({"role": who.role.word(), "may_run": who.role >= Role::Run, "csrf": csrf}))
}

/// Returns runs in the order of their start.
///
/// # Errors
/// The filter is invalid, or the catalogue cannot be read.
pub fn runs(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let (filter, _) = filter(request)?;
    answer(&site.catalogue.with(|catalogue| catalogue.runs(&filter))?)
}

/// Returns the verdict of a run, or an experiment's combined result.
///
/// # Errors
/// The run is missing, or its evidence is not reliable.
pub fn one(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let directory = site.catalogue.directory(request.part("id"))?;
    Ok(PageResponse::Json(site.reports.get(&directory, &site.catalogue)?.json.clone()))
}

/// Returns a comparison.
///
/// # Errors
/// Fewer than two sides are given, or a side is missing.
pub fn compare(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    match compared(site, request)? {
        Some((AnyComparison::Sides(sides), _)) => answer(&sides),
        Some((AnyComparison::Sweeps(sweeps), _)) => answer(&sweeps),
        None => Err(Problem::bad_request("specify two to six sides: ?run=A&run=B")),
    }
}

/// Audits the posted text. The query describes the system under test.
///
/// # Errors
/// The text is not a result of a known format.
pub fn audit(_: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let declared = declared(|name| request.given(name))?;
    let text = String::from_utf8_lossy(&request.body);
    if text.trim().is_empty() {
        return Err(
            Problem::bad_request("there is nothing to audit").hint("send a result as the body")
        );
    }
    let pasted = plimsoll_runner::audit::audit_text("body", &text, &declared)?;
    answer(&audit_json(&pasted, &declared)?)
}

/// Returns the OpenAPI description of the API.
///
/// # Errors
/// None.
pub fn description(_: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    Ok(PageResponse::Json(DESCRIPTION.to_owned()))
}

/// Returns the number of runs, the latest run of each plan, and the state of this server's run, in
/// the text format of Prometheus.
///
/// # Errors
/// The catalogue cannot be read.
pub fn metrics(site: &Site, _: &PageRequest) -> Result<PageResponse, Problem> {
    let text = site
        .catalogue
        .cached("metrics", |catalogue| Ok(metrics_of(&catalogue.runs(&Filter::default())?)))?;
    let live = site.live.with(metrics::text).unwrap_or_default();
    Ok(PageResponse::Text("text/plain; version=0.0.4; charset=utf-8", format!("{text}{live}")))
}

fn verdict_of(run: &Entry) -> String {
    run.verdict.as_deref().unwrap_or("none").to_lowercase()
}

fn metrics_of(runs: &[Entry]) -> String {
    let mut verdicts = std::collections::BTreeMap::<String, u64>::new();
    let mut latest = std::collections::BTreeMap::new();
    for run in runs {
        *verdicts.entry(verdict_of(run)).or_default() += 1;
        // Rates from models are omitted, because they are not measurements. Unverified rates are
        // omitted, because anybody could have written them.
        let is_unverified = run.verdict.as_deref() == Some(UNVERIFIED);
        if run.has_bundle() && !run.is_modelled() && !is_unverified {
            latest.insert(run.name.as_str(), run);
        }
    }
    let mut text = String::from(
        "# HELP plimsoll_runs Number of runs in the catalogue with each verdict.\n# TYPE \
         plimsoll_runs gauge\n",
    );
    for (verdict, count) in &verdicts {
        let _ = writeln!(text, "plimsoll_runs{{verdict=\"{}\"}} {count}", label(verdict));
    }
    text.push_str(
        "# HELP plimsoll_last_run_iops_per_s Rate achieved by the latest measured run of a plan, \
         with the run's verdict.\n# TYPE plimsoll_last_run_iops_per_s gauge\n",
    );
    for (plan, run) in &latest {
        if let Some(rate) = run.achieved_iops_per_s {
            // The rate of an INVALID run is wrong, so an alert must be able to leave it out.
            let (plan, verdict) = (label(plan), label(&verdict_of(run)));
            let _ = writeln!(
                text,
                "plimsoll_last_run_iops_per_s{{plan=\"{plan}\",verdict=\"{verdict}\"}} {rate}"
            );
        }
    }
    text.push_str(
        "# HELP plimsoll_last_run_started_seconds Start time of the latest measured run of a \
         plan.\n# TYPE plimsoll_last_run_started_seconds gauge\n",
    );
    for (plan, run) in &latest {
        let (plan, at) = (label(plan), run.started_unix_ns / 1_000_000_000);
        let _ = writeln!(text, "plimsoll_last_run_started_seconds{{plan=\"{plan}\"}} {at}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_the_verdict_of_its_run() {
        let run = Entry {
            name: "p".into(),
            verdict: Some("INVALID".into()),
            bundle: Some("/b".into()),
            achieved_iops_per_s: Some(7.0),
            ..Entry::default()
        };
        let text = metrics_of(&[run]);
        let line = "plimsoll_last_run_iops_per_s{plan=\"p\",verdict=\"invalid\"} 7\n";
        assert!(text.contains(line), "{text}");
    }
}
