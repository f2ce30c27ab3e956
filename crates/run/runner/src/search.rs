//! Searches for the load line of a plan, step by step.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_engine::matrix;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::stats::tune::{Purpose, STEPS_MAX};
use plimsoll_judge::steady::INTERVALS_MIN;
use plimsoll_judge::tuning::{Range, Tuner, Tuning};
use plimsoll_plan::{
    DurationNs, Knob, Plan, QUEUE_DEPTH_MAX, ResolvedPlan, TargetKind, VariedLoad, Workload,
    default_cache_bytes, least_cache_bytes,
};
use plimsoll_report::tuning_document;

use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::fleet::{carry_shares, scale_requirement};
use crate::listener::Listener;
use crate::places::Places;
use crate::render;
use crate::run_request::{self, Driver, RunRequest};

/// Default maximum number of threads, or queue depth.
const LOAD_MAX: u64 = 1024;
/// Factor for open loops: the search varies the rate from the plan's rate divided by this factor to
/// the plan's rate times this factor.
const RATE_FACTOR: u64 = 16;

pub struct SearchOptions<'a> {
    /// Range of loads.
    pub range: Range,
    /// True if each step of the search creates its own data.
    pub fresh: bool,
    /// True to keep the data after the last step.
    pub keep: bool,
    /// Devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Parent of the experiment's directory.
    pub bundles: PathBuf,
    /// Driver that executes the steps.
    pub driver: &'a dyn Driver,
}

pub struct SearchResult {
    /// Measured curve, and the conclusions from it.
    pub tuning: Tuning,
    pub report: PathBuf,
    /// Directories with data that was kept.
    pub kept: Vec<String>,
    /// Exit code.
    pub exit: Exit,
}

/// Measures step after step until the search is complete. Writes the result after each step.
///
/// # Errors
/// The plan does not allow a search for the load line, or the target is unusable.
pub fn search(
    plan: &Plan,
    resolved: &ResolvedPlan,
    options: &SearchOptions<'_>,
    places: &Places,
    listener: &mut dyn Listener,
    interrupt: &AtomicBool,
) -> Result<SearchResult, RunnerError> {
    let (varied, mut tuner) = prepare(resolved, options.range.clone(), options.driver.hosts())?;
    let data = if options.fresh { DataSlot::fresh() } else { DataSlot::reused() };
    let mut experiment =
        Experiment::begin(ExperimentKind::Tune, &resolved.name, &options.bundles, places)?;
    let mut early_exit = None;
    while let Some((load, purpose)) = tuner.next_load() {
        let number = tuner.tuning().steps.len() + 1;
        let name = varied.load_name();
        listener.part(&format!("step {number}: {name} {load}, {}", purpose_text(purpose)));
        let step = varied.with_load(resolved, load);
        let request = RunRequest {
            config: run_request::RunConfig {
                plan,
                resolved: &step,
                keep: options.keep,
                witness: None,
                destroy: &options.destroy,
                bundles: experiment.directory(),
                places,
                interrupt,
                driver: options.driver,
            },
            experiment: Some(experiment.next_membership(&format!("{name} {load}"))),
            data: &data,
        };
        let finished = match options.driver.run_once(&request, listener) {
            Ok(finished) => finished,
            Err(error) => {
                // The result of the earlier steps has already been written, so only the data must
                // be removed.
                data.finish(options.keep)?;
                return Err(error);
            }
        };
        listener.finished(&finished);
        experiment.note(&finished.evidence);
        tuner.record(&finished.evidence, &finished.verdict);
        let tuning = tuner.tuning();
        experiment.write(&tuning, &render::document_html(&tuning_document(&tuning))?)?;
        if let Some(step) = tuning.steps.last() {
            listener.say(&step_line(step.rate_per_s, step.within, &step.note));
        }
        // The search ends here, because the data that could not be removed would affect the next
        // step.
        if finished.evidence.run.end.kind != EndKind::Completed || finished.removal_error.is_some()
        {
            early_exit = Some(finished.exit());
            break;
        }
        if interrupt.load(Ordering::Relaxed) {
            early_exit = Some(Exit::Interrupted);
            break;
        }
    }
    options.driver.release(listener)?;
    let kept = data.finish(options.keep)?;
    let tuning = tuner.tuning();
    let exit = early_exit.unwrap_or(match tuning.verdict() {
        VerdictKind::Pass | VerdictKind::Measured => Exit::Ok,
        VerdictKind::Fail => Exit::Fail,
        VerdictKind::Invalid | VerdictKind::Inconclusive => Exit::NoVerdict,
    });
    Ok(SearchResult { tuning, report: experiment.report(), kept, exit })
}

/// Prepares a search: returns the load that is varied and the state of the search.
///
/// # Errors
/// The plan cannot be searched.
pub fn prepare(
    resolved: &ResolvedPlan,
    range: Range,
    hosts: u32,
) -> Result<(VariedLoad, Tuner), RunnerError> {
    check_length(resolved)?;
    if resolved.targets.len() > 1 {
        let says = "the plan has several targets, but a search can test only one";
        return Err(RunnerError::usage(says).hint("use a plan with one [target]"));
    }
    let varied = VariedLoad::of(resolved, &range.vary).map_err(RunnerError::usage)?;
    // On several hosts, the sum of their rates is compared with the sum of their requirements.
    let required = scale_requirement(resolved.clone(), hosts);
    let hosts = if carry_shares(resolved) { 1 } else { hosts.max(1) };
    let tuner = Tuner::new(&required, Range { hosts, ..range }).map_err(RunnerError::usage)?;
    Ok((varied, tuner))
}

/// Result of the search for the number of threads that a plan should use.
pub enum ThreadSearch {
    /// The plan with the chosen number of threads. This is the smallest number that meets the
    /// requirement, or otherwise the number at the load line. A plan that states a number is
    /// unchanged.
    Known(ResolvedPlan),
    /// Every number of threads exceeded a latency ceiling, or the search was stopped. Contains the
    /// exit code.
    None(Exit),
}

/// Searches for the number of threads if the plan has `threads = "auto"`.
///
/// # Errors
/// The errors of [`search`].
pub fn resolve_threads(
    config: &run_request::RunConfig<'_>,
    listener: &mut dyn Listener,
) -> Result<ThreadSearch, RunnerError> {
    let resolved = config.resolved;
    if !is_auto(resolved) {
        return Ok(ThreadSearch::Known(resolved.clone()));
    }
    listener.say(
        "threads = \"auto\": searching for the smallest number of threads that meets the \
         requirement",
    );
    let (range, bundles) = (default_range(resolved)?, config.bundles.to_path_buf());
    let driver = config.driver;
    let options =
        SearchOptions { range, fresh: false, keep: false, destroy: Vec::new(), bundles, driver };
    let found = search(config.plan, resolved, &options, config.places, listener, config.interrupt)?;
    listener.say(&format!("report on the search: {}", found.report.display()));
    let at = found.tuning.required_load.or(found.tuning.load_line);
    match (found.exit, at) {
        (Exit::Ok | Exit::Fail | Exit::NoVerdict, Some(at)) => {
            listener.part(&format!("using {} threads", at.load));
            Ok(ThreadSearch::Known(Knob::Threads.with_load(resolved, at.load)))
        }
        (exit, _) => {
            listener.say("every number of threads in the search exceeded a latency ceiling");
            Ok(ThreadSearch::None(exit))
        }
    }
}

fn is_auto(plan: &ResolvedPlan) -> bool {
    plan.workload.mailbox().is_some_and(|store| store.threads_auto)
}

/// Rejects `threads = "auto"` if no search is possible.
///
/// # Errors
/// The plan has `threads = "auto"`.
pub fn refuse_auto(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    if is_auto(plan) {
        let says =
            "`threads = \"auto\"` would choose a different number of threads for each target";
        return Err(RunnerError::usage(says)
            .hint("tune each target separately, and set the number of threads in the plan"));
    }
    Ok(())
}

/// Rejects a measured phase that is too short to detect a drift.
fn check_length(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let intervals = plan.phases.measure_ns / plan.evidence.interval_ns.max(1);
    if (intervals as usize) < INTERVALS_MIN {
        let says = format!(
            "the measured phase has {intervals} intervals, but at least {INTERVALS_MIN} are \
             required to decide whether the rate is steady"
        );
        let each_ns = plan.phases.measure_ns / INTERVALS_MIN as u64;
        let interval = DurationNs(each_ns.max(DurationNs::ms(10).0));
        return Err(RunnerError::usage(says).hint(format!(
            "measure for longer, or set a shorter interval: --set evidence.interval={interval}"
        )));
    }
    Ok(())
}

/// Returns the default range of loads, limited by the plan's cache and this host's memory.
///
/// # Errors
/// The plan has no load that can be varied, or the range is empty.
pub fn default_range(plan: &ResolvedPlan) -> Result<Range, RunnerError> {
    default_range_of(plan, &[])
}

/// Returns the default range of loads for the streams in `vary`, or for all streams if `vary` is
/// empty.
fn default_range_of(plan: &ResolvedPlan, vary: &[String]) -> Result<Range, RunnerError> {
    let varied = VariedLoad::of(plan, vary).map_err(RunnerError::usage)?;
    let vary = vary.to_vec();
    if varied.knob().is_open() {
        let rate = varied.load(plan);
        return Ok(Range {
            load_min: (rate / RATE_FACTOR).max(1),
            load_max: rate.saturating_mul(RATE_FACTOR),
            steps_max: STEPS_MAX,
            vary,
            hosts: 1,
        });
    }
    let most = most_load(plan, &varied);
    Ok(Range { vary, ..Range::up_to(LOAD_MAX.min(most)) })
}

/// Returns the range of loads. Limits that the user does not set come from [`default_range`].
///
/// # Errors
/// The plan has no load that can be varied, or the load is too large for the plan or this host.
pub fn range(
    plan: &ResolvedPlan,
    load_min: Option<u64>,
    load_max: Option<u64>,
    steps_max: usize,
    vary: &[String],
) -> Result<Range, RunnerError> {
    let default = default_range_of(plan, vary)?;
    let (load_min, load_max) =
        (load_min.unwrap_or(default.load_min), load_max.unwrap_or(default.load_max));
    if load_min > load_max {
        let says =
            format!("the smallest load ({load_min}) is higher than the largest load ({load_max})");
        return Err(RunnerError::usage(says).hint("pass a value of --max that is not below --min"));
    }
    let varied = VariedLoad::of(plan, vary).map_err(RunnerError::usage)?;
    let most = most_load(plan, &varied);
    if load_min.max(load_max) > most {
        let (says, or) = match varied.knob() {
            Knob::Threads => (
                format!("the plan's page cache is too small for more than {most} threads"),
                "configure more cache",
            ),
            _ => (
                format!("the search varies the queue depth, and this load supports at most {most}"),
                "use fewer clients",
            ),
        };
        return Err(RunnerError::usage(says).hint(format!("pass --max {most}, or {or}")));
    }
    Ok(Range { load_min, load_max, steps_max, ..default })
}

/// Returns the largest load that the plan supports on this host.
fn most_load(plan: &ResolvedPlan, varied: &VariedLoad) -> u64 {
    match varied.knob() {
        Knob::Threads => most_threads(plan),
        Knob::Rate => u64::MAX,
        Knob::QueueDepth => {
            let fits = |depth: &u64| {
                let step = varied.with_load(plan, *depth);
                let Workload::Matrix(matrix) = &step.workload else { return true };
                let mut targets = step.targets.iter();
                targets.all(|target| matrix::check_depth(&step, target, matrix).is_ok())
            };
            let all: Vec<u64> = (1..=QUEUE_DEPTH_MAX).collect();
            all.partition_point(fits).max(1) as u64
        }
    }
}

/// Returns the largest number of threads that the mail store's cache allows. The cache has the size
/// stated in the plan, or half of the available memory.
pub fn most_threads(plan: &ResolvedPlan) -> u64 {
    let Workload::Mailbox(store) = &plan.workload else { return u64::MAX };
    // The page cache of a model uses no memory of this host.
    let modelled = plan.targets.iter().any(|t| matches!(t.kind, TargetKind::Model { .. }));
    let half = match plimsoll_observe::environment::collect(&[]).memory_available_bytes {
        Some(bytes) if !modelled => bytes / 2,
        _ => u64::MAX,
    };
    let fits = |threads: u32| {
        if store.cache_from_threads {
            default_cache_bytes(threads, store.databases, store.coalesce_max_bytes) <= half
        } else {
            let least = least_cache_bytes(threads, store.databases, store.coalesce_max_bytes);
            least <= store.cache_bytes
        }
    };
    let all: Vec<u32> = (1..=65_536).collect();
    all.partition_point(|&threads| fits(threads)).max(1) as u64
}

fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Grow => "to see where the curve bends",
        Purpose::Refine => "to find the highest load within the latency ceilings",
        Purpose::Requirement => "to find the smallest load that meets the requirement",
        Purpose::Repeat => "repeated, because the rate was not steady",
        Purpose::Confirm => "to confirm the result",
    }
}

fn step_line(rate_per_s: Option<f64>, within: Option<bool>, note: &str) -> String {
    let rate = rate_per_s.map_or("nothing measured".to_owned(), |rate| format!("{rate:.1}/s"));
    let within = match within {
        Some(true) => ", within every latency ceiling",
        Some(false) => ", above a latency ceiling",
        None => "",
    };
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("        {rate}{within}{note}")
}
