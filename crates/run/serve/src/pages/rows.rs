//! Rows of the list of runs, and its filter.

use plimsoll_catalogue::{Entry, Filter, unix_ns_of};
use plimsoll_plan::{DurationNs, OpsPerS};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::time::utc;
use serde::Serialize;

use crate::request::{PageRequest, quoted};
use crate::response::Problem;

/// Verdicts by which a list can be filtered.
pub const VERDICTS: [&str; 6] =
    ["pass", "fail", "invalid", "inconclusive", "measured", "unverified"];
/// Default number of listed runs.
pub const LISTED: u32 = 50;
/// Maximum number of listed runs.
pub const LISTED_MAX: u32 = 2_000;

/// Maximum number of targets that the row of an experiment shows.
const TARGETS_MAX: usize = 3;

/// A run in a list.
#[derive(Debug, Serialize)]
pub struct Row {
    run_id: String,
    /// The name of the run, encoded for use in a path.
    path: String,
    /// True if the bundle of the run exists on this host.
    is_there: bool,
    /// Number of the run in `plimsoll runs`.
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
    /// Runs of the experiment, if the row is an experiment.
    points: Vec<PointRow>,
}

/// A run of an experiment, shown inside the row of the experiment.
#[derive(Debug, Serialize)]
struct PointRow {
    run_id: String,
    path: String,
    is_there: bool,
    verdict: String,
    tone: &'static str,
    rate: String,
}

/// Returns the kind of an experiment, which is at the end of its name: `…-sweep-1a2b`.
pub fn experiment_kind(id: &str) -> &str {
    id.rsplit('-').nth(1).unwrap_or_default()
}

impl Row {
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
            points: Vec::new(),
        }
    }

    /// Returns runs as rows. All runs of an experiment form one row, at the position of the first
    /// of them.
    pub fn folded(runs: &[&Entry]) -> Vec<Self> {
        let mut groups: Vec<(Option<&str>, Vec<&Entry>)> = Vec::new();
        for run in runs {
            let experiment = run.experiment.as_deref();
            let known = groups.iter_mut().find(|(id, _)| experiment.is_some() && *id == experiment);
            match known {
                Some((_, points)) => points.push(run),
                None => groups.push((experiment, vec![run])),
            }
        }
        let row = |(id, runs): (Option<&str>, Vec<&Entry>)| {
            let latest = runs.first()?;
            Some(id.map_or_else(|| Self::of(latest), |id| Self::of_experiment(id, latest, &runs)))
        };
        groups.into_iter().filter_map(row).collect()
    }

    /// Returns an experiment as a row. The first element of `runs` must be the latest run.
    fn of_experiment(id: &str, latest: &Entry, runs: &[&Entry]) -> Self {
        let verdict = |run: &Entry| run.verdict.clone().unwrap_or_else(|| "none".to_owned());
        let mut counts: Vec<(String, usize)> = Vec::new();
        for verdict in runs.iter().map(|run| verdict(run)) {
            match counts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, count)) => *count += 1,
                None => counts.push((verdict, 1)),
            }
        }
        let counts: Vec<String> =
            counts.into_iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        let modelled = if latest.is_modelled() { "MODELLED " } else { "" };
        let range = |unit: Unit, of: &dyn Fn(&Entry) -> Option<f64>| {
            let known: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
            let ends =
                known.iter().copied().reduce(f64::min).zip(known.iter().copied().reduce(f64::max));
            ends.map_or("n/a".to_owned(), |(low, high)| {
                // There must be no line break between a number and its unit.
                let show = |end| unit.show(end, Letters::Unicode).replace(' ', "\u{a0}");
                let [low, high] = [low, high].map(show);
                if low == high { low } else { format!("{low} to {high}") }
            })
        };
        let float = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let tones = ["bad", "warn", "plain", "good"];
        let tone = tones.into_iter().find(|word| runs.iter().any(|run| tone(run) == *word));
        let point = |run: &&Entry| PointRow {
            path: quoted(&run.run_id),
            is_there: run.has_bundle(),
            verdict: verdict(run),
            tone: self::tone(run),
            rate: run
                .achieved_iops_per_s
                .map_or(String::new(), |rate| Unit::Rate.show(rate, Letters::Unicode)),
            run_id: run.run_id.clone(),
        };
        let mut targets: Vec<&str> = Vec::new();
        for target in runs.iter().rev().filter_map(|run| run.target.as_deref()) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let more = targets.len().saturating_sub(TARGETS_MAX);
        targets.truncate(TARGETS_MAX);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        Self {
            run_id: id.to_owned(),
            path: quoted(id),
            target: targets.join("; ") + &more,
            is_there: runs.iter().any(|run| run.has_bundle()),
            number: experiment_kind(id).to_owned(),
            verdict: format!("{modelled}{}", counts.join(", ")),
            tone: tone.unwrap_or("plain"),
            reason: String::new(),
            rate: range(Unit::Rate, &|run| run.achieved_iops_per_s),
            read: range(Unit::Latency, &|run| float(run.read_latency_ns_avg)),
            write: range(Unit::Latency, &|run| float(run.write_latency_ns_avg)),
            measured: range(Unit::Elapsed, &|run| float(run.measured_ns)),
            remarks: String::new(),
            points: runs.iter().map(point).collect(),
            ..Self::of(latest)
        }
    }
}

/// Returns the display class of a verdict. Results that were not measured are not shown in the
/// colours of measured results.
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
/// A value is not valid for its filter.
pub fn filter(request: &PageRequest) -> Result<(Filter, u32), Problem> {
    let day = |name: &str| {
        let wrong = || Problem::bad_request(format!("{name}: enter a day in the form 2026-11-23"));
        request.given(name).map(|day| unix_ns_of(day).ok_or_else(wrong)).transpose()
    };
    let verdict = request.given("verdict").map(str::to_ascii_lowercase);
    if verdict.as_deref().is_some_and(|verdict| !VERDICTS.contains(&verdict)) {
        let says = format!("verdict: the possible values are {}", VERDICTS.join(", "));
        return Err(Problem::bad_request(says));
    }
    let rate = request.given("rate-min").map(|rate| {
        let wrong = || Problem::bad_request("rate-min: enter a rate in the form 5000/s");
        rate.parse::<OpsPerS>().map_err(|_| wrong())
    });
    let latency = request.given("read-latency-max").map(|longest| {
        let wrong = || Problem::bad_request("read-latency-max: enter a time in the form 20ms");
        longest.parse::<DurationNs>().map_err(|_| wrong())
    });
    let limit = request.given("limit").map(|limit| {
        let wrong =
            || Problem::bad_request(format!("limit: enter a number from 1 to {LISTED_MAX}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_of_an_experiment_are_one_row() {
        let run = |run_id: &str, experiment: Option<&str>, rate: f64| Entry {
            run_id: run_id.to_owned(),
            experiment: experiment.map(str::to_owned),
            achieved_iops_per_s: Some(rate),
            verdict: Some("MEASURED".to_owned()),
            target: Some(format!("/{run_id} (ext4)")),
            ..Entry::default()
        };
        let sweep = "20261126-010203-oltp-sweep-1a2b";
        let runs = [
            run("d", None, 1.0),
            run("c", Some(sweep), 300.0),
            run("b", None, 2.0),
            run("a", Some(sweep), 100.0),
        ];
        let rows = Row::folded(&runs.iter().collect::<Vec<_>>());
        let names: Vec<&str> = rows.iter().map(|row| row.run_id.as_str()).collect();
        assert_eq!(names, ["d", sweep, "b"]);
        let row = &rows[1];
        assert_eq!((row.number.as_str(), row.verdict.as_str()), ("sweep", "2 MEASURED"));
        assert_eq!((row.points.len(), row.rate.as_str()), (2, "100.0/s to 300.0/s"));
        assert_eq!(row.target, "/a (ext4); /c (ext4)");
        assert!(rows[0].points.is_empty());
        assert_eq!(experiment_kind("oddly"), "");
    }
}
