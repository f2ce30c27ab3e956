//! Limits the memory and processor time of a run on a model. For larger runs, use `plimsoll run`.

use std::num::NonZero;
use std::time::Duration;

use plimsoll_plan::{Knob, ResolvedPlan, SizeBytes, Target, TargetKind, Workload};
use plimsoll_runner::search;

use super::goal::RunGoal;
use crate::sizing::{self, DATA_BYTES_MAX, RATE_PER_S_MAX};

/// Real time (not virtual time) after which the server stops a run on models.
pub const TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Maximum number of databases over all concurrent runs. The histograms need about 1.5 MB per
/// database.
const DATABASES_MAX: u64 = 256;
/// Maximum number of outstanding operations over all concurrent runs.
const OUTSTANDING_MAX: u64 = 1 << 16;
/// Maximum number of files.
const FILES_MAX: u64 = 100_000;
/// Maximum page cache of a mail store. Each page in the cache requires a table entry.
const CACHE_BYTES_MAX: u64 = 64 << 30;
/// Maximum length of an interval, because a run checks for a stop request only once per interval.
const INTERVAL_NS_MAX: u64 = 15 * 1_000_000_000;
/// Maximum number of rows of the series. This number is the product of the numbers of classes and
/// intervals.
const ROWS_MAX: u64 = 2_000_000;
/// Approximate number of classes of operations for each database or stream.
const CLASSES_OF_ONE: u64 = 8;

/// Returns the notice that users see before a run on a model starts.
pub fn notice() -> String {
    let minutes = TIME_MAX.as_secs() / 60;
    format!(
        "runs on a model in virtual time: writes nothing, and stops after {minutes} minutes of real time"
    )
}

/// Returns true if a target is a model.
pub fn is_model(target: &Target) -> bool {
    matches!(target.kind, TargetKind::Model { .. })
}

/// Rejects a plan on a model if the model is not shipped with Plimsoll, if the changes to it exceed
/// the limits of the Models page, or if the run would use too much memory or processor time.
///
/// # Errors
/// A sentence that states the exceeded limit.
pub fn check(plan: &ResolvedPlan, goal: RunGoal) -> Result<(), String> {
    for target in &plan.targets {
        if let TargetKind::Model { model, set } = &target.kind {
            let spec = sizing::load_spec(model).map_err(|problem| {
                format!(
                    "{}: this page does not read model files of this host; {}",
                    problem.message,
                    problem.hints.join("; ")
                )
            })?;
            for (path, value) in set {
                sizing::check_change(&spec, path, value).map_err(|problem| problem.message)?;
            }
            largest(plan, goal).and_then(|plan| within(&plan))?;
        }
    }
    Ok(())
}

/// Returns the plan, changed to the largest load that a search would use.
fn largest(plan: &ResolvedPlan, goal: RunGoal) -> Result<ResolvedPlan, String> {
    let is_auto = plan.workload.mailbox().is_some_and(|store| store.threads_auto);
    if goal == RunGoal::Runs && !is_auto {
        return Ok(plan.clone());
    }
    let range = search::default_range(plan).map_err(|error| error.message)?;
    Ok(Knob::of(plan)?.with_load(plan, range.load_max))
}

fn within(plan: &ResolvedPlan) -> Result<(), String> {
    // Repeats on a model run in parallel, one on each core.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let at_a_time = u64::from(plan.repeat.runs).clamp(1, cores);
    let all = |one: u64| one.saturating_mul(at_a_time);
    let bytes = |bytes: u64| SizeBytes(bytes).about().to_string();
    check_at_most("data", all(data_bytes(&plan.workload)), DATA_BYTES_MAX, &bytes)?;
    let count = |count: u64| count.to_string();
    let (classes, rate_per_s) = match &plan.workload {
        Workload::Mailbox(store) => {
            check_at_most("databases", all(store.databases.into()), DATABASES_MAX, &count)?;
            check_at_most("sessions", all(store.threads.into()), OUTSTANDING_MAX, &count)?;
            check_at_most("the page cache", all(store.cache_bytes), CACHE_BYTES_MAX, &bytes)?;
            (u64::from(store.databases), store.target_iops_per_s)
        }
        Workload::Matrix(matrix) => {
            let streams = matrix.streams.iter();
            let depth = |depths: &[u32]| depths.iter().copied().max().unwrap_or(1);
            let deepest = u64::from(depth(&matrix.axes.queue_depths));
            let outstanding = streams.clone().fold(0, |sum: u64, stream| {
                let depth = deepest.max(stream.queue_depth.into());
                sum.saturating_add(u64::from(stream.clients).saturating_mul(depth))
            });
            let files = streams.fold(0, |sum: u64, stream| {
                let files = &stream.files;
                sum.saturating_add(u64::from(files.shares) * u64::from(files.files_per_share))
            });
            check_at_most("operations outstanding", all(outstanding), OUTSTANDING_MAX, &count)?;
            check_at_most("files", all(files), FILES_MAX, &count)?;
            let open = Knob::of(plan).is_ok_and(Knob::is_open);
            let rate = if open { Knob::Rate.load(plan) as f64 } else { 0.0 };
            (matrix.streams.len() as u64, rate)
        }
    };
    check_at_most("I/Os per second", rate_per_s as u64, RATE_PER_S_MAX as u64, &count)?;
    let interval_ns = plan.evidence.interval_ns.max(1);
    let shown = |ns: u64| plimsoll_report::elapsed(ns as f64);
    check_at_most("an interval", interval_ns, INTERVAL_NS_MAX, &shown)?;
    let lasts_ns = plan.phases.warm_up_ns.saturating_add(plan.phases.measure_ns);
    let rows = (lasts_ns / interval_ns).saturating_mul(classes.saturating_mul(CLASSES_OF_ONE));
    check_at_most("rows of its series", all(rows), ROWS_MAX, &count)
}

/// Returns the number of data bytes of a workload.
fn data_bytes(workload: &Workload) -> u64 {
    match workload {
        Workload::Mailbox(store) => {
            let one = store.database_capacity_bytes.saturating_add(store.log_bytes_per_database());
            one.saturating_mul(store.databases.into())
        }
        Workload::Matrix(matrix) => matrix.streams.iter().fold(0, |sum: u64, stream| {
            let files = u64::from(stream.files.shares) * u64::from(stream.files.files_per_share);
            let one = stream.files.file_size_bytes.unwrap_or(0);
            sum.saturating_add(one.saturating_mul(files))
        }),
    }
}

fn check_at_most(
    what: &str,
    requested: u64,
    bound: u64,
    shown: &dyn Fn(u64) -> String,
) -> Result<(), String> {
    if requested <= bound {
        return Ok(());
    }
    Err(format!(
        "{what} of a run on a model: {}, but at most {} are allowed here; `plimsoll run` has no \
         such limit",
        shown(requested),
        shown(bound)
    ))
}
