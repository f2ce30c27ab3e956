//! The list of runs.

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::rows::{LISTED_MAX, Row, VERDICTS, filter};
use crate::request::{PageRequest, quoted};
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Shows the list.
///
/// # Errors
/// The filter is invalid, or the catalogue cannot be read.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let (mut filter, shown) = filter(request)?;
    // An experiment with many runs is only one row, so more runs than rows are read.
    filter.limit = Some(LISTED_MAX.saturating_add(1));
    let mut runs = site.catalogue.with(|catalogue| catalogue.runs(&filter))?;
    runs.reverse();
    let mut rows = Row::folded(&runs.iter().collect::<Vec<_>>());
    let more = rows.len() > shown as usize;
    rows.truncate(shown as usize);
    let rows: Vec<Value> = rows.into_iter().map(|row| Value::from(Serde(row))).collect();
    let given = |name: &str| request.given(name).unwrap_or_default().to_owned();
    let names =
        ["verdict", "plan", "target", "rate-min", "read-latency-max", "tag", "since", "until"];
    let kept = names.iter().filter_map(|name| Some((name, request.given(name)?)));
    let kept: String = kept.map(|(name, value)| format!("{name}={}&", quoted(value))).collect();
    let next = shown.saturating_mul(4).min(2_000);
    let values = context! {
        rows,
        verdicts => VERDICTS,
        verdict => given("verdict").to_ascii_lowercase(),
        plan => given("plan"),
        target => given("target"),
        rate_min => given("rate-min"),
        read_latency_max => given("read-latency-max"),
        tag => given("tag"),
        since => given("since"),
        until => given("until"),
        is_filtered => names.iter().any(|name| request.given(name).is_some()),
        more => (more && next > shown).then(|| format!("/runs?{kept}limit={next}")),
        shown,
    };
    site.page("runs.html", "Runs", "runs", request, values)
}
