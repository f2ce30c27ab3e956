//! Runs and experiments side by side.

use minijinja::context;
use minijinja::value::{Serde, Value};
use plimsoll_catalogue::Filter;
use plimsoll_judge::compare::{Comparison, SweepComparison};
use plimsoll_report::{comparison_document, html, sweeps_document};
use plimsoll_runner::compare::{Given, Taken, compare_sides, sweeps};
use plimsoll_runner::custody::{Reader, Together};

use super::rows::{LISTED, Row};
use crate::answer::{Answer, Problem};
use crate::ask::{Ask, quoted};
use crate::site::Site;

/// More side by side are not read.
const SIDES_MAX: usize = 6;

/// What was compared.
pub enum Compared {
    /// Runs and experiments.
    Sides(Box<Comparison>),
    /// Two sweeps, cell by cell.
    Sweeps(Box<SweepComparison>),
}

/// Compares what is asked for; `None`: fewer than two sides are named.
///
/// # Errors
/// A side that is not there or can't be relied on, more than six of them.
pub fn compared(site: &Site, ask: &Ask) -> Result<Option<(Compared, Vec<String>)>, Problem> {
    let mut called = ask.all_given("run");
    let mut seen = std::collections::BTreeSet::new();
    called.retain(|run| seen.insert(run.clone()));
    if called.len() < 2 {
        return Ok(None);
    }
    if called.len() > SIDES_MAX {
        let says = format!("{} sides are named: at most {SIDES_MAX} are compared", called.len());
        return Err(Problem::wrong(says).hint("choose fewer"));
    }
    let accept = ask.all_given("accept");
    let given = called.into_iter().map(|called| {
        let directory = site.known.directory(&called)?;
        Ok(Given { name: None, called, directory })
    });
    let given: Vec<Given> = given.collect::<Result<_, Problem>>()?;
    let reader = Reader::with_ledger(&site.known.ledger());
    if let Some((compared, read)) = sweeps::compare_given(&reader, &given, &accept)? {
        return Ok(Some((Compared::Sweeps(Box::new(compared)), lines(&read))));
    }
    let taken = Taken { accept: &accept, factors: &[] };
    let (compared, read) = compare_sides(&reader, &given, taken)?;
    Ok(Some((Compared::Sides(Box::new(compared)), lines(&read))))
}

fn lines(read: &[Together]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in read.iter().flat_map(Together::lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Shows the comparison, or what there is to compare.
///
/// # Errors
/// As [`compared`].
pub fn show(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let Some((compared, custody)) = compared(site, ask)? else {
        return choose(site, ask);
    };
    let (document, unlike) = match &compared {
        Compared::Sides(sides) => {
            let open = sides.unlike.iter().filter(|condition| !condition.accepted);
            let unlike = open.map(|condition| condition.name.clone()).collect::<Vec<_>>();
            (comparison_document(sides), unlike)
        }
        Compared::Sweeps(sweeps) => (sweeps_document(sweeps), Vec::new()),
    };
    let runs = ask.all_given("run");
    let query: String = runs.iter().map(|run| format!("run={}&", quoted(run))).collect();
    let values = context! {
        runs,
        query,
        unlike,
        accepted => ask.all_given("accept"),
        custody,
        body => Value::from_safe_string(html::body(&document)?),
    };
    site.page("compare.html", &document.title, "compare", ask, values)
}

fn choose(site: &Site, ask: &Ask) -> Result<Answer, Problem> {
    let latest = Filter { with_bundle: true, limit: Some(LISTED), ..Filter::default() };
    let mut runs = site.known.with(|catalogue| catalogue.runs(&latest))?;
    runs.reverse();
    let rows: Vec<Value> = runs.iter().map(|run| Value::from(Serde(Row::of(run)))).collect();
    let values = context! { rows, chosen => ask.all_given("run") };
    site.page("compare.html", "Compare", "compare", ask, values)
}
