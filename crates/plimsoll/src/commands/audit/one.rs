//! One result that reads as a run: fio's JSON and the tables of docs/audit.md. It is judged by the rules
//! of a run, and its figures against each other.

use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_import::detect::{Format, detect};
use plimsoll_import::foreign::{self, table};
use plimsoll_import::walk::HEAD_BYTES;
use plimsoll_judge::conservation::{Audit, Credibility, audit};
use plimsoll_judge::finding::{Finding, Outcome};
use plimsoll_judge::{Verdict, judge};
use plimsoll_plan::Claim;

use super::super::bundle;
use super::{Declared, Options, study};
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// True for a file that is read as a run: fio's JSON, and what has no form of another tool.
pub fn is_of_a_run(path: &Path) -> bool {
    use std::io::Read;
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head));
    match read.ok().and_then(|_| detect(&head)) {
        Some(Format::FioJson) => true,
        Some(Format::Table) => is_table(path) && has_columns_of_a_run(&head),
        Some(_) => false,
        None => is_table(path) || head.trim_ascii_start().starts_with(b"{"),
    }
}

/// True for the columns of docs/audit.md, which name their unit in full.
fn has_columns_of_a_run(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let names = ["_per_s", "io_kib", "io_bytes"];
    lines.next().is_some_and(|header| names.iter().any(|name| header.contains(name)))
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["csv", "tsv"].into_iter().any(|table| extension.eq_ignore_ascii_case(table))
    })
}

/// Judges the file.
///
/// # Errors
/// A file that cannot be read or is no such result.
pub fn carry_out(
    file: &Path,
    declared: &Declared,
    options: &Options,
    common: &Common,
) -> Result<Exit, CliError> {
    let mut bundles = read(file, declared)?;
    for bundle in &mut bundles {
        declare(bundle, declared, options)?;
    }
    let verdicts: Vec<Verdict> = bundles.iter().map(judge).collect();
    let study = study::read(&[file.to_path_buf()]).ok();
    let figures = study.and_then(|study| match &study.results[..] {
        [only] => Some(audit(only, &declared.reported())),
        _ => None,
    });
    show(&bundles, &verdicts, figures.as_ref(), common)?;
    if let (Some(path), [only], [verdict]) = (&options.html, &bundles[..], &verdicts[..]) {
        study::write(path, &bundle::html(only, verdict)?)?;
    }
    let exit = worst(&bundles, &verdicts);
    let impossible = figures.is_some_and(|figures| figures.verdict == Credibility::Impossible);
    Ok(if exit == Exit::Ok && impossible { Exit::NoVerdict } else { exit })
}

fn read(file: &Path, declared: &Declared) -> Result<Vec<Bundle>, CliError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        CliError::usage(format!("cannot read {name}: {error}"))
            .hint("name a file that fio wrote, or a table (CSV)")
    })?;
    let wrong = |error: foreign::ForeignError| {
        CliError::usage(format!("{name}: {error}"))
            .hint("see docs/audit.md for the forms that are known")
    };
    let short = file.file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
    if is_table(file) {
        let declared = table::Declared { outstanding: declared.outstanding };
        return table::read(&text, &short, declared).map_err(wrong);
    }
    foreign::fio::read(&text, &short).map(|bundle| vec![bundle]).map_err(wrong)
}

fn declare(bundle: &mut Bundle, declared: &Declared, options: &Options) -> Result<(), CliError> {
    let observe = &mut bundle.plan.observe;
    observe.link_bytes_per_s = declared.link_bytes_per_s;
    observe.array_cache_bytes = declared.array_cache_bytes;
    bundle.environment.memory_bytes = declared.memory_bytes;
    if declared.media.is_some() {
        observe.media = declared.media;
    }
    if !options.claim.is_empty() {
        let claim = |word: &String| {
            Claim::from_word(word).ok_or_else(|| {
                CliError::usage(format!("{word:?} is no claim")).hint(Claim::WORDS.join(", "))
            })
        };
        bundle.plan.claims = options.claim.iter().map(claim).collect::<Result<_, _>>()?;
        bundle.plan.claims_assumed = false;
    }
    Ok(())
}

fn show(
    bundles: &[Bundle],
    verdicts: &[Verdict],
    figures: Option<&Audit>,
    common: &Common,
) -> Result<(), CliError> {
    match (bundles, verdicts) {
        ([_], [verdict]) if common.json => {
            let wrong = |error: serde_json::Error| CliError::new(Exit::Defect, error.to_string());
            let mut json = serde_json::to_value(verdict).map_err(wrong)?;
            if let (Some(object), Some(figures)) = (json.as_object_mut(), figures) {
                object.insert("figures".into(), serde_json::to_value(figures).map_err(wrong)?);
            }
            bundle::print(&bundle::json(&json)?)
        }
        _ if common.json => bundle::print(&bundle::json(&verdicts)?),
        ([only], [verdict]) => {
            let style = bundle::style(common);
            let mut text = plimsoll_report::text(only, verdict, &style);
            if let Some(figures) = figures {
                text.push_str(&plimsoll_report::reported::figures_text(figures, &style));
            }
            bundle::print(&text)
        }
        _ => bundle::print(&rows(bundles, verdicts)),
    }
}

/// One line for each row of a table, then what was found, each once.
fn rows(bundles: &[Bundle], verdicts: &[Verdict]) -> String {
    let failed = |verdict: &Verdict| {
        let failed = verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail);
        failed.map(|finding| finding.rule.clone()).collect::<Vec<_>>()
    };
    let bad = verdicts.iter().filter(|verdict| !failed(verdict).is_empty()).count();
    let mut text = match bad {
        0 => {
            format!("NO RULE FAILED  {} rows; a table shows no claim by itself\n\n", verdicts.len())
        }
        _ => format!("INVALID  {bad} of {} rows\n\n", verdicts.len()),
    };
    let width = bundles.iter().map(|bundle| bundle.run.run_id.len()).max().unwrap_or(0);
    for (bundle, verdict) in bundles.iter().zip(verdicts) {
        let label = verdict.verdict.label();
        let rules = failed(verdict).join(", ");
        text.push_str(&format!("  {:width$}  {label:12}  {rules}\n", bundle.run.run_id));
        for finding in verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail) {
            text.push_str(&format!("  {:width$}    {}: {}\n", "", finding.rule, finding.says));
        }
    }
    text.push_str(&open_questions(verdicts));
    text
}

/// What stays open, each rule once, with the rows that it is open in and what the first of them says.
fn open_questions(verdicts: &[Verdict]) -> String {
    let mut open: Vec<(&Finding, usize)> = Vec::new();
    let findings = verdicts.iter().flat_map(|verdict| &verdict.findings);
    for finding in findings.filter(|f| matches!(f.outcome, Outcome::Unknown | Outcome::Warn)) {
        match open.iter_mut().find(|(known, _)| known.rule == finding.rule) {
            Some((_, rows)) => *rows += 1,
            None => open.push((finding, 1)),
        }
    }
    if open.is_empty() {
        return String::new();
    }
    open.sort_by_key(|(finding, _)| finding.outcome);
    let mut text = "\nWhat the table leaves open\n\n".to_owned();
    for (finding, rows) in open {
        let word = if finding.outcome == Outcome::Warn { "warn" } else { "unknown" };
        let Finding { rule, says, advice, .. } = finding;
        text.push_str(&format!("  {word:8} {rule} (rows: {rows}): {says}\n"));
        if !advice.is_empty() {
            text.push_str(&format!("           {advice}\n"));
        }
    }
    text
}

fn worst(bundles: &[Bundle], verdicts: &[Verdict]) -> Exit {
    let mut exits = bundles.iter().zip(verdicts).map(|(b, v)| Exit::of(&b.run, v.verdict));
    let table = verdicts.len() > 1;
    let fails = |v: &Verdict| v.findings.iter().any(|f| f.outcome == Outcome::Fail);
    if table {
        return if verdicts.iter().any(fails) { Exit::NoVerdict } else { Exit::Ok };
    }
    exits.next().unwrap_or(Exit::Ok)
}
