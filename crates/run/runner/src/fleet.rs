//! Reads the bundle of a fleet's run, adds up the bundles of the hosts, and judges the sum.
//!
//! ```text
//! <run>/
//!   all/             sealed: fleet.json, plan.toml (as signed), resolved.toml (as run),
//!                    order.json; latency.hlog and series.csv of all hosts
//!   hosts/<agent>/   bundle of each host, sealed by its agent
//!   verdict.json     derived
//!   report.html      derived
//! ```

mod combined;

pub use combined::{carry_shares, scale_requirement};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::fleet::{
    BY_OPERATOR, CommonWindow, Fleet, Host, MergedEvidence, Part, VERSION, interpolate_offset,
    merge,
};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::seal::{self, SealedFiles};
use plimsoll_evidence::{Bundle, EvidenceError, JOB, signature, strict};
use plimsoll_import::fio_job::read_job;
use plimsoll_judge::fleet::{FleetVerdict, judge_fleet};
use plimsoll_judge::{Verdict, VerdictKind, judge, judge_host};
use plimsoll_plan::{Plan, PlanErrors, ResolvedPlan};
use plimsoll_report::fleet_document;

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::render;

/// Name of the directory that contains the hosts' bundles.
pub const HOSTS: &str = "hosts";
/// Name of the directory that contains the evidence on all hosts together.
pub const ALL: &str = "all";

/// Names of the files in the directory `all`.
pub const FILES: [&str; 8] = [
    "fleet.json",
    "plan.toml",
    "resolved.toml",
    "order.json",
    "series.csv",
    "latency.hlog",
    seal::FILE,
    seal::SIGNATURE,
];

/// Bundle of a fleet's run, with its verdicts.
#[derive(Clone, Debug)]
pub struct FleetBundle {
    pub directory: PathBuf,
    /// Evidence on all hosts together.
    pub fleet: Fleet,
    /// Verdict on all hosts together.
    pub verdict: FleetVerdict,
    /// Bundles and verdicts of the hosts that wrote a bundle.
    pub hosts: Vec<(Bundle, Verdict)>,
    /// All hosts combined into one run, for experiments. Rates, counts and requirements are sums.
    pub combined: Box<(Bundle, Verdict)>,
    /// Exit code of the command.
    pub exit: Exit,
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    move |error| EvidenceError::io(what, path, error).into()
}

/// Returns the maximum error of a host's timestamps, in nanoseconds.
fn error_ns(host: &Host) -> u64 {
    let began =
        host.run.as_ref().and_then(|run| run.phase_start_ns(PhaseKind::Measure)).unwrap_or(0);
    let at_ns = i64::try_from(began).unwrap_or(i64::MAX);
    interpolate_offset(&host.clock, at_ns).map_or(0, |offset| offset.error_ns)
}

/// Returns the bundle of each host that wrote one, in the order of the hosts.
///
/// # Errors
/// A bundle cannot be read, or it is not the one recorded in the fleet's evidence.
pub fn parts(directory: &Path, fleet: &Fleet) -> Result<Vec<Part>, RunnerError> {
    let mut parts = Vec::new();
    for host in &fleet.hosts {
        let Some(run) = &host.run else { continue };
        let bundle = directory.join(HOSTS).join(&host.name).join(&run.run_id);
        let part = Part::read(&bundle, run.start_ns, error_ns(host))?;
        if part.bundle.seal_sha256.as_ref() != Some(&run.seal_sha256) {
            let says = format!(
                "{} is not the bundle that is recorded in the fleet's evidence",
                bundle.display()
            );
            return Err(RunnerError::new(Exit::NoVerdict, says));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Adds up the bundles of all hosts; `None` if a bundle is missing.
///
/// # Errors
/// The histograms cannot be added.
pub fn sum_bundles(
    parts: &[Part],
    fleet: &Fleet,
) -> Result<Option<(CommonWindow, MergedEvidence)>, RunnerError> {
    if parts.len() < fleet.counted().count() {
        return Ok(None);
    }
    merge(parts, fleet.interval_ns)
        .map_err(|error| RunnerError::new(Exit::Defect, format!("cannot add histograms: {error}")))
}

/// Returns true if the directory is a fleet's bundle.
#[must_use]
pub fn is_fleet(directory: &Path) -> bool {
    directory.join(ALL).join("fleet.json").is_file()
}

/// Reads a fleet's bundle, checks all seals, adds up the hosts' bundles again, and judges.
///
/// # Errors
/// A file is missing or changed, or was written by a later version.
pub fn read(directory: &Path) -> Result<FleetBundle, RunnerError> {
    let all = directory.join(ALL);
    let sealed = seal::open(&all)?;
    let path = all.join("fleet.json");
    let fleet: Fleet = strict::read(sealed.text("fleet.json")?)
        .map_err(|reason| EvidenceError::Malformed { path, reason })?;
    if fleet.fleet_version > VERSION {
        let says = format!("{} was written by a later version of Plimsoll", directory.display());
        return Err(RunnerError::usage(says).hint("read it with that version"));
    }
    let signed = all.join(seal::SIGNATURE);
    if let Ok(text) = fs::read_to_string(&signed) {
        let seal = all.join(seal::FILE);
        let bytes = fs::read(&seal).map_err(io("read", &seal))?;
        signature::check(&fleet.signed_by, &bytes, &text)
            .map_err(|reason| EvidenceError::Signature { path: signed, reason })?;
    }
    let parts = parts(directory, &fleet)?;
    let summed = sum_bundles(&parts, &fleet)?;
    // The recorded measurement window is used only if the bundles result in the same window.
    let merged =
        summed.filter(|(window, _)| Some(*window) == fleet.window).map(|(_, merged)| merged);
    let plan = plan_of(&all, &sealed)?;
    let resolved = plan.1.clone();
    let bundles: Vec<Bundle> =
        parts.into_iter().map(|part| with_events(part, &fleet, &resolved)).collect();
    let mut sum = combined::combine(&fleet, plan, &bundles, merged.as_ref(), &sealed.sha256);
    let has_job = sealed.names().any(|name| name == JOB);
    sum.job_text = has_job.then(|| sealed.text(JOB).map(str::to_owned)).transpose()?;
    let judge_part = match fleet.events.is_empty() {
        true => judge,
        false => judge_host,
    };
    let judged: Vec<Verdict> = bundles.iter().map(judge_part).collect();
    let named = fleet.hosts.iter().filter(|host| host.run.is_some()).map(|host| host.name.clone());
    let verdicts: BTreeMap<String, Verdict> = named.clone().zip(judged.iter().cloned()).collect();
    let by_name = named.zip(&bundles).collect();
    let verdict = judge_fleet(&fleet, &resolved, &verdicts, merged.as_ref(), &by_name, &sum);
    sum.run.end = combined::end(&fleet, &verdict, &bundles);
    let hosts: Vec<(Bundle, Verdict)> = bundles.into_iter().zip(judged).collect();
    let judged = combined::combine_verdicts(&verdict, &sum, &hosts);
    let combined = (sum, judged);
    // A missing host makes the run INVALID, so it needs no exit code here. A host that was stopped
    // because another host failed does not count as interrupted: only the operator can interrupt a
    // run.
    let ends = hosts.iter().map(|(bundle, judged)| Exit::of(&bundle.run, judged.verdict));
    let ends = ends.map(|exit| match exit {
        Exit::Interrupted if fleet.ended_early != BY_OPERATOR => Exit::NoVerdict,
        exit => exit,
    });
    let exit = ends.fold(Exit::Ok, Exit::worse).worse(match verdict.verdict {
        VerdictKind::Invalid | VerdictKind::Inconclusive => Exit::NoVerdict,
        VerdictKind::Fail => Exit::Fail,
        VerdictKind::Pass | VerdictKind::Measured => Exit::Ok,
    });
    let directory = directory.to_path_buf();
    Ok(FleetBundle { directory, fleet, verdict, hosts, combined: Box::new(combined), exit })
}

/// Returns a host's bundle with the events of the whole fleet, on the clock of the host's run. The
/// host itself knows only the events that it executed.
fn with_events(part: Part, fleet: &Fleet, plan: &ResolvedPlan) -> Bundle {
    let Part { mut bundle, start_ns, .. } = part;
    if !fleet.events.is_empty() {
        bundle.plan.events.clone_from(&plan.events);
        bundle.run.events.clone_from(&fleet.events);
        let since_start = |ns: u64| ns.saturating_sub(start_ns);
        bundle.run.events.iter_mut().for_each(|event| event.map_times(since_start));
    }
    bundle
}

/// Parses the plan of an order or of a fleet's evidence, with the text of its fio job.
///
/// # Errors
/// All errors of the plan.
pub fn parse_plan(text: &str, name: &str, job: Option<&str>) -> Result<Plan, PlanErrors> {
    let none = || "the fio job was not sent with the plan".to_owned();
    Plan::parse_with(text, name, &|_| job.map(str::to_owned).ok_or_else(none), &read_job)
}

/// Returns the plan as written, and the resolved plan as executed.
fn plan_of(all: &Path, sealed: &SealedFiles) -> Result<(String, ResolvedPlan), RunnerError> {
    const RESOLVED: &str = "resolved.toml";
    let malformed =
        |name: &str, reason: String| EvidenceError::Malformed { path: all.join(name), reason };
    let text = sealed.text("plan.toml")?.to_owned();
    if sealed.names().any(|name| name == RESOLVED) {
        let resolved = ResolvedPlan::from_toml(sealed.text(RESOLVED)?);
        return Ok((text, resolved.map_err(|error| malformed(RESOLVED, error.to_string()))?));
    }
    // Earlier versions stored only the plan, for a single run.
    let plan = Plan::parse(&text, "plan.toml");
    let resolved = plan.map_err(|errors| malformed("plan.toml", errors.to_string()))?.resolve();
    Ok((text, resolved))
}

/// Writes the verdict and the report to the directory of the evidence.
///
/// # Errors
/// A file cannot be written.
pub fn write_derived(bundle: &FleetBundle) -> Result<(), RunnerError> {
    let write = |name: &str, text: String| {
        let path = bundle.directory.join(name);
        fs::write(&path, text).map_err(io("write", &path))
    };
    write("verdict.json", render::json(&bundle.verdict)?)?;
    let document = fleet_document(&bundle.fleet, &bundle.verdict, &bundle.combined, &bundle.hosts);
    write("report.html", render::document_html(&document)?)
}
