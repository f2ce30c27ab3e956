//! Mistakes of a verdict, detected by comparison with the truth and with independent counts.

use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_judge::claim::Claim;
use plimsoll_judge::rules;
use plimsoll_plan::{Arrival, Stream, Workload};
use serde_json::Value;

use crate::support::{CommandOutput, OF_THE_HOST, found};
use crate::truth::Truth;

/// Kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The verdict is a false PASS, or only the short duration of the run prevents a false PASS.
    FalsePass,
    /// The verdict accepts a false claim.
    Believed,
    /// An honest case is INVALID, or one of its figures is called impossible.
    Accused,
    /// A required finding is missing.
    Missed,
    /// The verdict's figures differ from the recorded figures.
    Miscounted,
    /// A panic, a signal, or an undocumented exit code.
    Crashed,
    /// The command did not end within the time limit.
    Hung,
}

/// Returns all kinds of mistakes, in the order of the tables.
pub const ALL: [Wrong; 7] = [
    Wrong::FalsePass,
    Wrong::Believed,
    Wrong::Accused,
    Wrong::Missed,
    Wrong::Miscounted,
    Wrong::Crashed,
    Wrong::Hung,
];

impl Wrong {
    pub fn label(self) -> &'static str {
        match self {
            Self::FalsePass => "false PASS",
            Self::Believed => "believable, and refuted by the truth",
            Self::Accused => "false accusation of an honest result",
            Self::Missed => "not found or not said",
            Self::Miscounted => "figure that was not recorded",
            Self::Crashed => "crash",
            Self::Hung => "hang",
        }
    }
}

/// A mistake and its description.
pub type Mistake = (Wrong, String);

/// Rules that can be unknown merely because the measurement was short.
const OF_LENGTH: [&str; 5] =
    ["measured-too-short", "not-steady", "percentile-samples", "warm-up-short", "burst-credit"];

/// Returns true if only the short duration of the run prevented a PASS.
fn passes_but_for_its_length(verdict: &Value) -> bool {
    let short = found(verdict, "measured-too-short") == "unknown";
    if verdict["verdict"] != "INCONCLUSIVE" || !short {
        return false;
    }
    let findings = verdict["findings"].as_array().into_iter().flatten();
    let in_the_way = findings.filter(|finding| {
        let id = finding["rule"].as_str().unwrap_or_default();
        let rule = rules::find(id);
        match finding["outcome"].as_str() {
            Some("fail") => rule.is_some_and(|rule| rule.refutes(Claim::Requirement)),
            Some("unknown") => rule.is_some_and(|rule| rule.mandatory_for(Claim::Requirement)),
            _ => false,
        }
    });
    let mut in_the_way = in_the_way.map(|finding| finding["rule"].as_str().unwrap_or_default());
    let checks: Vec<&Value> = verdict["checks"].as_array().into_iter().flatten().collect();
    // A run without a requirement cannot pass, whatever its duration.
    let kept = checks.iter().all(|check| check["ok"] == true) && !checks.is_empty();
    kept && in_the_way.all(|rule| OF_LENGTH.contains(&rule))
}

/// Compares the result of a run with the truth.
pub fn of_run(truth: &Truth, ran: Option<&CommandOutput>, bundle: Option<&Path>) -> Vec<Mistake> {
    let Some(ran) = ran else {
        return vec![(Wrong::Hung, "the command did not end".to_owned())];
    };
    let interrupted = truth.interrupted && ran.code == 130;
    let may: &[i32] = if interrupted { &[130] } else { &[0, 1, 2, 3, 4, 5] };
    let Some(verdict) = of_command(ran, may) else {
        return vec![(Wrong::Crashed, format!("exit code {}: {}", ran.code, ran.stderr))];
    };
    let mut found = Vec::new();
    if !interrupted && !truth.exit_codes.is_empty() && !truth.exit_codes.contains(&ran.code) {
        let says = format!("exit code {} and not {:?}", ran.code, truth.exit_codes);
        found.push((Wrong::Missed, format!("{says}: {}", verdict["reason"])));
    }
    // If the plan was rejected or the target was lost, there is no verdict.
    if verdict["verdict"].is_null() {
        if truth.honest && !truth.exit_codes.contains(&ran.code) {
            found.push((Wrong::Accused, format!("{}: {}", ran.code, ran.stderr)));
        }
        return found;
    }
    let word = verdict["verdict"].as_str().unwrap_or_default();
    let codes: &[i32] = match word {
        "PASS" | "MEASURED" => &[0],
        "FAIL" => &[1],
        "INVALID" => &[3, 4, 5],
        _ => &[3, 5],
    };
    if !interrupted && !codes.contains(&ran.code) {
        found.push((Wrong::Crashed, format!("{word} ends with exit code {}", ran.code)));
    }
    let reason = verdict["reason"].as_str().unwrap_or_default();
    if let Some(why) = &truth.no_pass {
        // If the plan contains other claims, the result of a longer run is unknown.
        let alone = bundle.and_then(|path| Bundle::read(path).ok());
        let alone = alone.is_some_and(|b| b.plan.claims.iter().all(|c| *c == Claim::Requirement));
        if word == "PASS" {
            found.push((Wrong::FalsePass, format!("{why}; said: {reason}")));
        } else if alone && passes_but_for_its_length(&verdict) {
            let says = format!("{why}; only the length of the run stood in its way: {reason}");
            found.push((Wrong::FalsePass, says));
        }
    }
    for (claim, why) in &truth.refuted {
        let standing = verdict["claims"][*claim].as_str().unwrap_or_default();
        if standing.starts_with("believable") {
            found.push((Wrong::Believed, format!("{claim} is {standing}, and {why}")));
        }
    }
    if truth.honest && word == "INVALID" && !accuses_the_host(&verdict) {
        found.push((Wrong::Accused, reason.to_owned()));
    }
    if let Some(says) = truth.says
        && !verdict.to_string().contains(says)
    {
        found.push((Wrong::Missed, format!("{says:?} is not in the verdict")));
    }
    if let Some(path) = bundle {
        match Bundle::read(path) {
            Ok(bundle) => found.extend(recounted(&verdict, &bundle)),
            Err(error) => found.push((Wrong::Crashed, error.to_string())),
        }
    }
    found
}

/// Returns true if all negative findings are due to other activity on this machine.
fn accuses_the_host(verdict: &Value) -> bool {
    let findings = verdict["findings"].as_array().into_iter().flatten();
    let mut fails = findings.filter(|finding| finding["outcome"] == "fail");
    fails.all(|finding| OF_THE_HOST.iter().any(|rule| finding["rule"] == *rule))
}

/// Parses the JSON output of a command. The result is null if the command rejected the input, and
/// `None` if it crashed.
pub fn of_command(ran: &CommandOutput, codes: &[i32]) -> Option<Value> {
    if !codes.contains(&ran.code) || ran.stderr.contains("panicked at") {
        return None;
    }
    if ran.stdout.trim().is_empty() {
        return Some(Value::Null);
    }
    serde_json::from_str(&ran.stdout).ok()
}

/// Returns true if reads of these classes read each block at least twice on average. On a busy
/// host, a short run performs so few reads that most of them are the first read of a block, which
/// the disk serves. It is then not known in advance how many reads the page cache served.
pub fn repeats_reads(bundle: &Path, is_class: impl Fn(&str) -> bool, file_bytes: u64) -> bool {
    let Ok(bundle) = Bundle::read(bundle) else { return true };
    let classes = bundle.run.classes.iter().filter(|class| is_class(&class.name));
    classes.map(|class| class.size_bytes).sum::<u64>() >= 3 * file_bytes
}

/// Tolerance for a recounted figure: histograms have three significant digits.
const ROUNDING: f64 = 0.005;

/// Recounts the values of the verdict's checks from the bundle. Returns a mistake for each
/// difference.
fn recounted(verdict: &Value, bundle: &Bundle) -> Vec<Mistake> {
    let mut found = Vec::new();
    let Some(phase) = bundle.run.measure() else { return found };
    let seconds = phase.duration_ns as f64 / 1e9;
    let transactional = || bundle.run.classes.iter().filter(|class| class.group == "transactional");
    let within = |class: &ClassTotals| class.count - class.drained;
    let rate = transactional().map(within).sum::<u64>() as f64 / seconds;
    let bytes = |class: &ClassTotals| class.size_bytes - class.drained_bytes;
    let bandwidth = transactional().map(bytes).sum::<u64>() as f64 / seconds;
    // The load starts no flush after it has stopped. The last writes are therefore not durable, but
    // no I/O is lost.
    let ended = bundle.run.classes.iter().filter(|class| class.group != "durable");
    let unfinished: u64 = ended.filter_map(ClassTotals::unfinished).sum();
    let mut broken = false;
    for check in verdict["checks"].as_array().into_iter().flatten() {
        let name = check["name"].as_str().unwrap_or_default();
        let (limit, said, counted, least) = match name {
            "achieved_iops" => (&check["limit_per_s"], &check["measured_per_s"], Some(rate), true),
            "bandwidth" => {
                let said = &check["measured_bytes_per_s"];
                (&check["limit_bytes_per_s"], said, Some(bandwidth), true)
            }
            _ => {
                let counted = latency_ns(bundle, name);
                (&check["limit_ns"], &check["measured_ns"], counted, false)
            }
        };
        let (Some(limit), Some(counted)) = (limit.as_f64(), counted) else { continue };
        if check["ok"] == false && is_slow_for_too_long(bundle, name, limit) {
            broken = true;
            continue;
        }
        if let Some(said) = said.as_f64()
            && (said / counted - 1.0).abs() > ROUNDING
        {
            found.push((Wrong::Miscounted, format!("{name} {said}, counted {counted}")));
        }
        // In an open loop, the measured rate differs from the target rate by at most 1 %.
        let slack = ROUNDING + 0.01;
        let (far_below, far_above) =
            (counted < limit * (1.0 - slack), counted > limit * (1.0 + slack));
        let (breaks, keeps) = if least { (far_below, far_above) } else { (far_above, far_below) };
        broken |= breaks;
        let wrong = match check["ok"].as_bool() {
            Some(true) if breaks => Wrong::FalsePass,
            Some(false) if keeps => Wrong::Accused,
            _ => continue,
        };
        found
            .push((wrong, format!("{name}: limit {limit}, counted {counted}, ok {}", check["ok"])));
    }
    if verdict["verdict"] == "PASS" && (broken || unfinished > 0) {
        found.push((Wrong::FalsePass, format!("{unfinished} operations never came back")));
    }
    found
}

/// Returns a percentile or the mean of a class from its histogram; `None` if this test does not
/// recount the figure.
fn latency_ns(bundle: &Bundle, name: &str) -> Option<f64> {
    let (class, statistic) = name.rsplit_once("_latency_").or(Some(("", name)))?;
    if statistic == "avg" && (class.starts_with("db_") || class.starts_with("log_")) {
        return slowest_mean_ns(bundle, class);
    }
    let end = end_of_tag(bundle, class)?;
    let mut one = bundle.latency.iter().filter(|(tag, _)| tag.ends_with(end));
    let (Some((_, histogram)), None) = (one.next(), one.next()) else { return None };
    if statistic == "avg" {
        return Some(histogram.mean());
    }
    Some(histogram.value_at_quantile(quantile(statistic)?) as f64)
}

/// Returns the suffix of the class names to which a latency limit applies.
fn end_of_tag(bundle: &Bundle, class: &str) -> Option<&'static str> {
    match class {
        "read" => Some(".read"),
        // A write that waits for a flush is complete when the flush is complete.
        "write" if bundle.latency.keys().any(|name| name.ends_with(".durable")) => Some(".durable"),
        "write" => Some(".write"),
        _ => None,
    }
}

fn quantile(statistic: &str) -> Option<f64> {
    format!("0.{}", statistic.strip_prefix('p')?).parse().ok()
}

/// Returns true if a closed loop exceeded a limit for a larger share of the time than the
/// percentile allows. A closed loop issues few operations while the storage stalls, so the recorded
/// percentile may still be within the limit.
fn is_slow_for_too_long(bundle: &Bundle, name: &str, limit_ns: f64) -> bool {
    let Workload::Matrix(matrix) = &bundle.plan.workload else { return false };
    let is_closed = |stream: &Stream| matches!(stream.arrival, Arrival::Closed { .. });
    let Some((class, statistic)) = name.rsplit_once("_latency_") else { return false };
    let Some((end, quantile)) = end_of_tag(bundle, class).zip(quantile(statistic)) else {
        return false;
    };
    let shares: Vec<f64> = (bundle.latency_spans.iter())
        .filter(|span| span.tag.ends_with(end) && span.histogram.count() > 0)
        .map(|span| {
            let slow = span.histogram.buckets().filter(|(ns, _)| *ns as f64 > limit_ns);
            slow.map(|(_, count)| count).sum::<u64>() as f64 / span.histogram.count() as f64
        })
        .collect();
    let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    matrix.streams.iter().all(is_closed) && share > 1.0 - quantile
}

/// Returns the largest mean latency among the databases of a mail store.
fn slowest_mean_ns(bundle: &Bundle, class: &str) -> Option<f64> {
    let (group, is_read) = match class {
        "db_read" => ("transactional", true),
        "db_write" => ("transactional", false),
        "log_write" => ("log", false),
        _ => return None,
    };
    let of_class = bundle.run.classes.iter();
    let of_class = of_class.filter(|c| c.group == group && c.is_read == is_read && c.count > 0);
    let means = of_class.map(|c| c.latency_ns_sum as f64 / c.count as f64);
    means.reduce(f64::max)
}
