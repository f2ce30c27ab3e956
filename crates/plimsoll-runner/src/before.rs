//! What a run will take, said before it begins: how long, what is written, what space there is, when it ends. What can't
//! fit, and what would go on for weeks, is refused.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::{EngineError, Space, space};
use plimsoll_judge::stats::tune::STEPS_MAX;
use plimsoll_judge::tuning::Range;
use plimsoll_plan::{Knob, ResolvedPlan, SizeBytes, Target, TargetKind};
use plimsoll_report::elapsed;
use plimsoll_sys::clock;
use rustix::fs::{Access, access};

use crate::arms;
use crate::asked::of_one_host;
use crate::error::{RunnerError, engine_error};
use crate::exit::Exit;
use crate::listener::Listener;
use crate::run_id::utc;

/// A plan that measures for longer is refused unless it is said to be meant: 30 days.
pub const MEASURE_NS_MAX: u64 = 30 * 24 * 3_600 * 1_000_000_000;
/// How long a server is waited for.
const SERVER: Duration = Duration::from_secs(5);

/// What is asked for beside a plan.
#[derive(Clone, Debug)]
pub struct Before {
    /// How many measurements: runs, points or steps of all targets together.
    pub measurements: u64,
    /// What one of them is called.
    pub called: &'static str,
    /// How often data is made.
    pub made: u64,
    /// Whether a plan that goes on for weeks is meant.
    pub yes: bool,
    /// Whether nothing is to be done but what is said here.
    pub dry_run: bool,
    /// What a dry run lists: each run, point or step in its order.
    pub listed: Vec<String>,
}

impl Before {
    /// The runs of a plan, as often as it says, of its targets in turns.
    #[must_use]
    pub fn runs(plan: &ResolvedPlan, yes: bool, dry_run: bool) -> Self {
        let (runs, targets) = (u64::from(plan.repeat.runs.max(1)), plan.targets.len() as u64);
        let made = if plan.repeat.fresh { runs * targets } else { targets };
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
        let listed = order.iter().enumerate().map(line).collect();
        Self { measurements: all, called: "run", made, yes, dry_run, listed }
    }

    /// The steps of a search for the load line in this range, all of which it takes at most. With `fresh` each makes its
    /// data anew.
    ///
    /// # Errors
    /// A plan that has nothing to turn.
    pub fn steps(
        plan: &ResolvedPlan,
        range: &Range,
        fresh: bool,
        yes: bool,
        dry_run: bool,
    ) -> Result<Self, RunnerError> {
        let knob = Knob::of(plan).map_err(RunnerError::usage)?;
        let steps = range.steps_max.min(STEPS_MAX) as u64;
        let (low, high) = (range.load_min, range.load_max);
        Ok(Self {
            measurements: steps,
            called: "step",
            made: if fresh { steps } else { 1 },
            yes,
            dry_run,
            listed: vec![format!("{} from {low} to {high}", knob.load_name())],
        })
    }
}

/// Says what the stages of a job will take, one after the other, or refuses them; true: they are to be carried out.
///
/// # Errors
/// As [`begins`], for the first stage that can't be carried out.
pub fn stages_begin(
    stages: &[(String, ResolvedPlan)],
    yes: bool,
    dry_run: bool,
    listener: &mut dyn Listener,
) -> Result<bool, RunnerError> {
    let total = stages.iter().fold(0, |sum: u64, (_, plan)| sum.saturating_add(once_ns(plan)));
    not_for_weeks(total, yes)?;
    let all = stages.len();
    let most =
        if stages.iter().any(|(_, plan)| plan.phases.until_steady) { "at most " } else { "" };
    let end = utc(clock::realtime_ns().saturating_add(total));
    listener.say(&format!(
        "takes {most}{} ({all} stages, one after the other), beside making the data of each: until {end} at the \
         earliest",
        elapsed(total as f64)
    ));
    let mut lacking = None;
    for (number, (name, plan)) in stages.iter().enumerate() {
        let once = elapsed(once_ns(plan) as f64);
        listener.say(&format!("stage {} of {all}, {name}: {once}", number + 1));
        lacking = lacking.or(spaces(plan, 1, listener));
    }
    lacking.map_or(Ok(()), |error| Err(engine_error(&error)))?;
    for (_, plan) in stages {
        if dry_run { reach(plan, listener)? } else { there(plan)? }
    }
    Ok(!dry_run)
}

/// Says what a plan will take, or refuses it; true: it is to be carried out. A dry run lists what would be done in
/// which order, looks at every place and server, and is not.
///
/// # Errors
/// Data that can't fit, a measurement of more than 30 days that nobody said is meant, a place that is not there.
pub fn begins(
    plan: &ResolvedPlan,
    before: &Before,
    listener: &mut dyn Listener,
) -> Result<bool, RunnerError> {
    of_one_host(plan)?;
    tell(plan, before, listener)?;
    if !before.dry_run {
        return there(plan).map(|()| true);
    }
    before.listed.iter().for_each(|line| listener.say(line));
    reach(plan, listener)?;
    Ok(false)
}

fn tell(
    plan: &ResolvedPlan,
    before: &Before,
    listener: &mut dyn Listener,
) -> Result<(), RunnerError> {
    sane(plan, before)?;
    listener.say(&duration(plan, before, clock::realtime_ns()));
    if let Some(steps) = steps_before(plan, before) {
        let longest = elapsed(once_ns(plan).saturating_mul(steps) as f64);
        listener.say(&format!(
            "threads = \"auto\": beside that a search comes first, of {steps} steps and {longest} at most"
        ));
    }
    let times = before.made.div_ceil(plan.targets.len().max(1) as u64);
    spaces(plan, times, listener).map_or(Ok(()), |error| Err(engine_error(&error)))
}

/// Says what space there is and what is written, so many times; returns what is lacking.
fn spaces(plan: &ResolvedPlan, times: u64, listener: &mut dyn Listener) -> Option<EngineError> {
    let mut lacking = None;
    let mut written: u64 = 0;
    for target in &plan.targets {
        for need in plan.required_bytes(target) {
            written = written.saturating_add(need.bytes);
        }
        for space in space(plan, target) {
            listener.say(&room(&space));
            lacking = lacking.or_else(|| space.lacking());
        }
    }
    if written > 0 && !plan.targets.iter().all(|t| has_no_space(&t.kind)) {
        let all = SizeBytes(written.saturating_mul(times)).about();
        listener
            .say(&format!("writes {all} before it measures, and what the load writes meanwhile"));
    }
    lacking
}

/// Refuses data that can't fit, as far as its directories are there.
///
/// # Errors
/// As [`begins`].
pub fn fits(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let spaces = plan.targets.iter().flat_map(|target| space(plan, target));
    let lacking = spaces.into_iter().find_map(|space| space.lacking());
    lacking.map_or(Ok(()), |error| Err(engine_error(&error)))
}

fn has_no_space(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::Model { .. } | TargetKind::Null)
}

/// The steps of the search that comes before the runs of a plan, at most; `None`: its threads are known.
fn steps_before(plan: &ResolvedPlan, before: &Before) -> Option<u64> {
    let is_auto = plan.workload.mailbox().is_some_and(|store| store.threads_auto);
    (is_auto && before.called == "run").then_some(STEPS_MAX as u64)
}

fn sane(plan: &ResolvedPlan, before: &Before) -> Result<(), RunnerError> {
    let steps = steps_before(plan, before).unwrap_or(0);
    not_for_weeks(
        once_ns(plan).saturating_mul(before.measurements.saturating_add(steps)),
        before.yes,
    )
}

fn not_for_weeks(total: u64, meant: bool) -> Result<(), RunnerError> {
    if total <= MEASURE_NS_MAX || meant {
        return Ok(());
    }
    let says = format!("the plan measures for {}", days(total));
    Err(RunnerError::usage(says)
        .hint("more than 30 days are taken for a slip: write --yes if that is meant")
        .hint("or measure for less: `phases.measure`, `repeat.runs`, fewer points"))
}

fn days(ns: u64) -> String {
    const DAY: f64 = 86_400e9;
    const YEAR: f64 = 365.25 * DAY;
    let ns = ns as f64;
    if ns < YEAR { format!("{:.0} days", ns / DAY) } else { format!("{:.1} years", ns / YEAR) }
}

fn once_ns(plan: &ResolvedPlan) -> u64 {
    plan.phases.warm_up_ns.saturating_add(plan.phases.measure_ns)
}

fn duration(plan: &ResolvedPlan, before: &Before, now_unix_ns: u64) -> String {
    let once = once_ns(plan);
    let total = once.saturating_mul(before.measurements);
    let (many, called) = (before.measurements, before.called);
    let each = match many {
        1 => String::new(),
        many => format!(" ({many} {called}s of {})", elapsed(once as f64)),
    };
    let most = if plan.phases.until_steady { "at most " } else { "" };
    let total_shown = elapsed(total as f64);
    if plan.targets.iter().all(|target| matches!(target.kind, TargetKind::Model { .. })) {
        return format!("takes {most}{total_shown}{each} of virtual time");
    }
    let verify = if plan.phases.verify { ", and reading it back" } else { "" };
    let making = match plan.targets.iter().all(|target| has_no_space(&target.kind)) {
        true => String::new(),
        false => format!(", beside making the data{verify}"),
    };
    let end = utc(now_unix_ns.saturating_add(total));
    format!("takes {most}{total_shown}{each}{making}: until {end} at the earliest")
}

fn room(space: &Space) -> String {
    let needs = SizeBytes(space.needed_bytes).about();
    let path = space.path.display();
    let free = match space.free_bytes {
        Some(free) => format!("{} are free", SizeBytes(free).about()),
        None if space.path.exists() => "what is free can't be seen".to_owned(),
        None => "the directory is not there".to_owned(),
    };
    let reused = match space.reused_bytes {
        0 => String::new(),
        bytes => format!(", and {} of an earlier run are replaced", SizeBytes(bytes).about()),
    };
    format!("{path}: {needs} needed, {free}{reused}")
}

/// Refuses a directory that is not there, before anything is waited for.
fn there(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let directories = |target: &&Target| {
        matches!(target.kind, TargetKind::Directories { .. } | TargetKind::Path { .. })
    };
    for target in plan.targets.iter().filter(directories) {
        for place in places(target) {
            if !Path::new(&place).exists() {
                return Err(missing(&place, plan.targets.len() > 1));
            }
        }
    }
    Ok(())
}

/// A directory that a plan names is not there: what to do of it.
fn missing(place: &str, is_one_of_several: bool) -> RunnerError {
    let error = RunnerError::usage(format!("{place} is no directory that is there"))
        .hint("make it, or see to it that what belongs there is mounted");
    match is_one_of_several {
        true => error,
        false => error.hint("or name one that is there, with --path DIR, in place of the plan's"),
    }
}

/// Looks at every place and server that a plan names, without writing anything; says what is there.
fn reach(plan: &ResolvedPlan, listener: &mut dyn Listener) -> Result<(), RunnerError> {
    let mut first = None;
    let mut take = |place: &str, found: Result<String, RunnerError>| match found {
        Ok(says) => listener.say(&format!("{place}: {says}")),
        Err(error) => {
            listener.say(&format!("{place}: {}", error.message));
            first.get_or_insert(error);
        }
    };
    let several = plan.targets.len() > 1;
    for target in &plan.targets {
        for place in places(target) {
            let found = look(target, &place, several);
            take(&place, found);
        }
    }
    for endpoint in &plan.observe.metrics {
        take(&endpoint.url, answers(&endpoint.url, 80));
    }
    first.map_or(Ok(()), Err)
}

fn places(target: &Target) -> Vec<String> {
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

fn look(target: &Target, place: &str, several: bool) -> Result<String, RunnerError> {
    let path = Path::new(place);
    match &target.kind {
        TargetKind::Nfs { .. } => answers(place, 2049),
        TargetKind::S3 { endpoint, .. } => {
            answers(place, if endpoint.starts_with("https:") { 443 } else { 80 })
        }
        TargetKind::Device { .. } => {
            access(path, Access::READ_OK | Access::WRITE_OK)
                .map_err(|error| RunnerError::usage(format!("{place}: {error}")))?;
            Ok("is there, and may be written".to_owned())
        }
        _ if !path.is_dir() => Err(missing(place, several)),
        _ => {
            access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|error| RunnerError::environment(format!("{place}: {error}")))?;
            Ok("is there, and may be written".to_owned())
        }
    }
}

/// Whether something listens where a URL says.
fn answers(url: &str, port: u16) -> Result<String, RunnerError> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let no = |says: String| RunnerError::new(Exit::Environment, format!("{address}: {says}"));
    let all = address.to_socket_addrs().map_err(|error| no(error.to_string()))?;
    let mut last = no("the name has no address".to_owned());
    for one in all {
        match TcpStream::connect_timeout(&one, SERVER) {
            Ok(_) => return Ok(format!("{address} takes connections")),
            Err(error) => last = no(error.to_string()),
        }
    }
    Err(last.hint("start the server, or name the one that answers"))
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;

    fn plan(measure: &str) -> ResolvedPlan {
        let text = format!(
            "[target]\npath = \"/no/such\"\n[workload.matrix]\nfile_size = \"1GiB\"\n[phases]\n\
             warm_up = \"0s\"\nmeasure = \"{measure}\"\n"
        );
        Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
    }

    #[test]
    fn a_million_hours_are_refused_in_years_unless_they_are_meant() {
        let long = plan("1000000h");
        let error = sane(&long, &Before::runs(&long, false, false)).map_err(|e| e.to_string());
        let error = error.err().unwrap_or_default();
        assert!(error.contains("114.1 years") && error.contains("--yes"), "{error}");
        assert!(sane(&long, &Before::runs(&long, true, false)).is_ok());
        let month = plan("720h");
        assert!(sane(&month, &Before::runs(&month, false, false)).is_ok());
    }

    /// Who hears sentences.
    #[derive(Default)]
    struct Heard(Vec<String>);

    impl plimsoll_record::progress::Watcher for Heard {
        fn begin(&mut self, _: plimsoll_evidence::run::PhaseKind) {}
        fn progress(
            &mut self,
            _: plimsoll_evidence::run::PhaseKind,
            _: &plimsoll_record::progress::Progress,
        ) {
        }
        fn end(&mut self, _: &plimsoll_evidence::run::Phase) {}
    }

    impl Listener for Heard {
        fn say(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn warn(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    #[test]
    fn a_search_that_comes_before_the_runs_is_said_and_counts() {
        let of = |threads: &str, measure: &str| {
            let text = format!(
                "[requirement]\n[target]\nmodel = \"single-hdd\"\n[workload.mailbox]\nmailboxes = 10\n\
                 mailbox_size = \"16MiB\"\nthreads = {threads}\n[phases]\nwarm_up = \"0s\"\n\
                 measure = \"{measure}\"\n"
            );
            Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
        };
        let heard = |plan: &ResolvedPlan| {
            let mut heard = Heard::default();
            let begins = begins(plan, &Before::runs(plan, false, false), &mut heard);
            begins.map(|_| heard.0.join("\n")).map_err(|error| error.message)
        };
        let auto = heard(&of("\"auto\"", "1h"));
        assert!(auto.is_ok_and(|says| says.contains("16 steps and 16 h at most")));
        assert!(heard(&of("4", "1h")).is_ok_and(|says| !says.contains("steps")));
        assert!(heard(&of("4", "100h")).is_ok());
        assert!(heard(&of("\"auto\"", "100h")).is_err_and(|says| says.contains("71 days")));
        let plan = of("4", "1h");
        let range = Range { load_min: 1, load_max: 64, steps_max: 99 };
        let steps = Before::steps(&plan, &range, false, false, false);
        let steps = steps.map(|steps| (steps.measurements, steps.made, steps.listed.join("")));
        assert_eq!(steps.map_err(|e| e.message), Ok((16, 1, "threads from 1 to 64".to_owned())));
    }

    #[test]
    fn what_it_takes_is_said_with_its_end() {
        let plan = plan("1h");
        let three = Before::runs(&plan, false, false);
        let before = Before { measurements: 3, made: 3, ..three };
        assert_eq!(
            duration(&plan, &before, 1_795_219_200_000_000_000),
            "takes 3 h (3 runs of 1 h), beside making the data: until 2026-11-21 03:00 UTC at the \
             earliest"
        );
    }
}
