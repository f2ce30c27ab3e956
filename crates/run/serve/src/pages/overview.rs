//! The Overview page shows runs in progress, the latest verdicts, and the trend of each plan.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::{Serde, Value};
use plimsoll_catalogue::{Entry, Filter};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot, Rule};
use plimsoll_report::number::{Letters, Unit};

use super::rows::{Row, experiment_kind, tone};
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Maximum number of runs from which trends are computed; the latest runs are used.
const TREND_RUNS_MAX: u32 = 500;
/// Number of latest verdicts that are shown.
const LATEST: usize = 8;
/// Maximum number of plans for which a trend is shown, starting with the latest.
const TRENDS_MAX: usize = 6;
/// Maximum number of runs that the trend of one plan shows.
const POINTS_MAX: usize = 40;

/// Shows the overview.
///
/// # Errors
/// The catalogue cannot be read.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    // The state of a running run is the only part that can change while the catalogue does not. All
    // other parts are cached.
    let open = Filter { limit: Some(TREND_RUNS_MAX), is_open: true, ..Filter::default() };
    let mut open = site.catalogue.with(|catalogue| catalogue.runs(&open))?;
    open.reverse();
    let (under_way, cut_off): (Vec<&Entry>, Vec<&Entry>) =
        open.iter().partition(|run| run.is_under_way);
    let ended = site.catalogue.cached("overview", |catalogue| {
        let latest = Filter { limit: Some(TREND_RUNS_MAX), ..Filter::default() };
        let mut runs = catalogue.runs(&latest)?;
        runs.reverse();
        let ended: Vec<&Entry> =
            runs.iter().filter(|run| run.end.is_some() || run.bundle.is_some()).collect();
        let values = context! { latest => rows(&ended), trends => trends(&ended) };
        site.part("overview_ended.html", values)
    })?;
    let values = context! {
        under_way => rows(&under_way),
        cut_off => rows(&cut_off),
        others => site.live.others.all().iter().map(super::live::brief).collect::<Vec<_>>(),
        fleet => site.fleet.as_ref().map(|fleet| fleet.template_value()),
        is_live => site.live.with(|state| state.is_under_way).unwrap_or(false),
        is_empty => open.is_empty() && ended.trim().is_empty(),
        ended => Value::from_safe_string(ended.to_string()),
    };
    site.page("overview.html", "Overview", "overview", request, values)
}

/// Returns rows for the first of these runs.
fn rows(runs: &[&Entry]) -> Vec<Value> {
    Row::folded(runs).into_iter().take(LATEST).map(|row| Value::from(Serde(row))).collect()
}

/// The plan and the target of a trend.
type Subject<'a> = (&'a str, &'a str);

/// Returns the trends of plans that ran more than once on a target, with the latest run first.
/// Points of a sweep, steps of a search and stages of a job are omitted, because their plans differ
/// although they have the same name.
fn trends(runs: &[&Entry]) -> Vec<Value> {
    let varies = |run: &&&Entry| {
        let kind = run.experiment.as_deref().map_or("", experiment_kind);
        ["sweep", "tune", "stages", "published"].contains(&kind)
    };
    let mut order: Vec<Subject<'_>> = Vec::new();
    let mut plans: BTreeMap<Subject<'_>, Vec<&Entry>> = BTreeMap::new();
    let figures = runs.iter().filter(|run| run.has_bundle() && run.achieved_iops_per_s.is_some());
    for run in figures.filter(|run| !varies(run)) {
        let subject = (run.name.as_str(), run.target.as_deref().unwrap_or_default());
        let of = plans.entry(subject).or_default();
        if of.is_empty() {
            order.push(subject);
        }
        // Modelled and measured rates are never shown in the same chart.
        if of.first().is_none_or(|first| first.is_modelled() == run.is_modelled())
            && of.len() < POINTS_MAX
        {
            of.push(run);
        }
    }
    let repeated = order.into_iter().filter(|subject| plans[subject].len() > 1).take(TRENDS_MAX);
    repeated.enumerate().map(|(number, subject)| trend(number, subject, &plans[&subject])).collect()
}

fn trend(number: usize, (plan, target): Subject<'_>, latest_first: &[&Entry]) -> Value {
    let show = |per_s: f64| Unit::Rate.show(per_s, Letters::Unicode);
    let last = latest_first[0];
    let dots = latest_first.iter().rev().enumerate().filter_map(|(at, run)| {
        let y = run.achieved_iops_per_s?;
        Some(Dot { x: at as f64 + 1.0, y, ..Dot::default() })
    });
    let dots: Vec<Dot> = dots.collect();
    let count = dots.len() as f64;
    let required = last.required_iops_per_s;
    let rules = required.map(|at| Rule::target(at, "required")).into_iter().collect();
    let before = latest_first[1].achieved_iops_per_s.unwrap_or_default();
    let now = last.achieved_iops_per_s.unwrap_or_default();
    let plot = Plot {
        id: format!("trend-{number}"),
        title: plan.to_owned(),
        says: String::new(),
        x: Axis::linear("runs, from oldest to latest", Unit::Count).from_to(0.5, count + 0.5),
        y: Axis::linear("I/Os", Unit::Rate),
        marks: vec![Mark::Dots { name: String::new(), colour: 0, dots, joined: true }],
        bands: Vec::new(),
        rules,
        width_px: 480.0,
        height_px: 190.0,
    };
    context! {
        plan,
        path => crate::request::quoted(plan),
        target,
        runs => latest_first.len(),
        verdict => last.verdict_label(),
        tone => tone(last),
        now => show(now),
        before => show(before),
        figure => Value::from_safe_string(plot.figure()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_has_the_runs_of_one_plan_and_target_and_no_points_of_a_sweep() {
        let run = |name: &str, target: &str, experiment: Option<&str>, rate: f64| Entry {
            name: name.to_owned(),
            target: Some(target.to_owned()),
            experiment: experiment.map(str::to_owned),
            bundle: Some("/b".to_owned()),
            achieved_iops_per_s: Some(rate),
            ..Entry::default()
        };
        let sweep = Some("20261126-010203-oltp-sweep-1a2b");
        let runs = [
            run("oltp", "/a", None, 4_321.0),
            run("oltp", "/b", None, 9_999.0),
            run("oltp", "/a", sweep, 8_888.0),
            run("etcd", "/a", None, 7_777.0),
            run("oltp", "/a", None, 1_234.0),
        ];
        let trends = trends(&runs.iter().collect::<Vec<_>>());
        let [trend] = &trends[..] else { panic!("{} trends", trends.len()) };
        let shown = |field: &str| trend.get_attr(field).unwrap().to_string();
        assert_eq!([shown("plan"), shown("target"), shown("runs")], ["oltp", "/a", "2"]);
        assert_eq!([shown("now"), shown("before")], ["4,321/s", "1,234/s"]);
        assert!(shown("figure").contains(">I/Os, per second<"));
    }
}
