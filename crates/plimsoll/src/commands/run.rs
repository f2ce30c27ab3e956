//! `plimsoll run PLAN`: prepare, measure, verify, judge, report; as often as the plan says.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use plimsoll_judge::experiment;
use plimsoll_plan::Plan;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::session::{Finished, Request, run_once};

/// Options of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll run exchange-1000-heavy.toml\n  plimsoll run plan.toml \
    --keep --json"
)]
pub struct Options {
    /// The plan.
    plan: PathBuf,
    #[command(flatten)]
    after: After,
}

/// What becomes of the data and the evidence.
#[derive(Clone, Debug, Args)]
pub struct After {
    /// Keep the data after the run: `plimsoll verify` can check it.
    #[arg(long)]
    pub keep: bool,
    /// Write each durable commit that is acknowledged to this file or pipe, for tests of durability:
    /// `plimsoll verify --witness` then asks after each.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs a plan.
///
/// # Errors
/// A plan that is wrong, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = super::plan::load(&options.plan)?;
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    run_plan(&plan, &options.after, common, &mut progress, &interrupt)
}

/// Runs a plan that was read or made, and shows its verdict; with repeats, each verdict and then all
/// runs together.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn run_plan(
    plan: &Plan,
    after: &After,
    common: &Common,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let resolved = plan.resolve();
    let request = Request {
        plan,
        resolved: &resolved,
        keep: after.keep,
        witness: after.witness.as_deref(),
        bundles: after.out.as_deref().unwrap_or(&places.runs),
        places: &places,
        interrupt,
    };
    let runs = resolved.repeat.runs.max(1);
    let mut finished = Vec::new();
    for run in 1..=runs {
        if runs > 1 {
            progress.say(&format!("run {run} of {runs}"));
        }
        finished.push(run_once(&request, progress)?);
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    show(&finished, common)?;
    for directory in finished.last().into_iter().flat_map(|last| &last.kept) {
        progress.say(&format!("the data was kept in {directory}"));
    }
    for error in finished.iter().filter_map(|run| run.not_removed.as_ref()) {
        eprintln!("the data could not be removed: {error}");
    }
    Ok(worst(&finished))
}

/// Shows the verdict of a single run, or the runs of an experiment together.
fn show(finished: &[Finished], common: &Common) -> Result<(), CliError> {
    if let [only] = finished {
        return bundle::show(&only.directory, &only.evidence, &only.verdict, common);
    }
    let runs: Vec<_> = finished.iter().map(|f| (&f.evidence, &f.verdict)).collect();
    let experiment = experiment::summarise(&runs);
    if common.json {
        return bundle::print(&bundle::json(&experiment)?);
    }
    let mut text = plimsoll_report::experiment(&experiment, &bundle::style(common));
    for run in finished {
        text.push_str(&format!("report: {}\n", run.directory.join("report.html").display()));
    }
    bundle::print(&text)
}

/// The exit code of several runs: 70, 130, 4, 5, 3, 1, whichever of them comes first.
fn worst(finished: &[Finished]) -> Exit {
    let rank = |exit: &Exit| match exit {
        Exit::Defect => 0,
        Exit::Interrupted => 1,
        Exit::Corruption => 2,
        Exit::Environment => 3,
        Exit::NoVerdict => 4,
        Exit::Fail => 5,
        Exit::Usage => 6,
        Exit::Ok => 7,
    };
    finished.iter().map(Finished::exit).min_by_key(rank).unwrap_or(Exit::Ok)
}
