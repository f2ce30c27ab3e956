//! `plimsoll runs`: the catalogue, which is the ledger with the bundles that are there.

use std::path::Path;

use clap::{Args, Subcommand};
use plimsoll_evidence::ledger::{Entry, Event, Ledger};
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_judge::tuning;
use serde::Serialize;

use super::bundle;
use crate::common::Common;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::removal;
use crate::session::describe_torn;

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
    /// Show the verdict of a run, or what the runs of an experiment say together.
    Show {
        /// The run or experiment.
        run: String,
    },
    /// Remove a run's bundle, or an experiment with all of its. They stay in the ledger.
    Rm {
        /// The run or experiment.
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
    /// The experiment that it belongs to; `None`: it stands alone.
    experiment: Option<String>,
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
            if directory.join(experiment::FILE).is_file() {
                return show_experiment(&directory, common);
            }
            let loaded = Reader::new().load(&directory)?;
            bundle::show(&directory, &loaded.bundle, &loaded.verdict, common)?;
            bundle::print_custody(&loaded.custody.lines(), common)?;
            Ok(loaded.exit_shown())
        }
        Some(What::Rm { run }) => {
            remove(&bundle::find(run)?)?;
            Ok(Exit::Ok)
        }
    }
}

/// Removes a bundle, or an experiment with its bundles. What somebody else put there stays and is named.
fn remove(directory: &Path) -> Result<(), CliError> {
    let left = if directory.join(experiment::FILE).is_file() {
        removal::experiment(directory)?
    } else {
        removal::bundle(directory)?
    };
    let Some((first, more)) = left.split_first() else { return Ok(()) };
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let says = format!("{}{more}: Plimsoll did not make it, so it stays", first.display());
    Err(CliError::environment(says).hint("everything else was removed"))
}

/// Judges the bundles of an experiment again and shows what they say together.
fn show_experiment(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    let kind = experiment::kind_of(directory)?;
    // What was found is shown; whether it is to be relied on stands in it.
    match kind {
        ExperimentKind::Published => return super::experiment::show_again(directory, common),
        ExperimentKind::Sweep => return super::sweep::show_again(directory, common),
        _ => {}
    }
    let together = Reader::new().load_all(directory)?;
    let runs = together.judged();
    match kind {
        ExperimentKind::Compare => {
            super::sides::show(&super::compare::compare_arms(directory, &runs, &[])?, common)?;
        }
        ExperimentKind::Tune => {
            let range = experiment::range_of(directory)?;
            let tuning =
                tuning::judge_again(&runs[0].0.plan, range, &runs).map_err(CliError::usage)?;
            if common.json {
                bundle::print(&bundle::json(&tuning)?)?;
            } else {
                let document = plimsoll_report::tuning_document(&tuning);
                let style = bundle::style(common);
                bundle::print(&plimsoll_report::text::document(&document, &style))?;
            }
        }
        _ => {
            let summary = plimsoll_judge::experiment::summarise(&runs);
            if common.json {
                bundle::print(&bundle::json(&summary)?)?;
            } else {
                bundle::print(&plimsoll_report::experiment(&summary, &bundle::style(common)))?;
            }
        }
    }
    bundle::print_custody(&together.lines(), common)?;
    Ok(together.weigh(Exit::Ok))
}

fn list(common: &Common) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let (entries, torn) = Ledger::at(places.ledger()).read_with_tail()?;
    if let Some(torn) = torn {
        StderrProgress::new(common.quiet).warn(&describe_torn(&torn));
    }
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
        let experiment = run.experiment.as_ref().map_or(String::new(), |id| format!("  in {id}"));
        text.push_str(&format!(
            "{:>4}  {:width$}  {verdict:12}  {end}{bundle}{experiment}\n",
            run.position, run.run_id
        ));
    }
    bundle::print(&text)?;
    Ok(Exit::Ok)
}

fn listed(entry: &Entry, all: &[Entry], places: &Places) -> Option<Listed> {
    let Event::Started { name, experiment, .. } = &entry.event else { return None };
    let ended = all.iter().find_map(|other| match &other.event {
        Event::Ended { end, verdict, .. } if other.run_id == entry.run_id => Some((end, verdict)),
        _ => None,
    });
    let within = experiment.as_ref().map_or(places.runs.clone(), |id| places.runs.join(id));
    let directory = within.join(&entry.run_id);
    Some(Listed {
        position: entry.position,
        run_id: entry.run_id.clone(),
        name: name.clone(),
        started_unix_ns: entry.unix_ns,
        end: ended.map(|(end, _)| end.clone()),
        verdict: ended.map(|(_, verdict)| verdict.clone()),
        experiment: experiment.clone(),
        bundle: directory.is_dir().then(|| directory.display().to_string()),
    })
}
