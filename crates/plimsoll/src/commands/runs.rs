//! `plimsoll runs`: the catalogue, which is the ledger with the bundles that are there.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_catalogue::{Entry, Filter, Labels, export, import, labels_path, unix_ns_of};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone};
use plimsoll_report::text;

use super::{bundle, together};
use crate::catalogue;
use crate::common::Common;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::removal;
use crate::session::describe_torn;

/// Runs that are listed unless more are asked for.
const LISTED: u32 = 50;

/// Options of `runs`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  plimsoll runs\n  plimsoll runs --verdict fail --since 2026-11-01\n  plimsoll runs \
    show last\n  plimsoll runs tag 12 before-firmware\n  plimsoll runs export 12 run-12.tar.gz\n\nA run is \
    called by its number, its name or the beginning of it, or `last`; the name of a plan is its\nlatest run. \
    Every command that takes a bundle takes these."
)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    of: Of,
}

/// Which runs are listed.
#[derive(Debug, Default, Args)]
struct Of {
    /// Runs with this verdict: pass, fail, invalid, inconclusive, measured.
    #[arg(long, value_parser = ["pass", "fail", "invalid", "inconclusive", "measured"], ignore_case = true)]
    verdict: Option<String>,
    /// Runs of plans whose name holds this.
    #[arg(long)]
    plan: Option<String>,
    /// Runs with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Runs started on this day (UTC) or later: 2026-11-23.
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<u64>,
    /// Runs started before this day (UTC).
    #[arg(long, value_name = "DAY", value_parser = day)]
    until: Option<u64>,
    /// The latest so many; 50 unless stated, and all with --json.
    #[arg(long, value_name = "RUNS")]
    limit: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List runs in the order started, those that did not complete too.
    List(Of),
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
    /// Tag a run or experiment, to find it by.
    Tag {
        /// The run or experiment.
        run: String,
        /// The tags; none: those that it has are printed.
        tags: Vec<String>,
        /// Take these tags away instead.
        #[arg(long)]
        remove: bool,
    },
    /// Note something on a run or experiment; "" takes the note away.
    Note {
        /// The run or experiment.
        run: String,
        /// The note; none: the one that it has is printed.
        text: Option<String>,
    },
    /// Write a run or experiment to one file, for another machine.
    Export {
        /// The run or experiment.
        run: String,
        /// The archive, a .tar.gz that must not be there yet.
        to: PathBuf,
    },
    /// Take a run or experiment that another machine exported.
    Import {
        /// The archive.
        archive: PathBuf,
    },
}

fn day(text: &str) -> Result<u64, String> {
    unix_ns_of(text).ok_or_else(|| "a day is written as 2026-11-23".to_owned())
}

/// Lists, shows, removes, notes, hands on.
///
/// # Errors
/// A broken ledger, a run that is not there.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        None => list(&options.of, common),
        Some(What::List(of)) => list(of, common),
        Some(What::Show { run }) => show(&bundle::find(run)?, common),
        Some(What::Rm { run }) => remove(&bundle::find(run)?).map(|()| Exit::Ok),
        Some(What::Tag { run, tags, remove }) => {
            let change = |labels: &mut Labels| match remove {
                true => labels.tags.retain(|tag| !tags.contains(tag)),
                false => labels.tags.extend(tags.iter().cloned()),
            };
            label(&bundle::find(run)?, !tags.is_empty(), change, common)
        }
        Some(What::Note { run, text }) => {
            let change = |labels: &mut Labels| labels.note = text.clone().unwrap_or_default();
            label(&bundle::find(run)?, text.is_some(), change, common)
        }
        Some(What::Export { run, to }) => {
            let directory = bundle::find(run)?;
            export(&directory, to).map_err(catalogue::told)?;
            done(common, "exported", to)
        }
        Some(What::Import { archive }) => take(archive, common),
    }
}

/// Says where something lies now.
fn done(common: &Common, what: &str, path: &Path) -> Result<Exit, CliError> {
    let shown = path.display().to_string();
    if common.json {
        bundle::print(&bundle::json(&serde_json::json!({ what: shown }))?)?;
    } else {
        bundle::print(&format!("{what}: {shown}\n"))?;
    }
    Ok(Exit::Ok)
}

/// Unpacks what another machine exported, beside this machine's own runs: no ledger here holds it.
fn take(archive: &Path, common: &Common) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let directory = import(archive, &places.imported()).map_err(catalogue::told)?;
    // What can't be read as evidence is not kept.
    if let Err(error) = Reader::new().load_all(&directory) {
        std::fs::remove_dir_all(&directory).ok();
        std::fs::remove_file(labels_path(&directory)).ok();
        return Err(error.hint("it was not taken over"));
    }
    done(common, "imported", &directory)
}

/// Changes the labels of a run or experiment, and prints them.
fn label(
    directory: &Path,
    changes: bool,
    change: impl FnOnce(&mut Labels),
    common: &Common,
) -> Result<Exit, CliError> {
    // A link or a trailing slash has no name to lie beside.
    let whole = directory.canonicalize().map_err(|error| {
        CliError::environment(format!("cannot find {}: {error}", directory.display()))
    })?;
    let mut labels = Labels::of(&whole).map_err(catalogue::told)?;
    if changes {
        change(&mut labels);
        labels.write(&whole).map_err(catalogue::told)?;
    }
    if common.json {
        bundle::print(&bundle::json(&labels)?)?;
    } else {
        let tags: Vec<&str> = labels.tags.iter().map(String::as_str).collect();
        let tags = if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
        let note = if labels.note.is_empty() { "none" } else { &labels.note };
        bundle::print(&format!("tags: {tags}\nnote: {note}\n"))?;
    }
    Ok(Exit::Ok)
}

/// Judges a run, or the bundles of an experiment, again and shows what they say.
fn show(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    if together::is_one(directory) {
        let told = together::tell(directory)?;
        let document = || text::document(&told.document, &bundle::style(common));
        bundle::print(&if common.json { told.json.clone() } else { document() })?;
        bundle::print_custody(&told.together.lines(), common)?;
        // What was found is shown; whether it is to be relied on stands in it.
        return Ok(told.together.weigh(Exit::Ok));
    }
    let loaded = Reader::new().load(directory)?;
    bundle::show(directory, &loaded.bundle, &loaded.verdict, common)?;
    bundle::print_custody(&loaded.custody.lines(), common)?;
    Ok(loaded.exit_shown())
}

/// Removes a bundle, or an experiment with its bundles. What somebody else put there stays and is named.
fn remove(directory: &Path) -> Result<(), CliError> {
    let left = if together::is_one(directory) {
        removal::experiment(directory)?
    } else {
        removal::bundle(directory)?
    };
    let Some((first, more)) = left.split_first() else { return Ok(()) };
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let says = format!("{}{more}: Plimsoll did not make it, so it stays", first.display());
    Err(CliError::environment(says).hint("everything else was removed"))
}

fn list(of: &Of, common: &Common) -> Result<Exit, CliError> {
    let catalogue = catalogue::open(&Places::from_environment()?)?;
    if let Some(torn) = &catalogue.torn {
        StderrProgress::new(common.quiet).warn(&describe_torn(torn));
    }
    let mut filter = Filter {
        verdict: of.verdict.clone(),
        plan: of.plan.clone(),
        tag: of.tag.clone(),
        since_unix_ns: of.since,
        until_unix_ns: of.until,
        with_bundle: false,
        limit: of.limit,
    };
    if common.json {
        let runs = catalogue.runs(&filter).map_err(catalogue::told)?;
        bundle::print(&bundle::json(&runs)?)?;
        return Ok(Exit::Ok);
    }
    // One more than is shown tells whether there are more.
    let shown = of.limit.unwrap_or(LISTED) as usize;
    filter.limit = Some(of.limit.unwrap_or(LISTED).saturating_add(1));
    let mut runs = catalogue.runs(&filter).map_err(catalogue::told)?;
    let more = runs.len().saturating_sub(shown) > 0;
    runs.drain(..runs.len().saturating_sub(shown));
    if runs.is_empty() {
        let is_all = [&of.verdict, &of.plan, &of.tag].into_iter().all(Option::is_none);
        return match is_all && of.since.or(of.until).is_none() {
            true => bundle::print("no runs yet; `plimsoll quickstart` makes one\n"),
            false => bundle::print("no run is like that; `plimsoll runs` lists all\n"),
        }
        .map(|()| Exit::Ok);
    }
    let mut table = table(&runs);
    if more {
        table.note = format!("the latest {shown}; --limit shows more");
    }
    bundle::print(&text::grid(&table, &bundle::style(common)))?;
    Ok(Exit::Ok)
}

fn table(runs: &[Entry]) -> Table {
    let columns = vec![
        Column::numbers("no.", "position"),
        // A column of numbers is not folded: a name is to be copied.
        Column::numbers("run", "run_id"),
        Column::words("verdict", "verdict"),
        Column::of(Unit::Rate, "I/Os per second", "achieved_iops_per_s"),
        Column::numbers("reads, average", "read_latency_ns_avg").rank(1),
        Column::numbers("writes, average", "write_latency_ns_avg").rank(2),
        Column::numbers("measured", "measured_ns").rank(3),
        Column::remarks("remarks", "remarks"),
    ];
    let mut table = Table::new("", columns);
    table.rows = runs.iter().map(row).collect();
    table
}

fn row(run: &Entry) -> Vec<Cell> {
    // Every reason of a verdict on a model begins so: what was not measured is not coloured as if it were.
    let modelled = run.reason.as_ref().is_some_and(|reason| reason.starts_with("modelled:"));
    let tone = match run.verdict.as_deref() {
        _ if modelled => Tone::Plain,
        Some("PASS") => Tone::Good,
        Some("FAIL" | "INVALID") => Tone::Bad,
        Some("INCONCLUSIVE") => Tone::Warn,
        _ => Tone::Plain,
    };
    let latency = |ns: Option<u64>| Cell::maybe(Unit::Latency, ns.map(|ns| ns as f64));
    let mut remarks: Vec<String> = match run.end.as_deref() {
        Some("completed") => Vec::new(),
        Some(end) => vec![end.to_owned()],
        None => vec!["did not end, or is under way".to_owned()],
    };
    if run.bundle.is_none() {
        remarks.push("bundle removed".to_owned());
    }
    remarks.extend(run.experiment.as_ref().map(|experiment| format!("in {experiment}")));
    if !run.tags.is_empty() {
        let tags: Vec<&str> = run.tags.iter().map(String::as_str).collect();
        remarks.push(format!("tags: {}", tags.join(", ")));
    }
    remarks.extend(Some(run.note.clone()).filter(|note| !note.is_empty()));
    let verdict = run.verdict.as_deref().unwrap_or("none");
    vec![
        run.position.map_or(Cell::text("-"), |position| Cell::text(position.to_string())),
        Cell::text(run.run_id.clone()),
        Cell::text(format!("{}{verdict}", if modelled { "MODELLED " } else { "" })).tone(tone),
        Cell::maybe(Unit::Rate, run.achieved_iops_per_s),
        latency(run.read_latency_ns_avg),
        latency(run.write_latency_ns_avg),
        Cell::maybe(Unit::Elapsed, run.measured_ns.map(|ns| ns as f64)),
        Cell::text(remarks.join("; ")),
    ]
}
