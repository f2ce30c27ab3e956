//! `plimsoll audit FILE`: a result made elsewhere under the same rules; and what the rules are.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::{self, table::Declared};
use plimsoll_judge::finding::{Finding, Outcome};
use plimsoll_judge::rules::{self, Weight};
use plimsoll_judge::{Verdict, judge};
use plimsoll_plan::{BytesPerS, Claim, Media, SizeBytes};
use serde_json::json;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  plimsoll audit result.json              what fio wrote with \
    --output-format=json+\n  plimsoll audit table.csv --outstanding 480 --link 5GB/s\n  plimsoll audit \
    --explain holes-read\n  plimsoll audit --rules\n\nA result file alone (tier T3) never shows where reads \
    came from, what lasts, what\nsurvives a loss of power, or the tail. `plimsoll observe -- CMD` shows more."
)]
pub struct Options {
    /// The result: fio's JSON, or a table (CSV; its columns are in docs/audit.md).
    file: Option<PathBuf>,
    /// List the rules.
    #[arg(long, conflicts_with_all = ["file", "explain"])]
    rules: bool,
    /// Say what a rule means, how it is found and what to do.
    #[arg(long, value_name = "RULE", conflicts_with = "file")]
    explain: Option<String>,
    /// What the figure is said to show; by default what its operations suggest.
    #[arg(long, value_name = "CLAIM", requires = "file")]
    claim: Vec<String>,
    /// Operations in flight, all clients together (a table that does not say).
    #[arg(long, value_name = "COUNT", requires = "file")]
    outstanding: Option<u64>,
    /// Rate of the slowest link, such as 5GB/s.
    #[arg(long, value_name = "RATE", requires = "file")]
    link: Option<String>,
    /// Size of the storage system's caches.
    #[arg(long, value_name = "SIZE", requires = "file")]
    array_cache: Option<String>,
    /// Memory of the hosts, all together.
    #[arg(long, value_name = "SIZE", requires = "file")]
    memory: Option<String>,
    /// What the media are: hdd, ssd, nvme, hybrid or memory.
    #[arg(long, value_name = "MEDIA", requires = "file")]
    media: Option<String>,
}

/// Judges the file, or shows the rules.
///
/// # Errors
/// A file that cannot be read, is of no known form, or an option that says nothing.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    if options.rules {
        return list(common);
    }
    if let Some(id) = &options.explain {
        return explain(id, common);
    }
    let Some(file) = &options.file else {
        return Err(CliError::usage("there is nothing to audit").hint("name a result's file"));
    };
    let mut bundles = read(file, options)?;
    for bundle in &mut bundles {
        declare(bundle, options)?;
    }
    let verdicts: Vec<Verdict> = bundles.iter().map(judge).collect();
    show(&bundles, &verdicts, common)?;
    Ok(worst(&bundles, &verdicts))
}

fn read(file: &Path, options: &Options) -> Result<Vec<Bundle>, CliError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        CliError::usage(format!("cannot read {name}: {error}"))
            .hint("name a file that fio wrote, or a table (CSV)")
    })?;
    let wrong = |error: foreign::ForeignError| {
        CliError::usage(format!("{name}: {error}"))
            .hint("see docs/audit.md for the forms that are known")
    };
    let is_table = file.extension().is_some_and(|extension| {
        ["csv", "tsv"].into_iter().any(|table| extension.eq_ignore_ascii_case(table))
    });
    let short = file.file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
    if is_table {
        let declared = Declared { outstanding: options.outstanding };
        return foreign::table::read(&text, &short, declared).map_err(wrong);
    }
    foreign::fio::read(&text, &short).map(|bundle| vec![bundle]).map_err(wrong)
}

fn declare(bundle: &mut Bundle, options: &Options) -> Result<(), CliError> {
    fn parse<T: std::str::FromStr>(
        text: &Option<String>,
        what: &str,
    ) -> Result<Option<T>, CliError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = || CliError::usage(format!("{text:?} is no {what}"));
        text.parse().map(Some).map_err(|_| wrong().hint("write it as in a plan: docs/plan.md"))
    }
    let observe = &mut bundle.plan.observe;
    observe.link_bytes_per_s =
        parse::<BytesPerS>(&options.link, "rate of bytes")?.map(|rate| rate.0);
    observe.array_cache_bytes =
        parse::<SizeBytes>(&options.array_cache, "size")?.map(|size| size.0);
    bundle.environment.memory_bytes =
        parse::<SizeBytes>(&options.memory, "size")?.map(|size| size.0);
    if let Some(word) = &options.media {
        let media = Media::from_word(word);
        observe.media = Some(media.ok_or_else(|| {
            CliError::usage(format!("{word:?} is no media")).hint(Media::WORDS.join(", "))
        })?);
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

fn show(bundles: &[Bundle], verdicts: &[Verdict], common: &Common) -> Result<(), CliError> {
    match (bundles, verdicts) {
        ([_], [verdict]) if common.json => bundle::print(&bundle::json(verdict)?),
        _ if common.json => bundle::print(&bundle::json(&verdicts)?),
        ([only], [verdict]) => {
            bundle::print(&plimsoll_report::text(only, verdict, &bundle::style(common)))
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

/// A rule of one run or of an experiment, for showing.
struct Shown {
    id: &'static str,
    asks: &'static str,
    explains: &'static str,
    bears_on: &'static [(Claim, Weight)],
}

fn all() -> Vec<Shown> {
    let single = rules::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    let several = rules::experiment::ALL.iter().map(|r| Shown {
        id: r.id,
        asks: r.asks,
        explains: r.explains,
        bears_on: r.bears_on,
    });
    single.chain(several).collect()
}

fn claims(rule: &Shown, weight: Weight) -> Vec<&'static str> {
    let claims = rule.bears_on.iter().filter(|(_, w)| *w == weight);
    claims.map(|(claim, _)| claim.word()).collect()
}

fn as_json(rule: &Shown) -> serde_json::Value {
    json!({
        "rule": rule.id,
        "asks": rule.asks,
        "explains": rule.explains,
        "mandatory_for": claims(rule, Weight::Mandatory),
        "bears_on": claims(rule, Weight::Advisory),
    })
}

fn list(common: &Common) -> Result<Exit, CliError> {
    let all = all();
    if common.json {
        let rules: Vec<_> = all.iter().map(as_json).collect();
        bundle::print(&bundle::json(&rules)?)?;
        return Ok(Exit::Ok);
    }
    let width = all.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut text = format!("{} rules; `plimsoll audit --explain RULE` says more\n\n", all.len());
    for rule in &all {
        text.push_str(&format!("  {:width$}  {}\n", rule.id, rule.asks));
    }
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

fn explain(id: &str, common: &Common) -> Result<Exit, CliError> {
    let all = all();
    let Some(rule) = all.iter().find(|rule| rule.id == id) else {
        let near = all.iter().find(|rule| rule.id.contains(id) || id.contains(rule.id));
        let error = CliError::usage(format!("there is no rule {id}"));
        return Err(match near {
            Some(rule) => error.hint(format!("did you mean {}?", rule.id)),
            None => error.hint("`plimsoll audit --rules` lists them"),
        });
    };
    if common.json {
        bundle::print(&bundle::json(&as_json(rule))?)?;
        return Ok(Exit::Ok);
    }
    let mut text = format!("{}: {}\n\n{}\n", rule.id, rule.asks, wrapped(rule.explains, 98));
    for (weight, word) in [(Weight::Mandatory, "mandatory for"), (Weight::Advisory, "bears on")] {
        let claims = claims(rule, weight);
        if !claims.is_empty() {
            text.push_str(&format!("\n{word:13}  {}", claims.join(", ")));
        }
    }
    text.push('\n');
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

fn wrapped(text: &str, columns: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}
