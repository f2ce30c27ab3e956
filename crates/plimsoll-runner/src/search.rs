//! The load line of a plan: step after step, until all is known.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::stats::tune::{Purpose, STEPS_MAX};
use plimsoll_judge::steady::INTERVALS_MIN;
use plimsoll_judge::tuning::{Range, Tuner, Tuning};
use plimsoll_plan::{
    Knob, Plan, ResolvedPlan, TargetKind, Workload, default_cache_bytes, least_cache_bytes,
};
use plimsoll_report::tuning_document;

use crate::asked::{self, Driver, Request};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::fleet::required_of;
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::places::Places;
use crate::render;

/// Largest number of threads, or queue depth, that is tried unless another is asked for.
const LOAD_MAX: u64 = 1024;
/// An open loop is tried from this share of the plan's rate to as many times that rate.
const RATE_FACTOR: u64 = 16;

/// How a search is carried out.
pub struct Asked<'a> {
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
    /// Who carries the steps out.
    pub driver: &'a dyn Driver,
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
    asked: &Asked<'_>,
    places: &Places,
    listener: &mut dyn Listener,
    interrupt: &AtomicBool,
) -> Result<Found, RunnerError> {
    let (knob, mut tuner) = begun(resolved, asked.range, asked.driver.hosts())?;
    let data = if asked.fresh { DataSlot::fresh() } else { DataSlot::handed_on() };
    let mut experiment =
        Experiment::begin(ExperimentKind::Tune, &resolved.name, &asked.bundles, places)?;
    let mut ended = None;
    while let Some((load, purpose)) = tuner.next_load() {
        let number = tuner.tuning().steps.len() + 1;
        let name = knob.load_name();
        listener.part(&format!("step {number}: {name} {load}, {}", why(purpose)));
        let step = knob.with_load(resolved, load);
        let request = Request {
            asked: asked::Asked {
                plan,
                resolved: &step,
                keep: asked.keep,
                witness: None,
                destroy: &asked.destroy,
                bundles: experiment.directory(),
                places,
                interrupt,
                driver: asked.driver,
            },
            experiment: Some(experiment.next(&format!("{name} {load}"))),
            data: &data,
        };
        let finished = match asked.driver.run_once(&request, listener) {
            Ok(finished) => finished,
            Err(error) => {
                // What was measured up to here is written already; the data is not left behind.
                data.finish(asked.keep)?;
                return Err(error);
            }
        };
        listener.finished(&finished);
        experiment.note(&finished.evidence);
        tuner.take(&finished.evidence, &finished.verdict);
        let tuning = tuner.tuning();
        experiment.write(&tuning, &render::document_html(&tuning_document(&tuning))?)?;
        if let Some(step) = tuning.steps.last() {
            listener.say(&told(step.rate_per_s, step.within, &step.note));
        }
        // Data that cannot be removed is told, and the next step would meet it.
        if finished.evidence.run.end.kind != EndKind::Completed || finished.not_removed.is_some() {
            ended = Some(finished.exit());
            break;
        }
        if interrupt.load(Ordering::Relaxed) {
            ended = Some(Exit::Interrupted);
            break;
        }
    }
    asked.driver.release(listener)?;
    let kept = data.finish(asked.keep)?;
    let tuning = tuner.tuning();
    let exit = ended.unwrap_or(match tuning.verdict() {
        VerdictKind::Pass | VerdictKind::Measured => Exit::Ok,
        VerdictKind::Fail => Exit::Fail,
        VerdictKind::Invalid | VerdictKind::Inconclusive => Exit::NoVerdict,
    });
    Ok(Found { tuning, report: experiment.report(), kept, exit })
}

/// A search before its first step: what it turns, and which load comes first.
///
/// # Errors
/// A plan that cannot be searched.
pub fn begun(
    resolved: &ResolvedPlan,
    range: Range,
    hosts: u32,
) -> Result<(Knob, Tuner), RunnerError> {
    check(resolved)?;
    if resolved.targets.len() > 1 {
        let says = "the plan names several targets, and each has a load line of its own";
        return Err(RunnerError::usage(says).hint("name one [target]"));
    }
    let knob = Knob::of(resolved).map_err(RunnerError::usage)?;
    // Of several hosts the sum is held against what is required of all.
    let required = required_of(resolved.clone(), hosts);
    let tuner = Tuner::new(&required, range).map_err(RunnerError::usage)?;
    Ok((knob, tuner))
}

/// A plan whose number of threads was left to a search.
pub enum Fewest {
    /// With the fewest that meet the requirement, or those of the load line where none does; or as it was, where
    /// it states them.
    Known(ResolvedPlan),
    /// No number keeps every ceiling, or the search was cut short: how it ended.
    None(Exit),
}

/// Searches for the number of threads of a plan that says `threads = "auto"`.
///
/// # Errors
/// As [`search`].
pub fn with_fewest_threads(
    of: &asked::Asked<'_>,
    listener: &mut dyn Listener,
) -> Result<Fewest, RunnerError> {
    let resolved = of.resolved;
    if !is_auto(resolved) {
        return Ok(Fewest::Known(resolved.clone()));
    }
    listener.say("threads = \"auto\": searching for the fewest that meet the requirement");
    let (range, bundles) = (default_range(resolved)?, of.bundles.to_path_buf());
    let driver = of.driver;
    let asked = Asked { range, fresh: false, keep: false, destroy: Vec::new(), bundles, driver };
    let found = search(of.plan, resolved, &asked, of.places, listener, of.interrupt)?;
    listener.say(&format!("the search: {}", found.report.display()));
    let at = found.tuning.fewest.or(found.tuning.load_line);
    match (found.exit, at) {
        (Exit::Ok | Exit::Fail | Exit::NoVerdict, Some(at)) => {
            listener.part(&format!("{} threads it is", at.load));
            Ok(Fewest::Known(Knob::Threads.with_load(resolved, at.load)))
        }
        (exit, _) => {
            listener
                .say("the search for the number of threads found none that keeps every ceiling");
            Ok(Fewest::None(exit))
        }
    }
}

fn is_auto(plan: &ResolvedPlan) -> bool {
    plan.workload.mailbox().is_some_and(|store| store.threads_auto)
}

/// Refuses a plan that leaves the number of threads to a search, where there is none to be made.
///
/// # Errors
/// Such a plan.
pub fn refuse_auto(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    if is_auto(plan) {
        let says = "`threads = \"auto\"` would give each target its own number of threads";
        return Err(
            RunnerError::usage(says).hint("tune each target, and state the number of threads")
        );
    }
    Ok(())
}

/// A step that is too short to see a drift in is not begun.
fn check(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let intervals = plan.phases.measure_ns / plan.evidence.interval_ns.max(1);
    if (intervals as usize) < INTERVALS_MIN {
        let says = format!(
            "the measured phase has {intervals} intervals: whether a step is steady takes at least \
             {INTERVALS_MIN}"
        );
        return Err(RunnerError::usage(says)
            .hint("measure for longer, or write a shorter `interval` in [evidence]"));
    }
    Ok(())
}

/// The loads to try: as asked for, and no more than the plan's cache and this host's memory bear.
///
/// # Errors
/// A plan without a load to turn, or limits that leave nothing.
pub fn default_range(plan: &ResolvedPlan) -> Result<Range, RunnerError> {
    let knob = Knob::of(plan).map_err(RunnerError::usage)?;
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

/// The loads that are tried: as asked, otherwise as [`default_range`] says.
///
/// # Errors
/// A plan without anything to turn, or a load that the plan's page cache does not bear.
pub fn range(
    plan: &ResolvedPlan,
    load_min: Option<u64>,
    load_max: Option<u64>,
    steps_max: usize,
) -> Result<Range, RunnerError> {
    let default = default_range(plan)?;
    let (load_min, load_max) =
        (load_min.unwrap_or(default.load_min), load_max.unwrap_or(default.load_max));
    let most = most_threads(plan);
    if load_max > most {
        let says = format!("the plan's page cache bears at most {most} threads");
        return Err(
            RunnerError::usage(says).hint(format!("write --max {most}, or plan more cache"))
        );
    }
    Ok(Range { load_min, load_max, steps_max })
}

/// Most threads that the mail store's cache bears: as stated, or in half of the memory available.
pub fn most_threads(plan: &ResolvedPlan) -> u64 {
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
