//! Checks a plan before its runs start, and estimates their duration, space, bytes written and end.
//! Rejects data that does not fit, and measurements of more than 30 days.

mod probe;

use std::path::{Path, PathBuf};

use plimsoll_engine::durability::{TargetPlace, directory_space};
use plimsoll_engine::{EngineError, Space, matrix, space};
use plimsoll_judge::stats::tune::STEPS_MAX;
use plimsoll_judge::tuning::Range;
use plimsoll_plan::{ResolvedPlan, SizeBytes, Target, TargetKind, Workload};
use plimsoll_report::elapsed;
use plimsoll_sys::clock;

use crate::arms;
use crate::error::{RunnerError, engine_error};
use crate::listener::Listener;
use crate::run_id::utc;
use crate::run_request::reject_fleet_plan;
use crate::session::check_plan;
use crate::{durability, search, sweep, trace};

/// Longest measurement without `--yes`: 30 days.
pub const MEASURE_NS_MAX: u64 = 30 * 24 * 3_600 * 1_000_000_000;
/// Number and kind of a plan's runs, and the options that the user selected.
#[derive(Clone, Debug)]
pub struct Preflight {
    /// Number of measurements (runs, points or steps) of all targets.
    pub measurements: u64,
    /// Name of one measurement: "run", "point" or "step".
    pub unit: &'static str,
    /// Number of data sets that are created.
    pub data_sets: u64,
    /// True if the user accepted a measurement of more than 30 days (`--yes`).
    pub yes: bool,
    /// True for a dry run, which only makes checks and estimates.
    pub dry_run: bool,
    /// Lines that a dry run prints, one for each run, point or step, in order.
    pub listing: Vec<String>,
    /// Block devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// True if the data is kept after the run; its generations are then tracked.
    pub keep: bool,
}

impl Preflight {
    /// Returns the scope of a plan's runs. It includes all repeats and targets.
    #[must_use]
    pub fn runs(plan: &ResolvedPlan, yes: bool, dry_run: bool) -> Self {
        let (runs, targets) = (u64::from(plan.repeat.runs.max(1)), plan.targets.len() as u64);
        let data_sets = if plan.repeat.fresh { runs * targets } else { targets };
        let all = runs * targets;
        let order = if targets > 1 && dry_run {
            arms::order(plan.targets.len(), plan.repeat.runs.max(1), plan.seed)
        } else {
            Vec::new()
        };
        let line = |(at, &arm): (usize, &usize)| {
            let name = plan.targets.get(arm).map_or("", |target| target.name.as_str());
            format!("run {} of {all}: {name}", at + 1)
        };
        let listing = order.iter().enumerate().map(line).collect();
        let (destroy, keep) = (Vec::new(), false);
        Self { measurements: all, unit: "run", data_sets, yes, dry_run, listing, destroy, keep }
    }

    /// Sets which devices may be overwritten, and whether the data is kept.
    #[must_use]
    pub fn with_data(self, destroy: &[PathBuf], keep: bool) -> Self {
        Self { destroy: destroy.to_vec(), keep, ..self }
    }

    /// Returns the scope of a search for the load line. It includes the maximum number of steps. If
    /// `fresh` is true, each step creates its own data.
    ///
    /// # Errors
    /// The plan has no load that can be varied.
    pub fn steps(
        plan: &ResolvedPlan,
        range: &Range,
        fresh: bool,
        yes: bool,
        dry_run: bool,
    ) -> Result<Self, RunnerError> {
        let (varied, _) = search::prepare(plan, range.clone(), 1)?;
        let steps = range.steps_max.min(STEPS_MAX) as u64;
        let (low, high) = (range.load_min, range.load_max);
        Ok(Self {
            measurements: steps,
            unit: "step",
            data_sets: if fresh { steps } else { 1 },
            yes,
            dry_run,
            listing: vec![format!("{} from {low} to {high}", varied.load_name())],
            destroy: Vec::new(),
            keep: false,
        })
    }
}

/// Reports the time and space of a job's stages, or rejects them. Returns true if they should run
/// (false for a dry run).
///
/// # Errors
/// The errors of [`check`], for the first stage that cannot be run.
pub fn check_stages(
    stages: &[(String, ResolvedPlan)],
    preflight: &Preflight,
    listener: &mut dyn Listener,
) -> Result<bool, RunnerError> {
    let (yes, dry_run) = (preflight.yes, preflight.dry_run);
    let total = stages.iter().fold(0, |sum: u64, (_, plan)| sum.saturating_add(once_ns(plan)));
    reject_long_run(total, yes)?;
    let all = stages.len();
    let is_limit = stages.iter().any(|(_, plan)| may_end_early(plan));
    let (most, end) = end(is_limit, total, clock::realtime_ns());
    listener.say(&format!(
        "takes {most}{} ({all} stages, one after the other), not counting the creation of data{end}",
        elapsed(total as f64)
    ));
    let mut lacking = None;
    for (number, (name, plan)) in stages.iter().enumerate() {
        let once = elapsed(once_ns(plan) as f64);
        listener.say(&format!("stage {} of {all}, {name}: {once}", number + 1));
        lacking = lacking.or(report_space(plan, 1, listener));
    }
    lacking.map_or(Ok(()), |error| Err(engine_error(&error)))?;
    for (_, plan) in stages {
        if dry_run {
            probe::probe_targets(plan, preflight, listener)?;
        } else {
            check_directories(plan)?;
        }
        check_runs(plan, preflight)?;
    }
    Ok(!dry_run)
}

/// Reports the time and space of a plan, or rejects it. Returns true if it should run. A dry run
/// lists the runs, checks every target and server, and returns false.
///
/// # Errors
/// The data does not fit, the run takes more than 30 days and has no `--yes`, or a directory is
/// missing.
pub fn check(
    plan: &ResolvedPlan,
    preflight: &Preflight,
    listener: &mut dyn Listener,
) -> Result<bool, RunnerError> {
    reject_fleet_plan(plan)?;
    report(plan, preflight, listener)?;
    durability::check_plan(plan, preflight.measurements)?;
    if !preflight.dry_run {
        check_directories(plan)?;
        check_runs(plan, preflight)?;
        return Ok(true);
    }
    preflight.listing.iter().for_each(|line| listener.say(line));
    probe::probe_targets(plan, preflight, listener)?;
    check_runs(plan, preflight)?;
    trace::of_plan(plan)?;
    Ok(false)
}

/// Reports the time that a plan takes on each host of a fleet. The hosts check their targets.
///
/// # Errors
/// The measurements take more than 30 days, and `--yes` was not passed.
pub fn check_on_hosts(
    plan: &ResolvedPlan,
    preflight: &Preflight,
    listener: &mut dyn Listener,
) -> Result<(), RunnerError> {
    check_duration(plan, preflight)?;
    listener.say(&duration(plan, preflight, clock::realtime_ns()));
    Ok(())
}

/// For every target and point, makes the checks that a run makes before it reserves its target.
/// Without them, a run could reject a plan that a dry run accepted.
fn check_runs(plan: &ResolvedPlan, preflight: &Preflight) -> Result<(), RunnerError> {
    let is_device = |target: &Target| matches!(target.kind, TargetKind::Device { .. });
    if preflight.keep && plan.targets.iter().any(is_device) {
        return Err(RunnerError::usage(
            "--keep cannot be used with a device: its data always stays, and `plimsoll verify` \
             cannot check it",
        )
        .hint("omit --keep; to check the data, set verify = true in [phases]"));
    }
    if let Workload::Matrix(matrix) = &plan.workload {
        plan.targets.iter().try_for_each(|target| {
            let checked = matrix::check_tracking(plan, target, matrix, preflight.keep);
            checked.map_err(|error| engine_error(&error))
        })?;
    }
    if plan.targets.len() > 1 {
        search::refuse_auto(plan)?;
    }
    if search_steps(plan, preflight).is_some() {
        // The number of threads is not known yet: the search will choose it.
        return search::prepare(plan, search::default_range(plan)?, 1).map(drop);
    }
    if preflight.unit == "point" && plan.targets.len() == 1 && sweep::is_sweep(plan) {
        return sweep::points(plan)?.iter().try_for_each(|point| check_plan(&point.plan));
    }
    let knob_known = |one: ResolvedPlan| match &one.workload {
        Workload::Mailbox(store) if store.threads_auto => {
            let workload = Workload::Mailbox(store.with_threads(1));
            ResolvedPlan { workload, ..one.clone() }
        }
        _ => one,
    };
    let targets = (0..plan.targets.len()).filter_map(|at| plan.for_target(at));
    targets.map(knob_known).try_for_each(|one| check_plan(&one))
}

fn report(
    plan: &ResolvedPlan,
    preflight: &Preflight,
    listener: &mut dyn Listener,
) -> Result<(), RunnerError> {
    check_duration(plan, preflight)?;
    listener.say(&duration(plan, preflight, clock::realtime_ns()));
    if let Some(steps) = search_steps(plan, preflight) {
        let longest = elapsed(once_ns(plan).saturating_mul(steps) as f64);
        listener.say(&format!(
            "threads = \"auto\": a search runs first and takes at most {steps} steps and {longest}"
        ));
    }
    if let Some(phase) = &plan.durability {
        let (cuts, each) = (phase.cuts, elapsed(phase.load_ns as f64));
        let loads = if cuts == 1 { "load" } else { "loads" };
        listener.say(&format!(
            "this includes {cuts} {loads} of the durability test, with a mean duration of {each}, \
             but not the time that its commands take"
        ));
    }
    let times = preflight.data_sets.div_ceil(plan.targets.len().max(1) as u64);
    report_space(plan, times, listener).map_or(Ok(()), |error| Err(engine_error(&error)))
}

/// Reports needed and free space, and the number of bytes written for `times` data sets. If a
/// target has too little space, returns the error for the first such target.
fn report_space(
    plan: &ResolvedPlan,
    times: u64,
    listener: &mut dyn Listener,
) -> Option<EngineError> {
    let mut lacking = None;
    let mut written: u64 = 0;
    for target in &plan.targets {
        for need in plan.required_bytes(target) {
            written = written.saturating_add(need.bytes);
        }
        for space in space(plan, target) {
            listener.say(&space_line(&space));
            lacking = lacking.or_else(|| space.lacking());
        }
    }
    if let Some(space) = durability_space(plan) {
        listener.say(&format!("durability test: {}", space_line(&space)));
        lacking = lacking.or_else(|| space.lacking());
    }
    if written > 0 && !plan.targets.iter().all(|t| has_no_space(&t.kind)) {
        let all = SizeBytes(written.saturating_mul(times)).about();
        listener.say(&format!(
            "the run writes {all} to create the data; the writes of the load are not included"
        ));
    }
    lacking
}

/// Returns the space that a plan's durability test needs in a directory. The test starts after the
/// other data was removed.
fn durability_space(plan: &ResolvedPlan) -> Option<Space> {
    let phase = plan.durability.as_ref()?;
    match durability::target_place(&plan.targets.first()?.kind)? {
        TargetPlace::Directory(path) => Some(directory_space(&path, phase.size_bytes)),
        _ => None,
    }
}

/// Rejects data that does not fit. Directories that do not exist are not checked.
///
/// # Errors
/// The errors of [`check`].
pub fn check_space(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let spaces = plan.targets.iter().flat_map(|target| space(plan, target));
    let spaces = spaces.chain(durability_space(plan));
    let lacking = spaces.into_iter().find_map(|space| space.lacking());
    lacking.map_or(Ok(()), |error| Err(engine_error(&error)))
}

fn has_no_space(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::Model { .. } | TargetKind::Null)
}

/// Returns the maximum number of steps that the search for the number of threads takes. `None` if
/// the plan states this number.
fn search_steps(plan: &ResolvedPlan, preflight: &Preflight) -> Option<u64> {
    let is_auto = plan.workload.mailbox().is_some_and(|store| store.threads_auto);
    (is_auto && preflight.unit == "run").then_some(STEPS_MAX as u64)
}

fn check_duration(plan: &ResolvedPlan, preflight: &Preflight) -> Result<(), RunnerError> {
    let steps = search_steps(plan, preflight).unwrap_or(0);
    reject_long_run(
        once_ns(plan).saturating_mul(preflight.measurements.saturating_add(steps)),
        preflight.yes,
    )
}

fn reject_long_run(total: u64, accepted: bool) -> Result<(), RunnerError> {
    if total <= MEASURE_NS_MAX || accepted {
        return Ok(());
    }
    let says = format!("the measurements of the plan take {}", days(total));
    Err(RunnerError::usage(says)
        .hint("more than 30 days may be a mistake: pass --yes if this duration is intended")
        .hint("or shorten the plan: `phases.measure`, `repeat.runs`, fewer points"))
}

fn days(ns: u64) -> String {
    const DAY: f64 = 86_400e9;
    const YEAR: f64 = 365.25 * DAY;
    let ns = ns as f64;
    if ns < YEAR { format!("{:.0} days", ns / DAY) } else { format!("{:.1} years", ns / YEAR) }
}

/// Returns for how long one run applies a load: in the warm-up, in the measurement, and before each
/// interruption of the target in its durability test.
fn once_ns(plan: &ResolvedPlan) -> u64 {
    let cuts_ns = plan.durability.as_ref().map_or(0, |one| one.cuts.saturating_mul(one.load_ns));
    plan.phases.warm_up_ns.saturating_add(plan.phases.measure_ns).saturating_add(cuts_ns)
}

fn duration(plan: &ResolvedPlan, preflight: &Preflight, now_unix_ns: u64) -> String {
    let once = once_ns(plan);
    let total = once.saturating_mul(preflight.measurements);
    let (count, unit) = (preflight.measurements, preflight.unit);
    let each = match count {
        1 => String::new(),
        count => format!(" ({count} {unit}s of {})", elapsed(once as f64)),
    };
    let is_limit = unit == "step" || may_end_early(plan);
    let (most, end) = end(is_limit, total, now_unix_ns);
    let total_shown = elapsed(total as f64);
    if plan.targets.iter().all(|target| matches!(target.kind, TargetKind::Model { .. })) {
        return format!("takes {most}{total_shown}{each} of virtual time");
    }
    let verify = if plan.phases.verify { " and reading the data back" } else { "" };
    let making = match plan.targets.iter().all(|target| has_no_space(&target.kind)) {
        true => String::new(),
        false => format!(", not counting the creation of data{verify}"),
    };
    format!("takes {most}{total_shown}{each}{making}{end}")
}

/// Returns true if the measurement may end before its planned duration: as soon as the rate is
/// steady, or at the end of a trace that is replayed as fast as possible.
fn may_end_early(plan: &ResolvedPlan) -> bool {
    let as_fast = plan.workload.trace().is_some_and(|trace| trace.speed.is_none());
    plan.phases.until_steady || as_fast
}

/// Returns the words before and after a duration. If the duration is only a limit, no earliest end
/// can be stated.
fn end(is_limit: bool, total_ns: u64, now_unix_ns: u64) -> (&'static str, String) {
    let end = || utc(now_unix_ns.saturating_add(total_ns));
    match is_limit {
        true => ("at most ", String::new()),
        false => ("", format!(": ends at {} at the earliest", end())),
    }
}

fn space_line(space: &Space) -> String {
    let needs = SizeBytes(space.needed_bytes).about();
    let path = space.path.display();
    let free = match space.free_bytes {
        Some(free) => format!("{} free", SizeBytes(free).about()),
        None if space.path.exists() => "free space unknown".to_owned(),
        None => "the directory does not exist".to_owned(),
    };
    let reused = match space.reused_bytes {
        0 => String::new(),
        bytes => {
            format!(", {} of data from an earlier run will be replaced", SizeBytes(bytes).about())
        }
    };
    format!("{path}: {needs} needed, {free}{reused}")
}

/// Rejects missing directories first, before any step that may have to wait.
fn check_directories(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let directories = |target: &&Target| {
        matches!(target.kind, TargetKind::Directories { .. } | TargetKind::Path { .. })
    };
    for target in plan.targets.iter().filter(directories) {
        for path in target_paths(target) {
            if !Path::new(&path).exists() {
                return Err(missing_directory(&path, plan.targets.len() > 1));
            }
        }
    }
    Ok(())
}

fn target_paths(target: &Target) -> Vec<String> {
    let mut all: Vec<String> = match &target.kind {
        TargetKind::Directories { databases, logs } => {
            databases.iter().chain(logs).cloned().collect()
        }
        TargetKind::Path { path } => vec![path.clone()],
        TargetKind::Device { device } => vec![device.clone()],
        TargetKind::Nfs { exports, .. } => exports.clone(),
        TargetKind::S3 { endpoint, .. } => vec![endpoint.clone()],
        TargetKind::Model { .. } | TargetKind::Null => Vec::new(),
    };
    all.dedup();
    all
}

/// Error for a missing directory, with hints.
fn missing_directory(path: &str, is_one_of_several: bool) -> RunnerError {
    let error = RunnerError::usage(format!("{path} is not an existing directory"))
        .hint("create it, or mount the file system that should be there");
    match is_one_of_several {
        true => error,
        false => error.hint("or replace the plan's path with --path DIR"),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;
    use crate::listener::RecordedMessages;

    fn plan(measure: &str) -> ResolvedPlan {
        let text = format!(
            "[target]\npath = \"/no/such\"\n[workload.matrix]\nfile_size = \
             \"1GiB\"\n[phases]\nwarm_up = \"0s\"\nmeasure = \"{measure}\"\n"
        );
        Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
    }

    #[test]
    fn a_million_hours_are_refused_in_years_unless_they_are_meant() {
        let long = plan("1000000h");
        let error =
            check_duration(&long, &Preflight::runs(&long, false, false)).map_err(|e| e.to_string());
        let error = error.err().unwrap_or_default();
        assert!(error.contains("114.1 years") && error.contains("--yes"), "{error}");
        assert!(check_duration(&long, &Preflight::runs(&long, true, false)).is_ok());
        let month = plan("720h");
        assert!(check_duration(&month, &Preflight::runs(&month, false, false)).is_ok());
    }

    #[test]
    fn a_search_that_comes_before_the_runs_is_said_and_counts() {
        let of = |threads: &str, measure: &str| {
            let text = format!(
                "[requirement]\n[target]\nmodel = \"single-hdd\"\n[workload.mailbox]\nmailboxes = \
                 10\nmailbox_size = \"16MiB\"\nthreads = {threads}\n[phases]\nwarm_up = \
                 \"0s\"\nmeasure = \"{measure}\"\n"
            );
            Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
        };
        let messages = |plan: &ResolvedPlan| {
            let mut messages = RecordedMessages::default();
            let check = check(plan, &Preflight::runs(plan, false, false), &mut messages);
            check.map(|_| messages.0.join("\n")).map_err(|error| error.message)
        };
        let auto = messages(&of("\"auto\"", "1h"));
        assert!(auto.is_ok_and(|says| says.contains("at most 16 steps and 16 h")));
        assert!(messages(&of("4", "1h")).is_ok_and(|says| !says.contains("steps")));
        assert!(messages(&of("4", "100h")).is_ok());
        assert!(messages(&of("\"auto\"", "100h")).is_err_and(|says| says.contains("71 days")));
        let plan = of("4", "1h");
        let range = Range { steps_max: 99, ..Range::up_to(64) };
        let steps = Preflight::steps(&plan, &range, false, false, false);
        let steps =
            steps.map(|steps| (steps.measurements, steps.data_sets, steps.listing.join("")));
        assert_eq!(steps.map_err(|e| e.message), Ok((16, 1, "threads from 1 to 64".to_owned())));
    }

    #[test]
    fn a_limit_has_no_earliest_end() {
        let steady = plan("until-steady");
        let says = duration(&steady, &Preflight::runs(&steady, false, false), 0);
        assert!(says.contains("at most") && !says.contains("earliest"), "{says}");
        let plan = plan("1h");
        let steps = Preflight::steps(&plan, &Range::up_to(64), false, true, false);
        let says = duration(&plan, &steps.unwrap_or_else(|e| panic!("{e}")), 0);
        assert!(says.starts_with("takes at most 16 h") && !says.contains("earliest"), "{says}");
    }

    #[test]
    fn what_it_takes_is_said_with_its_end() {
        let plan = plan("1h");
        let three = Preflight::runs(&plan, false, false);
        let preflight = Preflight { measurements: 3, data_sets: 3, ..three };
        assert_eq!(
            duration(&plan, &preflight, 1_795_219_200_000_000_000),
            "takes 3 h (3 runs of 1 h), not counting the creation of data: ends at 2026-11-21 03:00 \
             UTC at the earliest"
        );
    }
}
