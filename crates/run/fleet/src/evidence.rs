//! Writes the evidence of a fleet run from the bundles of its hosts. [`plimsoll_runner::fleet`]
//! reads it.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_catalogue as archive;
use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::fleet::{
    Fleet, Host, HostEnd, HostPhase, HostRun, MergedEvidence, Offset, Start, System, UntilLost,
    VERSION, interpolate_offset,
};
use plimsoll_evidence::latency::{self, Window};
use plimsoll_evidence::ledger::Ledger;
use plimsoll_evidence::run::LedgerPosition;
use plimsoll_evidence::{BundleWriter, EvidenceError, JOB, seal, series};
use plimsoll_plan::ResolvedPlan;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::exit::Exit;
use plimsoll_runner::fleet::{ALL, FleetBundle, HOSTS, parts, read, sum_bundles, write_derived};
use plimsoll_runner::places::Places;
use plimsoll_runner::{custody, render};
use plimsoll_sys::clock;

use crate::card::Card;
use crate::message::RunOutcome;
use crate::offset::to_coordinator_ns;
use crate::order::Order;

#[derive(Debug)]
pub(crate) struct HostResult {
    pub(crate) card: Card,
    pub(crate) offsets: Vec<Offset>,
    pub(crate) refused: Option<String>,
    pub(crate) lost: Option<String>,
    /// Event that stopped the lost host, if the plan expects this event to stop the host.
    pub(crate) lost_with: Option<String>,
    /// Figures of a lost host. The times are on the coordinator's clock.
    pub(crate) until_lost: Option<UntilLost>,
    pub(crate) ended: Option<RunOutcome>,
    pub(crate) evidence_error: String,
    pub(crate) archive: Option<Vec<u8>>,
}

/// Result of a fleet run.
pub(crate) struct FleetResult<'a> {
    pub(crate) resolved: &'a ResolvedPlan,
    pub(crate) ledger: Option<LedgerPosition>,
    pub(crate) order: &'a Order,
    pub(crate) signed_by: &'a str,
    pub(crate) started_unix_ns: u64,
    pub(crate) ended_early: String,
    /// Records of the plan's events. The times are on the coordinator's clock.
    pub(crate) events: Vec<EventRecord>,
    pub(crate) hosts: Vec<HostResult>,
    /// Function that returns the increase of the storage system's counters, given a start time on
    /// the coordinator's clock and a duration.
    pub(crate) system: &'a dyn Fn(u64, u64) -> Option<System>,
    pub(crate) places: &'a Places,
    pub(crate) bundles: &'a Path,
}

/// Maximum unpacked size of a host's bundle. The evidence of a run that lasts an hour has a few
/// megabytes.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunnerError {
    move |error| EvidenceError::io(what, path, error).into()
}

/// Writes, seals and judges the evidence of a run. The directory gets its final name as the last
/// step. If the coordinator is killed before that, the run can be resumed.
pub(crate) fn write(result: FleetResult<'_>) -> Result<FleetBundle, RunnerError> {
    let run_id = &result.order.run_id;
    let named = result.bundles.join(run_id);
    let directory = result.bundles.join(format!(".{run_id}-half"));
    let all = directory.join(ALL);
    fs::create_dir_all(result.bundles).map_err(io("create", result.bundles))?;
    if directory.exists() {
        // A coordinator that was killed may have left this directory. The hosts and the server
        // still have its contents.
        fs::remove_dir_all(&directory).map_err(io("remove", &directory))?;
    }
    fs::create_dir(&directory).map_err(io("create", &directory))?;
    fs::create_dir(&all).map_err(io("create", &all))?;
    let resolved = result.resolved;
    let hosts = result.hosts.iter();
    let unpacked: Vec<(Host, Option<PathBuf>)> =
        hosts.map(|host_result| unpack_host(host_result, &directory)).collect();
    let mut fleet = Fleet {
        fleet_version: VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        build: plimsoll_report::BUILD.to_owned(),
        run_id: run_id.clone(),
        name: resolved.name.clone(),
        plan_sha256: seal::sha256_hex(result.order.plan_text.as_bytes()),
        signed_by: result.signed_by.to_owned(),
        started_unix_ns: result.started_unix_ns,
        planned_measure_ns: resolved.phases.measure_ns,
        interval_ns: resolved.evidence.interval_ns.max(1),
        ended_early: result.ended_early.clone(),
        experiment: result.order.experiment.clone(),
        ledger: result.ledger.clone(),
        events: result.events.clone(),
        window: None,
        system: None,
        hosts: Vec::new(),
        classes: Vec::new(),
    };
    let zero_ns = time_origin_ns(&result.hosts, &unpacked);
    let since_zero = |ns: u64| u64::try_from(i128::from(ns) - i128::from(zero_ns)).unwrap_or(0);
    fleet.events.iter_mut().for_each(|event| event.map_times(since_zero));
    for ((mut host, bundle), host_result) in unpacked.into_iter().zip(&result.hosts) {
        host.until_lost = host_result
            .until_lost
            .map(|figures| UntilLost { heard_ns: since_zero(figures.heard_ns), ..figures });
        fleet.hosts.push(place_on_fleet_clock(host, bundle.as_deref(), host_result, zero_ns)?);
    }
    fleet.hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let merged = sum_hosts(&directory, &mut fleet)?;
    fleet.system = fleet.window.and_then(|window| {
        let start_ns = zero_ns.saturating_add_unsigned(window.start_ns);
        (result.system)(u64::try_from(start_ns).ok()?, window.duration_ns)
    });
    write_all(&all, &result, &fleet, merged.as_ref())?;
    let writer = BundleWriter::open(&all);
    seal::seal(&all)?;
    custody::sign(&writer, result.places, run_id)?;
    let left = read(&directory)?;
    write_derived(&left)?;
    if result.ledger.is_some() {
        let (bundle, verdict) = &*left.combined;
        let seal_sha256 = bundle.seal_sha256.clone().unwrap_or_default();
        let (end, verdict) = (bundle.run.end.kind.word(), verdict.verdict.label());
        let ledger = Ledger::at(result.places.ledger());
        ledger.end(run_id, clock::realtime_ns(), end, verdict, &seal_sha256, None)?;
    }
    fs::rename(&directory, &named).map_err(io("name", &named))?;
    Ok(FleetBundle { directory: named, ..left })
}

/// Returns the time on the coordinator's clock at which the first host started its run.
fn time_origin_ns(host_result: &[HostResult], unpacked: &[(Host, Option<PathBuf>)]) -> i64 {
    let start = |(host_result, (_, bundle)): (&HostResult, &(Host, Option<PathBuf>))| {
        bundle.as_ref()?;
        let run_start_ns = host_result.ended.as_ref()?.run_start_ns?;
        Some(to_coordinator_ns(run_start_ns, *host_result.offsets.first()?))
    };
    let starts = host_result.iter().zip(unpacked).filter_map(start);
    // A margin is subtracted, because the clock comparison after the run may shift a start to a
    // slightly earlier time.
    starts.min().unwrap_or(0).saturating_sub(1_000_000)
}

/// Converts a time on a host's clock to the coordinator's clock, with the offsets that were
/// measured before and after the run.
pub(crate) fn place_on_coordinator(offsets: &[Offset], agent_ns: u64) -> u64 {
    let about = offsets.first().map_or(0, |offset| to_coordinator_ns(agent_ns, *offset));
    let here = interpolate_offset(offsets, about);
    u64::try_from(here.map_or(0, |offset| to_coordinator_ns(agent_ns, offset))).unwrap_or(0)
}

/// Unpacks the bundle of a host, if the coordinator has received it.
fn unpack_host(host_result: &HostResult, directory: &Path) -> (Host, Option<PathBuf>) {
    let Card { name, host, address, boot_id, version, build, .. } = host_result.card.clone();
    let into = directory.join(HOSTS).join(&name);
    let (end, says, bundle) =
        match (&host_result.lost, &host_result.refused, &host_result.ended, &host_result.archive) {
            (Some(why), ..) => match &host_result.lost_with {
                Some(event) => {
                    let says = format!("lost with event \"{event}\", as expected: {why}");
                    (HostEnd::LostAsExpected, says, None)
                }
                None => (HostEnd::Lost, why.clone(), None),
            },
            (None, Some(reason), ..) => {
                (HostEnd::Failed, format!("it refused the plan: {reason}"), None)
            }
            (None, None, None, _) => {
                (HostEnd::Lost, "the host did not finish its run".to_owned(), None)
            }
            (None, None, Some(ended), None) => match (&ended.run_id, &ended.object) {
                (None, _) => (HostEnd::Failed, ended.error.clone(), None),
                (Some(_), None) => (HostEnd::WithoutEvidence, ended.error.clone(), None),
                (Some(_), Some(_)) => {
                    (HostEnd::WithoutEvidence, host_result.evidence_error.clone(), None)
                }
            },
            (None, None, Some(ended), Some(bytes)) => match unpack_archive(bytes, &into, ended) {
                Ok(bundle) => (HostEnd::Reported, String::new(), Some(bundle)),
                Err(says) => (HostEnd::WithoutEvidence, says, None),
            },
        };
    let (clock, run, until_lost) = (Vec::new(), None, None);
    (
        Host { name, host, address, boot_id, version, build, clock, end, says, run, until_lost },
        bundle,
    )
}

fn unpack_archive(bytes: &[u8], into: &Path, ended: &RunOutcome) -> Result<PathBuf, String> {
    fs::create_dir_all(into).map_err(|error| error.to_string())?;
    let packed = into.join("bundle.tar.gz");
    fs::write(&packed, bytes).map_err(|error| error.to_string())?;
    let bundle = archive::import_at_most(&packed, into, UNPACKED_BYTES_MAX)
        .map_err(|error| error.to_string());
    let _ = fs::remove_file(&packed);
    let bundle = bundle?;
    let sealed = seal::open(&bundle).map_err(|error| error.to_string())?;
    match Some(&sealed.sha256) == ended.seal_sha256.as_ref() {
        true => Ok(bundle),
        false => Err("the bundle's seal differs from the one that the agent reported".to_owned()),
    }
}

/// Converts the times of a host's run to the fleet's clock.
fn place_on_fleet_clock(
    mut host: Host,
    bundle: Option<&Path>,
    host_result: &HostResult,
    zero_ns: i64,
) -> Result<Host, RunnerError> {
    host.clock = host_result
        .offsets
        .iter()
        .map(|offset| Offset { at_ns: offset.at_ns.saturating_sub(zero_ns), ..*offset })
        .collect();
    let (Some(bundle), Some(ended)) = (bundle, &host_result.ended) else { return Ok(host) };
    let Some(run_start_ns) = ended.run_start_ns else {
        host.end = HostEnd::Failed;
        host.says = "its run ended before a phase started".to_owned();
        return Ok(host);
    };
    let evidence = plimsoll_evidence::Bundle::read(bundle)?;
    let run = &evidence.run;
    // The offset at the start of the measurement is used, because the sums are over the measured
    // time.
    let middle_ns = run_start_ns + run.measure().map_or(0, |phase| phase.start_ns);
    let about =
        host_result.offsets.first().map_or(0, |offset| to_coordinator_ns(middle_ns, *offset));
    let offset = interpolate_offset(&host_result.offsets, about);
    let on_fleet = |agent_ns: u64| {
        let here =
            offset.map_or(0, |offset| to_coordinator_ns(agent_ns, offset)).saturating_sub(zero_ns);
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
            .map(|start| Start {
                kind: start.kind,
                ready_ns: on_fleet(start.ready_ns),
                scheduled_ns: on_fleet(start.scheduled_ns),
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

fn sum_hosts(directory: &Path, fleet: &mut Fleet) -> Result<Option<MergedEvidence>, RunnerError> {
    let parts = parts(directory, fleet)?;
    let Some((window, merged)) = sum_bundles(&parts, fleet)? else { return Ok(None) };
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
    result: &FleetResult<'_>,
    fleet: &Fleet,
    merged: Option<&MergedEvidence>,
) -> Result<(), RunnerError> {
    let write = |name: &str, bytes: &[u8]| {
        let path = all.join(name);
        fs::write(&path, bytes).map_err(io("write", &path))
    };
    write("fleet.json", render::json(fleet)?.as_bytes())?;
    write("plan.toml", result.order.plan_text.as_bytes())?;
    if let Some(job) = &result.order.job_text {
        write(JOB, job.as_bytes())?;
    }
    let resolved = result.resolved.to_toml();
    let resolved = resolved.map_err(|error| RunnerError::usage(error.to_string()))?;
    write("resolved.toml", resolved.as_bytes())?;
    write("order.json", render::json(result.order)?.as_bytes())?;
    let (Some(merged), Some(window)) = (merged, fleet.window) else { return Ok(()) };
    let defect = |error: String| {
        RunnerError::new(Exit::Defect, format!("cannot write the evidence: {error}"))
    };
    let mut text = Vec::new();
    series::write(&mut text, &merged.series).map_err(|error| defect(error.to_string()))?;
    write("series.csv", &text)?;
    let mut text = Vec::new();
    let measured = Window::new(window.start_ns, window.duration_ns);
    latency::write(&mut text, fleet.started_unix_ns, &merged.intervals, Some(measured))
        .map_err(defect)?;
    write("latency.hlog", &text)
}
