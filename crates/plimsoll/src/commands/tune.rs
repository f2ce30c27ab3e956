//! `plimsoll tune PLAN`: the load line, the knee, and the fewest threads that meet the requirement.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::stats::tune::{Purpose, STEPS_MAX};
use plimsoll_judge::steady::INTERVALS_MIN;
use plimsoll_judge::tuning::{Range, Tuner, Tuning};
use plimsoll_plan::{
    Knob, Plan, ResolvedPlan, TargetKind, Workload, default_cache_bytes, least_cache_bytes,
};
use plimsoll_report::{text, tuning_document};

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::interrupt;
use crate::kept_data::DataSlot;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::session::{Request, run_once};

/// Largest number of threads, or queue depth, that is tried unless another is asked for.
const LOAD_MAX: u64 = 1024;
/// An open loop is tried from this share of the plan's rate to as many times that rate.
const RATE_FACTOR: u64 = 16;

/// Options of `tune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll tune exchange-1000-heavy.toml\n  plimsoll tune plan.toml \
    --max 64 --json\n\nA mail store is turned by its threads, the clients of a matrix by their \
    queue depth, an open loop\nby its rate. Each step is a run with a bundle of its own."
)]
pub struct Options {
    /// The plan.
    plan: PathBuf,
    /// Smallest load to try: threads, queue depth, or operations per second of an open loop.
    #[arg(long, value_name = "LOAD")]
    min: Option<u64>,
    /// Largest load to try.
    #[arg(long, value_name = "LOAD")]
    max: Option<u64>,
    /// Most steps, 16 at most.
    #[arg(long, value_name = "N", default_value_t = STEPS_MAX)]
    steps: usize,
    /// Make the data anew for each step; otherwise each step works on the data of the one before.
    #[arg(long)]
    fresh: bool,
    /// Keep the data after the last step.
    #[arg(long)]
    keep: bool,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Finds the load line.
///
/// # Errors
/// A plan that is wrong or has nothing to turn, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = super::plan::load(&options.plan)?;
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let places = keys::places(&options.sign)?;
    let resolved = plan.resolve();
    let bundles = places.bundles(options.out.as_deref())?;
    let range = range(options, &resolved)?;
    let destroy = options.destroy.clone();
    let asked = Asked { range, fresh: options.fresh, keep: options.keep, destroy, bundles };
    let found = search(&plan, &resolved, &asked, &places, &mut progress, &interrupt)?;
    show(&found, common)?;
    for directory in &found.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(found.exit)
}

/// How a search is carried out.
pub struct Asked {
    /// Between which loads.
    pub range: Range,
    /// Whether each step makes its data anew.
    pub fresh: bool,
    /// Whether the data stays after the last step.
    pub keep: bool,
    /// Devices whose data may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Where the experiment's directory is made.
    pub bundles: PathBuf,
}

/// What a search found.
pub struct Found {
    /// The curve and what follows from it.
    pub tuning: Tuning,
    /// The report's path.
    pub report: PathBuf,
    /// Where the data was kept.
    pub kept: Vec<String>,
    /// How it ended.
    pub exit: Exit,
}

/// Measures step after step until all is known; what was found is written after each.
///
/// # Errors
/// A plan that cannot be searched, a target that cannot be used.
pub fn search(
    plan: &Plan,
    resolved: &ResolvedPlan,
    asked: &Asked,
    places: &Places,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Found, CliError> {
    check(resolved)?;
    if resolved.targets.len() > 1 {
        let says = "the plan names several targets, and each has a load line of its own";
        return Err(CliError::usage(says).hint("name one [target]"));
    }
    let knob = Knob::of(resolved).map_err(CliError::usage)?;
    let mut tuner = Tuner::new(resolved, asked.range).map_err(CliError::usage)?;
    let data = if asked.fresh { DataSlot::fresh() } else { DataSlot::handed_on() };
    let mut experiment =
        Experiment::begin(ExperimentKind::Tune, &resolved.name, &asked.bundles, places)?;
    let mut ended = None;
    while let Some((load, purpose)) = tuner.next_load() {
        let number = tuner.tuning().steps.len() + 1;
        let name = knob.load_name();
        progress.say(&format!("step {number}: {name} {load}, {}", why(purpose)));
        let step = knob.turned(resolved, load);
        let request = Request {
            plan,
            resolved: &step,
            keep: asked.keep,
            witness: None,
            destroy: &asked.destroy,
            bundles: experiment.directory(),
            places,
            interrupt,
            experiment: Some(experiment.next(&format!("{name} {load}"))),
            data: &data,
        };
        let finished = match run_once(&request, progress) {
            Ok(finished) => finished,
            Err(error) => {
                // What was measured up to here is written already; the data is not left behind.
                data.finish(asked.keep)?;
                return Err(error);
            }
        };
        experiment.note(&finished.evidence);
        tuner.take(&finished.evidence, &finished.verdict);
        let tuning = tuner.tuning();
        experiment.write(&tuning, &bundle::document_html(&tuning_document(&tuning))?)?;
        if let Some(step) = tuning.steps.last() {
            progress.say(&told(step.rate_per_s, step.within, &step.note));
        }
        if finished.evidence.run.end.kind != EndKind::Completed {
            ended = Some(finished.exit());
            break;
        }
        if interrupt.load(Ordering::Relaxed) {
            ended = Some(Exit::Interrupted);
            break;
        }
    }
    let kept = data.finish(asked.keep)?;
    let tuning = tuner.tuning();
    let exit = ended.unwrap_or(match tuning.verdict() {
        VerdictKind::Pass | VerdictKind::Measured => Exit::Ok,
        VerdictKind::Fail => Exit::Fail,
        VerdictKind::Invalid | VerdictKind::Inconclusive => Exit::NoVerdict,
    });
    Ok(Found { tuning, report: experiment.report(), kept, exit })
}

/// Refuses a plan that leaves the number of threads to a search, where there is none to be made.
///
/// # Errors
/// Such a plan.
pub fn refuse_auto(plan: &ResolvedPlan) -> Result<(), CliError> {
    if plan.workload.mailbox().is_some_and(|store| store.threads_auto) {
        let says = "`threads = \"auto\"` would give each target its own number of threads";
        return Err(CliError::usage(says).hint("tune each target, and state the number of threads"));
    }
    Ok(())
}

/// A step that is too short to see a drift in is not begun.
fn check(plan: &ResolvedPlan) -> Result<(), CliError> {
    let intervals = plan.phases.measure_ns / plan.evidence.interval_ns.max(1);
    if (intervals as usize) < INTERVALS_MIN {
        let says = format!(
            "the measured phase has {intervals} intervals: whether a step is steady takes at least \
             {INTERVALS_MIN}"
        );
        return Err(CliError::usage(says)
            .hint("measure for longer, or write a shorter `interval` in [evidence]"));
    }
    Ok(())
}

/// The loads to try: as asked for, and no more than the plan's cache and this host's memory bear.
///
/// # Errors
/// A plan without a load to turn, or limits that leave nothing.
pub fn default_range(plan: &ResolvedPlan) -> Result<Range, CliError> {
    let knob = Knob::of(plan).map_err(CliError::usage)?;
    if knob.is_open() {
        let rate = knob.load(plan);
        return Ok(Range {
            load_min: (rate / RATE_FACTOR).max(1),
            load_max: rate.saturating_mul(RATE_FACTOR),
            steps_max: STEPS_MAX,
        });
    }
    Ok(Range::up_to(LOAD_MAX.min(most_threads(plan))))
}

fn range(options: &Options, plan: &ResolvedPlan) -> Result<Range, CliError> {
    let default = default_range(plan)?;
    let range = Range {
        load_min: options.min.unwrap_or(default.load_min),
        load_max: options.max.unwrap_or(default.load_max),
        steps_max: options.steps,
    };
    let most = most_threads(plan);
    if range.load_max > most {
        let says = format!("the plan's page cache bears at most {most} threads");
        return Err(CliError::usage(says).hint(format!("write --max {most}, or plan more cache")));
    }
    Ok(range)
}

/// Most threads that the mail store's cache bears: as stated, or in half of the memory available.
fn most_threads(plan: &ResolvedPlan) -> u64 {
    let Workload::Mailbox(store) = &plan.workload else { return u64::MAX };
    // The page cache of a modelled host takes no memory of this one.
    let modelled = plan.targets.iter().any(|t| matches!(t.kind, TargetKind::Model { .. }));
    let half = match plimsoll_observe::environment::collect(&[]).memory_available_bytes {
        Some(bytes) if !modelled => bytes / 2,
        _ => u64::MAX,
    };
    let bears = |threads: u32| {
        if store.cache_from_threads {
            default_cache_bytes(threads, store.databases, store.coalesce_max_bytes) <= half
        } else {
            let least = least_cache_bytes(threads, store.databases, store.coalesce_max_bytes);
            least <= store.cache_bytes
        }
    };
    let all: Vec<u32> = (1..=65_536).collect();
    all.partition_point(|&threads| bears(threads)).max(1) as u64
}

fn why(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Grow => "to see where the curve bends",
        Purpose::Refine => "to find the highest load within the ceilings",
        Purpose::Requirement => "to find the fewest that meet the requirement",
        Purpose::Repeat => "again, because it was not steady",
        Purpose::Confirm => "to confirm the answer",
    }
}

fn told(rate_per_s: Option<f64>, within: Option<bool>, note: &str) -> String {
    let rate = rate_per_s.map_or("nothing measured".to_owned(), |rate| format!("{rate:.1}/s"));
    let within = match within {
        Some(true) => ", within every ceiling",
        Some(false) => ", above a ceiling",
        None => "",
    };
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("        {rate}{within}{note}")
}

fn show(found: &Found, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&found.tuning)?);
    }
    let mut text = text::document(&tuning_document(&found.tuning), &bundle::style(common));
    text.push_str(&format!("\nreport: {}\n", found.report.display()));
    bundle::print(&text)
}
