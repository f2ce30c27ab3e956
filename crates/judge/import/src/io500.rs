//! IO500: `result.txt`, `result_summary.txt`, and tables with the times of each rank in the IOR and
//! mdtest phases.
//!
//! The bandwidth score is the geometric mean of four bandwidths, the metadata score that of eight
//! rates, and the total score that of these two scores. A phase's score is the work of all ranks
//! divided by the time from the first start to the last end. It is therefore at most the work of
//! all ranks divided by the time of the slowest rank.

mod phases;

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Aggregate, Claim, Complaint, Figure, Formula, Kind, Membership, Operation, Part, Population,
    ToolResult, Unit, Weight,
};

use crate::parts::{Columns, Digits, figure, source, unix_s};

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const NS_PER_S: f64 = 1e9;
/// Resolution of times, which is a second.
const CLOCK_NS: f64 = 1e9;
/// Phases that the bandwidth score includes.
const BANDWIDTHS: [&str; 4] =
    ["ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read"];
/// Phases that the metadata score includes.
const RATES: [&str; 8] = [
    "mdtest-easy-write",
    "mdtest-easy-stat",
    "mdtest-easy-delete",
    "mdtest-hard-write",
    "mdtest-hard-stat",
    "mdtest-hard-read",
    "mdtest-hard-delete",
    "find",
];
/// Maximum relative amount by which a score may exceed the sum of the ranks, because both are
/// rounded.
const RANKS_SLACK: f64 = 1e-4;
/// No lower bound for a score follows from the times of the ranks, because ranks may start one
/// after another.
const UNBOUNDED: f64 = 1e30;

/// Returns true if the text is `result.txt`.
#[must_use]
pub fn is_result(text: &str) -> bool {
    text.lines().any(|line| normal(line.trim()) == "[ior-easy-write]") && text.contains("score")
}

/// Returns true if the text is `result_summary.txt`.
#[must_use]
pub fn is_summary(text: &str) -> bool {
    text.lines().any(|line| {
        line.starts_with("[RESULT") && (line.contains("ior-easy") || line.contains("ior_easy"))
    })
}

/// Returns true if the text is a table with the times of a phase's ranks.
#[must_use]
pub fn is_ranks(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("access,rank,runtime-with-openclose,")
        || first.starts_with("rank,items,rate-Directory creation,")
}

/// Replaces underscores, which older versions use in the names of phases.
fn normal(name: &str) -> String {
    name.replace('_', "-")
}

fn phase(name: &str, score: Option<Figure>, window: Option<Figure>) -> Part {
    let kind = match name {
        name if name.starts_with("ior") && name.ends_with("write") => Kind::Write,
        name if name.starts_with("ior") => Kind::Read,
        name => Kind::Name(name.to_owned()),
    };
    let mut operation = Operation::of(kind);
    if name.starts_with("ior") {
        operation.bandwidth_per_s.extend(score.map(|score| score.scaled(GIB)));
    } else {
        operation.rate_per_s.extend(score.map(|score| score.scaled(1e3)));
    }
    let operations = vec![operation];
    Part { name: name.to_owned(), window_ns: window, operations, ..Part::default() }
}

/// Returns the score that the text states for a phase.
fn score_of<'r>(reported: &'r ToolResult, name: &str) -> Option<&'r Figure> {
    let part = reported.parts.iter().find(|part| part.name == name)?;
    let operation = part.operations.first()?;
    operation.bandwidth_per_s.first().or(operation.rate_per_s.first())
}

/// Adds the scores, each as the geometric mean of the scores of phases.
fn scores(reported: &mut ToolResult, totals: [Option<Figure>; 3]) {
    let of = |names: &[&str], unit: f64| -> Option<Vec<Figure>> {
        let all = names.iter().map(|name| score_of(reported, name).cloned());
        all.map(|figure| figure.map(|figure| figure.scaled(1.0 / unit))).collect()
    };
    let [bandwidth, rate, total] = totals;
    let mut combined = Vec::new();
    let mut push = |what: &str, total: &Option<Figure>, of: Option<Vec<Figure>>| {
        if let (Some(total), Some(of)) = (total.clone(), of) {
            let formula = Formula::GeometricMean;
            combined.push(Aggregate { what: what.to_owned(), formula, total, of, slack: 0.0 });
        }
    };
    push("the bandwidth score", &bandwidth, of(&BANDWIDTHS, GIB));
    push("the metadata score", &rate, of(&RATES, 1e3));
    let both = bandwidth.clone().zip(rate.clone()).map(|(bandwidth, rate)| vec![bandwidth, rate]);
    push("the score", &total, both);
    reported.combined.extend(combined);
}

/// Reads `result.txt`.
///
/// # Errors
/// The text contains no phase.
pub fn read_result(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("IO500", "IO500 result", file));
    let mut sections: Vec<(String, Entries<'_>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(says) = line.strip_prefix("; ERROR INVALID") {
            reported.complaints.push(invalid_complaint(says.trim(), text, index + 1));
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push((normal(name), BTreeMap::new()));
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim(), value.trim());
        if let Some((_, entries)) = sections.last_mut() {
            entries.entry(name).or_insert((value, index + 1));
        } else if name == "version" {
            reported.source.version = Some(value.to_owned());
        }
    }
    let mut totals = [None, None, None];
    for (name, entries) in &sections {
        match name.as_str() {
            "run" => of_run(&mut reported, entries),
            "SCORE" => {
                totals = ["BW", "MD", "SCORE"].map(|key| number(entries, key, name));
                add_complaint(&mut reported, entries, "SCORE", name);
            }
            "SCOREX" | "timestamp" => {}
            _ => of_phase(&mut reported, entries, name),
        }
    }
    if reported.parts.is_empty() {
        return Err("it contains no IO500 phase".into());
    }
    scores(&mut reported, totals);
    Ok(reported)
}

/// Values in a section, with their line numbers.
type Entries<'t> = BTreeMap<&'t str, (&'t str, usize)>;

fn number(entries: &Entries<'_>, key: &str, section: &str) -> Option<Figure> {
    let (value, line) = entries.get(key)?;
    let digits = value.split_whitespace().next()?;
    figure(digits, Digits::Rounded, 1.0, format!("line {line} ({section} {key})"))
}

fn of_run(reported: &mut ToolResult, entries: &Entries<'_>) {
    for (name, (value, _)) in entries {
        reported.options.insert((*name).to_owned(), (*value).to_owned());
    }
    reported.source.version = entries.get("version").map(|(value, _)| (*value).to_owned());
}

/// Returns the complaint for IO500's remark `; ERROR INVALID`. IO500 also prints this remark if the
/// stonewall time is longer than the minimum of its build (`phase_dbg.c`, `opt.stonewall !=
/// opt.minwrite`). The options of the phases show whether the time is too short.
fn invalid_complaint(says: &str, text: &str, line: usize) -> Complaint {
    let least = says
        .strip_prefix("stonewall-time <")
        .and_then(|rest| rest.trim().trim_end_matches('s').parse::<f64>().ok());
    let words: Vec<&str> = text.split_whitespace().collect();
    let told = words.windows(2).filter(|pair| ["-D", "-W"].contains(&pair[0]));
    let times: Vec<f64> = told.filter_map(|pair| pair[1].parse().ok()).collect();
    let refuted = least.is_some_and(|least| !times.is_empty() && times.iter().all(|t| *t >= least));
    Complaint {
        weight: if refuted { Weight::Warning } else { Weight::Invalid },
        says: format!("IO500 states that the run is invalid: {says}"),
        field: format!("line {line}"),
    }
}

/// Reads a score that IO500 marks as invalid, with `score = INVALID` or with words after the
/// number.
fn add_complaint(reported: &mut ToolResult, entries: &Entries<'_>, key: &str, section: &str) {
    if let Some((value, line)) = entries.get(key).filter(|(v, _)| v.contains("INVALID")) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: format!("IO500 marks {section} as invalid: {value}"),
            field: format!("line {line} ({section} {key})"),
        });
    }
}

fn of_phase(reported: &mut ToolResult, entries: &Entries<'_>, name: &str) {
    let score = number(entries, "score", name);
    let window = number(entries, "t_delta", name).map(|seconds| seconds.scaled(NS_PER_S));
    if score.is_none() && window.is_none() {
        return;
    }
    add_complaint(reported, entries, "score", name);
    let mut part = phase(name, score.filter(|score| score.value > 0.0), window.clone());
    let clock = |key: &str| unix_s(entries.get(key)?.0);
    part.start_unix_s = clock("t_start");
    if let (Some(start), Some(end), Some(window)) = (clock("t_start"), clock("t_end"), window) {
        let line = entries.get("t_end").map_or(0, |(_, line)| *line);
        let field = format!("line {line} ({name} t_end, t_start)");
        let between = Figure::within((end - start) * NS_PER_S, CLOCK_NS, field);
        let what = format!("the stated duration of {name}, compared with its start and end times");
        let (formula, of) = (Formula::Sum, vec![between]);
        reported.combined.push(Aggregate { what, formula, total: window, of, slack: 1e-6 });
    }
    reported.parts.push(part);
}

/// Reads `result_summary.txt`, or a log that contains the same lines.
///
/// # Errors
/// The text contains no phase.
pub fn read_summary(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("IO500", "IO500 summary", file));
    let (mut totals, mut repeated) = ([None, None, None], 0);
    let mut marks: BTreeMap<String, Complaint> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(version) = line.strip_prefix("IO500 version ") {
            reported.source.version = Some(version.to_owned());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |unit: &[&str]| {
            let at =
                words.iter().position(|word| unit.iter().any(|u| u.eq_ignore_ascii_case(word)))?;
            let name = words.get(at.checked_sub(2)?)?;
            let digits = words.get(at - 1)?;
            let field = format!("line {} ({name})", index + 1);
            Some((normal(name), figure(digits, Digits::Rounded, 1.0, field)?))
        };
        if ["[SCORE ]", "[SCORE]", "[SCORE-invalid]"].iter().any(|mark| line.starts_with(mark)) {
            let after = |word: &str| {
                let at = words.iter().position(|w| w.eq_ignore_ascii_case(word))?;
                figure(
                    words.get(at + 1)?,
                    Digits::Rounded,
                    1.0,
                    format!("line {} ({word})", index + 1),
                )
            };
            totals = [after("Bandwidth"), after("IOPS"), after("TOTAL")];
        } else if line.starts_with("[RESULT") {
            let time =
                words.iter().position(|word| *word == "time").and_then(|at| words.get(at + 1));
            let window = time.and_then(|seconds| {
                let field = format!("line {} (time)", index + 1);
                figure(seconds, Digits::Rounded, NS_PER_S, field)
            });
            let Some((name, score)) = before(&["GiB/s", "GB/s", "kIOPS"]) else { continue };
            // A log of several runs contains each phase several times. The scores belong to the
            // last run.
            let earlier = reported.parts.len();
            reported.parts.retain(|part| part.name != name);
            repeated += earlier - reported.parts.len();
            reported.parts.push(phase(&name, Some(score), window));
        }
        // If a value occurs several times, only the last occurrence is used, as for the scores.
        let about = match words.first() {
            Some(word) if word.starts_with("[SCORE") => "the score".to_owned(),
            Some(word) if word.starts_with("[RESULT") => {
                before(&["GiB/s", "GB/s", "kIOPS"]).map_or_else(String::new, |(name, _)| name)
            }
            _ => format!("line {}", index + 1),
        };
        marks.remove(&about);
        let marked = words.first().is_some_and(|word| word.ends_with("-invalid]"));
        if marked || line.contains("INVALID") {
            let complaint = Complaint {
                weight: Weight::Invalid,
                says: format!("IO500 marks these phases as invalid: {}", line.trim()),
                field: format!("line {}", index + 1),
            };
            marks.insert(about, complaint);
        }
    }
    if reported.parts.is_empty() {
        return Err("it contains no IO500 phase".into());
    }
    reported.complaints.extend(marks.into_values());
    if repeated > 0 {
        let says = format!("{repeated} phases of earlier runs in the same file were skipped");
        reported.remarks.push(says);
    }
    scores(&mut reported, totals);
    Ok(reported)
}

/// Results of all ranks in a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// Path of the file.
    pub file: String,
    /// Name of the phase, from the file name.
    pub phase: String,
    ranks: Vec<u64>,
    /// Run time of each rank, in ns.
    times_ns: Vec<f64>,
    /// Bytes of each rank. The list is empty if the table does not state them.
    bytes: Vec<f64>,
}

/// Reads the times of the ranks.
///
/// # Errors
/// The table contains no rows.
pub fn read_ranks(text: &str, file: &str) -> Result<Ranks, String> {
    let mut lines = text.lines().enumerate();
    let header: Vec<&str> =
        lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or(file);
    let phase = normal(name.strip_suffix(".csv").unwrap_or(name));
    let (ranks, times_ns, bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = Ranks { file: file.to_owned(), phase, ranks, times_ns, bytes };
    let mut by_operation: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let row = Columns::of(&header, line.split(',').collect(), index + 1);
        let value = |name: &str| Some(row.figure(name, Digits::Exact, 1.0)?.value);
        let Some(rank) = row.text("rank").and_then(|text| text.parse().ok()) else { continue };
        read.ranks.push(rank);
        if header.first() == Some(&"access") {
            let of = |time, rate| value(time).zip(value(rate)).filter(|(t, _)| *t > 0.0);
            if let Some((time, rate)) = of("runtime-with-openclose", "throughput-withopenclose") {
                read.times_ns.push(time * NS_PER_S);
                read.bytes.push(time * rate);
            }
        } else {
            for name in header.iter().copied().filter(|name| name.starts_with("time-File")) {
                if let Some(seconds) = value(name) {
                    by_operation.entry(name).or_default().push(seconds * NS_PER_S);
                }
            }
        }
    }
    // A phase has a single operation. If the ranks have rows for several operations, the operation
    // with the most rows is used.
    let most = by_operation.into_values().max_by_key(Vec::len);
    read.times_ns.extend(most.unwrap_or_default());
    if read.ranks.is_empty() { Err("it contains no row for a rank".into()) } else { Ok(read) }
}

/// Attaches the tables of ranks to the result in the same directory. Tables without such a result
/// become separate results.
pub fn attach(results: &mut Vec<ToolResult>, ranks: Vec<Ranks>) {
    let directory =
        |file: &str| file.rsplit_once('/').map_or(String::new(), |(dir, _)| dir.to_owned());
    let is_result = |r: &ToolResult| r.source.format == "IO500 result";
    for ranks in ranks {
        let home = directory(&ranks.file);
        let found = results.iter_mut().find(|r| is_result(r) && directory(&r.source.file) == home);
        if let Some(result) = found {
            put(result, ranks);
        } else {
            let mut alone = ToolResult::new(source("IO500", "IO500 ranks", &ranks.file));
            put(&mut alone, ranks);
            results.push(alone);
        }
    }
    together(results, directory);
    phases::check_scores(results);
}

/// Combines a summary with the result in the same directory. Both must contain the same scores.
fn together(results: &mut Vec<ToolResult>, directory: impl Fn(&str) -> String) {
    let (summaries, mut others): (Vec<_>, Vec<_>) =
        results.drain(..).partition(|r| r.source.format == "IO500 summary");
    for summary in summaries {
        let home = directory(&summary.source.file);
        let found = others
            .iter_mut()
            .find(|r| r.source.format == "IO500 result" && directory(&r.source.file) == home);
        let Some(result) = found else {
            others.push(summary);
            continue;
        };
        for part in &mut result.parts {
            let same = summary.parts.iter().find(|other| other.name == part.name);
            let (Some(other), Some(operation)) = (same, part.operations.first_mut()) else {
                continue;
            };
            let Some(stated) = other.operations.first() else { continue };
            let named = |figure: &Figure| Figure {
                field: format!("result_summary.txt {}", figure.field),
                ..figure.clone()
            };
            operation.bandwidth_per_s.extend(stated.bandwidth_per_s.iter().map(named));
            operation.rate_per_s.extend(stated.rate_per_s.iter().map(named));
        }
        result.complaints.extend(summary.complaints);
        result.combined.extend(summary.combined.into_iter().map(|mut combined| {
            combined.what.push_str(" of its summary");
            combined.total.field = format!("result_summary.txt {}", combined.total.field);
            combined
        }));
    }
    *results = others;
}

fn put(result: &mut ToolResult, ranks: Ranks) {
    let procs = result.options.get("procs").and_then(|text| text.parse::<f64>().ok());
    let mut sorted = ranks.ranks.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let last = sorted.last().map_or(0, |last| last + 1);
    // Gaps in the rank numbers show that ranks are missing, even if the total number is not stated.
    let stated = procs.unwrap_or(last as f64).max(last as f64);
    let missing = (0..stated as u64).filter(|rank| sorted.binary_search(rank).is_err());
    result.memberships.push(Membership {
        of: format!("ranks of {}", ranks.phase),
        stated: Figure::exact(stated, if procs.is_some() { "procs" } else { "rank" }),
        found: sorted.len() as u64,
        missing: missing.take(64).map(|rank| format!("rank {rank}")).collect(),
        place: "in its table of ranks".into(),
    });
    let name = ranks.file.rsplit('/').next().unwrap_or(&ranks.file).to_owned();
    let longest = ranks.times_ns.iter().copied().reduce(f64::max).unwrap_or(0.0);
    let claim = score_of(result, &ranks.phase).filter(|_| longest > 0.0).map(|score| {
        let amount = score.clone().scaled(longest / NS_PER_S);
        let least = amount.least * (1.0 - RANKS_SLACK);
        let total = Figure { least, most: UNBOUNDED, ..amount };
        Claim { formula: Formula::Sum, total, slack: 0.0 }
    });
    let whole = ranks.bytes.len() == ranks.ranks.len() && claim.is_some();
    let population = |what: &str, unit, values, claims| Population {
        of: "ranks".into(),
        what: format!("{what} of {}", ranks.phase),
        unit,
        field: name.clone(),
        values,
        alike: unit == Unit::Ns,
        claims,
    };
    result.populations.push(population("time", Unit::Ns, ranks.times_ns.clone(), Vec::new()));
    if whole {
        let claims = claim.into_iter().collect();
        result.populations.push(population("amount", Unit::Bytes, ranks.bytes.clone(), claims));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const RESULT: &str = "[run]\nprocs = 2\nversion = io500-sc20\n\n[ior-easy-write]\nt_start = \
                          2020-10-31 10:00:00\nscore = 2.000000\nt_delta = 300.2000\nt_end = \
                          2020-10-31 10:05:00\n[ior-hard-write]\nscore = \
                          1.000000\n[ior-easy-read]\nscore = 2.000000\n[ior-hard-read]\nscore = \
                          1.000000\n[SCORE]\nBW = 1.414214\nMD = 9.000000 [INVALID]\nSCORE = \
                          3.567621 [INVALID]\n";

    #[test]
    fn a_result_has_its_phases_and_scores() {
        assert!(is_result(RESULT) && !is_summary(RESULT));
        let reported = read_result(RESULT, "a/result.txt").unwrap();
        assert_eq!(reported.parts.len(), 4);
        assert_eq!(reported.parts[0].operations[0].bandwidth_per_s[0].value, 2.0 * GIB);
        let what: Vec<&str> = reported.combined.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(what.len(), 3, "{what:?}: its time, and two scores whose parts are all there");
        assert_eq!(reported.complaints.len(), 1);
        assert!(read_result("[run]\nprocs = 2\n", "x").is_err());
    }

    #[test]
    fn a_summary_of_any_age_is_read() {
        let new = "IO500 version x\n[RESULT]       ior-easy-write      352.803032 GiB/s : time 386.698 seconds\n\
            [SCORE ] Bandwidth 122.312630 GiB/s : IOPS 192.355126 kiops : TOTAL 153.386640\n";
        let old = "[RESULT] BW   phase 1            ior_easy_write                6.020 GB/s : time 387.71 seconds\n";
        for (text, score) in [(new, 352.803032), (old, 6.02)] {
            assert!(is_summary(text));
            let reported = read_summary(text, "x").unwrap();
            assert_eq!(reported.parts[0].name, "ior-easy-write");
            assert_eq!(reported.parts[0].operations[0].bandwidth_per_s[0].value, score * GIB);
        }
        assert!(read_summary("[RESULT] ior-easy nothing\n", "x").is_err());
    }

    #[test]
    fn appended_runs_have_their_own_scores() {
        let later = RESULT.replace("score = 2.000000", "score = 8.000000");
        let later = later.replace("BW = 1.414214", "BW = 2.828427");
        let study = crate::read_text("result.txt", &format!("{RESULT}{later}"));
        let score = |r: &ToolResult| (r.combined[1].total.value * 1e6).round();
        let scores: Vec<f64> = study.results.iter().map(score).collect();
        assert_eq!((scores, study.results[1].parts.len()), (vec![1_414_214.0, 2_828_427.0], 4));
    }

    #[test]
    fn a_log_of_several_runs_has_the_last_of_each_phase() {
        let line = |seconds: u32| {
            format!(
                "[RESULT] IOPS phase 8 mdtest_hard_delete 184.391 kiops : time {seconds} seconds\n"
            )
        };
        let reported = read_summary(&[50, 1246, 41, 645].map(line).concat(), "x").unwrap();
        assert_eq!(reported.parts.len(), 1);
        assert_eq!(reported.parts[0].window_ns.as_ref().unwrap().value, 645e9);
        assert!(reported.remarks[0].contains("3 phases of earlier runs"));
    }

    #[test]
    fn attaches_ranks_and_reports_missing_ones() {
        let ranks = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\nwrite,0,3.0e+02,3.0e+02,1.073741824e+09,1.1e+09\n";
        assert!(is_ranks(ranks));
        let ranks = read_ranks(ranks, "a/ior-easy-write.csv").unwrap();
        let mut results = vec![read_result(RESULT, "a/result.txt").unwrap()];
        attach(&mut results, vec![ranks]);
        assert_eq!(results.len(), 1);
        let result = &results[0];
        assert_eq!((result.memberships[0].stated.value, result.memberships[0].found), (2.0, 1));
        assert_eq!(result.memberships[0].missing, ["rank 1"]);
        // The ranks that were found add up to half of the stated score, because one of two ranks is
        // missing.
        let population = &result.populations[1];
        let sum: f64 = population.values.iter().sum();
        assert!((sum / population.claims[0].total.value - 0.5).abs() < 1e-9);
    }

    #[test]
    fn checks_a_summary_against_its_result() {
        let summary = "[RESULT]       ior-easy-write      3.000000 GiB/s : time 300.200 seconds\n";
        let results =
            [read_result(RESULT, "a/result.txt"), read_summary(summary, "a/result_summary.txt")];
        let mut results: Vec<ToolResult> = results.into_iter().map(Result::unwrap).collect();
        attach(&mut results, Vec::new());
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].parts[0].operations[0].bandwidth_per_s.len(), 2);
    }

    #[test]
    fn ignores_ranks_of_another_operation() {
        let text = "rank,items,rate-File creation,time-File creation,rate-File stat,time-File \
                    stat\n0,5,,,9e3,491\n1,5,,,9e3,450\n2,5,5e3,822,,\n";
        let ranks = read_ranks(text, "a/mdtest-easy-stat.csv").unwrap();
        assert_eq!((ranks.ranks.len(), ranks.times_ns), (3, vec![491e9, 450e9]));
    }

    #[test]
    fn repeats_io500_complaints_except_refuted_remarks() {
        let weight = |remark: &str, exe: &str| {
            let text =
                format!("[run]\n; ERROR INVALID {remark}\n{}\nexe = ./ior {exe}\n", &RESULT[6..]);
            let complaints = read_result(&text, "x").unwrap().complaints;
            complaints.iter().find(|c| c.says.contains(remark)).unwrap().weight
        };
        assert_eq!(weight("stonewall-time < 300s", "-D 30 -a POSIX"), Weight::Invalid);
        assert_eq!(weight("stonewall-time < 30s", "-D 300 -a POSIX"), Weight::Warning);
        assert_eq!(weight("stonewall-time < 30s", ""), Weight::Invalid);
        assert_eq!(
            weight("Runtime of phase (0.1) is below stonewall time.", "-D 300"),
            Weight::Invalid
        );
        let marked =
            "[RESULT-invalid]       ior-easy-write        0.000000 GiB/s  : time 0.000 seconds\n";
        assert_eq!(read_summary(marked, "x").unwrap().complaints.len(), 1);
        // The same log contains a later run, which is complete.
        let again = format!("{marked}{}", marked.replace("-invalid", "").replace("0.000", "3.100"));
        assert!(read_summary(&again, "x").unwrap().complaints.is_empty());
    }
}
