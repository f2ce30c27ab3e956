//! `plimsoll runs`: the catalogue, which is the ledger with the bundles that are there.

use clap::{Args, Subcommand};
use plimsoll_evidence::ledger::{Entry, Event, Ledger};
use serde::Serialize;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;

/// Options of `runs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll runs\n  plimsoll runs show RUN\n  plimsoll runs rm RUN"
)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List all runs in the order started, those that did not complete too.
    List,
    /// Show the verdict of a run.
    Show {
        /// The run.
        run: String,
    },
    /// Remove a run's bundle. It stays in the ledger.
    Rm {
        /// The run.
        run: String,
    },
}

#[derive(Debug, Serialize)]
struct Listed {
    position: u64,
    run_id: String,
    name: String,
    started_unix_ns: u64,
    /// `None`: it never ended, or is under way.
    end: Option<String>,
    verdict: Option<String>,
    bundle: Option<String>,
}

/// Lists, shows or removes.
///
/// # Errors
/// A broken ledger, a run that is not there.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        None | Some(What::List) => list(common),
        Some(What::Show { run }) => {
            let directory = bundle::find(run)?;
            let evidence = plimsoll_evidence::Bundle::read(&directory)?;
            bundle::show(&directory, &evidence, &plimsoll_judge::judge(&evidence), common)?;
            Ok(Exit::Ok)
        }
        Some(What::Rm { run }) => {
            let directory = bundle::find(run)?;
            // Only what is a bundle is removed.
            plimsoll_evidence::Bundle::read(&directory)?;
            std::fs::remove_dir_all(&directory).map_err(|error| {
                CliError::environment(format!("cannot remove {}: {error}", directory.display()))
            })?;
            Ok(Exit::Ok)
        }
    }
}

fn list(common: &Common) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let entries = Ledger::at(places.ledger()).read()?;
    let runs: Vec<Listed> = entries.iter().filter_map(|e| listed(e, &entries, &places)).collect();
    if common.json {
        bundle::print(&bundle::json(&runs)?)?;
        return Ok(Exit::Ok);
    }
    if runs.is_empty() {
        bundle::print("no runs yet; `plimsoll quickstart` makes one\n")?;
        return Ok(Exit::Ok);
    }
    let width = runs.iter().map(|run| run.run_id.chars().count()).max().unwrap_or(0);
    let mut text = format!("{:>4}  {:width$}  {:12}  {}\n", "no.", "run", "verdict", "end");
    for run in &runs {
        let verdict = run.verdict.as_deref().unwrap_or("none");
        let end = run.end.as_deref().unwrap_or("did not end, or is under way");
        let bundle = if run.bundle.is_some() { "" } else { ", bundle removed" };
        text.push_str(&format!(
            "{:>4}  {:width$}  {verdict:12}  {end}{bundle}\n",
            run.position, run.run_id
        ));
    }
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

fn listed(entry: &Entry, all: &[Entry], places: &Places) -> Option<Listed> {
    let Event::Started { name, .. } = &entry.event else { return None };
    let ended = all.iter().find_map(|other| match &other.event {
        Event::Ended { end, verdict, .. } if other.run_id == entry.run_id => Some((end, verdict)),
        _ => None,
    });
    let directory = places.runs.join(&entry.run_id);
    Some(Listed {
        position: entry.position,
        run_id: entry.run_id.clone(),
        name: name.clone(),
        started_unix_ns: entry.unix_ns,
        end: ended.map(|(end, _)| end.clone()),
        verdict: ended.map(|(_, verdict)| verdict.clone()),
        bundle: directory.is_dir().then(|| directory.display().to_string()),
    })
}
