//! Rows of the list of runs, and its filter.

use plimsoll_catalogue::{Entry, Filter, unix_ns_of};
use plimsoll_plan::{DurationNs, OpsPerS};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::time::utc;
use serde::Serialize;

use crate::request::{PageRequest, quoted};
use crate::response::Problem;

/// Verdicts that a list can be asked for.
pub const VERDICTS: [&str; 6] =
    ["pass", "fail", "invalid", "inconclusive", "measured", "unverified"];
/// Default number of listed runs.
pub const LISTED: u32 = 50;
/// And at most.
const LISTED_MAX: u32 = 2_000;

/// A run in a list.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Run id.
    run_id: String,
    /// The same, as a part of a path.
    path: String,
    /// Whether its bundle is there.
    is_there: bool,
    /// Number of `plimsoll runs`.
    number: String,
    started: String,
    target: String,
    verdict: String,
    tone: &'static str,
    reason: String,
    rate: String,
    read: String,
    write: String,
    measured: String,
    remarks: String,
}

impl Row {
    /// A run as a row.
    pub fn of(run: &Entry) -> Self {
        let show = |unit: Unit, base: Option<f64>| {
            base.map_or("n/a".to_owned(), |base| unit.show(base, Letters::Unicode))
        };
        let latency = |ns: Option<u64>| show(Unit::Latency, ns.map(|ns| ns as f64));
        Self {
            path: quoted(&run.run_id),
            is_there: run.has_bundle(),
            number: run.position.map_or("-".to_owned(), |position| position.to_string()),
            started: utc(run.started_unix_ns),
            target: run.target.clone().unwrap_or_default(),
            verdict: run.verdict_label(),
            tone: tone(run),
            reason: run.reason.clone().unwrap_or_default(),
            rate: show(Unit::Rate, run.achieved_iops_per_s),
            read: latency(run.read_latency_ns_avg),
            write: latency(run.write_latency_ns_avg),
            measured: show(Unit::Elapsed, run.measured_ns.map(|ns| ns as f64)),
            remarks: run.remarks().join("; "),
            run_id: run.run_id.clone(),
        }
    }
}

/// How a verdict is set off. What was not measured is not coloured as if it were.
pub fn tone(run: &Entry) -> &'static str {
    match run.verdict_label().as_str() {
        "PASS" => "good",
        "FAIL" | "INVALID" => "bad",
        "INCONCLUSIVE" => "warn",
        _ => "plain",
    }
}

/// Parses the filter and the number of rows from the query.
///
/// # Errors
/// A value that is none.
pub fn filter(request: &PageRequest) -> Result<(Filter, u32), Problem> {
    let day = |name: &str| {
        let wrong = || Problem::bad_request(format!("{name}: a day is written as 2026-11-23"));
        request.given(name).map(|day| unix_ns_of(day).ok_or_else(wrong)).transpose()
    };
    let verdict = request.given("verdict").map(str::to_ascii_lowercase);
    if verdict.as_deref().is_some_and(|verdict| !VERDICTS.contains(&verdict)) {
        let says = format!("verdict: there are {}", VERDICTS.join(", "));
        return Err(Problem::bad_request(says));
    }
    let rate = request.given("rate-min").map(|rate| {
        let wrong = || Problem::bad_request("rate-min: a rate is written as 5000/s");
        rate.parse::<OpsPerS>().map_err(|_| wrong())
    });
    let latency = request.given("read-latency-max").map(|longest| {
        let wrong = || Problem::bad_request("read-latency-max: a time is written as 20ms");
        longest.parse::<DurationNs>().map_err(|_| wrong())
    });
    let limit = request.given("limit").map(|limit| {
        let wrong = || Problem::bad_request(format!("limit: write a number up to {LISTED_MAX}"));
        limit.parse::<u32>().ok().filter(|limit| (1..=LISTED_MAX).contains(limit)).ok_or_else(wrong)
    });
    let shown: u32 = limit.transpose()?.unwrap_or(LISTED);
    let filter = Filter {
        verdict,
        plan: request.given("plan").map(str::to_owned),
        target: request.given("target").map(str::to_owned),
        rate_min_per_s: rate.transpose()?.map(|rate| rate.0),
        read_latency_max_ns: latency.transpose()?.map(|longest| longest.0),
        tag: request.given("tag").map(str::to_owned),
        since_unix_ns: day("since")?,
        until_unix_ns: day("until")?,
        with_bundle: false,
        is_open: false,
        limit: Some(shown),
    };
    Ok((filter, shown))
}
