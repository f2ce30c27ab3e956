//! What several hosts did together, read back: the sum of their bundles, judged.
//!
//! ```text
//! <run>/
//!   all/             sealed: fleet.json, plan.toml as it was signed, resolved.toml as it was run, order.json, latency.hlog and
//!                    series.csv of all hosts
//!   hosts/<agent>/   the bundle of each host, as its agent sealed it
//!   verdict.json     derived
//!   report.html      derived
//! ```

mod one;

pub use one::required_of;

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
use plimsoll_judge::{Verdict, VerdictKind, judge};
use plimsoll_plan::{Plan, PlanErrors, ResolvedPlan};
use plimsoll_report::fleet_document;

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::render;

/// The directory that holds a host's bundles.
pub const HOSTS: &str = "hosts";
/// The directory of what is of all hosts.
pub const ALL: &str = "all";

/// Files of that directory.
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

/// A fleet's evidence, judged.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its directory.
    pub directory: PathBuf,
    /// What the hosts did together.
    pub fleet: Fleet,
    /// The verdict.
    pub verdict: FleetVerdict,
    /// The bundles of the hosts that left one, each judged.
    pub hosts: Vec<(Bundle, Verdict)>,
    /// All hosts as one run, as an experiment takes them: rates and counts are sums, and so is what is required.
    pub one: Box<(Bundle, Verdict)>,
    /// How the command ends.
    pub exit: Exit,
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    move |error| EvidenceError::io(what, path, error).into()
}

/// By how much a host's times may be wrong.
fn error_ns(host: &Host) -> u64 {
    let began =
        host.run.as_ref().and_then(|run| run.phase_start_ns(PhaseKind::Measure)).unwrap_or(0);
    let at_ns = i64::try_from(began).unwrap_or(i64::MAX);
    interpolate_offset(&host.clock, at_ns).map_or(0, |offset| offset.error_ns)
}

/// The evidence of the hosts that left any, in their order.
///
/// # Errors
/// A bundle that can't be read, or that is not the one that the fleet's evidence names.
pub fn parts(directory: &Path, fleet: &Fleet) -> Result<Vec<Part>, RunnerError> {
    let mut parts = Vec::new();
    for host in &fleet.hosts {
        let Some(run) = &host.run else { continue };
        let bundle = directory.join(HOSTS).join(&host.name).join(&run.run_id);
        let part = Part::read(&bundle, run.start_ns, error_ns(host))?;
        if part.bundle.seal_sha256.as_ref() != Some(&run.seal_sha256) {
            let says =
                format!("{} is not the bundle that the fleet's evidence names", bundle.display());
            return Err(RunnerError::new(Exit::NoVerdict, says));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// What the hosts' bundles add up to; nothing where one is missing.
///
/// # Errors
/// Histograms that can't be added.
pub fn summed(
    parts: &[Part],
    fleet: &Fleet,
) -> Result<Option<(CommonWindow, MergedEvidence)>, RunnerError> {
    if parts.len() < fleet.hosts.len() {
        return Ok(None);
    }
    merge(parts, fleet.interval_ns)
        .map_err(|error| RunnerError::new(Exit::Defect, format!("adding histograms up: {error}")))
}

/// Whether a directory holds a fleet's evidence.
#[must_use]
pub fn is_fleet(directory: &Path) -> bool {
    directory.join(ALL).join("fleet.json").is_file()
}

/// Reads a fleet's evidence with all seals in it, adds the hosts' bundles up again, and judges.
///
/// # Errors
/// A file that is missing or was changed, a later version.
pub fn read(directory: &Path) -> Result<Left, RunnerError> {
    let all = directory.join(ALL);
    let sealed = seal::open(&all)?;
    let path = all.join("fleet.json");
    let fleet: Fleet = strict::read(sealed.text("fleet.json")?)
        .map_err(|reason| EvidenceError::Malformed { path, reason })?;
    if fleet.fleet_version > VERSION {
        let says = format!("{} is of a later version of Plimsoll", directory.display());
        return Err(RunnerError::usage(says).hint("read it with the version that made it"));
    }
    let signed = all.join(seal::SIGNATURE);
    if let Ok(text) = fs::read_to_string(&signed) {
        let seal = all.join(seal::FILE);
        let bytes = fs::read(&seal).map_err(io("read", &seal))?;
        signature::check(&fleet.signed_by, &bytes, &text)
            .map_err(|reason| EvidenceError::Signature { path: signed, reason })?;
    }
    let parts = parts(directory, &fleet)?;
    let summed = summed(&parts, &fleet)?;
    // A window that the bundles do not give is none.
    let merged =
        summed.filter(|(window, _)| Some(*window) == fleet.window).map(|(_, merged)| merged);
    let hosts: Vec<(Bundle, Verdict)> = parts
        .into_iter()
        .map(|Part { bundle, .. }| {
            let verdict = judge(&bundle);
            (bundle, verdict)
        })
        .collect();
    let named = fleet.hosts.iter().filter(|host| host.run.is_some()).map(|host| host.name.clone());
    let judged = hosts.iter().map(|(_, verdict)| verdict.clone());
    let verdicts: BTreeMap<String, Verdict> = named.clone().zip(judged).collect();
    let bundles = named.zip(hosts.iter().map(|(bundle, _)| bundle)).collect();
    let plan = plan_of(&all, &sealed)?;
    let metrics = &plan.1.observe.metrics;
    let verdict = judge_fleet(&fleet, &verdicts, merged.as_ref(), &bundles, metrics);
    let mut one = one::as_one(&fleet, &verdict, plan, &hosts, merged, &sealed.sha256);
    let has_job = sealed.names().any(|name| name == JOB);
    one.0.job_text = has_job.then(|| sealed.text(JOB).map(str::to_owned)).transpose()?;
    // A host that is missing is no failure of its own: it makes the run INVALID. Neither is one that was told to end
    // because of another: it is interrupted here only where the operator did so.
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
    Ok(Left { directory, fleet, verdict, hosts, one: Box::new(one), exit })
}

/// A plan as an order or a fleet's evidence has it: its text, and that of the fio job that it names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn plan_given(text: &str, name: &str, job: Option<&str>) -> Result<Plan, PlanErrors> {
    let none = || "it did not come with the plan".to_owned();
    Plan::parse_with(text, name, &|_| job.map(str::to_owned).ok_or_else(none), &read_job)
}

/// The plan as it was given, and as it was run.
fn plan_of(all: &Path, sealed: &SealedFiles) -> Result<(String, ResolvedPlan), RunnerError> {
    const RESOLVED: &str = "resolved.toml";
    let malformed =
        |name: &str, reason: String| EvidenceError::Malformed { path: all.join(name), reason };
    let text = sealed.text("plan.toml")?.to_owned();
    if sealed.names().any(|name| name == RESOLVED) {
        let resolved = ResolvedPlan::from_toml(sealed.text(RESOLVED)?);
        return Ok((text, resolved.map_err(|error| malformed(RESOLVED, error.to_string()))?));
    }
    // Earlier versions kept the plan alone, of which there was one run.
    let plan = Plan::parse(&text, "plan.toml");
    let resolved = plan.map_err(|errors| malformed("plan.toml", errors.to_string()))?.resolve();
    Ok((text, resolved))
}

/// Writes verdict and report beside the evidence.
///
/// # Errors
/// A file that can't be written.
pub fn write_derived(left: &Left) -> Result<(), RunnerError> {
    let write = |name: &str, text: String| {
        let path = left.directory.join(name);
        fs::write(&path, text).map_err(io("write", &path))
    };
    write("verdict.json", render::json(&left.verdict)?)?;
    let document = fleet_document(&left.fleet, &left.verdict, &left.one, &left.hosts);
    write("report.html", render::document_html(&document)?)
}
