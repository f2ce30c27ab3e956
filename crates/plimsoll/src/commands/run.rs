//! `plimsoll run PLAN`: prepare, measure, verify, judge, report; as often as the plan says.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use plimsoll_evidence::run::{EndKind, ExperimentKind, Membership};
use plimsoll_judge::experiment;
use plimsoll_plan::{Knob, Plan, ResolvedPlan};

use super::tune::{self, Asked};
use super::{arms, bundle};
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::interrupt;
use crate::kept_data::DataSlot;
use crate::keys::{self, Sign};
use crate::modelled;
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
    let runs = resolved.repeat.runs.max(1);
    let hands_on = runs > 1 && !resolved.repeat.fresh;
    let data = if hands_on { DataSlot::handed_on() } else { DataSlot::fresh() };
    let mut experiment = (runs > 1)
        .then(|| Experiment::begin(ExperimentKind::Repeat, &resolved.name, bundles, &places))
        .transpose()?;
    let mut finished: Vec<Finished> = Vec::new();
    if let (Some(experiment), Some(_)) = (&mut experiment, modelled::named(&resolved)) {
        let request = Request {
            plan,
            resolved: &resolved,
            keep: false,
            witness: None,
            destroy: &[],
            bundles: experiment.directory(),
            places: &places,
            interrupt,
            experiment: None,
            data: &data,
        };
        let place = |number| Membership { number, ..experiment.next("") };
        let all = modelled::side_by_side(&request, (1..=runs).map(place).collect(), progress);
        for one in all {
            finished.push(one?);
            note(experiment, &finished)?;
        }
        show(&finished, Some(experiment), common)?;
        return Ok(worst(&finished));
    }
    for run in 1..=runs {
        if runs > 1 {
            progress.say(&format!("run {run} of {runs}"));
        }
        let request = Request {
            plan,
            resolved: &resolved,
            keep: after.keep,
            witness: after.witness.as_deref(),
            destroy: &after.destroy,
            bundles: experiment.as_ref().map_or(bundles, Experiment::directory),
            places: &places,
            interrupt,
            experiment: experiment.as_ref().map(|experiment| experiment.next("")),
            data: &data,
        };
        let one = match run_once(&request, progress) {
            Ok(one) => one,
            Err(error) => {
                data.finish(after.keep)?;
                return Err(error);
            }
        };
        let completed = one.evidence.run.end.kind == EndKind::Completed;
        finished.push(one);
        if let Some(experiment) = &mut experiment {
            note(experiment, &finished)?;
        }
        if interrupt.load(Ordering::Relaxed) || !completed {
            break;
        }
    }
    let kept = data.finish(after.keep)?;
    show(&finished, experiment.as_ref(), common)?;
    for directory in finished.last().into_iter().flat_map(|last| &last.kept).chain(&kept) {
        progress.say(&format!("the data was kept in {directory}"));
    }
    for error in finished.iter().filter_map(|run| run.not_removed.as_ref()) {
        progress.warn(&format!("the data could not be removed: {error}"));
    }
    Ok(worst(&finished))
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
    let range = tune::default_range(resolved)?;
    let asked = Asked { range, fresh: false, keep: false, destroy: Vec::new(), bundles };
    let found = tune::search(plan, resolved, &asked, places, progress, interrupt)?;
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

/// The runs so far, taken together.
fn together(finished: &[Finished]) -> experiment::Experiment {
    let runs: Vec<_> = finished.iter().map(|f| (&f.evidence, &f.verdict)).collect();
    experiment::summarise(&runs)
}

/// Enters the latest run in its experiment, and writes what the runs say so far.
fn note(experiment: &mut Experiment, finished: &[Finished]) -> Result<(), CliError> {
    let Some(latest) = finished.last() else { return Ok(()) };
    experiment.note(&latest.evidence);
    let together = together(finished);
    let document = plimsoll_report::experiment_document(&together);
    experiment.write(&together, &bundle::document_html(&document)?)
}

/// Shows the verdict of a single run, or the runs of an experiment together.
fn show(
    finished: &[Finished],
    experiment: Option<&Experiment>,
    common: &Common,
) -> Result<(), CliError> {
    if let ([only], None) = (finished, experiment) {
        return bundle::show(&only.directory, &only.evidence, &only.verdict, common);
    }
    let together = together(finished);
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

/// The exit code of several runs: 70, 130, 4, 5, 3, 1, whichever of them comes first.
pub fn worst(finished: &[Finished]) -> Exit {
    finished.iter().map(Finished::exit).fold(Exit::Ok, Exit::worse)
}
