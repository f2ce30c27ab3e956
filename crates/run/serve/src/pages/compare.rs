//! Comparison of runs and experiments.

use minijinja::context;
use minijinja::value::{Serde, Value};
use plimsoll_catalogue::Filter;
use plimsoll_judge::compare::{Comparison, SweepComparison};
use plimsoll_report::{comparison_document, html, sweeps_document};
use plimsoll_runner::compare::{Exemptions, NamedSide, compare_sides, sweeps};
use plimsoll_runner::custody::{Reader, RunSet};

use super::rows::{LISTED, Row};
use crate::request::{PageRequest, quoted};
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Maximum number of sides.
const SIDES_MAX: usize = 6;

/// A comparison of runs or of sweeps.
pub enum AnyComparison {
    /// Runs and experiments.
    Sides(Box<Comparison>),
    /// A comparison of two sweeps, cell by cell.
    Sweeps(Box<SweepComparison>),
}

/// Compares the requested sides; `None` if fewer than two sides are given.
///
/// # Errors
/// A side is missing or not reliable, or more than six sides are given.
pub fn compared(
    site: &Site,
    request: &PageRequest,
) -> Result<Option<(AnyComparison, Vec<String>)>, Problem> {
    let mut called = request.all_given("run");
    let mut seen = std::collections::BTreeSet::new();
    called.retain(|run| seen.insert(run.clone()));
    if called.len() < 2 {
        return Ok(None);
    }
    if called.len() > SIDES_MAX {
        let says =
            format!("{} sides are given, but at most {SIDES_MAX} can be compared", called.len());
        return Err(Problem::bad_request(says).hint("choose fewer"));
    }
    let accept = request.all_given("accept");
    let given = called.into_iter().map(|called| {
        let directory = site.catalogue.directory(&called)?;
        Ok(NamedSide { name: None, argument: called, directory })
    });
    let given: Vec<NamedSide> = given.collect::<Result<_, Problem>>()?;
    let reader = Reader::with_ledger(&site.catalogue.ledger());
    if let Some((compared, read)) = sweeps::compare_sweep_sides(&reader, &given, &accept)? {
        return Ok(Some((AnyComparison::Sweeps(Box::new(compared)), lines(&read))));
    }
    let taken = Exemptions { accept: &accept, factors: &[] };
    let (compared, read) = compare_sides(&reader, &given, taken)?;
    Ok(Some((AnyComparison::Sides(Box::new(compared)), lines(&read))))
}

fn lines(read: &[RunSet]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in read.iter().flat_map(RunSet::lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Shows the comparison, or a form for selecting the runs to compare.
///
/// # Errors
/// The errors of [`compared`].
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let Some((compared, custody)) = compared(site, request)? else {
        return choose(site, request);
    };
    let (document, unlike) = match &compared {
        AnyComparison::Sides(sides) => {
            let open = sides.differences.iter().filter(|condition| !condition.accepted);
            let unlike = open.map(|condition| condition.name.clone()).collect::<Vec<_>>();
            (comparison_document(sides), unlike)
        }
        AnyComparison::Sweeps(sweeps) => (sweeps_document(sweeps), Vec::new()),
    };
    let runs = request.all_given("run");
    let query: String = runs.iter().map(|run| format!("run={}&", quoted(run))).collect();
    let values = context! {
        runs,
        query,
        unlike,
        accepted => request.all_given("accept"),
        custody,
        body => Value::from_safe_string(html::body(&document)?),
    };
    site.page("compare.html", &document.title, "compare", request, values)
}

fn choose(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let latest = Filter { with_bundle: true, limit: Some(LISTED), ..Filter::default() };
    let mut runs = site.catalogue.with(|catalogue| catalogue.runs(&latest))?;
    runs.reverse();
    let rows = Row::folded(&runs.iter().collect::<Vec<_>>());
    let rows: Vec<Value> = rows.into_iter().map(|row| Value::from(Serde(row))).collect();
    let values = context! { rows, chosen => request.all_given("run") };
    site.page("compare.html", "Compare", "compare", request, values)
}
