//! `plimsoll verify BUNDLE`: whether evidence is as its run left it, and what vouches for that.

use std::path::Path;

use plimsoll_evidence::ledger::Place;
use plimsoll_evidence::seal;
use serde::Serialize;

use super::bundle;
use crate::common::Common;
use crate::custody::{Loaded, Reader, Signed, Standing, Together};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment;

/// Whether a directory is a bundle, or an experiment with its bundles.
pub fn is_evidence(path: &Path) -> bool {
    [seal::FILE, "run.json", experiment::FILE].iter().any(|name| path.join(name).is_file())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Found {
    /// Nothing that was checked differs, and nothing is in doubt.
    intact: bool,
    runs: Vec<FoundRun>,
    doubts: Vec<String>,
    not_checked: Vec<String>,
}

/// What was found of a run.
#[derive(Serialize)]
struct FoundRun {
    run_id: String,
    seal_sha256: String,
    verdict: String,
    agrees_with_itself: bool,
    verdict_json: &'static str,
    report_html: &'static str,
    signed_by: Option<String>,
    ledger_position: Option<u64>,
    ledger_began_unix_ns: Option<u64>,
}

/// Checks a bundle, or an experiment with all of its.
///
/// # Errors
/// Evidence that was changed.
pub fn carry_out(path: &Path, key: Option<&str>, common: &Common) -> Result<Exit, CliError> {
    let reader = Reader::asking_for(key)?;
    let together = reader.load_all(path).inspect_err(|error| {
        if common.json {
            let found = serde_json::json!({ "intact": false, "says": error.message });
            let _ = bundle::json(&found).and_then(|text| bundle::print(&text));
        }
    })?;
    let exit = together.weigh(Exit::Ok);
    if common.json {
        bundle::print(&bundle::json(&found(&together, exit == Exit::Ok))?)?;
        return Ok(exit);
    }
    let mut text = match exit {
        Exit::Ok => "INTACT: the evidence is as its run left it\n\n".to_owned(),
        _ => "NOT VOUCHED FOR: something does not agree, or nothing here vouches for it\n\n"
            .to_owned(),
    };
    if let [run] = &together.runs[..] {
        text.push_str(&describe(run));
    } else {
        let held = together.runs.iter().filter(|run| matches!(run.custody.place, Place::Held(_)));
        text.push_str(&format!("  runs         {}\n", together.runs.len()));
        text.push_str("  seals        each holds\n");
        text.push_str(&format!("  ledger       holds {} of them\n", held.count()));
    }
    for line in together.lines() {
        text.push_str(&format!("\n  {line}\n"));
    }
    bundle::print(&text)?;
    Ok(exit)
}

fn found(together: &Together, intact: bool) -> Found {
    let of = |run: &Loaded| {
        let held = match &run.custody.place {
            Place::Held(held) => Some(held),
            _ => None,
        };
        FoundRun {
            run_id: run.bundle.run.run_id.clone(),
            seal_sha256: run.custody.seal_sha256.clone(),
            verdict: run.verdict.verdict.label().to_owned(),
            agrees_with_itself: !run.contradicts_itself(),
            verdict_json: word(run.custody.verdict),
            report_html: word(run.custody.report),
            signed_by: match &run.custody.signed {
                Signed::ByItsOwnWord(key) | Signed::ByTheKey(key) | Signed::ByTheLedger(key) => {
                    Some(key.clone())
                }
                Signed::No | Signed::Unknown => None,
            },
            ledger_position: held.map(|held| held.position),
            ledger_began_unix_ns: held.map(|held| held.began_unix_ns),
        }
    };
    let custody = || together.runs.iter().map(|run| &run.custody);
    let doubts = custody().flat_map(|custody| custody.doubts.clone());
    let remarks = custody().flat_map(|custody| custody.remarks.clone());
    Found {
        intact,
        runs: together.runs.iter().map(of).collect(),
        doubts: together.doubts.iter().cloned().chain(doubts).collect(),
        not_checked: together.remarks.iter().cloned().chain(remarks).collect(),
    }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Same => "as the evidence gives it",
        Standing::Missing => "missing",
        Standing::AsEntered => "of another build, as the ledger has it",
        Standing::Other => "of another build, or changed",
        Standing::Changed => "changed",
    }
}

fn signed(signed: &Signed) -> String {
    match signed {
        Signed::No => {
            "none: whoever has the machine could have made this (docs/evidence.md)".to_owned()
        }
        Signed::ByItsOwnWord(key) => {
            format!(
                "holds, by the key that the bundle names: {key}; --key tells whether it is the right one"
            )
        }
        Signed::ByTheKey(key) => format!("holds, by the key that was asked for: {key}"),
        Signed::ByTheLedger(key) => {
            format!("the ledger was signed after this run, by the key that was asked for: {key}")
        }
        Signed::Unknown => "one that the bundle does not speak of; --key checks it".to_owned(),
    }
}

fn describe(run: &Loaded) -> String {
    let Loaded { custody, verdict, .. } = run;
    let evidence = match run.contradiction() {
        Some(says) => says.strip_prefix("the evidence ").unwrap_or(says),
        None => "agrees with itself",
    };
    let ledger = match &custody.place {
        Place::Held(held) => {
            let later = match held.later_witnesses {
                0 => "no later bundle here stands for that line".to_owned(),
                1 => "1 later bundle stands for it".to_owned(),
                n => format!("{n} later bundles stand for it"),
            };
            format!("line {} of {} has this seal; {later}", held.position, held.lines)
        }
        Place::NotHeld { .. } | Place::Differs { .. } => "does not hold this run".to_owned(),
    };
    let facts = [
        ("run", run.bundle.run.run_id.clone()),
        ("seal", format!("holds, SHA-256 {}", custody.seal_sha256)),
        ("evidence", evidence.to_owned()),
        ("verdict", format!("{}; verdict.json {}", verdict.verdict, word(custody.verdict))),
        ("report", format!("report.html {}", word(custody.report))),
        ("ledger", ledger),
        ("signature", signed(&custody.signed)),
    ];
    facts.iter().map(|(name, value)| format!("  {name:<11}  {value}\n")).collect()
}
