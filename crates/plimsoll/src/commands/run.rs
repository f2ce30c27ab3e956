//! `plimsoll run PLAN`: prepare, measure, verify, judge, report; as often as the plan says.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use plimsoll_plan::{Knob, Plan, ResolvedPlan};
use plimsoll_runner::repeat::{self, Repeated};
use plimsoll_runner::search::{self, Asked};
use plimsoll_runner::session;

use super::{arms, bundle};
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;

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
#[derive(Clone, Debug, Default, Args)]
pub struct After {
    /// Keep the data after the run: `plimsoll verify` can check it.
    #[arg(long)]
    pub keep: bool,
    /// Write each durable commit that is acknowledged to this file or pipe, for tests of durability:
    /// `plimsoll verify --witness` then asks after each.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// A block device whose data may be overwritten, named in full: `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Vec<PathBuf>,
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub sign: Sign,
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
    let places = keys::places(&after.sign)?;
    let mut resolved = plan.resolve();
    if resolved.targets.len() > 1 {
        return arms::run_arms(plan, after, &[], common, progress, interrupt);
    }
    if resolved.workload.mailbox().is_some_and(|store| store.threads_auto) {
        match with_fewest_threads(plan, &resolved, after, &places, progress, interrupt)? {
            Ok(with_threads) => resolved = with_threads,
            Err(exit) => return Ok(exit),
        }
    }
    let bundles = &places.bundles(after.out.as_deref())?;
    let repeated = repeat::carry_out(
        &session::Asked {
            plan,
            resolved: &resolved,
            keep: after.keep,
            witness: after.witness.as_deref(),
            destroy: &after.destroy,
            bundles,
            places: &places,
            interrupt,
        },
        progress,
    )?;
    show(&repeated, common)?;
    let Repeated { finished, kept, .. } = &repeated;
    for directory in finished.last().into_iter().flat_map(|last| &last.kept).chain(kept) {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(repeated.exit())
}

/// `threads = "auto"`: the plan with the fewest threads that meet the requirement, or those of the
/// load line where none does; how the search ended, if it found neither.
fn with_fewest_threads(
    plan: &Plan,
    resolved: &ResolvedPlan,
    after: &After,
    places: &Places,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Result<ResolvedPlan, Exit>, CliError> {
    progress.say("threads = \"auto\": searching for the fewest that meet the requirement");
    let bundles = places.bundles(after.out.as_deref())?;
    let range = search::default_range(resolved)?;
    let asked = Asked { range, fresh: false, keep: false, destroy: Vec::new(), bundles };
    let found = search::search(plan, resolved, &asked, places, progress, interrupt)?;
    progress.say(&format!("the search: {}", found.report.display()));
    let at = found.tuning.fewest.or(found.tuning.load_line);
    match (found.exit, at) {
        (Exit::Ok | Exit::Fail | Exit::NoVerdict, Some(at)) => {
            progress.say(&format!("{} threads it is", at.load));
            Ok(Ok(Knob::Threads.turned(resolved, at.load)))
        }
        (exit, _) => {
            let reason = "the search for the number of threads found none that keeps every ceiling";
            progress.say(reason);
            Ok(Err(exit))
        }
    }
}

/// Shows the verdict of a single run, or the runs of an experiment together.
fn show(repeated: &Repeated, common: &Common) -> Result<(), CliError> {
    let Repeated { finished, experiment, .. } = repeated;
    if let ([only], None) = (&finished[..], experiment) {
        return bundle::show(&only.directory, &only.evidence, &only.verdict, common);
    }
    let together = repeated.together();
    if common.json {
        return bundle::print(&bundle::json(&together)?);
    }
    let mut text = plimsoll_report::experiment(&together, &bundle::style(common));
    for run in finished {
        text.push_str(&format!("report: {}\n", run.directory.join("report.html").display()));
    }
    if let Some(experiment) = experiment {
        text.push_str(&format!("together: {}\n", experiment.report().display()));
    }
    bundle::print(&text)
}
