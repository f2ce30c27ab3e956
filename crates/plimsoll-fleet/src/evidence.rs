//! What a fleet's run leaves, and how it is read again.
//!
//! ```text
//! <run>/
//!   all/             sealed: fleet.json, plan.toml as it was signed, order.json, latency.hlog and series.csv of all hosts
//!   hosts/<agent>/   the bundle of each host, as its agent sealed it
//!   verdict.json     derived
//!   report.html      derived
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_catalogue as archive;
use plimsoll_evidence::fleet::{
    Fleet, Host, HostEnd, HostPhase, HostRun, Merged, Offset, Part, Start, VERSION, merge,
};
use plimsoll_evidence::latency::{self, Window};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::seal;
use plimsoll_evidence::{Bundle, BundleWriter, EvidenceError, series, signature, strict};
use plimsoll_judge::fleet::{FleetVerdict, judge_fleet};
use plimsoll_judge::{Verdict, VerdictKind, judge};
use plimsoll_plan::Plan;
use plimsoll_report::fleet_document;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::exit::Exit;
use plimsoll_runner::places::Places;
use plimsoll_runner::{custody, render};

use crate::card::Card;
use crate::message::Ended;
use crate::offset::{between, here_ns};
use crate::order::Order;

/// The directory that holds a host's bundles.
const HOSTS: &str = "hosts";
/// The directory of what is of all hosts.
const ALL: &str = "all";

/// What came of a host.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) card: Card,
    pub(crate) offsets: Vec<Offset>,
    pub(crate) refused: Option<String>,
    pub(crate) lost: Option<String>,
    pub(crate) ended: Option<Ended>,
    pub(crate) says: String,
    pub(crate) archive: Option<Vec<u8>>,
}

/// What came of a run, to be written.
pub(crate) struct Collected<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) order: &'a Order,
    pub(crate) signed_by: &'a str,
    pub(crate) started_unix_ns: u64,
    pub(crate) ended_early: String,
    pub(crate) hosts: Vec<Came>,
    pub(crate) places: &'a Places,
    pub(crate) bundles: &'a Path,
}

/// A fleet's evidence, judged.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its directory.
    pub directory: PathBuf,
    /// What the hosts did together.
    pub fleet: Fleet,
    /// The verdict.
    pub verdict: FleetVerdict,
    /// How the command ends.
    pub exit: Exit,
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    move |error| EvidenceError::io(what, path, error).into()
}

/// Writes a run's evidence, seals and judges it. It has its name once it is whole: who coordinates may be killed meanwhile, and
/// takes the run up again.
pub(crate) fn leave(collected: Collected<'_>) -> Result<Left, RunnerError> {
    let run_id = &collected.order.run_id;
    let named = collected.bundles.join(run_id);
    let directory = collected.bundles.join(format!(".{run_id}-half"));
    let all = directory.join(ALL);
    fs::create_dir_all(collected.bundles).map_err(io("create", collected.bundles))?;
    if directory.exists() {
        // Of a coordinator that was killed: all of it lies with the hosts and on the server.
        fs::remove_dir_all(&directory).map_err(io("remove", &directory))?;
    }
    fs::create_dir(&directory).map_err(io("create", &directory))?;
    fs::create_dir(&all).map_err(io("create", &all))?;
    let resolved = collected.plan.resolve();
    let hosts = collected.hosts.iter();
    let unpacked: Vec<(Host, Option<PathBuf>)> =
        hosts.map(|came| unpack(came, &directory)).collect();
    let mut fleet = Fleet {
        fleet_version: VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        build: plimsoll_report::BUILD.to_owned(),
        run_id: run_id.clone(),
        name: resolved.name.clone(),
        plan_sha256: seal::sha256_hex(collected.order.plan_text.as_bytes()),
        signed_by: collected.signed_by.to_owned(),
        started_unix_ns: collected.started_unix_ns,
        planned_measure_ns: resolved.phases.measure_ns,
        interval_ns: resolved.evidence.interval_ns.max(1),
        ended_early: collected.ended_early.clone(),
        window: None,
        hosts: Vec::new(),
        classes: Vec::new(),
    };
    let zero_ns = zero(&collected.hosts, &unpacked);
    for ((host, bundle), came) in unpacked.into_iter().zip(&collected.hosts) {
        fleet.hosts.push(placed(host, bundle.as_deref(), came, zero_ns)?);
    }
    fleet.hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let merged = add_up(&directory, &mut fleet)?;
    write_all(&all, &collected, &fleet, merged.as_ref())?;
    let writer = BundleWriter::open(&all);
    seal::seal(&all)?;
    custody::sign(&writer, collected.places, run_id)?;
    let left = read(&directory)?;
    write_derived(&left)?;
    fs::rename(&directory, &named).map_err(io("name", &named))?;
    Ok(Left { directory: named, ..left })
}

/// The coordinator's clock at the start of the first host's run.
fn zero(came: &[Came], unpacked: &[(Host, Option<PathBuf>)]) -> i64 {
    let start = |(came, (_, bundle)): (&Came, &(Host, Option<PathBuf>))| {
        bundle.as_ref()?;
        let run_start_ns = came.ended.as_ref()?.run_start_ns?;
        Some(here_ns(run_start_ns, *came.offsets.first()?))
    };
    let starts = came.iter().zip(unpacked).filter_map(start);
    // Clocks are compared again at the end: a later look may put a start a little before this.
    starts.min().unwrap_or(0).saturating_sub(1_000_000)
}

/// Unpacks a host's bundle, where it came.
fn unpack(came: &Came, directory: &Path) -> (Host, Option<PathBuf>) {
    let Card { name, host, address, boot_id, version, build, .. } = came.card.clone();
    let into = directory.join(HOSTS).join(&name);
    let (end, says, bundle) = match (&came.lost, &came.refused, &came.ended, &came.archive) {
        (Some(why), ..) => (HostEnd::Lost, why.clone(), None),
        (None, Some(reason), ..) => {
            (HostEnd::Failed, format!("it refused the plan: {reason}"), None)
        }
        (None, None, None, _) => (HostEnd::Lost, "it never ended".to_owned(), None),
        (None, None, Some(ended), None) => match (&ended.run_id, &ended.object) {
            (None, _) => (HostEnd::Failed, ended.says.clone(), None),
            (Some(_), None) => (HostEnd::WithoutEvidence, ended.says.clone(), None),
            (Some(_), Some(_)) => (HostEnd::WithoutEvidence, came.says.clone(), None),
        },
        (None, None, Some(ended), Some(bytes)) => match unpacked(bytes, &into, ended) {
            Ok(bundle) => (HostEnd::Reported, String::new(), Some(bundle)),
            Err(says) => (HostEnd::WithoutEvidence, says, None),
        },
    };
    let clock = Vec::new();
    (Host { name, host, address, boot_id, version, build, clock, end, says, run: None }, bundle)
}

fn unpacked(bytes: &[u8], into: &Path, ended: &Ended) -> Result<PathBuf, String> {
    fs::create_dir_all(into).map_err(|error| error.to_string())?;
    let packed = into.join("bundle.tar.gz");
    fs::write(&packed, bytes).map_err(|error| error.to_string())?;
    let bundle = archive::import(&packed, into).map_err(|error| error.to_string());
    let _ = fs::remove_file(&packed);
    let bundle = bundle?;
    let sealed = seal::open(&bundle).map_err(|error| error.to_string())?;
    match Some(&sealed.sha256) == ended.seal_sha256.as_ref() {
        true => Ok(bundle),
        false => Err("it has another seal than the agent said".to_owned()),
    }
}

/// A host with its run on the fleet's clock.
fn placed(
    mut host: Host,
    bundle: Option<&Path>,
    came: &Came,
    zero_ns: i64,
) -> Result<Host, RunnerError> {
    host.clock = came
        .offsets
        .iter()
        .map(|offset| Offset { at_ns: offset.at_ns.saturating_sub(zero_ns), ..*offset })
        .collect();
    let (Some(bundle), Some(ended)) = (bundle, &came.ended) else { return Ok(host) };
    let Some(run_start_ns) = ended.run_start_ns else {
        host.end = HostEnd::Failed;
        host.says = "its run ended before any phase began".to_owned();
        return Ok(host);
    };
    let evidence = plimsoll_evidence::Bundle::read(bundle)?;
    let run = &evidence.run;
    // The clock as it was when the measurement began: what is added up is of that time.
    let middle_ns = run_start_ns + run.measure().map_or(0, |phase| phase.start_ns);
    let about = came.offsets.first().map_or(0, |offset| here_ns(middle_ns, *offset));
    let offset = between(&came.offsets, about);
    let on_fleet = |agent_ns: u64| {
        let here = offset.map_or(0, |offset| here_ns(agent_ns, offset)).saturating_sub(zero_ns);
        u64::try_from(here).unwrap_or(0)
    };
    let start_ns = on_fleet(run_start_ns);
    host.run = Some(HostRun {
        run_id: run.run_id.clone(),
        seal_sha256: ended.seal_sha256.clone().unwrap_or_default(),
        start_ns,
        starts: ended
            .starts
            .iter()
            .map(|waited| Start {
                kind: waited.kind,
                ready_ns: on_fleet(waited.ready_ns),
                scheduled_ns: on_fleet(waited.scheduled_ns),
            })
            .collect(),
        phases: run
            .phases
            .iter()
            .map(|phase| HostPhase {
                kind: phase.kind,
                start_ns: start_ns + phase.start_ns,
                duration_ns: phase.duration_ns,
                bytes: phase.read_bytes + phase.written_bytes,
                reached: phase.reached,
            })
            .collect(),
        measured_ns: 0,
        classes: Vec::new(),
        counters: run.counters.clone(),
    });
    Ok(host)
}

/// By how much a host's times may be wrong.
fn error_ns(host: &Host) -> u64 {
    let began = host.run.as_ref().and_then(|run| run.began_ns(PhaseKind::Measure)).unwrap_or(0);
    let at_ns = i64::try_from(began).unwrap_or(i64::MAX);
    between(&host.clock, at_ns).map_or(0, |offset| offset.error_ns)
}

/// The bundles of the hosts that left one, each judged.
///
/// # Errors
/// As [`read`].
pub fn hosts(left: &Left) -> Result<Vec<(Bundle, Verdict)>, RunnerError> {
    let judged = |part: Part| {
        let verdict = judge(&part.bundle);
        (part.bundle, verdict)
    };
    Ok(parts(&left.directory, &left.fleet)?.into_iter().map(judged).collect())
}

/// The evidence of the hosts that left any, in their order.
fn parts(directory: &Path, fleet: &Fleet) -> Result<Vec<Part>, RunnerError> {
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
fn summed(
    parts: &[Part],
    fleet: &Fleet,
) -> Result<Option<(plimsoll_evidence::fleet::Common, Merged)>, RunnerError> {
    if parts.len() < fleet.hosts.len() {
        return Ok(None);
    }
    merge(parts, fleet.interval_ns)
        .map_err(|error| RunnerError::new(Exit::Defect, format!("adding histograms up: {error}")))
}

fn add_up(directory: &Path, fleet: &mut Fleet) -> Result<Option<Merged>, RunnerError> {
    let parts = parts(directory, fleet)?;
    let Some((window, merged)) = summed(&parts, fleet)? else { return Ok(None) };
    fleet.window = Some(window);
    fleet.classes.clone_from(&merged.classes);
    let runs = fleet.hosts.iter_mut().filter_map(|host| host.run.as_mut());
    for (run, (classes, measured_ns)) in runs.zip(&merged.hosts) {
        run.classes.clone_from(classes);
        run.measured_ns = *measured_ns;
    }
    Ok(Some(merged))
}

fn write_all(
    all: &Path,
    collected: &Collected<'_>,
    fleet: &Fleet,
    merged: Option<&Merged>,
) -> Result<(), RunnerError> {
    let write = |name: &str, bytes: &[u8]| {
        let path = all.join(name);
        fs::write(&path, bytes).map_err(io("write", &path))
    };
    write("fleet.json", render::json(fleet)?.as_bytes())?;
    write("plan.toml", collected.order.plan_text.as_bytes())?;
    write("order.json", render::json(collected.order)?.as_bytes())?;
    let (Some(merged), Some(window)) = (merged, fleet.window) else { return Ok(()) };
    let defect = |error: String| RunnerError::new(Exit::Defect, format!("the evidence: {error}"));
    let mut text = Vec::new();
    series::write(&mut text, &merged.series).map_err(|error| defect(error.to_string()))?;
    write("series.csv", &text)?;
    let mut text = Vec::new();
    let measured = Window::new(window.start_ns, window.duration_ns);
    latency::write(&mut text, fleet.started_unix_ns, &merged.intervals, Some(measured))
        .map_err(defect)?;
    write("latency.hlog", &text)
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
    let judged: Vec<Verdict> = parts.iter().map(|part| judge(&part.bundle)).collect();
    let ends = parts.iter().zip(&judged).map(|(p, judged)| Exit::of(&p.bundle.run, judged.verdict));
    let worst = ends.fold(Exit::Ok, Exit::worse);
    let named = fleet.hosts.iter().filter(|host| host.run.is_some()).map(|host| host.name.clone());
    let verdicts: BTreeMap<String, Verdict> = named.zip(judged).collect();
    let verdict = judge_fleet(&fleet, &verdicts, merged.as_ref());
    let exit = worst.worse(match verdict.verdict {
        VerdictKind::Invalid | VerdictKind::Inconclusive => Exit::NoVerdict,
        VerdictKind::Fail => Exit::Fail,
        VerdictKind::Pass | VerdictKind::Measured => Exit::Ok,
    });
    Ok(Left { directory: directory.to_path_buf(), fleet, verdict, exit })
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
    let document = fleet_document(&left.fleet, &left.verdict);
    write("report.html", render::document_html(&document)?)
}
